-module(fairnif_check_command_tests).

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
             {["lists:nothing(Bin)" | ?SHORT], "column 1: there is no function lists:nothing/1"}]].

inputs_beyond_all_memory_are_exit_3_test_() ->
    says(3, ["check", "N", "--size", "999999g"], "smaller sizes").

no_two_options_have_one_name_test() ->
    Names = [Name || {Name, _, _, _, _} <- maps:get(options, fairnif_check_command:command())],
    ?assertEqual(Names, lists:uniq(Names)).

%% ---- a check ----

a_function_that_fails_is_exit_1_and_is_written_down_test_() ->
    {timeout, 60, fun() ->
        fairnif_check_stand_in:in_folder(fun(Dir) ->
            [Json, Junit] = [filename:join(Dir, Name) || Name <- ["r.json", "r.xml"]],
            {Code, _} = fairnif_check_said:run(fairnif_check_cli,
                                             ["check", "error(oops)", "--json", Json,
                                              "--junit", Junit | ?SHORT]),
            ?assertEqual(1, Code),
            {ok, Report} = file:read_file(Json),
            ?assertMatch({_, _}, binary:match(Report, <<"raises error:oops">>)),
            {ok, Xml} = file:read_file(Junit),
            ?assertMatch({_, _}, binary:match(Xml, <<"raises error:oops">>))
        end)
    end}.

%% Its module says so where it is found; else there is no such function, which is exit 2.
what_was_built_here_is_found_test_() ->
    [{Ebin, {timeout, 60, fun() ->
          {ok, Before} = file:get_cwd(),
          fairnif_check_stand_in:in_folder(fun(Dir) ->
              File = filename:join([Dir, Ebin, "fairnif_check_built_here.beam"]),
              ok = filelib:ensure_dir(File),
              ok = file:write_file(File, fairnif_check_stand_in:compiled(
                                           "-module(fairnif_check_built_here). -export([f/0]). "
                                           "f() -> error(found). ")),
              ok = file:set_cwd(Dir),
              try fairnif_check_said:run(fairnif_check_cli, ["check", "fairnif_check_built_here:f()"
                                                         | ?SHORT]) of
                  {Found, _} -> ?assertEqual(Code, Found)
              after
                  ok = file:set_cwd(Before)
              end
          end)
      end}}
     || {Ebin, Code} <- [{"_build/default/lib/mine/ebin", 1}, {"_build/dev/lib/mine/ebin", 1},
                         %% Not in place of what runs here.
                         {"_build/default/lib/fairnif_check/ebin", 2}, {"ebin", 2}]].

how_long_it_takes_is_said_first_test_() ->
    says(1, ["check", "error(oops)" | ?SHORT], "the check takes about 5 s\n").

a_node_that_cannot_start_is_exit_1_and_says_why_test_() ->
    says(1, ["check", "N", "--flags", "+S many" | ?SHORT], "the peer node did not start").

%% ---- ----

says(Code, Args, Part) ->
    fairnif_check_said:says(fairnif_check_cli, Code, Args, Part).
