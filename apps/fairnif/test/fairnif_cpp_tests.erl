%% fairnif.hpp in the VM. Skipped, aloud, where there is no C++ compiler.
-module(fairnif_cpp_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_test_cpp).
-define(TYPES, fairnif_test_types).
-define(FINE, fairnif_test_fine).

cpp_test_() ->
    ok = fairnif_test:build(),
    case filelib:is_regular([fairnif_test:library(?T), ".so"]) of
        true ->
            {timeout, 300,
             [{Name, {timeout, 60, Test}} || {Name, Test} <- tests()]};
        false ->
            ?debugMsg("skipped: there is no C++ compiler"),
            []
    end.

tests() ->
    [{"integers go both ways within their range", fun integers/0},
     {"a wrong argument says which one, what was expected and what came", fun wrong/0},
     {"values of all types go both ways", fun values/0},
     {"long lists, maps and strings are read, made and destroyed in slices", fun slices/0},
     {"a term is kept for the call by a root, and until a pause without", fun terms/0},
     {"exceptions become Erlang's", fun exceptions/0},
     {"fairnif:with_error_info/2 makes a wrong argument badarg with error_info", fun checked/0},
     {"destructors run however a call ends", fun ends/0},
     {"they run once, on no normal scheduler, wherever its caller's death finds the body",
      fun killed/0},
     {"a guard has its lock until its scope ends, though the call is cancelled", fun guards/0},
     {"a body may pause with exceptions caught and in flight, and continue on another thread",
      fun in_flight/0},
     {"what runs elsewhere answers and throws as if called here", fun calls/0},
     {"resources are typed, and destroyed by the VM", fun resources/0},
     {"resources whose destructors run in tasks", fun resources_in_tasks/0},
     {"types of one unqualified name are two, after upgrades and refused loads, too",
      fun types/0},
     {"objects of an older library, where the type was smaller, are refused",
      fun smaller/0},
     {"a body is a process that serves calls and casts", fun process/0},
     {"a receive as an exception unwinds ends when its caller dies", fun receives_late/0},
     {"Erlang's functions answer and raise as if called here", fun applies/0},
     {"options are taken", fun options/0}].

%% fine is an Elixir library, from Hex: FINE_INCLUDE names the folder where its header is.
fine_test_() ->
    case os:getenv("FINE_INCLUDE") of
        false ->
            ?debugMsg("skipped: FINE_INCLUDE does not say where fine.hpp is"),
            [];
        _ ->
            ok = fairnif_test:build(),
            {timeout, 60, [{"functions of fine become fair one by one", fun beside_fine/0},
                           {"a library made with fine is loaded again", fun fine_again/0}]}
    end.

beside_fine() ->
    ?assertEqual(5, ?FINE:add(2, 3)),
    ?assertError(#{'__struct__' := 'Elixir.ArgumentError'}, ?FINE:add(2, a)),
    ?assertEqual(500000500000, ?FINE:triangle(1000000)),
    ?assertError({badarg, #{1 := <<"expected an integer", _/binary>>}}, ?FINE:triangle(a)),
    ?assertMatch(#{calls := Calls, flags := [cleanup]} when Calls > 0,
                 fairnif:info({?FINE, triangle, 1})),
    ?assertEqual(7, ?FINE:unboxed(?FINE:boxed(7))),
    ?assertEqual({ok, a, <<"a">>}, ?FINE:ok(a)),
    ?assertEqual([{term}], ?FINE:same([{term}])),
    {Pid, Monitor} = spawn_monitor(fun() -> ?FINE:triangle(1 bsl 60) end),
    fairnif_test:eventually(fun() -> fairnif:tasks() =/= [] end),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    fairnif_test:eventually(
      fun() -> #{cleanups := N} = fairnif:info({?FINE, triangle, 1}), N =:= 1 end).

fine_again() ->
    ?assertEqual(6, ?FINE:triangle(3)),
    true = code:delete(?FINE),
    _ = code:purge(?FINE),
    ?assertEqual(10, ?FINE:triangle(4)).

%% -- values ------------------------------------------------------------------

integers() ->
    Types = [{int8, -128, 127}, {uint8, 0, 255}, {int16, -32768, 32767}, {uint16, 0, 65535},
             {int32, -(1 bsl 31), 1 bsl 31 - 1}, {uint32, 0, 1 bsl 32 - 1},
             {int64, -(1 bsl 63), 1 bsl 63 - 1}, {uint64, 0, 1 bsl 64 - 1},
             {long_long, -(1 bsl 63), 1 bsl 63 - 1}],
    [begin
         [?assertEqual(N, ?T:F(N)) || N <- [Least, 0, 1, Most]],
         [?assertError({badarg, #{1 := <<"expected an integer ", _/binary>>}}, ?T:F(N))
          || N <- [Least - 1, Most + 1, 1.0, a, <<1>>]]
     end || {F, Least, Most} <- Types].

wrong() ->
    Said = fun(F, Args) ->
                   try apply(?T, F, Args) catch error:{badarg, Why} -> Why end
           end,
    ?assertEqual(#{1 => <<"expected an integer 0..255, got 256">>}, Said(uint8, [256])),
    ?assertEqual(#{1 => <<"expected an integer 0..255, got an integer over 64 bits">>},
                 Said(uint8, [1 bsl 64])),
    ?assertEqual(#{1 => <<"expected true or false, got yes">>}, Said(bool, [yes])),
    ?assertEqual(#{1 => <<"expected a binary, got a list">>}, Said(bytes, [[1]])),
    ?assertEqual(#{1 => <<"expected a binary, got a bitstring that is no binary">>},
                 Said(string, [<<1:3>>])),
    ?assertMatch(#{2 := <<"expected an integer", _/binary>>}, Said(catches, [<<"a">>, b])),
    ?assertMatch(#{1 := <<"expected iodata", _/binary>>}, Said(iodata, [[a]])),
    [?assertMatch(#{1 := <<"expected ", _/binary>>}, Said(F, [Bad]))
     || {F, Bad} <- [{ints, [1, 2, a]}, {ints, [1 | 2]}, {ints, a}, {tuple, {1, <<"x">>}},
                     {tuple, {1, <<"x">>, a}}, {pair, {[], 1}}, {optional, some},
                     {variant, 1.5}, {map, #{a => [1]}}, {map, #{<<"a">> => [b]}}, {map, []},
                     {turned, {point, 1}}, {turned, {line, 1, 2}}, {double, a},
                     {float, 1.0e300}, {atom, 1}, {aligned, make_ref()}]].

values() ->
    Same = [{double, [0.0, -1.5, 1.0e300]}, {float, [0.5, -2.0]}, {bool, [true, false]},
            {atom, [a, '', 'an atom', list_to_atom([1000, 1001])]},
            {string, [<<>>, <<0, 255>>, big(100000)]}, {view, [<<>>, <<"view">>, big(100000)]},
            {bytes, [<<>>, <<"bytes">>, big(100000)]},
            {ints, [[], [1, -1, 1 bsl 62]]}, {bools, [[], [true, false]]},
            {strings, [[], [<<>>, <<"a">>]]}, {nested, [[], [[], [<<"a">>, <<>>]]]},
            {tuple, [{1, <<"x">>, 2.5}]}, {pair, [{[], a}, {[1, 2], b}]},
            {optional, [undefined, 7]}, {variant, [1, true, <<"s">>, [1, 2]]},
            {map, [#{}, #{<<"a">> => [], <<"b">> => [1, 2]}]},
            {unordered_map, [#{}, #{1 => 2, -1 => -2}]}, {copied_strings, [[<<"a">>]]}],
    [[?assertEqual(V, ?T:F(V)) || V <- Values] || {F, Values} <- Same],
    ?assertEqual(3.0, ?T:double(3)),
    ?assertEqual(undefined, ?T:optional(nil)),
    ?assertEqual({point, 2, 1}, ?T:turned({point, 1, 2})),
    ?assertEqual(<<"abcd">>, ?T:iodata([$a, [<<"b">>, "c"] | <<"d">>])),
    ?assertEqual(<<"aabb">>, ?T:doubled(<<"ab">>)),
    ?assertEqual({[a], [a]}, ?T:twice([a])),
    ?assertEqual(<<"abc">>, ?T:atom_name(abc)),
    ?assertEqual({true, false}, {?T:is_ok(ok), ?T:is_ok(error)}),
    ?assertEqual({{}, ok}, {?T:nothing(), ?T:returns_nothing()}),
    ?assertError(badarith, ?T:infinite()).

big(Size) -> binary:copy(<<"x">>, Size).

%% -- in slices ---------------------------------------------------------------

slices() ->
    Ints = lists:seq(1, 300000),
    Strings = [integer_to_binary(N) || N <- lists:seq(1, 100000)],
    Map = maps:from_list([{N, -N} || N <- lists:seq(1, 50000)]),
    Calls = [{ints, Ints, Ints}, {strings, Strings, Strings}, {copied_strings, Strings, Strings},
             {unordered_map, Map, Map}, {sized_strings, Strings, length(Strings)},
             {sized_map, Map, map_size(Map)}, {string, big(5000000), big(5000000)},
             {by_hand, Ints, lists:sum(Ints)}, {count_down, 100000, lists:seq(99999, 0, -1)}],
    [begin
         #{yields := Before} = fairnif:info({?T, F, 1}),
         ?assertEqual(Answer, ?T:F(Arg)),
         #{yields := After} = fairnif:info({?T, F, 1}),
         ?assert(After - Before >= 5, {F, After - Before})
     end || {F, Arg, Answer} <- Calls].

terms() ->
    Term = {[1, 2], #{a => <<"b">>}, make_ref(), self()},
    [?assertEqual(Term, ?T:kept(Pauses, Term)) || Pauses <- [0, 1, 10]].

%% -- exceptions --------------------------------------------------------------

exceptions() ->
    ?assertEqual(ok, ?T:throws(<<"nothing">>)),
    [?assertEqual(Reason, try ?T:throws(What) catch error:R -> R end)
     || {What, Reason} <-
            [{<<"invalid_argument">>, {badarg, #{general => <<"no such shop">>}}},
             {<<"badarg">>, {badarg, #{1 => <<"no such shop">>}}},
             {<<"bad_alloc">>, enomem},
             {<<"out_of_range">>, {'std::out_of_range', <<"far away">>}},
             {<<"atom">>, not_found}, {<<"chars">>, <<"not found">>},
             {<<"tuple">>, {line, 17, lists:duplicate(1000, 1)}},
             {<<"int">>, {int, <<>>}}, {<<"cancelled">>, cancelled}]],
    ?assertError({'std::length_error', <<_, _/binary>>}, ?T:throws(<<"length_error">>)),
    ?assertError({'std::system_error', <<_, _/binary>>}, ?T:throws(<<"system_error">>)),
    ?assertError({'(anonymous namespace)::shop::closed<int>', <<>>}, ?T:throws(<<"struct">>)).

checked() ->
    ?assertEqual(7, fairnif:with_error_info(fun ?T:uint8/1, [7])),
    try fairnif:with_error_info(fun ?T:uint8/1, [256]) of
        Answer -> error({answer, Answer})
    catch
        error:badarg:Stack ->
            [{?T, uint8, [256], Info} | _] = Stack,
            #{module := Module, cause := Cause} = proplists:get_value(error_info, Info),
            ?assertEqual(#{1 => <<"expected an integer 0..255, got 256">>}, Cause),
            ?assertEqual(Cause, Module:format_error(badarg, Stack))
    end,
    ?assertError(badarith, fairnif:with_error_info(fun ?T:infinite/0, [])).

%% -- how a call ends ---------------------------------------------------------

ends() ->
    ?T:reset(),
    ?assertEqual(1, ?T:ends(false)),
    ?assertEqual({3, 3}, made_and_gone()),
    ?assertError({'std::runtime_error', <<"ended">>}, ?T:ends(true)),
    ?assertEqual({6, 6}, made_and_gone()),
    ?assertError({fairnif, {deadlock, {?T, twice_locked, 0}}},
                 fairnif:await(?T:twice_locked())),
    ?assertEqual({7, 7}, made_and_gone()).

made_and_gone() ->
    {Made, Gone, _, _} = ?T:counts(),
    {Made, Gone}.

killed() ->
    %% How the body continues, how many objects it makes, how often it swallows the cancellation.
    [killed(F, How, Made, Swallowed)
     || F <- [endless_normal, endless_dirty, endless_threaded],
        {How, Made, Swallowed} <- [{<<"tick">>, 2 + 1, 0}, {<<"unwind">>, 2 + 1, 0},
                                   {<<"catch">>, 2 + 2, 0}, {<<"sleep">>, 2, 0},
                                   {<<"hold">>, 2 + 1, 0}, {<<"call">>, 2, 0},
                                   {<<"receive">>, 2, 0}, {<<"tagged">>, 2, 0},
                                   {<<"apply">>, 2, 0},
                                   {<<"dirty">>, 2 + 1, 0}, {<<"try">>, 2, 0},
                                   {<<"swallow">>, 2 + 1 + 5, 5}]].

killed(F, How, Made, Swallowed) ->
    ?T:reset(),
    Mfa = {?T, F, 1},
    #{cleanups := Before} = fairnif:info(Mfa),
    {Pid, Monitor} = spawn_monitor(fun() -> fairnif:await(?T:F(How)) end),
    fairnif_test:eventually(fun() -> element(1, ?T:counts()) >= min(Made, 3) end),
    timer:sleep(5),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    fairnif_test:eventually(
      fun() ->
              case {?T:counts(), fairnif:info(Mfa)} of
                  {{Made, Made, 0, Swallowed}, #{cleanups := Unwinds}} -> Unwinds =:= Before + 1;
                  Other -> {F, How, Other}
              end
      end).

%% A second guard deadlocks: the first one keeps the lock. A guard that is made as an exception
%% unwinds cannot throw: cancelled as it waits, its thread waits on.
guards() ->
    ?T:reset(),
    _ = ?T:was_guarded(),
    ?assertError({fairnif, {deadlock, _}}, fairnif:await(?T:twice_locked())),
    ?assertEqual(1, ?T:was_guarded()),
    Holder = spawn(fun() -> fairnif:await(?T:endless_normal(<<"hold">>)) end),
    fairnif_test:eventually(fun() -> element(1, ?T:counts()) =:= 1 + 3 end),
    timer:sleep(10),
    Late = spawn(fun() -> fairnif:await(?T:unwinds_to_lock()) end),
    fairnif_test:eventually(fun() -> element(1, ?T:counts()) =:= 1 + 3 + 1 end),
    timer:sleep(10),
    exit(Late, kill),
    timer:sleep(50),
    ?assertEqual(-1, ?T:was_guarded()),
    exit(Holder, kill),
    fairnif_test:eventually(fun() -> ?T:was_guarded() =:= 1 end).

in_flight() ->
    Self = self(),
    Pids = [spawn_link(fun() ->
                               Id = integer_to_binary(N),
                               Self ! {self(), ?T:catches(Id, 50) + ?T:unwinds(50)}
                       end) || N <- lists:seq(1, 20)],
    ?assertEqual([0 || _ <- Pids], [receive {Pid, Wrong} -> Wrong end || Pid <- Pids]).

calls() ->
    ?assertEqual(lists:append(lists:duplicate(5, [<<"given back">>, <<"changed">>, <<"far">>])),
                 fairnif:await(?T:calls())).

%% -- resources, options ------------------------------------------------------

resources() ->
    ?T:reset(),
    {Pid, Monitor} = spawn_monitor(fun use_cells/0),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end,
    fairnif_test:eventually(
      fun() -> made_and_gone() =:= {2, 2} orelse made_and_gone() end).

use_cells() ->
    Cell = ?T:new_cell(5),
    7 = ?T:add(Cell, 2),
    10 = ?T:add(Cell, 3),
    true = ?T:aligned(Cell),
    ?assertError({badarg, #{general := <<"a negative cell">>}}, ?T:new_cell(-1)),
    ?assertError({badarg, #{1 := <<"expected a resource", _/binary>>}}, ?T:add(?T:new_other(), 1)).

resources_in_tasks() ->
    ?T:reset(),
    {Pid, Monitor} = spawn_monitor(
                       fun() ->
                               Objects = [?T:new_tended(5) || _ <- lists:seq(1, 50)],
                               true = lists:all(fun ?T:tended_aligned/1, Objects),
                               ?assertError({badarg, #{general := <<"a negative cell">>}},
                                            ?T:new_tended(-1)),
                               ?assertError({badarg, #{1 := <<"expected a resource", _/binary>>}},
                                            ?T:tended_aligned(?T:new_cell(5)))
                       end),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end,
    fairnif_test:eventually(
      fun() -> made_and_gone() =:= {52, 52} orelse made_and_gone() end).

types() ->
    distinguished(),
    [begin reloads({?TYPES, undefined}), distinguished() end || _ <- [1, 2]],
    quietly(fun() ->
                    [begin
                         {error, on_load_failure} = load(Refused),
                         distinguished()
                     end || Refused <- [{?TYPES, 77}, {refused_twice, undefined}]]
            end),
    reloads({?TYPES, undefined}),
    distinguished().

reloads(Library) ->
    {module, ?TYPES} = load(Library).

load(Library) ->
    persistent_term:put(?TYPES, Library),
    _ = code:purge(?TYPES),
    code:load_file(?TYPES).

distinguished() ->
    {A, B} = {?TYPES:make_a(), ?TYPES:make_b()},
    ?assertEqual({42, <<"long enough to be elsewhere">>}, {?TYPES:number(A), ?TYPES:text(B)}),
    ?assertError({badarg, _}, ?TYPES:number(B)),
    ?assertError({badarg, _}, ?TYPES:text(A)),
    ?assertEqual(0, ?TYPES:monitored(A)).

smaller() ->
    {A, Tended} = {?TYPES:make_a(), ?TYPES:make_tended()},
    ?assertEqual({42, 42}, {?TYPES:number(A), ?TYPES:tended_number(Tended)}),
    reloads({types_grown, undefined}),
    ?assertError({badarg, _}, ?TYPES:number(A)),
    ?assertError({badarg, _}, ?TYPES:tended_number(Tended)),
    ?assertMatch(#{refused := N} when N > 0, tended()),
    ?assertEqual(42, ?TYPES:number(?TYPES:make_a())),
    ?assertEqual(42, ?TYPES:tended_number(?TYPES:make_tended())),
    %% Nor are they destroyed as what they are not.
    erlang:garbage_collect(),
    fairnif_test:eventually(fun() -> #{objects := Left} = tended(), Left =:= 0 end),
    reloads({?TYPES, undefined}),
    distinguished().

tended() ->
    #{resources := Types} = fairnif:info(),
    hd([T || #{type := {?TYPES, 'a::tended'}} = T <- Types]).

%% -- messages ----------------------------------------------------------------

process() ->
    [process(Nif) || Nif <- [fun ?T:keeper/1, fun ?T:keeper_threaded/1]].

process(Nif) ->
    ?T:reset(),
    {ok, Pid} = fairnif_process:start_link(Nif, [[<<"a">>]], []),
    ?assertEqual([<<"a">>], gen_server:call(Pid, all)),
    Large = big(1000000),
    ok = gen_server:cast(Pid, {add, Large}),
    [ok = gen_server:cast(Pid, Nonsense) || Nonsense <- [nonsense, {add, 1}]],
    Pid ! nonsense,
    ?assertEqual(Large, gen_server:call(Pid, Large)),
    ?assertEqual(2, gen_server:call(Pid, size)),
    ?assertEqual([<<"a">>, Large], gen_server:call(Pid, all)),
    ?assertEqual({ok, [<<"a">>, Large]}, gen_server:call(Pid, stop)),
    fairnif_test:eventually(fun() -> made_and_gone() =:= {1, 1} end),
    %% What it throws ends it.
    {ok, Other} = fairnif_process:start(Nif, [[]], []),
    quietly(fun() ->
                    ?assertExit({{{badarg, #{general := <<"expected a binary, got 17">>}}, _}, _},
                                gen_server:call(Other, 17))
            end),
    %% Its death unwinds it.
    {ok, Third} = fairnif_process:start(Nif, [[<<"a">>]], []),
    Monitor = monitor(process, Third),
    exit(Third, kill),
    receive {'DOWN', Monitor, process, Third, killed} -> ok end,
    fairnif_test:eventually(fun() -> made_and_gone() =:= {3, 3} end).

quietly(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try Fun() after logger:set_primary_config(level, Level) end.

receives_late() ->
    ?T:reset(),
    Late = spawn(fun() -> fairnif:await(?T:unwinds_to_receive()) end),
    fairnif_test:eventually(fun() -> made_and_gone() =:= {1, 0} end),
    exit(Late, kill),
    fairnif_test:eventually(fun() -> made_and_gone() =:= {1, 1} end).

applies() ->
    Apply = fun(How, Arg) -> fairnif:await(?T:applies(How, Arg)) end,
    ?assertEqual(6, Apply(<<"sum">>, none)),
    ?assertEqual(self(), Apply(<<"none">>, none)),
    ?assertEqual({<<"b">>, 2}, Apply(<<"mixed">>, [{<<"a">>, 1}, {<<"b">>, 2}])),
    Dead = spawn(fun() -> ok end),
    ?assertMatch({'DOWN', _, process, Dead, _}, Apply(<<"monitor">>, Dead)),
    ?assertEqual(self(), Apply(<<"link">>, self())),
    ?assertEqual({a, "reason"}, Apply(<<"caught">>, {a, "reason"})),
    ?T:reset(),
    ?assertError({a, "reason"}, Apply(<<"error">>, {a, "reason"})),
    ?assertError({throw, [1, 2]}, Apply(<<"throw">>, [1, 2])),
    ?assertEqual({2, 2}, made_and_gone()),
    ?assertError(noproc, Apply(<<"link">>, Dead)).

options() ->
    ?assertEqual(1000, ?T:deep(1000)),
    ?assertMatch(#{stack_size := 8388608, flags := [cleanup], mode := auto},
                 fairnif:info({?T, deep, 1})).
