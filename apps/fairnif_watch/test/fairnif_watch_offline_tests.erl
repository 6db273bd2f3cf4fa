%% Schedulers that are offline, from the start (a quota of processors, `+S 2:1') or later. A process
%% that is bound to one can never run, and whatever asks it waits with it: code:purge/1 among them.
-module(fairnif_watch_offline_tests).

-include_lib("eunit/include/eunit.hrl").

-export([from_the_start/1, later/1, caught/1, caught_and_stopped/1, caught_beside_dirty_jobs/1,
         brought_online/1]).

a_node_with_a_scheduler_offline_stays_whole_test_() ->
    ok = fairnif_watch_test:build(),
    [{lists:concat([Case, ", ", case Native of true -> "native"; false -> "Erlang only" end]),
      {timeout, 90, fun() -> stays_whole(Flags, Case, Native) end}}
     || {Flags, Case} <- [{["+S", "2:1"], from_the_start}, {["+S", "2:2"], later},
                          {["+S", "2:2"], caught}, {["+S", "2:2"], caught_and_stopped},
                          {["+S", "3:3", "+SDcpu", "3:2"], caught_beside_dirty_jobs}],
        Native <- [true, false]].

%% In another node where a busy machine was late and nothing was caught.
stays_whole(Flags, Case, Native) ->
    fairnif_test:retry(
      5,
      fun() ->
              case in_peer(Flags, Case, [Native]) of
                  whole -> ok;
                  not_caught -> not_caught
              end
      end).

a_scheduler_that_comes_online_is_watched_test_() ->
    {timeout, 90, fun() -> ?assertEqual(ok, in_peer(["+S", "2:1"], brought_online, [true])) end}.

in_peer(Flags, Function, Args) ->
    fairnif_watch_test:in_peer(Flags, ?MODULE, Function, Args).

%% @private
from_the_start(Native) ->
    {ok, _} = fairnif_watch:start(#{native => Native, log => false}),
    timer:sleep(1500),
    whole().

%% @private
later(Native) ->
    {ok, _} = fairnif_watch:start(#{native => Native, log => false}),
    Busy = [spawn(fun Loop() -> Loop() end) || _ <- [1, 2]],
    timer:sleep(1500),
    _ = [exit(Pid, kill) || Pid <- Busy],
    timer:sleep(500),
    _ = erlang:system_flag(schedulers_online, 1),
    timer:sleep(1500),
    whole().

%% @private
caught(Native) ->
    with_caught(Native, fun() ->
        timer:sleep(2500),
        until(fun() -> online() =:= {1, 1} orelse online() end),
        whole()
    end).

%% @private
caught_and_stopped(Native) ->
    with_caught(Native, fun() ->
        ok = fairnif_watch:stop(),
        1 = erlang:system_info(schedulers_online),
        [] = [Pid || Pid <- processes(),
                     {current_function, {fairnif_watch_responder, _, _}}
                         <- [process_info(Pid, current_function)]],
        {ok, _} = fairnif_watch:start(#{native => Native, log => false}),
        whole()
    end).

%% What was set is put back, not what still was the case then: dirty schedulers go offline
%% when their jobs are done.
caught_beside_dirty_jobs(Native) ->
    Jobs = [spawn_monitor(fun() -> fairnif_watch_block_nif:lock_dirty_cpu(4000) end)
            || _ <- [1, 2]],
    until(fun two_dirty_jobs_run/0),
    _ = erlang:system_flag(dirty_cpu_schedulers_online, 1),
    2 = erlang:system_info(dirty_cpu_schedulers_online),
    with_caught(Native, fun() ->
        timer:sleep(2500),
        until(fun() -> element(1, online()) =:= 2 end),
        %% In this order: the other one sets this one as well.
        1 = erlang:system_flag(dirty_cpu_schedulers_online, 1),
        2 = erlang:system_flag(schedulers_online, 2),
        [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Jobs],
        whole()
    end).

two_dirty_jobs_run() ->
    Cpu = 1 + erlang:system_info(schedulers),
    {2, 0} =:= {lists:nth(Cpu, statistics(active_tasks_all)),
                lists:nth(Cpu, statistics(run_queue_lengths_all))}.

%% Of normal and of dirty ones: more for the moment in which the watch frees a responder.
online() ->
    {erlang:system_info(schedulers_online), erlang:system_info(dirty_cpu_schedulers_online)}.

until(Condition) -> fairnif_test:eventually(Condition).

%% Fun's answer, a responder being caught. Probed, it goes to the scheduler that is blocked; before
%% it gets there this, the last one, is taken offline: unless that came too late.
with_caught(Native, Fun) ->
    {ok, _} = fairnif_watch:start(#{native => Native, log => false}),
    ok = fairnif_watch_probe:load(#{probe_library => default}),
    Last = erlang:system_info(schedulers),
    [One, Blocked] = [list_to_tuple([scheduler, N]) || N <- [1, Last]],
    timer:sleep(500),
    {Pid, Ref} = spawn_opt(fun() -> take_offline(Last, Blocked) end, [One, monitor]),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    %% Without the native part it is seen sooner.
    case Native andalso ends(fun() -> [garbage_collect(P) || P <- processes()] end, 300) of
        false -> Fun();
        true -> not_caught
    end.

%% Not before it is blocked: who is to hold it would be caught himself.
take_offline(Last, Blocked) ->
    Self = self(),
    _ = spawn_opt(fun() -> Self ! blocked, fairnif_watch_probe:block(500) end, [Blocked]),
    receive blocked -> timer:sleep(200) end,
    erlang:system_flag(schedulers_online, Last - 1).

%% Does everything answer that asks all processes, and can the watch be ended?
whole() ->
    Tries = [{info, fun() -> [process_info(P) || P <- processes()] end},
             {collect, fun() -> [garbage_collect(P) || P <- processes()] end},
             {purge, fun() -> code:purge(lists) end},
             {load, fun() -> {module, _} = code:ensure_loaded(ets) end},
             {stop, fun() -> ok = fairnif_watch:stop() end},
             {purge_ours, fun() -> code:purge(fairnif_watch_responder) end}],
    case [Name || {Name, Fun} <- Tries, not ends(Fun)] of
        [] -> whole;
        Hang -> {hang, Hang}
    end.

ends(Fun) ->
    ends(Fun, 5000).

ends(Fun, Ms) ->
    {Pid, Ref} = spawn_monitor(Fun),
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason =:= normal
    after Ms -> false
    end.

%% @private
brought_online(true) ->
    {ok, _} = fairnif_watch:start(#{log => false}),
    ok = fairnif_watch_probe:load(#{probe_library => default}),
    _ = erlang:system_flag(schedulers_online, 2),
    timer:sleep(2500),
    fairnif_test:eventually(fun second_is_seen_blocked/0).

%% More than once: a watch that is given no processor does not see every one.
second_is_seen_blocked() ->
    Bind = list_to_tuple([scheduler, 2]),
    _ = spawn_opt(fun() -> fairnif_watch_probe:block(300) end, [Bind]),
    timer:sleep(1500),
    #{findings := Findings} = fairnif_watch:view(),
    [] =/= [Finding || #{subject := {scheduler, 2}} = Finding <- Findings].
