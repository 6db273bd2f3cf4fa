%% @doc Counts the bytes of a binary that have a given value.
-module(my_nif).

-export([count/2]).

-nifs([nif_count/2]).
-on_load(init/0).

%% load_nif binds to the module that contains the call, so it stands here and not in fairnif.
init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @doc How often `Byte' occurs in `Binary'. Anything but a binary and a byte is `badarg'.
-spec count(binary(), byte()) -> non_neg_integer().
count(Binary, Byte) ->
    fairnif:checked(fun nif_count/2, [Binary, Byte]).

nif_count(_Binary, _Byte) ->
    erlang:nif_error(not_loaded).
