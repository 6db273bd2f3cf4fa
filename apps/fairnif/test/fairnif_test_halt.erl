%% A node that halts with tasks suspended, queued and running. Started by fairnif_halt_SUITE as
%% `erl -s fairnif_test_halt main Mode How'; shows the time at which it halts, or what is wrong.
-module(fairnif_test_halt).

-export([main/1]).

-define(CALLERS, 6).

main([Mode, How]) ->
    {module, _} = code:ensure_loaded(fairnif_test_nif),
    try Mode =:= none orelse fill(Mode) of
        _ ->
            %% Unlike io:put_chars this is written at once. A sleep before it could be late by
            %% the OS's slices: dirty tasks have all its cores.
            erlang:display({halting, os:system_time(microsecond)}),
            halt_as(How)
    catch
        Class:Reason -> erlang:display({Class, Reason}), erlang:halt(2)
    end.

halt_as(halt) -> erlang:halt(0, [{flush, false}]);
halt_as(flush) -> erlang:halt(0);
halt_as(stop) -> init:stop().

%% The same number of Erlang processes at work.
fill(erlang) ->
    [spawn(fun() -> work() end) || _ <- lists:seq(1, ?CALLERS)],
    timer:sleep(10),
    true;
fill(Mode) ->
    [spawn(fun() -> call(Mode) end) || _ <- lists:seq(1, ?CALLERS)],
    fairnif_test:eventually(
      fun() ->
              States = lists:usort([State || #{state := State} <- fairnif:tasks()]),
              States =:= states(Mode) orelse States
      end),
    %% These do wait: but a caller of fairnif:tasks/0 would wait with them.
    Mode =:= dirty_io andalso [spawn(fun() -> call(Mode) end) || _ <- lists:seq(1, 20)],
    timer:sleep(10),
    true.

states(yielding) -> [running, suspended];
states(auto) -> [running, suspended];
states(unwinding) -> [running, suspended];
states(dirty_io) -> [running];
%% More threads than callers; no more of them compute than there are processors.
states(threaded) ->
    [running] ++ [waiting || erlang:system_info(dirty_cpu_schedulers_online) < ?CALLERS];
states(offloaded) -> [running];
states(Waits) when Waits =:= waiting; Waits =:= descriptor -> [waiting];
states(_) -> [queued, running].

%% Endless, or as good as.
call(offloaded) ->
    fairnif_test_waits:run(offload, [fairnif_test_probe:new_slot(), 60000, x]);
call(descriptor) ->
    fairnif_test_wait:wait(fairnif_test_wait:event(0), 1, -1);
call(waiting) ->
    fairnif_test_waits:run(sleep, [60000]);
call(Mode) ->
    fairnif_test_nif:run(spin, Mode, [fairnif_test_probe:new_slot(), 0, lists:seq(1, 1000)]).

work() ->
    _ = lists:sort([erlang:phash2(N) || N <- lists:seq(1, 100)]),
    work().
