-module(fairnif_check_report_tests).

-include_lib("eunit/include/eunit.hrl").

-define(R, fairnif_check_test_results).

validate(Result) ->
    validate(Result, undefined).

validate(Result, Comparison) ->
    fairnif_check_schema:validate(
      "check-1", fairnif_check_report:report(Result, ?R:context(), Comparison)).

refused(Needle, Outcome) ->
    ?assertMatch({invalid, _}, Outcome),
    {invalid, Text} = Outcome,
    ?assertNotEqual({nomatch, Text}, {string:find(Text, Needle), Text}).

comparison() ->
    fairnif_check_stand_in:in_folder(fun(Dir) ->
        Path = filename:join(Dir, "baseline"),
        {ok, _} = fairnif_check_baseline:save(Path, ?R:good(), ?R:context()),
        {ok, Comparison} = fairnif_check_baseline:compare(
                             Path, ?R:put_size(kill, remove, ?R:good()), ?R:context()),
        Comparison
    end).

every_kind_of_result_keeps_to_the_schema_test_() ->
    [{Title, {timeout, 30, ?_assertEqual(ok, validate(Result))}}
     || {Title, Result} <- [{"good", ?R:good()}, {"bad", ?R:bad()}, {"noisy", ?R:noisy()},
                            {"every status", ?R:every_status()}, {"crashed", ?R:crashed()},
                            {"odd text", ?R:with_text(<<"\"\\ größe", 0, 31, 255>>)}]].

a_report_without_samples_of_the_delay_keeps_to_the_schema_test_() ->
    Old = maps:remove(samples, ?R:delay(1030000)),
    {timeout, 30,
     ?_assertEqual(ok, validate(?R:put_size(delay, #{idle => Old, erlang => Old, beside => Old},
                                            ?R:good())))}.

a_comparison_keeps_to_the_schema_test_() ->
    {timeout, 30, ?_assertEqual(ok, validate(?R:good(), comparison()))}.

this_machines_context_keeps_to_the_schema_test_() ->
    {timeout, 30,
     ?_assertEqual(ok, fairnif_check_schema:validate(
                         "check-1",
                         fairnif_check_report:report(
                           ?R:good(), fairnif_check_machine:context(), undefined)))}.

%% That the schema refuses anything at all, and what it is for.
a_report_that_is_broken_is_refused_test_() ->
    Good = ?R:good(),
    Report = fun({Pairs}, Changes) -> {Changes(Pairs)} end,
    Whole = fairnif_check_report:report(Good, ?R:context(), undefined),
    Raw = fun(Value) -> fairnif_check_schema:validate("check-1", Value) end,
    [{timeout, 30, fun() -> refused(Needle, Outcome()) end}
     || {Needle, Outcome} <-
            [{"exit: 2 is not one of", fun() -> validate(Good#{exit := 2}) end},
             {"'extra' was unexpected", fun() -> validate(Good#{extra => 1}) end},
             {"'subjects' is a required",
              fun() -> validate(maps:remove(subjects, Good)) end},
             {"result/subjects/0/sizes/1/leak/kills",
              fun() -> validate(?R:put_size(leak, (?R:leak(1.0))#{kills := 1.5}, Good)) end},
             {"result/subjects/0/sizes/1/time/samples/0",
              fun() -> validate(?R:put_size(time, #{count => 1, median => 1, spread => 0,
                                                    shortest => 1, samples => [<<"1 ms">>]},
                                            Good)) end},
             {"'maybe_so' is not one of",
              fun() -> validate(?R:put_size(verdicts, [?R:verdict(block, maybe_so, 1, <<"x">>)],
                                            Good)) end},
             {"schema_version: 1 was expected",
              fun() -> Raw(Report(Whole, fun([_ | Rest]) -> [{schema_version, 2} | Rest] end)) end},
             {"schema_version is not the first",
              fun() -> Raw(Report(Whole, fun([V | Rest]) -> Rest ++ [V] end)) end},
             {"stands twice",
              fun() -> Raw(Report(Whole, fun([V | Rest]) -> [V, V | Rest] end)) end}]].
