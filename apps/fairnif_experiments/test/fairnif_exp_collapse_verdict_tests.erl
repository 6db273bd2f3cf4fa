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
    [?assertEqual({Queues, Class}, {Queues, ?V:classify(Queues)})
     || {Queues, Class} <- [{[0, 1], minority_zero}, {[0, 0, 1], unbalanced}, {[1], even},
                            {[0], unbalanced}]].

the_ratio_takes_an_empty_queue_for_one_and_the_true_median_of_an_odd_number_test() ->
    [?assertEqual({Queues, Ratio}, {Queues, ?V:ratio(Queues)})
     || {Queues, Ratio} <- [{[0, 0, 0, 0], 1.0}, {[0], 1.0}, {[1, 2, 6], 3.0}, {[4, 2], 2.0}]].

a_status_line_reads_as_the_originals_did_test() ->
    ?assertEqual("{16,50,20} {unbalanced,62.0} {0,0,0,0,0,62,0,0}",
                 lists:flatten(?V:line({16, 50, 20}, [0, 0, 0, 0, 0, 62, 0, 0]))),
    %% Not a string, whatever the lengths are.
    ?assertEqual("{1,2,3} {even,1.78} {37,37,36,38,37,38,65,66}",
                 lists:flatten(?V:line({1, 2, 3}, [37, 37, 36, 38, 37, 38, 65, 66]))).

it_is_a_collapse_when_a_scheduler_slept_while_work_waited_test_() ->
    Busy = [1, 1, 1, 1, 62, 1, 1, 1],
    Half = [{0, [9, 9]}, {1000, [9, 9]}, {1001, [0, 0]}, {2000, [0, 0]}],
    [{Title, fun() ->
                     #{collapsed := Collapsed, asleep := Asleep, waited := Waited} =
                         ?V:verdict(InUse, Looks, Online),
                     ?assertEqual(Verdict, {Collapsed, Asleep, Waited + 0.0})
             end}
     || {Title, InUse, Looks, Online, Verdict} <-
            [{"the published one", collapsed_in_use(), looks([0, 0, 0, 0, 62, 0, 0, 0]), 8,
              {true, [1, 2, 3, 4, 6, 7, 8], 1.0}},
             {"the worst published one", [{S, 4.9} || S <- lists:seq(1, 7)] ++ [{8, 100.0}],
              looks([0, 0, 0, 0, 0, 0, 0, 44]), 8, {true, [1, 2, 3, 4, 5, 6, 7], 1.0}},
             {"those that are offline may sleep", [{1, 99.0}, {2, 98.0}, {3, 0.0}, {4, 0.0}],
              looks([20, 20]), 2, {false, [], 1.0}},
             {"empty queues of busy schedulers are none", [{S, 99.5} || S <- lists:seq(1, 16)],
              looks([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 87, 3, 0]), 16, {false, [], 1.0}},
             {"where nothing waits they may sleep", collapsed_in_use(),
              looks([0, 0, 0, 0, 1, 0, 0, 0]), 8, {unsure, [], 0.0}},
             {"where work waits half of the time, half of that is enough",
              [{1, 99.0}, {2, 26.0}], Half, 2, {false, [], 0.5}},
             {"and less is not", [{1, 99.0}, {2, 24.0}], Half, 2, {true, [2], 0.5}},
             %% The one who looks was kept waiting for nine of ten seconds.
             {"a long time between two looks counts as long as it was", [{1, 99.0}, {2, 99.0}],
              [{0, [9, 9]}, {9000, [9, 9]}, {9100, [0, 0]}, {10000, [0, 0]}], 2, {false, [], 0.9}},
             {"no look", collapsed_in_use(), [], 8, {unsure, [], 0.0}},
             {"one", collapsed_in_use(), [{0, Busy}], 8, {unsure, [], 0.0}},
             {"two", collapsed_in_use(), [{0, Busy}, {1000, Busy}], 8, {unsure, [], 1.0}}]].

the_verdict_says_why_test() ->
    Why = fun(InUse, Queues) ->
                  #{why := Text} = ?V:verdict(InUse, looks(Queues), 8),
                  Text
          end,
    ?assertEqual(<<"7 of 8 schedulers were in use for 18 to 20 % only; work waited for 100 % of "
                   "the time">>, Why(collapsed_in_use(), [0, 0, 0, 0, 62, 0, 0, 0])),
    ?assertEqual(<<"each of 8 schedulers was in use for 100 %; work waited for 100 % of the time">>,
                 Why([{S, 99.5} || S <- lists:seq(1, 8)], [0, 0, 0, 0, 62, 0, 0, 0])).

%% The last run on 16 schedulers of which 8 were online.
collapsed_in_use() ->
    lists:zip(lists:seq(1, 16),
              [19.24, 19.15, 19.71, 19.84, 100.0, 18.29, 18.30, 18.62
              | lists:duplicate(8, 6.0e-6)]).

%% The same queues again and again, a second apart.
looks(Queues) ->
    [{1000 * I, Queues} || I <- lists:seq(0, 9)].
