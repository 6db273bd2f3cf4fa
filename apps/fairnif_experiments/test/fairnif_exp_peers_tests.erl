%% What experiments do in their nodes, done in this one.
-module(fairnif_exp_peers_tests).

-include_lib("eunit/include/eunit.hrl").

%% More than one of the input's blocks, and no whole number of them.
-define(SIZE, 2500000).

%% ---- exor, with a stand-in for the example `bitwise', whose manners are known ----

exor_compares_a_result_to_its_last_byte_and_takes_time_yields_and_slices_test_() ->
    {setup,
     fun() ->
             {module, _} = code:load_binary(bitwise, "stand-in", bitwise()),
             exor({prepare, ?SIZE})
     end,
     fun(_) -> code:purge(bitwise), code:delete(bitwise), code:purge(bitwise) end,
     [{"a right one is right", ?_assertEqual(ok, exor({check, right}))}]
     ++ [{atom_to_list(Wrong), ?_assertMatch({wrong, _}, exor({check, Wrong}))}
         || Wrong <- [first, last, short, yieldless, no_pair]]
     ++ [{"a crash", ?_assertMatch({error, {exit, {oops, _}}}, exor({check, crash}))},
         ?_assertEqual({5, 7, 90}, exor({timed, right})),
         fun() ->
                 #{normal := #{count := Count}, slices_normal := Lengths} = exor({sliced, right}),
                 ?assertEqual(Count, length(Lengths)),
                 ?assertEqual({error, {error, oops}}, exor({sliced, crash}))
         end]}.

bitwise() ->
    fairnif_check_stand_in:compiled(
      "-module(bitwise). -compile([export_all]). "
      "right(B, K) -> {xor_(B, K), 7}. "
      "xor_(B, K) -> << <<(C bxor K)>> || <<C>> <= B >>. "
      "first(B, K) -> <<C, R/binary>> = xor_(B, K), {<<(C+1), R/binary>>, 0}. "
      "last(B, K) -> S = byte_size(B) - 1, <<R:S/binary, C>> = xor_(B, K), "
      "{<<R/binary, (C+1)>>, 0}. "
      "short(<<_, B/binary>>, K) -> {xor_(B, K), 0}. "
      "yieldless(B, K) -> {xor_(B, K), none}. "
      "no_pair(B, K) -> xor_(B, K). "
      "crash(_, _) -> error(oops). "
      "reds(B, K, Fun) -> {_, Y} = Fun(B, K), {5, Y, {reductions, 10}, {reductions, 100}}. ").

exor(Request) ->
    fairnif_experiment:peer(fairnif_exp_exor, Request).

a_binary_that_memory_cannot_hold_is_refused_before_anything_starts_test() ->
    {Us, Answer} = timer:tc(fun() ->
                                    fairnif_experiment:run(fairnif_exp_exor, #{size => 1 bsl 60})
                            end),
    {error, {unsure, Text}} = Answer,
    ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Text), "memory.*available")),
    ?assert(Us < 1000000),
    ?assert(fairnif_exp_exor:memory_needed(fairnif_exp_exor:default_size()) < 4 bsl 30).

%% ---- levenshtein ----

forms_that_differ_are_an_error_and_no_rate_test_() ->
    Source = "-module(levenshtein). -compile([export_all]). same(_, _) -> 1. other(_, _) -> 2. "
             "slow(_, _) -> timer:sleep(100), 1. ",
    Rates = fun(Forms) ->
                    fairnif_experiment:peer(fairnif_exp_levenshtein, {rates, Forms, 10, 300})
            end,
    {setup,
     fun() ->
             {module, _} = code:load_binary(levenshtein, "stand-in",
                                            fairnif_check_stand_in:compiled(Source))
     end,
     fun(_) -> code:purge(levenshtein), code:delete(levenshtein), code:purge(levenshtein) end,
     [?_assertMatch(#{same := #{per_second := A}, slow := #{per_second := B, samples := [_ | _]}}
                      when A > 100000 andalso B > 0 andalso B < 10, Rates([same, slow])),
      ?_assertError({differ, _}, Rates([same, other]))]}.

%% ---- overhead ----

every_call_gives_a_stamp_on_each_side_and_time_goes_forward_test_() ->
    {timeout, 60, fun() ->
        Kinds = fairnif_experiment:peer(fairnif_exp_overhead, {trips, 100}),
        ?assertEqual([dirty_cpu, dirty_io, plain], lists:sort(maps:keys(Kinds))),
        [?assertEqual(100, length([ok || {There, Back} <- Trips, is_integer(There), There >= 0,
                                         is_integer(Back), Back >= 0]))
         || Trips <- maps:values(Kinds)]
    end}.

%% ---- reductions ----

%% The JIT charges the return as well.
a_compiled_call_is_one_reduction_each_reply_one_more_and_an_evaluator_charges_more_test() ->
    Echo = charged(compiled, {fairnif_exp_reductions, echo, [hello]}),
    ?assert(Echo =:= 1 orelse Echo =:= 2),
    Replies = {fairnif_exp_reductions, replies, [1000]},
    ?assertEqual(1000 + Echo, charged(compiled, Replies)),
    ?assert(charged(evaluated, Replies) > 1010).

the_nifs_of_the_experiments_refuse_nonsense_test() ->
    [?assertError(badarg, fairnif_exp_nif:consume(P)) || P <- [0, 101, -1, all, 1.0]],
    [?assertError(badarg, fairnif_exp_nif:sliced(Us, N))
     || {Us, N} <- [{0, 1}, {1, 0}, {-1, 1}, {1000001, 1}, {1, 1000000001}, {a, 1}, {1, a}]],
    ?assertEqual(ok, fairnif_exp_nif:sliced(1, 1)).

charged(How, Call) ->
    fairnif_experiment:peer(fairnif_exp_reductions, {How, Call}).
