-module(fairnif_exp_reductions_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(X, fairnif_exp_reductions).
-define(P, fairnif_exp_reductions_peer).

a_compiled_call_is_one_reduction_and_each_reply_one_more_test() ->
    Echo = ?P:charged(compiled, {?P, echo, [hello]}),
    %% The JIT charges the return as well.
    ?assert(Echo =:= 1 orelse Echo =:= 2),
    ?assertEqual(1000 + Echo, ?P:charged(compiled, {?P, replies, [1000]})).

an_evaluator_is_charged_more_for_the_same_call_test() ->
    ?assert(?P:charged(evaluated, {?P, echo, [hello]}) > 10),
    ?assert(?P:charged(evaluated, {?P, replies, [1000]}) > 1010).

a_nif_that_says_it_used_its_slice_is_charged_the_slice_test() ->
    [?assertMatch(N when N > 3500, ?P:charged(How, {fairnif_exp_nif, consume, [100]}))
     || How <- [compiled, evaluated]],
    Half = ?P:charged(compiled, {fairnif_exp_nif, consume, [50]}),
    ?assert(Half >= 1900 andalso Half =< 2100).

a_nif_sliced_by_hand_is_charged_each_slice_in_full_test() ->
    Charged = ?P:charged(compiled, {fairnif_exp_nif, sliced, [10, 20]}),
    ?assert(Charged > 75000 andalso Charged < 85000).

the_nifs_of_the_experiments_refuse_nonsense_test() ->
    [?assertError(badarg, fairnif_exp_nif:consume(P)) || P <- [0, 101, -1, all, 1.0]],
    [?assertError(badarg, fairnif_exp_nif:sliced(Us, N))
     || {Us, N} <- [{0, 1}, {1, 0}, {-1, 1}, {1000001, 1}, {1, 1000000001}, {a, 1}, {1, a}]],
    ?assertEqual(ok, fairnif_exp_nif:sliced(1, 1)).

what_the_call_raises_reaches_the_caller_test() ->
    ?assertExit({badarg, _}, ?P:charged(compiled, {fairnif_exp_nif, consume, [0]})).

the_table_shows_ours_beside_what_was_published_test() ->
    Row = fun(Key, Title, Compiled, Published) ->
                  #{key => Key, title => Title, compiled => Compiled, evaluated => Compiled + 120,
                    published => Published}
          end,
    None = #{compiled => undefined, shell => undefined},
    Text = format([Row(nif_spin, <<"NIF: spins 1 s">>, 1, #{compiled => undefined, shell => 200}),
                   Row(nif_sliced, <<"NIF: slices">>, 4000123, None),
                   Row(nif_fair, <<"fair NIF">>, 80000456, None),
                   Row(work, <<"Erlang: work">>, 90000789, None),
                   #{key => echo, title => <<"Erlang: echo">>, error => <<"the reason">>}]),
    fairnif_lab_said:contains(Text,
      ["NIF: spins 1 s", "~200", "121", "failed: the reason",
       "Erlang work is charged 90,000,789", "nothing 1,", "4,000,123", "80,000,456"]),
    %% Nothing is concluded from figures that are not there.
    ?assertEqual(nomatch, string:find(format([Row(nif_spin, <<"s">>, 1, None)]), "What to see")).

format(Rows) ->
    unicode:characters_to_list(?X:format(#{ok => true, rows => Rows})).
