%% Bounds: of a slice, of memory, of the time a kill takes, of tasks at once, of a stack; and what
%% is said when a body breaks the rules. Each in a fresh node. Times are ratios with room, tried
%% again when they are over.
-module(fairnif_limits_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([no_call_on_64_mb_holds_a_scheduler_for_long/1,
         no_end_of_a_call_holds_a_scheduler_for_long/0,
         no_end_of_a_call_holds_a_scheduler_for_long/1,
         garbage_on_dirty_slices_takes_no_more_memory_than_on_normal_ones/1,
         a_kill_stops_a_task_within_a_slice/1,
         the_time_used_is_charged/1,
         a_body_that_never_ticks_is_named_with_its_gap/1,
         auto_moves_a_body_that_never_ticks_and_takes_it_back/1,
         a_stack_overflow_says_so_and_ends_the_node/1,
         a_mutex_held_and_a_term_kept_across_a_tick_are_reported/1]).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% In CPU time of the thread, or not much longer than those of a body that only touches new memory.
no_call_on_64_mb_holds_a_scheduler_for_long(_) ->
    Seen = [{Name, slices(Name)} || {Name, _, _} <- fairnif_test_limits:big_calls()],
    ct:log("~p", [Seen]),
    {comment, io_lib:format("longest: ~.1f slices",
                            [lists:max([L || {_, {Modes, _}} <- Seen, #{longest := L} <- Modes])])}.

slices(Name) ->
    fairnif_test:retry(6, fun() ->
                                  {Modes, Touched} = Seen =
                                      in_peer(fairnif_test_limits, slices,
                                              [Name, [yielding, auto]]),
                                  case [M || M <- Modes, Key <- [longest, one_in_100],
                                             map_get(Key, M) >= most(Key, Touched)] of
                                      [] -> {ok, Seen};
                                      _ -> {Name, Seen}
                                  end
                          end).

most(longest, #{longest := Touched}) -> max(10, 2 * Touched);
most(one_in_100, #{one_in_100 := Touched}) -> max(3, 2 * Touched).

no_end_of_a_call_holds_a_scheduler_for_long() ->
    [{timetrap, {minutes, 15}}].

%% In CPU time. The VM gives memory back a carrier at a time, of 5 MB by default, and the kernel
%% takes a millisecond for that: so they are small here. Done at once, each end would take 5 to
%% 160 ms; two slices are allowed, or twice what a neighbour of calls that only touch new memory
%% waits. (What goes in a slice: test_ends.c.)
no_end_of_a_call_holds_a_scheduler_for_long(_) ->
    Peer = fairnif_test:peer(["+S", "1:1", "+SDcpu", "1:1", "-fairnif", "threads", "4"
                              | lists:append([["+M" ++ [A] ++ "lmbcs", "128",
                                               "+M" ++ [A] ++ "smbcs", "64"] || A <- "BR"])]),
    Seen = [{Case, end_of(Peer, Case)} || Case <- fairnif_test_ends:cases()],
    ct:log("~p", [Seen]),
    fairnif_test:stop(Peer),
    {comment, io_lib:format("longest: ~p us; too busy to say: ~p",
                            [lists:max([0 | [Us || {_, Us} <- Seen, is_integer(Us)]]),
                             [Case || {Case, unsure} <- Seen]])}.

end_of(Peer, Case) ->
    fairnif_test:retry(
      5, fun() ->
                 case fairnif_test:call(Peer, fairnif_test_ends, longest, [Case]) of
                     {Us, _} when Us < 2000 -> {ok, Us};
                     {Us, Control} when Us < 2 * Control -> {ok, unsure};
                     Over -> {Case, Over}
                 end
         end).

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

%% The median, with a millisecond for what else there is on the machine, and twice what the body
%% takes to end when it is asked to.
kill_in_time(Peer, Mode) ->
    #{slice_ns := Slice, dirty_slice_ns := DirtySlice} =
        fairnif_test:call(Peer, fairnif, info, []),
    Most = 1000000 + case lists:member(Mode, [yielding, auto]) of
                         true -> Slice;
                         false -> DirtySlice
                     end,
    fairnif_test:retry(3, fun() ->
                                  {Times, Asked} =
                                      fairnif_test:call(Peer, fairnif_test_limits,
                                                        kill_to_stop_ns, [Mode, 31]),
                                  [Median, Control] = [lists:nth(16, Ts) || Ts <- [Times, Asked]],
                                  ct:log("~p: median ~b, longest ~b; asked: median ~b",
                                         [Mode, Median, lists:last(Times), Control]),
                                  case Median =< Most + 2 * Control of
                                      true -> ok;
                                      false -> {Mode, {most, Most}, Times, {asked, Asked}}
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
    fairnif_test:retry(3, fun() -> never_tick(fairnif_test_nif:modes()) end).

never_tick(Modes) ->
    Peer = peer(),
    Names = [fairnif_test_nif:name(never_tick, Mode) || Mode <- Modes],
    [ok = fairnif_test:call(Peer, fairnif_test_nif, Name, [100000]) || Name <- Names],
    #{functions := Functions} = fairnif_test:call(Peer, fairnif, info, []),
    fairnif_test:stop(Peer),
    Long = [{F, Gap} || #{function := F, longest_gap_ns := Gap} <- Functions, Gap > 80000000],
    case {lists:sort([F || {F, Gap} <- Long, Gap < 200000000]),
          lists:sort([{fairnif_test_nif, Name, 1} || Name <- Names])} of
        {Named, Named} when length(Long) =:= length(Named) -> ok;
        _ -> Long
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
                 {"fairnif_test_nif:deep_called(50, 2)",
                  "fairnif_test_nif:deep_called/2 passed to fair_offload, on a dirty CPU",
                  "320 KiB (+sssdcpu)"},
                 {"fairnif_test_nif:deep_called(50, 3)",
                  "fairnif_test_nif:deep_called/2 passed to fair_offload, on a dirty I/O",
                  "320 KiB (+sssdio)"},
                 {"fairnif_test_nif:deep_called(50, 1)",
                  "fairnif_test_nif:deep_called/2 passed to fair_offload, on a normal",
                  "1024 KiB (+sss)"},
                 {"fairnif_test_nif:deep_called_enough(500, 2)",
                  "fairnif_test_nif:deep_called_enough/2 passed to fair_offload", "4194304"},
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
                      fairnif_test:call(Peer, fairnif_test_limits, rule_violations, [Call])
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
