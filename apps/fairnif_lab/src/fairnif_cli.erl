%% The command line: bin/fairnif.
%%
%% Exit codes: 0 all well, 1 not well-behaved or failed, 2 usage, 3 this
%% machine is too small or too noisy to say.
-module(fairnif_cli).

-export([main/1, run/1]).

-type exit_code() :: 0..3.
-type options() :: #{size => pos_integer(), json => string(), scale => quick | full}.
%% What a command gets: its options and what else stood on the line.
-type command() :: #{name := string(), args := string(), about := string(),
                     options := [string()],
                     run := fun((options(), [string()]) -> exit_code())}.

%% The commands, in the order of the help.  Adding one means adding a row.
-spec commands() -> [command()].
commands() ->
    [#{name => "demo", args => "[--size BYTES] [--json FILE]",
       about => "a large binary XORed by native code, fair and unfair",
       options => ["--size", "--json"], run => fun demo/2},
     #{name => "lab", args => "[NAME [--quick | --full] [--size BYTES] [--json FILE]]",
       about => "runs an experiment; without a name, lists them",
       options => ["--quick", "--full", "--size", "--json"], run => fun lab/2},
     #{name => "bench", args => "[RUN ...] [--json FILE]",
       about => "the project's figures, each beside its peer",
       options => ["--json"], run => fun bench/2},
     #{name => "help", args => "", about => "this text",
       options => [], run => fun help/2},
     #{name => "version", args => "", about => "the version of fairnif",
       options => [], run => fun version/2}].

%% The options: name, key, what turns its text into a value or throws; or, of
%% one that takes no text, the value.
options() ->
    [{"--size", size, fun bytes/1},
     {"--json", json, fun(File) -> File end},
     {"--quick", scale, {flag, quick}},
     {"--full", scale, {flag, full}}].

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
            complain([Text, "\n`fairnif help' lists the commands."]),
            2
    end.

dispatch([]) ->
    io:put_chars(standard_error, help_text()),
    2;
dispatch([Flag | Rest]) when Flag =:= "--help"; Flag =:= "-h" ->
    dispatch(["help" | Rest]);
dispatch(["--version" | Rest]) ->
    dispatch(["version" | Rest]);
dispatch([Name | Rest]) ->
    case [C || #{name := N} = C <- commands(), N =:= Name] of
        [#{run := Run, options := Allowed}] ->
            {Opts, Others} = parse(Rest, Allowed, #{}, []),
            Run(Opts, Others);
        [] ->
            usage("there is no command `~ts'", [Name])
    end.

parse([], _, Opts, Others) ->
    {Opts, lists:reverse(Others)};
parse(["--" ++ _ = Arg | Rest], Allowed, Opts, Others) ->
    [Name | Inline] = string:split(Arg, "="),
    lists:member(Name, Allowed) orelse
        usage("`~ts' is no option of this command", [Name]),
    {Name, Key, Convert} = lists:keyfind(Name, 1, options()),
    case {Convert, Inline ++ Rest} of
        {{flag, Value}, _} ->
            Inline =:= [] orelse usage("`~ts' takes no value", [Name]),
            maps:get(Key, Opts, Value) =:= Value orelse
                usage("`~ts' contradicts another option", [Name]),
            parse(Rest, Allowed, Opts#{Key => Value}, Others);
        {_, [Value | Rest1]} ->
            parse(Rest1, Allowed, Opts#{Key => Convert(Value)}, Others);
        {_, []} ->
            usage("`~ts' needs a value", [Name])
    end;
parse([Arg | Rest], Allowed, Opts, Others) ->
    parse(Rest, Allowed, Opts, [Arg | Others]).

%% 1000, 64k, 512m, 2g: the suffixes are powers of 1024.
bytes(Text) ->
    Units = #{$k => 1024, $m => 1048576, $g => 1073741824},
    case re:run(Text, "^([0-9]{1,15})([kmg]?)$",
                [caseless, {capture, all_but_first, list}]) of
        {match, [Digits, Unit]} ->
            Factor = case string:lowercase(Unit) of
                         [U] -> maps:get(U, Units);
                         [] -> 1
                     end,
            case list_to_integer(Digits) * Factor of
                0 -> usage("a size must be at least 1", []);
                Size -> Size
            end;
        nomatch ->
            usage("`~ts' is no size: give bytes, or a number with k, m or g",
                  [Text])
    end.

%% ---- commands ----

demo(Opts, []) ->
    note(Opts,
         "A binary of ~ts is XORed by native code, in each way that a NIF can "
         "be written.\nEach way is checked, timed, traced, and run beside an "
         "Erlang process.\n\n",
         [fairnif_lab_table:bytes(
            maps:get(size, Opts, fairnif_lab_exor:default_size()))]),
    experiment(fairnif_lab_exor, Opts);
demo(_, [Arg | _]) ->
    usage("demo takes no `~ts'", [Arg]).

lab(Opts, []) ->
    maps:size(Opts) =:= 0 orelse usage("the list of experiments takes no option", []),
    io:put_chars([io_lib:format("~-14s ~ts~n", [M:name(), M:description()])
                  || M <- fairnif_lab_experiment:all()]),
    0;
lab(Opts, [Name]) ->
    case fairnif_lab_experiment:find(Name) of
        {ok, Module} ->
            heeded(Module, Opts),
            experiment(Module, Opts);
        error -> usage("there is no experiment `~ts'; `fairnif lab' lists them",
                       [Name])
    end;
lab(_, [_, Arg | _]) ->
    usage("lab takes no `~ts'", [Arg]).

%% An option that would have no effect must not look as if it had one.
heeded(Module, Opts) ->
    case maps:keys(Opts) -- [json | fairnif_lab_experiment:known(Module)] of
        [] ->
            ok;
        [Key | _] ->
            {Option, Key, _} = lists:keyfind(Key, 2, options()),
            usage("`~ts' is no option of the experiment `~s'", [Option, Module:name()])
    end.

%% No application of the umbrella: built by `make bench', from bench/.
bench(Opts, Runs) ->
    case code:ensure_loaded(fairnif_bench) of
        {module, Bench} ->
            writable(Opts),
            Bench:main(Opts, Runs);
        {error, _} ->
            complain("the figures are not built; run `make -C bench'"),
            1
    end.

help(_, _) ->
    io:put_chars(help_text()),
    0.

version(_, _) ->
    _ = application:load(fairnif_lab),
    {ok, Version} = application:get_key(fairnif_lab, vsn),
    io:format("fairnif ~ts~n", [Version]),
    0.

experiment(Module, Opts) ->
    %% A file that cannot be written is known before the work, not after it.
    writable(Opts),
    Context = fairnif_lab_machine:context(),
    Progress = fairnif_lab_progress:start(Module:steps(Opts)),
    case Module:run(Opts#{progress => Progress}) of
        {ok, #{ok := Ok} = Result} ->
            note(Opts, "~ts", [Module:format(Result)]),
            write(Opts, fairnif_lab_experiment:report(Module, Result, Context)),
            case Ok of true -> 0; false -> 1 end;
        {error, {Kind, Text}} ->
            fairnif_lab_progress:stop(Progress),
            complain(Text),
            case Kind of cannot_say -> 3; failed -> 1 end
    end.

help_text() ->
    Width = lists:max([length(usage_of(C)) || C <- commands()]),
    ["Usage: fairnif COMMAND\n\n",
     [io_lib:format("  ~-*s  ~ts~n", [Width, usage_of(C), maps:get(about, C)])
      || C <- commands()],
     "\nBYTES: a number, or one with k, m or g (1024 and its powers).\n"
     "FILE: raw samples as JSON; `-' is standard output.\n"
     "--quick: a smoke run of seconds; --full: as much as was published.\n"
     "Exit code: 0 well, 1 not well-behaved or failed, 2 usage, 3 this "
     "machine cannot say.\n"].

usage_of(#{name := Name, args := Args}) ->
    string:trim(Name ++ " " ++ Args).

%% ---- output ----

%% Text for people; with `--json -' standard output is for the JSON alone.
note(#{json := "-"}, Format, Args) ->
    io:format(standard_error, Format, Args);
note(_, Format, Args) ->
    io:format(Format, Args).

writable(#{json := File}) when File =/= "-" ->
    case file:open(File, [append]) of
        {ok, Device} -> ok = file:close(Device);
        {error, Reason} -> usage("cannot write ~ts: ~ts",
                                 [File, file:format_error(Reason)])
    end;
writable(_) ->
    ok.

write(#{json := "-"}, Value) ->
    io:put_chars([fairnif_lab_json:encode(Value), $\n]);
write(#{json := File}, Value) ->
    ok = file:write_file(File, [fairnif_lab_json:encode(Value), $\n]);
write(_, _) ->
    ok.

complain(Text) ->
    io:format(standard_error, "fairnif: ~ts~n", [Text]).

-spec usage(io:format(), [term()]) -> no_return().
usage(Format, Args) ->
    throw({usage, io_lib:format(Format, Args)}).
