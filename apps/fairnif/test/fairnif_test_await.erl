%% What the tests of waiting do inside a peer node: one function for one property, which returns
%% what was seen or ends in an error.
-module(fairnif_test_await).

-compile([export_all, nowarn_export_all]).

-define(MOD, fairnif_test_waits).
-define(PROBE, fairnif_test_probe).

%% -- await ---------------------------------------------------------------------

%% @doc The time of N round trips with Messages messages queued, us.
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

begun(Slot, N) ->
    fairnif_test:eventually(fun() -> maps:get(begun, ?PROBE:slot(Slot)) =:= N end).

%% A thread counts its job from when it takes it until it comes back from it.
threads_busy(N) ->
    fairnif_test:eventually(fun() -> maps:get(threads_busy, fairnif:info()) =:= N end).

counted(Things) ->
    [{T, length([X || X <- Things, X =:= T])} || T <- lists:usort(Things)].

%% -- large arguments ---------------------------------------------------------------

%% @doc The counters of one threaded call with this argument, and how long its caller blocked a
%% normal scheduler at most, us: by a trace of its slices.
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
    done = fairnif_test:down(Monitor),
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
    %% The process to kill is there whenever that is.
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
    Ends = [fairnif_test:down(M) || {_, M} <- Calls],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] orelse fairnif:tasks() end),
    #{begun := Begun, ended := Begun, disorder := 0} = ?PROBE:slot(Slot),
    counted([case E of {answer, {Term, _}} -> Term; {answer, A} -> A; _ -> E end || E <- Ends]).

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
    Ends = [fairnif_test:down(M) || {_, M} <- Calls],
    [ok, {x, _} | _] = lists:usort(Ends),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    Us div 1000.

%% @doc Calls while module fairnif is not there, and after it was loaded, thrice.
reloaded() ->
    1 = ?MOD:run(offload_often, [1]),
    true = code:delete(fairnif),
    _ = code:purge(fairnif),
    _ = [begin
             fairnif_pending = element(1, ?MOD:start(offload_often, [1])),
             erlang:garbage_collect()
         end || _ <- lists:seq(1, 1000)],
    _ = [begin
             1 = ?MOD:run(offload_often, [1]),
             _ = code:purge(fairnif),
             {module, fairnif} = code:load_file(fairnif)
         end || _ <- [first, second, third]],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end).

%% -- figures -----------------------------------------------------------------------------

%% @doc After 8 jobs at once the pool has 8 threads, and later one at most.
threads_leave() ->
    Slot = ?PROBE:new_slot(),
    Calls = [spawn_monitor(fun() -> ?MOD:run(offload, [Slot, 60000, x]) end)
             || _ <- lists:seq(1, 8)],
    threads_busy(8),
    Started = fun() -> maps:get(threads_started, fairnif:info()) end,
    8 = Started(),
    ?PROBE:finish(Slot),
    [normal = fairnif_test:down(M) || {_, M} <- Calls],
    fairnif_test:eventually(fun() -> Started() =< 1 end),
    {x, _} = ?MOD:run(offload, [Slot, 1, x]),
    ok.

%% @doc How late a process that sleeps 1 ms is, us, in 99 of 100 cases: alone, and beside Jobs
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

%% @doc For that many seconds calls that wait in every way, a third of them killed.
storm(Seconds) ->
    Seed = erlang:unique_integer([positive]),
    rand:seed(exsss, Seed),
    Slot = ?PROBE:new_slot(),
    Deadline = erlang:monotonic_time(millisecond) + 1000 * Seconds,
    Ends = fairnif_test_storm:settled(
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
          after 240000 -> error({stuck, N, fairnif:tasks(), maps:remove(functions, fairnif:info())})
          end,
    More = maps:update_with(End, fun(Count) -> Count + 1 end, 1, Ends),
    case erlang:monotonic_time(millisecond) < Deadline of
        true -> start_one(Slot), storm(Slot, Deadline, N, More);
        false -> storm(Slot, Deadline, N - 1, More)
    end.

start_one(Slot) ->
    Call = lists:nth(rand:uniform(14),
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
                      {locked_dirty, [Slot, 6, rand:uniform(100), x], any},
                      {locked, [Slot, 6, rand:uniform(20), raise], raised},
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
        error:overloaded -> overloaded;
        error:raise when Expected =:= raised -> ok
    end.
