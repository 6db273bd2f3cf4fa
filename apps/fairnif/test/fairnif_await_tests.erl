%% What goes with a task while it waits, and what nobody may do with a pending value. Each in a node
%% of its own: what these tests were written for ended it.
-module(fairnif_await_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_test_pending).

await_test_() ->
    ok = fairnif_test:build(),
    [{timeout, 120, {Title, fun() -> in_peer(Fun) end}}
     || {Title, Fun} <-
            [{"what a threaded body defers runs once, however much it is", fun defers/1},
             {"with check_terms too", fun defers_checked/1},
             {"a threaded body that waits again and again for no time runs on one thread at a time",
              fun naps/1},
             {"a lock in an object that only its holder has is passed on before the object goes",
              fun lock_in_object/1},
             {"a lock is everybody's once, in every mode", fun contended/1},
             {"a pending value that was changed is refused, and stays good itself", fun changed/1},
             {"calls begin to wait while module fairnif is purged, and are awaited once it is back",
              fun loaded_anew/1},
             {"what the VM offers answers on a thread of the pool", fun vm/1},
             {"work that waited for room does not wait for the work before it", fun room/1},
             {"functions take turns under the limit of all calls", fun turns_of_functions/1},
             {"arguments and roots come back from every offload", fun offloads/1}]].

in_peer(Fun) ->
    Peer = fairnif_test:peer(["+S", "2"], [?M]),
    try Fun(Peer) after fairnif_test:stop(Peer) end.

await(Peer, Function, Args) ->
    fairnif_test:call(Peer, ?M, await, [Function, Args]).

await_often(Peer, Processes, Times, Function, Args) ->
    fairnif_test:call(Peer, ?M, await_often, [Processes, Times, Function, Args]).

idle(Peer) ->
    fairnif_test:eventually(fun() -> fairnif_test:call(Peer, fairnif, tasks, []) =:= [] end).

defers(Peer) ->
    ?assertEqual([{answers, [40]}], await_often(Peer, 8, 200, nif_defers, [40])),
    idle(Peer).

defers_checked(Peer) ->
    ok = fairnif_test:call(Peer, fairnif, debug, [#{check_terms => true}]),
    defers(Peer),
    ?assertEqual([{answers, [20]}], await_often(Peer, 4, 20, nif_naps, [20])),
    ?assertEqual([{answers, [{20, [20]}]}], await_often(Peer, 4, 20, nif_offloads, [20])),
    idle(Peer).

naps(Peer) ->
    ?assertEqual([{answers, [2000]}], await_often(Peer, 16, 5, nif_naps, [2000])),
    ?assertEqual([{answers, [2000]}], await_often(Peer, 16, 5, nif_naps_auto, [2000])),
    idle(Peer).

lock_in_object(Peer) ->
    [?assertEqual(killed, fairnif_test:call(Peer, ?M, killed_with_lock, [Function, Ms]))
     || _ <- lists:seq(1, 10), Ms <- [0, 1, 5], Function <- [nif_hold, nif_hold_threaded]],
    idle(Peer).

contended(Peer) ->
    Object = fairnif_test:call(Peer, ?M, locked, []),
    ?assert(is_reference(Object)),
    ?assertEqual([{answers, [50]}], fairnif_test:call(Peer, ?M, contended, [8, 50])),
    idle(Peer).

changed(Peer) ->
    [?assertEqual({Change, {{fairnif, not_pending}, {1, [1]}}},
                  {Change, fairnif_test:call(Peer, ?M, changed, [Change])})
     || Change <- [shorter, longer, bare]],
    idle(Peer).

loaded_anew(Peer) ->
    ?assertEqual({1, [1]}, fairnif_test:call(Peer, ?M, loaded_anew, [])),
    idle(Peer).

vm(Peer) ->
    ?assertMatch(Pid when is_pid(Pid), await(Peer, nif_vm, [self])),
    ?assertEqual(1, await(Peer, nif_vm, [send])),
    ?assertMatch(Pid when is_pid(Pid), await(Peer, nif_vm, [whereis])),
    ?assertEqual(1, await(Peer, nif_vm, [alive])),
    ?assertEqual(1, await(Peer, nif_vm, [current_alive])),
    ?assertMatch(Ref when is_reference(Ref), await(Peer, nif_vm, [ref])),
    ?assertMatch(N when is_integer(N), await(Peer, nif_vm, [unique])),
    ?assertMatch(N when is_integer(N), await(Peer, nif_vm, [monotonic_unique])),
    ?assertEqual(binary, await(Peer, nif_vm, [binary])),
    ?assertEqual({0, 0}, await(Peer, nif_vm, [monitor])),
    ?assertEqual(raised, fairnif_test:call(Peer, ?M, raised, [nif_vm, [raise]])).

offloads(Peer) ->
    [?assertEqual([{answers, [{100, [100]}]}], await_often(Peer, 8, 5, Function, [100]))
     || Function <- [nif_offloads, nif_offloads_dirty]],
    idle(Peer).

room(Peer) ->
    ok = fairnif_test:call(Peer, application, set_env, [fairnif, max_queued, 1]),
    ok = fairnif_test:call(Peer, fairnif, configure, []),
    _ = await_often(Peer, 8, 1, nif_blocks, [50]),
    %% One of three that waits for another one makes most rounds late, a busy machine few of them.
    fairnif_test:retry(3, fun() ->
                                  Rounds = fairnif_test:call(Peer, ?M, rounds, [30, 3, 100]),
                                  case [Ms || Ms <- Rounds, Ms >= 180] of
                                      Late when length(Late) =< 3 -> ok;
                                      Late -> {ms, Late}
                                  end
                          end).

one_task(Peer) ->
    ok = fairnif_test:call(Peer, application, set_env, [fairnif, max_tasks, 1]),
    ok = fairnif_test:call(Peer, fairnif, configure, []).

turns_of_functions(Peer) ->
    one_task(Peer),
    ?assertEqual({nif_one_at_a_time, 0}, fairnif_test:call(Peer, ?M, first_to_end, [])),
    idle(Peer).
