%% Fair resources of the Rust crate (rust/tests/nif/src/resources.rs). Skipped where
%% fairnif_rust_tests are.
-module(fairnif_rust_resource_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_test_rust).

resource_test_() ->
    {setup, fun fairnif_rust_tests:built/0,
     fun(built) -> {timeout, 300, [{Name, {timeout, 60, Test}} || {Name, Test} <- tests()]};
        ({skipped, Why}) -> ?debugFmt("skipped: ~ts", [Why]), []
     end}.

tests() ->
    [{"values go both ways, in fair functions and in rustler's", fun both_ways/0},
     {"what is of no such type is badarg", fun badarg/0},
     {"each is dropped once, when it is garbage", fun garbage/0},
     {"each is dropped once when its process, or the call that holds it, is killed", fun killed/0},
     {"an author's function ticks and sleeps, and is seen in info", fun steps/0},
     {"a panic in a drop ends nothing, and is counted", fun panics/0},
     {"what is left at a purge is dropped by its own code, and strange to the new one",
      fun purged/0},
     {"a load that is refused leaves the types that there are to threads at work", fun refused/0}].

%% -- values ------------------------------------------------------------------

both_ways() ->
    ?T:reset_resource_counts(),
    ?assertEqual([5, 6], [?T:number_of(?T:F(N)) || {F, N} <- [{short, 5}, {short_fair, 6}]]),
    All = [?T:short(N) || N <- lists:seq(1, 100)],
    ?assertEqual({5050, All}, ?T:all_of(All)),
    ?assertMatch({true, Ref} when is_reference(Ref), ?T:aligned(7)),
    ?assert(is_reference(?T:nothing_at_all())),
    ?assertEqual([1, 2], [?T:keep_short(Kept) || Kept <- [hd(All), hd(All)]]),
    ?assertMatch({104, _, _}, ?T:resource_counts()).

badarg() ->
    Strange = [element(2, ?T:aligned(0)), ?T:theirs(0), ?T:nothing_at_all(), make_ref(), a, <<>>,
               {?T:short(1)}],
    [?assertError(badarg, ?T:F(Term))
     || Term <- Strange, F <- [number_of, holds]],
    ?assertError(badarg, ?T:all_of([?T:short(1), ?T:theirs(0)])),
    ?assertEqual([<<"short">>, <<"nothing">>, <<"theirs">>, <<"none">>, <<"none">>],
                 [?T:kind_of(Term)
                  || Term <- [?T:short(1), ?T:nothing_at_all(), ?T:theirs(0), ?T:steps(0),
                              make_ref()]]).

%% -- ends --------------------------------------------------------------------

%% All that the tests before have left is gone.
settled() ->
    ?T:drop_shorts(),
    erlang:garbage_collect(),
    fairnif_test:eventually(
      fun() ->
              All = maps:get(resources, fairnif:info()),
              Left = [R || #{type := {?T, _}, objects := N} = R <- All, N > 0],
              Left =:= [] orelse Left
      end),
    ?T:reset_resource_counts().

%% Made so often by a process that ends.
make(F, Args, Times) ->
    Make = fun() -> [apply(?T, F, Args) || _ <- lists:seq(1, Times)] end,
    {_, Monitor} = spawn_monitor(fun() -> exit({made, length(Make())}) end),
    ?assertEqual({made, Times}, fairnif_test:down(Monitor)).

dropped(Count) ->
    fairnif_test:eventually(
      fun() ->
              case ?T:resource_counts() of
                  {Count, Count, _} -> true;
                  Other -> Other
              end
      end).

garbage() ->
    settled(),
    make(short, [1], 10000),
    dropped(10000),
    make(short_fair, [1], 1000),
    dropped(11000),
    make(aligned, [1], 100),
    make(nothing_at_all, [], 100),
    dropped(11200),
    settled().

killed() ->
    settled(),
    Self = self(),
    Holder = fun() -> Held = ?T:short(1), Self ! holds, receive never -> Held end end,
    Caller = fun() -> Short = ?T:short(1), Self ! holds, ?T:holds(Short) end,
    [begin
         {Pid, Monitor} = spawn_monitor(Fun),
         receive holds -> ok end,
         timer:sleep(5),
         exit(Pid, kill),
         ?assertEqual(killed, fairnif_test:down(Monitor))
     end || Fun <- [Holder, Caller], _ <- lists:seq(1, 20)],
    dropped(40),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] orelse fairnif:tasks() end).

%% -- drops that take long ----------------------------------------------------

steps() ->
    settled(),
    make(steps, [500], 4),
    dropped(2000),
    settled(),
    #{calls := Calls, stack_size := 65536, thread_ns := Ns, unit_ns := UnitNs} =
        fairnif:info({?T, 'steps cleanup', 1}),
    %% Of 20 us and two units a step.
    ?assert(Calls >= 4 andalso Ns >= 4 * 500 * 20000 andalso UnitNs >= 5000).

panics() ->
    settled(),
    Misuses = fun() -> maps:get(rule_violations, fairnif:info({?T, 'bad cleanup', 1})) end,
    Before = Misuses(),
    make(bad, [], 10),
    dropped(10),
    fairnif_test:eventually(fun() -> Misuses() =:= Before + 10 orelse Misuses() end),
    settled().

%% -- a purge -----------------------------------------------------------------

purged() ->
    settled(),
    Old = ?T:short(1),
    make(slow, [200], 2),
    1 = ?T:keep_short(?T:short(2)),
    true = code:delete(?T),
    code:purge(?T),
    {module, ?T} = code:load_file(?T),
    New = ?T:short(3),
    ?assertEqual(3, ?T:number_of(New)),
    %% The library has not left: what it counted is there.
    ?assertMatch({5, _, _}, ?T:resource_counts()),
    ?assertError(badarg, ?T:number_of(Old)),
    ?assertEqual(1, ?T:drop_shorts()),
    fairnif_test:eventually(
      fun() ->
              case ?T:resource_counts() of
                  {5, 3, _} -> true;
                  Other -> {Other, maps:get(resources, fairnif:info())}
              end
      end),
    ?assert(is_reference(Old) andalso is_reference(New)),
    make(short, [1], 1),
    fairnif_test:eventually(fun() -> element(2, ?T:resource_counts()) >= 4 end),
    ?assert(is_reference(Old) andalso is_reference(New)),
    dropped_last().

dropped_last() ->
    erlang:garbage_collect(),
    dropped(6).

%% What is kept keeps the library in memory.
refused() ->
    settled(),
    1 = ?T:keep_short(?T:short(1)),
    true = code:delete(?T),
    code:purge(?T),
    persistent_term:put(?T, 77),
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    ?assertEqual({error, on_load_failure}, code:load_file(?T)),
    ok = logger:set_primary_config(level, Level),
    persistent_term:erase(?T),
    timer:sleep(200),
    {module, ?T} = code:load_file(?T),
    fairnif_test:eventually(
      fun() -> Counts = ?T:resource_counts(), element(2, Counts) =:= 1 orelse Counts end),
    ?assertEqual(1, ?T:drop_shorts()),
    dropped(2).
