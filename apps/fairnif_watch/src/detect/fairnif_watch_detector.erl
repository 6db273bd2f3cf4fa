%% What a detector is: it is shown what the watch sees and says which issues hold now.
%%
%% A detector decides and does nothing else: it is pure, it never asks the node anything, so that
%% its thresholds can be tested with every input. Adding one is one module and one line in `all/0'.
-module(fairnif_watch_detector).

-export([all/0, limits/2, verdict/1]).

-export_type([detector/0, threshold/0, limits/0, observation/0, sample/0, look/0, delay/0,
              verdict/0]).

%% `name': as findings and metrics have it; `looks_for': a sentence for a person; `remedy': what to
%% do about it, with the flag where one exists. `observe' answers the issues that hold, and those
%% that have ended with this observation (`ongoing' false); `same': it changes nothing.
-type detector() :: #{name := atom(), looks_for := binary(), thresholds := [threshold()],
                      remedy := binary(), init := State :: term(),
                      observe := fun((observation(), limits(), State :: term()) ->
                          {same | [fairnif_watch_finding:issue()], State :: term()})}.

%% `{config, Key}': the setting `Key' gives the value.
-type threshold() :: {Name :: atom(), number() | {config, Key :: atom()}, Unit :: atom(),
                      Reason :: binary()}.

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
                    dirty := map(),
                    delays := [delay()],
                    taken := fairnif_watch_taken:taken(),
                    busy_waiting := fairnif_watch_taken:busy_waiting()}.
%% What was seen in the last second, or in `interval_ms'. `at': us of the system's time. `looks':
%% oldest first; more than one where something waited. `cpu_ns': of the normal schedulers.
%% `dirty': what is known of jobs on dirty schedulers, see {@link fairnif_watch_dirty}.

-type delay() :: #{kind := normal | dirty_cpu | dirty_io, number := pos_integer(),
                   cpu_ns := non_neg_integer(), waited_ns := non_neg_integer(),
                   long := [{Ms :: pos_integer(), Count :: non_neg_integer()}],
                   long_ns := non_neg_integer()}.
%% Of one thread in that second: what it worked, and waited for a processor.

-type look() :: #{queues := [non_neg_integer()], dirty_cpu := pool(), dirty_io := pool()}.
%% `queues': of the online normal schedulers.
-type pool() :: {Queued :: non_neg_integer(), Active :: non_neg_integer()}.
%% `Active': queued and running.
-type wait() :: {measured | at_least, Ms :: float()}.

-type observation() :: {event, map(), Now :: integer()} | {sample, sample()}.
%% An event is the watchdog's; `Now' is us of the system's time.

-type verdict() :: ok | unconfirmed | warn | error.

%% @doc Every detector.
-spec all() -> [detector()].
all() ->
    [fairnif_watch_detect_blocked:detector(),
     fairnif_watch_detect_asleep:detector(),
     fairnif_watch_detect_imbalance:detector(),
     fairnif_watch_detect_pool:detector(dirty_cpu),
     fairnif_watch_detect_pool:detector(dirty_io),
     fairnif_watch_detect_undercharged:detector(),
     fairnif_watch_detect_unkillable:detector(),
     fairnif_watch_detect_no_cpu:detector(),
     fairnif_watch_detect_late:detector(),
     fairnif_watch_detect_quota:detector()].

%% @doc The thresholds of a detector by name, settings filled in.
-spec limits(detector(), fairnif_watch_config:config()) -> limits().
limits(#{thresholds := Thresholds}, Config) ->
    maps:from_list([{Name, number(Value, Config)} || {Name, Value, _, _} <- Thresholds]).

number({config, Key}, Config) -> maps:get(Key, Config);
number(Value, _) -> Value.

%% @doc What a detector comes to with these issues, or findings: as grave as the gravest that goes
%% on, else `ok'.
-spec verdict([fairnif_watch_finding:issue() | fairnif_watch_finding:finding()]) -> verdict().
verdict(Issues) ->
    Severities = [Severity || #{ongoing := true, severity := Severity} <- Issues],
    case [Word || {Severity, Word} <- [{error, error}, {warning, warn}, {unconfirmed, unconfirmed}],
                  lists:member(Severity, Severities)] of
        [Gravest | _] -> Gravest;
        [] -> ok
    end.
