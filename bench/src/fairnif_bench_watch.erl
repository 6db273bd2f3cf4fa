%% What watching a node costs: CPU time of a second, on an idle node, on one whose schedulers are
%% all busy with ordinary Erlang work, and on one where native code holds each of them again and
%% again for longer than the threshold; and what is left of that work.
%%
%% On an idle node it is the CPU time of the whole VM, watched and not. On a busy one that would be
%% the whole machine either way: there it is the watch thread's CPU time and what its processes ran
%% by the VM's trace events. Those are wall time, so too long where a thread loses its processor;
%% and the hearts lose theirs to the watch thread, which has just poked them and is counted already.
%% So of a heart it is the median of its turns, times how many.
-module(fairnif_bench_watch).

-export([flags/0, run/0]).

-define(ROUNDS, 5).
%% Before a measurement, so that code is loaded and rates are known; and its length.
-define(WARM_MS, 1000).
-define(MS, 2000).
%% How long native code holds a scheduler where the threshold is 1 ms; and how often the call that
%% does so repeats its rounds (fairnif_bench_nif:work_ns/1).
-define(HOLD_NS, 1200000).
-define(REPEATS, 20).

-spec flags() -> [string()].
flags() -> ["+S", "2:2", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"].

-spec run() -> {fairnif_bench_series:samples(), map()}.
run() ->
    Holds = holds(),
    Samples = fairnif_bench_series:interleave(
                ?ROUNDS,
                [fun() -> alone(fun idle/0, <<"idle alone">>) end,
                 fun() -> watched(fun idle/0, #{}, <<"idle">>) end,
                 fun() -> alone(fun busy/0, <<"busy alone">>) end,
                 fun() -> watched(fun busy/0, #{}, <<"busy">>) end,
                 fun() -> alone(Holds, <<"holds alone">>) end,
                 fun() -> watched(Holds, #{warn_ms => 1, log => false}, <<"holds">>) end]),
    {Samples, #{held_a_second => get(held)}}.

%% -- loads: each answers what to end and what counts its rounds --

idle() -> {[], none}.

%% A busy process for each scheduler.
busy() ->
    beside(fun(_) -> [] end).

%% The same, and beside each one that holds the scheduler with every call.
holds() ->
    Rounds = max(1, ?HOLD_NS * 100000 div (?REPEATS * fairnif_bench_nif:work_ns(100000))),
    fun() -> beside(fun(Scheduler) -> [spawn_opt(fun() -> hold(Rounds) end, bound(Scheduler))] end)
    end.

beside(More) ->
    Counter = counters:new(1, [write_concurrency]),
    {lists:append([[spawn_opt(fun() -> work(Counter) end, bound(S)) | More(S)]
                   || S <- lists:seq(1, erlang:system_info(schedulers_online))]), Counter}.

bound(Scheduler) -> [link, fairnif_lab_machine:bound_to(Scheduler)].

work(Counter) ->
    [_ = fairnif_lab_share:work(Mix) || Mix <- fairnif_lab_share:mixes()],
    counters:add(Counter, 1, 1),
    work(Counter).

%% A turn for each call: a NIF is charged next to nothing, and thousands would be one turn.
hold(Rounds) ->
    _ = fairnif_bench_nif:work_ns(Rounds),
    true = erlang:bump_reductions(4000),
    hold(Rounds).

%% -- measuring --

alone(Load, Name) ->
    measured(Load, [], fun() -> 0 end, Name).

watched(Load, Config, Name) ->
    Before = processes(),
    {ok, _} = fairnif_watch:start(Config),
    Own = processes() -- Before,
    Samples = measured(Load, Own, fun thread_ns/0, Name),
    case Name of
        <<"holds">> ->
            #{counters := #{held := Held}} = fairnif_watch:report(),
            _ = put(held, Held * 1000 div (?WARM_MS + ?MS));
        _ ->
            ok
    end,
    ok = fairnif_watch:stop(),
    Samples.

thread_ns() ->
    #{watch_cpu_ns := Ns} = fairnif_watch_watchdog:counters(),
    Ns.

%% `Name' is the VM's CPU time of a second, `Name own' the watch's, `Name work' the rounds.
measured(Load, Own, Thread, Name) ->
    {Pids, Counter} = Load(),
    timer:sleep(?WARM_MS),
    {Cpu0, Thread0, Work0, T0} = {cpu_ns(), Thread(), count(Counter), now_ns()},
    Ran = ran_ns(Own, ?MS),
    {Cpu1, Thread1, Work1, T1} = {cpu_ns(), Thread(), count(Counter), now_ns()},
    _ = [begin unlink(P), exit(P, kill) end || P <- Pids],
    Second = 1.0e9 / (T1 - T0),
    [{Name, (Cpu1 - Cpu0) * Second},
     {<<Name/binary, " own">>, (Thread1 - Thread0 + Ran) * Second},
     {<<Name/binary, " work">>, (Work1 - Work0) * Second}].

count(none) -> 0;
count(Counter) -> counters:get(Counter, 1).

%% How long these processes ran within so many ms, by trace events that another one collects. Its
%% own work is not in it.
ran_ns([], Ms) ->
    timer:sleep(Ms),
    0;
ran_ns(Pids, Ms) ->
    Me = self(),
    Hearts = [P || P <- Pids, {current_function, {fairnif_watch_heart, _, _}}
                                  <- [process_info(P, current_function)]],
    Tracer = spawn_link(fun() -> traced(Me, #{}, #{}) end),
    _ = [erlang:trace(P, true, [running, monotonic_timestamp, {tracer, Tracer}]) || P <- Pids],
    timer:sleep(Ms),
    _ = [catch erlang:trace(P, false, [running, monotonic_timestamp, {tracer, Tracer}])
         || P <- Pids],
    Tracer ! {self(), stop},
    receive
        {Tracer, Turns} ->
            lists:sum([case lists:member(Pid, Hearts) of
                           true -> length(Ns) * lists:nth((length(Ns) + 1) div 2, lists:sort(Ns));
                           false -> lists:sum(Ns)
                       end || {Pid, Ns} <- maps:to_list(Turns)])
    end.

%% The lengths of each process's turns.
traced(To, Since, Turns) ->
    receive
        {trace_ts, Pid, in, _, At} ->
            traced(To, Since#{Pid => At}, Turns);
        {trace_ts, Pid, out, _, At} ->
            case Since of
                #{Pid := From} ->
                    More = maps:update_with(Pid, fun(Ns) -> [At - From | Ns] end, [At - From],
                                            Turns),
                    traced(To, maps:remove(Pid, Since), More);
                #{} ->
                    traced(To, Since, Turns)
            end;
        {To, stop} ->
            _ = unlink(To),
            To ! {self(), Turns}
    end.

%% Of all threads, ns.
cpu_ns() ->
    {ok, Tids} = file:list_dir("/proc/self/task"),
    lists:sum([Ns || Tid <- Tids,
                     {ok, Text} <- [file:read_file("/proc/self/task/" ++ Tid ++ "/schedstat")],
                     Ns <- [binary_to_integer(hd(binary:split(Text, <<" ">>)))]]).

now_ns() -> erlang:monotonic_time(nanosecond).
