%% Whole experiments, small, with stand-ins for the examples: one that fails does not end the
%% others.
-module(fairnif_exp_runs_tests).

-include_lib("eunit/include/eunit.hrl").

-define(C, fairnif_exp_collapse).
-define(M, fairnif_exp_matrix).

exor_continues_when_one_form_fails_test_() ->
    {timeout, 300, fun() ->
        Source = ["-module(bitwise). -compile([export_all]). "
                  "xor_(B, K) -> << <<(C bxor K)>> || <<C>> <= B >>. "
                  "exor_dirty(_, _) -> error(oops). reds(B, K, Fun) -> {_, Y} = Fun(B, K), "
                  "{5, Y, {reductions, 10}, {reductions, 100}}. ",
                  [[F, "(B, K) -> {xor_(B, K), 7}. "]
                   || F <- ["exor_bad", "exor_chunks", "exor_yield", "exor_dirty_yield",
                            "exor_flip", "exor_threaded", "exor"]]],
        {ok, #{ok := false, rows := Rows} = Result} =
            fairnif_check_stand_in:with_module(
              bitwise, Source,
              fun() -> fairnif_experiment:run(fairnif_exp_exor, #{size => 2500000}) end),
        ?assertEqual([exor_dirty], [F || #{form := F, error := _} <- Rows]),
        [?assertMatch(#{elapsed_us := 5, yields := 7, reductions := 90, block_longest := _,
                        share := [_, _, _]}, R)
         || #{form := F} = R <- Rows, F =/= exor_dirty],
        ?assert(iolist_size(fairnif_check_json:encode(Result)) > 1000)
    end}.

%% ---- collapse ----

a_run_answers_as_the_original_did_test_() ->
    {timeout, 60, fun() ->
        {{Seconds, InUse}, Lines} = fairnif_check_said:printed(fun() -> ?C:run(7, 10000, 3, 5) end),
        ?assertMatch({match, _}, re:run(Lines, "\\{[a-z_]+,[0-9.]+\\} \\{[0-9,]+\\}")),
        ?assertEqual(7, length(Seconds)),
        [?assert(is_float(S) andalso S > 0) || S <- Seconds],
        ?assertEqual(lists:seq(1, erlang:system_info(schedulers)),
                     [Scheduler || {Scheduler, _} <- InUse]),
        [?assert(is_float(P) andalso P >= 0.0 andalso P < 101.0) || {_, P} <- InUse]
    end}.

collapse_has_all_sequences_and_continues_when_one_fails_test_() ->
    {timeout, 300, fun() ->
        {ok, #{ok := false, rows := Rows, job_us := JobUs} = Result} =
            fairnif_check_stand_in:with_spinsleep(
              [{spinwork_fair, "error({oops, Us})"}],
              fun() -> fairnif_experiment:run(?C, #{scale => quick, n => 8, r => 4}) end),
        ?assert(is_integer(JobUs) andalso JobUs > 0),
        ?assertEqual([{md5, <<"as is">>}, {blocking, <<"as is">>}, {blocking, <<"+sfwi 500">>},
                      {fair, <<"as is">>}, {erlang, <<"as is">>}],
                     [{F, V} || #{form := F, variant := V} <- Rows]),
        ?assertMatch([#{form := fair, error := <<"a process ended with {{oops", _/binary>>}],
                     [R || #{error := _} = R <- Rows]),
        [assert_runs(Runs) || #{runs := Runs} <- Rows],
        ?assert(iolist_size(fairnif_check_json:encode(Result)) > 1000),
        Text = unicode:characters_to_binary(fairnif_experiment:format(?C, Result)),
        fairnif_check_said:contains(Text,
                                  ["md5 by crypto, as is", "blocking NIF, +sfwi 500", "52x",
                                   "Failed: fairnif AUTO, as is", "published: R16B", "140 s",
                                   "one 100 %, seven 18 to 20 %", "about 2,000"])
    end}.

%% Eight processes with four jobs each, first on all schedulers, then on half.
assert_runs([#{phase := all, online := All} = First, #{phase := half, online := Half} = Last]) ->
    ?assertEqual(Half, All div 2),
    [begin
         #{seconds := Seconds, done := Done, in_use := InUse, fairness := Fairness,
           samples := Samples, collapsed := Collapsed, lines := [Line | _], online := Online} = Run,
         ?assertEqual({8, 32, All}, {length(Seconds), lists:sum(Done), length(InUse)}),
         ?assert(Fairness >= 1.0),
         ?assert(lists:all(fun([_, Queues]) -> length(Queues) =:= Online end, Samples)),
         ?assert(lists:member(Collapsed, [true, false, unsure])),
         ?assertMatch({match, _}, re:run(Line, "^\\{[0-9]+,[0-9]+,[0-9]+\\} \\{[a-z_]+,[0-9.]+\\} "
                                         "\\{[0-9,]+\\}$"))
     end || Run <- [First, Last]].

the_full_scale_is_the_published_one_unless_other_numbers_are_given_test() ->
    ?assertMatch(#{n := 400, w := 1048576, r := 1100, bw := 5, runs := 8, gap := 12000},
                 ?C:spec(#{scale => full})),
    ?assertMatch(#{n := 3, w := 4, r := 5, bw := 6},
                 ?C:spec(#{scale => full, n => 3, w => 4, r => 5, bw => 6})),
    [?assertMatch(#{schedulers := S, n := N} when S >= 4 andalso N >= S, ?C:spec(#{scale => Scale}))
     || Scale <- [quick, normal, full]].

progress_has_a_step_for_each_run_mode_and_length_test() ->
    [?assertEqual({Module, Steps},
                  {Module, [fairnif_experiment:steps(Module, #{scale => Scale})
                            || Scale <- [quick, normal, full]]})
     || {Module, Steps} <- [{?C, [10, 28, 63]}, {?M, [16, 36, 42]},
                            {fairnif_exp_share, [6, 17, 17]}, {fairnif_exp_wakeup, [6, 24, 24]},
                            {fairnif_exp_exor, [16, 16, 16]}]],
    ?assertEqual(4, fairnif_experiment:steps(fairnif_exp_exor, #{forms => [exor_bad, exor]})).

%% ---- matrix ----

matrix_measures_what_was_planned_and_survives_what_fails_test_() ->
    {timeout, 300, fun() ->
        Bad = [{spinwork_dirty, "error({oops, Us})"}, {spinsleep_timeslice_dirty, "halt(7)"},
               {spinsleep_fair_yield, "timer:sleep(Us div 10000 * 600000)"}],
        {ok, #{ok := false, rows := Rows, others := [_ | _]} = Result} =
            fairnif_check_stand_in:with_spinsleep(
              Bad, fun() -> fairnif_experiment:run(?M, #{scale => quick, limit_ms => 5000}) end),
        ?assertEqual(length(fairnif_exp_matrix_plan:cells(quick)), length(Rows)),
        [assert_cell(Form, Us, Skipped, Row)
         || #{form := Form, duration_us := Us, skipped := Skipped} = Row <- Rows],
        ?assert(iolist_size(fairnif_check_json:encode(Result)) > 1000),
        Text = unicode:characters_to_binary(fairnif_experiment:format(?M, Result)),
        fairnif_check_said:contains(Text, ["calls of 1 ms", "calls of 10 ms", "failed", "> ",
                                           "oops",
                                         "exit status 7", "no answer within the time limit"])
    end}.

assert_cell(spinwork_dirty, _, undefined, Row) ->
    ?assertMatch(#{status := failed, why := <<"a call ended with {{oops", _/binary>>}, Row);
assert_cell(spinsleep_timeslice_dirty, _, undefined, Row) ->
    ?assertMatch(#{status := failed, why := <<"the peer node ended", _/binary>>}, Row);
assert_cell(spinsleep_fair_yield, 10000, undefined, Row) ->
    ?assertMatch(#{status := timeout}, Row);
assert_cell(Form, _, undefined, #{job := Job, duration_us := Us} = Row) ->
    #{status := measured, elapsed := [_ | _] = Elapsed, extra := Extra, processes := _} = Row,
    %% A stand-in cannot be done before its deadline.
    Sleeps = Job =:= spinsleep andalso Form =/= spinsleep_fair_yield,
    ?assert(not Sleeps orelse lists:min(Elapsed) >= 1000 * Us andalso Extra >= 0);
assert_cell(_, _, _, Row) ->
    ?assertMatch(#{status := skipped}, Row),
    ?assertNot(is_map_key(elapsed, Row)).
