%% fair_wait and descriptors in the real VM: what they answer, who may wait, what becomes of a
%% descriptor and of a task when somebody closes it, dies or is loaded anew, what very many take.
-module(fairnif_wait_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([each_mode_waits_for_what_it_is_told_to/1,
         a_wait_ends_when_its_time_is_up_and_not_before/1,
         a_second_task_that_waits_for_the_same_event_gets_busy/1,
         another_file_with_the_same_number_is_not_busy/1,
         who_waits_for_a_descriptor_that_is_closed_gets_ebadf/1,
         a_descriptor_is_closed_when_its_owner_dies/1,
         a_descriptor_is_closed_when_its_term_is_garbage/1,
         a_descriptor_stays_open_until_the_task_that_has_it_ends/1,
         a_pending_value_that_nobody_awaits_leaves_nothing/1,
         callers_killed_at_any_moment_leave_nothing/1,
         the_mailbox_stays_as_it_was_with_ten_thousand_messages_in_it/1,
         two_events_at_once_leave_no_message/1,
         events_time_outs_and_closing_at_once_leave_nothing/1,
         bodies_wait_while_the_module_fairnif_is_loaded_anew/1,
         bodies_wait_while_their_library_is_upgraded_and_purged/1,
         with_no_descriptor_left_only_those_without_term_fail/1,
         thousands_of_waits_leave_no_descriptor_and_no_memory/1,
         who_waits_for_a_descriptor_is_shown_so/1,
         a_node_with_waiting_tasks_halts_at_once/1,
         two_hundred_threaded_bodies_wait_with_one_thread/1,
         ten_thousand_tasks_wait_with_16_kib_each_and_hold_nothing/1]).

-define(RESIDENT_MOST, 16 * 1024).

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports),
             not lists:member(Case, [init_per_suite, end_per_suite, module_info])].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

each_mode_waits_for_what_it_is_told_to(_) -> ok = in_peer(every_mode, []).
a_wait_ends_when_its_time_is_up_and_not_before(_) -> ok = in_peer(deadlines, []).
a_second_task_that_waits_for_the_same_event_gets_busy(_) -> ok = in_peer(busy, []).
another_file_with_the_same_number_is_not_busy(_) -> ok = in_peer(same_number, []).
who_waits_for_a_descriptor_that_is_closed_gets_ebadf(_) -> ok = in_peer(closed, []).
a_descriptor_is_closed_when_its_owner_dies(_) -> ok = in_peer(owner_dies, []).
a_descriptor_is_closed_when_its_term_is_garbage(_) -> ok = in_peer(garbage, []).
a_descriptor_stays_open_until_the_task_that_has_it_ends(_) -> ok = in_peer(used, []).
a_pending_value_that_nobody_awaits_leaves_nothing(_) -> ok = in_peer(dropped, []).
callers_killed_at_any_moment_leave_nothing(_) -> ok = in_peer(killed, [2000]).

the_mailbox_stays_as_it_was_with_ten_thousand_messages_in_it(_) ->
    ok = in_peer(mailbox, [10000]).

two_events_at_once_leave_no_message(_) -> ok = in_peer(both, []).

%% Each of them has been the first at least once, or it was no race.
events_time_outs_and_closing_at_once_leave_nothing(_) ->
    Answers = in_peer(races, [3000]),
    true = lists:all(fun(Answer) -> maps:is_key(Answer, Answers) end, [0, 1, 2, -9]),
    {comment, io_lib:format("~p", [Answers])}.

bodies_wait_while_the_module_fairnif_is_loaded_anew(_) -> ok = in_peer(reloaded, []).
bodies_wait_while_their_library_is_upgraded_and_purged(_) -> ok = in_peer(purged, []).

with_no_descriptor_left_only_those_without_term_fail(_) ->
    0 = in_peer(no_descriptors, [], "ulimit -n 256").

thousands_of_waits_leave_no_descriptor_and_no_memory(_) ->
    KiB = in_peer(left, [2000]),
    true = KiB < 4096,
    {comment, io_lib:format("~b KiB", [KiB])}.

who_waits_for_a_descriptor_is_shown_so(_) -> ok = in_peer(shown, []).

a_node_with_waiting_tasks_halts_at_once(_) ->
    Peer = peer(""),
    ok = fairnif_test:call(Peer, fairnif_test_wait_cases, until_halt, [100]),
    {Us, _} = timer:tc(fun() ->
                               _ = try fairnif_test:call(Peer, erlang, halt, [])
                                   catch _:_ -> gone end,
                               fairnif_test:eventually(fun() -> not is_process_alive(Peer) end)
                       end),
    true = Us < 3000000.

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
