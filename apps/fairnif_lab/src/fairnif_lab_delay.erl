%% The lateness of a process that sleeps a millisecond, again and again: what
%% other people's requests feel beside the function under measurement.
%%
%% Lateness is the time from going to sleep to running again, less the time
%% asked for.  An idle VM is late too: its timers have ticks of a millisecond
%% and never fire early, so p50 is about 1 ms there.  Compare with idle.
-module(fairnif_lab_delay).

-export([measure/1, beside/2, summary/1]).

-export_type([options/0, result/0]).

-type options() :: #{time_ms => pos_integer(),   % how long; default 1000
                     sleep_ms => pos_integer(),  % each sleep; default 1
                     scheduler => pos_integer()}. % to be bound to; default none
%% ns, all of them; `samples' in order of time.
-type result() :: #{count := non_neg_integer(),
                    p50 := number() | undefined,
                    p99 := number() | undefined,
                    max := number() | undefined,
                    samples := [integer()]}.

%% @doc Measures in this node, as it is, with a sleeper of its own.
-spec measure(options()) -> result().
measure(Opts) ->
    SleepMs = maps:get(sleep_ms, Opts, 1),
    TimeNs = maps:get(time_ms, Opts, 1000) * 1000000,
    Bound = case Opts of
                #{scheduler := Id} -> [fairnif_lab_machine:bound_to(Id)];
                _ -> []
            end,
    Me = self(),
    %% Its heap is large from the start: a collection would be a delay.
    {Sleeper, Monitor} =
        spawn_opt(fun() ->
                          Until = now_ns() + TimeNs,
                          Me ! {self(), sleeps(SleepMs, Until, [])}
                  end, [monitor, {min_heap_size, 100000} | Bound]),
    receive
        {Sleeper, Samples} ->
            erlang:demonitor(Monitor, [flush]),
            summary(Samples);
        {'DOWN', Monitor, process, _, Reason} ->
            error(Reason)
    end.

%% @doc The same beside other processes: each fun runs in a process of its own,
%% started before and killed after.  Give funs that do not return; a native
%% function that cannot be killed goes on, so end the node afterwards.
-spec beside([fun(() -> term())], options()) -> result().
beside(Loads, Opts) ->
    Pids = [spawn(Load) || Load <- Loads],
    try measure(Opts) after [exit(P, kill) || P <- Pids] end.

%% @doc What the samples (ns) say.
-spec summary([integer()]) -> result().
summary([]) ->
    #{count => 0, p50 => undefined, p99 => undefined, max => undefined,
      samples => []};
summary(Samples) ->
    #{count => length(Samples),
      p50 => fairnif_lab_stats:percentile(50, Samples),
      p99 => fairnif_lab_stats:percentile(99, Samples),
      max => lists:max(Samples), samples => Samples}.

sleeps(SleepMs, Until, Samples) ->
    From = now_ns(),
    receive after SleepMs -> ok end,
    To = now_ns(),
    Late = To - From - SleepMs * 1000000,
    case To < Until of
        true -> sleeps(SleepMs, Until, [Late | Samples]);
        false -> lists:reverse(Samples, [Late])
    end.

now_ns() ->
    erlang:monotonic_time(nanosecond).
