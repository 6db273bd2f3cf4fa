%% The same body, whatever its mode and wherever it pauses, gives the same answer.
-module(fairnif_bodies_tests).

-include_lib("eunit/include/eunit.hrl").

bodies_test_() ->
    ok = fairnif_test:build(),
    {setup,
     fun() -> {module, _} = code:ensure_loaded(fairnif_test_nif) end,
     [{"every body answers as it should in mode " ++ atom_to_list(Mode),
       {timeout, 300, fun() -> in_mode(Mode, false) end}} || Mode <- fairnif_test_nif:all_modes()]
     ++ [{"a pause at every tick changes no answer in mode " ++ atom_to_list(Mode),
          {timeout, 300, fun() -> in_mode(Mode, true) end}} || Mode <- fairnif_test_nif:all_modes()]
     ++ [{"a pause at every tick pauses at every tick", fun pauses/0},
         {"a body with options is called like any other", fun options/0},
         {"more bytes than there are addresses are system_limit", fun too_many_bytes/0},
         {"many tasks at once get their own answers", {timeout, 300, fun at_once/0}},
         {"bodies leave nothing behind", fun nothing_left/0}]}.

in_mode(Mode, Pause) ->
    fairnif:debug(#{pause_every_tick => Pause}),
    try
        ?assertEqual([], [Wrong || Case <- fairnif_test_cases:all(),
                                   Wrong <- [fairnif_test_cases:check(Case, Mode)],
                                   Wrong =/= ok])
    after
        fairnif:debug(#{pause_every_tick => false})
    end.

pauses() ->
    fairnif:debug(#{pause_every_tick => true}),
    try
        [begin
             Before = yields(Mode),
             {hello} = fairnif_test_nif:run(echo, Mode, [{hello}]),
             ?assertEqual({Mode, 20}, {Mode, yields(Mode) - Before})
         end || Mode <- [yielding, yielding_dirty, auto]]
    after
        fairnif:debug(#{pause_every_tick => false})
    end.

yields(Mode) ->
    maps:get(yields, fairnif:info({fairnif_test_nif, fairnif_test_nif:name(echo, Mode), 1})).

options() ->
    [?assertEqual(N, fairnif_test_nif:deep(N)) || N <- [1, 2, 3]],
    [?assertEqual(N, fairnif_test_nif:deep_dirty(N)) || N <- [1, 2, 3]],
    ?assertEqual(100, fairnif_test_nif:deep_enough(100)),
    %% In each mode but FAIR_THREADED; AUTO twice, since it learns.
    [?assertEqual(100, fairnif_test_nif:deep_called_enough(100, Mode)) || Mode <- [1, 2, 3, 5, 5]],
    ?assertMatch({x, _}, fairnif_test_nif:limited(fairnif_test_probe:new_slot(), 100, x)),
    ?assertMatch(#{stack_size := 4194304}, fairnif:info({fairnif_test_nif, deep_enough, 1})),
    ?assertMatch(#{slice_ns := 2000000}, fairnif:info({fairnif_test_nif, long_slices, 3})),
    ?assertMatch(#{max_tasks := 2}, fairnif:info({fairnif_test_nif, limited, 3})).

%% A small term: all elements are one.
too_many_bytes() ->
    IoList = lists:duplicate(16, fairnif_test_nif:pretend(1 bsl 60)),
    [?assertError(system_limit, fairnif_test_nif:run(bytes, Mode, [[IoList, 1]]))
     || Mode <- fairnif_test_nif:all_modes()].

at_once() ->
    Monitors = [element(2, spawn_monitor(fun() -> exit(random_case(N)) end))
                || N <- lists:seq(1, 400)],
    ?assertEqual([], [Wrong || Monitor <- Monitors,
                               Wrong <- [fairnif_test:down(Monitor)], Wrong =/= ok]).

random_case(N) ->
    Modes = fairnif_test_nif:all_modes(),
    Cases = [Case || Case = {Body, _, _} <- fairnif_test_cases:all(), Body =/= garbage],
    fairnif_test_cases:check(lists:nth(rand:uniform(length(Cases)), Cases),
                             lists:nth(1 + N rem length(Modes), Modes)).

nothing_left() ->
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    erlang:garbage_collect(),
    fairnif_test:eventually(
      fun() -> #{objects := Objects} = fairnif_test_probe:alive(), Objects =:= 0 end).
