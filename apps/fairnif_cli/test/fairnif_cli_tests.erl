-module(fairnif_cli_tests).

-include_lib("eunit/include/eunit.hrl").

%% For the tests of single commands.
-export([run/1, says/3]).

what_cannot_be_understood_is_exit_2_and_says_why_test_() ->
    [{string:join(Args, " "), says(2, Args, Part)}
     || {Args, Part} <-
            [{[], "Usage"},
             {["frobnicate"], "no command `frobnicate'"},
             {["demo", "--size"], "needs a value"},
             {["demo", "--size", "12x"], "`12x' is no size"},
             {["demo", "--size", "-5"], "`-5' is no size"},
             {["demo", "--size", ""], "is no size"},
             {["demo", "--size=0"], "at least 1"},
             {["demo", "--colour", "red"], "`--colour' is no option"},
             {["demo", "more"], "no `more'"},
             {["lab", "nothing"], "no experiment `nothing'"},
             {["lab", "exor", "levenshtein"], "no `levenshtein'"},
             {["demo", "--json", "/nowhere/at/all.json"], "cannot write"},
             {["demo", "--html", "/nowhere/at/all.html"], "cannot write"},
             {["lab", "exor", "--html", "-"], "needs the name of a file"},
             {["report"], "needs `--html FILE'"},
             {["report", "--html", "/tmp/x.html"], "needs a file that --json has written"},
             {["report", "a", "b", "c", "--html", "/tmp/x.html"], "what is `c'"},
             {["version", "--size", "1"], "no option"},
             {["version", "more"], "no `more'"},
             {["help", "frobnicate"], "no command `frobnicate'"},
             {["help", "demo", "lab"], "what is `lab'"},
             {["demo", "--quick"], "`--quick' is no option of this command"},
             {["lab", "exor", "--quick=yes"], "takes no value"},
             {["lab", "exor", "--quick", "--full"], "contradicts"},
             {["lab", "--quick"], "takes no option"},
             {["lab", "reductions", "--size", "1k"],
              "`--size' is no option of the experiment `reductions'"}]].

what_is_too_large_for_this_machine_is_exit_3_test() ->
    {Code, Complaint} = run(["lab", "exor", "--size", "999999g"]),
    ?assertEqual(3, Code),
    ?assertNotEqual(nomatch, string:find(Complaint, "smaller size")).

help_version_and_the_list_of_experiments_are_exit_0_test_() ->
    [?_assertMatch({0, ""}, run(Args))
     || Args <- [["help"], ["--help"], ["-h"], ["version"], ["--version"],
                 ["lab"]]].

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
             {"check", [Option || {Option, _, _, _, _} <- fairnif_cli_check:options()]},
             {"lab", ["--quick", "--full", "--size", "--json", "--html"]},
             {"report", ["--html"]},
             {"new", ["--elixir", "--fairnif"]},
             {"watch", [Option || {Option, _, _, _, _} <- fairnif_cli_watch:options()]},
             {"bench", ["--json"]}, {"help", []}, {"version", []}]].

%% At the begins of lines, with something to say of each.
options_in(Help) ->
    case re:run(Help, "^  (--?[a-z-]+)(?: [A-Za-z:|@]+)?  +[A-Za-z].*$",
                [global, multiline, {capture, all_but_first, list}]) of
        {match, Found} -> [Option || [Option] <- Found];
        nomatch -> []
    end.

%% What goes to standard output.
said(Args) ->
    Leader = group_leader(),
    Server = spawn_link(fun() -> device([]) end),
    group_leader(Server, self()),
    try
        0 = fairnif_cli:run(Args),
        Server ! {text, self()},
        receive {Server, Text} -> Text end
    after
        group_leader(Leader, self()),
        unlink(Server),
        exit(Server, kill)
    end.

%% A test: the command ends with that code and complains of that. The first that names an experiment
%% loads the whole lab, which takes seconds on a busy machine; a test that EUnit ends for its time
%% takes all that follow with it.
says(Code, Args, Part) ->
    {timeout, 60,
     fun() ->
             {Got, Complaint} = run(Args),
             ?assertEqual({Code, Complaint}, {Got, Complaint}),
             ?assertNotEqual({Complaint, nomatch}, {Complaint, string:find(Complaint, Part)})
     end}.

%% The exit code, and what went to standard error; standard output is eunit's.
run(Args) ->
    Device = whereis(standard_error),
    unregister(standard_error),
    Server = spawn_link(fun() -> device([]) end),
    register(standard_error, Server),
    try fairnif_cli:run(Args) of
        Code ->
            Server ! {text, self()},
            receive {Server, Text} -> {Code, Text} end
    after
        unregister(standard_error),
        register(standard_error, Device),
        unlink(Server),
        exit(Server, kill)
    end.

%% The least of an I/O server: it remembers.
device(Text) ->
    receive
        {text, From} ->
            From ! {self(), unicode:characters_to_list(lists:reverse(Text))},
            device(Text);
        {io_request, From, Ref, {put_chars, _, Chars}} ->
            From ! {io_reply, Ref, ok},
            device([Chars | Text]);
        {io_request, From, Ref, {put_chars, _, M, F, A}} ->
            From ! {io_reply, Ref, ok},
            device([apply(M, F, A) | Text]);
        {io_request, From, Ref, _} ->
            From ! {io_reply, Ref, ok},
            device(Text)
    end.
