%% The rows of `bin/fairnif bench', and what is said of samples made up.
-module(fairnif_exp_bench_tests).

-include_lib("eunit/include/eunit.hrl").

-define(B, fairnif_exp_bench).

every_row_is_whole_and_has_an_id_of_its_own_test() ->
    Rows = [Row || {_, Run} <- ?B:all(), Row <- ?B:rows(Run)],
    Ids = [Id || #{id := Id, what := What, peer := Peer, how := _, value := _, bound := _, run := _,
                   unit := Unit} <- Rows,
                 lists:member(Unit, [times, ns, percent, bytes]),
                 is_binary(unicode:characters_to_binary([What, Peer]))],
    ?assertEqual({length(Rows), length(Rows)}, {length(Ids), length(lists:usort(Ids))}),
    ?assert(length(Ids) > 100).

%% JSON has rates beside libraries that are installed only.
every_run_has_a_name_of_its_own_and_rows_test() ->
    Runs = [Id || {_, #{id := Id, rows := Rows}} <- ?B:all(), Rows =/= [] orelse Id =:= json],
    ?assertEqual(length(?B:all()), length(lists:usort(Runs))),
    ?assertEqual([], [noop, levenshtein, levenshtein_large, exor, exor_reused, exor_small,
                      exor_huge, block, delay, share, charge, kill, lists, move, threads, jobs,
                      process, argon2, sodium, json_block, json_delay, watch, auto_rule] -- Runs).

a_run_that_there_is_not_is_a_mistake_test() ->
    ?assertThrow({usage, _}, ?B:main(#{}, ["noop", "nothing"])).

a_bound_is_met_or_not_or_the_noise_or_the_machine_does_not_say_test_() ->
    Quiet = #{others => 0.0},
    [?_assertMatch(#{verdict := Verdict}, judged(Row, Samples, Facts))
     || {Verdict, Row, Samples, Facts} <-
            [{met, #{}, [1.0, 1.0, 1.0], Quiet},
             {not_met, #{}, [1.5, 1.5, 1.5], Quiet},
             {within_noise, #{}, [1.0, 1.5, 1.5], Quiet},
             {machine_busy, #{}, [1.5, 1.5, 1.5], #{others => 0.2}},
             %% CPU time says something all the same.
             {not_met, #{clock => cpu}, [1.5, 1.5, 1.5], #{others => 0.2}},
             {met, #{bound => {at_least, 1.2}}, [1.5, 1.5, 1.5], Quiet},
             {not_met, #{bound => {within, 0.2}}, [1.5, 1.5, 1.5], Quiet},
             {reported, #{bound => none}, [1.5], #{others => 0.2}},
             {failed, #{}, [1.0], #{failed => <<"why">>}}]].

judged(More, Ratios, Facts) ->
    Row = maps:merge(#{value => {ratio, <<"a">>, <<"b">>}, bound => {at_most, 1.2}}, More),
    Of = fun(Name, Values) -> maps:from_list([{<<Name/binary, Cpu/binary>>, Values}
                                              || Cpu <- [<<>>, <<" cpu">>]])
         end,
    ?B:judged(Row, {maps:merge(Of(<<"a">>, Ratios), Of(<<"b">>, [1 || _ <- Ratios])), Facts}).

a_p99_is_that_of_all_rounds_by_what_was_set_test() ->
    Row = #{value => {p99, <<"a">>}, over => slice_ns, bound => {at_most, 2}},
    Facts = #{slice_ns => 100, others => 0.0},
    ?assertMatch(#{verdict := met, estimate := #{value := 1.0, count := 200}},
                 ?B:judged(Row, {#{<<"a">> => [[{100, 99}, {900, 1}], [], [{100, 100}]]}, Facts})),
    ?assertMatch(#{verdict := failed}, ?B:judged(Row, {#{<<"a">> => [[], []]}, Facts})),
    %% A setting and an addition.
    ?assertMatch(#{bound := {at_most, 300}, verdict := not_met},
                 ?B:judged(#{value => {p99, <<"a">>}, bound => {at_most, {slice_ns, plus, 200}}},
                           {#{<<"a">> => [[{301, 5}]]}, Facts})).

contestants_take_turns_and_the_first_round_is_not_counted_test() ->
    Said = fun(Name) ->
                   fun() -> put(order, [Name | get(order)]), [{Name, length(get(order))}] end
           end,
    put(order, []),
    ?assertEqual(#{<<"a">> => [3, 6], <<"b">> => [4, 5]},
                 fairnif_exp_series:interleave(2, [Said(<<"a">>), Said(<<"b">>)])).
