-module(fairnif_exp_http_plan_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, fairnif_exp_http_plan).

what_does_not_tick_is_not_run_for_long_test() ->
    [?assert(Ms =< 100) || #{mode := Mode, duration_ms := Ms} <- ?P:runs(full, #{}),
                           Mode =:= normal orelse Mode =:= dirty].

every_run_beside_a_mode_has_one_beside_erlang_and_one_beside_nothing_test() ->
    [begin
         Runs = ?P:runs(Scale, #{}),
         [begin
              ?assertMatch([_], [R || #{mode := erlang} = R <- Runs, load(R) =:= load(Run)]),
              ?assertMatch([_], [R || #{mode := idle, rate := Of, repeat := N} = R <- Runs,
                                      Of =:= Rate, N =:= Repeat])
          end || #{mode := Mode, rate := Rate, repeat := Repeat} = Run <- Runs, Mode =/= idle]
     end || Scale <- [quick, normal, full]].

a_function_has_the_name_that_the_example_gives_it_test() ->
    Names = [Name || #{work := {nif, Name}} <- ?P:runs(full, #{jobs => [spinwork]})],
    ?assertEqual([spinwork, spinwork_dirty, spinwork_fair, spinwork_fair_dirty_yield,
                  spinwork_fair_yield, spinwork_threaded, spinwork_timeslice], lists:usort(Names)).

the_times_that_the_manual_states_hold_test() ->
    Minutes = fun(Scale) -> ?P:cost_ms(?P:runs(Scale, #{})) / 60000 end,
    ?assert(Minutes(quick) < 0.5),
    ?assert(Minutes(normal) > 4 andalso Minutes(normal) < 7),
    ?assert(Minutes(full) > 8 * 60 andalso Minutes(full) < 10 * 60).

other_numbers_take_the_place_of_those_of_the_scale_test() ->
    ?assertMatch([#{mode := normal, duration_ms := 1000, at_once := 3, rate := 40,
                    window_ms := 500, work := {nif, spinwork}}],
                 ?P:runs(full, #{modes => [normal], jobs => [spinwork], durations => [1000],
                                 at_once => [3], rates => [40], repeats => 1, window => 500})).

something_is_promised_of_what_yields_on_normal_schedulers_test() ->
    ?assertEqual([yielding, auto], [M || M <- ?P:modes(), ?P:at_most(M) =:= 2.0]),
    ?assertEqual([2.0, undefined], lists:usort([?P:at_most(M) || M <- ?P:modes()])).

a_run_has_its_window_within_its_loads_test() ->
    [begin
         {Heavy, From, To, End} = ?P:takes_ms(Run),
         ?assert(0 < Heavy andalso Heavy < From andalso To < End),
         ?assertEqual(maps:get(window_ms, Run), To - From)
     end || Run <- ?P:runs(quick, #{})].

load(Run) ->
    maps:with([job, duration_ms, at_once, rate, repeat], Run).
