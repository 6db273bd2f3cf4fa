%% What sum/1, range/2, sort/1 and to_map/1 promise: the answers of lists and
%% maps, badarg for what they do not take, and a VM that stays usable.
-module(big_lists_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, holds/2, in_fresh_process/1, beside/1, kill_task_after/2,
                       on_one_scheduler/1, with_pauses/1]).

%% Lengths the C code treats specially: 16 elements are sorted at a time, 128
%% merged, 256 summed; a tuple holds 1024, a tuple of tuples 2^20; a map is in
%% parts from 128 pairs on; from some 10,000 on there is room made.
-define(EDGES, [0, 1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 255, 256, 257,
                511, 512, 513, 1023, 1024, 1025, 4095, 4097, 16384, 50001,
                1 bsl 20 - 1, 1 bsl 20 + 1]).

-define(MANY, 5000000).

%% What the large tests take at most, with room to spare.
-define(MUCH_MEMORY, (4 bsl 30)).

-define(NATIVE, [{sum, 1}, {native_range, 2}, {native_sort, 1},
                 {native_to_maps, 1}]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

sums_are_those_of_lists_test_() ->
    property(500, ?FORALL(L, list(number_of_64_bits()), sums(L))).

a_sum_may_be_larger_than_its_elements_test_() ->
    [?_assert(sums(L))
     || X <- [1 bsl 64 - 1, -(1 bsl 63), 1 bsl 63, 1 bsl 62, -1],
        L <- [[X], [X, X], [X, -1], lists:duplicate(1000, X),
              [X | lists:seq(1, 300)]]].

ranges_are_those_of_lists_test_() ->
    property(500, ?FORALL({From, N}, {bounded(), range(0, 3000)},
                          ranges(From, From + N - 1))).

a_range_may_end_where_64_bits_do_test_() ->
    [?_assert(ranges(From, To))
     || {From, To} <- [{1 bsl 63 - 300, 1 bsl 63 - 1},
                       {-(1 bsl 63), -(1 bsl 63) + 300},
                       {-(1 bsl 63), -(1 bsl 63)},
                       {1 bsl 63 - 1, 1 bsl 63 - 2},
                       {1 bsl 59 - 200, 1 bsl 59 + 200}]].

sorted_lists_are_those_of_lists_test_() ->
    property(500, ?FORALL(L, elements_to_sort(), sorts(L))).

what_compares_equal_keeps_its_order_test_() ->
    property(300, ?FORALL(L, list(oneof([range(-3, 3),
                                         ?LET(I, range(-3, 3), float(I)),
                                         {range(0, 1), 1}, {range(0, 1), 1.0}])),
                          sorts(L))).

what_is_in_order_already_is_sorted_too_test_() ->
    [?_assert(sorts(L))
     || N <- [100, 2000, 70000],
        L <- [lists:seq(1, N), lists:seq(N, 1, -1), lists:duplicate(N, a),
              lists:seq(1, N) ++ lists:seq(1, N div 2),
              lists:seq(1, N) ++ [0]]].

sorting_does_not_copy_the_elements_test() ->
    Large = lists:seq(1, 1000),
    List = [{I rem 7, Large} || I <- lists:seq(1, 1000)],
    Sorted = big_lists:sort(List),
    ?assertEqual(lists:sort(List), Sorted),
    ?assertEqual(erts_debug:size(List), erts_debug:size(Sorted)).

maps_are_those_of_maps_test_() ->
    property(500, ?FORALL(L, pairs(), makes_map(L))).

the_last_value_of_a_key_counts_test_() ->
    [?_assert(makes_map([{I rem Keys, I} || I <- lists:seq(1, N)]))
     || N <- [2, 40, 300, 5000, 50000],
        Keys <- [1, 2, 31, 33, 200, 1000, N - 1]].

one_and_one_point_zero_are_two_keys_test() ->
    ?assert(makes_map(lists:append([[{I, int}, {float(I), float}]
                                    || I <- lists:seq(1, 1000)]))).

every_answer_is_right_at_the_edges_of_its_blocks_test_() ->
    [{integer_to_list(N), {timeout, 60, fun() -> right(N) end}}
     || N <- ?EDGES].

with_a_pause_at_every_tick_the_answers_are_the_same_test_() ->
    with_pauses(
     [{timeout, 60,
       fun() ->
           {module, _} = code:ensure_loaded(big_lists),
           Before = counters(yields),
           [right(N) || N <- ?EDGES, N < 60000],
           holds(200, ?FORALL(L, elements_to_sort(), sorts(L))),
           holds(200, ?FORALL(L, pairs(), makes_map(L))),
           ?assert(makes_map([{I rem 9, I} || I <- lists:seq(1, 5000)])),
           %% the caller's heap is small, and others run in between
           in_fresh_process(fun() -> right(20000) end),
           [?assert(After - Y > 100)
            || {After, Y} <- lists:zip(counters(yields), Before)]
       end},
      ?_assertEqual([0, 0, 0, 0], counters(misuses))]).

five_million_elements_have_the_right_answers_test_() ->
    [{atom_to_list(Function),
      {timeout, 60,
       fun() -> with_memory(fun() -> ?assert(right_for_many(Function)) end) end}}
     || Function <- [sum, range, sort, to_map]].

right_for_many(sum) ->
    L = some_integers(?MANY),
    big_lists:sum(L) =:= lists:sum(L);
right_for_many(range) ->
    big_lists:range(-9, ?MANY) =:= lists:seq(-9, ?MANY);
right_for_many(sort) ->
    L = some_integers(?MANY),
    Sorted = big_lists:sort(L),
    %% no two are alike
    ascending(Sorted) andalso length(Sorted) =:= ?MANY
        andalso lists:sum(Sorted) =:= lists:sum(L);
right_for_many(to_map) ->
    L = some_integers(?MANY),
    Map = big_lists:to_map([{X, -X} || X <- L]),
    map_size(Map) =:= ?MANY
        andalso lists:all(fun(X) -> maps:get(X, Map) =:= -X end, L).

ascending([X | [Y | _] = L]) -> X < Y andalso ascending(L);
ascending(_) -> true.

%% ------------------------------------------------------------------
%% Bad input
%% ------------------------------------------------------------------

what_is_no_list_of_such_integers_has_no_sum_test_() ->
    [?_assert(is_badarg(Form, [L]))
     || L <- bad_lists() ++ [[1, a], [1.0], [1 bsl 64], [-(1 bsl 63) - 1],
                             lists:seq(1, 300) ++ [<<>>]],
        Form <- [sum, unfair_sum]].

only_two_integers_of_64_bits_have_a_range_test_() ->
    [?_assert(is_badarg(Form, Args))
     || Args <- [[a, 1], [1, a], [1.0, 2], [1, 2.0], [2, 0], [5, -5],
                 [1 bsl 63, 1 bsl 63], [1, 1 bsl 63], [-(1 bsl 63) - 1, 0],
                 [-(1 bsl 63), 1 bsl 63 - 1 + 1]],
        Form <- [range, unfair_range]].

only_lists_are_sorted_test_() ->
    [?_assert(is_badarg(Form, [L]))
     || L <- bad_lists(), Form <- [sort, unfair_sort]].

only_lists_of_pairs_become_maps_test_() ->
    [?_assert(is_badarg(Form, [L]))
     || L <- bad_lists() ++ [[a], [{a}], [{a, b, c}], [{a, b}, {}],
                             [{I, I} || I <- lists:seq(1, 50000)] ++ [[]]],
        Form <- [to_map, unfair_to_map]].

%% ------------------------------------------------------------------
%% The caller's heap
%% ------------------------------------------------------------------

the_callers_heap_settings_are_as_before_test_() ->
    [{lists:flatten(io_lib:format("~p", [Function])),
      fun() ->
          {Before, After} =
              in_fresh_process(
                fun() ->
                    process_flag(min_heap_size, 1000),
                    Before = min_heap_size(),
                    _ = try apply(big_lists, Function, Args)
                        catch error:badarg -> badarg
                        end,
                    {Before, min_heap_size()}
                end),
          ?assertEqual(Before, After)
      end}
     || {Function, Args} <- [{range, [1, 200000]},
                             {sort, [lists:seq(200000, 1, -1)]},
                             {to_map, [lists:duplicate(200000, {a, 1})]},
                             {to_map, [lists:duplicate(200000, bad)]}]].

a_caller_whose_heap_is_limited_is_not_killed_for_room_test() ->
    Pairs = literal(same_key, 200000),
    {Pid, Ref} =
        spawn_opt(fun() -> exit({answer, big_lists:to_map(Pairs)}) end,
                  [monitor, {max_heap_size,
                             #{size => 1100000, kill => true,
                               error_logger => false}}]),
    ?assertEqual({answer, #{a => 1}},
                 receive {'DOWN', Ref, process, Pid, Reason} -> Reason end).

%% ------------------------------------------------------------------
%% The rest of the VM
%% ------------------------------------------------------------------

a_killed_call_leaves_nothing_behind_test_() ->
    [{atom_to_list(Function),
      {timeout, 60,
       fun() ->
           with_memory(
             fun() ->
                 Args = args(Function, 1000000),
                 Before = memory(),
                 [kill_task_after(Ms, fun() -> apply(big_lists, Function, Args) end)
                  || Ms <- [0, 1, 5, 20, 50]],
                 eventually(fun() -> fairnif:tasks() =:= [] end),
                 eventually(fun() -> memory() < Before + 20.0e6 end)
             end)
       end}}
     || Function <- [sum, range, sort, to_map]].

%% On a single scheduler, how long an Erlang process beside the call has to
%% wait.  The plain NIFs show that this test can fail.
the_neighbour_of_a_fair_call_keeps_running_test_() ->
    on_one_scheduler(
     [{atom_to_list(Function),
       {timeout, 60, fun() -> example_test:retry(5, fun() -> waits(Function, Waits) end) end}}
      || {Functions, Waits} <-
             [{[sum, range, sort, to_map], false},
              {[unfair_sum, unfair_range, unfair_sort, unfair_to_map], true}],
         Function <- Functions]).

%% ------------------------------------------------------------------
%% Generators
%% ------------------------------------------------------------------

number_of_64_bits() ->
    oneof([integer(), range(-(1 bsl 63), 1 bsl 64 - 1),
           range(1 bsl 62, 1 bsl 64 - 1), range(-(1 bsl 63), -(1 bsl 62))]).

bounded() ->
    oneof([integer(), range(-(1 bsl 62), 1 bsl 62),
           range(1 bsl 59 - 3000, 1 bsl 59)]).

%% Elements that are alike more often than any two terms are.
elements_to_sort() ->
    ?SIZED(Size, resize(Size * 8, oneof([list(any()), list(integer()),
                                         list(element_to_sort())]))).

element_to_sort() ->
    oneof([integer(), float(), ?LET(I, range(-9, 9), float(I)),
           range(1 bsl 58, 1 bsl 66), range(-(1 bsl 66), -(1 bsl 58)),
           atom(), binary(), {range(0, 3), range(0, 3)},
           [range(0, 1)], oneof([#{}, #{a => 1}, self()])]).

pairs() ->
    ?SIZED(Size, resize(Size * 8, list({oneof([range(0, 99), any(), integer(),
                                               element_to_sort()]), any()}))).

bad_lists() ->
    [a, 1, {}, #{}, <<"abc">>, self(), [1 | 2], [{a, b} | c],
     lists:seq(1, 256) ++ x, lists:seq(1, 1024) ++ x,
     [{I, I} || I <- lists:seq(1, 50000)] ++ x].

%% ------------------------------------------------------------------
%% Helpers
%% ------------------------------------------------------------------

property(Times, Property) ->
    {timeout, 60, fun() -> holds(Times, Property) end}.

sums(L) ->
    Sum = lists:sum(L),
    big_lists:sum(L) =:= Sum andalso big_lists:unfair_sum(L) =:= Sum.

ranges(From, To) ->
    Range = lists:seq(From, To),
    big_lists:range(From, To) =:= Range
        andalso big_lists:unfair_range(From, To) =:= Range.

sorts(L) ->
    %% lists:sort/1 of OTP 25 is not stable: of [1, 0, 0.0, 1] it makes
    %% [0.0, 0, 1, 1].
    Sorted = lists:sort(fun erlang:'=<'/2, L),
    big_lists:sort(L) =:= Sorted andalso big_lists:unfair_sort(L) =:= Sorted.

makes_map(L) ->
    Map = maps:from_list(L),
    big_lists:to_map(L) =:= Map andalso big_lists:unfair_to_map(L) =:= Map.

%% All four, of N elements.
right(N) ->
    L = some_integers(N),
    ?assert(sums(L)),
    ?assert(ranges(1 - N div 2, N - N div 2)),
    ?assertEqual(lists:sort(L), big_lists:sort(L)),
    ?assert(sorts([{X rem 100, X} || X <- lists:sublist(L, 20000)])),
    Map = big_lists:to_map([{X, -X} || X <- L]),
    ?assertEqual(Map, maps:from_list([{X, -X} || X <- L])).

%% In no order, none of them twice.
some_integers(N) ->
    [X * 2654435761 band (1 bsl 32 - 1) || X <- lists:seq(1, N)].

is_badarg(Form, Args) ->
    try apply(big_lists, Form, Args) of
        _ -> false
    catch
        error:badarg -> true
    end.

counters(Name) ->
    [maps:get(Name, fairnif:info({big_lists, F, A})) || {F, A} <- ?NATIVE].

min_heap_size() ->
    {garbage_collection, Settings} = process_info(self(), garbage_collection),
    proplists:get_value(min_heap_size, Settings).

with_memory(Fun) ->
    case available() of
        Bytes when Bytes < ?MUCH_MEMORY ->
            io:format(user, "skipped, with ~b MB of memory: ", [Bytes bsr 20]);
        _ ->
            in_fresh_process(Fun)
    end.

available() ->
    {ok, Info} = file:read_file("/proc/meminfo"),
    {match, [Kb]} = re:run(Info, "MemAvailable: +(\\d+)",
                           [{capture, all_but_first, list}]),
    list_to_integer(Kb) * 1024.

memory() ->
    erlang:memory(total).

%% Arguments of a call that takes a good while.  Lists are literals: the
%% collector leaves those where they are, and no time is lost to it.
args(Function, N) when Function =:= range; Function =:= unfair_range ->
    [1, 10 * N];
args(Function, N) ->
    [literal(Function, N)].

literal(Function, N) ->
    Kind = case Function of
               _ when Function =:= to_map; Function =:= unfair_to_map -> pairs;
               same_key -> same_key;
               _ -> integers
           end,
    Key = {?MODULE, Kind, N},
    case persistent_term:get(Key, none) of
        none ->
            L = some_integers(N),
            persistent_term:put(Key, case Kind of
                                         pairs -> [{X, X} || X <- L];
                                         same_key -> [{a, 1} || _ <- L];
                                         integers -> L
                                     end),
            persistent_term:get(Key);
        L ->
            L
    end.

waits(Function, Waits) ->
    N = case Function of
            _ when Function =:= sum; Function =:= unfair_sum -> 5000000;
            _ -> 500000
        end,
    Args = args(Function, N),
    {Elapsed, Gap} = in_fresh_process(fun() ->
                                          beside(fun() -> apply(big_lists, Function, Args) end)
                                      end),
    (Gap > Elapsed div 4) =:= Waits orelse {Function, Elapsed, Gap}.

%% The room of one call is not the next one's need: the heap would grow by it each time.
who_calls_again_and_again_does_not_grow_test_() ->
    {timeout, 60, fun who_calls_again_and_again_does_not_grow/0}.

who_calls_again_and_again_does_not_grow() ->
    Call = fun() -> big_lists:range(1, 100000) end,
    ?assert(example_test:most_heap(100, Call) < 3000000).
