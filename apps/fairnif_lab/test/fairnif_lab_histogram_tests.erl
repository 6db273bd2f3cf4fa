-module(fairnif_lab_histogram_tests).

-include_lib("eunit/include/eunit.hrl").

-define(H, fairnif_lab_histogram).

a_sample_on_an_edge_counts_in_the_bin_above_test() ->
    ?assertEqual(#{width => 250, counts => [2, 2, 0, 1], over => 2, total => 7},
                 ?H:new([0, 249, 250, 499.9, 999, 1000, 5000], 250, 1000)).

a_sample_below_zero_counts_in_the_first_bin_test() ->
    ?assertMatch(#{counts := [1, 0], over := 0}, ?H:new([-5], 250, 500)).

no_samples_make_an_empty_histogram_test() ->
    Empty = ?H:new([], 250, 500),
    ?assertEqual(#{width => 250, counts => [0, 0], over => 0, total => 0}, Empty),
    ?assertEqual([], ?H:humps(Empty, 0.05)),
    ?assertEqual(0.0, ?H:over(Empty, 250)).

two_humps_are_found_and_ripples_are_not_test() ->
    Hist = #{width => 250, counts => [0, 5, 40, 10, 12, 30, 30, 1, 2, 1], over => 60,
             total => 191},
    ?assertEqual([500, 1250], ?H:humps(Hist, 0.05)).

a_hump_may_be_in_the_first_or_the_last_bin_test() ->
    ?assertEqual([0, 500], ?H:humps(?H:new([1, 2, 600], 250, 750), 0.05)).

the_fraction_over_a_bound_includes_what_is_over_the_limit_test() ->
    Hist = ?H:new([100, 300, 600, 2000], 250, 1000),
    ?assertEqual(0.25, ?H:over(Hist, 1000)),
    ?assertEqual(0.5, ?H:over(Hist, 500)),
    ?assertEqual(1.0, ?H:over(Hist, 0)).
