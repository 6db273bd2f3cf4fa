-module(fairnif_cli_tests).

-include_lib("eunit/include/eunit.hrl").

what_cannot_be_understood_is_exit_2_and_says_why_test_() ->
    [{string:join(Args, " "), says(2, Args, Part)}
     || {Args, Part} <-
            [{[], "Usage"},
             {["frobnicate"], "no command `frobnicate'"},
             {["frobnicate"], "`fairnif help' lists"},
             {["demo", "--colour"], "`fairnif demo --help' lists its options"},
             {["version", "more"], "`fairnif help' lists"},
             {["demo", "--size"], "needs a value"},
             {["demo", "--size", "12x"], "`12x' is not a size"},
             {["demo", "--size", "-5"], "`-5' is not a size"},
             {["demo", "--size", ""], "is not a size"},
             {["demo", "--size=0"], "at least 1"},
             {["demo", "--colour", "red"], "`--colour' is not an option"},
             {["demo", "more"], "no `more'"},
             {["experiment", "nothing"], "no experiment `nothing'"},
             {["experiment", "exor", "levenshtein"], "no `levenshtein'"},
             {["demo", "--json", "/nowhere/at/all.json"], "cannot write"},
             {["demo", "--html", "/nowhere/at/all.html"], "cannot write"},
             {["experiment", "exor", "--html", "-"], "needs the name of a file"},
             {["report"], "needs `--html FILE'"},
             {["report", "--html", "/tmp/x.html"], "needs a file that --json has written"},
             {["report", "a", "b", "c", "--html", "/tmp/x.html"], "what is `c'"},
             {["version", "--size", "1"], "not an option"},
             {["version", "more"], "no `more'"},
             {["help", "frobnicate"], "no command `frobnicate'"},
             {["help", "demo", "experiment"], "what is `experiment'"},
             {["demo", "--quick"], "`--quick' is not an option of this command"},
             {["experiment", "exor", "--quick=yes"], "takes no value"},
             {["experiment", "exor", "--quick", "--full"], "contradicts"},
             {["experiment", "--quick"], "takes no option"},
             {["experiment", "reductions", "--size", "1k"],
              "`--size' is not an option of the experiment `reductions'"}]].

what_is_too_large_for_this_machine_is_exit_3_test() ->
    {Code, Complaint} = run(["experiment", "exor", "--size", "999999g"]),
    ?assertEqual(3, Code),
    ?assertNotEqual(nomatch, string:find(Complaint, "smaller size")).

help_version_and_the_list_of_experiments_are_exit_0_test_() ->
    [?_assertMatch({0, ""}, run(Args))
     || Args <- [["help"], ["--help"], ["-h"], ["version"], ["--version"],
                 ["experiment"]]].

every_command_explains_itself_and_each_of_its_options_test_() ->
    [{Name, fun() ->
                    Help = said([Name, "--help"]),
                    ?assertEqual(Help, said(["help", Name])),
                    ?assertEqual(Help, said([Name, "more", "-h"])),
                    ?assertMatch({match, _}, re:run(Help, ["^Usage: fairnif ", Name])),
                    ?assertEqual(Options, options_in(Help)),
                    ?assertEqual([], [Line || Line <- string:split(Help, "\n", all),
                                              string:length(Line) > 100])
            end}
     || {Name, Options} <-
            [{"demo", ["--size", "--json", "--html"]},
             {"check", [Option || {Option, _, _, _, _} <- options(fairnif_check_command)]},
             {"experiment", ["--quick", "--full", "--size", "--json", "--html"]},
             {"report", ["--html"]},
             {"new", ["--elixir", "--cpp", "--rust", "--precompiled", "--fairnif"]},
             {"watch", [Option || {Option, _, _, _, _} <- options(fairnif_cli_watch)]},
             {"stacks", []}, {"record", []}, {"bench", ["--json"]}, {"help", []}, {"version", []}]].

options(Command) ->
    maps:get(options, Command:command()).

%% At the begins of lines, with something to say of each.
options_in(Help) ->
    case re:run(Help, "^  (--?[a-z-]+)(?: [A-Za-z:|@]+)?  +[A-Za-z].*$",
                [global, multiline, {capture, all_but_first, list}]) of
        {match, Found} -> [Option || [Option] <- Found];
        nomatch -> []
    end.

said(Args) ->
    fairnif_check_said:said(fairnif_cli, Args).

says(Code, Args, Part) ->
    fairnif_check_said:says(fairnif_cli, Code, Args, Part).

run(Args) ->
    fairnif_check_said:run(fairnif_cli, Args).
