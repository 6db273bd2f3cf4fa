%% A named experiment: `bin/fairnif lab NAME'.
%%
%% An experiment is one module with this behaviour; adding one means adding
%% that module to this application, and nothing else.
-module(fairnif_experiment).

-export([all/0, find/1, known/1, report/4]).

-export_type([options/0, result/0, error/0]).

-type options() :: #{size => pos_integer(),     % bytes, where it has a size
                     %% a smoke run of seconds; about a minute (the default);
                     %% what the published form of the experiment needs
                     scale => quick | normal | full,
                     progress => fairnif_lab_progress:progress(),
                     atom() => term()}.
%% A value that fairnif_lab_json can encode, raw samples included.  `ok' is
%% false when something that was to be measured failed.
-type result() :: #{ok := boolean(), atom() => term()}.
%% `cannot_say': this machine is too small or too noisy.
-type error() :: {cannot_say | failed, unicode:chardata()}.

-callback name() -> atom().
%% One line for the list of experiments.
-callback description() -> unicode:chardata().
%% The options, besides `progress', that it heeds; `scale' alone when it does
%% not say.
-callback options() -> [atom()].
%% How many steps it tells its progress.
-callback steps(options()) -> pos_integer().
-callback run(options()) -> {ok, result()} | {error, error()}.
%% The table, and a sentence that says what to see in it.
-callback format(result()) -> unicode:chardata().

-optional_callbacks([options/0]).

%% The files of all experiments change together.
-define(SCHEMA_VERSION, 1).

%% @doc The modules of all experiments, by name.
-spec all() -> [module()].
all() ->
    _ = application:load(fairnif_experiments),
    {ok, Modules} = application:get_key(fairnif_experiments, modules),
    lists:sort(fun(A, B) -> A:name() =< B:name() end,
               [M || M <- Modules, is_experiment(M)]).

%% @doc The module of the experiment with this name.
-spec find(string()) -> {ok, module()} | error.
find(Name) ->
    case [M || M <- all(), atom_to_list(M:name()) =:= Name] of
        [Module] -> {ok, Module};
        [] -> error
    end.

%% @doc The options that an experiment heeds: any other is a mistake of whoever
%% gave it.
-spec known(module()) -> [atom()].
known(Module) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, options, 0) of
        true -> Module:options();
        false -> [scale]
    end.

%% @doc What `--json' writes: schema version first, the context of the
%% measurement, the result with its raw samples, and what the terminal showed
%% (format/1), without colours.
-spec report(module(), result(), unicode:chardata(), #{atom() => term()}) ->
          fairnif_lab_json:value().
report(Module, Result, Shown, Context) ->
    {[{schema_version, ?SCHEMA_VERSION},
      {experiment, Module:name()},
      {context, Context},
      {result, Result},
      {description, unicode:characters_to_binary(Module:description())},
      {text, re:replace(Shown, "\\e\\[[0-9;]*m", "", [global, unicode, {return, binary}])}]}.

is_experiment(Module) ->
    Behaviours = [B || {behaviour, Bs} <- Module:module_info(attributes),
                       B <- Bs],
    lists:member(?MODULE, Behaviours).
