%% One cell of the matrix: a call in a mode is brought into a state, something is done to its caller
%% or to its module, and what has become of it is checked. Runs inside a peer node whose slices last
%% ?SLICE_MS, so that a state can be seen and is still there when the act comes.
%%
%% run/1 returns ok, or {missed, Evidence} when the state was gone before the act: then nothing is
%% known, and the cell is to be run again. Anything wrong is an error.
-module(fairnif_test_cell).

-export([run/1, peer_args/1, acts/0, states/1]).

-define(SLICE_MS, 60).
-define(NORMAL_MS, 150).                        % how long a body that is NO_YIELD works
-define(MOD, fairnif_test_nif).
-define(PROBE, fairnif_test_probe).

%% -- the matrix as data ------------------------------------------------------

%% @doc {Act, does the caller die of it}
acts() ->
    [{exit_shutdown, dies}, {kill, dies}, {purge, dies},
     {soft_purge, lives}, {upgrade, lives}, {trace, lives}, {garbage_collect, lives},
     {process_info, lives}, {code_change, lives}, {suspend_resume, lives}].

%% @doc The states in which a mode can be:
%% suspended: has yielded, kept from its next slice by erlang:suspend_process;
%% waiting: the same, in the run queue of the only scheduler, on which the actor runs;
%% queued: before its first line, for a dirty scheduler; requeued: the same after some slices;
%% first: in its first slice; running: in a later one.
states(normal) -> [first];
states(yielding) -> [suspended, waiting, first, running];
states(dirty_cpu) -> [queued, first];
states(dirty_io) -> [queued, first];
states(yielding_dirty) -> [queued, requeued, first, running];
states(unwinding) -> states(yielding);
states(unwinding_dirty) -> states(yielding_dirty);
states(auto) -> [suspended, waiting, first, running].

peer_args(State) ->
    Schedulers = case State of
                     waiting -> ["+S", "1:1", "+SDcpu", "1:1"];
                     _ -> ["+S", "2:2", "+SDcpu", "2:2"]
                 end,
    Us = integer_to_list(?SLICE_MS * 1000),
    Schedulers ++ ["+SDio", "2", "-fairnif", "slice_us", Us, "dirty_slice_us", Us].

%% -- a cell ------------------------------------------------------------------

run(Cell = #{act := Act}) ->
    process_flag(priority, max),
    keep_schedulers_awake(),
    %% A module cannot be loaded while all dirty I/O schedulers are busy.
    [{module, _} = code:ensure_loaded(Module)
     || Module <- [proplists, timer, sys, gen_server, fairnif_test_server, ?MOD]],
    {_, Beam, File} = code:get_object_code(?MOD),
    put(beam, {File, Beam}),
    [] = fairnif:tasks(),
    Slot = ?PROBE:new_slot(),
    Gate = close_gate(Cell),
    Caller = start_caller(Act, Cell, Slot),
    Result = try reach(Cell, Caller, Slot, Gate) of
                 {ok, Seen} -> act_and_check(Cell#{seen => Seen}, Caller, Slot, Gate);
                 {missed, Evidence} -> {missed, Evidence}
             after
                 open_gate(Gate)
             end,
    clean(Result, Caller, Slot),
    Result.

act_and_check(Cell, Caller, Slot, Gate) ->
    {Helper, Issued} = spawn_act(Cell, Caller),
    case in_time(Cell, Issued) of
        true ->
            Done = case fate(Cell) of
                       dies -> check_death(Caller, Helper);
                       lives -> check_life(Cell, Caller, Slot, Helper, Gate)
                   end,
            check_slot(Cell, Slot),
            Done;
        false ->
            %% It must be over before anything is cleaned up: it may be loading the module.
            finish_later(Slot),
            _ = outcome(done(Helper)),
            {missed, #{late => Cell}}
    end.

%% A module is deleted when all schedulers have stopped for that: after a body that is NO_YIELD.
fate(#{act := purge, mode := normal}) -> lives;
fate(#{act := Act}) -> proplists:get_value(Act, acts()).

%% The act is issued no later than this process can prove that the state lasted: within half of it.
in_time(#{seen := #{since := Since}, mode := Mode}, Issued) ->
    Issued - Since < case Mode of normal -> ?NORMAL_MS; _ -> ?SLICE_MS end div 2;
in_time(_, _) ->
    true.

check_death(#{pid := Pid, monitor := Monitor}, Helper) ->
    case fairnif_test:down(Monitor) of
        {answer, _} = Answer -> error({answer_of_the_dead, Answer});
        _ -> ok
    end,
    false = is_process_alive(Pid),
    outcome(done(Helper)).

check_life(Cell, Caller = #{monitor := Monitor}, Slot, Helper, Gate) ->
    %% What the act needs to end may be the end of the slice, or of the call.
    Early = receive {done, Helper, Value} -> {done, Value}
            after patience(Cell) -> not_yet
            end,
    Early =:= not_yet orelse still_there(Cell, Caller),
    resume(Cell, Caller),
    open_gate(Gate),
    finish_later(Slot),
    case fairnif_test:down(Monitor) of
        {answer, {true, _Yields}} -> ok;
        Other -> error({wrong_answer, Other})
    end,
    changed(Cell, Caller),
    case Early of {done, Result} -> outcome(Result); not_yet -> outcome(done(Helper)) end.

outcome(ok) -> ok;
outcome({missed, Evidence}) -> {missed, Evidence};
outcome(Other) -> error({act, Other}).

patience(#{act := code_change}) -> 20;
patience(#{mode := Mode}) when Mode =:= normal; Mode =:= dirty_cpu; Mode =:= dirty_io -> 20;
patience(_) -> 5 * ?SLICE_MS.

%% After a harmless act that has ended the task is still where it was stopped.
still_there(#{state := suspended}, #{pid := Pid}) ->
    [#{owner := Pid, state := suspended}] = fairnif:tasks();
still_there(_, _) ->
    ok.

changed(#{act := code_change}, #{pid := Server}) -> 7 = fairnif_test_server:changes(Server);
changed(_, _) -> ok.

resume(#{state := suspended}, #{pid := Pid}) -> true = erlang:resume_process(Pid);
resume(_, _) -> ok.

check_slot(Cell, Slot) ->
    Expected = case Cell of
                   #{state := queued} ->
                       case fate(Cell) of dies -> 0; lives -> 1 end;
                   _ -> 1
               end,
    Ended = fun() ->
                    case ?PROBE:slot(Slot) of
                        #{begun := Expected, ended := Expected} -> true;
                        Other -> {expected, Expected, Other}
                    end
            end,
    fairnif_test:eventually(Ended),
    Defers = 3 * Expected,
    Cleaned = cleaned(Cell, Expected),
    #{begun := Expected, ended := Expected, defers := Defers, disorder := 0, cleaned := Cleaned,
      cleaned_normal := 0} = ?PROBE:slot(Slot),
    ok.

%% A body that unwinds is notified when its caller dies: once.
cleaned(#{mode := Mode} = Cell, Begun) when Mode =:= unwinding; Mode =:= unwinding_dirty ->
    case fate(Cell) of dies -> Begun; lives -> 0 end;
cleaned(_, _) ->
    0.

%% Nothing is left, and the module is there again, in one version.
clean(Result, #{pid := Pid}, Slot) ->
    ?PROBE:finish(Slot),
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    _ = fairnif_test:down(Monitor),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] orelse fairnif:tasks() end),
    _ = code:purge(?MOD),
    {module, ?MOD} = code:ensure_loaded(?MOD),
    erlang:garbage_collect(),
    fairnif_test:eventually(
      fun() -> ?PROBE:alive() =:= #{objects => 0, privs => 1} orelse {Result, ?PROBE:alive()} end).

%% A body that never yields blocks its scheduler, and what the VM has queued behind it waits for a
%% scheduler that is awake to steal it. So one process on each is always about to run, this one
%% keeps to the last scheduler, and such a body to the first (is_slow).
keep_schedulers_awake() ->
    N = erlang:system_info(schedulers_online),
    process_flag(scheduler, N),
    Self = self(),
    [spawn_opt(fun() -> tick_with(monitor(process, Self)) end,
               [{scheduler, Scheduler}, {priority, high}])
     || Scheduler <- lists:seq(1, N)].

tick_with(Monitor) ->
    receive {'DOWN', Monitor, process, _, _} -> ok
    after 1 -> tick_with(Monitor)
    end.

%% -- the caller --------------------------------------------------------------

start_caller(Act, Cell = #{mode := Mode}, Slot) ->
    Self = self(),
    Call = fun() -> call(Self, Mode, Slot) end,
    Caller = case Act of
        code_change ->
            {ok, Server} = fairnif_test_server:start(is_slow(Cell)),
            {_, Monitor} = spawn_monitor(
                             fun() -> exit({answer, fairnif_test_server:run(Server, Call)}) end),
            #{pid => Server, monitor => Monitor};
        _ ->
            Options = case is_slow(Cell) of true -> [{scheduler, 1}]; false -> [] end,
            {Pid, Monitor} = spawn_opt(fun() -> exit({answer, Call()}) end, [monitor | Options]),
            #{pid => Pid, monitor => Monitor}
    end,
    receive calling -> Caller after 240000 -> error(not_called) end.

%% Slices so long that another process on that scheduler would come too late.
is_slow(#{state := State}) ->
    State =:= first orelse State =:= running.

%% A term of every kind goes in and must come out the same: the heap may have been moved.
call(Cell, Mode, Slot) ->
    Terms = [{N, [N], float(N), integer_to_binary(N)} || N <- lists:seq(1, 200)],
    Term = {?MOD:new_object(7), make_ref(), self(), binary:copy(<<"x">>, 1000), Terms,
            #{a => 1 bsl 100}},
    %% Endless, but where it would keep the VM from what needs all schedulers: loading and tracing.
    Us = case Mode of normal -> ?NORMAL_MS * 1000; _ -> 0 end,
    Cell ! calling,
    {Result, Yields} = ?MOD:run(spin, Mode, [Slot, Us, Term]),
    {Result =:= Term, Yields}.

finish_later(Slot) ->
    timer:sleep(20),
    ?PROBE:finish(Slot).

%% -- states ------------------------------------------------------------------

reach(#{state := suspended}, #{pid := Pid}, _Slot, _Gate) ->
    Seen = wait_for(Pid, fun(#{yields := Yields}) -> Yields >= 1 end),
    true = erlang:suspend_process(Pid),
    case fairnif:tasks() of
        [#{owner := Pid, state := suspended}] -> {ok, #{}};
        Other -> {missed, {Seen, Other}}
    end;
reach(#{state := waiting}, #{pid := Pid}, _Slot, _Gate) ->
    %% The task never ends, this process has the highest priority and the only scheduler: it is
    %% suspended until this process waits for something.
    1 = erlang:system_info(schedulers_online),
    _ = wait_for(Pid, fun(#{state := State}) -> State =:= suspended end),
    {ok, #{}};
reach(#{state := queued, mode := Mode}, #{pid := Pid}, Slot, Gate) ->
    case tasks_at(Gate) of
        [#{owner := Pid, state := queued, where := Place, yields := 0}] ->
            Place = place(Mode),
            case ?PROBE:slot(Slot) of
                #{begun := 0} -> {ok, #{}};
                Begun -> {missed, Begun}
            end;
        Other ->
            {missed, Other}
    end;
reach(#{state := requeued, mode := Mode}, #{pid := Pid}, _Slot, Gate) ->
    _ = wait_for(Pid, fun(#{yields := Yields}) -> Yields >= 1 end),
    block(Gate),
    Place = place(Mode),
    case fairnif:tasks() of
        [#{owner := Pid, state := queued, where := Place, yields := Yields}] when Yields >= 1 ->
            {ok, #{}};
        Other ->
            {missed, Other}
    end;
reach(#{state := State, mode := Mode}, #{pid := Pid}, Slot, _Gate) when State =:= first;
                                                                       State =:= running ->
    Lasts = Mode =:= dirty_cpu orelse Mode =:= dirty_io,
    case slice_begin(State, Pid) of
        {ok, Task = #{where := {dirty_cpu, _}}} when Mode =:= auto ->
            {missed, Task};                     % what a busy machine took was held against it
        {ok, Task = #{where := {Place, _}}} ->
            Place = place(Mode),
            fairnif_test:eventually(fun() -> maps:get(begun, ?PROBE:slot(Slot)) =:= 1 end),
            {ok, case Lasts of true -> maps:remove(since, Task); false -> Task end};
        {missed, Evidence} ->
            {missed, Evidence}
    end.

%% The task, seen running in a slice that has begun after `since'.
slice_begin(first, Pid) ->
    Now = erlang:monotonic_time(millisecond),
    first_slice(Pid, Now, Now + 5000);
slice_begin(running, Pid) ->
    #{yields := Yields} = wait_for(Pid, fun(_) -> true end),
    next_slice(Pid, Yields, erlang:monotonic_time(millisecond)).

first_slice(Pid, Since, Until) ->
    Now = erlang:monotonic_time(millisecond),
    case fairnif:tasks() of
        [] when Now > Until -> {missed, never_seen};
        [] -> first_slice(Pid, Now, Until);
        [#{owner := Pid, state := queued}] -> first_slice(Pid, Now, Until);
        [Task = #{state := running, yields := 0}] -> {ok, Task#{since => Since}};
        Other -> {missed, Other}
    end.

next_slice(Pid, Yields, Since) ->
    Now = erlang:monotonic_time(millisecond),
    case fairnif:tasks() of
        [Task = #{owner := Pid, state := running, yields := More}] when More > Yields ->
            {ok, Task#{since => Since}};
        [#{owner := Pid, yields := Yields}] ->
            next_slice(Pid, Yields, Now);
        [#{owner := Pid, yields := More}] when More =:= Yields + 1 ->
            next_slice(Pid, Yields, Since);
        Other ->
            {missed, Other}
    end.

wait_for(Pid, Good) ->
    fairnif_test:eventually(
      fun() ->
              case fairnif:tasks() of
                  [Task = #{owner := Pid}] -> Good(Task) andalso put(task, Task) =/= self();
                  _ -> false
              end
      end),
    get(task).

place(dirty_cpu) -> dirty_cpu;
place(yielding_dirty) -> dirty_cpu;
place(unwinding_dirty) -> dirty_cpu;
place(dirty_io) -> dirty_io;
place(_) -> normal.

%% -- gates: blockers keep all dirty schedulers of a kind busy ----------------

close_gate(#{state := queued, mode := Mode}) ->
    Gate = {place(Mode), []},
    block(Gate);
close_gate(#{state := requeued, mode := Mode}) ->
    {place(Mode), []};
close_gate(_) ->
    none.

%% More blockers than schedulers, at a higher priority than the caller: when one is let through
%% another one takes its place, not the caller.
block({Place, []}) ->
    Blockers = [spawn_opt(fun() -> blocker(Place) end, [{priority, high}, monitor])
                || _ <- lists:seq(1, 8)],
    put({?MODULE, blockers}, Blockers),
    fairnif_test:eventually(fun() -> ?PROBE:waiting(Place) >= 2 end),
    {Place, Blockers}.

blocker(Place) ->
    case Place of
        dirty_cpu -> ?PROBE:block_cpu();
        dirty_io -> ?PROBE:block_io()
    end,
    receive stop -> ok after 0 -> blocker(Place) end.

open_gate(none) ->
    ok;
open_gate({Place, _}) ->
    case erase({?MODULE, blockers}) of
        undefined ->
            ok;
        Blockers ->
            [Pid ! stop || {Pid, _} <- Blockers],
            ?PROBE:pass(Place, 1000),
            [_ = fairnif_test:down(Monitor) || {_, Monitor} <- Blockers],
            ?PROBE:pass(Place, 0)
    end.

%% fairnif:tasks() itself needs a dirty I/O scheduler: when the blockers have all of them, one is
%% let through, and this process's priority is the highest.
tasks_at({dirty_io, _}) ->
    timer:sleep(5),
    Self = self(),
    Passer = spawn_link(fun() -> pass_until_killed(Self) end),
    Tasks = fairnif:tasks(),
    unlink(Passer),
    exit(Passer, kill),
    fairnif_test:eventually(fun() -> ?PROBE:waiting(dirty_io) >= 2 end),
    Tasks;
tasks_at(_) ->
    fairnif_test:eventually(fun() -> fairnif:tasks() =/= [] end),
    fairnif:tasks().

pass_until_killed(Self) ->
    timer:sleep(10),
    ?PROBE:pass(dirty_io, 1),
    pass_until_killed(Self).

%% -- acts --------------------------------------------------------------------

%% In a process of its own: an act may have to wait for the end of the slice or of the call. The
%% two signals are sent from here, at once.
spawn_act(#{act := Act}, #{pid := Pid}) when Act =:= exit_shutdown; Act =:= kill ->
    exit(Pid, case Act of kill -> kill; exit_shutdown -> shutdown end),
    Issued = erlang:monotonic_time(millisecond),
    Self = self(),
    {spawn(fun() -> Self ! {done, self(), ok} end), Issued};
spawn_act(#{act := Act}, #{pid := Pid}) ->
    Self = self(),
    Beam = get(beam),
    Helper = spawn_opt(fun() ->
                               put(beam, Beam),
                               Self ! {acting, self(), erlang:monotonic_time(millisecond)},
                               Self ! {done, self(), try_act(Act, Pid)}
                       end, [{priority, max}, {scheduler, erlang:system_info(schedulers_online)},
                              link]),
    receive {acting, Helper, Issued} -> {Helper, Issued} end.

try_act(Act, Pid) ->
    try act(Act, Pid)
    catch Class:Reason:Stack -> {Class, Reason, Stack}
    end.

done(Helper) ->
    receive {done, Helper, Result} -> Result
    after 240000 -> error({act_never_ends, process_info(Helper, current_stacktrace)})
    end.

%% OTP 25 sometimes overlooks a process in a NIF that was scheduled again, a plain one as well, and
%% purges the code under it: then the cell has missed.
act(purge, Pid) ->
    true = code:delete(?MOD),
    Killed = code:purge(?MOD),
    Overlooked = not Killed andalso is_process_alive(Pid),
    Overlooked andalso exit(Pid, kill),
    fairnif_test:eventually(fun() -> maps:get(privs, ?PROBE:alive()) =:= 0 end),
    case Overlooked of
        true -> {missed, purge_saw_no_caller};
        false -> ok
    end;
act(soft_purge, Pid) ->
    true = code:delete(?MOD),
    case code:soft_purge(?MOD) andalso is_process_alive(Pid) of
        true -> {missed, soft_purge_saw_no_caller};
        false -> ok
    end;
act(upgrade, _Pid) ->
    {Now, Loads} = ?MOD:version(),
    ?MOD:use(case Now of 1 -> fairnif_test_nif_2; 2 -> fairnif_test_nif end),
    {File, Beam} = get(beam),
    {module, ?MOD} = code:load_binary(?MOD, File, Beam),
    {New, More} = ?MOD:version(),
    {New, More} = {3 - Now, Loads + 1},
    Answers = [?MOD:run(echo, Mode, [{Mode, Now}])
               || Mode <- [normal, yielding, auto]],
    [{normal, Now}, {yielding, Now}, {auto, Now}] = Answers,
    ok;
act(trace, Pid) ->
    Flags = [running, garbage_collection, procs, call, timestamp],
    try erlang:trace(Pid, true, [{tracer, spawn(fun drain/0)} | Flags]) of
        1 -> traced(Pid, Flags)
    catch
        error:badarg ->                         % it has answered first: NO_YIELD
            false = is_process_alive(Pid),
            {missed, not_traced}
    end;
act(garbage_collect, Pid) ->
    _ = erlang:garbage_collect(Pid, [{type, minor}]),
    _ = erlang:garbage_collect(Pid, [{type, major}]),
    ok;
act(process_info, Pid) ->
    Items = [memory, heap_size, total_heap_size, current_function, current_stacktrace, status,
             messages, links, binary, dictionary, reductions, backtrace,
             garbage_collection_info],
    case process_info(Pid, Items) of
        undefined -> ok;                        % it has answered first: NO_YIELD
        Info -> Items = [Item || {Item, _} <- Info], ok
    end;
act(code_change, Pid) ->
    ok = sys:suspend(Pid, infinity),
    ok = sys:change_code(Pid, fairnif_test_server, 1, 7, infinity),
    ok = sys:resume(Pid, infinity);
act(suspend_resume, Pid) ->
    try erlang:suspend_process(Pid) of
        true -> true = erlang:resume_process(Pid), ok
    catch
        error:badarg -> ok;                     % it has answered first: NO_YIELD
        %% OTP 25 says so of any process in a dirty NIF, suspends it nevertheless, and resumes it
        %% when the suspending process ends.
        error:internal_error -> ok
    end.

traced(Pid, Flags) ->
    N = erlang:trace_pattern({?MOD, '_', '_'}, true, [local]),
    true = N > 0,
    timer:sleep(2),
    N = erlang:trace_pattern({?MOD, '_', '_'}, false, [local]),
    try erlang:trace(Pid, false, Flags) of
        1 -> ok
    catch
        error:badarg -> ok                      % it has ended
    end.

drain() ->
    receive _ -> drain() after 60000 -> ok end.
