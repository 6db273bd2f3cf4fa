%% What is seen of the node in one second. Only calls that a blocked scheduler cannot hold up: the
%% lengths of run queues, system_info of the kinds below, and what the watchdog has ready.
-module(fairnif_watch_sample).

-export([look/0, waits/1, take/3, delays/2, taken/3, processors/2, from_watchdog/2]).

%% @doc One look at the queues; a few microseconds.
-spec look() -> fairnif_watch_detector:look().
look() ->
    Normal = erlang:system_info(schedulers),
    %% While multi_scheduling is blocked only the first one is to work.
    Online = case erlang:system_info(multi_scheduling) of
                 enabled -> erlang:system_info(schedulers_online);
                 _ -> 1
             end,
    {Queues, DirtyQueued} = lists:split(Normal, erlang:statistics(run_queue_lengths_all)),
    {_, DirtyActive} = lists:split(Normal, erlang:statistics(active_tasks_all)),
    [Cpu, Io] = lists:zip(DirtyQueued, DirtyActive),
    #{queues => lists:sublist(Queues, Online), dirty_cpu => Cpu, dirty_io => Io}.

%% @doc Whether anything waited in this look: a process, or a job for a dirty scheduler.
-spec waits(fairnif_watch_detector:look()) -> boolean().
waits(#{queues := Queues, dirty_cpu := {Cpu, _}, dirty_io := {Io, _}}) ->
    Cpu > 0 orelse Io > 0 orelse lists:any(fun(N) -> N > 0 end, Queues).

%% @doc The sample of a second: its looks, how long it was, and the sample before it.
-spec take([fairnif_watch_detector:look()], pos_integer(), none | map()) -> map().
take(Looks, IntervalMs, Before) ->
    Threads = from_watchdog(threads, []),
    Native = from_watchdog(counters, #{}),
    {All, _} = erlang:statistics(reductions),
    Reductions = All - maps:get(activations, Native, 0) * fairnif_watch_responder:activation(),
    Times = [Ns || #{kind := normal, cpu_ns := Ns} <- Threads, is_integer(Ns)],
    Cpu = lists:sum(Times),
    Own = #{at => erlang:system_time(microsecond),
            interval_ms => IntervalMs,
            looks => Looks,
            threads => Threads,
            pool => from_watchdog(pool, []),
            top => from_watchdog(top, []),
            native => Native,
            delays => delays(Threads, before(threads, Before, [])),
            taken => taken(Native, before(native, Before, #{}), IntervalMs),
            busy_waiting => from_watchdog(busy_waiting, unknown),
            blind => from_watchdog(blind, [<<"the watchdog does not run">>]),
            online => #{normal => erlang:system_info(schedulers_online),
                        dirty_cpu => erlang:system_info(dirty_cpu_schedulers_online),
                        dirty_io => erlang:system_info(dirty_io_schedulers)},
            total_reductions => Reductions,
            total_cpu_ns => Cpu},
    Own#{reductions => max(0, Reductions - before(total_reductions, Before, Reductions)),
         cpu_ns => case Times of
                       [] -> none;
                       _ -> max(0, Cpu - before(total_cpu_ns, Before, Cpu))
                   end}.

before(_, none, Default) -> Default;
before(Key, Before, _) -> maps:get(Key, Before).

%% @doc For each thread what it worked and what it waited for a processor since then; `long': of how
%% many ms its long waits were, at least, and how many.
-spec delays([map()], [map()]) -> [fairnif_watch_detector:delay()].
delays(Now, Before) ->
    Old = maps:from_list([{{Kind, N}, Thread} || #{kind := Kind, number := N} = Thread <- Before]),
    [#{kind => Kind, number => N, cpu_ns => more(cpu_ns, Thread, Was),
       waited_ns => more(waited_ns, Thread, Was), long_ns => more(long_wait_ns, Thread, Was),
       long => [{Ms, Count - Known} || {{Ms, Count}, {_, Known}} <- lists:zip(Waits, Had)]}
     || #{kind := Kind, number := N, long_waits := Waits} = Thread <- Now,
        #{long_waits := Had} = Was <- [maps:get({Kind, N}, Old, none)]].

more(Key, Now, Before) -> max(0, maps:get(Key, Now) - maps:get(Key, Before)).

%% @doc Who had the machine's processors, in processors, and what the quota took since then.
-spec taken(map(), map(), pos_integer()) -> fairnif_watch_taken:taken().
taken(#{others := Others, port_programs := Ports, own_native := Own, quota := Quota} = Native,
      #{quota_periods := _} = Before, IntervalMs) ->
    All = processors(logical_processors, erlang:system_info(schedulers)),
    Stolen = more(stolen_ns, Native, Before) / (IntervalMs * 1.0e6),
    #{all => All, usable => min(All, processors(logical_processors_available, All)),
      native => Own * All / 1000, ports => Ports * All / 1000,
      others => max(0.0, Others * All / 1000 - Stolen), hypervisor => Stolen,
      quota => Quota / 1000,
      periods => more(quota_periods, Native, Before),
      throttled => more(quota_throttled, Native, Before),
      throttled_ns => more(quota_throttled_ns, Native, Before)};
taken(_, _, _) ->
    none.

%% @doc How many of this machine's there are, or of those this node may use; `Default' where the
%% emulator does not know.
-spec processors(logical_processors | logical_processors_available, pos_integer()) ->
          pos_integer().
processors(What, Default) ->
    case erlang:system_info(What) of
        N when is_integer(N) -> N;
        unknown -> Default
    end.

%% @doc What the watchdog has ready, or `Default' while there is none (it is being restarted, or was
%% given up).
-spec from_watchdog(atom(), Default) -> Default.
from_watchdog(What, Default) ->
    Module = fairnif_watch_watchdog,
    try Module:What()
    catch _:_ -> Default
    end.
