-module(fairnif_exp_matrix_plan_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, fairnif_exp_matrix_plan).

a_quick_run_measures_three_seconds_and_a_normal_one_minutes_test() ->
    ?assert(?P:cost_ms(?P:cells(quick)) =< 3000),
    Normal = ?P:cost_ms(?P:cells(normal)),
    ?assert(Normal > 60000),
    ?assert(Normal =< 300000).

every_mode_and_both_jobs_are_in_every_scale_test() ->
    Modes = lists:sort([M || {M, _, _, _} <- ?P:modes()]),
    [begin
         Measured = [{M, J} || #{skipped := undefined, mode := M, job := J}
                                   <- ?P:cells(Scale)],
         ?assertEqual([{M, J} || M <- Modes, J <- [spinsleep, spinwork]],
                      lists:usort(Measured))
     end || Scale <- [quick, normal, full]].

a_form_is_named_as_the_example_names_it_test() ->
    Forms = [F || #{form := F} <- ?P:cells(quick)],
    ?assertEqual(lists:sort([spinsleep, spinsleep_dirty, spinsleep_timeslice,
                             spinsleep_timeslice_dirty, spinsleep_fair,
                             spinsleep_fair_yield, spinsleep_fair_dirty_yield,
                             spinwork, spinwork_dirty, spinwork_timeslice,
                             spinwork_timeslice_dirty, spinwork_fair,
                             spinwork_fair_yield, spinwork_fair_dirty_yield,
                             spinsleep_threaded, spinwork_threaded]),
                 lists:usort(Forms)).

the_durations_and_multiples_are_those_of_the_talk_test() ->
    Full = ?P:cells(full),
    ?assertEqual([1, 10, 100, 1000, 10000], lists:usort([M || #{multiple := M} <- Full])),
    ?assertEqual([1000, 10000, 100000],
                 lists:usort([Us || #{mode := dirty, duration_us := Us} <- Full])),
    ?assertEqual([1000, 10000, 100000, 1000000, 10000000, 100000000],
                 lists:usort([Us || #{mode := yielding, duration_us := Us} <- Full])),
    ?assertEqual([1, 10, 100, 1000],
                 lists:usort([M || #{multiple := M} <- ?P:cells(normal)])),
    ?assertEqual(10000000,
                 lists:max([Us || #{duration_us := Us} <- ?P:cells(normal)])).

all_that_was_published_is_measured_in_full_test() ->
    ?assertEqual([], [C || #{job := spinsleep, mode := M, duration_us := Us,
                             skipped := S} = C <- ?P:cells(full),
                           S =/= undefined, ?P:published(M, Us) =/= undefined]).

a_normal_cell_is_left_out_when_it_is_predicted_above_20_s_test() ->
    Cells = ?P:cells(normal),
    ?assertNotEqual([], [C || #{skipped := cell} = C <- Cells]),
    [?assertEqual({Ms, Ms > 20000}, {Ms, S =:= cell})
     || #{predicted_ms := Ms, skipped := S} <- Cells].

what_holds_a_scheduler_is_predicted_to_add_up_and_what_gives_way_is_not_test() ->
    Predicted = fun(Mode, Job, Us, M) ->
                        [Ms] = [Ms || #{mode := Mo, job := J, duration_us := D,
                                        multiple := X, predicted_ms := Ms}
                                          <- ?P:cells(full),
                                      Mo =:= Mode, J =:= Job, D =:= Us, X =:= M],
                        Ms
                end,
    ?assertEqual(10000, Predicted(normal, spinsleep, 100000, 100)),
    ?assertEqual(10000, Predicted(dirty, spinsleep, 100000, 100)),
    ?assertEqual(300, Predicted(yielding, spinsleep, 100000, 100)),
    ?assertEqual(10000, Predicted(fair_auto, spinwork, 100000, 100)),
    %% Who is done in a slice does not wait twice.
    ?assertEqual(100, Predicted(yielding, spinsleep, 1000, 100)).

what_the_total_leaves_out_it_leaves_out_for_all_modes_test() ->
    [begin
         Cells = ?P:cells(Scale),
         Left = lists:usort([{Us, M, J} || #{skipped := total, duration_us := Us,
                                             multiple := M, job := J} <- Cells]),
         ?assertNotEqual([], Left),
         [?assertNotEqual(undefined, S)
          || #{skipped := S, duration_us := Us, multiple := M, job := J} <- Cells,
             lists:member({Us, M, J}, Left)]
     end || Scale <- [quick, normal]].

the_cells_of_a_mode_and_a_duration_stand_together_test() ->
    Groups = [{M, Us} || #{mode := M, duration_us := Us} <- ?P:cells(normal)],
    ?assertEqual(length(lists:usort(Groups)), length(dedup(Groups))).

the_published_figures_are_those_of_the_talk_test() ->
    ?assertEqual([none, none, none, 1, 15], ?P:published(normal, 1000)),
    ?assertEqual([none, 15, 30, 120, 960], ?P:published(dirty, 100000)),
    ?assertEqual([1, 2, 5, 10, 15], ?P:published(yielding, 10000000)),
    ?assertEqual([none, none, none, none, none], ?P:published(yielding, 100000000)),
    ?assertEqual([none, none, none, none, none],
                 ?P:published(yielding_dirty, 100000000)),
    ?assertEqual(undefined, ?P:published(fair_auto, 1000)).

dedup([A, A | Rest]) -> dedup([A | Rest]);
dedup([A | Rest]) -> [A | dedup(Rest)];
dedup([]) -> [].
