-module(game_of_life_tests).

-include_lib("eunit/include/eunit.hrl").

all_test_() ->
    [{timeout, 600, Test}
     || Test <- [fun as_a_model_in_erlang/0, fun a_glider_comes_round/0, fun bad_requests/0,
                 fun bad_worlds/0,
                 fun killed_at_work_it_leaves_nothing/0]].

world(Width, Cells) ->
    {ok, World} = game_of_life:start_link(Width, Cells),
    World.

%% It moves by one cell in four generations, and over the edges.
a_glider_comes_round() ->
    Glider = <<0:8, 1, 0:14/unit:8, 0:16, 1, 0:13/unit:8, 1, 1, 1, 0:13/unit:8, 0:208/unit:8>>,
    W = world(16, Glider),
    ok = game_of_life:evolve(W, 1),
    ?assertNotEqual(Glider, game_of_life:cells(W)),
    ok = game_of_life:evolve(W, 63),
    ?assertEqual(Glider, game_of_life:cells(W)).

as_a_model_in_erlang() ->
    [begin
         Cells = << <<(rand:uniform(2) - 1)>> || _ <- lists:seq(1, Width * Height) >>,
         W = world(Width, Cells),
         ?assertEqual(Cells, game_of_life:cells(W)),
         lists:foldl(fun(_, Before) ->
                             Next = evolve(Before, Width, Height),
                             ok = game_of_life:evolve(W, 1),
                             ?assertEqual(Next, game_of_life:cells(W)),
                             Next
                     end, Cells, lists:seq(1, 5)),
         end_world(W)
     end || {Width, Height} <- [{1, 1}, {1, 7}, {2, 2}, {3, 5}, {20, 30}]].

evolve(Cells, Width, Height) ->
    At = fun(X, Y) ->
                 binary:at(Cells, (Y + Height) rem Height * Width + (X + Width) rem Width)
         end,
    << <<(case lists:sum([At(X + DX, Y + DY) || DX <- [-1, 0, 1], DY <- [-1, 0, 1]]) of
              3 -> 1;
              4 -> At(X, Y);
              _ -> 0
          end)>> || Y <- lists:seq(0, Height - 1), X <- lists:seq(0, Width - 1) >>.

bad_requests() ->
    W = world(2, <<1, 0, 0, 1>>),
    [?assertEqual(badarg, gen_server:call(W, R))
     || R <- [what, {evolve, -1}, {evolve, a}, {evolve, 1 bsl 64}, {what, 1}, "list"]],
    W ! what,
    gen_server:cast(W, what),
    ?assertEqual(<<1, 0, 0, 1>>, game_of_life:cells(W)).

bad_worlds() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    [?assertMatch({error, {badarg, _}}, started(Width, Cells))
     || {Width, Cells} <- [{0, <<1>>}, {1, <<>>}, {-1, <<1>>}, {a, <<1>>}, {2, <<1>>}, {1, a},
                           {2, <<0:1048578/unit:8>>}]],
    ok = logger:set_primary_config(level, Level).

%% In a process of its own: until OTP 25 the exit comes at any time after the answer.
started(Width, Cells) ->
    example_test:in_fresh_process(fun() ->
                                      process_flag(trap_exit, true),
                                      game_of_life:start_link(Width, Cells)
                                  end).

busy() ->
    W = world(1000, <<0:1000000/unit:8>>),
    spawn(fun() -> game_of_life:evolve(W, 1000000) end),
    W.

end_world(W) ->
    unlink(W),
    exit(W, kill).

killed_at_work_it_leaves_nothing() ->
    Worlds = [begin
                  W = busy(),
                  timer:sleep(rand:uniform(5)),
                  end_world(W),
                  W
              end || _ <- lists:seq(1, 20)],
    example_test:eventually(
      fun() -> [] =:= [O || #{owner := O} <- fairnif:tasks(), lists:member(O, Worlds)] end).
