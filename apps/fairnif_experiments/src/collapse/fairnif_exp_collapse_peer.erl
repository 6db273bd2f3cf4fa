%% The part of the experiment `collapse' that runs inside its peer nodes: many
%% processes, spawned on one scheduler, that do native work again and again.
%%
%% While it runs it must never ask for scheduler_wall_time, or for anything else
%% that wakes every scheduler: that is the workaround (+sfwi) whose absence is
%% to be seen.  Queue lengths and counters are only read.
-module(fairnif_exp_collapse_peer).

-export([prepare/1, set_online/1, measure/1]).

-export_type([form/0, spec/0, measured/0]).

%% W is bytes for md5, microseconds for the others.
-type form() :: md5 | blocking | fair | erlang.
-type spec() :: #{form := form(), n := pos_integer(), w := pos_integer(),
                  r := pos_integer(), bw := non_neg_integer(),
                  ready_ms := non_neg_integer(),    % from spawn to go
                  sample_ms := pos_integer(),       % from look to look
                  print := boolean()}.              % status lines, to stdout
-type measured() :: #{seconds := [float()],
                      in_use := [{Scheduler :: pos_integer(), float()}],
                      online := pos_integer(), elapsed_ms := pos_integer(),
                      done := [non_neg_integer()],  % jobs, by scheduler
                      samples := [{Ms :: integer(), [non_neg_integer()]}],
                      windows := [{Ms :: integer(), [non_neg_integer()]}],
                      lines := [binary()],
                      others := float() | undefined}. % processors

-define(LINE_MS, 1000).
-define(WINDOW_MS, 5000).
-define(TRIES, 5).
%% Of busy wait, to measure how many there are in a microsecond.
-define(ROUNDS, 1000000).

%% @doc Loads what is called, and measures how many microseconds md5 of this
%% many bytes takes: the shortest of some.
-spec prepare(pos_integer()) -> pos_integer().
prepare(Bytes) ->
    {module, _} = code:ensure_loaded(fairnif_exp:spinsleep()),
    {ok, _} = application:ensure_all_started(crypto),
    Md5 = job(md5, Bytes),
    Took = [begin {Us, _} = timer:tc(Md5), Us end
            || _ <- lists:seq(1, ?TRIES)],
    max(1, lists:min(Took)).

%% @doc Sets how many schedulers are online; returns how many were.
-spec set_online(pos_integer()) -> pos_integer().
set_online(N) ->
    erlang:system_flag(schedulers_online, N).

%% @doc One run, in a process of its own: its priority is raised, and a job that
%% fails ends it.  An error then.
-spec measure(spec()) -> {ok, measured()} | {error, term()}.
measure(Spec) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({measured, run(Spec)}) end),
    receive
        {'DOWN', Monitor, process, Pid, {measured, Measured}} -> {ok, Measured};
        {'DOWN', Monitor, process, Pid, Reason} -> {error, Reason}
    end.

run(#{n := N, w := W, r := R, bw := BW, form := Form,
      ready_ms := ReadyMs} = Spec) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    Job = job(Form, W),
    Done = counters:new(erlang:system_info(schedulers), [write_concurrency]),
    Parent = self(),
    Pids = [spawn_link(fun() -> worker(Parent, Job, R, BW, Done) end)
            || _ <- lists:seq(1, N)],
    timer:sleep(ReadyMs),
    process_flag(priority, high),
    Clock = fairnif_lab_machine:cpu_clock(),
    Wall0 = wall(),
    Start = now_ms(),
    _ = [Pid ! go || Pid <- Pids],
    Monitor = spawn_opt(fun() -> look_on(Spec, Done, Start) end,
                        [link, {priority, high}]),
    Seconds = [receive {done, Pid, Took} -> Took end || Pid <- Pids],
    Elapsed = max(1, now_ms() - Start),
    Wall1 = wall(),
    Monitor ! {stop, Parent},
    Seen = receive {Monitor, Answer} -> Answer end,
    Seen#{seconds => Seconds, in_use => in_use(Wall0, Wall1),
          elapsed_ms => Elapsed, done => counts(Done),
          others => fairnif_lab_machine:others(Clock, fairnif_lab_machine:cpu_clock()),
          online => erlang:system_info(schedulers_online)}.

worker(Parent, Job, R, BW, Done) ->
    receive go -> ok end,
    Start = erlang:monotonic_time(),
    repeat(R, Job, BW, Done),
    Took = erlang:convert_time_unit(erlang:monotonic_time() - Start, native,
                                    nanosecond),
    Parent ! {done, self(), Took / 1.0e9}.

repeat(0, _, _, _) ->
    ok;
repeat(R, Job, BW, Done) ->
    _ = Job(),
    %% That of the scheduler on which the job ended.
    counters:add(Done, erlang:system_info(scheduler_id), 1),
    busywait(BW),
    repeat(R - 1, Job, BW, Done).

busywait(0) -> ok;
busywait(N) -> busywait(N - 1).

job(md5, Bytes) ->
    Bin = rand:bytes(Bytes),
    fun() ->
            crypto:hash_final(crypto:hash_update(crypto:hash_init(md5), Bin))
    end;
%% Work and no deadline: with more schedulers than cores a deadline passes while
%% another thread has the core, and there would be less to do.
job(blocking, Us) ->
    Example = fairnif_exp:spinsleep(),
    fun() -> Example:spinwork(Us) end;
job(fair, Us) ->
    Example = fairnif_exp:spinsleep(),
    fun() -> Example:spinwork_fair(Us) end;
job(erlang, Us) ->
    Took = lists:min([begin {T, _} = timer:tc(fun() -> busywait(?ROUNDS) end), T end
                      || _ <- lists:seq(1, ?TRIES)]),
    Rounds = max(1, ?ROUNDS * Us div max(1, Took)),
    fun() -> busywait(Rounds) end.

%% ---- looking on ----

look_on(#{sample_ms := SampleMs, print := Print}, Done, Start) ->
    look(#{done => Done, start => Start, every => SampleMs, print => Print,
           samples => [], windows => [], lines => [],
           line_at => Start, window_at => Start + ?WINDOW_MS}).

look(#{every := Every, samples := Samples, start := Start} = State0) ->
    Queues = queues(),
    Now = now_ms(),
    State1 = window(Now, status(Now, Queues, State0)),
    State2 = State1#{samples := [{Now - Start, Queues} | Samples]},
    receive
        {stop, Parent} ->
            Parent ! {self(), maps:map(fun(_, L) -> lists:reverse(L) end,
                                       maps:with([samples, windows, lines],
                                                 State2))}
    after Every ->
            look(State2)
    end.

%% The normal ones, of the schedulers that are online: a queue that is offline
%% is always empty, and run_queues ends with the dirty ones.
queues() ->
    lists:sublist(erlang:statistics(run_queue_lengths),
                  erlang:system_info(schedulers_online)).

status(Now, Queues, #{line_at := At, print := Print, lines := Lines} = State)
  when Now >= At ->
    Line = fairnif_exp_collapse_verdict:line(erlang:time(), Queues),
    Print andalso io:put_chars([wipe(os:getenv("FAIRNIF_STDERR")), Line, $\n]),
    State#{lines := [unicode:characters_to_binary(Line) | Lines],
           line_at := At + ?LINE_MS};
status(_, _, State) ->
    State.

%% The line of the lab's progress, which is on the same terminal.
wipe("terminal") -> "\r\e[K";
wipe(_) -> "".

window(Now, #{window_at := At, windows := Windows, done := Done,
              start := Start} = State) when Now >= At ->
    State#{windows := [{Now - Start, counts(Done)} | Windows],
           window_at := At + ?WINDOW_MS};
window(_, State) ->
    State.

counts(Done) ->
    [counters:get(Done, I)
     || I <- lists:seq(1, erlang:system_info(schedulers))].

%% The normal schedulers come first, numbered from 1.
wall() ->
    Last = erlang:system_info(schedulers),
    [W || {Id, _, _} = W <- lists:sort(erlang:statistics(scheduler_wall_time)),
          Id =< Last].

in_use(Before, After) ->
    [{Id, 100.0 * (A1 - A0) / max(1, T1 - T0)}
     || {{Id, A0, T0}, {Id, A1, T1}} <- lists:zip(Before, After)].

now_ms() ->
    erlang:monotonic_time(millisecond).
