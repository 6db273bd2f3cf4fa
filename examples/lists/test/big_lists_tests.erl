%% What sum/1, range/2 and sort/1 promise: the answers of lists, badarg for what they do not take.
%% fairnif_check_examples_SUITE judges how they treat the VM.
-module(big_lists_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, holds/2, in_fresh_process/1, kill_task_after/2,
                       with_pauses/1]).

%% Lengths the C code treats specially: 16 elements are sorted at a time, 128 merged, 256 summed; a
%% tuple holds 1024; from some 10,000 on there is room made.
-define(EDGES, [0, 1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023,
                1024, 1025, 4095, 4097, 16384, 50001, 1 bsl 20 - 1, 1 bsl 20 + 1]).

-define(NATIVE, [{sum, 1}, {native_range, 2}, {native_sort, 1}]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

sums_are_those_of_lists_test_() ->
    property(500, ?FORALL(L, list(number_of_50_bits()), sums(L))).

a_sum_has_up_to_64_bits_test_() ->
    [?_assert(sums(L))
     || L <- [[1 bsl 63 - 1], [-(1 bsl 63)], [1 bsl 62, 1 bsl 62 - 1],
              lists:duplicate(512, 1 bsl 53)]].

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

sorting_does_not_copy_the_elements_test() ->
    Large = lists:seq(1, 1000),
    List = [{I rem 7, Large} || I <- lists:seq(1, 1000)],
    Sorted = big_lists:sort(List),
    ?assertEqual(lists:sort(List), Sorted),
    ?assertEqual(erts_debug:size(List), erts_debug:size(Sorted)).

every_answer_is_right_at_the_edges_of_its_blocks_test_() ->
    [{integer_to_list(N), {timeout, 600, fun() -> right(N) end}}
     || N <- ?EDGES].

with_a_pause_at_every_tick_the_answers_are_the_same_test_() ->
    with_pauses(
     [{timeout, 600,
       fun() ->
           {module, _} = code:ensure_loaded(big_lists),
           Before = counters(yields),
           [right(N) || N <- ?EDGES, N < 60000],
           holds(200, ?FORALL(L, elements_to_sort(), sorts(L))),
           %% the caller's heap is small, and others run in between
           in_fresh_process(fun() -> right(20000) end),
           [?assert(After - Y > 100)
            || {After, Y} <- lists:zip(counters(yields), Before)]
       end},
      ?_assertEqual([0, 0, 0], counters(rule_violations))]).

%% ------------------------------------------------------------------
%% Bad input
%% ------------------------------------------------------------------

what_is_no_list_of_such_integers_has_no_sum_test_() ->
    [?_assert(is_badarg(Form, [L]))
     || L <- bad_lists() ++ [[1, a], [1.0], [1 bsl 63], [-(1 bsl 63) - 1], [1 bsl 62, 1 bsl 62],
                             [-(1 bsl 63), -1],
                             lists:seq(1, 300) ++ [<<>>]],
        Form <- [sum, unfair_sum]].

only_two_integers_of_64_bits_have_a_range_test_() ->
    [?_assert(is_badarg(Form, Args))
     || Args <- [[a, 1], [1, a], [1.0, 2], [1, 2.0], [2, 0], [5, -5],
                 [1 bsl 63, 1 bsl 63], [1, 1 bsl 63], [-(1 bsl 63) - 1, 0],
                 [-(1 bsl 63), 1 bsl 63 - 1 + 1]],
        Form <- [range, unfair_range]].

only_lists_are_sorted_test_() ->
    [?_assert(is_badarg(sort, [L])) || L <- bad_lists()].

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
     || {Function, Args} <- [{range, [1, 200000]}, {sort, [lists:seq(200000, 1, -1)]},
                             {sort, [lists:seq(200000, 1, -1) ++ bad]}]].

%% ------------------------------------------------------------------
%% The rest of the VM
%% ------------------------------------------------------------------

a_killed_call_leaves_nothing_behind_test_() ->
    [{atom_to_list(Function),
      {timeout, 600,
       fun() ->
           Args = args(Function, 1000000),
           Before = memory(),
           [kill_task_after(Ms, fun() -> apply(big_lists, Function, Args) end)
            || Ms <- [0, 1, 5, 20, 50]],
           eventually(fun() -> memory() < Before + 20.0e6 end)
       end}}
     || Function <- [sum, range, sort]].

%% ------------------------------------------------------------------
%% Generators
%% ------------------------------------------------------------------

number_of_50_bits() ->
    oneof([integer(), range(-(1 bsl 50), 1 bsl 50)]).

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

bad_lists() ->
    [a, 1, {}, #{}, <<"abc">>, self(), [1 | 2], [{a, b} | c],
     lists:seq(1, 256) ++ x, lists:seq(1, 1024) ++ x, lists:seq(1, 50000) ++ x].

%% ------------------------------------------------------------------
%% Helpers
%% ------------------------------------------------------------------

property(Times, Property) ->
    {timeout, 600, fun() -> holds(Times, Property) end}.

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
    big_lists:sort(L) =:= Sorted.

%% All three, of N elements.
right(N) ->
    L = some_integers(N),
    ?assert(sums(L)),
    ?assert(ranges(1 - N div 2, N - N div 2)),
    ?assertEqual(lists:sort(L), big_lists:sort(L)),
    ?assert(sorts([{X rem 100, X} || X <- lists:sublist(L, 20000)])).

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

memory() ->
    erlang:memory(total).

%% Arguments of a call that takes a good while.
args(range, N) -> [1, 10 * N];
args(_Function, N) -> [some_integers(N)].
