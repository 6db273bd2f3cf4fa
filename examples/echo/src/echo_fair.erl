%% An echo as a fair body: c_src/echo_fair.c.
-module(echo_fair).

-export([fair_auto/1]).
-nifs([fair_auto/1]).

-on_load(init/0).

init() ->
    erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info()).

%% @doc The binary itself, in mode AUTO. `badarg' for anything else.
-spec fair_auto(binary()) -> binary().
fair_auto(_Bin) -> erlang:nif_error(not_loaded).
