%% With the status lines and the figures that Fritchie published.
-module(fairnif_exp_collapse_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

-define(V, fairnif_exp_collapse_verdict).

%% {class, ratio, queues} as nifwait printed them.
published() ->
    [{unbalanced, 105.0, [0, 0, 0, 0, 16, 105, 1, 0]},
     {even, 1.02, [37, 37, 36, 38, 37, 38, 18, 38]},
     {minority_zero, 1.38, [49, 49, 49, 50, 48, 68, 0, 19]},
     {even, 1.38, [49, 49, 49, 50, 48, 68, 1, 16]},
     {minority_zero, 5.66, [0, 12, 36, 50, 30, 68, 0, 0]},
     {minority_zero, 68.0, [0, 0, 32, 47, 27, 68, 0, 0]},
     {unbalanced, 68.0, [0, 0, 0, 0, 1, 68, 0, 0]},
     {unbalanced, 62.0, [0, 0, 0, 0, 0, 62, 0, 0]},
     {unbalanced, 87.0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 87, 3, 0]}].

each_published_status_line_has_its_class_and_its_ratio_test() ->
    [?assertEqual({Class, Ratio, Queues},
                  {?V:classify(Queues), ?V:ratio(Queues), Queues})
     || {Class, Ratio, Queues} <- published()].

half_of_the_queues_empty_is_a_minority_and_one_more_is_not_test() ->
    ?assertEqual(minority_zero, ?V:classify([0, 1])),
    ?assertEqual(unbalanced, ?V:classify([0, 0, 1])),
    ?assertEqual(even, ?V:classify([1])),
    ?assertEqual(unbalanced, ?V:classify([0])).

the_ratio_takes_an_empty_queue_for_one_and_the_true_median_of_an_odd_number_test() ->
    ?assertEqual(1.0, ?V:ratio([0, 0, 0, 0])),
    ?assertEqual(1.0, ?V:ratio([0])),
    ?assertEqual(3.0, ?V:ratio([1, 2, 6])),
    ?assertEqual(2.0, ?V:ratio([4, 2])).

a_status_line_reads_as_the_originals_did_test() ->
    ?assertEqual("{16,50,20} {unbalanced,62.0} {0,0,0,0,0,62,0,0}",
                 lists:flatten(?V:line({16, 50, 20}, [0, 0, 0, 0, 0, 62, 0, 0]))),
    %% Not a string, whatever the lengths are.
    ?assertEqual("{1,2,3} {even,1.78} {37,37,36,38,37,38,65,66}",
                 lists:flatten(?V:line({1, 2, 3}, [37, 37, 36, 38, 37, 38, 65, 66]))).

fairness_is_the_longest_over_the_shortest_as_published_test() ->
    ?assertEqual(48, round(?V:fairness([2.621872, 60.0, 126.171889]))),
    ?assertEqual(52, round(?V:fairness([139.574922, 2.694947]))).

the_published_collapse_is_one_and_names_who_slept_test() ->
    Verdict = ?V:verdict(collapsed_in_use(), looks([[0, 0, 0, 0, 62, 0, 0, 0]]), 8),
    ?assertMatch(#{collapsed := true, asleep := [1, 2, 3, 4, 6, 7, 8],
                   waited := 1.0}, Verdict),
    ?assertEqual("work waited for 100 % of the time, and 7 of 8 schedulers were "
                 "in use for 18 to 20 % only", why(Verdict)).

the_worst_published_collapse_is_one_test() ->
    InUse = [{S, 4.9} || S <- lists:seq(1, 7)] ++ [{8, 100.0}],
    ?assertMatch(#{collapsed := true, asleep := [1, 2, 3, 4, 5, 6, 7]},
                 ?V:verdict(InUse, looks([[0, 0, 0, 0, 0, 0, 0, 44]]), 8)).

schedulers_that_are_offline_may_sleep_test() ->
    InUse = [{1, 99.0}, {2, 98.0}, {3, 0.0}, {4, 0.0}],
    ?assertMatch(#{collapsed := false, asleep := []},
                 ?V:verdict(InUse, looks([[20, 20]]), 2)).

empty_queues_of_busy_schedulers_are_no_collapse_test() ->
    InUse = [{S, 99.5} || S <- lists:seq(1, 16)],
    Queues = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 87, 3, 0],
    Verdict = ?V:verdict(InUse, looks([Queues]), 16),
    ?assertMatch(#{collapsed := false}, Verdict),
    ?assertEqual("work waited for 100 % of the time, and each of 16 schedulers "
                 "was in use for 100 %", why(Verdict)).

schedulers_that_sleep_when_nothing_waits_are_no_collapse_test() ->
    ?assertMatch(#{collapsed := cannot_say, waited := +0.0},
                 ?V:verdict(collapsed_in_use(), looks([[0, 0, 0, 0, 1, 0, 0, 0]]), 8)).

a_run_whose_work_waited_half_the_time_needs_schedulers_half_of_that_time_test() ->
    Looks = [{0, [9, 9]}, {1000, [9, 9]}, {1001, [0, 0]}, {2000, [0, 0]}],
    #{waited := Waited} = ?V:verdict([{1, 100.0}, {2, 26.0}], Looks, 2),
    ?assertEqual(0.5, Waited),
    ?assertMatch(#{collapsed := false}, ?V:verdict([{1, 99.0}, {2, 26.0}], Looks, 2)),
    ?assertMatch(#{collapsed := true, asleep := [2]},
                 ?V:verdict([{1, 99.0}, {2, 24.0}], Looks, 2)).

a_long_time_between_two_looks_counts_as_long_as_it_was_test() ->
    %% The one who looks was kept waiting for nine of ten seconds.
    Looks = [{0, [9, 9]}, {9000, [9, 9]}, {9100, [0, 0]}, {10000, [0, 0]}],
    ?assertMatch(#{waited := 0.9}, ?V:verdict([{1, 99.0}, {2, 99.0}], Looks, 2)).

too_few_looks_say_nothing_test() ->
    InUse = collapsed_in_use(),
    Busy = [1, 1, 1, 1, 62, 1, 1, 1],
    ?assertMatch(#{collapsed := cannot_say}, ?V:verdict(InUse, [], 8)),
    ?assertMatch(#{collapsed := cannot_say}, ?V:verdict(InUse, [{0, Busy}], 8)),
    ?assertMatch(#{collapsed := cannot_say},
                 ?V:verdict(InUse, [{0, Busy}, {1000, Busy}], 8)).

%% The last run on 16 schedulers of which 8 were online.
collapsed_in_use() ->
    lists:zip(lists:seq(1, 16),
              [19.24, 19.15, 19.71, 19.84, 100.0, 18.29, 18.30, 18.62
              | lists:duplicate(8, 6.0e-6)]).

%% The same queues again and again, a second apart.
looks(Queues) ->
    [{1000 * I, Q} || I <- lists:seq(0, 9), Q <- Queues].

why(#{why := Why}) ->
    lists:flatten(Why).
