-module(game_of_life_tests).

-include_lib("eunit/include/eunit.hrl").

-define(GLIDER, [{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}]).

all_test_() ->
    [{timeout, 60, Test}
     || Test <- [fun a_blinker_blinks/0, fun a_glider_comes_round/0, fun as_a_model_in_erlang/0,
                 fun edges/0, fun bad_requests_change_nothing/0, fun bad_sizes/0,
                 fun others_have_their_turns/0, fun killed_at_work_it_leaves_nothing/0,
                 fun a_picture/0]].

world(Width, Height) ->
    {ok, World} = game_of_life:start_link(Width, Height),
    World.

a_blinker_blinks() ->
    W = world(5, 5),
    ok = game_of_life:set(W, [{1, 2}, {2, 2}, {3, 2}]),
    Before = game_of_life:cells(W),
    ?assertEqual(1, game_of_life:evolve(W, 1)),
    ?assertNotEqual(Before, game_of_life:cells(W)),
    ?assertEqual(1001, game_of_life:evolve(W, 1000)),
    ?assertEqual(1002, game_of_life:evolve(W, 1)),
    ?assertEqual(Before, game_of_life:cells(W)),
    ?assertEqual(3, game_of_life:population(W)).

%% It moves by one cell in four generations, and over the edges.
a_glider_comes_round() ->
    W = world(16, 16),
    ok = game_of_life:set(W, ?GLIDER),
    Before = game_of_life:cells(W),
    _ = game_of_life:evolve(W, 64),
    ?assertEqual(Before, game_of_life:cells(W)),
    ?assertEqual(64, game_of_life:generation(W)).

as_a_model_in_erlang() ->
    [begin
         W = world(Width, Height),
         Cells = [{X, Y} || X <- lists:seq(0, Width - 1), Y <- lists:seq(0, Height - 1),
                            rand:uniform(3) =:= 1],
         ok = game_of_life:set(W, Cells),
         lists:foldl(fun(_, Alive) ->
                             Next = evolve(Alive, Width, Height),
                             _ = game_of_life:evolve(W, 1),
                             ?assertEqual(lists:sort(maps:keys(Next)), alive(W, Width)),
                             Next
                     end, maps:from_keys(Cells, x), lists:seq(1, 5)),
         unlink(W), exit(W, kill)
     end || {Width, Height} <- [{1, 1}, {1, 7}, {2, 2}, {3, 5}, {20, 30}]].

alive(W, Width) ->
    Cells = game_of_life:cells(W),
    lists:sort([{I rem Width, I div Width} || I <- lists:seq(0, byte_size(Cells) - 1),
                                              binary:at(Cells, I) =:= 1]).

evolve(Alive, Width, Height) ->
    maps:from_keys(
      [{X, Y} || X <- lists:seq(0, Width - 1), Y <- lists:seq(0, Height - 1),
                 begin
                     N = length([x || DX <- [-1, 0, 1], DY <- [-1, 0, 1], {DX, DY} =/= {0, 0},
                                      is_map_key({(X + DX + Width) rem Width,
                                                  (Y + DY + Height) rem Height}, Alive)]),
                     N =:= 3 orelse N =:= 2 andalso is_map_key({X, Y}, Alive)
                 end], x).

edges() ->
    W = world(4, 3),
    ok = game_of_life:set(W, [{-1, -1}, {4, 3}, {1000000001, 7}]),
    ?assertEqual([{0, 0}, {1, 1}, {3, 2}], alive(W, 4)).

bad_requests_change_nothing() ->
    W = world(4, 4),
    [?assertEqual({error, badarg}, gen_server:call(W, R))
     || R <- [what, {set, x}, {set, [{0, 0}, {a, 1}]}, {set, [{0, 0} | {1, 1}]}, {set, [{1, 2, 3}]},
              {evolve, -1}, {evolve, a}, {evolve, 1 bsl 64}, {what, 1}, "list"]],
    W ! what,
    gen_server:cast(W, what),
    ?assertEqual(0, game_of_life:population(W)),
    ?assertEqual(0, game_of_life:generation(W)).

bad_sizes() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    [?assertMatch({error, {badarg, _}}, started(Width, Height))
     || {Width, Height} <- [{0, 1}, {1, 0}, {-1, 1}, {a, 1}, {65537, 1}]],
    ok = logger:set_primary_config(level, Level).

%% In a process of its own: until OTP 25 the exit comes at any time after the answer.
started(Width, Height) ->
    example_test:in_fresh_process(fun() ->
                                      process_flag(trap_exit, true),
                                      game_of_life:start_link(Width, Height)
                                  end).

%% Beside a world at work on each scheduler, a sleep of 1 ms takes no second.
others_have_their_turns() ->
    Worlds = [busy() || _ <- lists:seq(1, 2 * erlang:system_info(schedulers_online))],
    example_test:retry(5, fun() ->
                              Sleeps = fun() -> [timer:sleep(1) || _ <- lists:seq(1, 20)] end,
                              {Us, _} = timer:tc(Sleeps),
                              Us < 20 * 1000000 div 10 orelse Us
                          end),
    [begin unlink(W), exit(W, kill) end || W <- Worlds].

busy() ->
    W = world(1000, 1000),
    spawn(fun() -> game_of_life:evolve(W, 1000000) end),
    W.

killed_at_work_it_leaves_nothing() ->
    Worlds = [begin
                  W = busy(),
                  timer:sleep(rand:uniform(5)),
                  unlink(W),
                  exit(W, kill),
                  W
              end || _ <- lists:seq(1, 20)],
    example_test:eventually(
      fun() -> [] =:= [O || #{owner := O} <- fairnif:tasks(), lists:member(O, Worlds)] end).

a_picture() ->
    W = world(3, 2),
    ok = game_of_life:set(W, [{0, 0}, {2, 1}]),
    ?assertEqual(<<"#..\n..#\n">>, iolist_to_binary(game_of_life:picture({W, 3}))).
