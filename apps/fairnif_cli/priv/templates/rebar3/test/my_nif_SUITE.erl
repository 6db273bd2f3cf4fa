%% Is the NIF well-behaved? The checker measures it in nodes of its own and judges how long it
%% blocks a scheduler, what it is charged, what it leaves to others, how soon it stops when it is
%% killed.
%%
%% A suite of Common Test, which can skip: on a machine that is too busy to say, a case is skipped
%% with the reason, never passed.
-module(my_nif_SUITE).

-export([all/0, suite/0, counting_is_well_behaved/1]).

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [counting_is_well_behaved].

counting_is_well_behaved(_Config) ->
    ok = fairnif_check:assert_well_behaved("my_nif:count(Bin, 97)",
                                         #{sizes => [1024, 64 * 1024 * 1024], time_ms => 500}).
