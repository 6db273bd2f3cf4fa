%% The command line: bin/fairnif, over the checker, the experiments and the watch.
%%
%% What a command is, and the exit codes: fairnif_check_cli.
-module(fairnif_cli).

-export([main/1, run/1]).

%% The commands, in the order of the help.  Adding one means adding a row.
-spec commands() -> [fairnif_check_cli:command()].
commands() ->
    [#{name => "demo", args => "[--size BYTES] [--json FILE] [--html FILE]",
       about => "XORs a large binary in native code, fair and unfair",
       options => shared(["--size", "--json", "--html"]), run => fun demo/2},
     fairnif_check_command:command(),
     #{name => "experiment",
       args => "[NAME [--quick | --full] [--size BYTES] [--json FILE] [--html FILE]]",
       about => "runs an experiment; without a name, lists them",
       options => experiment_options(), run => fun experiments/2},
     #{name => "report", args => "FILE.json [FILE.json] --html FILE",
       about => "makes a page from a --json file; compares two files",
       options => shared(["--html"]), run => fun report/2},
     fairnif_cli_new:command(),
     fairnif_cli_watch:command(),
     #{name => "stacks", args => "PID | --name NODE | --core FILE [OPTION ...]",
       about => "shows what a node does that cannot answer, from outside",
       before => "A program of its own: `bin/fairnif stacks --help' has its options.\n",
       options => [], run => fun outside/2},
     #{name => "record", args => "PID | --name NODE [OPTION ...]",
       about => "samples where a node's time goes, Erlang and native, from outside",
       before => "A program of its own: `bin/fairnif record --help' has its options.\n",
       options => [], run => fun outside/2},
     #{name => "bench", args => "[RUN ...] [--json FILE]",
       about => "measures the project's figures, each compared with another tool",
       options => shared(["--json"]), run => fun bench/2},
     #{name => "help", args => "[COMMAND]", about => "shows this text, or a command's own",
       options => [], run => fun help/2},
     #{name => "version", args => "", about => "shows the version of fairnif",
       options => [], run => fun version/2}].

experiment_options() ->
    [{"--quick", scale, {flag, quick}, "", "a short run of some seconds"},
     {"--full", scale, {flag, full}, "", "as much as the published experiment"}
     | shared(["--size", "--json", "--html"])].

shared(Names) ->
    lists:map(fun fairnif_check_cli_text:option/1, Names).

%% @doc Runs the command line and ends the VM with its exit code.
-spec main([string()]) -> no_return().
main(Args) ->
    halt(run(Args)).

%% @doc Runs the command line: the first argument is a command.
-spec run([string()]) -> fairnif_check_cli:exit_code().
run([Flag | Rest]) when Flag =:= "--help"; Flag =:= "-h" ->
    run(["help" | [Arg || Arg <- Rest, Arg =/= "--help", Arg =/= "-h"]]);
run(["--version" | Rest]) ->
    run(["version" | Rest]);
run(Args) ->
    fairnif_check_cli:run(commands(), Args).

%% ---- commands ----

demo(Opts, []) ->
    fairnif_check_cli_text:note(Opts,
         "Native code XORs a binary of ~ts, in a plain NIF, in a dirty NIF "
         "and in one on fairnif.\nEach is checked, timed, traced, and run beside an "
         "Erlang process: about a quarter of a minute.\n"
         "All eight forms: bin/fairnif experiment exor\n\n",
         [fairnif_check_table:bytes(
            maps:get(size, Opts, fairnif_exp_exor:default_size()))]),
    experiment(fairnif_exp_exor, Opts#{forms => [exor_bad, exor_dirty, exor]});
demo(_, [Arg | _]) ->
    fairnif_check_cli_text:usage("demo takes no `~ts'", [Arg]).

experiments(Opts, []) ->
    maps:size(Opts) =:= 0
        orelse fairnif_check_cli_text:usage("the list of experiments takes no option", []),
    io:put_chars([io_lib:format("~-14s ~ts~n", [Name, Line])
                  || M <- fairnif_experiment:all(),
                     #{name := Name, description := Line} <- [fairnif_experiment:about(M)]]),
    0;
experiments(Opts, [Name]) ->
    case fairnif_experiment:find(Name) of
        {ok, Module} ->
            heeded(Module, Opts),
            experiment(Module, Opts);
        error ->
            fairnif_check_cli_text:usage("no experiment `~ts'; `fairnif experiment' lists them",
                                       [Name])
    end;
experiments(_, [_, Arg | _]) ->
    fairnif_check_cli_text:usage("experiment takes no `~ts'", [Arg]).

%% An option that would have no effect must not look as if it had one.
heeded(Module, Opts) ->
    #{name := Name, options := Known} = fairnif_experiment:about(Module),
    case maps:keys(Opts) -- [json, html | Known] of
        [] ->
            ok;
        [Key | _] ->
            {Option, Key, _, _, _} = lists:keyfind(Key, 2, experiment_options()),
            fairnif_check_cli_text:usage("`~ts' is not an option of the experiment `~s'",
                                       [Option, Name])
    end.

report(#{html := Page} = Opts, Files) when length(Files) =:= 1; length(Files) =:= 2 ->
    fairnif_check_cli_text:writable(Opts),
    Reports = [case fairnif_check_page:read(File) of
                   {ok, Json} -> Json;
                   {error, Text} -> fairnif_check_cli_text:usage("~ts", [Text])
               end || File <- Files],
    ok = fairnif_check_page:write(Page, lists:zip(labels(Files), Reports)),
    0;
report(#{html := _}, []) ->
    fairnif_check_cli_text:usage("report needs a file that --json has written, or two", []);
report(#{html := _}, [_, _, Arg | _]) ->
    fairnif_check_cli_text:usage("report compares two files: what is `~ts'?", [Arg]);
report(_, _) ->
    fairnif_check_cli_text:usage("report needs `--html FILE', where the page goes", []).

%% What two files are called on the page; one needs no name.
labels([_]) -> [""];
labels(Files) ->
    Short = [filename:basename(F, ".json") || F <- Files],
    case lists:uniq(Short) of
        [_, _] -> Short;
        [_] -> Files
    end.

bench(Opts, Runs) ->
    fairnif_check_cli_text:writable(Opts),
    fairnif_exp_bench:main(Opts, Runs).

-spec outside(term(), term()) -> no_return().
outside(_, _) ->
    fairnif_check_cli_text:usage("only bin/fairnif runs `stacks' and `record'", []).

help(_, []) ->
    io:put_chars(fairnif_check_cli:help(commands())),
    0;
help(_, [Name]) ->
    io:put_chars(fairnif_check_cli:help(commands(), Name)),
    0;
help(_, [_, Arg | _]) ->
    fairnif_check_cli_text:usage("help takes one command: what is `~ts'?", [Arg]).

version(_, [Arg | _]) ->
    fairnif_check_cli_text:usage("version takes no `~ts'", [Arg]);
version(_, []) ->
    _ = application:load(fairnif_check),
    {ok, Version} = application:get_key(fairnif_check, vsn),
    io:format("fairnif ~ts~n", [Version]),
    0.

experiment(Module, Opts) ->
    %% A file that cannot be written is known before the work, not after it.
    fairnif_check_cli_text:writable(Opts),
    Context = fairnif_check_machine:context(),
    Progress = fairnif_check_progress:start(fairnif_experiment:steps(Module, Opts)),
    case fairnif_experiment:run(Module, Opts#{progress => Progress}) of
        {ok, #{ok := Ok} = Result} ->
            Shown = fairnif_experiment:format(Module, Result),
            fairnif_check_cli_text:note(Opts, "~ts", [Shown]),
            fairnif_check_cli_text:write(
              Opts, fairnif_experiment:report(Module, Result, Shown, Context)),
            case Ok of true -> 0; false -> 1 end;
        {error, {Kind, Text}} ->
            fairnif_check_cli_text:complain(Text),
            case Kind of unsure -> 3; failed -> 1 end
    end.
