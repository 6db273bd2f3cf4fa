-module(fairnif_check_delay_tests).

-include_lib("eunit/include/eunit.hrl").

-export([blocked/0]).

-define(D, fairnif_check_delay).
-define(MS, 1000000).

the_samples_are_summed_up_exactly_test() ->
    Samples = lists:seq(100, 1, -1),
    ?assertEqual(#{count => 100, p50 => 50, p99 => 99, max => 100,
                   samples => Samples}, ?D:summary(Samples)),
    ?assertMatch(#{count := 0, max := undefined}, ?D:summary([])).

who_comes_late_was_late_each_time_that_has_passed_test_() ->
    [?_assertEqual(Expected, ?D:late(Due, 10, Left, Now))
     || {Due, Left, Now, Expected} <-
            [{100, 5, 100, [0]}, {100, 5, 103, [3]}, {100, 5, 109, [9]}, {100, 5, 110, [10, 0]},
             {100, 5, 135, [35, 25, 15, 5]}, {100, 2, 135, [35, 25]}, {100, 1, 500, [400]},
             {-100, 3, -85, [15, 5]}, {100, 5, 99, [0]}]].

no_process_wakes_up_early_and_there_is_a_sample_for_each_time_test_() ->
    {timeout, 60, fun() ->
        {Us, #{count := Count, samples := Samples}} =
            timer:tc(fun() -> ?D:measure(#{time_ms => 300}) end),
        ?assertEqual(300, Count),
        ?assertEqual(300, length(Samples)),
        ?assert(lists:min(Samples) >= 0),
        ?assert(Us >= 299000),
        ?assertMatch(#{count := 30}, ?D:measure(#{time_ms => 300, sleep_ms => 10}))
    end}.

%% Blocked for three quarters of the time, in stalls of 30 ms: who goes to sleep again after each
%% of them sees five good times for one bad one.
a_stall_is_felt_for_as_long_as_it_lasts_test_() ->
    {timeout, 60, fun() ->
        {ok, #{p50 := P50, p99 := P99}} =
            fairnif_check_peer:run(["+S", "1:1"], {?MODULE, blocked, []}, 300000),
        ?assert(P50 > 3 * ?MS),
        ?assert(P99 > 20 * ?MS)
    end}.

the_load_ends_with_the_measurement_test_() ->
    {timeout, 60, fun() ->
        Before = length(processes()),
        _ = ?D:beside([fun() -> timer:sleep(infinity) end], #{time_ms => 50}),
        timer:sleep(50),
        ?assert(length(processes()) =< Before)
    end}.

blocked() ->
    Block = fun Block() ->
                    process_flag(priority, max),
                    busy(erlang:monotonic_time(millisecond) + 30),
                    receive after 10 -> ok end,
                    Block()
            end,
    ?D:beside([Block], #{time_ms => 500}).

busy(Until) ->
    case erlang:monotonic_time(millisecond) < Until of
        true -> busy(Until);
        false -> done
    end.
