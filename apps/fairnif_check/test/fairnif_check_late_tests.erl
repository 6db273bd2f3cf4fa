%% What comes rarely, or late, is seen all the same: in the tracer's table, in the slices, in the
%% blocks. The zoo's NIF blocks for a time by the clock.
-module(fairnif_check_late_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([slices/0, blocks/2]).

-define(T, fairnif_check_tracer).
-define(MS, 1000000).

%% ---- the table ----

a_table_with_room_has_nothing_later_test() ->
    ?assertEqual(#{since => 0, until => 0, normal => {0, 0}, dirty => {0, 0}, longest => []},
                 ?T:later(traced(1000, fun() -> erlang:yield() end))).

what_is_no_table_is_badarg_test_() ->
    [?_assertError(badarg, ?T:later(Table)) || Table <- [make_ref(), 1, []]].

what_comes_after_the_table_is_full_is_kept_as_slices_test() ->
    Table = traced(7, fun() -> [erlang:yield() || _ <- lists:seq(1, 50)] end),
    #{since := Since, until := Until, normal := Others, dirty := {0, 0}, longest := Longest} =
        ?T:later(Table),
    ?assertEqual(7, length(?T:events(Table))),
    ?assertEqual({0, 0}, Others),
    %% Each yield ends a slice; three and a half of them have a place.
    ?assert(length(Longest) >= 47),
    ?assertEqual(lists:sort(Longest), Longest),
    [?assert(Start < End andalso Kind =:= normal andalso Waited >= 0 andalso Collected >= 0)
     || {Start, End, Kind, Waited, Collected} <- Longest],
    ?assert(element(2, hd(Longest)) >= Since),
    ?assertEqual(Until, element(2, lists:last(Longest))).

of_more_than_it_has_room_for_the_longest_are_kept_and_the_others_counted_test_() ->
    {timeout, 60, fun() ->
        Table = traced(10, fun() ->
                               [erlang:yield() || _ <- lists:seq(1, 3000)],
                               spin(5 * ?MS),
                               erlang:yield(),
                               [erlang:yield() || _ <- lists:seq(1, 7000)]
                           end),
        #{normal := {Count, Ns}, longest := Longest} = ?T:later(Table),
        ?assertEqual(4096, length(Longest)),
        ?assert(Count >= 10000 - 4096 - 10),
        Own = [End - Start - Waited - Collected || {Start, End, _, Waited, Collected} <- Longest],
        %% A turn of 4000 reductions may end within the five ms.
        ?assert(lists:max(Own) > 50000),
        ?assert(Ns =< Count * lists:min(Own))
    end}.

garbage_in_a_late_slice_is_reported_test() ->
    Table = traced(0, fun() -> erlang:garbage_collect() end),
    #{longest := Longest} = ?T:later(Table),
    ?assert(lists:any(fun({_, _, _, _, Collected}) -> Collected > 0 end, Longest)).

%% ---- slices and blocks ----

the_longest_slice_after_the_limit_is_found_test_() ->
    in_peer({?MODULE, slices, []}, fun({ok, #{truncated := Truncated} = Trace}) ->
        #{normal := #{count := Count, longest := Longest, total := Total}, elapsed := Elapsed} =
            fairnif_check_slices:summary(Trace),
        ?assert(Truncated),
        ?assert(Count > 700),
        ?assert(Longest > 4 * ?MS),
        ?assert(Total =< Elapsed)
    end).

%% 400 slices of 25 us and one of 5 ms a call; 50 have a place.
every_call_after_the_limit_has_its_hold_test_() ->
    in_peer({?MODULE, blocks, [slices_then_5ms, 15000]}, fun({ok, Result}) ->
        #{block := #{calls := Calls, over := Over, longest := Longest}, normal := #{count := Count}}
            = Result,
        ?assert(Calls >= 3),
        ?assertEqual(Calls, Over),
        ?assert(Longest > 4 * ?MS),
        ?assert(Count > 100 * Calls)
    end).

a_call_after_the_limit_without_a_long_slice_is_seen_test_() ->
    in_peer({?MODULE, blocks, [slices_fair, 5000]}, fun({ok, #{block := #{calls := Calls}}}) ->
        ?assert(Calls >= 3)
    end).

a_first_call_that_is_as_all_others_is_no_longer_test_() ->
    in_peer({?MODULE, blocks, [slices_fair, 5000]},
            fun({ok, #{first := #{block := Block}}}) -> ?assert(Block < 5 * ?MS) end).

%% ---- in the peer ----

slices() ->
    fairnif_check_slices:trace(fun() -> fairnif_zoo:slices_then_5ms(25000), ok end, #{limit => 10}).

blocks(Function, Us) ->
    fairnif_check_block:measure(fun() -> fairnif_zoo:Function(Us) end,
                             #{time_ms => 200, slices => 50}).

%% ---- ----

in_peer(Mfa, Test) ->
    {setup, fun fairnif_check_zoo:build/0,
     fairnif_check_repeat:in_peer(fairnif_check_slices:flags(), Mfa, Test)}.

traced(Limit, Fun) ->
    fairnif_check_tracer_tests:traced(Limit, Fun, fun(Table) -> Table end).

spin(Ns) ->
    spin(Ns, erlang:monotonic_time(nanosecond)).

spin(Ns, From) ->
    case erlang:monotonic_time(nanosecond) - From of
        Spent when Spent < Ns -> spin(Ns, From);
        _ -> ok
    end.
