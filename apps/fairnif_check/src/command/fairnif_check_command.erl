%% The command `check': its options, and what comes out where.
-module(fairnif_check_command).

-export([command/0]).

%% @doc The command.
-spec command() -> fairnif_check_cli:command().
command() ->
    #{name => "check", args => "EXPRESSION [OPTION ...]",
      about => "checks whether a native function is well-behaved",
      before => before(), options => options(), after_options => after_options(),
      run => fun check/2}.

before() ->
    "Checks whether a native function is well-behaved. EXPRESSION is Erlang, such as\n"
    "'crypto:hash(sha256, Bin)': Bin is random bytes, N their number, Init the value of --init.\n"
    "Call an Elixir module as in Elixir: 'Sprouts.count(Bin, 97)'. It runs in nodes of its\n"
    "own.\n".

after_options() ->
    "Sizes may end in k, m or g (powers of 1024). Times end in us, ms or s.\n"
    "Exit code: 0 well-behaved (and no worse than the baseline), 1 not, 2 wrong usage, 3 this\n"
    "machine cannot say.\n".

options() ->
    [{"--size", sizes, fun fairnif_check_cli_text:sizes/1, "SIZES",
      "bytes of Bin, separated by commas: 1k,1m,64m (default 1k,1m)"},
     {"--file", file, fun(File) -> File end, "FILE",
      "take Bin from the beginning of this file (default size: all of it)"},
     {"--init", init, fun(Text) -> Text end, "EXPRESSION",
      "evaluated once for each size, with Bin and N bound; its value is Init"},
     {"-pa", paths, {each, fun(Dir) -> Dir end}, "DIR", "a folder with more code; may be repeated"},
     {"--flags", flags, fun fairnif_check_cli_text:words/1, "FLAGS",
      "emulator flags of the nodes that are measured: \"+S 4:4\""},
     {"--against", against, fun(Text) -> Text end, "EXPRESSION",
      "measure this expression, too, in turns with the first"},
     {"--beside", beside, fun(Text) -> Text end, "EXPRESSION",
      "another process calls this one while blocks are measured"},
     {"--runs", runs, fun fairnif_check_cli_text:count/1, "N", "time up to N batches"},
     {"--time", time, fun fairnif_check_cli_text:duration/1, "TIME",
      "for each measurement (default 1s)"},
     {"--limit", limit_ns, fun fairnif_check_cli_text:duration/1, "TIME",
      "how long a call may block a scheduler (default 1ms)"},
     {"--timeout", timeout, fun fairnif_check_cli_text:duration/1, "TIME",
      "how long a call may take to return (default 30s)"},
     {"--strict", strict, {flag, true}, "",
      "every property decides, also unfairness and killability"},
     fairnif_check_cli_text:option("--json"),
     fairnif_check_cli_text:option("--html"),
     {"--junit", junit, fun(File) -> File end, "FILE", "write the verdicts as JUnit XML"},
     {"--save-baseline", save, fun(Name) -> Name end, "NAME", "save the figures under this name"},
     {"--baseline", baseline, fun(Name) -> Name end, "NAME",
      "compare with the figures of this name"}].

check(Opts, [Expression]) ->
    fairnif_check_cli_text:writable(Opts),
    run(Expression, Opts);
check(_, []) ->
    fairnif_check_cli_text:usage("check needs an expression, such as 'crypto:hash(sha256, Bin)'",
                                 []);
check(_, [_, Arg | _]) ->
    fairnif_check_cli_text:usage("check takes one expression: what is `~ts'? "
                               "(Quote what has blanks.)", [Arg]).

%% Measures, and writes what is asked for.
run(Expression, Opts) ->
    %% What cannot be kept or compared is known before the work.
    [named(Key, Name) || {Key, Name} <- maps:to_list(Opts), lists:member(Key, [save, baseline])],
    Context = fairnif_check_machine:context(),
    Asked = asked(Opts),
    Progress = fairnif_check_progress:start(fairnif_check_run:steps(Asked)),
    case fairnif_check_run:run(Expression, Asked#{progress => Progress}) of
        {ok, Result} ->
            finish(Result, Context, Opts);
        {error, {Kind, Text}} ->
            fairnif_check_progress:stop(Progress),
            failed(Kind, Text)
    end.

failed(usage, Text) ->
    fairnif_check_cli_text:usage("~ts", [Text]);
failed(Kind, Text) ->
    fairnif_check_cli_text:complain(Text),
    case Kind of unsure -> 3; failed -> 1 end.

asked(Opts) ->
    Times = [{time_ms, max(1, maps:get(time, Opts) div 1000000)} || is_map_key(time, Opts)]
        ++ [{timeout_ms, max(1, maps:get(timeout, Opts) div 1000000)} || is_map_key(timeout, Opts)],
    Paths = maps:get(paths, Opts, []) ++ project(),
    maps:merge(maps:without([time, timeout, json, html, junit, save, baseline], Opts),
               maps:from_list([{paths, Paths} | Times])).

%% What rebar3 or Mix has built here, but for applications that this node has; and Elixir's own.
%% Those of -pa come first.
project() ->
    Known = [application(Dir) || Dir <- code:get_path()],
    Built = [Dir || Profile <- ["default", os:getenv("MIX_ENV", "dev")],
                    Dir <- filelib:wildcard(filename:join(["_build", Profile, "lib/*/ebin"])),
                    not lists:member(application(Dir), Known)],
    Built ++ [Dir || filelib:is_regular("mix.exs"), Dir <- elixir(os:find_executable("elixir")),
                     not lists:member(application(Dir), Known)].

application(Ebin) ->
    hd(string:split(filename:basename(filename:dirname(Ebin)), "-")).

%% Its script is in a folder beside its applications; what is found may be a link to it.
elixir(false) ->
    [];
elixir(Script) ->
    case file:read_link(Script) of
        {ok, Target} -> elixir(filename:absname(Target, filename:dirname(Script)));
        {error, _} -> filelib:wildcard(filename:join(filename:dirname(Script), "../lib/*/ebin"))
    end.

named(Key, Name) ->
    case fairnif_check_baseline:path(Name) of
        {ok, Path} ->
            Key =:= save orelse filelib:is_regular(Path)
                orelse fairnif_check_cli_text:usage("there is no baseline ~ts: make it with "
                                                  "--save-baseline", [Path]);
        {error, Text} ->
            fairnif_check_cli_text:usage("~ts", [Text])
    end.

finish(#{exit := Exit} = Result, Context, Opts) ->
    fairnif_check_cli_text:note(Opts, "~ts", [fairnif_check_text:format(Result)]),
    {Comparison, Compared} = compared(Result, Context, Opts),
    fairnif_check_cli_text:write(Opts, fairnif_check_report:report(Result, Context, Comparison)),
    case Opts of
        #{junit := File} ->
            ok = file:write_file(File, fairnif_check_junit:xml(Result, Context, Comparison));
        _ -> ok
    end,
    Saved = saved(Result, Context, Opts),
    worst([Exit, Compared, Saved]).

compared(Result, Context, #{baseline := Name} = Opts) ->
    case fairnif_check_baseline:compare(Name, Result, Context) of
        {ok, #{exit := Exit} = Comparison} ->
            fairnif_check_cli_text:note(Opts, "~n~ts", [fairnif_check_baseline:format(Comparison)]),
            {Comparison, Exit};
        {error, Text} ->
            fairnif_check_cli_text:complain(Text),
            {undefined, 2}
    end;
compared(_, _, _) ->
    {undefined, 0}.

saved(Result, Context, #{save := Name} = Opts) ->
    case fairnif_check_baseline:save(Name, Result, Context) of
        {ok, Path} -> fairnif_check_cli_text:note(Opts, "~nBaseline saved in ~ts.~n", [Path]), 0;
        {error, Text} -> fairnif_check_cli_text:complain(Text), 2
    end;
saved(_, _, _) ->
    0.

%% A usage error outweighs a finding, and a finding what cannot be said.
worst(Codes) ->
    hd([C || C <- [2, 1, 3, 0], lists:member(C, Codes)]).
