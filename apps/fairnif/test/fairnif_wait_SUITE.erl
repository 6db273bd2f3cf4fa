%% fair_wait and descriptors, where it takes code loading, the system's limits or thousands of
%% waits; test_wait.c and test_descriptor.c have the rest, in the real emulator too.
-module(fairnif_wait_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-compile([export_all, nowarn_export_all]).

-define(RESIDENT_MOST, 16 * 1024).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    [callers_killed_at_any_moment_leave_nothing,
     events_time_outs_and_closing_at_once_leave_nothing,
     bodies_wait_while_the_module_fairnif_is_reloaded,
     bodies_wait_while_their_library_is_upgraded_and_purged,
     with_no_descriptor_left_only_those_without_term_fail,
     two_hundred_threaded_bodies_wait_with_one_thread,
     ten_thousand_tasks_wait_with_16_kib_each_and_hold_nothing].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

callers_killed_at_any_moment_leave_nothing(_) -> ok = in_peer(killed, [2000]).

%% Each of them has been the first at least once, or it was no race.
events_time_outs_and_closing_at_once_leave_nothing(_) ->
    Answers = in_peer(races, [1500]),
    true = lists:all(fun(Answer) -> maps:is_key(Answer, Answers) end, [0, 1, 2, -9]),
    {comment, io_lib:format("~p", [Answers])}.

bodies_wait_while_the_module_fairnif_is_reloaded(_) -> ok = in_peer(reloaded, []).
bodies_wait_while_their_library_is_upgraded_and_purged(_) -> ok = in_peer(purged, []).

with_no_descriptor_left_only_those_without_term_fail(_) ->
    0 = in_peer(no_descriptors, [], "ulimit -n 256").

two_hundred_threaded_bodies_wait_with_one_thread(_) -> ok = in_peer(threaded, []).

%% The process and its term are in the figure. At rest the node uses no more of a second than timers
%% and the pool's look around do.
ten_thousand_tasks_wait_with_16_kib_each_and_hold_nothing(_) ->
    fairnif_test:retry(3, fun() ->
                                  Seen = in_peer(mass, [10000], "ulimit -n 15000"),
                                  ct:log("~p", [Seen]),
                                  ct:pal("10,000 tasks in fair_wait: ~p", [Seen]),
                                  mass_is_light(Seen)
                          end).

mass_is_light(#{bytes_each := Bytes, threads_busy := 0, jobs_queued := 0,
                schedulers_busy_percent := Busy, cpu_ms_of_one_second := Cpu})
  when Bytes =< ?RESIDENT_MOST, Busy < 5, Cpu < 100 ->
    ok;
mass_is_light(Seen) ->
    Seen.

in_peer(Function, Args) ->
    in_peer(Function, Args, "").

in_peer(Function, Args, Before) ->
    Peer = peer(Before),
    Result = fairnif_test:call(Peer, fairnif_test_wait_cases, Function, Args),
    fairnif_test:stop(Peer),
    Result.

%% Threads do not spin: a thread that looks for work is none that waits.
peer("") ->
    fairnif_test:peer(["+S", "2:2"], [fairnif_test_wait]);
peer(Before) ->
    Shell = os:find_executable("sh"),
    Erl = os:find_executable("erl"),
    Exec = {Shell, ["-c", Before ++ "; exec \"$0\" \"$@\"", Erl]},
    fairnif_test:peer(["+S", "2:2"], [fairnif_test_wait], [{exec, Exec}]).
