-module(fairnif_check_kill_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([measure/2]).

-define(K, fairnif_check_kill).
-define(MS, 1000000).
-define(KB, 1024).

%% ---- growth, exactly ----

memory_that_grows_with_each_kill_is_lost_test_() ->
    [{What, ?_assertEqual({What, Expected}, {What, grown(Native, Vm)})}
     || {What, Native, Vm, Expected} <-
            [{"nothing", flat(8), flat(8), {0.0, 0.0}},
             {"16 KiB a kill", line(8, 16), flat(8), {16.0 * ?KB, 800.0 * ?KB}},
             {"of the VM's memory", flat(8), line(8, 16), {16.0 * ?KB, 800.0 * ?KB}},
             {"the more telling one", line(8, 16), line(8, 100), {100.0 * ?KB, 5000.0 * ?KB}},
             {"it shrinks", line(8, -5), flat(8), {0.0, 0.0}},
             {"one step", [0, 0, 0, 0, 9000, 9000, 9000, 9000], flat(8), {0.0, 0.0}},
             {"a second step", [0, 0, 0, 100, 100, 900, 900, 900], flat(8), {0.0, 0.0}},
             {"only while it warms up", [0, 5000, 9000, 9000, 9000, 9000, 9000, 9000], flat(8),
              {0.0, 0.0}},
             {"a step back on the way", [0, 160, 320, 480, 640, 0, 160, 320], flat(8),
              {16.0 * ?KB, 800.0 * ?KB}},
             {"four rounds", line(4, 16), flat(4), {16.0 * ?KB, 320.0 * ?KB}},
             {"four rounds with a step", [0, 0, 9000, 9000], flat(4), {0.0, 0.0}},
             {"too few rounds", line(3, 16), flat(3), {undefined, undefined}}]].

where_malloc_does_not_tell_the_resident_size_does_and_sees_less_test() ->
    Rows = fun(Bytes) -> [#{kills => 10 * N, native => undefined, resident => Bytes * N, vm => 0}
                          || N <- lists:seq(1, 8)] end,
    ?assertMatch({10240.0, 512000.0, 2097152.0}, ?K:growth(#{memory => Rows(102400)})).

what_could_be_seen_is_named_test() ->
    {_, _, Resolution} = ?K:growth(#{memory => rows(flat(8), flat(8))}),
    ?assertEqual(131072.0, Resolution).

growth_beside_falls_of_its_size_may_be_chance_test() ->
    Falls = [1024 * N || N <- [50, 51, 50, 53, 51, 54, 52, 55]],
    {_, Total, Resolution} = ?K:growth(#{memory => rows(Falls, flat(8))}),
    ?assert(Total =< Resolution).

%% ---- kills ----

who_waits_stops_at_once_test_() ->
    in_peer(sleeps, #{time_ms => 100}, fun(Result) ->
        #{count := Count, unstopped := 0, down := #{count := Count}, stop := #{count := Count},
          stop_samples := Stops, control_samples := Control, memory := Memory} = Result,
        ?assert(Count >= 8),
        ?assertEqual({Count, Count}, {length(Stops), length(Control)}),
        ?assertEqual(8, length(Memory)),
        ?assertEqual(lists:sort([K || #{kills := K} <- Memory]), [K || #{kills := K} <- Memory]),
        ?assert(lists:all(fun(#{native := N, vm := V}) -> N > 0 andalso V > 0 end, Memory)),
        ?assert(fairnif_check_stats:median(Stops) < 20 * ?MS),
        {_, Total, Resolution} = ?K:growth(Result),
        ?assert(Total =< Resolution)
    end).

code_in_a_dirty_nif_runs_on_after_down_test_() ->
    in_peer(dirty, #{time_ms => 300, call_ns => 300 * ?MS}, fun(Result) ->
        #{down := #{median := Down}, stop := #{median := Stop}, unstopped := 0,
          control_samples := Control} = Result,
        ?assert(Stop > 100 * ?MS),
        ?assert(Down < Stop),
        ?assert(fairnif_check_stats:median(Control) < Stop / 2)
    end).

what_does_not_stop_ends_the_measurement_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, Result}} = run(dirty_long, #{time_ms => 100, patience_ms => 200}),
        ?assertMatch(#{count := 1, unstopped := 1, stop_samples := [],
                       control_samples := [_], memory := [_]}, Result),
        ?assertMatch({undefined, undefined, _}, ?K:growth(Result))
    end}.

slow_kills_are_four_at_least_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, Result}} = run(dirty, #{time_ms => 10, call_ns => 300 * ?MS}),
        ?assertMatch(#{count := 4, memory := [_, _, _, _]}, Result),
        ?assertMatch({Bytes, _, _} when is_float(Bytes), ?K:growth(Result))
    end}.

before_who_leaves_much_erlang_is_killed_that_builds_as_much_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, #{control_bytes := Bytes, control_samples := [_ | _]}}} =
            run(large_heap, #{time_ms => 100, call_ns => 20 * ?MS}),
        ?assert(Bytes >= 1600000),
        {ok, {ok, Small}} = run(sleeps, #{time_ms => 50}),
        ?assertNot(is_map_key(control_bytes, Small))
    end}.

%% Up to 100 kB a kill; and of calls that are not killed, nothing or 100 kB each.
memory_that_is_lost_is_reported_by_kills_and_by_calls_test_() ->
    [in_peer(Manner, #{time_ms => 300, call_ns => 20 * ?MS}, fun(#{alone := Alone} = Result) ->
         {PerKill, Total, Resolution} = ?K:growth(Result),
         ?assert(Total > Resolution),
         %% A round has few kills, of which one may come before its call has begun.
         ?assert(PerKill > 45000),
         ?assertEqual(8, length(Alone)),
         {PerCall, All, Least} = ?K:growth(calls, Alone),
         %% Two calls a round, and the VM's own memory goes up and down by tens of kB meanwhile.
         ?assertEqual({EveryCall, Result}, {All > Least andalso PerCall > 45000, Result})
     end) || {Manner, EveryCall} <- [{leaves, false}, {leaves_always, true}]].

who_loses_nothing_is_killed_and_no_more_test_() ->
    in_peer(sleeps, #{time_ms => 100}, fun(#{alone := Alone}) -> ?assertEqual([], Alone) end).

%% The resident size of such a node grows by tens of MB, and comes back when it likes.
what_the_vm_keeps_of_large_heaps_is_not_taken_for_native_code_s_test_() ->
    in_peer(large_heap, #{time_ms => 300, call_ns => 20 * ?MS}, fun(#{memory := Memory} = Result) ->
        [_, _ | Native] = [N || #{native := N} <- Memory],
        ?assert(lists:max(Native) - lists:min(Native) < 131072),
        {_, Total, Resolution} = ?K:growth(Result),
        ?assert(Total =< Resolution)
    end).

a_node_without_allocators_of_its_own_has_memory_too_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, Result}} = fairnif_check_peer:run(["+Mea", "min"],
                                                  {?MODULE, measure, [leaves, #{time_ms => 300}]},
                                                  300000),
        {PerKill, _, _} = ?K:growth(Result),
        %% Half of it at least: malloc's figures are of all threads, other memory comes and goes.
        ?assert(PerKill > 50000)
    end}.

who_ends_by_himself_is_an_error_that_says_why_test_() ->
    [{timeout, 60, fun() -> ?assertEqual({ok, {error, Why}}, run(Manner, #{time_ms => 50})) end}
     || {Manner, Why} <- [{raises, {error, oops}}, {exits, {exit, normal}}, {dies, oops}]].

%% ---- in the peer ----

measure(Manner, Opts) ->
    Table = ets:new(?MODULE, [public, bag]),
    ?K:measure(fun() -> behave(Manner, Table) end, Opts).

behave(sleeps, _) -> timer:sleep(5);
behave(dirty, _) -> erts_debug:dirty_cpu(wait, 300);
behave(dirty_long, _) -> erts_debug:dirty_cpu(wait, 3000);
behave(leaves, Table) ->
    Key = make_ref(),
    ets:insert(Table, {Key, binary:copy(<<0>>, 100000)}),
    timer:sleep(20),
    ets:delete(Table, Key);
behave(leaves_always, Table) ->
    ets:insert(Table, {make_ref(), binary:copy(<<0>>, 100000)}),
    timer:sleep(20);
behave(large_heap, _) -> lists:sort(lists:seq(1, 200000));
behave(raises, _) -> error(oops);
behave(exits, _) -> exit(normal);
behave(dies, _) -> exit(self(), oops), timer:sleep(1000).

%% ---- ----

run(Manner, Opts) ->
    fairnif_check_peer:run(["+S", "2:2"], {?MODULE, measure, [Manner, Opts]}, 300000).

in_peer(Manner, Opts, Test) ->
    {timeout, 200, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
        {ok, {ok, Result}} = run(Manner, Opts),
        Test(Result)
    end) end}.

%% KiB after each round of ten kills.
flat(Rounds) -> line(Rounds, 0).

line(Rounds, PerKill) -> [PerKill * 10 * N || N <- lists:seq(0, Rounds - 1)].

rows(Native, Vm) ->
    [#{kills => 10 * N, native => B * ?KB, resident => 0, vm => V * ?KB}
     || {N, B, V} <- lists:zip3(lists:seq(1, length(Native)), Native, Vm)].

grown(Native, Vm) ->
    {PerKill, Total, _} = ?K:growth(#{memory => rows(Native, Vm)}),
    {PerKill, Total}.
