-module(fairnif_check_compare_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_check_compare).
-define(R, fairnif_check_test_results).

%% Twelve times around Ns, all within a few per cent.
around(Ns) ->
    [Ns + Ns * Percent / 100 || Percent <- [-3, -2, -2, -1, -1, 0, 0, 1, 1, 2, 2, 3]].

verdict(Before, Now) ->
    {Verdict, Why} = ?M:change(Before, Now, 0.0),
    ?assert(string:length(Why) > 5),
    Verdict.

%% The rows of a size that has these changes, beside the same without.
rows(Key, Value) ->
    figure_rows(?R:good(), ?R:put_size(Key, Value, ?R:good())).

figure_rows(Before, Now) ->
    Last = fun(#{subjects := [#{sizes := Sizes} | _]}) -> ?M:figures(lists:last(Sizes), 2) end,
    maps:from_list([{F, R} || #{figure := F} = R
                                  <- ?M:compare(subject, 1048576, Last(Before), Last(Now))]).

%% ---- times ----

clearly_slower_is_worse_and_clearly_faster_is_improved_test() ->
    ?assertEqual(worse, verdict(around(1000), around(1200))),
    ?assertEqual(improved, verdict(around(1200), around(1000))).

a_change_that_is_sure_but_small_is_within_noise_test() ->
    Many = lists:seq(1000, 1010),
    ?assertEqual(within_noise, verdict(Many, [N * 1.04 || N <- Many])),
    ?assertEqual(worse, verdict(Many, [N * 1.06 || N <- Many])).

noisy_samples_are_within_noise_though_the_medians_differ_test() ->
    A = [500, 900, 1000, 1000, 1400, 3000, 700, 1900],
    B = [600, 800, 1100, 1300, 1500, 2500, 900, 1800],
    ?assert(fairnif_check_stats:median(B) > 1.1 * fairnif_check_stats:median(A)),
    ?assertEqual(within_noise, verdict(A, B)).

one_sample_that_was_disturbed_changes_nothing_test() ->
    ?assertEqual(within_noise, verdict(around(1000), [1.0e9 | around(1000)])).

too_few_samples_say_nothing_test() ->
    ?assertEqual(unsure, verdict([1, 1, 1, 1, 1], around(1000))),
    ?assertEqual(unsure, verdict(around(1000), [])).

equal_samples_have_no_variance_and_are_within_noise_test() ->
    Same = lists:duplicate(10, 7),
    ?assertEqual(within_noise, verdict(Same, Same)),
    ?assertEqual(worse, verdict(Same, lists:duplicate(10, 9))).

a_drift_within_the_run_is_within_noise_test() ->
    %% The second half is as it was before, and most samples are longer.
    Before = lists:duplicate(20, 1000),
    Now = lists:duplicate(15, 1300) ++ lists:duplicate(5, 1000),
    ?assertEqual(within_noise, verdict(Before, Now)),
    ?assertEqual(worse, verdict(Before, lists:duplicate(20, 1300))).

what_the_machine_accounts_for_is_within_noise_test() ->
    ?assertMatch({within_noise, _}, ?M:change(around(1000), around(1200), 0.3)),
    ?assertMatch({worse, _}, ?M:change(around(1000), around(1400), 0.3)).

%% By hand: no overlap, 6 and 6, U = 0, z = 2.80, p = 0.005.
six_against_six_without_overlap_is_significant_test() ->
    {worse, Why} = ?M:change([1, 2, 3, 4, 5, 6], [70, 80, 90, 100, 110, 120], 0),
    ?assertMatch({match, _}, re:run(Why, "p 0\\.005$")).

samples() ->
    ?LET(N, range(6, 30), vector(N, range(1, 100000))).

property(Property) ->
    {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 300}, quiet]))}.

the_same_data_in_any_order_is_within_noise_test_() ->
    property(?FORALL(A, samples(),
                     element(1, ?M:change(A, lists:reverse(A), 0)) =:= within_noise)).

before_and_after_are_mirror_images_test_() ->
    Mirror = #{improved => worse, worse => improved, within_noise => within_noise},
    property(?FORALL({A, B}, {samples(), samples()},
                     element(1, ?M:change(A, B, 0))
                         =:= maps:get(element(1, ?M:change(B, A, 0)), Mirror))).

ten_times_as_long_is_worse_whatever_the_samples_test_() ->
    %% Within a factor of 3: then ten times as long cannot overlap.
    property(?FORALL(A, ?LET(N, range(6, 30), vector(N, range(1000, 3000))),
                     element(1, ?M:change(A, [10 * X || X <- A], 0)) =:= worse)).

the_unit_of_time_does_not_matter_test_() ->
    property(?FORALL({A, B}, {samples(), samples()},
                     element(1, ?M:change(A, B, 0))
                         =:= element(1, ?M:change([1024 * X || X <- A], [1024 * X || X <- B], 0)))).

%% ---- other figures ----

a_result_compared_with_itself_is_within_noise_in_every_figure_test() ->
    Rows = figure_rows(?R:good(), ?R:good()),
    ?assertEqual([time, block, charge, share, delay, kill, leak] -- maps:keys(Rows), []),
    [?assertMatch(#{verdict := within_noise, ratio := _}, R) || R <- maps:values(Rows)].

each_figure_has_the_direction_that_is_better_test_() ->
    Delay = fun(P99) -> #{erlang => ?R:delay(1050000), beside => ?R:delay(P99)} end,
    Stop = fun(Ns) -> #{count => 3, stop => fairnif_check_stats:summary([Ns])} end,
    Cases = [{block, worse, slices, blocked(23000000, 60000)},
             {charge, worse, charge, #{ratio => 0.2}},
             {share, worse, share, #{median => 0.07}},
             {share, improved, share, #{median => 0.9}},
             {delay, worse, delay, Delay(9000000)},
             {kill, worse, kill, Stop(1.0e9)},
             {leak, worse, leak, ?R:leak(1.0e6)}],
    [{atom_to_list(Figure),
      fun() ->
              Rows = rows(Key, Value),
              ?assertMatch(#{Figure := #{verdict := Verdict}}, Rows),
              Others = maps:without([Figure], Rows),
              ?assertEqual([], [R || #{verdict := V} = R <- maps:values(Others),
                                     V =:= worse orelse V =:= improved])
      end} || {Figure, Verdict, Key, Value} <- Cases].

what_is_too_small_to_notice_is_within_noise_test() ->
    %% Three times the block, and still a tenth of the limit.
    ?assertMatch(#{block := #{verdict := within_noise}}, rows(slices, blocked(90000, 60000))),
    ?assertMatch(#{leak := #{verdict := within_noise}},
                 rows(leak, ?R:leak(2000.0))).

charged_more_than_erlang_is_no_better_test() ->
    A = ?R:put_size(charge, #{ratio => 1.1}, ?R:good()),
    B = ?R:put_size(charge, #{ratio => 2.5}, ?R:good()),
    ?assertMatch(#{charge := #{verdict := within_noise, why := <<"more than 1.00 is no better">>}},
                 figure_rows(A, B)),
    ?assertMatch(#{charge := #{verdict := within_noise}}, figure_rows(B, A)).

blocked(Ns, Control) ->
    #{block => ?R:blocks(Ns), control => ?R:blocks(Control)}.

what_ordinary_erlang_shows_as_well_says_nothing_about_the_function_test() ->
    ?assertMatch(#{delay := #{verdict := unsure}},
                 rows(delay, #{erlang => ?R:delay(8000000), beside => ?R:delay(9000000)})),
    ?assertMatch(#{block := #{verdict := unsure}}, rows(slices, blocked(23000000, 9000000))).

slower(Factor, Result) ->
    #{subjects := [#{sizes := Sizes} | _]} = Result,
    #{time := #{samples := Samples}} = lists:last(Sizes),
    ?R:with_samples([S * Factor || S <- Samples], Result).

with_others(Processors, Result) ->
    ?R:put_size(others, [undefined, Processors, 0.01], Result).

verdict_on(Figure, Before, Now) ->
    maps:get(verdict, maps:get(Figure, figure_rows(Before, Now))).

on_a_machine_with_other_work_a_change_must_be_larger_test() ->
    Unquiet = fun(Result) -> with_others(0.4, Result) end,         % 0.2 of the machine
    Time = fun(Before, Now) -> verdict_on(time, Before, Now) end,
    ?assertEqual(worse, Time(?R:good(), slower(1.3, ?R:good()))),
    ?assertEqual(within_noise, Time(?R:good(), Unquiet(slower(1.3, ?R:good())))),
    ?assertEqual(within_noise, Time(Unquiet(?R:good()), slower(1.3, ?R:good()))),
    ?assertEqual(worse, Time(?R:good(), Unquiet(slower(1.7, ?R:good())))),
    Less = ?R:put_size(share, #{median => 0.3}, ?R:good()),
    ?assertEqual(worse, verdict_on(share, ?R:good(), Less)),
    ?assertEqual(within_noise, verdict_on(share, ?R:good(), Unquiet(Less))).

on_a_busy_machine_nothing_is_said_of_what_depends_on_who_gets_a_processor_test() ->
    Busy = fun(Result) -> with_others(1.2, Result) end,
    ?assertEqual(unsure, verdict_on(time, ?R:good(), Busy(slower(9, ?R:good())))),
    ?assertEqual(within_noise, verdict_on(time, ?R:good(), Busy(?R:good()))),
    ?assertEqual(worse, verdict_on(leak, ?R:good(),
                                   Busy(?R:put_size(leak, ?R:leak(1.0e6), ?R:good())))).

when_ordinary_erlang_is_slower_too_it_is_the_machine_test() ->
    #{subjects := [#{sizes := [_, #{charge := #{erlang := Erlang} = Charge}]}]} = ?R:good(),
    Slow = maps:map(fun(_, PerMs) -> PerMs / 1.3 end, Erlang),
    Now = ?R:put_size(charge, Charge#{erlang := Slow}, slower(1.25, ?R:good())),
    ?assertMatch(#{time := #{verdict := within_noise}}, figure_rows(?R:good(), Now)).

delays_that_overlap_from_window_to_window_are_within_noise_test() ->
    Before = #{erlang => ?R:delay(1050000),
               beside => (?R:delay(2000000))#{windows := [1500000, 7000000, 1600000, 2000000]}},
    Now = #{erlang => ?R:delay(1050000),
            beside => (?R:delay(9000000))#{windows := [6000000, 9000000, 8000000, 7000000]}},
    ?assertMatch(#{delay := #{verdict := within_noise}},
                 figure_rows(?R:put_size(delay, Before, ?R:good()),
                             ?R:put_size(delay, Now, ?R:good()))).

a_run_without_an_answer_cannot_be_compared_test() ->
    ?assertMatch(#{delay := #{verdict := unsure}}, rows(delay, #{beside => unanswered})).

what_was_measured_on_one_side_only_cannot_be_compared_test() ->
    ?assertMatch(#{kill := #{verdict := unsure, now := undefined, ratio := undefined}},
                 rows(kill, remove)),
    Before = ?R:put_size(kill, remove, ?R:good()),
    ?assertMatch(#{kill := #{verdict := unsure, before := undefined}},
                 figure_rows(Before, ?R:good())),
    ?assertNot(is_map_key(kill, figure_rows(Before, Before))).

every_figure_that_is_judged_has_its_band_and_source_test() ->
    Bands = ?M:bands(),
    ?assertEqual(lists:sort(maps:keys(figure_rows(?R:good(), ?R:good()))),
                 lists:sort([F || #{figure := F} <- Bands])),
    [?assert(byte_size(S) > 5) || #{source := S} <- Bands].

the_table_has_a_line_for_each_row_test() ->
    Rows = maps:values(figure_rows(?R:good(), ?R:every_status())),
    Text = unicode:characters_to_list(?M:table(Rows)),
    ?assertEqual(length(Rows) + 4, length(string:split(string:trim(Text), "\n", all))).
