%% A named experiment: `bin/fairnif lab NAME'.
%%
%% An experiment is one module with this behaviour; adding one means adding
%% that module to this application, and nothing else.
-module(fairnif_experiment).

-export([all/0, find/1, about/1, report/4]).

-export_type([about/0, options/0, result/0, error/0, outcome/0]).

%% `description': one line for the list of experiments.  `options': those, besides
%% `progress', that it heeds; `scale' alone when it does not say.
-type about() :: #{name := atom(), description := unicode:chardata(), options => [atom()]}.
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
-type outcome() :: {ok, result()} | {error, error()}.

-callback about() -> about().
%% How many steps it tells its progress.
-callback steps(options()) -> pos_integer().
-callback run(options()) -> outcome().
%% The table, and a sentence that says what to see in it.
-callback format(result()) -> unicode:chardata().

%% The files of all experiments change together.
-define(SCHEMA_VERSION, 1).

%% @doc The modules of all experiments, by name.
-spec all() -> [module()].
all() ->
    _ = application:load(fairnif_experiments),
    {ok, Modules} = application:get_key(fairnif_experiments, modules),
    lists:sort(fun(A, B) -> name(A) =< name(B) end,
               [M || M <- Modules, is_experiment(M)]).

%% @doc The module of the experiment with this name.
-spec find(string()) -> {ok, module()} | error.
find(Name) ->
    case [M || M <- all(), atom_to_list(name(M)) =:= Name] of
        [Module] -> {ok, Module};
        [] -> error
    end.

%% @doc What an experiment says of itself.  An option that is not among its own is a
%% mistake of whoever gave it.
-spec about(module()) -> about().
about(Module) ->
    maps:merge(#{options => [scale]}, Module:about()).

name(Module) ->
    #{name := Name} = Module:about(),
    Name.

%% @doc What `--json' writes: schema version first, the context of the
%% measurement, the result with its raw samples, and what the terminal showed
%% (format/1), without colours.
-spec report(module(), result(), unicode:chardata(), #{atom() => term()}) ->
          fairnif_lab_json:value().
report(Module, Result, Shown, Context) ->
    #{description := Description} = Module:about(),
    {[{schema_version, ?SCHEMA_VERSION},
      {experiment, name(Module)},
      {context, Context},
      {result, Result},
      {description, unicode:characters_to_binary(Description)},
      {text, re:replace(Shown, "\\e\\[[0-9;]*m", "", [global, unicode, {return, binary}])}]}.

is_experiment(Module) ->
    Behaviours = [B || {behaviour, Bs} <- Module:module_info(attributes),
                       B <- Bs],
    lists:member(?MODULE, Behaviours).
