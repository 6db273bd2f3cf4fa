-module(fairnif_exp_tests).

-include_lib("eunit/include/eunit.hrl").

-export([oops/0]).

-define(X, fairnif_exp).

a_power_law_is_read_exactly_between_its_points_test() ->
    Square = [{X, 3 * X * X} || X <- [1, 10, 100, 1000]],
    [?assert(abs(fairnif_check_stats:crossing(3 * X * X, Square) / X - 1) < 1.0e-9)
     || X <- [1, 2, 10, 55, 999, 1000]].

outside_of_the_points_nothing_is_made_up_test() ->
    Points = [{10, 100}, {20, 200}],
    ?assertEqual(below, fairnif_check_stats:crossing(99, Points)),
    ?assertEqual(above, fairnif_check_stats:crossing(201, Points)),
    ?assertEqual(10.0, fairnif_check_stats:crossing(100, [{10, 100}])).

of_a_curve_that_wavers_the_first_crossing_counts_test() ->
    ?assertEqual(2.0, fairnif_check_stats:crossing(20, [{1, 10}, {2, 20}, {3, 15}, {4, 30}])),
    ?assertEqual(1.0, fairnif_check_stats:crossing(10, [{1, 10}, {2, 10}, {3, 11}])).

an_example_that_is_not_built_is_named_test() ->
    ?assertEqual(ok, ?X:needs([lists])),
    {failed, Text} = try ?X:needs([lists, no_such_example]) catch Thrown -> Thrown end,
    ?assertMatch({_, _}, binary:match(Text, <<"no_such_example is not built">>)).

a_call_in_a_peer_is_a_row_whatever_happens_test_() ->
    {timeout, 120, fun() ->
        ?assertMatch(#{value := 42}, ?X:in_peer([], {erlang, '+', [40, 2]}, 30000)),
        ?assertMatch(#{error := <<"error:oops">>}, ?X:in_peer([], {?MODULE, oops, []}, 30000)),
        ?assertMatch(#{error := <<"no answer", _/binary>>, timed_out := true},
                     ?X:in_peer([], {timer, sleep, [60000]}, 200)),
        ?assertMatch(#{error := <<"the peer node", _/binary>>, timed_out := false},
                     ?X:in_peer([], {erlang, halt, [1]}, 30000))
    end}.

a_row_that_may_time_out_does_not_spoil_the_result_by_that_test() ->
    Row = #{error => <<"e">>, timed_out => true},
    ?assertMatch(#{ok := true, size := 1},
                 ?X:result([#{value => 1}, Row#{may_time_out => true}], #{size => 1})),
    ?assertMatch(#{ok := false}, ?X:result([Row], #{})),
    ?assertMatch(#{ok := false}, ?X:result([Row#{may_time_out => false}], #{})),
    ?assertMatch(#{ok := false},
                 ?X:result([Row#{may_time_out => true, timed_out := false}], #{})).

the_footnotes_name_what_failed_and_what_is_to_be_doubted_test() ->
    Notes = unicode:characters_to_list(
              ?X:footnotes(fun(#{name := N}) -> N end,
                           [#{name => "a", others => 0.1}, #{name => "b", others => 0.9},
                            #{name => "c", others => undefined},
                            #{name => "d", error => <<"why">>},
                            #{name => "e", error => <<"as expected">>, timed_out => true,
                              may_time_out => true}])),
    ?assertEqual("Failed: d: why\nOther programs kept the machine busy: doubt b.\n", Notes),
    ?assertEqual("Other programs kept the machine busy: doubt 5 of 6 figures.\n",
                 unicode:characters_to_list(
                   ?X:footnotes(fun(_) -> "a" end,
                                [#{others => N} || N <- [0.0, 0.3, 0.4, 0.5, 0.6, 0.7]]))).

%% ---- in the peer ----

oops() ->
    {error, {error, oops}}.
