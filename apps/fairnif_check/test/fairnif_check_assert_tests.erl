-module(fairnif_check_assert_tests).

-include_lib("eunit/include/eunit.hrl").

-export([keep_busy/1]).

-import(fairnif_check_said, [printed/1]).

-define(M, fairnif_check).
-define(R, fairnif_check_test_results).

-define(BUSY, {?MODULE, keep_busy, [20000]}).

%% ---- what follows from a result ----

conclude(Outcome) ->
    said(fun(Say) -> ?M:conclude(Outcome, Say) end).

tests(Outcome) ->
    said(fun(Say) -> ?M:tests(Outcome, Say) end).

%% What comes out of a fun, and what it says that must not go unseen.
said(Fun) ->
    Me = self(),
    Ref = make_ref(),
    Outcome = try Fun(fun(Line) -> Me ! {Ref, Line} end)
              catch
                  throw:{skip, Text} -> {skip, Text};
                  error:{Kind, What} -> {Kind, What}
              end,
    {Outcome, lines(Ref)}.

lines(Ref) ->
    receive {Ref, Line} -> [Line | lines(Ref)]
    after 0 -> []
    end.

a_well_behaved_function_is_ok_test() ->
    ?assertEqual({ok, []}, conclude({ok, ?R:good()})).

what_was_waived_is_said_test() ->
    #{subjects := [#{verdicts := Verdicts} = S | _]} = Some = ?R:every_status(),
    Fine = [V || #{status := Status} = V <- Verdicts, Status =/= fail],
    ?assertEqual({ok, ["WAIVED (nobody kills its callers): m:f(Bin): cannot be killed at "
                       "1,048,576 bytes: Its code stops 2 s after the kill."]},
                 conclude({ok, Some#{exit := 0, subjects := [S#{verdicts := Fine}]}})).

one_that_is_not_is_an_error_that_says_why_test() ->
    {Lines, Printed} = printed(fun() -> not_well_behaved(?R:bad()) end),
    ?assertEqual(["lists:sum(Init) is not well-behaved",
                  "blocks the scheduler at 1,048,576 bytes: It blocked a normal scheduler for 23.4 "
                  "ms; 1 ms is the limit.",
                  "    calls 40, limit 1000000, longest 23400000, over 12"], Lines),
    ?assertEqual(Lines, string:split(string:trim(Printed), "\n", all)).

only_what_failed_of_the_subject_is_in_the_error_test() ->
    {Lines, _} = printed(fun() -> not_well_behaved(?R:every_status()) end),
    ?assertMatch(["m:f(Bin) is not well-behaved", "blocks the scheduler at " ++ _, "    " ++ _],
                 Lines).

any_text_can_stand_in_the_error_test() ->
    {Lines, _} = printed(fun() -> not_well_behaved(?R:with_text(<<"größe ~p "/utf8, 0>>)) end),
    ?assertEqual("größe ~p " ++ [0] ++ " is not well-behaved", hd(Lines)).

a_noisy_machine_skips_and_does_not_pass_test() ->
    Skipped = "this machine cannot say whether lists:sum(Init) is well-behaved: Other programs "
        "took 0.9 processors; three passes did not agree.",
    ?assertEqual({{skip, Skipped}, ["SKIPPED, not passed: " ++ Skipped]},
                 conclude({ok, ?R:noisy()})),
    Small = "this machine cannot say whether the function is well-behaved: too small",
    ?assertEqual({{skip, Small}, ["SKIPPED, not passed: " ++ Small]},
                 conclude({error, {unsure, ["too ", <<"small">>]}})).

what_could_not_be_done_is_an_error_of_its_own_test() ->
    ?assertEqual({{badarg, "column 3: oh"}, []}, conclude({error, {usage, "column 3: oh"}})),
    ?assertEqual({{check_failed, "no peer"}, []}, conclude({error, {failed, <<"no peer">>}})).

not_well_behaved(Result) ->
    {{not_well_behaved, Lines}, []} = conclude({ok, Result}),
    Lines.

%% ---- EUnit ----

eunit_has_a_test_for_each_property_that_could_be_judged_test() ->
    Titles = fun(Result) ->
                     {Tests, Said} = tests({ok, Result}),
                     {[T || {T, _} <- Tests], length(Said)}
             end,
    ?assertMatch({[_, _, _, _, _, _, _, _, _], 0}, Titles(?R:good())),
    ?assertMatch({[_, _, _, _, _, _, _, _], 1}, Titles(?R:noisy())),
    ?assertEqual({["m:f(Bin): crashes or does not return", "m:f(Bin): blocks the scheduler",
                   "m:f(Bin): unfair to neighbours", "m:f(Bin): delays others",
                   "m:f(Bin): leaks memory"], 2}, Titles(?R:every_status())),
    ?assertMatch({[], ["SKIPPED" ++ _]}, tests({error, {unsure, "too small"}})).

eunit_fails_the_tests_of_the_properties_that_failed_test() ->
    {Bad, []} = tests({ok, ?R:bad()}),
    {Good, []} = tests({ok, ?R:good()}),
    ?assertEqual(error, eunit:test(Bad, [no_tty])),
    ?assertEqual(ok, eunit:test(Good, [no_tty])),
    Failed = [T || {T, Test} <- Bad, element(1, printed(fun() -> fails(Test) end))],
    ?assertEqual(["lists:sum(Init): blocks the scheduler"], Failed).

fails(Test) ->
    try Test() of
        ok -> false
    catch
        error:{not_well_behaved, [_ | _]} -> true
    end.

an_eunit_generator_reports_what_is_wrong_test() ->
    ?assertError({badarg, _}, ?M:well_behaved_test_("ok", #{no_such => option})),
    ?assertError({badarg, "the expression, column " ++ _}, ?M:well_behaved_test_("a b", #{})).

%% ---- Common Test ----

%% Really with Common Test, in a node of its own: it takes over a node's standard output.
common_test_counts_skipped_failed_and_passed_test_() ->
    {timeout, 120,
     fun() ->
             Output = fairnif_check_stand_in:in_folder(fun common_test/1),
             ?assertNotEqual({nomatch, Output},
                             {string:find(Output, "counted: {1,1,{2,0}}"), Output})
     end}.

common_test(Folder) ->
    Suite = filename:join(Folder, "well_behaved_SUITE.erl"),
    ok = file:write_file(Suite, suite()),
    Run = io_lib:format("io:format(\"counted: ~~w~~n\", "
                        "[ct:run_test([{suite, ~p}, {logdir, ~p}])]), halt().", [Suite, Folder]),
    Paths = [filename:dirname(code:which(M)) || M <- [fairnif_check, fairnif_check_test_results]],
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [{args, ["-noinput", "-eval", lists:flatten(Run), "-pa" | Paths]},
                      exit_status, stderr_to_stdout, binary]),
    output(Port, []).

output(Port, Text) ->
    receive
        {Port, {data, Data}} -> output(Port, [Text, Data]);
        {Port, {exit_status, _}} -> unicode:characters_to_list(Text)
    end.

suite() ->
    "-module(well_behaved_SUITE).\n"
    "-compile([export_all, nowarn_export_all]).\n"
    "all() -> [good, bad, noisy, small].\n"
    "good(_) -> conclude({ok, fairnif_check_test_results:good()}).\n"
    "bad(_) -> conclude({ok, fairnif_check_test_results:bad()}).\n"
    "noisy(_) -> conclude({ok, fairnif_check_test_results:noisy()}).\n"
    "small(_) -> conclude({error, {unsure, \"too small\"}}).\n"
    "conclude(Outcome) -> fairnif_check:conclude(Outcome, fun io:put_chars/1).\n".

%% ---- what is asked ----

an_option_or_a_waiver_that_is_none_is_refused_with_an_explanation_test_() ->
    [{Needle, fun() ->
                      {badarg, Text} = refused("ok", Opts),
                      ?assertNotEqual({nomatch, Text}, {string:find(Text, Needle), Text})
              end}
     || {Needle, Opts} <-
            [{"limit is not an option", #{limit => 1}},
             {"the options are a map", [{sizes, [1]}]},
             {"fairness is not a property that can be waived; these are: [crash,block",
              #{waive => #{fairness => "why not"}}},
             {"waiving `unkillable' needs a reason", #{waive => #{unkillable => ""}}},
             {"waiving `unkillable' needs a reason", #{waive => #{unkillable => <<" \n">>}}},
             {"waiving `unkillable' needs a reason", #{waive => #{unkillable => true}}},
             {"waive is a map", #{waive => [unkillable]}},
             {"a fun takes nothing or a binary", #{against => fun(_, _) -> ok end}}]].

a_subject_that_is_none_is_refused_with_an_explanation_test_() ->
    [{Needle, fun() ->
                      {badarg, Text} = refused(Subject, #{}),
                      ?assertNotEqual({nomatch, Text}, {string:find(Text, Needle), Text})
              end}
     || {Needle, Subject} <-
            [{"a fun takes nothing or a binary", fun lists:append/2},
             {"is nothing that can be checked", {a, b}},
             {"is nothing that can be checked", an_atom},
             {"the module there_is_none is in no file", {there_is_none, f, []}},
             {"the module there_is_none is in no file", fun there_is_none:f/0},
             {"made in a shell", shell_fun()},
             {"is in no file on the code path", in_memory(fairnif_check_in_memory)}]].

refused(Subject, Opts) ->
    try ?M:assert_well_behaved(Subject, Opts) of
        ok -> ok
    catch
        error:{badarg, Text} -> {badarg, Text}
    end.

shell_fun() ->
    {ok, Tokens, _} = erl_scan:string("fun() -> ok end."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Fun, _} = erl_eval:exprs(Exprs, []),
    Fun.

%% A fun of a module that no file holds.
in_memory(Module) ->
    Forms = [{attribute, 1, module, Module}, {attribute, 1, export, [{new, 0}]},
             {function, 1, new, 0,
              [{clause, 1, [], [],
                [{'fun', 1, {clauses, [{clause, 1, [], [], [{atom, 1, ok}]}]}}]}]}],
    {ok, Module, Beam} = compile:forms(Forms),
    {module, Module} = code:load_binary(Module, "nowhere", Beam),
    Module:new().

a_fun_whose_module_is_not_as_in_its_file_is_refused_test() ->
    %% As when it is cover-compiled: loaded with another checksum than the file has.
    Old = code:get_object_code(fairnif_check_repeat),
    {fairnif_check_repeat, Beam, File} = Old,
    Fun = in_memory(fairnif_check_repeat),
    try
        {badarg, Text} = refused(Fun, #{}),
        ?assertNotEqual(nomatch, string:find(Text, "is not what is loaded here"))
    after
        {module, _} = code:load_binary(fairnif_check_repeat, File, Beam),
        code:purge(fairnif_check_repeat)
    end.

%% ---- for real ----

a_fun_of_ordinary_erlang_never_fails_test_() ->
    Opts = short(#{waive => #{latency => "the machine that runs these tests is shared"}}),
    {timeout, 300,
     fun() ->
             Tests = ?M:well_behaved_test_(fun(Bin) -> [X || <<X>> <= Bin] end, Opts),
             ?assert(length(Tests) =< 9),
             ?assertEqual([], [T || {T, Test} <- Tests,
                                    element(1, printed(fun() -> fails(Test) end))]),
             ?assertEqual(ok, eunit:test(Tests, [no_tty]))
     end}.

%% What this machine writes of a real check keeps to the schema too. (The call that blocks is
%% charged: a loop of such calls would else run for minutes after a kill.)
a_crash_is_a_failure_and_a_call_that_blocks_never_passes_test_() ->
    {timeout, 300,
     fun() ->
             ok = fairnif_check_zoo:build(),
             {ok, #{exit := 1} = Crash} = fairnif_check_run:run("error({oh, Bin})", short(#{})),
             {[_, "crashes or does not return at 1,024 bytes: raises error" ++ _ | _], _} =
                 printed(fun() -> not_well_behaved(Crash) end),
             {ok, Busy} = fairnif_check_run:run(?BUSY,
                                                short(#{against => "binary:copy(Bin)"})),
             {{Judged, _}, _} = printed(fun() -> conclude({ok, Busy}) end),
             case Judged of
                 {not_well_behaved,
                  ["fairnif_check_assert_tests:keep_busy/1 is not" ++ _, _ | _]} ->
                     ok;
                 {skip, _} ->
                     ok
             end,
             [?assertEqual(ok, fairnif_check_schema:validate(
                                 "check-1", fairnif_check_report:report(
                                              R, fairnif_check_machine:context(), undefined)))
              || R <- [Crash, Busy]]
     end}.

%% The shortest check that there is; what it says of this machine does not matter here.
short(Opts) ->
    maps:merge(#{sizes => [1024], time_ms => 50}, Opts).

keep_busy(Us) ->
    fairnif_zoo:block_charged(Us).
