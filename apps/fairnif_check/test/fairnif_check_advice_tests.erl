-module(fairnif_check_advice_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, fairnif_check_advice).
-define(MS, 1000000).

growth_is_the_exponent_between_the_smallest_and_the_largest_size_test_() ->
    [?_assert(near(Exponent, ?A:growth(sizes(Points))))
     || {Points, Exponent} <-
            [{[{1024, 1000}, {1048576, 1024000}], 1.0},
             {[{1048576, 1024000}, {1024, 1000}], 1.0},         % in any order
             {[{100, 10}, {1000, 1000}], 2.0},
             {[{100, 10}, {500, 999999}, {1000, 10}], 0.0},     % those between do not count
             {[{100, 1000}, {10000, 10}], -1.0},
             {[{1, 0}, {10, 10}], 1.0}]].                       % less than the clock can tell

growth_needs_two_sizes_that_were_timed_test_() ->
    [?_assertEqual(undefined, ?A:growth(Results))
     || Results <- [[], sizes([{1024, 10}]), sizes([{1024, 10}, {1024, 20}]),
                    [#{size => 1, error => <<"x">>} | sizes([{1024, 10}])]]].

the_size_at_a_time_lies_on_a_line_between_two_sizes_test_() ->
    Points = [{100, 1000}, {10000, 100000}, {1000000, 100000000}],
    [?_assertEqual(Size, ?A:size_at(Ns, sizes(Points)))
     || {Ns, Size} <- [{1000, 100}, {10000, 1000}, {100000, 10000}, {100000000, 1000000},
                       {999, below}, {100000001, above},
                       {round(100000 * math:pow(10, 1.5)), 100000}]].

the_size_at_a_time_is_not_guessed_from_one_size_test_() ->
    [?_assertEqual({Ns, Size}, {Ns, ?A:size_at(Ns, sizes(Points))})
     || {Ns, Points, Size} <- [{10, [], undefined}, {10, [{5, 20}], below}, {10, [{5, 2}], above},
                               %% Larger, and no slower: there is no line up to it.
                               {50, [{5, 20}, {10, 20}], above}]].

the_rule_of_2017_has_its_published_bounds_test_() ->
    [?_assertEqual({Ns, Mode}, {Ns, ?A:rule_of_2017(Ns)})
     || {Ns, Mode} <- [{0, "normal"}, {999999, "normal"}, {1000000, "yielding"},
                       {99999999, "yielding"}, {100000000, "yielding dirty"}]].

what_is_good_is_left_as_it_is_test() ->
    ?assertEqual([<<"No change needed.">>,
                  <<"For comparison, the rule of 2017: 1.02 kB normal, 1.05 MB yielding.">>],
                 advise(judged([], [{1024, 1000}, {1048576, 50 * ?MS}]))).

what_could_not_be_measured_gets_no_advice_test() ->
    ?assertEqual([<<"Nothing could be measured.">>], advise([#{size => 1, verdicts => []}])).

a_block_gets_the_size_at_which_it_begins_and_the_price_of_going_dirty_test() ->
    [Block, Dirty | _] = advise(judged([{block, fail}], [{1000, 100000}, {1000000, 100 * ?MS}])),
    ?assertMatch({_, _}, binary:match(Block, <<"FAIR_AUTO">>)),
    ?assertMatch({_, _}, binary:match(Block, <<"It reaches the limit at about 10.0 kB.">>)),
    ?assertEqual(<<"A dirty round trip costs 20.0 us here, over 10 % of any call under 200 us; "
                   "that is below 2.00 kB.">>, Dirty).

the_limit_that_was_asked_for_gives_the_size_test() ->
    [Block | _] = ?A:advise(judged([{block, fail}], [{1000, 100000}, {1000000, 100 * ?MS}]),
                            machine(), #{limit_ns => 200000}),
    ?assertMatch({_, _}, binary:match(Block, <<"at about 2.00 kB.">>)).

each_property_that_fails_or_warns_has_a_sentence_test_() ->
    [fun() ->
             Advice = advise(judged([{P, Status}], [{1000, 1000}])),
             ?assertNotEqual(<<"No change needed.">>, hd(Advice)),
             %% That, and the comparison at least.
             ?assert(length(Advice) >= 2)
     end || #{property := P} <- fairnif_check_verdict:properties(), Status <- [fail, warn]].

what_was_waived_needs_no_cure_test_() ->
    [?_assertMatch([<<"No change needed.">> | _], advise(judged([{P, waived}], [{1000, 1000}])))
     || P <- [block, unfair]].

what_is_in_doubt_is_not_to_be_left_test() ->
    ?assertMatch([<<"Uncertain (blocks the scheduler, unfair to neighbours): ", _/binary>>, _],
                 advise(judged([{unfair, unsure}, {block, unsure}, {leak, pass}],
                               [{1000, 1000}]))).

a_loss_in_every_call_is_not_cured_by_what_is_for_kills_test_() ->
    [fun() ->
             [Advice | _] = advise([R#{verdicts := [#{property => leak, status => fail,
                                                      evidence => #{per_call => PerCall}}]}
                                    || R <- judged([], [{1000, 1000}])]),
             ?assertMatch({_, _}, binary:match(Advice, Part))
     end || {PerCall, Part} <- [{100000.0, <<"Free what each call has allocated">>},
                                {0, <<"Keep what is in use across a pause">>},
                                {undefined, <<"Keep what is in use across a pause">>}]].

the_same_sentence_stands_there_once_test() ->
    Results = judged([{leak, fail}], [{1000, 1000}, {2000, 2000}]),
    Advice = advise(Results),
    ?assertEqual(lists:uniq(Advice), Advice).

the_advice_for_a_short_dirty_function_names_the_cost_test() ->
    Results = [R#{slices := slices(0, 1000)} || R <- judged([], [{1000, 1000}, {2000, 2000}])],
    ?assert(lists:any(fun(S) -> binary:match(S, <<"that is every size measured. There a normal">>)
                                    =/= nomatch end, advise(Results))).

what_blocks_a_scheduler_and_no_processor_is_sent_to_a_thread_test_() ->
    [?_assertEqual({Case, Waits}, {Case, says(<<"It waits">>, apply(fun blocked/4, Case))})
     || {Case, Waits} <- [{[0, 300 * ?MS, 3, 0.01], true}, {[300 * ?MS, 0, 3, 0.5], true},
                          {[0, 300 * ?MS, 3, 0.51], false},      % it computes, half of it
                          {[0, 300 * ?MS, 301, 0.01], false},    % too short for a round trip
                          {[0, 0, 3, 0.0], false}]]              % it is on a thread already
        ++ [?_assert(says(<<"for 100 ms and uses a processor for up to 2 % of that">>,
                          blocked(0, 300 * ?MS, 3, 0.011)))].

the_advice_for_a_long_dirty_function_says_when_a_thread_is_better_test_() ->
    [?_assertEqual({Case, Computes},
                   {Case, says(<<"It computes for 100 ms on a dirty scheduler">>,
                               apply(fun blocked/4, Case))})
     || {Case, Computes} <- [{[0, 300 * ?MS, 3, 1.0], true}, {[0, 300 * ?MS, 3, 0.51], true},
                             {[0, 300 * ?MS, 3, 0.5], false},    % it waits
                             {[300 * ?MS, 0, 3, 1.0], false},    % FAIR_AUTO is for it
                             {[0, 0, 3, 1.0], false}]]
        ++ [?_assertNot(says(<<"It computes">>, blocked(0, 300 * ?MS, 31, 1.0))) |  % unnoticed
            [?_assert(says(Text, blocked(0, 300 * ?MS, 3, 1.0)))
             || Text <- [<<"use FAIR_THREADED">>, <<"up to 13 ms late">>, <<"9 to 12 %">>]]].

blocked(Normal, Dirty, Calls, Part) ->
    advise([R#{slices := (slices(Normal, Dirty))#{block => #{repeated => 0, taken => 0,
                                                            calls => Calls},
                                                  cpu_part => Part}}
            || R <- judged([], [{1000, 100 * ?MS}])]).

says(Text, Advice) ->
    lists:any(fun(S) -> binary:match(S, Text) =/= nomatch end, Advice).

%% ---- ----

near(A, B) -> abs(A - B) < 1.0e-6.

sizes(Points) ->
    [#{size => Size, time => #{median => Ns}} || {Size, Ns} <- Points].

judged(Verdicts, Points) ->
    [Result#{verdicts => [#{property => P, status => S} || {P, S} <- Verdicts],
             slices => slices(1000, 0)}
     || Result <- sizes(Points)].

slices(Normal, Dirty) ->
    #{normal => #{total => Normal}, dirty => #{total => Dirty}, block => #{repeated => 700000}}.

machine() -> #{dirty_trip => 20000}.

advise(Results) -> ?A:advise(Results, machine(), #{}).
