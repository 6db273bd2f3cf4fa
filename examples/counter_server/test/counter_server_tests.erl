%% One suite for both: a caller can't tell in what a counter is written.
-module(counter_server_tests).

-include_lib("eunit/include/eunit.hrl").

both_test_() ->
    [{lists:concat([Module, ": ", Name]), {timeout, 600, fun() -> Test(Module) end}}
     || Module <- [counter_server, counter_server_erl],
        {Name, Test} <- [{counts, fun counts/1}, {waits, fun waits/1}, {stops, fun stops/1},
                         {refuses, fun refuses/1}, {names, fun names/1},
                         {'sys', fun sys/1}, {links, fun links/1},
                         {'late replies', fun late_replies/1},
                         {supervised, fun supervised/1}]].

started(Module, First) ->
    {ok, Counter} = Module:start_link(First),
    Counter.

counts(Module) ->
    C = started(Module, 5),
    ?assertEqual(5, counter_server:value(C)),
    ?assertEqual(8, counter_server:add(C, 3)),
    ?assertEqual({error, unknown}, gen_server:call(C, {what, is, this})),
    C ! {a, message, 'of no', <<"meaning">>},
    ?assertEqual(-2, counter_server:add(C, -10)),
    ok = counter_server:stop(C).

waits(Module) ->
    C = started(Module, 0),
    Self = self(),
    Waiters = [spawn_link(fun() -> Self ! {self(), counter_server:wait_for(C, N)} end)
               || N <- [10, 5, 20, 5]],
    ?assertEqual(0, counter_server:wait_for(C, -1)),
    [eventually(fun() -> process_info(P, current_function) =:= {current_function, {gen, do_call, 4}}
                end) || P <- Waiters],
    ?assertMatch({0, [{_, _}, _, _, _]}, sys:get_state(C)),
    ?assertEqual(7, counter_server:add(C, 7)),
    [W10, W5, W20, W5b] = Waiters,
    [receive {W, 7} -> ok end || W <- [W5, W5b]],
    receive {_, _} = M -> error(M) after 20 -> ok end,
    ok = counter_server:add_later(C, 13),
    [receive {W, 20} -> ok end || W <- [W10, W20]],
    ok = counter_server:stop(C).

stops(Module) ->
    C = started(Module, 0),
    M = monitor(process, C),
    ok = counter_server:stop(C),
    receive {'DOWN', M, process, C, normal} -> ok end,
    ?assertExit({noproc, _}, counter_server:value(C)),
    D = started(Module, 0),
    ok = gen_server:stop(D),
    ?assertNot(is_process_alive(D)).

refuses(Module) ->
    process_flag(trap_exit, true),
    {error, {badarg, [_ | _]}} = quietly(fun() -> Module:start_link(no_number) end),
    %% Until OTP 25 there is a message as well.
    IsSent = list_to_integer(erlang:system_info(otp_release)) < 26,
    ?assertEqual(IsSent, receive {'EXIT', _, {badarg, _}} -> true
                         after (case IsSent of true -> 5000; false -> 100 end) -> false
                         end),
    process_flag(trap_exit, false).

names(Module) ->
    [begin
         {ok, C} = Module:start_link(1, [{name, Name}]),
         ?assertEqual({error, {already_started, C}}, Module:start_link(1, [{name, Name}])),
         To = case Name of {local, Local} -> Local; Other -> Other end,
         ?assertEqual(2, counter_server:add(To, 1)),
         ok = counter_server:stop(To)
     end || Name <- [{local, a_counter}, {global, {a, counter}}]].

%% What sys shows and does, under trace and suspended.
sys(Module) ->
    C = started(Module, 1),
    {status, C, {module, _}, [_, running, _, [] | _]} = sys:get_status(C),
    ?assertEqual({1, []}, sys:get_state(C)),
    ok = sys:suspend(C),
    ok = counter_server:add_later(C, 10),
    ?assertEqual({1, []}, sys:get_state(C)),
    ?assertEqual({100, []}, sys:replace_state(C, fun({N, []}) -> {N + 99, []} end)),
    ?assertExit({timeout, _}, gen_server:call(C, value, 20)),
    ok = sys:resume(C),
    ?assertEqual(110, counter_server:value(C)),
    ok = sys:statistics(C, true),
    ?assertEqual(111, counter_server:add(C, 1)),
    {ok, Statistics} = sys:statistics(C, get),
    ?assertEqual(1, proplists:get_value(messages_in, Statistics)),
    ok = sys:statistics(C, false),
    ok = sys:terminate(C, normal),
    ?assertNot(is_process_alive(C)).

links(Module) ->
    process_flag(trap_exit, true),
    C = started(Module, 0),
    exit(C, oops),
    receive {'EXIT', C, oops} -> ok end,
    D = started(Module, 0),
    exit(D, kill),
    receive {'EXIT', D, killed} -> ok end,
    process_flag(trap_exit, false),
    {Parent, M} = spawn_monitor(fun() -> exit({child, started(Module, 0)}) end),
    {child, E} = receive {'DOWN', M, process, Parent, Why} -> Why end,
    eventually(fun() -> not is_process_alive(E) end).

%% Of a call that has timed out nothing comes any more.
late_replies(Module) ->
    C = started(Module, 0),
    ?assertExit({timeout, _}, gen_server:call(C, {wait_for, 5}, 10)),
    ?assertEqual(5, counter_server:add(C, 5)),
    receive M -> error(M) after 20 -> ok end,
    ok = counter_server:stop(C).

supervised(Module) ->
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(counter_server_sup, Module),
    [{counter, C, worker, _}] = supervisor:which_children(Sup),
    ?assertEqual(7, counter_server:value(C)),
    exit(C, kill),
    eventually(fun() -> case supervisor:which_children(Sup) of
                            [{counter, D, worker, _}] when is_pid(D), D =/= C ->
                                7 =:= counter_server:value(D);
                            _ -> false
                        end end),
    [{counter, D, worker, _}] = supervisor:which_children(Sup),
    exit(Sup, shutdown),
    receive {'EXIT', Sup, shutdown} -> ok end,
    ?assertNot(is_process_alive(D)),
    process_flag(trap_exit, false).

%% -- only of the native one ------------------------------------------------------------------

a_reload_is_followed_by_code_change_test() ->
    C = started(counter_server, 41),
    Self = self(),
    _ = spawn_link(fun() -> Self ! {waited, counter_server:wait_for(C, 44)} end),
    eventually(fun() -> {41, []} =/= sys:get_state(C) end),
    Before = calls(),
    {module, counter_server} = code:load_file(counter_server),
    ?assertEqual(42, counter_server:add(C, 1)),         % the body of the old version continues
    ok = sys:suspend(C),
    ok = sys:change_code(C, counter_server, undefined, []),
    ok = sys:resume(C),
    ?assertEqual(43, counter_server:add(C, 1)),
    ?assertEqual(Before + 1, calls()),                  % it was called again, with its value
    true = code:purge(counter_server) orelse true,
    ?assertEqual(44, counter_server:add(C, 1)),
    receive {waited, 44} -> ok after 240000 -> error(forgotten) end,
    ok = counter_server:stop(C).

%% More than one slice's, each term looked at after it may have moved.
many_wait_in_any_slices_test_() ->
    {timeout, 600, fun() ->
         Debug = fun(On) -> ok = fairnif:debug(#{pause_every_tick => On, check_terms => On}) end,
         Debug(true),
         try many_wait() after Debug(false) end
     end}.

many_wait() ->
    C = started(counter_server, 0),
    Waiters = [{N, spawn_monitor(fun() -> exit({got, counter_server:wait_for(C, N)}) end)}
               || N <- lists:seq(1, 300)],
    eventually(fun() -> case sys:get_state(C) of
                            {0, Waiting} -> length(Waiting) =:= 300;
                            _ -> false
                        end end),
    [begin
         true = erlang:garbage_collect(C),
         _ = counter_server:add(C, 1)
     end || _ <- Waiters],
    [receive {'DOWN', M, process, P, Why} -> ?assertEqual({got, N}, Why) end
     || {N, {P, M}} <- Waiters],
    ?assertEqual({300, []}, sys:get_state(C)),
    ok = counter_server:stop(C).

a_sum_that_is_too_large_is_refused_test() ->
    C = started(counter_server, 1 bsl 63 - 1),
    ?assertEqual({error, unknown}, counter_server:add(C, 1)),
    ok = counter_server:add_later(C, 1),
    ?assertEqual(1 bsl 63 - 2, counter_server:add(C, -1)),
    ok = counter_server:stop(C).

a_state_that_is_none_does_no_harm_test() ->
    C = started(counter_server, 1),
    {2, _} = sys:replace_state(C, fun(_) -> {2, [no, {3}, {a, b}, {3, no}]} end),
    ?assertEqual(2, counter_server:value(C)),
    ?assertEqual(3, counter_server:add(C, 1)),
    ?assertEqual({3, []}, sys:get_state(C)),
    _ = [?assertError(_, sys:replace_state(C, fun(_) -> State end))
         || State <- [no, 4, {no, []}, {4, no}]],
    ?assertEqual(3, counter_server:value(C)),
    ok = counter_server:stop(C).

calls() ->
    #{calls := Calls} = fairnif:info({counter_server, nif_counter, 1}),
    Calls.

%% -- helpers ---------------------------------------------------------------------------------

quietly(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try Fun() after logger:set_primary_config(level, Level) end.

eventually(Fun) ->
    example_test:eventually(Fun).
