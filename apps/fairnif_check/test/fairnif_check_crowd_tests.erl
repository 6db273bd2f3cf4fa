-module(fairnif_check_crowd_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([measure/2]).

-define(C, fairnif_check_crowd).

each_figure_is_there_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, Result}} = run(sleeps, #{time_ms => 200}),
        #{delay := #{idle := Idle, erlang := Erlang, beside := Beside},
          thread_progress := #{idle := #{count := C0}, beside := #{count := C1}},
          long_schedule := #{count := _, longest_ms := _, named := _}} = Result,
        [begin
             #{count := Count, p50 := P50, p99 := P99, max := Max, windows := Windows,
               samples := Samples} = Delay,
             ?assert(Count >= 4),
             ?assertEqual(4, length(Windows)),
             ?assert(P50 =< P99),
             ?assert(P99 =< Max),
             ?assertEqual(Count, length(Samples)),
             ?assertEqual(Max, lists:max(Samples))
         end || Delay <- [Idle, Erlang, Beside]],
        ?assert(C0 > 0),
        ?assert(C1 > 0)
    end}.

native_code_that_keeps_all_schedulers_is_felt_and_reported_test_() ->
    {timeout, 200, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
        {ok, {ok, Result}} = run(native, #{time_ms => 200}),
        #{delay := #{idle := #{p50 := Idle}, beside := #{p50 := Beside}},
          long_schedule := #{count := Count, longest_ms := Ms, named := Named}} = Result,
        ?assert(Beside > Idle + 5000000),
        ?assert(Count > 0),
        ?assert(Ms > 5),
        ?assert(lists:all(fun is_binary/1, Named))
    end) end}.

beside_large_results_there_is_erlang_that_builds_as_large_ones_test_() ->
    {timeout, 120, fun() ->
        {ok, {ok, #{delay := #{sized := #{count := Count}, bytes := Bytes}}}} =
            run(large, #{time_ms => 200}),
        ?assert(Count > 0),
        ?assert(Bytes >= 1600000),
        {ok, {ok, #{delay := Small}}} = run(sleeps, #{time_ms => 200}),
        ?assertNot(is_map_key(sized, Small))
    end}.

callers_that_end_leave_nothing_to_feel_test_() ->
    [{timeout, 60, fun() -> ?assertEqual({ok, {error, Why}}, run(Manner, #{time_ms => 200})) end}
     || {Manner, Why} <- [{raises, {error, oops}}, {dies, oops}]].

no_caller_is_left_behind_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, ok}, fairnif_check_peer:run(["+S", "2:2"],
                                                    {?MODULE, measure, [left, #{time_ms => 200}]},
                                                    300000)) end}.

%% ---- in the peer ----

measure(left, Opts) ->
    Before = processes(),
    {ok, _} = ?C:measure(fun() -> behave(sleeps) end, Opts),
    fairnif_test:eventually(fun() -> processes() -- Before =:= [] end);
measure(Manner, Opts) ->
    {module, _} = code:ensure_loaded(fairnif_zoo),
    ?C:measure(fun() -> behave(Manner) end, Opts).

behave(large) -> lists:seq(1, 100000);
behave(sleeps) -> timer:sleep(1);
behave(native) -> fairnif_zoo:block(8000);
behave(raises) -> error(oops);
behave(dies) -> exit(self(), oops), timer:sleep(1000).

run(Manner, Opts) ->
    ok = fairnif_check_zoo:build(),
    fairnif_check_peer:run(["+S", "2:2"], {?MODULE, measure, [Manner, Opts]}, 300000).
