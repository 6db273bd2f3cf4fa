%% An echo as a fair body: c_src/echo_fair.c.
-module(echo_fair).

-export([fair_auto/1, fair_threaded/1, start_process/0]).
-export([nif_process/0]).
-nifs([fair_auto/1, nif_fair_threaded/1, nif_process/0]).

-on_load(init/0).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @doc The binary itself, in mode AUTO. `badarg' for anything else.
-spec fair_auto(binary()) -> binary().
fair_auto(_Bin) -> erlang:nif_error(not_loaded).

%% @doc The same by a thread of fairnif's pool, while the caller waits in a receive.
-spec fair_threaded(binary()) -> binary().
fair_threaded(Bin) -> fairnif:await(nif_fair_threaded(Bin)).

%% @doc A native process that answers each gen_server:call with what it was called with.
-spec start_process() -> {ok, pid()} | {error, term()}.
start_process() -> fairnif_process:start_link(fun ?MODULE:nif_process/0, [], []).

nif_fair_threaded(_Bin) -> erlang:nif_error(not_loaded).

%% @private
-spec nif_process() -> fairnif:pending().
nif_process() -> erlang:nif_error(not_loaded).
