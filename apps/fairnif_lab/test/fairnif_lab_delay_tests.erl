-module(fairnif_lab_delay_tests).
-tests(alone).

-include_lib("eunit/include/eunit.hrl").

-export([blocked/0]).

-define(D, fairnif_lab_delay).
-define(MS, 1000000).

the_samples_are_summed_up_exactly_test() ->
    Samples = lists:seq(100, 1, -1),
    ?assertEqual(#{count => 100, p50 => 50, p99 => 99, max => 100,
                   samples => Samples}, ?D:summary(Samples)),
    ?assertMatch(#{count := 0, max := undefined}, ?D:summary([])).

nobody_wakes_up_early_and_every_sleep_is_within_the_time_test_() ->
    {timeout, 60, fun() ->
        {Us, #{count := Count, samples := Samples}} =
            timer:tc(fun() -> ?D:measure(#{time_ms => 300}) end),
        ?assert(Count >= 1),
        ?assert(lists:min(Samples) >= 0),
        ?assert(lists:sum(Samples) + Count * ?MS =< Us * 1000)
    end}.

a_blocked_scheduler_makes_the_sleeper_late_test_() ->
    {timeout, 60, fun() ->
        {ok, #{p99 := P99}} =
            fairnif_lab_peer:run(["+S", "1:1"], {?MODULE, blocked, []}, 30000),
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
