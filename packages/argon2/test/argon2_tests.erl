-module(argon2_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1]).

%% Little work.
-define(QUICK, #{memory_kib => 64, passes => 1, lanes => 1}).
%% Of the reference implementation's tests: of "password", as it prints them.
-define(PUBLISHED,
        [<<"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4">>,
         <<"$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc">>,
         <<"$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8">>,
         <<"$argon2i$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY">>]).

what_the_reference_implementation_made_is_verified_test_() ->
    [[?_assert(argon2:verify(<<"password">>, Phc)),
      ?_assertNot(argon2:verify(<<"Password">>, Phc))] || Phc <- ?PUBLISHED].

the_same_is_made_test() ->
    Phc = hd(?PUBLISHED),
    Options = #{memory_kib => 256, passes => 2, lanes => 1, salt => <<"somesalt">>},
    ?assertEqual(Phc, argon2:hash(<<"password">>, Options)),
    ?assertEqual(Phc, argon2:hash_dirty(<<"password">>, Options)).

each_hash_has_a_salt_of_its_own_test_() ->
    [fun() ->
             [A, B] = [argon2:hash(Password, Options) || _ <- [1, 2]],
             ?assertNotEqual(A, B),
             [?assert(argon2:verify(Password, Phc)) || Phc <- [A, B]],
             ?assertNot(argon2:verify(<<Password/binary, 0>>, A))
     end || Password <- [<<>>, <<0>>, <<"pass", 0, "word">>, binary:copy(<<"ä"/utf8>>, 50000)],
            Options <- [?QUICK, ?QUICK#{type => argon2i, hash_size => 4},
                        ?QUICK#{type => argon2d, lanes => 4, hash_size => 65}]].

the_default_is_what_the_rfc_recommends_test_() ->
    {timeout, 600,
     fun() ->
             Phc = argon2:hash(<<"password">>),
             ?assertMatch({0, _}, binary:match(Phc, <<"$argon2id$v=19$m=65536,t=3,p=4$">>)),
             ?assert(argon2:verify(<<"password">>, Phc)),
             ?assertNot(argon2:needs_rehash(Phc, #{}))
     end}.

other_costs_need_another_hash_test() ->
    Phc = argon2:hash(<<"password">>, ?QUICK),
    ?assertNot(argon2:needs_rehash(Phc, ?QUICK)),
    [?assert(argon2:needs_rehash(Phc, maps:merge(?QUICK, Other)))
     || Other <- [#{passes => 2}, #{memory_kib => 65}, #{lanes => 2}, #{type => argon2i},
                  #{hash_size => 33}]],
    ?assert(argon2:needs_rehash(lists:last(?PUBLISHED),
                                #{type => argon2i, memory_kib => 256, passes => 2, lanes => 1})).

what_is_wrong_is_badarg_test_() ->
    [[?_assertError(badarg, argon2:hash(Password, ?QUICK)) || Password <- ["list", a, <<1:7>>]],
     [?_assertError(badarg, argon2:hash(<<"p">>, maps:merge(?QUICK, Wrong)))
      || Wrong <- [#{passes => 0}, #{memory_kib => 7}, #{memory_kib => 1 bsl 40}, #{lanes => 0},
                   #{lanes => 9}, #{hash_size => 3}, #{hash_size => 1 bsl 30}, #{type => argon3},
                   #{salt => <<"seven b">>}, #{salt => "characters"}, #{passes => 1.0},
                   #{unknown => 1}]],
     ?_assertError(badarg, argon2:hash(<<"p">>, [])),
     [?_assertError(badarg, argon2:verify(<<"password">>, Phc))
      || Phc <- [<<>>, "list", <<"$argon2id$">>,
                 <<"$argon3$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR">>,
                 <<"$argon2id$v=18$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR">>,
                 <<"$argon2id$v=19$m=999999999,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR">>,
                 <<"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65E">>,
                 <<"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR\n">>,
                 <<"$argon2id$v=19$m=256,t=2,p=1$$nf65EOgLrQMR">>]]].

%% More would take the node's memory.
no_more_than_four_are_computed_at_once_test_() ->
    {timeout, 600,
     fun() ->
             Options = #{memory_kib => 8192, passes => 2, lanes => 1},
             Callers = [spawn_monitor(fun() -> exit({done, argon2:hash(<<"p">>, Options)}) end)
                        || _ <- lists:seq(1, 20)],
             Seen = watch(Callers, []),
             ?assert(lists:max(Seen) =< 4, Seen),
             #{max_tasks := Most} = fairnif:info({argon2, nif_hash, 8}),
             ?assertEqual(4, Most)
     end}.

watch([], Seen) ->
    Seen;
watch([{Pid, Monitor} | Rest] = All, Seen) ->
    Now = length([1 || #{where := Where, function := {argon2, nif_hash, 8}} <- fairnif:tasks(),
                       Where =/= turn]),
    receive {'DOWN', Monitor, process, Pid, {done, _}} -> watch(Rest, [Now | Seen])
    after 1 -> watch(All, [Now | Seen])
    end.

a_killed_caller_leaves_nothing_behind_test_() ->
    {timeout, 600,
     fun() ->
             Options = #{memory_kib => 8192, passes => 2, lanes => 1},
             [begin
                  Pid = spawn(fun() -> argon2:hash(<<"p">>, Options) end),
                  eventually(fun() -> not is_process_alive(Pid) orelse tasks() > 0 end),
                  exit(Pid, kill)
              end || _ <- lists:seq(1, 10)],
             eventually(fun() -> tasks() =:= 0 end)
     end}.

tasks() ->
    length([1 || #{function := {argon2, nif_hash, 8}} <- fairnif:tasks()]).
