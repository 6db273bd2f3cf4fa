%% The rebar3 plugin: `rebar3 fairnif check', as bin/fairnif has it.
%%
%% It runs in rebar3's own node and measures nothing there: the checker's command gets a node of its
%% own, with the project's code path and one scheduler that never spins.
-module(rebar3_fairnif).

-export([init/1, do/1, format_error/1]).
%% For the tests.
-export([options/0, typed/2, arguments/2]).

%% As getopt wants it: name, short form, long form, type, help.
-type option() :: {atom(), undefined | char(), undefined | string(), boolean | string, string()}.
-type reason() :: no_lab | no_sh | {exit_code, pos_integer()}.

%% Flags and starting point are those of bin/fairnif. The shell knows what is a terminal.
-define(SCRIPT,
        "if [ -t 2 ]; then FAIRNIF_STDERR=terminal; export FAIRNIF_STDERR; fi; "
        "exec erl +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none +Bd -noinput "
        "-eval 'fairnif_check_cli:main(init:get_plain_arguments())' \"$@\"").

%% @doc Called by rebar3: adds the command, in the namespace `fairnif'.
-spec init(State) -> {ok, State} when State :: term().
init(State) ->
    About = "Is this NIF or BIF well-behaved, and why?",
    %% The checker that explains the options need not be compiled yet when rebar3 asks.
    Help = "\n`rebar3 fairnif check --help' says what the options do.",
    {ok, rebar_state:add_provider(
           State,
           providers:create([{name, check},
                             {namespace, fairnif},
                             {module, ?MODULE},
                             {bare, true},
                             {deps, [{default, compile}]},
                             %% As eunit and ct: the checker is a dependency of the test profile.
                             {profiles, [test]},
                             {opts, options()},
                             {short_desc, About},
                             {desc, About ++ Help},
                             {example, "rebar3 fairnif check 'crypto:hash(sha256, Bin)' "
                                       "--size 1k,1m"}]))}.

%% @doc What rebar3 must know of the options so that it lets them pass. What they mean is said in
%% fairnif_check_command, and a test compares the names.
-spec options() -> [option()].
options() ->
    %% getopt takes -pa for a short option p with the value "a".
    [{pa, $p, undefined, string, "-pa DIR"}
     | [option(Name, string)
        || Name <- ["size", "file", "init", "flags", "against", "beside", "runs", "time", "limit",
                    "timeout", "json", "html", "junit", "save-baseline", "baseline"]]]
        ++ [option("strict", boolean)].

option(Name, Type) ->
    {list_to_atom(Name), undefined, Name, Type, ""}.

%% @doc Called by rebar3: runs the command and ends rebar3 with its exit code. So it is the last
%% task of a line, and all that follows belongs to it: rebar3 takes a comma between two arguments of
%% a function for one between two tasks. In a shell of rebar3 (`r3:do') it returns, `{ok, State}'
%% for exit code 0.
-spec do(State) -> {ok, State} | {error, {module(), reason()}} when State :: term().
do(State) ->
    Paths = [rebar_app_info:ebin_dir(App) || App <- rebar_state:project_apps(State)]
        ++ rebar_state:code_paths(State, all_deps),
    case {[P || P <- Paths, filelib:is_file(filename:join(P, "fairnif_check_cli.beam"))],
          os:find_executable("sh")} of
        {[], _} ->
            {error, {?MODULE, no_lab}};
        {_, false} ->
            {error, {?MODULE, no_sh}};
        {_, Sh} ->
            Typed = typed(init:get_plain_arguments(), rebar_state:command_args(State)),
            Args = arguments(Paths, ["check" | Typed]),
            finish(wait(open_port({spawn_executable, Sh},
                                  [{args, ["-c", ?SCRIPT, "sh" | Args]},
                                   %% It keeps rebar3's terminal.
                                   nouse_stdio, exit_status])),
                   State)
    end.

%% @doc What stood after `fairnif check' on rebar3's command line; where that is not to be seen,
%% what rebar3 made of it.
-spec typed([string()], [string()]) -> [string()].
typed(["fairnif", "check" | Args], _) -> Args;
typed([_ | Rest], Split) -> typed(Rest, Split);
typed([], Split) -> Split.

%% @doc The arguments of the node: code paths, each once, then the command line's own.
-spec arguments([file:filename()], [string()]) -> [string()].
arguments(Paths, Args) ->
    ["-pa" | lists:uniq(Paths)] ++ ["-extra" | Args].

wait(Port) ->
    receive
        {Port, {exit_status, Code}} -> Code
    end.

finish(Code, State) ->
    case {whereis(rebar_agent), Code} of
        {undefined, _} -> erlang:halt(Code);
        {_Shell, 0} -> {ok, State};
        {_Shell, _} -> {error, {?MODULE, {exit_code, Code}}}
    end.

%% @doc The error as a text for a person.
-spec format_error(reason()) -> iolist().
format_error(no_lab) ->
    "the checker is not among the dependencies: add fairnif_check (and fairnif) to the deps of "
    "the test profile in rebar.config";
format_error(no_sh) ->
    "there is no sh on the PATH";
format_error({exit_code, Code}) ->
    io_lib:format("fairnif: exit code ~b", [Code]).
