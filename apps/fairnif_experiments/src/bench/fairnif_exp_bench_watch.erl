%% What watching a node costs: CPU time of a second, on an idle node, on one whose schedulers are
%% all busy with ordinary Erlang work, and on one where native code blocks each of them again and
%% again for longer than the threshold; and what is left of that work.
%%
%% On an idle node it is the CPU time of the whole VM, watched and not.  On a busy one that would be
%% the whole machine either way: there it is the watch thread's CPU time and what its processes ran
%% by the VM's trace events.  Those are wall time, so too long where a thread loses its processor;
%% and the responders lose theirs to the watch thread, which has just probed them and is counted
%% already.  So of a responder it is the median of its turns, times how many.
-module(fairnif_exp_bench_watch).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-define(NIF, fairnif_exp_nif).
-define(ROUNDS, 5).
%% Before a measurement, so that code is loaded and rates are known; and its length.
-define(WARM_MS, 1000).
-define(MS, 2000).
%% How long native code blocks a scheduler where the threshold is 1 ms; and how often the call that
%% does so repeats its rounds (fairnif_exp_nif:work_ns/1).
-define(HOLD_NS, 1200000).
-define(REPEATS, 20).

%% @doc The run.  0.5 % of one processor is 5 ms of a second.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    Own = "CPU time of the watch thread, and what its processes ran by trace events, in a second, "
          "where schedulers do not spin; ",
    [#{id => watch, about => "what watching a node costs", samples => fun samples/0,
       flags => ["+S", "2:2", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"],
       rows =>
           [#{id => <<"watch-idle">>, what => "a second of watching an idle node",
              peer => "the node alone", value => {difference, <<"idle">>, <<"idle alone">>},
              unit => ns, bound => {at_most, 5000000},
              how => "CPU time of all threads of the node, 2 schedulers"},
            #{id => <<"watch-busy">>, what => "a second of watching a busy node",
              value => {value, <<"busy own">>}, unit => ns, bound => {at_most, 5000000},
              how => Own ++ "2 schedulers busy with Erlang work"},
            #{id => <<"watch-busy-work">>, what => "Erlang work of a busy node, watched",
              peer => "not watched", value => {ratio, <<"busy work">>, <<"busy alone work">>},
              unit => times, how => "rounds of work, 2 schedulers"},
            #{id => <<"watch-blocks">>,
              what => "a second of watching a node that is blocked all the time",
              value => {value, <<"blocks own">>}, unit => ns,
              how => Own ++ "NIFs of 1.2 ms, threshold 1 ms, in turn with Erlang work"},
            #{id => <<"watch-blocks-work">>,
              what => "Erlang work of a node that is blocked all the time, watched",
              peer => "not watched", value => {ratio, <<"blocks work">>, <<"blocks alone work">>},
              unit => times,
              how => "rounds of work in turn with NIFs of 1.2 ms, threshold 1 ms, 2 schedulers"}]}].

samples() ->
    Blocks = blocks(),
    Samples = fairnif_exp_series:interleave(
                ?ROUNDS,
                lists:append(
                  [[fun() -> alone(Load, <<Name/binary, " alone">>) end,
                    fun() -> watched(Load, Config, Name) end]
                   || {Name, Load, Config} <-
                          [{<<"idle">>, fun idle/0, #{}}, {<<"busy">>, fun busy/0, #{}},
                           {<<"blocks">>, Blocks, #{warn_ms => 1, log => false}}]])),
    {Samples, #{blocked_a_second => get(blocked)}}.

%% ---- loads: each answers what to end and what counts its rounds ----

idle() -> {[], none}.

%% A busy process for each scheduler.
busy() ->
    beside(fun(_) -> [] end).

%% The same, and beside each one that blocks the scheduler with every call.
blocks() ->
    Rounds = max(1, ?HOLD_NS * 100000 div (?REPEATS * ?NIF:work_ns(100000))),
    fun() -> beside(fun(Scheduler) -> [endless(fun() -> block(Rounds) end, Scheduler)] end) end.

beside(More) ->
    Counter = counters:new(1, [write_concurrency]),
    {lists:append([[endless(fun() -> work(Counter) end, S) | More(S)]
                   || S <- lists:seq(1, erlang:system_info(schedulers_online))]), Counter}.

endless(Fun, Scheduler) ->
    spawn_opt(fun() -> fairnif_exp:forever(Fun) end,
              [link, fairnif_check_machine:bound_to(Scheduler)]).

work(Counter) ->
    _ = [fairnif_check_share:work(Mix) || Mix <- fairnif_check_share:mixes()],
    counters:add(Counter, 1, 1).

%% A turn for each call: a NIF is charged next to nothing, and thousands would be one turn.
block(Rounds) ->
    _ = ?NIF:work_ns(Rounds),
    erlang:bump_reductions(4000).

%% ---- measuring ----

alone(Load, Name) ->
    measured(Load, [], fun() -> 0 end, Name).

watched(Load, Config, Name) ->
    Before = processes(),
    {ok, _} = fairnif_watch:start(Config),
    Own = processes() -- Before,
    Samples = measured(Load, Own, fun thread_ns/0, Name),
    #{counters := #{blocked := Blocked}} = fairnif_watch:view(),
    _ = Name =:= <<"blocks">> andalso put(blocked, Blocked * 1000 div (?WARM_MS + ?MS)),
    ok = fairnif_watch:stop(),
    Samples.

thread_ns() ->
    #{watch_cpu_ns := Ns} = fairnif_watch_watchdog:counters(),
    Ns.

%% `Name' is the VM's CPU time of a second, `Name own' the watch's, `Name work' the rounds.
measured(Load, Own, Thread, Name) ->
    {Pids, Counter} = Load(),
    timer:sleep(?WARM_MS),
    Read = fun() ->
                   {fairnif_check_nif:cpu_time(), Thread(), count(Counter), fairnif_check_nif:now()}
           end,
    {Cpu0, Thread0, Work0, T0} = Read(),
    Ran = ran_ns(Own, ?MS),
    {Cpu1, Thread1, Work1, T1} = Read(),
    _ = [begin unlink(P), exit(P, kill) end || P <- Pids],
    Second = 1.0e9 / (T1 - T0),
    [{Name, (Cpu1 - Cpu0) * Second},
     {<<Name/binary, " own">>, (Thread1 - Thread0 + Ran) * Second},
     {<<Name/binary, " work">>, (Work1 - Work0) * Second}].

count(none) -> 0;
count(Counter) -> counters:get(Counter, 1).

%% How long these processes ran within that many ms, by trace events that another one collects.  Its
%% own work is not in it.
ran_ns([], Ms) ->
    timer:sleep(Ms),
    0;
ran_ns(Pids, Ms) ->
    Me = self(),
    Responders = [P || P <- Pids, {current_function, {fairnif_watch_responder, _, _}}
                                  <- [process_info(P, current_function)]],
    Tracer = spawn_link(fun() -> traced(Me, #{}, #{}) end),
    _ = [erlang:trace(P, true, [running, monotonic_timestamp, {tracer, Tracer}]) || P <- Pids],
    timer:sleep(Ms),
    Tracer ! {self(), stop},            % its end is the end of the tracing
    receive
        {Tracer, Turns} ->
            lists:sum([case lists:member(Pid, Responders) of
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
