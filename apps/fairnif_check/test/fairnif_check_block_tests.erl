-module(fairnif_check_block_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([measure/2, first/0]).

-define(H, fairnif_check_block).
-define(MS, 1000000).

native_code_that_does_not_yield_is_a_block_in_every_call_test_() ->
    in_peer(native, fun(#{block := #{calls := Calls, over := Over, over_part := Part,
                                     repeated := Repeated, least := Least, taken := Taken,
                                     elapsed := Elapsed}, blocks := Blocks}) ->
        ?assertEqual(lists:min(Blocks), Least),
        %% Who sleeps on the scheduler is not taken for robbed.
        ?assert(Taken =< Elapsed),
        ?assert(Calls >= 3),
        ?assertEqual(Calls, Over),
        ?assert(Part > 0.5),
        ?assert(Repeated > 2 * ?MS),
        ?assertEqual(Calls, length(Blocks))
    end).

erlang_code_is_none_as_a_rule_test_() ->
    in_peer(erlang, fun(#{block := #{calls := Calls, over := Over, longest := Longest},
                          normal := #{count := Slices}, control := #{calls := Control}}) ->
        ?assert(Slices > Calls),
        ?assert(Over =< Calls div 2),
        ?assert(Longest > 0),
        ?assert(Control > 0)
    end).

time_on_a_dirty_scheduler_is_no_hold_test_() ->
    in_peer(dirty, fun(#{block := #{calls := Calls, over_part := Part},
                         dirty := #{count := Count, shortest := Shortest}}) ->
        ?assertEqual(Calls, Count),
        ?assert(Shortest >= 5 * ?MS),
        ?assert(Part < 0.5)
    end).

%% However long it takes it is another call that says what every call does.
a_first_call_of_seconds_is_separate_from_the_second_test_() ->
    in_peer(slow_at_first, fun(#{first := #{block := Block, elapsed := Elapsed},
                                 block := #{calls := Calls, longest := Longest}}) ->
        ?assert(Elapsed >= 3100 * ?MS),
        ?assert(Calls >= 1),
        %% The processor may have been taken away from the first one, too.
        ?assert(Block > Elapsed div 4),
        ?assert(Longest < Block div 4)
    end).

%% Two and no more: each takes all the time twice over.
calls_of_seconds_are_two_test_() ->
    in_peer(slow, fun(#{first := #{block := First}, blocks := Blocks,
                        block := #{calls := Calls, longest := Longest}}) ->
        ?assertEqual(1, Calls),
        ?assertEqual([Longest], Blocks),
        ?assert(First > 500 * ?MS),
        ?assert(Longest > 500 * ?MS)
    end).

the_first_call_alone_is_one_call_test_() ->
    {timeout, 60, fun() ->
        ok = fairnif_check_zoo:build(),
        {ok, {{ok, #{elapsed := Elapsed}}, 1}} =
            fairnif_check_peer:run(?H:flags(), {?MODULE, first, []}, 30000),
        ?assert(Elapsed > 0)
    end}.

who_waits_on_a_scheduler_uses_no_processor_and_who_computes_does_test_() ->
    {timeout, 200, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
        {ok, {ok, #{cpu_part := Waits}}} = run(waits, #{time_ms => 200}),
        {ok, {ok, #{cpu_part := Computes}}} = run(native, #{time_ms => 200}),
        %% Other programs may take most of the processor, from both.
        ?assert(Waits =< 0.5),
        ?assert(Computes > 4 * Waits)
    end) end}.

%% Four programs on as few processors as there are take most of them.
who_computes_waits_for_nothing_on_a_busy_machine_test_() ->
    {timeout, 200, fun() ->
        Loops = fairnif_check_zoo:busy_loops(2 * erlang:system_info(logical_processors)),
        try
            fairnif_check_repeat:until_it_holds(fun() ->
                [begin
                     {ok, {ok, #{cpu_part := Part}}} = run(Manner, #{time_ms => 400}),
                     ?assertEqual({Manner, Part, Computes}, {Manner, Part, Part > 0.7})
                 end || {Manner, Computes} <- [{long, true}, {kernel, true}, {waits, false}]]
            end)
        after
            [os:cmd("kill " ++ integer_to_list(OsPid))
             || Loop <- Loops, {os_pid, OsPid} <- [erlang:port_info(Loop, os_pid)]]
        end
    end}.

short_calls_are_traced_many_times_but_not_for_ever_test_() ->
    in_peer(nothing, fun(#{block := #{calls := Calls, over := Over}}) ->
        ?assert(Calls > 5),
        ?assert(Calls =< 300),
        ?assert(Over =< Calls div 2)
    end).

%% A sensitive process is not traced: nothing seen is not the same as nothing there.
a_call_that_was_not_traced_is_not_counted_test_() ->
    {timeout, 60, fun() ->
        {ok, {ok, #{block := Block}}} = run(sensitive, #{time_ms => 100}),
        ?assertMatch(#{calls := 0, over := 0}, Block)
    end}.

what_the_function_raises_is_a_value_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, {error, {error, oops}}}, run(raises, #{time_ms => 100})) end}.

%% ---- in the peer ----

measure(Manner, Opts) ->
    {module, _} = code:ensure_loaded(fairnif_zoo),
    ?H:measure(fun() -> behave(Manner) end, Opts).

%% How often the function was called is reported as well.
first() ->
    Calls = counters:new(1, []),
    {?H:first(fun() -> counters:add(Calls, 1, 1) end), counters:get(Calls, 1)}.

behave(native) -> fairnif_zoo:block(5000);
behave(slow_at_first) -> fairnif_zoo:block_first(3200000);
%% A hundred thousand copies of 4 KiB that the kernel makes.
behave(kernel) ->
    {ok, Zeros} = file:open("/dev/zero", [raw, read, binary]),
    _ = [{ok, _} = file:read(Zeros, 4194304) || _ <- lists:seq(1, 100)],
    ok = file:close(Zeros);
behave(long) -> fairnif_zoo:block(100000);
behave(slow) -> fairnif_zoo:block(3200000);
behave(erlang) -> [fairnif_check_share:work(sort) || _ <- lists:seq(1, 1000)];
behave(dirty) -> erts_debug:dirty_cpu(wait, 5);
%% Long enough that tracing it is little beside it.
behave(waits) -> erts_debug:dirty_io(wait, 200);
behave(nothing) -> ok;
behave(sensitive) -> process_flag(sensitive, true);
behave(raises) -> error(oops).

%% ---- ----

run(Manner, Opts) ->
    ok = fairnif_check_zoo:build(),
    fairnif_check_peer:run(?H:flags(), {?MODULE, measure, [Manner, Opts]}, 30000).

in_peer(Manner, Test) ->
    {timeout, 200, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
        {ok, {ok, Result}} = run(Manner, #{time_ms => 200}),
        Test(Result)
    end) end}.
