%% The command line: bin/fairnif, over the lab, the experiments and the watch.
%%
%% What a command is, and the exit codes: fairnif_lab_cli.
-module(fairnif_cli).

-export([main/1, run/1]).

%% The commands, in the order of the help.  Adding one means adding a row.
-spec commands() -> [fairnif_lab_cli:command()].
commands() ->
    [#{name => "demo", args => "[--size BYTES] [--json FILE] [--html FILE]",
       about => "XORs a large binary in native code, fair and unfair",
       options => shared(["--size", "--json", "--html"]), run => fun demo/2},
     fairnif_lab_cli_check:command(),
     #{name => "lab",
       args => "[NAME [--quick | --full] [--size BYTES] [--json FILE] [--html FILE]]",
       about => "runs an experiment; without a name, lists them",
       options => lab_options(), run => fun lab/2},
     #{name => "report", args => "FILE.json [FILE.json] --html FILE",
       about => "makes a page of what --json wrote; compares two files",
       options => shared(["--html"]), run => fun report/2},
     fairnif_cli_new:command(),
     fairnif_cli_watch:command(),
     #{name => "bench", args => "[RUN ...] [--json FILE]",
       about => "measures the project's figures, each beside a peer",
       options => shared(["--json"]), run => fun bench/2},
     #{name => "help", args => "[COMMAND]", about => "shows this text, or a command's own",
       options => [], run => fun help/2},
     #{name => "version", args => "", about => "shows the version of fairnif",
       options => [], run => fun version/2}].

lab_options() ->
    [{"--quick", scale, {flag, quick}, "", "a short run of some seconds"},
     {"--full", scale, {flag, full}, "", "as much as the published experiment"}
     | shared(["--size", "--json", "--html"])].

shared(Names) ->
    lists:map(fun fairnif_lab_cli_text:option/1, Names).

%% @doc Runs the command line and ends the VM with its exit code.
-spec main([string()]) -> no_return().
main(Args) ->
    halt(run(Args)).

%% @doc Runs the command line: the first argument is a command.
-spec run([string()]) -> fairnif_lab_cli:exit_code().
run([Flag | Rest]) when Flag =:= "--help"; Flag =:= "-h" ->
    run(["help" | [Arg || Arg <- Rest, Arg =/= "--help", Arg =/= "-h"]]);
run(["--version" | Rest]) ->
    run(["version" | Rest]);
run(Args) ->
    fairnif_lab_cli:run(commands(), Args).

%% ---- commands ----

demo(Opts, []) ->
    fairnif_lab_cli_text:note(Opts,
         "Native code XORs a binary of ~ts, in each way that a NIF can be "
         "written.\nEach way is checked, timed, traced, and run beside an "
         "Erlang process.\n\n",
         [fairnif_lab_table:bytes(
            maps:get(size, Opts, fairnif_exp_exor:default_size()))]),
    experiment(fairnif_exp_exor, Opts);
demo(_, [Arg | _]) ->
    fairnif_lab_cli_text:usage("demo takes no `~ts'", [Arg]).

lab(Opts, []) ->
    maps:size(Opts) =:= 0
        orelse fairnif_lab_cli_text:usage("the list of experiments takes no option", []),
    io:put_chars([io_lib:format("~-14s ~ts~n", [Name, Line])
                  || M <- fairnif_experiment:all(),
                     #{name := Name, description := Line} <- [fairnif_experiment:about(M)]]),
    0;
lab(Opts, [Name]) ->
    case fairnif_experiment:find(Name) of
        {ok, Module} ->
            heeded(Module, Opts),
            experiment(Module, Opts);
        error ->
            fairnif_lab_cli_text:usage("there is no experiment `~ts'; `fairnif lab' lists them",
                                       [Name])
    end;
lab(_, [_, Arg | _]) ->
    fairnif_lab_cli_text:usage("lab takes no `~ts'", [Arg]).

%% An option that would have no effect must not look as if it had one.
heeded(Module, Opts) ->
    #{name := Name, options := Known} = fairnif_experiment:about(Module),
    case maps:keys(Opts) -- [json, html | Known] of
        [] ->
            ok;
        [Key | _] ->
            {Option, Key, _, _, _} = lists:keyfind(Key, 2, lab_options()),
            fairnif_lab_cli_text:usage("`~ts' is not an option of the experiment `~s'",
                                       [Option, Name])
    end.

report(#{html := Page} = Opts, Files) when length(Files) =:= 1; length(Files) =:= 2 ->
    fairnif_lab_cli_text:writable(Opts),
    Reports = [case fairnif_lab_page:read(File) of
                   {ok, Json} -> Json;
                   {error, Text} -> fairnif_lab_cli_text:usage("~ts", [Text])
               end || File <- Files],
    ok = fairnif_lab_page:write(Page, lists:zip(told_apart(Files), Reports)),
    0;
report(#{html := _}, []) ->
    fairnif_lab_cli_text:usage("report needs a file that --json has written, or two", []);
report(#{html := _}, [_, _, Arg | _]) ->
    fairnif_lab_cli_text:usage("report compares two files: what is `~ts'?", [Arg]);
report(_, _) ->
    fairnif_lab_cli_text:usage("report needs `--html FILE', where the page goes", []).

%% What two files are called on the page; one needs no name.
told_apart([_]) -> [""];
told_apart(Files) ->
    Short = [filename:basename(F, ".json") || F <- Files],
    case lists:uniq(Short) of
        [_, _] -> Short;
        [_] -> Files
    end.

%% No application of the umbrella: built by `make bench', from bench/.
bench(Opts, Runs) ->
    case code:ensure_loaded(fairnif_bench) of
        {module, Bench} ->
            fairnif_lab_cli_text:writable(Opts),
            Bench:main(Opts, Runs);
        {error, _} ->
            fairnif_lab_cli_text:complain("the figures are not built; run `make -C bench'"),
            1
    end.

help(_, []) ->
    io:put_chars(fairnif_lab_cli:help(commands())),
    0;
help(_, [Name]) ->
    io:put_chars(fairnif_lab_cli:help(commands(), Name)),
    0;
help(_, [_, Arg | _]) ->
    fairnif_lab_cli_text:usage("help takes one command: what is `~ts'?", [Arg]).

version(_, [Arg | _]) ->
    fairnif_lab_cli_text:usage("version takes no `~ts'", [Arg]);
version(_, []) ->
    _ = application:load(fairnif_lab),
    {ok, Version} = application:get_key(fairnif_lab, vsn),
    io:format("fairnif ~ts~n", [Version]),
    0.

experiment(Module, Opts) ->
    %% A file that cannot be written is known before the work, not after it.
    fairnif_lab_cli_text:writable(Opts),
    Context = fairnif_lab_machine:context(),
    Progress = fairnif_lab_progress:start(Module:steps(Opts)),
    case Module:run(Opts#{progress => Progress}) of
        {ok, #{ok := Ok} = Result} ->
            Shown = Module:format(Result),
            fairnif_lab_cli_text:note(Opts, "~ts", [Shown]),
            fairnif_lab_cli_text:write(
              Opts, fairnif_experiment:report(Module, Result, Shown, Context)),
            case Ok of true -> 0; false -> 1 end;
        {error, {Kind, Text}} ->
            fairnif_lab_progress:stop(Progress),
            fairnif_lab_cli_text:complain(Text),
            case Kind of cannot_say -> 3; failed -> 1 end
    end.
