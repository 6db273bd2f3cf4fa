%% The storm of fairnif_storm_SUITE for SOAK_SECONDS (default 3), for `make soak'.
-module(fairnif_soak_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_long_storm_leaves_nothing/1]).

suite() ->
    [{timetrap, {seconds, 120 + seconds()}}].

all() ->
    [a_long_storm_leaves_nothing].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% In minutes, so that what went wrong is known before the night is over.
a_long_storm_leaves_nothing(_) ->
    Peer = fairnif_test:peer(["+S", "2:2", "+SDio", "4"]),
    _ = fairnif_test:call(Peer, fairnif_test_storm, blow, [1]),
    blow(Peer, seconds()),
    fairnif_test:stop(Peer).

blow(_Peer, Seconds) when Seconds =< 0 ->
    ok;
blow(Peer, Seconds) ->
    ct:log("~p", [fairnif_test:call(Peer, fairnif_test_storm, blow, [min(60, Seconds)])]),
    blow(Peer, Seconds - 60).

seconds() ->
    fairnif_test:env_number("SOAK_SECONDS", 3).
