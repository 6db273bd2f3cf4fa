%% Native processes: that one is a process as any other, in every mode. What a body can ask for is
%% in test_ask.c, in the real emulator too; examples/counter_server compares one with a gen_server.
-module(fairnif_process_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_test_process).

all_test_() ->
    {setup,
     fun() ->
             ok = fairnif_test:build(),
             {ok, _} = application:ensure_all_started(fairnif)
     end,
     {inorder,
      [{lists:concat([Mode, ": ", Name]), {timeout, 60, fun() -> with(Mode, Test) end}}
       || Mode <- [normal, auto, dirty_cpu, dirty_io, no_yield, unwinds, threaded],
          {Name, Test} <- [{"answers", fun answers/1}, {"sends", fun sends/1},
                           {"links and monitors", fun links/1}, {"returns", fun returns/1}]]
      ++ [{timeout, 60, Test}
          || Test <- [fun returns_before_it_receives/0, fun raises/0, fun plain_await/0,
                      fun forged_values_do_nothing/0, fun bad_options/0, fun hibernates/0,
                      fun without_system/0,
                      fun ends_while_suspended/0]]}}.

with(Mode, Test) ->
    P = ?T:start(Mode),
    try Test(P) after exit(P, kill) end,
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end).

call(P, Request) ->
    gen_server:call(P, Request, 20000).

%% -- in every mode ---------------------------------------------------------------------------

answers(P) ->
    Terms = [a, 1.5, 1 bsl 100, "list", <<"short">>, binary:copy(<<"long">>, 100), {}, #{a => [b]},
             self(), make_ref(), fun lists:map/2, <<1:3>>, lists:seq(1, 10000)],
    [?assertEqual(Term, call(P, {echo, Term})) || Term <- Terms],
    ?assertEqual(P, call(P, {self, x})),
    ?assertEqual(what, call(P, what)).

sends(P) ->
    Self = self(),
    ok = call(P, {send, Self, {hello, [1, <<"2">>]}}),
    receive {hello, [1, <<"2">>]} -> ok after 240000 -> error(none) end,
    register(fairnif_process_tests, Self),
    ok = call(P, {send, fairnif_process_tests, by_name}),
    receive by_name -> ok after 240000 -> error(none) end,
    ok = call(P, {send, {fairnif_process_tests, node()}, by_node}),
    receive by_node -> ok after 240000 -> error(none) end,
    true = unregister(fairnif_process_tests),
    ok = call(P, {send, fairnif_process_tests, nobody}),
    ok = call(P, {send, "no destination", nobody}),
    Alias = alias([reply]),
    ok = call(P, {send, Alias, by_alias}),
    receive by_alias -> ok after 240000 -> error(none) end,
    ok = call(P, {send, Alias, no_more}),
    [ok = call(P, {send, Self, N}) || N <- lists:seq(1, 100)],
    [receive M when is_integer(M) -> ?assertEqual(N, M) end || N <- lists:seq(1, 100)],
    receive Other -> error(Other) after 0 -> ok end.

links(P) ->
    Other = spawn(fun() -> receive after infinity -> ok end end),
    {ok, Ref} = call(P, {monitor, Other}),
    exit(Other, bye),
    ?assertEqual({ok, {'DOWN', Ref, process, Other, bye}}, got(P, Ref)),
    Linked = spawn(fun() -> receive after infinity -> ok end end),
    ok = call(P, {link, Linked}),
    M = monitor(process, P),
    %% Answered behind the monitor's signal, which the VM may keep back until we wait.
    {links, [Linked]} = process_info(P, links),
    exit(Linked, with_me),
    receive {'DOWN', M, process, P, with_me} -> ok after 240000 -> error(lives) end.

%% It may have received the message already.
got(P, Ref) ->
    case call(P, {tagged, Ref, 100}) of
        {nothing, timeout} ->
            [Down] = [D || D <- call(P, {get, kept}), element(2, D) =:= Ref],
            {ok, Down};
        Got ->
            Got
    end.

returns(P) ->
    M = monitor(process, P),
    ok = call(P, {return, {shutdown, [with, "reason"]}}),
    receive {'DOWN', M, process, P, {shutdown, [with, "reason"]}} -> ok end.

%% -- of any -----------------------------------------------------------------------------------

returns_before_it_receives() ->
    Start = fun(Reason) ->
                %% As until OTP 25 the exit comes at any time after the answer.
                fairnif_test:apply_in_fresh_process(
                  fun() ->
                      process_flag(trap_exit, true),
                      fairnif_process:start_link(fun ?T:at_once/1, [Reason], [])
                  end)
            end,
    ?assertEqual(ignore, Start(ignore)),
    ?assertEqual({error, shutdown}, Start(shutdown)).

%% What was sent before is not lost.
raises() ->
    [begin
         {ok, P} = fairnif_process:start(fun ?T:Nif/0, [], []),
         M = monitor(process, P),
         quietly(fun() ->
                         ?assertEqual(it, call(P, {the, reason})),
                         receive {'DOWN', M, process, P, {{the, reason}, [_ | _]}} -> ok end
                 end)
     end || Nif <- [raises, raises_threaded]].

%% A plain process that awaits such a body receives for it.
plain_await() ->
    {P, M} = spawn_monitor(fun() -> exit({came_to, fairnif:await(?T:normal([kept]))}) end),
    ?assertEqual([kept], call(P, {get, kept})),
    ok = call(P, {return, done}),
    receive {'DOWN', M, process, P, {came_to, done}} -> ok end,
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end).

%% A term that looks like a request does not make it call a function.
forged_values_do_nothing() ->
    Request = {erlang, put, [forged, true]},
    Asks = ?T:normal([]),
    Size = tuple_size(Asks),
    [?assertError({fairnif, not_pending}, fairnif:await(Value))
     || Value <- [{fairnif_asks, x, Request}, {fairnif_asks, make_ref(), Request},
                  {fairnif_asks, element(2, Asks), Request},
                  erlang:delete_element(Size, setelement(3, Asks, Request)),
                  erlang:append_element(setelement(3, Asks, Request), x),
                  setelement(1, Asks, fairnif_pending)]],
    ?assertEqual(undefined, get(forged)),
    a_stale_request_does_nothing(),
    ?assertEqual({fairnif_asks, x}, fairnif:await({fairnif_asks, x})),
    Self = self(),
    {_, M} = spawn_monitor(fun() ->
                                   Self ! try fairnif:await(Asks) catch error:Why -> Why end
                           end),
    receive {'DOWN', M, process, _, normal} -> ok end,
    receive Why -> ?assertEqual({fairnif, not_owner}, Why) end.

%% A body returns its own request, which was answered: what was in it, and a call put there.
a_stale_request_does_nothing() ->
    [begin
         Asks = ?T:normal([]),
         self() ! {'$gen_call', {self(), Change}, {return, setelement(3, Asks, Request)}},
         ?assertError({fairnif, _}, fairnif:await(Asks)),
         receive {Change, ok} -> ok end
     end || {Change, Request} <- [{none, -1}, {a_call, {erlang, put, [forged, true]}}]],
    ?assertEqual(undefined, get(forged)).

bad_options() ->
    Start = fun(Nif, Args, Options) -> fairnif_process:start(Nif, Args, Options) end,
    ?assertError({fairnif, {bad_nif, {_, [a, b]}}}, Start(fun ?T:normal/1, [a, b], [])),
    ?assertError({fairnif, {bad_nif, _}}, Start(fun(_) -> ok end, [a], [])),
    [?assertError({fairnif, {bad_option, Option}}, Start(fun ?T:normal/1, [a], [Option]))
     || Option <- [{name, "x"}, {system, 1}, {hibernate_after, -1}, {no_such, x}, link]].

hibernates() ->
    P = ?T:start(normal, [{hibernate_after, 20}]),
    fairnif_test:eventually(
      fun() -> {current_function, {erlang, hibernate, 3}}
                   =:= process_info(P, current_function) end),
    ?assertEqual(x, call(P, {echo, x})),
    ok = call(P, {timeout, 50}),
    fairnif_test:eventually(fun() -> timer:sleep(60), call(P, {get, timeouts}) =:= 1 end),
    exit(P, kill).

%% The process exits with its body's result, whatever is still asked.
ends_while_suspended() ->
    {ok, P} = fairnif_process:start(fun ?T:raises/0, [], [{system, true}]),
    M = monitor(process, P),
    ok = sys:suspend(P),
    [?assertError({callback_failed, _, {error, {fairnif, {not_answered, get_state}}}},
                  sys:get_state(P)) || _ <- [raises, has_raised]],
    quietly(fun() ->
                    ok = sys:resume(P),
                    receive {'DOWN', M, process, P, Why} -> ?assertMatch({badarg, [_ | _]}, Why) end
            end).

without_system() ->
    P = ?T:start(normal),
    ?assertError({callback_failed, _, {error, {fairnif, {no_system_option, get_state}}}},
                 sys:get_state(P)),
    ok = sys:suspend(P),
    ok = sys:change_code(P, ?T, undefined, []),
    ok = sys:resume(P),
    ?assertEqual(x, call(P, {echo, x})),
    ok = sys:terminate(P, normal),
    fairnif_test:eventually(fun() -> not is_process_alive(P) end).

quietly(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try Fun() after logger:set_primary_config(level, Level) end.
