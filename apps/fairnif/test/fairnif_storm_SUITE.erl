%% A storm of random calls and kills: nothing is left. It lasts FAIR_STORM seconds (default 10);
%% `make soak' has the long form (fairnif_soak_SUITE), fairnif_scale_SUITE ten thousand at once.
-module(fairnif_storm_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_storm_of_calls_kills_and_upgrades_leaves_nothing/1,
         a_storm_that_pauses_at_every_tick_leaves_nothing/1]).

suite() ->
    [{timetrap, {seconds, 900 + fairnif_test:env_number("FAIR_STORM", 10)}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

a_storm_of_calls_kills_and_upgrades_leaves_nothing(_) ->
    Seconds = fairnif_test:env_number("FAIR_STORM", 10),
    in_peer(fun(Peer) ->
                    _ = fairnif_test:call(Peer, fairnif_test_storm, blow, [1, infinity]),
                    fairnif_test:call(Peer, fairnif_test_storm, blow, [Seconds, infinity])
            end).

a_storm_that_pauses_at_every_tick_leaves_nothing(_) ->
    Seconds = max(1, fairnif_test:env_number("FAIR_STORM", 10) div 3),
    in_peer(fun(Peer) ->
                    ok = fairnif_test:call(Peer, fairnif, debug, [#{pause_every_tick => true}]),
                    _ = fairnif_test:call(Peer, fairnif_test_storm, blow, [1, infinity]),
                    fairnif_test:call(Peer, fairnif_test_storm, blow, [Seconds, infinity])
            end).

in_peer(Fun) ->
    Peer = fairnif_test:peer(["+S", "2:2", "+SDio", "4", "+P", "100000"]),
    Result = Fun(Peer),
    ct:log("~p", [Result]),
    fairnif_test:stop(Peer).
