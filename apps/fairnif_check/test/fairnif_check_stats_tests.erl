-module(fairnif_check_stats_tests).

-include_lib("eunit/include/eunit.hrl").

the_median_is_the_middle_sample_whatever_the_order_test() ->
    ?assertEqual(3, fairnif_check_stats:median([5, 1, 3])),
    ?assertEqual(7, fairnif_check_stats:median([7])).

the_median_of_an_even_number_is_the_mean_of_the_middle_two_test() ->
    ?assertEqual(2.5, fairnif_check_stats:median([4, 1, 2, 3])),
    ?assertEqual(2, fairnif_check_stats:median([2, 2])).

a_percentile_is_a_sample_that_was_measured_test() ->
    Samples = lists:seq(1, 200),
    ?assertEqual(198, fairnif_check_stats:percentile(99, Samples)),
    ?assertEqual(100, fairnif_check_stats:percentile(50, Samples)),
    ?assertEqual(1, fairnif_check_stats:percentile(0, Samples)),
    ?assertEqual(200, fairnif_check_stats:percentile(100, Samples)),
    ?assertEqual(9, fairnif_check_stats:percentile(99, [9])).

no_samples_have_no_median_and_no_percentile_test() ->
    ?assertError(badarg, fairnif_check_stats:median([])),
    ?assertError(badarg, fairnif_check_stats:percentile(50, [])),
    ?assertError(badarg, fairnif_check_stats:percentile(101, [1])).

the_spread_is_half_the_quartile_distance_over_the_median_test() ->
    %% Quartiles 25 and 75, median 50.5.
    ?assert(abs(25 / 50.5 - fairnif_check_stats:spread(lists:seq(1, 100)))
            < 1.0e-9),
    ?assertEqual(0.0, fairnif_check_stats:spread([5, 5, 5])),
    ?assertEqual(0.0, fairnif_check_stats:spread([])),
    ?assertEqual(0.0, fairnif_check_stats:spread([1])),
    ?assertEqual(0.0, fairnif_check_stats:spread([-1, 0, 1])).

one_outlier_does_not_move_the_spread_test() ->
    Calm = lists:duplicate(19, 100),
    ?assertEqual(0.0, fairnif_check_stats:spread([100000 | Calm])).

a_summary_says_all_of_it_and_of_nothing_that_it_is_nothing_test() ->
    ?assertEqual(#{count => 3, total => 6, shortest => 1, median => 2,
                   p99 => 3, longest => 3},
                 fairnif_check_stats:summary([3, 1, 2])),
    ?assertMatch(#{count := 0, total := 0, longest := undefined},
                 fairnif_check_stats:summary([])).

the_rank_test_gives_what_tables_give_test() ->
    %% No overlap, 6 and 6: U = 0, z = (18 - 0.5) / sqrt(6 * 6 * 13 / 12) = 2.802, p = 0.00507.
    P = fairnif_check_stats:mann_whitney([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]),
    ?assert(abs(P - 0.00507) < 0.00001),
    %% With ties: ranks of the first 1.5, 3.5, 6; U = 5, of 4.5 that one expects: z = 0.
    ?assertEqual(1.0, fairnif_check_stats:mann_whitney([1, 2, 3], [1, 2, 2.5])).

equal_samples_are_of_one_kind_and_none_are_an_error_test() ->
    ?assertEqual(1.0, fairnif_check_stats:mann_whitney([7, 7, 7], [7, 7, 7, 7])),
    ?assertError(badarg, fairnif_check_stats:mann_whitney([], [1])),
    ?assertError(badarg, fairnif_check_stats:mann_whitney([1], [])).
