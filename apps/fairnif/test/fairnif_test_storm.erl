%% Many processes in random bodies and modes, killed, sent exits, collected at random moments,
%% while the module is upgraded again and again. Runs inside a peer node.
-module(fairnif_test_storm).

-export([blow/2, kill/3, resident/0, settled/1]).

-define(MOD, fairnif_test_nif).
-define(PROBE, fairnif_test_probe).
-define(AT_ONCE, 300).

%% @doc For some seconds, with up to that many upgrades (infinity is more than any number).
%% Returns how many calls ended how.
blow(Seconds, Upgrades) ->
    Deadline = erlang:monotonic_time(millisecond) + 1000 * Seconds,
    #{ends := Ends, seed := Seed} = Storm =
        storm(Upgrades, fun start/1,
              fun(_) -> erlang:monotonic_time(millisecond) < Deadline end),
    Wrong = maps:without([ok, killed, shutdown], Ends),
    maps:size(Wrong) =:= 0 orelse error({seed, Seed, Wrong}),
    Storm.

%% @doc Kills N callers of endless calls, in random modes and at random moments; gives up after so
%% many seconds. Returns how many died, and in which states calls were while it lasted.
kill(N, Seconds, Upgrades) ->
    Deadline = erlang:monotonic_time(millisecond) + 1000 * Seconds,
    Watcher = spawn_link(fun() -> watch(#{}) end),
    #{ends := Ends, seed := Seed} = Storm =
        storm(Upgrades, fun start_to_kill/1,
              fun(Ends) ->
                      maps:get(killed, Ends, 0) + ?AT_ONCE =< N
                          andalso erlang:monotonic_time(millisecond) < Deadline
              end),
    Watcher ! {stop, self()},
    receive {states, States} -> ok end,
    Wrong = maps:without([ok, killed], Ends),
    maps:size(Wrong) =:= 0 orelse error({seed, Seed, Wrong}),
    Storm#{kills => maps:get(killed, Ends, 0), states => States}.

watch(States) ->
    receive
        {stop, Pid} -> Pid ! {states, States}
    after 100 ->
            watch(lists:foldl(fun(#{state := State}, Seen) ->
                                      maps:update_with(State, fun(N) -> N + 1 end, 1, Seen)
                              end, States, fairnif:tasks()))
    end.

storm(UpgradesMost, Start, GoOn) ->
    Seed = erlang:unique_integer([positive]),
    rand:seed(exsss, Seed),
    Slot = ?PROBE:new_slot(),
    Cases = [Case || Case = {Body, _, _} <- fairnif_test_cases:all(), Body =/= fail],
    put(cases, list_to_tuple(Cases)),
    Before = left(),
    Upgrader = spawn_link(fun() -> upgrade(0, UpgradesMost) end),
    _ = [Start(Slot) || _ <- lists:seq(1, ?AT_ONCE)],
    Ends = gust(fun() -> Start(Slot) end, GoOn, #{}, ?AT_ONCE),
    Upgrader ! {stop, self()},
    receive {upgrades, Upgrades} -> ok end,
    settle(Before),
    #{begun := Begun, ended := Begun, disorder := 0} = Counted = ?PROBE:slot(Slot),
    #{seed => Seed, ends => Ends, spins => Counted, upgrades => Upgrades}.

%% Some hundred at once; as one ends the next one starts.
gust(_Start, _GoOn, Ends, 0) ->
    Ends;
gust(Start, GoOn, Ends, N) ->
    End = receive {'DOWN', _, process, _, Reason} -> Reason
          after 600000 -> error({stuck, N, fairnif:tasks()})
          end,
    More = maps:update_with(End, fun(Count) -> Count + 1 end, 1, Ends),
    case GoOn(More) of
        true -> Start(), gust(Start, GoOn, More, N);
        false -> gust(Start, GoOn, More, N - 1)
    end.

start(Slot) ->
    Cases = get(cases),
    Case = element(rand:uniform(tuple_size(Cases)), Cases),
    Modes = ?MOD:all_modes(),
    Mode = lists:nth(rand:uniform(length(Modes)), Modes),
    Fun = case rand:uniform(10) of
              1 -> fun() -> exit(fairnif_test_cases:check(Case, Mode)) end;
              _ -> fun() -> spin(Mode, Slot) end
          end,
    {Pid, _} = spawn_monitor(Fun),
    disturb(Pid, rand:uniform(8)).

spin(Mode, Slot) ->
    Term = {self(), ?MOD:new_object(1), [make_ref()], binary:copy(<<1>>, 200)},
    case ?MOD:run(spin, Mode, [Slot, rand:uniform(300), Term]) of
        {Term, _} -> exit(ok);
        Other -> exit({wrong, Mode, Other})
    end.

%% Endless, but for mode normal, whose caller cannot die before the call ends.
start_to_kill(Slot) ->
    Modes = ?MOD:all_modes(),
    Mode = lists:nth(rand:uniform(length(Modes)), Modes),
    Us = case Mode of normal -> rand:uniform(300); _ -> 0 end,
    {Pid, _} = spawn_monitor(
                 fun() ->
                         _ = ?MOD:run(spin, Mode, [Slot, Us, {self(), [make_ref()]}]),
                         exit(case Mode of normal -> ok; _ -> {ended, Mode} end)
                 end),
    case rand:uniform(4) of
        1 -> exit(Pid, kill);
        2 -> erlang:yield(), exit(Pid, kill);
        _ -> later(fun() -> exit(Pid, kill) end)
    end.

disturb(Pid, 1) -> exit(Pid, kill);
disturb(Pid, 2) -> later(fun() -> exit(Pid, kill) end);
disturb(Pid, 3) -> later(fun() -> exit(Pid, kill) end);
disturb(Pid, 4) -> later(fun() -> exit(Pid, shutdown) end);
disturb(Pid, 5) -> later(fun() -> erlang:garbage_collect(Pid) end);
disturb(Pid, 6) -> later(fun() -> process_info(Pid, [memory, current_stacktrace]) end);
disturb(_Pid, _) -> ok.

%% Not timer:sleep: where that module is not loaded yet, its file would be read on a dirty I/O
%% scheduler, and endless calls may hold all of them until Fun has come.
later(Fun) ->
    Ms = rand:uniform(10) - 1,
    spawn(fun() -> receive after Ms -> Fun() end end),
    ok.

%% The old version is purged when no task needs it any more: no process is killed by this.
upgrade(N, Most) ->
    receive
        {stop, Pid} -> Pid ! {upgrades, N}
    after 5 ->
            case N < Most andalso code:soft_purge(?MOD) of
                true ->
                    ?MOD:use(case N rem 4 of
                                 0 -> fairnif_test_nif_2;
                                 2 -> fairnif_test_nif;
                                 _ -> persistent_term:get({?MOD, library}, ?MOD)
                             end),
                    {module, ?MOD} = code:load_file(?MOD),
                    upgrade(N + 1, Most);
                false ->
                    upgrade(N, Most)
            end
    end.

%% -- what is left ------------------------------------------------------------

left() ->
    [erlang:garbage_collect(Pid) || Pid <- processes()],
    #{stacks_mapped := Mapped, stacks_idle := Idle, jobs_queued := Queued,
      jobs_waiting_for_room := Waiting, threads_busy := Busy} = fairnif:info(),
    #{tasks => length(fairnif:tasks()), in_use => Mapped - Idle, mapped => Mapped,
      queued => Queued + Waiting, busy => Busy,
      objects => maps:get(objects, ?PROBE:alive()), processes => length(processes()),
      memory => erlang:memory()}.

%% @doc Bytes of this node that are resident, page tables included.
resident() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    1024 * lists:sum([binary_to_integer(KiB)
                      || Name <- ["VmRSS", "VmPTE"],
                         {match, [KiB]} <- [re:run(Status, Name ++ ":\\s*(\\d+) kB",
                                                   [{capture, all_but_first, binary}])]]).

%% @doc Fun's value; nothing of what it has done is left.
settled(Fun) ->
    ok = fairnif_test:calibrated(),
    Before = left(),
    Value = Fun(),
    settle(Before),
    Value.

%% Everything is as it was: tasks, stacks, jobs, objects, processes at once; memory within some MB,
%% since allocators and counters keep theirs.
settle(Before) ->
    fairnif_test:eventually(
      fun() ->
              After = left(),
              Same = [tasks, in_use, queued, busy, objects, processes],
              maps:with(Same, After) =:= maps:with(Same, Before)
                  andalso grown(Before, After) =:= [] andalso maps:get(mapped, After) < 1200
                  orelse {before, Before, later, After}
      end).

grown(#{memory := Before}, #{memory := After}) ->
    [{Kind, Bytes - proplists:get_value(Kind, Before)}
     || {Kind, Bytes} <- After, lists:member(Kind, [processes, binary, system]),
        Bytes - proplists:get_value(Kind, Before) > 8000000].
