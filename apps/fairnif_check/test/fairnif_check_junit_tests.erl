-module(fairnif_check_junit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include_lib("xmerl/include/xmerl.hrl").

-define(R, fairnif_check_test_results).

%% ---- what a parser makes of it ----

suites(Result) ->
    suites(Result, ?R:context()).

suites(Result, Context) ->
    Xml = iolist_to_binary(fairnif_check_junit:xml(Result, Context)),
    {Root, []} = xmerl_scan:string(binary_to_list(Xml), [{quiet, true}]),
    #xmlElement{name = testsuites} = Root,
    {attributes(Root), children(testsuite, Root)}.

attributes(#xmlElement{attributes = As}) ->
    maps:from_list([{N, V} || #xmlAttribute{name = N, value = V} <- As]).

children(Name, #xmlElement{content = Content}) ->
    [E || #xmlElement{name = N} = E <- Content, N =:= Name].

text(#xmlElement{content = Content}) ->
    lists:append([V || #xmlText{value = V} <- Content]).

%% {class, name, what is in it, its message, its text}
cases(Suite) ->
    [begin
         #{classname := Class, name := Name} = attributes(Case),
         case [E || #xmlElement{} = E <- Case#xmlElement.content] of
             [] -> {Class, Name, passed, "", ""};
             [E] -> {Class, Name, E#xmlElement.name, maps:get(message, attributes(E), ""), text(E)}
         end
     end || Case <- children(testcase, Suite)].

%% ---- structure ----

a_well_behaved_function_has_a_passing_case_per_size_and_property_test() ->
    {#{tests := "18", failures := "0", errors := "0"}, [Suite]} = suites(?R:good()),
    ?assertMatch(#{name := "lists:sum(Init)", tests := "18", failures := "0", skipped := "0",
                   timestamp := "2026-11-21T12:00:00Z"}, attributes(Suite)),
    ?assertEqual([passed], lists:usort([K || {_, _, K, _, _} <- cases(Suite)])),
    ?assertEqual(["lists:sum(Init) at 1,024 bytes", "lists:sum(Init) at 1,048,576 bytes"],
                 lists:usort([C || {C, _, _, _, _} <- cases(Suite)])),
    ?assertEqual(["blocks the scheduler", "cannot be killed", "crashes or does not return",
                  "delays others", "its garbage blocks the scheduler", "leaks memory",
                  "long first call", "under-charged", "unfair to neighbours"],
                 lists:usort([N || {_, N, _, _, _} <- cases(Suite)])).

no_two_cases_have_the_same_name_test() ->
    {_, Suites} = suites(?R:every_status()),
    Names = [{C, N} || S <- Suites, {C, N, _, _, _} <- cases(S)],
    ?assertEqual(lists:sort(Names), lists:usort(Names)).

a_fail_is_a_failure_with_its_sentence_and_its_evidence_test() ->
    {#{failures := "1"}, [Suite]} = suites(?R:bad()),
    ?assertEqual([{"lists:sum(Init) at 1,048,576 bytes", "blocks the scheduler", failure,
                   "It blocked a normal scheduler for 23.4 ms; 1 ms is the limit.",
                   "calls: 40\nlimit: 1000000\nlongest: 23400000\nover: 12\n"}],
                 [C || {_, _, failure, _, _} = C <- cases(Suite)]).

unsure_and_waived_are_skipped_and_warn_passes_with_its_sentence_test() ->
    {_, [Suite, _]} = suites(?R:every_status()),
    Found = maps:from_list([{N, {K, M, T}} || {C, N, K, M, T} <- cases(Suite),
                                              string:find(C, "1,048,576") =/= nomatch]),
    ?assertMatch(#{"under-charged" := {skipped, "It was too short to measure.", _},
                   "cannot be killed" := {skipped, "waived (nobody kills its callers): "
                                         "Its code stops 2 s after the kill.", _},
                   "delays others" := {passed, "", ""},
                   "blocks the scheduler" := {failure, _, _}}, Found),
    #{"unfair to neighbours" := {'system-out', "", Said}} = Found,
    ?assertEqual("It left 7 % to a neighbour.\nleft: 0.07\nsource: three neighbours\n"
                 "no answer within 30 s\n", Said),
    ?assertMatch(#{failures := "1", skipped := "2"}, attributes(Suite)).

what_is_measured_for_comparison_never_fails_test() ->
    {#{failures := "1"}, [_, Against]} = suites(?R:every_status()),
    ?assertMatch(#{name := "m:old(Bin) (against)", failures := "0", skipped := "1"},
                 attributes(Against)),
    ?assertMatch([{_, "blocks the scheduler", skipped, "for comparison: The old one.", _}],
                 [C || {_, _, skipped, _, _} = C <- cases(Against)]).

a_size_that_crashed_is_a_failure_and_one_without_any_verdict_an_error_test() ->
    {_, [Crashed]} = suites(?R:crashed()),
    ?assertMatch([{"m:crash(Bin) at 1,048,576 bytes", "crashes or does not return", failure,
                   "The node was killed by signal 11" ++ _,
                   "the peer node was killed by signal 11\n"}],
                 [C || {_, _, failure, _, _} = C <- cases(Crashed)]),
    Lost = ?R:put_size(error, <<"no memory">>, ?R:put_size(verdicts, [], ?R:good())),
    {#{errors := "1"}, [Suite]} = suites(Lost),
    ?assertMatch([{_, "measured", error, "no memory", _}],
                 [C || {_, _, error, _, _} = C <- cases(Suite)]).

what_has_become_worse_since_a_baseline_is_a_failure_test() ->
    Row = fun(Figure, Verdict) ->
                  #{role => subject, size => 1024, figure => Figure, verdict => Verdict,
                    before => 10, now => undefined, ratio => undefined, why => <<"because">>}
          end,
    Comparison = #{baseline => <<"b">>, made => <<"then">>, exit => 1, bands => [],
                   rows => [Row(time, worse), Row(block, within_noise), Row(share, improved),
                            Row(kill, unsure), (Row(leak, worse))#{role := against}]},
    Xml = iolist_to_binary(fairnif_check_junit:xml(?R:good(), ?R:context(), Comparison)),
    {Root, []} = xmerl_scan:string(binary_to_list(Xml), [{quiet, true}]),
    ?assertMatch(#{failures := "1", tests := "22"}, attributes(Root)),
    [_, Changes] = children(testsuite, Root),
    Class = "lists:sum(Init) at 1,024 bytes",
    ?assertEqual([{Class, "run time, median since the baseline", failure, "worse: because",
                   "baseline: 10\nnow: undefined\n"},
                  {Class, "longest block, repeated since the baseline", passed, "", ""},
                  {Class, "share left to a neighbour since the baseline", 'system-out', "",
                   "improved: because\nbaseline: 10\nnow: undefined\n"},
                  {Class, "from kill to stop since the baseline", skipped, "because",
                   "baseline: 10\nnow: undefined\n"}], cases(Changes)).

%% ---- any text ----

markup_and_control_characters_come_through_test() ->
    Text = <<"a<b> & \"c\" 'd' ]]> größe \t\r\n", 0, 27, 127, 255>>,   % a byte for ö and ß each
    {_, [Suite]} = suites(?R:with_text(Text)),
    #{name := Name} = attributes(Suite),
    %% Not UTF-8 as a whole, so read as Latin-1.
    ?assertEqual("a<b> & \"c\" 'd' ]]> größe \t" ++ [16#240D, $\n, 16#2400, 16#241B, 16#2421, 255],
                 Name).

any_text_gives_a_document_that_a_parser_reads_back_test_() ->
    Character = oneof([range(0, 127), range(0, 16#D7FF), range(16#E000, 16#10FFFF)]),
    Text = ?SUCHTHAT(Chars, non_empty(list(Character)), not blanks(Chars)),
    {timeout, 60,
     ?_assert(proper:quickcheck(
       ?FORALL(Chars, Text,
               begin
                   {_, [Suite]} = suites(?R:with_text(unicode:characters_to_binary(Chars))),
                   [Failed] = [C || {_, _, failure, _, _} = C <- cases(Suite)],
                   Expected = [picture(C) || C <- Chars],
                   maps:get(name, attributes(Suite)) =:= Expected
                       andalso element(4, Failed) =:= Expected
                       andalso element(5, Failed) =:= "note: " ++ Expected ++ "\n"
               end), [{numtests, 200}, quiet]))}.

%% Of two in an attribute, written as references or not, xmerl keeps one.
blanks(Chars) ->
    re:run(Chars, "[ \\t\\n]{2}", [unicode, {capture, none}]) =:= match.

%% What XML 1.0 cannot hold, or advises against.
picture(C) when C =:= $\t; C =:= $\n -> C;
picture(C) when C < 32 -> 16#2400 + C;
picture(127) -> 16#2421;
picture(C) when C >= 128, C < 160; C =:= 16#FFFE; C =:= 16#FFFF -> 16#FFFD;
picture(C) -> C.
