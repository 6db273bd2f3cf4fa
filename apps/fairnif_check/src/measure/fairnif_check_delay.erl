%% The lateness of a process that is due every millisecond: what other people's requests feel
%% beside the function under measurement.
%%
%% The times are fixed before: lateness is the time from when it was due to when it ran. After a
%% stall of 30 ms it was late 30 times, by 30, 29, 28 ms and so on, as thirty requests would have
%% been. One that slept again after each turn would tell of a stall once, however long, and of the
%% good times between two stalls many times: half of the time lost would look like one per cent.
%%
%% An idle VM is late too, by the time that it takes to wake.  Compare with idle.
-module(fairnif_check_delay).

-export([measure/1, beside/2, summary/1, late/4]).

-export_type([options/0, result/0]).

-type options() :: #{time_ms => pos_integer(),   % how long; default 1000
                     sleep_ms => pos_integer(),  % from one time to the next; default 1
                     scheduler => pos_integer()}. % to be bound to; default none
%% ns, all of them; `samples' in order of time.
-type result() :: #{count := non_neg_integer(),
                    p50 := number() | undefined,
                    p99 := number() | undefined,
                    max := number() | undefined,
                    samples := [integer()]}.

%% @doc Measures in this node, as it is, with a sleeper of its own. As many samples as there are
%% times in `time_ms'; takes that long, and longer where the sleeper is late for the last one.
-spec measure(options()) -> result().
measure(Opts) ->
    SleepMs = maps:get(sleep_ms, Opts, 1),
    Count = max(1, maps:get(time_ms, Opts, 1000) div SleepMs),
    Bound = case Opts of
                #{scheduler := Id} -> [fairnif_check_machine:bound_to(Id)];
                _ -> []
            end,
    Me = self(),
    %% Its heap is large from the start: a collection would be a delay.
    {Sleeper, Monitor} =
        spawn_opt(fun() ->
                          %% The first whole millisecond that has not begun.
                          First = erlang:monotonic_time(millisecond) + 1,
                          Me ! {self(), sleeps(First, SleepMs, Count, [])}
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
%% function that cannot be killed continues, so end the node afterwards.
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
      p50 => fairnif_check_stats:percentile(50, Samples),
      p99 => fairnif_check_stats:percentile(99, Samples),
      max => lists:max(Samples), samples => Samples}.

sleeps(_, _, 0, Samples) ->
    lists:reverse(Samples);
sleeps(Due, SleepMs, Left, Samples) ->
    Timer = erlang:start_timer(Due, self(), due, [{abs, true}]),
    receive {timeout, Timer, due} -> ok end,
    Late = late(Due * 1000000, SleepMs * 1000000, Left, erlang:monotonic_time(nanosecond)),
    Passed = length(Late),
    sleeps(Due + Passed * SleepMs, SleepMs, Left - Passed, lists:reverse(Late, Samples)).

%% @doc How late a process is that runs at Now and was due at Due, and every Period after it, Left
%% times in all: for each of those times that have passed.
-spec late(integer(), pos_integer(), pos_integer(), integer()) -> [non_neg_integer()].
late(Due, Period, Left, Now) ->
    Passed = min(Left, 1 + max(0, Now - Due) div Period),
    [max(0, Now - Due - N * Period) || N <- lists:seq(0, Passed - 1)].
