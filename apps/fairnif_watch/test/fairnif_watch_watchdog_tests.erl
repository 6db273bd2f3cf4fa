%% The watch thread on a live node: what it sees, and what it does not. What stays of it, or not, is
%% for fairnif_watch_harm_SUITE.
%%
%% Time is wall time on a machine that may be busy: an observation that went otherwise is repeated,
%% and what was seen each time is in the failure.
-module(fairnif_watch_watchdog_tests).

-include_lib("eunit/include/eunit.hrl").

-import(fairnif_check_repeat, [until_it_holds/1]).

-export([collect_in_peer/2]).

watchdog_test_() ->
    {setup,
     fun() -> ok = fairnif_watch_test:build() end,
     [{Name, {timeout, 120, Fun}} || {Name, Fun} <- cases()]}.

cases() ->
    [{"Erlang processes that share a scheduler are no finding", fun erlang_is_no_finding/0},
     {"processes of the responders' own priority are none either",
      fun priority_max_is_no_finding/0},
     {"schedulers that multi_scheduling blocks are no finding", fun multi_scheduling/0},
     {"a scheduler that goes offline is no finding, and is shown so", fun offline/0},
     {"a node that was stopped and continues has blocked nothing", fun stopped_node/0},
     {"idle schedulers are not probed", fun idle/0},
     {"a stack can be asked for, of dirty schedulers too",
      fun() -> until_it_holds(fun look/0) end},
     {"what runs most is reported", fun top/0},
     {"reports are bounded, and what is suppressed is counted", fun suppressed/0},
     {"a responder that is killed is replaced", fun responder_killed/0},
     {"the end of a block is reported when the responder that waits for it is killed",
      fun responder_killed_late/0},
     {"without its native part it sees what blocks, and says what it does not", fun plain/0},
     {"a second watchdog is refused", fun second/0},
     {"a library that cannot be loaded is said, and the rest works", fun no_library/0}].

%% -- what is seen ------------------------------------------------------------------

look() ->
    watching(#{}, fun() ->
        Job = spawn(fun() -> fairnif_watch_block_nif:spin_dirty_cpu(600) end),
        Number = eventually_busy(dirty_cpu, 100),
        ok = fairnif_watch_watchdog:look(dirty_cpu, Number, {my, ref}),
        receive
            {fairnif_watch, #{event := looked} = Event} ->
                ?assertMatch(#{ref := {my, ref}, kind := dirty_cpu, number := Number}, Event),
                ?assert(is_list(map_get(stack, Event)))
        after 240000 ->
                error(no_answer)
        end,
        ?assertError(badarg, fairnif_watch_watchdog:look(dirty_cpu, 100000, x)),
        exit(Job, kill)
    end).

eventually_busy(Kind, Left) when Left > 0 ->
    Busy = [N || #{kind := K, number := N, state := busy} <- fairnif_watch_watchdog:threads(),
                 K =:= Kind],
    case Busy of
        [N | _] -> N;
        [] -> timer:sleep(10), eventually_busy(Kind, Left - 1)
    end.

top() ->
    until_it_holds(
      fun() ->
              watching(#{sample_hz => 100}, fun() ->
                  _ = run(fun() -> fairnif_watch_block_nif:spin(1500) end),
                  [Most | _] = fairnif_watch_watchdog:top(),
                  ?assertMatch(#{function := {fairnif_watch_block_nif, spin, 1}, samples := N,
                                 label := <<"fairnif_watch_block_nif:spin/1">>} when N > 0, Most),
                  ?assert(map_get(share, Most) =< 1.0)
              end)
      end).

%% -- what is no finding ----------------------------------------------------------------

erlang_is_no_finding() ->
    until_it_holds(fun() -> no_blocked(fun() -> busy(normal, 2000) end, 2) end).

priority_max_is_no_finding() ->
    until_it_holds(fun() -> no_blocked(fun() -> busy(max, 1500) end, 2) end).

%% That many such processes for each scheduler.
busy(Priority, Ms) ->
    %% They end by themselves: of priority max they leave no time for who would end them.
    Until = erlang:monotonic_time(millisecond) + Ms,
    Pids = [spawn_opt(fun() -> sum(lists:seq(1, 100), Until) end,
                      [monitor, {priority, Priority}])
            || _ <- lists:seq(1, 4 * erlang:system_info(schedulers_online))],
    [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Pids],
    ok.

sum(List, Until) ->
    _ = lists:foldl(fun(X, Sum) -> (X * 7 + Sum) rem 1000003 end, 0, List),
    erlang:monotonic_time(millisecond) > Until orelse sum(List, Until).

multi_scheduling() ->
    until_it_holds(
      fun() ->
              no_blocked(fun() ->
                              block = blocked_multi(block),
                              timer:sleep(300),
                              _ = blocked_multi(unblock),
                              timer:sleep(100)
                      end, 0)
      end).

blocked_multi(block) ->
    blocked = erlang:system_flag(multi_scheduling, block),
    block;
blocked_multi(unblock) ->
    erlang:system_flag(multi_scheduling, unblock).

offline() ->
    Online = erlang:system_info(schedulers_online),
    case Online > 1 of
        false ->
            ok;
        true ->
            until_it_holds(
              fun() ->
                      no_blocked(
                        fun() ->
                                Until = erlang:monotonic_time(millisecond) + 500,
                                [spawn(fun() -> sum([1, 2, 3], Until) end)
                                 || _ <- lists:seq(1, 4)],
                                timer:sleep(100),
                                Online = erlang:system_flag(schedulers_online, 1),
                                timer:sleep(400),
                                ?assert(lists:any(fun(T) -> map_get(state, T) =:= offline end,
                                                  fairnif_watch_watchdog:threads())),
                                1 = erlang:system_flag(schedulers_online, Online),
                                timer:sleep(100)
                        end, 1)
              end)
    end.

%% Nothing is blocked while Fun runs, but `Most' reports of what has another cause: garbage
%% collection and the like on a busy machine.
no_blocked(Fun, Most) ->
    watching(#{warn_ms => 50}, fun() ->
        Fun(),
        Blocked = [E || #{id := _} = E <- events(blocked, collect(100))],
        Ids = lists:usort([Id || #{id := Id} <- Blocked]),
        ?assertEqual([], [E || E = #{cause := native} <- Blocked]),
        ?assert(length(Ids) =< Most, Blocked)
    end).

stopped_node() ->
    until_it_holds(
      fun() ->
              Peer = fairnif_watch_test:peer(["+S", "2:2"]),
              Pid = fairnif_watch_test:call(Peer, os, getpid, []),
              Self = self(),
              _ = spawn_link(fun() ->
                                     Self ! {events, fairnif_watch_test:call(
                                                       Peer, ?MODULE, collect_in_peer, [#{}, 2500])}
                             end),
              timer:sleep(1000),
              _ = os:cmd("kill -STOP " ++ Pid),
              timer:sleep(600),
              _ = os:cmd("kill -CONT " ++ Pid),
              Events = receive {events, Got} -> Got after 240000 -> error(no_answer) end,
              fairnif_watch_test:stop(Peer),
              ?assertEqual([], [E || E = #{blocked_ns := Ns} <- events(blocked, Events),
                                     Ns > 300000000]),
              ?assertMatch([_ | _], [Gap || #{gap_ns := Gap} <- events(late, Events),
                                            Gap > 400000000])
      end).

collect_in_peer(Config, Ms) ->
    watching(Config, fun() -> busy(normal, Ms - 500), collect(500) end).

idle() ->
    until_it_holds(
      fun() ->
              watching(#{}, fun() ->
                  timer:sleep(200),
                  #{probes := Before} = fairnif_watch_watchdog:counters(),
                  timer:sleep(2000),
                  #{probes := After, ticks := Ticks} = fairnif_watch_watchdog:counters(),
                  ?assert(Ticks > 40),
                  %% Our own timers, and what else runs in the tests' node.
                  ?assert(After - Before < 20)
              end)
      end).

%% -- bounds -----------------------------------------------------------------------------

suppressed() ->
    until_it_holds(
      fun() ->
              watching(#{warn_ms => 5, period_ms => 1, events_per_s => 1}, fun() ->
                  _ = run(fun() -> [fairnif_watch_block_nif:spin(20) || _ <- lists:seq(1, 30)] end),
                  Events = collect(1500),
                  [#{count := Count} | _] = events(suppressed, Events),
                  #{suppressed := Counted} = fairnif_watch_watchdog:counters(),
                  ?assert(Count > 0),
                  ?assert(Counted >= Count),
                  ?assert(length(events(blocked, Events)) < 10)
              end)
      end).

%% -- life ---------------------------------------------------------------------------------

responder_killed() ->
    watching(#{}, fun() ->
        Killed = responders(),
        [exit(Pid, kill) || Pid <- Killed],
        All = erlang:system_info(schedulers),
        fairnif_test:eventually(
          fun() -> length(responders() -- Killed) =:= All orelse responders() end),
        until_it_holds(fun() ->
                      _ = run(fun() -> fairnif_watch_block_nif:spin(100) end),
                      ?assertMatch([_ | _], events(unblocked, collect(400)))
              end)
    end).

responder_killed_late() ->
    until_it_holds(
      fun() ->
              watching(#{}, fun() ->
                  Job = spawn(fun() -> fairnif_watch_block_nif:spin(600) end),
                  #{id := Id} = receive {fairnif_watch, #{event := blocked} = B} -> B end,
                  [exit(Pid, kill) || Pid <- responders_linked()],
                  Events = collect(1500),
                  ?assertNot(is_process_alive(Job)),
                  [#{id := Unblocked, blocked_ns := Ns}] = events(unblocked, Events),
                  ?assertEqual(Id, Unblocked),
                  ?assert(abs(Ns - 600000000) < 150000000, Ns)
              end)
      end).

%% Without asking: one of them cannot answer.
responders_linked() ->
    Dog = whereis(fairnif_watch_watchdog),
    {links, Links} = process_info(Dog, links),
    [Pid || Pid <- Links, is_pid(Pid), Pid =/= self()].

responders() ->
    [Pid || Pid <- processes(),
            {current_function, {fairnif_watch_responder, _, _}}
                <- [process_info(Pid, current_function)]].

second() ->
    watching(#{}, fun() ->
        ?assertMatch({error, {already_started, _}},
                     fairnif_watch_watchdog:start_link(#{owner => self(), config => #{}}))
    end).

%% -- Erlang alone ----------------------------------------------------------------------------

plain() ->
    %% The VM counts on one scheduler now, and the others take no work.
    ok = burn(100000000),
    until_it_holds(
      fun() ->
              watching(#{native => false}, fun() ->
                  ?assertMatch([_ | _], fairnif_watch_watchdog:blind()),
                  ?assertEqual([], fairnif_watch_watchdog:top()),
                  ?assertEqual(ok, fairnif_watch_watchdog:look(normal, 1, x)),
                  {Self, Ref} = {self(), make_ref()},
                  Block = fun() -> fairnif_watch_block_nif:spin(300) end,
                  _ = spawn_link(fun() -> Self ! {Ref, run(Block)} end),
                  First = receive {fairnif_watch, #{event := blocked} = E} -> E
                          after 2000 -> none
                          end,
                  %% Asked while it lasts: for how long yet; what is not known is not 0.
                  Threads = fairnif_watch_watchdog:threads(),
                  {Since, Until, _} = receive {Ref, Ran} -> Ran end,
                  Events = collect(700),
                  ?assertMatch(#{native := false, stack := []}, First),
                  [#{blocked_ns := Blocked} | _] = events(unblocked, Events),
                  ?assertMatch([_], [N || #{number := N, blocked_ns := Ns} <- Threads,
                                          N =:= map_get(number, First), Ns >= 10000000]),
                  ?assertEqual([none], lists:usort([Busy || #{busy := Busy} <- Threads])),
                  ?assertEqual([0], lists:usort([Ns || #{blocked_ns := Ns}
                                                           <- fairnif_watch_watchdog:threads()])),
                  ?assert(abs(Blocked - (Until - Since)) < (Until - Since) div 5)
              end)
      end).

burn(0) -> ok;
burn(N) -> burn(N - 1).

no_library() ->
    _ = code:delete(fairnif_watch_native),
    _ = code:purge(fairnif_watch_native),
    watching(#{native_library => "/nowhere/at/all"}, fun() ->
        [Why | _] = fairnif_watch_watchdog:blind(),
        ?assertMatch({match, _}, re:run(Why, "nowhere")),
        ?assertMatch([#{kind := normal} | _], fairnif_watch_watchdog:threads())
    end).

%% -- tools --------------------------------------------------------------------------------------

watching(Config, Fun) ->
    {ok, Pid} = fairnif_watch_watchdog:start_link(#{owner => self(), config => Config}),
    try
        Fun()
    after
        unlink(Pid),
        ok = fairnif_watch_watchdog:stop(),
        _ = collect(0)
    end.

%% In another process, so that what blocks is not us.
run(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({value, Fun()}) end),
    receive {'DOWN', Ref, process, Pid, {value, Value}} -> Value end.

collect(Ms) ->
    receive
        {fairnif_watch, Event} -> [Event | collect(Ms)]
    after Ms ->
            []
    end.

events(Name, Events) ->
    [E || E = #{event := N} <- Events, N =:= Name].
