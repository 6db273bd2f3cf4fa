-module(fairnif_lab_cli_check_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SHORT, ["--size", "1k", "--time", "50ms"]).

%% ---- usage: exit 2, before any work ----

what_cannot_be_understood_is_exit_2_and_says_why_test_() ->
    [{string:join(Args, " "), says(2, ["check" | Args], Part)}
     || {Args, Part} <-
            [{[], "check needs an expression"},
             {["N", "M"], "what is `M'?"},
             {["N", "--colour", "red"], "`--colour' is not an option"},
             {["N", "--size", "0"], "at least 1"},
             {["N", "--size", "1k,x"], "`x' is not a size"},
             {["N", "--time", "5"], "`5' is not a time"},
             {["N", "--limit", "1"], "`1' is not a time"},
             {["N", "--timeout", "forever"], "`forever' is not a time"},
             {["N", "--runs", "0"], "at least 1"},
             {["N", "--strict=yes"], "takes no value"},
             {["N", "-pa"], "needs a value"},
             {["N", "-pa", "/nowhere/at/all"], "there is no folder /nowhere/at/all"},
             {["N", "--json", "/nowhere/at/all.json"], "cannot write"},
             {["N", "--junit", "/nowhere/at/all.xml"], "cannot write"},
             {["N", "--html", "/nowhere/at/all.html"], "cannot write"},
             {["N", "--html", "-"], "needs the name of a file"},
             {["N", "--file", "/nowhere/at/all"], "cannot read /nowhere/at/all"},
             {["N", "--save-baseline", ""], "a baseline needs a name"},
             {["N", "--baseline", "a\nb"], "no control characters"},
             {["foo("], "the expression, column 5: syntax error"},
             {["Bim"], "the expression, column 1: variable 'Bim' is unbound"},
             {["N", "--init", "1 +"], "--init, column 4: syntax error"},
             {["N", "--against", "Bim"], "--against: the expression, column 1"}]].

what_does_not_exist_is_exit_2_and_has_its_place_test_() ->
    says(2, ["check", "lists:nothing(Bin)" | ?SHORT],
         "column 1: there is no function lists:nothing/1").

inputs_beyond_all_memory_are_exit_3_test_() ->
    says(3, ["check", "N", "--size", "999999g"], "smaller sizes").

no_two_options_have_one_name_test() ->
    Names = [Name || {Name, _, _, _, _} <- maps:get(options, fairnif_lab_cli_check:command())],
    ?assertEqual(Names, lists:uniq(Names)).

%% ---- a check ----

a_function_that_fails_is_exit_1_and_is_written_down_test_() ->
    {timeout, 60, fun() ->
        with_files(fun(Json, Junit) ->
            {Code, _} = fairnif_lab_said:run(fairnif_lab_cli,
                                             ["check", "error(oops)", "--json", Json,
                                              "--junit", Junit | ?SHORT]),
            ?assertEqual(1, Code),
            {ok, Report} = file:read_file(Json),
            ?assertMatch({_, _}, binary:match(Report, <<"raises error:oops">>)),
            {ok, Xml} = file:read_file(Junit),
            ?assertMatch({_, _}, binary:match(Xml, <<"raises error:oops">>))
        end)
    end}.

a_node_that_cannot_start_is_exit_1_and_says_why_test_() ->
    says(1, ["check", "N", "--flags", "+S many" | ?SHORT], "the peer node did not start").

%% ---- ----

says(Code, Args, Part) ->
    fairnif_lab_said:says(fairnif_lab_cli, Code, Args, Part).

with_files(Fun) ->
    Base = lists:concat(["/tmp/fairnif-test-", os:getpid(), "-",
                         erlang:unique_integer([positive])]),
    Files = [Base ++ ".json", Base ++ ".xml"],
    try apply(Fun, Files) after [file:delete(File) || File <- Files] end.
