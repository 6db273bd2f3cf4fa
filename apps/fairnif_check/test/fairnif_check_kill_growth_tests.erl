-module(fairnif_check_kill_growth_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MIB, 1048576).

steady_growth_is_seen_with_what_a_kill_loses_test() ->
    {PerKill, Total, Resolution} = growth([?MIB * 3 * N || N <- lists:seq(1, 8)]),
    ?assert(abs(PerKill - ?MIB) < 1),
    ?assert(Total > Resolution).

memory_that_stays_is_no_growth_test() ->
    {PerKill, Total, Resolution} = growth(lists:duplicate(8, 50 * ?MIB)),
    ?assertEqual({0.0, 0.0}, {PerKill, Total}),
    ?assert(Resolution > 0).

one_step_is_no_growth_test() ->
    ?assertMatch({P, _, _} when P == 0, growth([0, 0, 0, 0, 0, 0, 9 * ?MIB, 9 * ?MIB])).

growth_beside_falls_of_its_size_may_be_chance_test() ->
    {_, Total, Resolution} = growth([?MIB * M || M <- [50, 51, 50, 53, 51, 54, 52, 55]]),
    ?assert(Total =< Resolution).

growth_beside_small_falls_is_seen_test() ->
    {_, Total, Resolution} = growth([?MIB * M || M <- [50, 60, 70, 80, 79, 90, 100, 110]]),
    ?assert(Total > Resolution).

%% Resident memory after each three kills.
growth(Resident) ->
    fairnif_check_kill:growth(#{memory => [#{kills => 3 * N, resident => R, vm => 0}
                                         || {N, R} <- lists:zip(lists:seq(1, 8), Resident)]}).
