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

all_that_was_published_is_measured_in_full_test() ->
    ?assertEqual([], [C || #{job := spinsleep, mode := M, duration_us := Us,
                             skipped := S} = C <- ?P:cells(full),
                           S =/= undefined, ?P:published(M, Us) =/= undefined]).

what_blocks_a_scheduler_is_predicted_to_add_up_and_what_yields_is_not_test() ->
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
    %% A call done in one slice does not wait twice.
    ?assertEqual(100, Predicted(yielding, spinsleep, 1000, 100)).
