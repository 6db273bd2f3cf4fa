%% A named experiment: `bin/fairnif experiment NAME'.
%%
%% An experiment is data, in one module with this behaviour; adding one means adding that module to
%% this application, and nothing else.
-module(fairnif_experiment).

-export([all/0, find/1, about/1, steps/2, run/2, peer/2, format/2, report/4]).

-export_type([experiment/0, scale/0, options/0, step/0, result/0, error/0, outcome/0]).

-type experiment() ::
        #{name := atom(),
          description := unicode:chardata(),    % one line for the list of experiments
          options => [atom()],                  % that it heeds, besides `progress'; only `scale'
          needs => [module()],                  % the examples without which there is none of it
          %% how many steps it says; measures, or throws an error()
          steps := pos_integer() | fun((options()) -> pos_integer()),
          measure := fun((scale(), options(), step()) -> result()),
          %% what it does in a node of its own: fairnif_exp:in_peer/3
          peer => fun((term()) -> term()),
          %% the table, and a sentence that says what to see in it
          format := fun((result()) -> unicode:chardata())}.
%% A smoke run of seconds; about a minute (the default); what the published form needs.
-type scale() :: quick | normal | full.
-type options() :: #{size => pos_integer(),     % bytes, where it has a size
                     scale => scale(),
                     progress => fairnif_check_progress:progress(),
                     atom() => term()}.
%% Says what is done next.
-type step() :: fun((unicode:chardata()) -> ok).
%% A value that fairnif_check_json can encode, raw samples included.  `ok' is false when something
%% that was to be measured failed.
-type result() :: #{ok := boolean(), atom() => term()}.
%% `unsure': this machine is too small or too noisy.
-type error() :: {unsure | failed, unicode:chardata()}.
-type outcome() :: {ok, result()} | {error, error()}.

-callback experiment() -> experiment().

%% The files of all experiments change together.
-define(SCHEMA_VERSION, 1).

%% @doc The modules of all experiments, by name.
-spec all() -> [module()].
all() ->
    _ = application:load(fairnif_experiments),
    {ok, Modules} = application:get_key(fairnif_experiments, modules),
    lists:sort(fun(A, B) -> name(A) =< name(B) end,
               [M || M <- Modules, {behaviour, Bs} <- M:module_info(attributes),
                     lists:member(?MODULE, Bs)]).

%% @doc The module of the experiment with this name.
-spec find(string()) -> {ok, module()} | error.
find(Name) ->
    case [M || M <- all(), atom_to_list(name(M)) =:= Name] of
        [Module] -> {ok, Module};
        [] -> error
    end.

%% @doc What an experiment says of itself.  An option that is not among its own is a mistake of
%% its caller.
-spec about(module()) -> experiment().
about(Module) ->
    maps:merge(#{options => [scale], needs => []}, Module:experiment()).

name(Module) ->
    maps:get(name, about(Module)).

%% @doc How many steps it tells its progress.
-spec steps(module(), options()) -> pos_integer().
steps(Module, Opts) ->
    case about(Module) of
        #{steps := Steps} when is_integer(Steps) -> Steps;
        #{steps := Steps} -> Steps(Opts)
    end.

%% @doc Measures.  What fails, says so in its row, and the others continue.
-spec run(module(), options()) -> outcome().
run(Module, Opts) ->
    Progress = maps:get(progress, Opts, fairnif_check_progress:none()),
    #{needs := Needs, measure := Measure} = about(Module),
    try
        fairnif_exp:needs(Needs),
        {ok, Measure(maps:get(scale, Opts, normal), Opts,
                     fun(Text) -> fairnif_check_progress:step(Progress, Text) end)}
    catch
        throw:{Kind, Why} when Kind =:= unsure; Kind =:= failed -> {error, {Kind, Why}}
    after
        fairnif_check_progress:stop(Progress)
    end.

%% @doc What it does in a node of its own, in which this is called.
-spec peer(module(), term()) -> term().
peer(Module, Request) ->
    (maps:get(peer, about(Module)))(Request).

%% @doc The table, and a sentence that says what to see in it.
-spec format(module(), result()) -> unicode:chardata().
format(Module, Result) ->
    (maps:get(format, about(Module)))(Result).

%% @doc What `--json' writes: schema version first, the context of the measurement, the result with
%% its raw samples, and what the terminal showed (format/1).
-spec report(module(), result(), unicode:chardata(), #{atom() => term()}) ->
          fairnif_check_json:value().
report(Module, Result, Shown, Context) ->
    #{name := Name, description := Description} = about(Module),
    {[{schema_version, ?SCHEMA_VERSION},
      {experiment, Name}, {context, Context}, {result, Result},
      {description, fairnif_exp:text(Description)}, {text, fairnif_exp:text(Shown)}]}.
