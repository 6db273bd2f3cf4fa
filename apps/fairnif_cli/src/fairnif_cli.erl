%% The command line: bin/fairnif.
%%
%% Exit codes: 0 all well, 1 not well-behaved or failed, 2 usage, 3 this
%% machine is too small or too noisy to say.
-module(fairnif_cli).

-export([main/1, run/1]).

-type exit_code() :: 0..3.
-type options() :: #{size => pos_integer(), json => string(), scale => quick | full,
                     atom() => term()}.
%% Name, key, and what turns its text into a value (given what stood there before) or throws; or,
%% of one that takes no text, the value. For the help: what the text is called, and what it does.
-type option() :: {string(), atom(), fun((string()) -> term()) | {flag, term()}
                   | {each, fun((string()) -> term())}, Text :: string(), About :: string()}.
%% What a command gets: its options and what else stood on the line. Its own help has `before' and
%% `after_options' round its options.
-type command() :: #{name := string(), args := string(), about := string(),
                     options := [string() | option()],
                     run := fun((options(), [string()]) -> exit_code()),
                     before => string(), after_options => string()}.

-export_type([option/0]).

%% The commands, in the order of the help.  Adding one means adding a row.
-spec commands() -> [command()].
commands() ->
    [#{name => "demo", args => "[--size BYTES] [--json FILE] [--html FILE]",
       about => "a large binary XORed by native code, fair and unfair",
       options => ["--size", "--json", "--html"], run => fun demo/2},
     #{name => "check", args => "EXPRESSION [OPTION ...]",
       about => "is this function well-behaved?",
       before => fairnif_cli_check:before(), after_options => fairnif_cli_check:after_options(),
       options => fairnif_cli_check:options(), run => fun check/2},
     #{name => "lab",
       args => "[NAME [--quick | --full] [--size BYTES] [--json FILE] [--html FILE]]",
       about => "runs an experiment; without a name, lists them",
       options => ["--quick", "--full", "--size", "--json", "--html"], run => fun lab/2},
     #{name => "report", args => "FILE.json [FILE.json] --html FILE",
       about => "what --json wrote, as a page to look at; two files are compared",
       options => ["--html"], run => fun report/2},
     #{name => "new", args => "NAME [--elixir] [--fairnif git|hex|DIR]",
       about => "writes a project with a NIF on fairnif",
       options => fairnif_cli_new:options(), run => fun new/2},
     #{name => "watch", args => "NODE [NODE ...] [OPTION ...]",
       about => "live nodes: who blocks a scheduler?",
       before => fairnif_cli_watch:before(), after_options => fairnif_cli_watch:after_options(),
       options => fairnif_cli_watch:options(), run => fun fairnif_cli_watch:run/2},
     #{name => "bench", args => "[RUN ...] [--json FILE]",
       about => "the project's figures, each beside its peer",
       options => ["--json"], run => fun bench/2},
     #{name => "help", args => "[COMMAND]", about => "this text, or a command's own",
       options => [], run => fun help/2},
     #{name => "version", args => "", about => "the version of fairnif",
       options => [], run => fun version/2}].

%% The options that several commands share.
-spec options() -> [option()].
options() ->
    [{"--size", size, fun fairnif_cli_text:bytes/1, "BYTES",
      "of the input: a number, or one with k, m or g (1024 and its powers)"},
     {"--json", json, fun(File) -> File end, "FILE",
      "figures and raw samples; `-' is standard output"},
     {"--html", html, fun fairnif_cli_text:html/1, "FILE", "the same as a page to look at"},
     {"--quick", scale, {flag, quick}, "", "a smoke run of seconds"},
     {"--full", scale, {flag, full}, "", "as much as was published"}].

%% @doc Runs the command line and ends the VM with its exit code.
-spec main([string()]) -> no_return().
main(Args) ->
    halt(run(Args)).

%% @doc Runs the command line: the first argument is a command.
-spec run([string()]) -> exit_code().
run(Args) ->
    _ = case fairnif_lab_table:style() of
            unicode -> [io:setopts(D, [{encoding, unicode}])
                        || D <- [standard_io, standard_error]];
            ascii -> ok
        end,
    try dispatch(Args)
    catch
        throw:{usage, Text} ->
            fairnif_cli_text:complain([Text, "\n`fairnif help' lists the commands."]),
            2
    end.

dispatch([]) ->
    io:put_chars(standard_error, help_text()),
    2;
dispatch([Flag | Rest]) when Flag =:= "--help"; Flag =:= "-h" ->
    dispatch(["help" | [Arg || Arg <- Rest, not is_help(Arg)]]);
dispatch(["--version" | Rest]) ->
    dispatch(["version" | Rest]);
dispatch([Name | Rest]) ->
    #{run := Run, options := Allowed} = Command = command(Name),
    case lists:any(fun is_help/1, Rest) of
        true ->
            io:put_chars(help_text(Command)),
            0;
        false ->
            {Opts, Others} = parse(Rest, Allowed, #{}, []),
            Run(Opts, Others)
    end.

is_help(Arg) ->
    Arg =:= "--help" orelse Arg =:= "-h".

command(Name) ->
    case [C || #{name := N} = C <- commands(), N =:= Name] of
        [Command] -> Command;
        [] -> fairnif_cli_text:usage("there is no command `~ts'", [Name])
    end.

parse([], _, Opts, Others) ->
    {Opts, lists:reverse(Others)};
parse([Arg | Rest], Allowed, Opts, Others) ->
    [Name | Inline] = string:split(Arg, "="),
    case {option(Name, Allowed), Arg} of
        {{Name, Key, Convert, _, _}, _} ->
            {Opts1, Rest1} = value(Name, Key, Convert, Inline, Rest, Opts),
            parse(Rest1, Allowed, Opts1, Others);
        {none, "--" ++ _} ->
            fairnif_cli_text:usage("`~ts' is no option of this command", [Name]);
        {none, _} ->
            parse(Rest, Allowed, Opts, [Arg | Others])
    end.

option(Name, Allowed) ->
    case lists:keyfind(Name, 1, rows(Allowed)) of
        false -> none;
        Row -> Row
    end.

%% Of a command: those that it shares with others stand there by name.
rows(Allowed) ->
    [case Option of
         {_, _, _, _, _} -> Option;
         Name -> lists:keyfind(Name, 1, options())
     end || Option <- Allowed].

value(Name, Key, {flag, Value}, Inline, Rest, Opts) ->
    Inline =:= [] orelse fairnif_cli_text:usage("`~ts' takes no value", [Name]),
    maps:get(Key, Opts, Value) =:= Value orelse
        fairnif_cli_text:usage("`~ts' contradicts another option", [Name]),
    {Opts#{Key => Value}, Rest};
value(Name, Key, Convert, Inline, Rest, Opts) ->
    case {Convert, Inline ++ Rest} of
        {_, []} -> fairnif_cli_text:usage("`~ts' needs a value", [Name]);
        %% May stand there several times.
        {{each, Each}, [Text | Rest1]} ->
            {Opts#{Key => maps:get(Key, Opts, []) ++ [Each(Text)]}, Rest1};
        {_, [Text | Rest1]} -> {Opts#{Key => Convert(Text)}, Rest1}
    end.

%% ---- commands ----

demo(Opts, []) ->
    fairnif_cli_text:note(Opts,
         "A binary of ~ts is XORed by native code, in each way that a NIF can "
         "be written.\nEach way is checked, timed, traced, and run beside an "
         "Erlang process.\n\n",
         [fairnif_lab_table:bytes(
            maps:get(size, Opts, fairnif_lab_exor:default_size()))]),
    experiment(fairnif_lab_exor, Opts);
demo(_, [Arg | _]) ->
    fairnif_cli_text:usage("demo takes no `~ts'", [Arg]).

check(Opts, [Expression]) ->
    fairnif_cli_text:writable(Opts),
    fairnif_cli_check:run(Expression, Opts);
check(_, []) ->
    fairnif_cli_text:usage("check needs an expression, such as 'crypto:hash(sha256, Bin)'", []);
check(_, [_, Arg | _]) ->
    fairnif_cli_text:usage("check takes one expression: what is `~ts'? (Quote what has blanks.)",
                           [Arg]).

lab(Opts, []) ->
    maps:size(Opts) =:= 0
        orelse fairnif_cli_text:usage("the list of experiments takes no option", []),
    io:put_chars([io_lib:format("~-14s ~ts~n", [M:name(), M:description()])
                  || M <- fairnif_lab_experiment:all()]),
    0;
lab(Opts, [Name]) ->
    case fairnif_lab_experiment:find(Name) of
        {ok, Module} ->
            heeded(Module, Opts),
            experiment(Module, Opts);
        error -> fairnif_cli_text:usage("there is no experiment `~ts'; `fairnif lab' lists them",
                       [Name])
    end;
lab(_, [_, Arg | _]) ->
    fairnif_cli_text:usage("lab takes no `~ts'", [Arg]).

%% An option that would have no effect must not look as if it had one.
heeded(Module, Opts) ->
    case maps:keys(Opts) -- [json, html | fairnif_lab_experiment:known(Module)] of
        [] ->
            ok;
        [Key | _] ->
            {Option, Key, _, _, _} = lists:keyfind(Key, 2, options()),
            fairnif_cli_text:usage("`~ts' is no option of the experiment `~s'",
                                   [Option, Module:name()])
    end.

report(#{html := Page} = Opts, Files) when length(Files) =:= 1; length(Files) =:= 2 ->
    fairnif_cli_text:writable(Opts),
    Reports = [case fairnif_lab_page:read(File) of
                   {ok, Json} -> Json;
                   {error, Text} -> fairnif_cli_text:usage("~ts", [Text])
               end || File <- Files],
    ok = fairnif_lab_page:write(Page, lists:zip(told_apart(Files), Reports)),
    0;
report(#{html := _}, []) ->
    fairnif_cli_text:usage("report needs a file that --json has written, or two", []);
report(#{html := _}, [_, _, Arg | _]) ->
    fairnif_cli_text:usage("report compares two files: what is `~ts'?", [Arg]);
report(_, _) ->
    fairnif_cli_text:usage("report needs `--html FILE', where the page goes", []).

%% What two files are called on the page; one needs no name.
told_apart([_]) -> [""];
told_apart(Files) ->
    Short = [filename:basename(F, ".json") || F <- Files],
    case lists:uniq(Short) of
        [_, _] -> Short;
        [_] -> Files
    end.

new(Opts, [Name]) ->
    fairnif_cli_new:run(Name, Opts);
new(_, []) ->
    fairnif_cli_text:usage("new needs a name, that of the application", []);
new(_, [_, Arg | _]) ->
    fairnif_cli_text:usage("new takes one name: what is `~ts'?", [Arg]).

%% No application of the umbrella: built by `make bench', from bench/.
bench(Opts, Runs) ->
    case code:ensure_loaded(fairnif_bench) of
        {module, Bench} ->
            fairnif_cli_text:writable(Opts),
            Bench:main(Opts, Runs);
        {error, _} ->
            fairnif_cli_text:complain("the figures are not built; run `make -C bench'"),
            1
    end.

help(_, []) ->
    io:put_chars(help_text()),
    0;
help(_, [Name]) ->
    io:put_chars(help_text(command(Name))),
    0;
help(_, [_, Arg | _]) ->
    fairnif_cli_text:usage("help takes one command: what is `~ts'?", [Arg]).

version(_, [Arg | _]) ->
    fairnif_cli_text:usage("version takes no `~ts'", [Arg]);
version(_, []) ->
    _ = application:load(fairnif_lab),
    {ok, Version} = application:get_key(fairnif_lab, vsn),
    io:format("fairnif ~ts~n", [Version]),
    0.

experiment(Module, Opts) ->
    %% A file that cannot be written is known before the work, not after it.
    fairnif_cli_text:writable(Opts),
    Context = fairnif_lab_machine:context(),
    Progress = fairnif_lab_progress:start(Module:steps(Opts)),
    case Module:run(Opts#{progress => Progress}) of
        {ok, #{ok := Ok} = Result} ->
            Shown = Module:format(Result),
            fairnif_cli_text:note(Opts, "~ts", [Shown]),
            fairnif_cli_text:write(
              Opts, fairnif_lab_experiment:report(Module, Result, Shown, Context)),
            case Ok of true -> 0; false -> 1 end;
        {error, {Kind, Text}} ->
            fairnif_lab_progress:stop(Progress),
            fairnif_cli_text:complain(Text),
            case Kind of cannot_say -> 3; failed -> 1 end
    end.

help_text() ->
    Width = lists:max([length(usage_of(C)) || C <- commands()]),
    ["Usage: fairnif COMMAND\n\n",
     [io_lib:format("  ~-*s  ~ts~n", [Width, usage_of(C), maps:get(about, C)])
      || C <- commands()],
     "\n`fairnif COMMAND --help' lists the options of a command.\n"
     "Exit code: 0 well, 1 not well-behaved or failed, 2 usage, 3 this "
     "machine cannot say.\n"].

%% Of one command.
help_text(#{about := About, options := Allowed} = Command) ->
    Rows = [{string:trim([Name, " ", Text]), What} || {Name, _, _, Text, What} <- rows(Allowed)],
    Width = lists:max([0 | [string:length(Option) || {Option, _} <- Rows]]),
    ["Usage: fairnif ", usage_of(Command), "\n\n",
     maps:get(before, Command, [About, "\n"]),
     ["\n" || Rows =/= []],
     [io_lib:format("  ~-*ts  ~ts~n", [Width, Option, What]) || {Option, What} <- Rows],
     [["\n", Text] || #{after_options := Text} <- [Command]]].

usage_of(#{name := Name, args := Args}) ->
    string:trim(Name ++ " " ++ Args).
