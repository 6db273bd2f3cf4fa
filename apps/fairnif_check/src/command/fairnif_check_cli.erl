%% Commands of a command line, each a row of data: which is meant, its options, its help, its exit
%% code. The checker's own is `check', which the plugin of rebar3 and the Mix task run; bin/fairnif
%% has more (fairnif_cli).
%%
%% Exit codes: 0 all well, 1 not well-behaved or failed, 2 wrong usage, 3 this
%% machine is too small or too noisy to say.
-module(fairnif_check_cli).

-export([main/1, run/1, run/2, help/1, help/2]).

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
                     options := [option()],
                     run := fun((options(), [string()]) -> exit_code()),
                     before => string(), after_options => string()}.

-export_type([exit_code/0, options/0, option/0, command/0]).

%% @doc Runs a command of the checker and ends the VM with its exit code.
-spec main([string()]) -> no_return().
main(Args) ->
    halt(run(Args)).

%% @doc Runs a command of the checker: the first argument is its name.
-spec run([string()]) -> exit_code().
run(Args) ->
    run([fairnif_check_command:command()], Args).

%% @doc Runs one of these commands: the first argument is its name.
-spec run([command()], [string()]) -> exit_code().
run(Commands, Args) ->
    _ = case fairnif_check_table:style() of
            unicode -> [io:setopts(D, [{encoding, unicode}])
                        || D <- [standard_io, standard_error]];
            ascii -> ok
        end,
    try dispatch(Commands, Args)
    catch
        throw:{usage, Text} ->
            fairnif_check_cli_text:complain([Text, $\n, where_to_look(Commands, Args)]),
            2
    end.

where_to_look(Commands, [Name | _]) ->
    case [N || #{name := N, options := [_ | _]} <- Commands, N =:= Name] of
        [_] -> ["`fairnif ", Name, " --help' lists its options."];
        [] -> where_to_look(Commands, [])
    end;
where_to_look(_, []) ->
    "`fairnif help' lists the commands.".

dispatch(Commands, []) ->
    io:put_chars(standard_error, help(Commands)),
    2;
dispatch(Commands, [Name | Rest]) ->
    #{run := Run, options := Options} = command(Commands, Name),
    case lists:member("--help", Rest) orelse lists:member("-h", Rest) of
        true ->
            io:put_chars(help(Commands, Name)),
            0;
        false ->
            {Opts, Others} = parse(Rest, Options, #{}, []),
            Run(Opts, Others)
    end.

command(Commands, Name) ->
    case [C || #{name := N} = C <- Commands, N =:= Name] of
        [Command] -> Command;
        [] -> fairnif_check_cli_text:usage("there is no command `~ts'", [Name])
    end.

parse([], _, Opts, Others) ->
    {Opts, lists:reverse(Others)};
parse([Arg | Rest], Options, Opts, Others) ->
    [Name | Inline] = string:split(Arg, "="),
    case {lists:keyfind(Name, 1, Options), Arg} of
        {{Name, Key, Convert, _, _}, _} ->
            {Opts1, Rest1} = value(Name, Key, Convert, Inline, Rest, Opts),
            parse(Rest1, Options, Opts1, Others);
        {false, "--" ++ _} ->
            fairnif_check_cli_text:usage("`~ts' is not an option of this command", [Name]);
        {false, _} ->
            parse(Rest, Options, Opts, [Arg | Others])
    end.

value(Name, Key, {flag, Value}, Inline, Rest, Opts) ->
    Inline =:= [] orelse fairnif_check_cli_text:usage("`~ts' takes no value", [Name]),
    maps:get(Key, Opts, Value) =:= Value orelse
        fairnif_check_cli_text:usage("`~ts' contradicts another option", [Name]),
    {Opts#{Key => Value}, Rest};
value(Name, Key, Convert, Inline, Rest, Opts) ->
    case {Convert, Inline ++ Rest} of
        {_, []} -> fairnif_check_cli_text:usage("`~ts' needs a value", [Name]);
        %% May stand there several times.
        {{each, Each}, [Text | Rest1]} ->
            {Opts#{Key => maps:get(Key, Opts, []) ++ [Each(Text)]}, Rest1};
        {_, [Text | Rest1]} -> {Opts#{Key => Convert(Text)}, Rest1}
    end.

%% @doc The help: what commands there are.
-spec help([command()]) -> unicode:chardata().
help(Commands) ->
    Width = lists:max([length(usage_of(C)) || C <- Commands]),
    ["Usage: fairnif COMMAND\n\n",
     [io_lib:format("  ~-*s  ~ts~n", [Width, usage_of(C), maps:get(about, C)])
      || C <- Commands],
     "\n`fairnif COMMAND --help' lists the options of a command.\n"
     "Exit code: 0 well, 1 not well-behaved or failed, 2 wrong usage, 3 this "
     "machine cannot say.\n"].

%% @doc The help of the command with this name. A usage error where there is none.
-spec help([command()], string()) -> unicode:chardata().
help(Commands, Name) ->
    #{about := About, options := Options} = Command = command(Commands, Name),
    Rows = [{string:trim([Option, " ", Text]), What} || {Option, _, _, Text, What} <- Options],
    Width = lists:max([0 | [string:length(Option) || {Option, _} <- Rows]]),
    ["Usage: fairnif ", usage_of(Command), "\n\n",
     maps:get(before, Command, [About, "\n"]),
     ["\n" || Rows =/= []],
     [io_lib:format("  ~-*ts  ~ts~n", [Width, Option, What]) || {Option, What} <- Rows],
     [["\n", Text] || #{after_options := Text} <- [Command]]].

usage_of(#{name := Name, args := Args}) ->
    string:trim(Name ++ " " ++ Args).
