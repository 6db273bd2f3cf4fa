%% What the tests of waiting do inside a peer node: one function for one property, which returns
%% what was seen or ends in an error.
-module(fairnif_test_await).

-compile([export_all, nowarn_export_all]).

-define(MOD, fairnif_test_waits).
-define(PROBE, fairnif_test_probe).

%% -- await ---------------------------------------------------------------------

%% @doc In a process that traps exits and has messages: they stay, in their order.
mailbox() ->
    process_flag(trap_exit, true),
    Messages = [{N, make_ref()} || N <- lists:seq(1, 100)],
    [self() ! M || M <- Messages],
    Link = spawn_link(fun() -> receive stop -> exit(bye) end end),
    Slot = ?PROBE:new_slot(),
    {x, _} = ?MOD:run(offload, [Slot, 5, x]),
    x = ?MOD:run(echo_threaded, [x]),
    [1, 2] = ?MOD:run(echo_threaded, [[1, 2]]),
    oops = try ?MOD:run(fail_threaded, [oops]) catch error:E -> E end,
    {messages, Messages} = process_info(self(), messages),
    Link ! stop,
    receive {'EXIT', Link, bye} -> ok end,
    ok.

%% @doc The time of N round trips with so many messages queued, us.
round_trips(Name, Args, N, Messages) ->
    fairnif_test:apply_in_fresh_process(
      fun() ->
              process_flag(message_queue_data, off_heap),
              [self() ! {message, M} || M <- lists:seq(1, Messages)],
              [?MOD:run(Name, Args) || _ <- lists:seq(1, 20)],
              {Us, _} = timer:tc(fun() -> [?MOD:run(Name, Args) || _ <- lists:seq(1, N)] end),
              {message_queue_len, Messages} = process_info(self(), message_queue_len),
              Us
      end).

%% @doc What awaiting the wrong thing raises.
misused() ->
    [ready, {a}, {fairnif_pending}, [fairnif_pending, x], <<>>]
        = [fairnif:await(V) || V <- [ready, {a}, {fairnif_pending}, [fairnif_pending, x], <<>>]],
    Raised = fun(Pending) -> try fairnif:await(Pending) catch error:R -> R end end,
    [{fairnif, not_pending} = Raised(V)
     || V <- [{fairnif_pending, x}, {fairnif_pending, make_ref(), 1},
              {fairnif_pending, ?PROBE:new_slot()},
              {fairnif_pending, fairnif_test_nif:new_object(1)}]],
    [begin
         Pending = ?MOD:start(Name, Args),
         Self = self(),
         spawn(fun() -> Self ! {other, Raised(Pending)} end),
         receive {other, {fairnif, not_owner}} -> ok end,
         Answer = fairnif:await(Pending),
         {fairnif, awaited_before} = Raised(Pending),
         {fairnif, awaited_before} = Raised(Pending),
         Expected = Answer
     end || {Name, Args, Expected} <- [{offload_often, [3], 3}, {echo_threaded, [{x}], {x}},
                                       {echo_waited, [[y]], [y]}, {sleep, [5], ok}]],
    ok.

%% @doc N pending values that nobody awaits: their tasks go with them.
never_awaited(N) ->
    settled(fun() ->
                    fairnif_test:apply_in_fresh_process(
                      fun() ->
                              _ = [?MOD:start(echo_threaded, [lists:seq(1, 50)])
                                   || _ <- lists:seq(1, N)],
                              _ = [?MOD:start(offload_often, [3]) || _ <- lists:seq(1, N)],
                              _ = [?MOD:start(sleep, [3600000]) || _ <- lists:seq(1, 100)],
                              erlang:garbage_collect(),
                              fairnif_test:eventually(
                                fun() -> fairnif:tasks() =:= [] orelse fairnif:tasks() end)
                      end)
            end).

%% @doc What the VM's functions tell a body: {Form, Difference} for each that is wrong.
about(Forms) ->
    Self = self(),
    [{Form, Wrong}
     || Form <- Forms, Pause <- [false, true],
        Wrong <- [begin
                      fairnif:debug(#{pause_every_tick => Pause}),
                      T0 = erlang:monotonic_time(nanosecond),
                      {Tag, Who, Caller, Alive, Sent, Now} =
                          ?MOD:run(list_to_atom("about_" ++ atom_to_list(Form)), [Self]),
                      T1 = erlang:monotonic_time(nanosecond),
                      fairnif:debug(#{pause_every_tick => false}),
                      [receive {hello, Self} -> ok end || _ <- [1, 2]],
                      Right = {Tag, Who, Caller, Alive, Sent} =:= {4711, Self, Self, true, 2}
                          andalso Now >= T0 - 1000000 andalso Now =< T1 + 1000000,
                      Right orelse {Tag, Who, Caller, Alive, Sent, T0, Now, T1}
                  end],
        Wrong =/= true].

clocks() ->
    [begin
         T0 = [erlang:monotonic_time(U) || U <- [second, millisecond, microsecond]],
         {S, Ms, Us, Ns} = ?MOD:run(Name, []),
         T1 = [erlang:monotonic_time(U) || U <- [second, millisecond, microsecond]],
         true = lists:all(fun({A, X, B}) -> A - 1 =< X andalso X =< B + 1 end,
                          lists:zip3(lists:sublist(T0, 2), [S, Ms], lists:sublist(T1, 2))),
         true = abs(Ns div 1000 - Us) < 100000
     end || Name <- [clock, clock_threaded]],
    ok.

%% -- death ----------------------------------------------------------------------

%% @doc Callers in every kind of wait, killed: nothing is left, and fast.
kills(N) ->
    settled(fun() -> [kill_one(Name, Args) || {Name, Args} <- waits(), _ <- lists:seq(1, N)] end).

%% Each waits for ever, or as good as.
waits() ->
    [{spin_threaded, [?PROBE:new_slot(), 0, {x}]},
     {spin_waited, [?PROBE:new_slot(), 0, {x}]},
     {locked_threaded, [?PROBE:new_slot(), 0, 0, {x}]},
     {locked, [?PROBE:new_slot(), 1, 0, {x}]},
     {sleep, [3600000]}, {sleep_threaded, [3600000]}].

kill_one(Name, Args) ->
    {Pid, Monitor} = spawn_monitor(fun() -> ?MOD:run(Name, Args) end),
    fairnif_test:eventually(fun() -> [O || #{owner := O} <- fairnif:tasks(), O =:= Pid] =/= [] end),
    timer:sleep(rand:uniform(4) - 1),
    exit(Pid, kill),
    killed = fairnif_test:down(Monitor, 5000),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] orelse fairnif:tasks() end).

%% @doc Killed while its function runs on a thread: {Begun, Ended} before and after the function
%% has ended; the function uses the task's memory and stack to its end.
killed_while_offloaded(Name) ->
    Slot = ?PROBE:new_slot(),
    {Pid, Monitor} = spawn_monitor(fun() -> ?MOD:run(Name, [Slot, 60000, {x}]) end),
    fairnif_test:eventually(
      fun() -> maps:get(threads_busy, fairnif:info()) =:= 1 end),
    exit(Pid, kill),
    killed = fairnif_test:down(Monitor, 5000),
    timer:sleep(100),
    #{begun := 1, ended := 0, works := 0} = ?PROBE:slot(Slot),
    [_] = fairnif:tasks(),
    ?PROBE:finish(Slot),
    fairnif_test:eventually(fun() -> maps:get(ended, ?PROBE:slot(Slot)) =:= 1 end),
    #{works := 1, work_ns := Worked, end_ns := Ended, defers := 3, disorder := 0} =
        ?PROBE:slot(Slot),
    true = Ended >= Worked,
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    threads_busy(0),
    ok.

%% @doc Work that is queued behind a busy pool is never begun when its caller dies first.
queued_is_cancelled() ->
    Busy = ?PROBE:new_slot(),
    Queued = ?PROBE:new_slot(),
    #{threads := Threads} = fairnif:info(),
    First = [spawn_monitor(fun() -> ?MOD:run(offload, [Busy, 60000, x]) end)
             || _ <- lists:seq(1, Threads)],
    threads_busy(Threads),
    Then = [spawn_monitor(fun() -> ?MOD:run(offload_dirty, [Queued, 1, x]) end)
            || _ <- lists:seq(1, 20)],
    fairnif_test:eventually(fun() -> maps:get(jobs_queued, fairnif:info()) >= 20 end),
    [exit(Pid, kill) || {Pid, _} <- Then],
    [killed = fairnif_test:down(M, 5000) || {_, M} <- Then],
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= Threads end),
    Works = maps:get(works, ?PROBE:slot(Queued)),
    ?PROBE:finish(Busy),
    [normal = fairnif_test:down(M, 5000) || {_, M} <- First],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    Works.

begun(Slot, N) ->
    fairnif_test:eventually(fun() -> maps:get(begun, ?PROBE:slot(Slot)) =:= N end).

%% A thread counts its job from when it takes it until it comes back from it.
threads_busy(N) ->
    fairnif_test:eventually(fun() -> maps:get(threads_busy, fairnif:info()) =:= N end).

%% -- bounds -----------------------------------------------------------------------

%% @doc N calls: two, and once the two threads are at them, the others at once, of Ms each. The two
%% are held until the others wait for room, but for the two that are queued, or have all ended:
%% [{Answer, Count}] and how long the refused waited, ms.
full(N, Ms, Until) ->
    Held = ?PROBE:new_slot(),
    Slot = ?PROBE:new_slot(),
    First = [timed(fun() -> ?MOD:run(offload, [Held, 60000, x]) end) || _ <- [1, 2]],
    threads_busy(2),
    Others = [timed(fun() -> ?MOD:run(offload, [Slot, Ms, x]) end) || _ <- lists:seq(3, N)],
    fairnif_test:eventually(fun() -> is_so(Until, Others) end, 30000),
    ?PROBE:finish(Held),
    Ends = [fairnif_test:down(M, 60000) || {_, M} <- First ++ Others],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    threads_busy(0),
    {counted([R || {R, _} <- Ends]), [T || {overloaded, T} <- Ends],
     maps:with([jobs_queued, jobs_waiting_for_room, jobs_without_room, threads_busy],
               fairnif:info())}.

is_so(waiting, Calls) -> maps:get(jobs_without_room, fairnif:info()) =:= length(Calls) - 2;
is_so(ended, Calls) -> not lists:any(fun({Pid, _}) -> is_process_alive(Pid) end, Calls).

timed(Call) ->
    spawn_monitor(fun() ->
                          T0 = erlang:monotonic_time(millisecond),
                          R = try Call() catch error:E -> E end,
                          exit({R, erlang:monotonic_time(millisecond) - T0})
                  end).

counted(Things) ->
    [{T, length([X || X <- Things, X =:= T])} || T <- lists:usort(Things)].

%% @doc With two at once of Name, of which one never ends: the others come one by one, and killed
%% ones leave the list. In which order.
turns(Name) ->
    Held = [?PROBE:new_slot(), ?PROBE:new_slot()],
    Slot = ?PROBE:new_slot(),
    Self = self(),
    Calls = [spawn_monitor(fun() -> ?MOD:run(Name, [S, 0, x]) end) || S <- Held],
    [begun(S, 1) || S <- Held],
    Waiters = [begin
                   {Pid, Monitor} = spawn_monitor(
                                      fun() ->
                                              _ = ?MOD:run(Name, [Slot, 2000, N]),
                                              Self ! {came, N}
                                      end),
                   fairnif_test:eventually(
                     fun() -> length([T || T = #{where := turn} <- fairnif:tasks()]) =:= N end,
                     30000),
                   {N, Pid, Monitor}
               end || N <- lists:seq(1, 10)],
    %% One that waits for its turn is not in the body.
    #{begun := 0} = ?PROBE:slot(Slot),
    Killed = [3, 7],
    [exit(Pid, kill) || {N, Pid, _} <- Waiters, lists:member(N, Killed)],
    fairnif_test:eventually(
      fun() -> length([T || T = #{where := turn} <- fairnif:tasks()]) =:= 8 end, 30000),
    ?PROBE:finish(hd(Held)),
    [fairnif_test:down(M, 20000) || {_, _, M} <- Waiters],
    ?PROBE:finish(lists:last(Held)),
    [fairnif_test:down(M, 20000) || {_, M} <- Calls],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    came().

came() ->
    receive {came, N} -> [N | came()] after 0 -> [] end.

%% @doc What a call that has to wait its turn for longer than overload_ms raises, and after what
%% time, ms.
late_turn(Name) ->
    Slot = ?PROBE:new_slot(),
    First = [spawn_monitor(fun() -> ?MOD:run(Name, [Slot, 0, x]) end) || _ <- [1, 2]],
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= 2 end),
    {Us, overloaded} = timer:tc(fun() -> try ?MOD:run(Name, [Slot, 1, x]) catch error:E -> E end
                                end),
    ?PROBE:finish(Slot),
    [normal = fairnif_test:down(M, 5000) || {_, M} <- First],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    {x, _} = ?MOD:run(Name, [Slot, 1, x]),
    Us div 1000.

%% -- locks --------------------------------------------------------------------------

%% @doc Holders of one lock come in the order in which they asked; those killed are left out, as
%% holder and as waiter.
lock_order(Name) ->
    Lock = 2,
    Slot = ?PROBE:new_slot(),
    Later = ?PROBE:new_slot(),
    {Holder, HolderMonitor} = spawn_monitor(fun() -> ?MOD:run(Name, [Slot, Lock, 0, x]) end),
    begun(Slot, 1),
    fairnif_test:eventually(fun() -> ?MOD:run(try_lock, [Lock]) =:= false end),
    Waiters = [begin
                   {Pid, Monitor} = spawn_monitor(
                                      fun() ->
                                              {Nth, N} = ?MOD:run(Name, [Later, Lock, 1000, N]),
                                              exit({came, Nth})
                                      end),
                   fairnif_test:eventually(
                     fun() -> length([T || T = #{where := lock} <- fairnif:tasks()]) =:= N end),
                   {N, Pid, Monitor}
               end || N <- lists:seq(1, 8)],
    [exit(Pid, kill) || {N, Pid, _} <- Waiters, N =:= 2 orelse N =:= 5],
    fairnif_test:eventually(
      fun() -> length([T || T = #{where := lock} <- fairnif:tasks()]) =:= 6 end),
    %% The holder dies with the lock: what it left counted is no sign of two at once.
    ?MOD:run(left, [Lock]),
    exit(Holder, kill),
    killed = fairnif_test:down(HolderMonitor, 5000),
    Ends = [{N, fairnif_test:down(M, 10000)} || {N, _, M} <- Waiters],
    [{2, killed}, {5, killed}] = [E || E = {_, killed} <- Ends],
    Came = [Nth || {_, {came, Nth}} <- Ends],
    6 = length(Came),
    Came = lists:sort(Came),
    true = ?MOD:run(try_lock, [Lock]),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    ok.

%% @doc Very many take one lock, in all modes, killed at random: never two at once.
lock_storm(N) ->
    Slot = ?PROBE:new_slot(),
    settled(
      fun() ->
              Calls = [spawn_monitor(
                         fun() ->
                                 Name = lists:nth(1 + I rem 3,
                                                  [locked, locked_dirty, locked_threaded]),
                                 Term = case I rem 5 of 0 -> raise; _ -> I end,
                                 try ?MOD:run(Name, [Slot, 3, 20, Term]) of
                                     {_, Term} -> exit(ok)
                                 catch
                                     error:raise -> exit(ok)
                                 end
                         end) || I <- lists:seq(1, N)],
              Ends = [fairnif_test:down(M, 60000) || {_, M} <- Calls],
              [{ok, N}] = counted(Ends)
      end),
    #{begun := N, ended := N, disorder := 0} = ?PROBE:slot(Slot),
    true = ?MOD:run(try_lock, [3]),
    ok.

deadlock() ->
    [begin
         {fairnif, {deadlock, {?MOD, Nif, 1}}} =
             try ?MOD:run(Name, [4]) catch error:E -> E end,
         true = ?MOD:run(try_lock, [4])
     end || {Name, Nif} <- [{twice, twice_nif}, {twice_threaded, twice_threaded_nif}]],
    [ok = ?MOD:run(Name, []) || Name <- [many_locks, many_locks_threaded], _ <- lists:seq(1, 50)],
    ok.

not_awaited() ->
    Slot = ?PROBE:new_slot(),
    {fairnif, {not_awaited, {?MOD, offload_not_awaited_nif, 3}}} =
        try ?MOD:start(offload_not_awaited, [Slot, 1, x]) catch error:E -> E end,
    %% A lock that nobody holds needs no waiting.
    {_, x} = ?MOD:start(locked_not_awaited, [Slot, 5, 1, x]),
    {Holder, Monitor} = spawn_monitor(fun() -> ?MOD:run(locked, [Slot, 5, 0, x]) end),
    fairnif_test:eventually(fun() -> ?MOD:run(try_lock, [5]) =:= false end),
    {fairnif, {not_awaited, {?MOD, locked_not_awaited_nif, 4}}} =
        try ?MOD:start(locked_not_awaited, [Slot, 5, 1, x]) catch error:E1 -> E1 end,
    exit(Holder, kill),
    killed = fairnif_test:down(Monitor, 5000),
    fairnif_test:eventually(fun() -> ?MOD:run(try_lock, [5]) end),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    #{begun := N, ended := N} = ?PROBE:slot(Slot),
    ok.

%% -- large arguments ---------------------------------------------------------------

%% @doc The counters of one threaded call with this argument, and how long its caller held a normal
%% scheduler at most, us: by a trace of its slices.
large_argument(Length) ->
    List = lists:seq(1, Length),
    {Pid, Monitor} = spawn_monitor(
                       fun() ->
                               receive go -> ok end,
                               _ = ?MOD:run(ticks_threaded, [1, 1]),
                               {Length, Sum} = ?MOD:run(walk_threaded, [List]),
                               Sum = Length * (Length + 1) div 2,
                               exit(done)
                       end),
    erlang:trace(Pid, true, [running, scheduler_id, monotonic_timestamp]),
    Pid ! go,
    done = fairnif_test:down(Monitor, 60000),
    Events = events(Pid),
    lists:max([0 | slices(Events)]).

events(Pid) ->
    receive
        {trace_ts, Pid, What, _MFA, Scheduler, At} -> [{What, Scheduler, At} | events(Pid)]
    after 100 -> []
    end.

slices([{in, Scheduler, From}, {out, _, To} | Events]) when Scheduler > 0 ->
    [erlang:convert_time_unit(To - From, native, microsecond) | slices(Events)];
slices([_ | Events]) -> slices(Events);
slices([]) -> [].

%% -- the library's own life ------------------------------------------------------------

%% @doc The module is purged while calls of it are queued, on a thread, and waiting. Callers with a
%% frame of it are killed, the others get their answer.
purge(Nested) ->
    Slot = ?PROBE:new_slot(),
    %% Who is to be killed is there whenever that is.
    Ms = case Nested of true -> 60000; false -> 2000 end,
    Names = [{spin_threaded, [Slot, 0, {x}]}, {spin_waited, [Slot, 0, {x}]},
             {sleep, [Ms]}, {sleep_threaded, [Ms]}, {offload, [Slot, Ms, {x}]}],
    Calls = [spawn_monitor(
               fun() ->
                       exit({answer, case Nested of
                                         true -> ?MOD:nested(Name, Args);
                                         false -> fairnif:await(?MOD:start(Name, Args))
                                     end})
               end) || {Name, Args} <- Names, _ <- lists:seq(1, 4)],
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= length(Calls) end),
    begun(Slot, 12),
    timer:sleep(20),
    true = code:delete(?MOD),
    false = code:soft_purge(?MOD) andalso Nested,
    _ = code:purge(?MOD),
    timer:sleep(20),
    {module, ?MOD} = code:load_file(?MOD),
    _ = code:purge(?MOD),
    x = ?MOD:run(echo_threaded, [x]),
    ?PROBE:finish(Slot),
    Ends = [fairnif_test:down(M, 10000) || {_, M} <- Calls],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] orelse fairnif:tasks() end),
    #{begun := Begun, ended := Begun, disorder := 0} = ?PROBE:slot(Slot),
    counted([case E of {answer, {Term, _}} -> Term; {answer, A} -> A; _ -> E end || E <- Ends]).

%% @doc The module is loaded anew, again and again, while its calls wait.
upgrades(N) ->
    settled(
      fun() ->
              Slot = ?PROBE:new_slot(),
              Calls = [spawn_monitor(fun() ->
                                             ok = ?MOD:run(sleep, [I rem 50]),
                                             I = ?MOD:run(echo_threaded, [I]),
                                             {I, _} = ?MOD:run(offload, [Slot, I rem 7, I])
                                     end) || I <- lists:seq(1, 200)],
              Loaded = [begin
                            timer:sleep(10),
                            code:soft_purge(?MOD) andalso
                                element(1, code:load_file(?MOD)) =:= module
                        end || _ <- lists:seq(1, N)],
              [normal = fairnif_test:down(M, 20000) || {_, M} <- Calls],
              true = lists:member(true, Loaded),
              _ = code:purge(?MOD)
      end).

%% @doc The application is stopped while calls wait, and started again.
stop_application() ->
    Slot = ?PROBE:new_slot(),
    Calls = [spawn_monitor(fun() -> exit(?MOD:run(Name, Args)) end)
             || {Name, Args} <- [{sleep, [2000]}, {offload, [Slot, 60000, x]},
                                 {sleep_threaded, [2000]}], _ <- lists:seq(1, 5)]
        ++ [spawn_monitor(fun() -> exit(?MOD:run(spin_threaded, [Slot, 0, x])) end)],
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) >= 10 end),
    {Us, ok} = timer:tc(application, stop, [fairnif]),
    x = ?MOD:run(echo_threaded, [x]),
    ok = application:start(fairnif),
    ?PROBE:finish(Slot),
    Ends = [fairnif_test:down(M, 10000) || {_, M} <- Calls],
    [ok, {x, _} | _] = lists:usort(Ends),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    Us div 1000.

%% -- figures -----------------------------------------------------------------------------

%% @doc The figures of info/0 while the pool has two threads and room for one more.
figures() ->
    Slot = ?PROBE:new_slot(),
    Before = fairnif:info(),
    Calls = [begin
                 C = spawn_monitor(fun() -> ?MOD:run(offload, [Slot, 60000, x]) end),
                 %% What no thread has taken yet would keep the next one from the room.
                 threads_busy(min(N, 2)),
                 fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= N end),
                 C
             end || N <- lists:seq(1, 4)],
    fairnif_test:eventually(fun() -> maps:get(jobs_waiting_for_room, fairnif:info()) =:= 1 end),
    Keys = [threads, max_queued, threads_busy, threads_started, jobs_queued,
            jobs_waiting_for_room],
    Full = maps:with(Keys, fairnif:info()),
    Tasks = counted([{S, case W of {P, _} -> P; P -> P end}
                     || #{state := S, where := W} <- fairnif:tasks()]),
    timer:sleep(800),
    ?PROBE:finish(Slot),
    [normal = fairnif_test:down(M, 10000) || {_, M} <- Calls],
    threads_busy(0),
    After = fairnif:info(),
    Delta = fun(Key) -> maps:get(Key, After) - maps:get(Key, Before) end,
    #{waits := 4, offloads := 4, thread_ns := Ns} = fairnif:info({?MOD, offload_nif, 3}),
    {Full, Tasks, [{K, Delta(K)} || K <- [jobs_done, jobs_without_room]],
     Delta(jobs_wait_ns) div 1000000, maps:get(jobs_longest_wait_ns, After) div 1000000,
     Ns div 1000000}.

%% @doc How many threads the pool has N ms after 8 jobs at once.
threads_after(Ms) ->
    Slot = ?PROBE:new_slot(),
    Calls = [spawn_monitor(fun() -> ?MOD:run(offload, [Slot, 60000, x]) end)
             || _ <- lists:seq(1, 8)],
    threads_busy(8),
    ?PROBE:finish(Slot),
    [normal = fairnif_test:down(M, 10000) || {_, M} <- Calls],
    #{threads_started := Then} = fairnif:info(),
    timer:sleep(Ms),
    #{threads_started := Now} = fairnif:info(),
    {x, _} = ?MOD:run(offload, [Slot, 1, x]),
    {Then, Now}.

%% @doc How late a process that sleeps 1 ms is, us, in 99 of 100 cases: alone, and beside so many
%% processes whose jobs of 100 ms follow each other on the pool's threads.
late(Jobs) ->
    Alone = late_p99(),
    Slot = ?PROBE:new_slot(),
    Pids = [spawn(fun() -> offload_for_ever(Slot) end) || _ <- lists:seq(1, Jobs)],
    fairnif_test:eventually(fun() -> maps:get(jobs_queued, fairnif:info()) > Jobs div 2 end),
    Beside = late_p99(),
    [exit(Pid, kill) || Pid <- Pids],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    {Alone, Beside}.

offload_for_ever(Slot) ->
    _ = ?MOD:run(offload, [Slot, 100, x]),
    offload_for_ever(Slot).

late_p99() ->
    Late = [begin
                T0 = erlang:monotonic_time(microsecond),
                receive after 1 -> ok end,
                erlang:monotonic_time(microsecond) - T0 - 1000
            end || _ <- lists:seq(1, 500)],
    lists:nth(495, lists:sort(Late)).

%% -- a storm ---------------------------------------------------------------------------------

%% @doc For so many seconds calls that wait in every way, a third of them killed.
storm(Seconds) ->
    Seed = erlang:unique_integer([positive]),
    rand:seed(exsss, Seed),
    Slot = ?PROBE:new_slot(),
    Deadline = erlang:monotonic_time(millisecond) + 1000 * Seconds,
    Ends = settled(
             fun() ->
                     [start_one(Slot) || _ <- lists:seq(1, 200)],
                     storm(Slot, Deadline, 200, #{})
             end),
    Wrong = maps:without([ok, killed, overloaded], Ends),
    maps:size(Wrong) =:= 0 orelse error({seed, Seed, Wrong}),
    #{begun := Begun, ended := Begun, disorder := Disorder} = ?PROBE:slot(Slot),
    %% A killed holder leaves its mark on the lock, which is no disorder.
    0 = Disorder rem 1000,
    Ends.

storm(_Slot, _Deadline, 0, Ends) ->
    Ends;
storm(Slot, Deadline, N, Ends) ->
    End = receive {'DOWN', _, process, _, Reason} -> Reason
          after 60000 -> error({stuck, N, fairnif:tasks(), maps:remove(functions, fairnif:info())})
          end,
    More = maps:update_with(End, fun(Count) -> Count + 1 end, 1, Ends),
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> start_one(Slot), storm(Slot, Deadline, N, More);
        false -> storm(Slot, Deadline, N - 1, More)
    end.

start_one(Slot) ->
    Call = lists:nth(rand:uniform(12),
                     [{echo_threaded, [{a, [self()]}], {a, [self()]}},
                      {echo_waited, [<<"x">>], <<"x">>},
                      {build_threaded, [2000], lists:seq(1, 2000)},
                      {walk_threaded, [lists:seq(1, 5000)], {5000, 12502500}},
                      {spin_threaded, [Slot, rand:uniform(300), x], any},
                      {spin_waited, [Slot, rand:uniform(300), x], any},
                      {limited, [Slot, rand:uniform(300), x], any},
                      {limited_threaded, [Slot, rand:uniform(300), x], any},
                      {locked, [Slot, 6, rand:uniform(100), x], any},
                      {locked_threaded, [Slot, 6, rand:uniform(100), x], any},
                      {sleep, [rand:uniform(10)], ok},
                      {offload, [Slot, rand:uniform(3) - 1, x], any}]),
    {Pid, _} = spawn_monitor(fun() -> exit(result(Call)) end),
    case rand:uniform(6) of
        1 -> exit(Pid, kill);
        2 -> Ms = rand:uniform(10) - 1, spawn(fun() -> receive after Ms -> exit(Pid, kill) end end);
        3 -> spawn(fun() -> erlang:garbage_collect(Pid) end);
        _ -> ok
    end.

result({Name, Args, Expected}) ->
    try ?MOD:run(Name, Args) of
        Expected -> ok;
        _ when Expected =:= any -> ok;
        Other -> {wrong, Name, Other}
    catch
        error:overloaded -> overloaded
    end.

%% @doc Fun's value; nothing of what it has done is left: tasks, stacks, jobs, processes, memory.
settled(Fun) ->
    ok = fairnif_test:calibrated(),
    Before = left(),
    Value = Fun(),
    fairnif_test:eventually(
      fun() ->
              After = left(),
              maps:remove(memory, After) =:= maps:remove(memory, Before)
                  andalso maps:get(memory, After) - maps:get(memory, Before) < 16000000
                  orelse {before, Before, later, After}
      end, 15000),
    Value.

left() ->
    [erlang:garbage_collect(Pid) || Pid <- processes()],
    #{stacks_mapped := Mapped, stacks_idle := Idle, jobs_queued := Queued,
      jobs_waiting_for_room := Waiting, threads_busy := Busy} = fairnif:info(),
    #{tasks => length(fairnif:tasks()), in_use => Mapped - Idle, queued => Queued + Waiting,
      busy => Busy, objects => maps:get(objects, ?PROBE:alive()),
      processes => length(processes()), memory => erlang:memory(total)}.
