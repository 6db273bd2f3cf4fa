-module(fairnif_check_garbage_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([measure/2, sizes/0]).

-define(G, fairnif_check_garbage).
-define(MS, 1000000).

a_destructor_holds_the_scheduler_at_a_collection_and_at_a_kill_test_() ->
    in_peer(destructor, fun({ok, Result}) ->
        #{collected := Collected, killed := Killed, control := Control} = Result,
        ?assert(length(Collected) >= 3),
        ?assertEqual(length(Collected), length(Killed)),
        ?assert(fairnif_check_stats:median(Collected) > 19 * ?MS),
        ?assert(fairnif_check_stats:median(Killed) > 19 * ?MS),
        ?assert(fairnif_check_stats:median(Control) < 10 * ?MS)
    end).

what_is_dropped_within_the_call_is_garbage_too_test_() ->
    in_peer(dropped, fun({ok, #{collected := Collected}}) ->
        ?assert(fairnif_check_stats:median(Collected) > 19 * ?MS)
    end).

a_short_result_costs_nothing_test_() ->
    in_peer(short, fun({ok, #{collected := Collected, killed := Killed, bytes := Bytes}}) ->
        ?assert(fairnif_check_stats:median(Collected) < ?MS),
        ?assert(fairnif_check_stats:median(Killed) < ?MS),
        ?assert(Bytes < 100000)
    end).

who_ends_by_himself_is_an_error_that_says_why_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     [{timeout, 60, fun() -> ?assertEqual({ok, {error, {ended, Why}}}, run(Manner)) end}
      || {Manner, Why} <- [{raises, {error, oops}}, {dies, oops}, {times_out, timeout}]]}.

who_does_not_return_is_given_up_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     {timeout, 60, fun() -> ?assertEqual({ok, {error, {timeout, 2000}}}, run(waits)) end}}.

%% Memory that others may not have was the function's all the same: its own figures stand.
erlang_that_ends_is_reported_and_the_function_is_not_blamed_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     {timeout, 60, fun() ->
         {ok, {ok, #{collected := [_, _, _ | _], killed := [_, _, _ | _], control := Control,
                     bytes := Bytes}}} = run(limits_others),
         ?assertEqual({ended, killed}, Control),
         ?assert(Bytes > 1000000)
     end}}.

a_term_has_the_size_asked_for_test_() ->
    {timeout, 60, fun() ->
        {ok, [{{Heap, Bins}, {HeapAsked, BinsAsked}} | _]} =
            fairnif_check_peer:run([], {?MODULE, sizes, []}, 300000),
        ?assert(Heap >= HeapAsked andalso Heap < 4 * HeapAsked),
        ?assert(Bins >= BinsAsked andalso Bins < 2 * BinsAsked)
    end}.

%% ---- in the peer ----

measure(Manner, Opts) ->
    ?G:measure(fun() -> behave(Manner) end, Opts).

behave(destructor) -> fairnif_zoo:statement(20000);
behave(dropped) -> _ = fairnif_zoo:statement(20000), ok;
behave(short) -> fairnif_zoo:short(1);
behave(raises) -> error(oops);
behave(dies) -> exit(self(), oops), timer:sleep(1000);
behave(times_out) -> exit(self(), timeout), timer:sleep(1000);
%% Processes that are started from now on die of a large heap.
behave(limits_others) ->
    _ = process_flag(max_heap_size, 0),
    Large = lists:seq(1, 1000000),
    _ = erlang:system_flag(max_heap_size, #{size => 100000, kill => true, error_logger => false}),
    Large;
behave(waits) -> receive never -> ok end.

sizes() ->
    Me = self(),
    Asked = {1000000, 200000},
    Pid = spawn(fun() ->
                        Term = ?G:term(Asked),
                        Me ! {self(), ?G:size()},
                        receive tell -> Me ! Term end
                end),
    receive {Pid, Size} -> [{Size, Asked}] end.

%% ---- ----

run(Manner) ->
    fairnif_check_peer:run(?G:flags(), call(Manner), 300000).

call(Manner) ->
    Opts = #{time_ms => 200, patience_ms => 2000, limit_ns => 1},
    {?MODULE, measure, [Manner, Opts]}.

in_peer(Manner, Test) ->
    {setup, fun fairnif_check_zoo:build/0,
     fairnif_check_repeat:in_peer(?G:flags(), call(Manner), Test)}.
