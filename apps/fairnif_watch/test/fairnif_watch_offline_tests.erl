%% Schedulers that are offline, from the start (a quota of processors, `+S 2:1') or later. A process
%% that is bound to one can never run, and whatever asks it waits with it: code:purge/1 among them.
-module(fairnif_watch_offline_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-export([from_the_start/1, later/1, caught/1, caught_and_stopped/1, caught_beside_dirty_jobs/1,
         brought_online/1]).

a_node_with_a_scheduler_offline_stays_whole_test_() ->
    ok = fairnif_watch_test:build(),
    [{lists:concat([Case, ", ", case Native of true -> "native"; false -> "Erlang only" end]),
      {timeout, 90, fun() -> ?assertEqual(whole, in_peer(Flags, Case, [Native])) end}}
     || {Flags, Case} <- [{["+S", "2:1"], from_the_start}, {["+S", "2:2"], later},
                          {["+S", "2:2"], caught}, {["+S", "2:2"], caught_and_stopped},
                          {["+S", "3:3", "+SDcpu", "3:2"], caught_beside_dirty_jobs}],
        Native <- [true, false]].

a_scheduler_that_comes_online_is_watched_test_() ->
    {timeout, 90,
     fun() -> ?assertMatch([_ | _], in_peer(["+S", "2:1"], brought_online, [true])) end}.

in_peer(Flags, Function, Args) ->
    Peer = fairnif_watch_test:peer(Flags),
    try fairnif_watch_test:call(Peer, ?MODULE, Function, Args, 60000)
    after fairnif_watch_test:stop(Peer)
    end.

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
    ok = catch_heart(Native),
    timer:sleep(2500),
    {1, 1} = {erlang:system_info(schedulers_online),
              erlang:system_info(dirty_cpu_schedulers_online)},
    whole().

%% @private
caught_and_stopped(Native) ->
    ok = catch_heart(Native),
    ok = fairnif_watch:stop(),
    1 = erlang:system_info(schedulers_online),
    [] = [Pid || Pid <- processes(),
                 {current_function, {fairnif_watch_heart, _, _}}
                     <- [process_info(Pid, current_function)]],
    {ok, _} = fairnif_watch:start(#{native => Native, log => false}),
    whole().

%% What somebody has set is put back, not what still was the case then: dirty schedulers go offline
%% when their jobs are done.
caught_beside_dirty_jobs(Native) ->
    Jobs = [spawn_monitor(fun() -> fairnif_watch_block_nif:lock_dirty_cpu(4000) end)
            || _ <- [1, 2]],
    timer:sleep(200),
    _ = erlang:system_flag(dirty_cpu_schedulers_online, 1),
    2 = erlang:system_info(dirty_cpu_schedulers_online),
    ok = catch_heart(Native),
    timer:sleep(2500),
    %% In this order: the other one sets this one as well.
    1 = erlang:system_flag(dirty_cpu_schedulers_online, 1),
    2 = erlang:system_flag(schedulers_online, 2),
    [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Jobs],
    whole().

%% Poked, it goes to the scheduler that is held; before it gets there this, the last one, is taken
%% offline.
catch_heart(Native) ->
    {ok, _} = fairnif_watch:start(#{native => Native, log => false}),
    ok = fairnif_watch_probe:load(#{probe_library => default}),
    Last = erlang:system_info(schedulers),
    [One, Held] = [list_to_tuple([scheduler, N]) || N <- [1, Last]],
    timer:sleep(500),
    _ = spawn_opt(fun() -> fairnif_watch_probe:block(500) end, [Held]),
    {Pid, Ref} = spawn_opt(fun() ->
                                   timer:sleep(200),
                                   erlang:system_flag(schedulers_online, Last - 1)
                           end, [One, monitor]),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    %% Without the native part it is seen sooner.
    _ = [false = ends(fun() -> [garbage_collect(P) || P <- processes()] end, 300) || Native],
    ok.

%% Does everything answer that asks all processes, and can the watch be ended?
whole() ->
    Tries = [{info, fun() -> [process_info(P) || P <- processes()] end},
             {collect, fun() -> [garbage_collect(P) || P <- processes()] end},
             {purge, fun() -> code:purge(lists) end},
             {load, fun() -> {module, _} = code:ensure_loaded(ets) end},
             {stop, fun() -> ok = fairnif_watch:stop() end},
             {purge_ours, fun() -> code:purge(fairnif_watch_heart) end}],
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
    Bind = list_to_tuple([scheduler, 2]),
    _ = spawn_opt(fun() -> fairnif_watch_probe:block(300) end, [Bind]),
    timer:sleep(1500),
    #{findings := Findings} = fairnif_watch:report(),
    [Finding || #{subject := {scheduler, 2}} = Finding <- Findings].
