%% Bounds: of a slice, of memory, of the time a kill takes, of tasks at once, of a stack; and what
%% is said when a body breaks the rules. Each in a fresh node. Times are ratios with room, tried
%% again when they are over.
-module(fairnif_limits_SUITE).
-tests(alone).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([no_call_on_64_mb_holds_a_scheduler_for_long/1,
         garbage_on_dirty_slices_takes_no_more_memory_than_on_normal_ones/1,
         a_kill_stops_a_task_within_a_slice/1,
         the_time_used_is_charged/1,
         a_body_that_never_ticks_is_named_with_its_gap/1,
         auto_moves_a_body_that_never_ticks_and_takes_it_back/1,
         one_call_more_than_max_tasks_is_overloaded/1,
         max_tasks_of_the_application_counts_all_functions/1,
         a_stack_overflow_says_so_and_ends_the_node/1,
         a_mutex_held_and_a_term_kept_across_a_tick_are_reported/1]).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [no_call_on_64_mb_holds_a_scheduler_for_long,
     garbage_on_dirty_slices_takes_no_more_memory_than_on_normal_ones,
     a_kill_stops_a_task_within_a_slice,
     the_time_used_is_charged,
     a_body_that_never_ticks_is_named_with_its_gap,
     auto_moves_a_body_that_never_ticks_and_takes_it_back,
     one_call_more_than_max_tasks_is_overloaded,
     max_tasks_of_the_application_counts_all_functions,
     a_stack_overflow_says_so_and_ends_the_node,
     a_mutex_held_and_a_term_kept_across_a_tick_are_reported].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% In CPU time of the thread. Beyond the runtime's own share of a slice: page faults of the memory
%% that a call gets, which the kernel may have to find first where other programs want some as well.
no_call_on_64_mb_holds_a_scheduler_for_long(_) ->
    Seen = [{Name, Mode, slices(Name, Mode)}
            || {Name, _, _} <- fairnif_test_limits:big_calls(), Mode <- [yielding, auto]],
    ct:log("~p", [Seen]),
    {comment, io_lib:format("longest: ~.1f slices",
                            [lists:max([L || {_, _, #{longest := L}} <- Seen])])}.

slices(Name, Mode) ->
    fairnif_test:retry(6, fun() ->
                                  Seen = in_peer(fairnif_test_limits, slices, [Name, Mode]),
                                  put(seen, Seen),
                                  #{longest := Longest, one_in_100 := OneIn100} = Seen,
                                  if Longest < 10, OneIn100 < 3 -> ok;
                                     true -> {Name, Mode, Seen}
                                  end
                          end),
    get(seen).

garbage_on_dirty_slices_takes_no_more_memory_than_on_normal_ones(_) ->
    fairnif_test:retry(3, fun() ->
                                  Normal = peak(yielding),
                                  Dirty = peak(yielding_dirty),
                                  ct:log("peaks: ~b on normal, ~b on dirty", [Normal, Dirty]),
                                  case Dirty =< 2 * Normal of
                                      true -> ok;
                                      false -> {normal, Normal, dirty, Dirty}
                                  end
                          end).

peak(Mode) ->
    in_peer(fairnif_test_limits, peak_of_garbage, [Mode]).

a_kill_stops_a_task_within_a_slice(_) ->
    Peer = peer(),
    [kill_in_time(Peer, Mode)
     || Mode <- [yielding, dirty_cpu, dirty_io, yielding_dirty, auto]],
    fairnif_test:stop(Peer).

%% The median, with a millisecond for what else there is on the machine, and twice what ordinary
%% Erlang takes to die on it.
kill_in_time(Peer, Mode) ->
    #{slice_ns := Slice, dirty_slice_ns := DirtySlice} =
        fairnif_test:call(Peer, fairnif, info, []),
    Most = 1000000 + case lists:member(Mode, [yielding, auto]) of
                         true -> Slice;
                         false -> DirtySlice
                     end,
    fairnif_test:retry(3, fun() ->
                                  {Times, Erlang} =
                                      fairnif_test:call(Peer, fairnif_test_limits,
                                                        kill_to_stop_ns, [Mode, 31]),
                                  [Median, Control] = [lists:nth(16, Ts) || Ts <- [Times, Erlang]],
                                  ct:log("~p: median ~b, longest ~b; Erlang: median ~b",
                                         [Mode, Median, lists:last(Times), Control]),
                                  case Median =< Most + 2 * Control of
                                      true -> ok;
                                      false -> {Mode, {most, Most}, Times, {erlang, Erlang}}
                                  end
                          end).

the_time_used_is_charged(_) ->
    Peer = peer(),
    [fairnif_test:retry(5, fun() ->
                                   Reds = fairnif_test:call(Peer, fairnif_test_limits,
                                                            reductions_of_a_slice, [Mode]),
                                   ct:log("~p: ~p reductions", [Mode, Reds]),
                                   if Reds > 2800, Reds < 8000 -> ok;
                                      true -> {Mode, Reds}
                                   end
                           end)
     || Mode <- [yielding, auto]],
    fairnif_test:stop(Peer).

a_body_that_never_ticks_is_named_with_its_gap(_) ->
    [fairnif_test:retry(3, fun() -> never_ticks(Mode) end) || Mode <- fairnif_test_nif:modes()].

never_ticks(Mode) ->
    Peer = peer(),
    Name = fairnif_test_nif:name(never_tick, Mode),
    ok = fairnif_test:call(Peer, fairnif_test_nif, Name, [100000]),
    #{functions := Functions} = fairnif_test:call(Peer, fairnif, info, []),
    fairnif_test:stop(Peer),
    {Gap, Worst} = lists:max([{Gap, F} || #{function := F, longest_gap_ns := Gap} <- Functions]),
    case Worst of
        {fairnif_test_nif, Name, 1} when Gap > 80000000, Gap < 200000000 -> ok;
        _ -> {Mode, Gap, Worst}
    end.

auto_moves_a_body_that_never_ticks_and_takes_it_back(_) ->
    Peer = peer(),
    MFA = {fairnif_test_nif, never_tick_auto, 1},
    Adapted = fun(Us) ->
                      ok = fairnif_test:call(Peer, fairnif_test_nif, never_tick_auto, [Us]),
                      maps:get(adapted, fairnif_test:call(Peer, fairnif, info, [MFA]))
              end,
    false = Adapted(1),
    fairnif_test:eventually(fun() -> Adapted(20000) end),
    #{dirty_ns := Dirty} = fairnif_test:call(Peer, fairnif, info, [MFA]),
    true = Adapted(20000),
    #{dirty_ns := More} = fairnif_test:call(Peer, fairnif, info, [MFA]),
    true = More - Dirty > 15000000,
    fairnif_test:eventually(fun() -> not Adapted(1) end),
    fairnif_test:stop(Peer).

one_call_more_than_max_tasks_is_overloaded(_) ->
    [{killed, 1}, {ok, 1}, {overloaded, 8}] =
        in_peer(fairnif_test_limits, overloaded, [limited, 10]).

max_tasks_of_the_application_counts_all_functions(_) ->
    Peer = fairnif_test:peer(["+S", "2:2", "-fairnif", "max_tasks", "2"]),
    ok = fairnif_test:call(Peer, application, start, [fairnif]),
    [begin
         [{killed, 1}, {ok, 1}, {overloaded, 4}] =
             fairnif_test:call(Peer, fairnif_test_limits, overloaded, [Function, 6])
     end || Function <- [spin_yielding, spin_yielding_dirty, spin_auto]],
    #{overloaded := 4} = fairnif_test:call(Peer, fairnif, info,
                                           [{fairnif_test_nif, spin_auto, 3}]),
    fairnif_test:stop(Peer).

%% Frames of 32 KiB, each larger than a page, step over no guard.
a_stack_overflow_says_so_and_ends_the_node(_) ->
    [begin
         Output = overflow(Call),
         ct:log("~s: ~ts", [Call, Output]),
         [true = string:find(Output, Word) =/= nomatch
          || Word <- ["stack overflow", Name, Size, "status: 139"]]
     end || {Call, Name, Size} <-
                [{"fairnif_test_nif:deep(500)", "fairnif_test_nif:deep/1", "131072"},
                 {"fairnif_test_nif:deep_dirty(500)", "fairnif_test_nif:deep_dirty/1", "131072"},
                 {"fairnif_test_nif:deep_enough(500)", "fairnif_test_nif:deep_enough/1", "4194304"},
                 {"fairnif_test_waits:run(deep_threaded, [500])",
                  "fairnif_test_waits:deep_threaded_nif/1", "131072"}]].

overflow(Call) ->
    Erl = lists:flatten(lists:join($ , ["erl", "-noshell" | fairnif_test:erl_args()])),
    os:cmd("ulimit -c 0; " ++ Erl ++ " -eval '" ++ Call
           ++ "' -s erlang halt 2>&1; echo status: $?").

a_mutex_held_and_a_term_kept_across_a_tick_are_reported(_) ->
    Peer = fairnif_test:peer(["+S", "2:2"]),
    Misuses = fun(Call) ->
                      fairnif_test:call(Peer, fairnif_test_limits, misuses, [Call])
              end,
    0 = Misuses({holds_mutex, []}),             % not compiled with FAIR_DEBUG
    ok = fairnif_test:call(Peer, fairnif_test_nif, use, [fairnif_test_nif_debug]),
    {module, _} = fairnif_test:call(Peer, code, load_file, [fairnif_test_nif]),
    true = Misuses({holds_mutex, []}) >= 1,
    true = Misuses({holds_mutex, []}) >= 1,
    0 = Misuses({keeps_term, [{a, b}]}),
    ok = fairnif_test:call(Peer, fairnif, debug,
                           [#{check_terms => true, pause_every_tick => true}]),
    1 = Misuses({keeps_term, [{a, b}]}),
    0 = Misuses({keeps_term, [a]}),             % an atom does not move
    0 = Misuses({echo_yielding, [{a, b}]}),
    [0 = Misuses({list_to_atom(Body ++ "_yielding"), [Arg]})
     || {Body, Arg} <- [{"walk", lists:seq(1, 1000)}, {"reverse", lists:seq(1, 1000)},
                        {"bytes", [<<"text">>, "text"]}, {"text", "text"}, {"kinds", {a}}]],
    fairnif_test:stop(Peer).

peer() ->
    fairnif_test:peer(["+S", "2:2", "+SDcpu", "2:2"]).

in_peer(Module, Function, Args) ->
    Peer = peer(),
    Result = fairnif_test:call(Peer, Module, Function, Args),
    fairnif_test:stop(Peer),
    Result.
