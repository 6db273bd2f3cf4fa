-module(fairnif_check_time_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_check_time).
-define(MS, 1000000).

a_call_takes_as_long_as_it_takes_test() ->
    [#{time := #{count := Count, median := Median, spread := Spread, shortest := Shortest,
                 samples := Samples}}] =
        ?T:measure([fun() -> timer:sleep(5) end], #{time_ms => 30}),
    ?assert(Shortest >= 5 * ?MS),
    ?assert(Median >= Shortest),
    ?assert(Spread >= 0.0),
    ?assert(Count >= 3),
    ?assertEqual(Count, length(Samples)),
    ?assertEqual(Shortest, lists:min(Samples)).

a_function_that_is_long_each_fifth_time_is_long_on_the_mean_test_() ->
    {timeout, 60, fun long_each_fifth_time/0}.

long_each_fifth_time() ->
    Calls = counters:new(1, []),
    Fun = fun() ->
                  counters:add(Calls, 1, 1),
                  counters:get(Calls, 1) rem 5 =:= 0 andalso timer:sleep(5)
          end,
    [#{time := #{mean := Mean}}] = ?T:measure([Fun], #{time_ms => 300}),
    %% A fifth of 5 ms, of which the longest tenth of the batches may take half.
    ?assert(Mean > 400000).

reductions_are_those_of_a_call_test() ->
    [#{per_call := Some}, #{per_call := More}] =
        ?T:measure([fun() -> erlang:bump_reductions(100) end,
                    fun() -> erlang:bump_reductions(1100) end], #{time_ms => 50}),
    %% What goes beyond the end of a turn is not charged.
    ?assert(Some > 80),
    ?assert(Some < 200),
    %% What a loop costs is the same for both.
    ?assert(More - Some > 700),
    ?assert(More - Some < 1020).

what_calling_costs_is_taken_off_and_nothing_is_negative_test() ->
    Nothing = fun() -> ok end,
    [#{time := #{shortest := Shortest, samples := Samples}, per_call := Reductions}] =
        ?T:measure([Nothing], #{time_ms => 50, idle => Nothing}),
    ?assert(Reductions < 1),
    ?assert(Shortest >= 0),
    ?assertEqual([], [S || S <- Samples, S < 0]).

no_more_batches_than_were_asked_for_test() ->
    ?assertMatch([#{time := #{count := 2}}, #{time := #{count := 2}}],
                 ?T:measure([fun() -> ok end, fun() -> ok end], #{time_ms => 1000, runs => 2})).

%% Three, or one where three would take more than three times as long as was asked for.
slow_calls_are_counted_few_times_test() ->
    ?assertMatch([#{time := #{count := 1}}],
                 ?T:measure([fun() -> timer:sleep(100) end], #{time_ms => 10})).

functions_take_turns_test() ->
    Me = self(),
    _ = ?T:measure([fun() -> Me ! a, timer:sleep(1) end, fun() -> Me ! b, timer:sleep(1) end],
                   #{time_ms => 100, runs => 3}),
    %% The first three or more of each prepare; the last three are in turns, a batch each.
    ?assertMatch([b, a | _], runs_of(lists:reverse(received()))),
    ?assert(length([x || b <- runs_of(received())]) >= 3).

what_a_function_raises_is_raised_test() ->
    ?assertError(oops, ?T:measure([fun() -> error(oops) end], #{})).

ordinary_erlang_has_its_reductions_per_ms_test_() ->
    {timeout, 60, fun() ->
        Erlang = ?T:erlang(),
        ?assertEqual(lists:sort(fairnif_check_share:mixes()), lists:sort(maps:keys(Erlang))),
        %% A turn is 4000 reductions, and the VM means it to be about a ms at most.
        [?assert(PerMs > 1000) || PerMs <- maps:values(Erlang)]
    end}.

received() ->
    receive
        M when M =:= a; M =:= b ->
            self() ! {again, M}, [M | received()]
    after 0 -> again()
    end.

again() ->
    receive {again, M} -> self() ! M, again() after 0 -> [] end.

%% [a, a, b, a] is [a, b, a].
runs_of([A, A | Rest]) -> runs_of([A | Rest]);
runs_of([A | Rest]) -> [A | runs_of(Rest)];
runs_of([]) -> [].
