%% The settings of the watch: one table, which gives defaults, bounds and the manual's lines.
%% Never reads anything but what it is given and the application's environment.
-module(fairnif_watch_config).

-export([table/0, read/0, check/1]).

-export_type([config/0, row/0]).

-type config() :: #{atom() => term()}.
-type bound() :: {integer, integer(), integer()} | boolean | native | path.
-type row() :: {Key :: atom(), Default :: term(), bound(), Help :: string()}.

%% @doc Every setting: its key in the application's environment, the default, what is allowed,
%% and what it is for.
-spec table() -> [row()].
table() ->
    [{period_ms, 5, {integer, 1, 1000},
      "ms between two looks at the schedulers' CPU clocks"},
     {warn_ms, 10, {integer, 1, 60000},
      "a normal scheduler blocked for longer is a finding"},
     {error_ms, 100, {integer, 1, 600000},
      "blocked for longer than this, its severity is error; at least warn_ms"},
     {sample_hz, 5, {integer, 0, 1000},
      "stacks taken each second for the table of native functions; 0: none"},
     {signals, true, boolean,
      "whether to stop running threads for some microseconds, to copy their stack"},
     {native, true, native,
      "false: Erlang only, without a thread, stacks and names"},
     {native_library, default, path,
      "path without extension of the native part; default: in priv"},
     {probe_library, default, path,
      "path without extension of the probes and the self-test; default: in priv"},
     {system_monitor, true, boolean,
      "take the node's system_monitor if no process has it: names long collections"},
     {dirty_search_per_s, 500, {integer, 0, 10000},
      "processes asked each second, while a dirty pool is full, whether they run there; 0: none"},
     {log, true, boolean,
      "log findings"},
     {log_per_minute, 10, {integer, 0, 600},
      "findings logged in a minute; the next line says how many were not logged"},
     {telemetry, true, boolean,
      "emit telemetry events where the application telemetry runs"},
     {emergency_ms, 1000, {integer, 0, 600000},
      "all normal schedulers blocked for this long: one line on standard error; 0: never"},
     {findings_kept, 100, {integer, 1, 10000},
      "findings kept, the newest"},
     {metrics_functions, 50, {integer, 0, 1000},
      "functions named in the metrics; the rest is \"other\""}].

%% @doc The settings in force: the application's environment over the defaults.
%% Error `{bad_config, [{Key, Value, Allowed}]}', `Allowed' being a sentence.
-spec read() -> {ok, config()} | {error, {bad_config, [tuple()]}}.
read() ->
    %% OTP puts a key of its own there.
    check(maps:from_list(proplists:delete(included_applications,
                                          application:get_all_env(fairnif_watch)))).

%% @doc `Given' over the defaults, if all of it is allowed. A key that no row has is an error.
-spec check(config()) -> {ok, config()} | {error, {bad_config, [tuple()]}}.
check(Given) ->
    Defaults = maps:from_list([{Key, Default} || {Key, Default, _, _} <- table()]),
    Config = maps:merge(Defaults, Given),
    Strange = [{Key, Value, "no such setting"}
               || {Key, Value} <- maps:to_list(maps:without(maps:keys(Defaults), Given))],
    Bad = [{Key, maps:get(Key, Config), allowed(Bound)}
           || {Key, Default, Bound, _} <- table(),
              maps:get(Key, Config) =/= Default, not is_allowed(Bound, maps:get(Key, Config))],
    case Strange ++ Bad ++ together(Bad, Config) of
        [] -> {ok, Config};
        Wrong -> {error, {bad_config, Wrong}}
    end.

%% What no row can say by itself; only where each is right by itself.
together([], #{warn_ms := Warn, error_ms := Error}) when Error < Warn ->
    [{error_ms, Error, "at least warn_ms"}];
together(_, _) ->
    [].

is_allowed({integer, Min, Max}, Value) ->
    is_integer(Value) andalso Value >= Min andalso Value =< Max;
is_allowed(boolean, Value) ->
    is_boolean(Value);
%% The session says why there is none.
is_allowed(native, Value) ->
    lists:member(Value, [true, false, dirty_io_full, no_folder]);
is_allowed(path, Value) ->
    Value =:= false orelse is_binary(Value) orelse io_lib:char_list(Value);
is_allowed(_, _) ->
    false.

allowed({integer, Min, Max}) ->
    lists:flatten(io_lib:format("an integer from ~b to ~b", [Min, Max]));
allowed(Kind) when Kind =:= boolean; Kind =:= native -> "true or false";
allowed(path) -> "default, false, or a path".
