-module(fairnif_check_slices_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([summary/1, trace/2]).

-define(S, fairnif_check_slices).
-define(MS, 1000000).

%% ---- known manners, measured; wide margins, as the machine may be busy ----

an_erlang_loop_runs_in_many_short_slices_on_a_normal_scheduler_test_() ->
    in_peer(busy, fun(#{normal := N, dirty := D, elapsed := Elapsed}) ->
        ?assert(Elapsed >= 100 * ?MS),
        ?assert(maps:get(count, N) > 100),
        %% 4000 reductions are far from a millisecond.
        ?assert(maps:get(median, N) < ?MS),
        ?assert(maps:get(total, N) > Elapsed div 3),
        ?assert(maps:get(total, N) =< Elapsed),
        ?assertEqual(0, maps:get(count, D))
    end).

a_process_that_sleeps_has_no_slice_meanwhile_test_() ->
    in_peer(sleep, fun(#{normal := N, dirty := D, elapsed := Elapsed}) ->
        ?assert(Elapsed >= 100 * ?MS),
        ?assert(maps:get(total, N) < Elapsed div 2),
        ?assert(maps:get(count, N) =< 10),
        ?assertEqual(0, maps:get(count, D))
    end).

time_on_a_dirty_scheduler_is_counted_apart_test_() ->
    in_peer(dirty, fun(#{normal := N, dirty := D, elapsed := Elapsed}) ->
        ?assert(Elapsed >= 100 * ?MS),
        ?assertEqual(1, maps:get(count, D)),
        ?assert(maps:get(longest, D) >= 100 * ?MS),
        ?assert(maps:get(total, N) < Elapsed div 2)
    end).

garbage_collection_is_not_held_against_the_function_test_() ->
    in_peer(garbage, fun(#{normal := N, gc := Gc, elapsed := Elapsed}) ->
        ?assert(maps:get(count, Gc) > 0),
        ?assert(maps:get(total, N) + maps:get(total, Gc) =< Elapsed)
    end).

beyond_its_limit_the_longest_slices_are_kept_and_the_call_continues_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, #{slices := Slices, truncated := Truncated, value := Value,
                    later := #{since := Since, until := Until}}}} =
            fairnif_check_peer:run(?S:flags(),
                                 {?MODULE, trace, [busy, #{limit => 10}]},
                                 30000),
        ?assertEqual({true, done}, {Truncated, Value}),
        ?assert(length(Slices) > 10),
        ?assert(0 =/= Since andalso Since =< Until)
    end}.

what_the_function_raises_is_a_value_test_() ->
    [{timeout, 60, fun() ->
          ?assertEqual({error, Error}, ?S:trace(Fun)) end}
     || {Fun, Error} <- [{fun() -> error(oops) end, {error, oops}},
                         {fun() -> throw(oops) end, {throw, oops}},
                         {fun() -> exit(self(), kill), timer:sleep(1000) end,
                          {exit, killed}}]].

no_process_is_left_behind_test() ->
    Before = length(processes()),
    {ok, _} = ?S:trace(fun() -> ok end),
    {error, _} = ?S:trace(fun() -> error(oops) end),
    fairnif_test:eventually(fun() -> length(processes()) =< Before end).

slices_are_in_order_within_the_call_and_do_not_overlap_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, #{slices := Slices, call := {From, To}}}} =
            fairnif_check_peer:run(?S:flags(), {?MODULE, trace, [busy, #{}]},
                                 30000),
        Ends = [From | lists:append([[S, E] || {S, E, _, _} <- Slices])] ++ [To],
        ?assertEqual(lists:sort(Ends), Ends)
    end}.

%% ---- the arithmetic, exactly ----

gc_is_taken_out_of_the_slice_it_was_in_test() ->
    Slices = [{0, 100, normal, 1}, {200, 300, normal, 1}, {300, 350, normal, 1}],
    ?assertEqual([{normal, 100}, {normal, 100}, {normal, 50}],
                 ?S:without_gc(Slices, [])),
    ?assertEqual([{normal, 70}, {normal, 90}, {normal, 50}],
                 ?S:without_gc(Slices, [{10, 20}, {30, 50}, {290, 300}])).

a_gc_across_two_slices_is_taken_out_of_both_test() ->
    ?assertEqual([{normal, 40}, {dirty, 95}],
                 ?S:without_gc([{0, 50, normal, 1}, {60, 160, dirty, 0}],
                               [{40, 65}])).

a_dirty_slice_that_is_mostly_gc_is_no_native_work_test() ->
    ?assertEqual([{gc, 10}, {normal, 30}],
                 ?S:without_gc([{0, 100, dirty, 0}, {100, 200, normal, 1}],
                               [{5, 95}, {120, 190}])).

%% ---- in the peer ----

summary(Manner) ->
    {ok, Trace} = trace(Manner, #{}),
    ?S:summary(Trace).

trace(Manner, Opts) ->
    %% The code server is no part of what is measured.
    {module, _} = code:ensure_loaded(timer),
    ?S:trace(fun() -> behave(Manner) end, Opts).

behave(busy) ->
    busy(erlang:monotonic_time(millisecond) + 101);
behave(sleep) ->
    receive after 101 -> done end;
behave(dirty) ->
    erts_debug:dirty_cpu(wait, 101);
behave(garbage) ->
    length(lists:foldl(fun(N, L) -> [{N, L} | L] end, [], lists:seq(1, 300000))).

busy(Until) ->
    case erlang:monotonic_time(millisecond) < Until of
        true -> busy(Until);
        false -> done
    end.

in_peer(Manner, Test) ->
    fairnif_check_repeat:in_peer(?S:flags(), {?MODULE, summary, [Manner]}, Test).
