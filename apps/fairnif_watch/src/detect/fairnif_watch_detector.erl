%% What a detector is: a module that is shown what the watch sees and says which issues hold now.
%%
%% A detector decides and does nothing else: it is pure, it never asks the node anything, so that
%% its thresholds can be tested with every input. Adding one is one module and one line in `all/0'.
-module(fairnif_watch_detector).

-export([all/0, limits/2, thresholds/1, verdict/1]).

-export_type([threshold/0, limits/0, observation/0, sample/0, look/0, verdict/0]).

-type threshold() :: #{name := atom(), value := number() | {config, atom()}, unit := atom(),
                       reason := binary()}.
%% `{config, Key}': the setting `Key' gives the value.

-type limits() :: #{atom() => number()}.

-type sample() :: #{at := integer(),
                    interval_ms := pos_integer(),
                    threads := [map()],
                    online := #{normal := pos_integer(), dirty_cpu := non_neg_integer(),
                                dirty_io := non_neg_integer()},
                    looks := [look()],
                    reductions := non_neg_integer(),
                    cpu_ns := non_neg_integer() | none,
                    top := [map()],
                    waits := #{dirty_cpu | dirty_io => wait()},
                    dirty := map()}.
%% What was seen in the last second, or in `interval_ms'. `at': us of the system's time. `looks':
%% oldest first; more than one where something waited. `cpu_ns': of the normal schedulers.
%% `dirty': what is known of jobs on dirty schedulers, see {@link fairnif_watch_dirty}.

-type look() :: #{queues := [non_neg_integer()], dirty_cpu := pool(), dirty_io := pool()}.
%% `queues': of the online normal schedulers.
-type pool() :: {Queued :: non_neg_integer(), Active :: non_neg_integer()}.
%% `Active': queued and running.
-type wait() :: {measured | at_least, Ms :: float()}.

-type observation() :: {event, map(), Now :: integer()} | {sample, sample()}.
%% An event is the watchdog's; `Now' is us of the system's time.

-type verdict() :: ok | warn | recheck.

%% Its name, as findings and metrics have it.
-callback name() -> atom().
%% What it looks for: a sentence for a person.
-callback describe() -> binary().
-callback thresholds() -> [threshold()].
%% What to do about it, with the flag where one exists.
-callback remedy() -> binary() | none.
-callback init() -> State :: term().
%% The issues that hold, and those that have ended with this observation (`ongoing' false); `same':
%% the observation changes nothing.
-callback observe(observation(), limits(), State) ->
    {same | [fairnif_watch_finding:issue()], State}.

%% @doc Every detector.
-spec all() -> [module()].
all() ->
    [fairnif_watch_detect_blocked,
     fairnif_watch_detect_collapse,
     fairnif_watch_detect_imbalance,
     fairnif_watch_detect_dirty_cpu,
     fairnif_watch_detect_dirty_io,
     fairnif_watch_detect_undercharged,
     fairnif_watch_detect_unkillable,
     fairnif_watch_detect_starved].

%% @doc The thresholds of a detector by name, settings filled in.
-spec limits(module(), fairnif_watch_config:config()) -> limits().
limits(Module, Config) ->
    maps:from_list([{Name, number(Value, Config)}
                    || #{name := Name, value := Value} <- Module:thresholds()]).

number({config, Key}, Config) -> maps:get(Key, Config);
number(Value, _) -> Value.

%% @doc Thresholds from `{Name, Value, Unit, Reason}'.
-spec thresholds([tuple()]) -> [threshold()].
thresholds(Rows) ->
    [#{name => Name, value => Value, unit => Unit, reason => Reason}
     || {Name, Value, Unit, Reason} <- Rows].

%% @doc What a detector comes to with these issues: `warn' if one that goes on is certain, `recheck'
%% if all that go on are not, else `ok'.
-spec verdict([fairnif_watch_finding:issue()]) -> verdict().
verdict(Issues) ->
    case [Severity || #{ongoing := true, severity := Severity} <- Issues] of
        [] -> ok;
        Severities ->
            case lists:all(fun(S) -> S =:= recheck end, Severities) of
                true -> recheck;
                false -> warn
            end
    end.
