-module(fairnif_exp_matrix_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_exp_matrix).

a_quick_run_measures_what_was_planned_and_survives_what_fails_test_() ->
    {timeout, 300, fun() ->
        Bad = [{spinwork_dirty, "error({oops, Us})"},
               {spinsleep_timeslice_dirty, "halt(7)"},
               {spinsleep_fair_yield, "timer:sleep(Us div 10000 * 600000)"}],
        {ok, #{ok := Ok, rows := Rows, others := Others} = Result} =
            fairnif_lab_stand_in:with_spinsleep(
              Bad, fun() -> ?M:run(#{scale => quick, limit_ms => 5000}) end),
        ?assertNot(Ok),
        ?assertEqual(length(fairnif_exp_matrix_plan:cells(quick)), length(Rows)),
        [assert_row(Form, Us, Skipped, Row)
         || #{form := Form, duration_us := Us, skipped := Skipped} = Row <- Rows],
        ?assert(length(Others) > 0),
        ?assert(iolist_size(fairnif_lab_json:encode(Result)) > 1000),
        Text = unicode:characters_to_binary(?M:format(Result, plain)),
        [?assertMatch({_, {match, _}}, {Part, re:run(Text, Part)})
         || Part <- ["calls of 1 ms", "calls of 10 ms", "failed", "> ", "oops",
                     "exit status 7", "no answer within the time limit"]]
    end}.

assert_row(spinwork_dirty, _, undefined, Row) ->
    ?assertMatch(#{status := failed, why := <<"a call ended with {{oops", _/binary>>}, Row);
assert_row(spinsleep_timeslice_dirty, _, undefined, Row) ->
    ?assertMatch(#{status := failed, why := <<"the peer node ended", _/binary>>}, Row);
assert_row(spinsleep_fair_yield, 10000, undefined, Row) ->
    ?assertMatch(#{status := timeout}, Row);
assert_row(_, _, undefined, #{job := Job, duration_us := Us} = Row) ->
    ?assertMatch(#{status := measured, elapsed := [_ | _], extra := _,
                   processes := _}, Row),
    %% A stand-in cannot be done before its deadline.
    #{elapsed := Elapsed, extra := Extra, form := Form} = Row,
    Sleeps = Job =:= spinsleep andalso Form =/= spinsleep_fair_yield,
    ?assert(lists:min(Elapsed) >= 1000 * Us orelse not Sleeps),
    ?assert(Extra >= 0 orelse not Sleeps);
assert_row(_, _, _, Row) ->
    ?assertMatch(#{status := skipped}, Row),
    ?assertNot(is_map_key(elapsed, Row)).

progress_has_a_step_for_each_mode_and_duration_test() ->
    ?assertEqual(16, ?M:steps(#{scale => quick})),
    ?assertEqual(36, ?M:steps(#{})),
    ?assertEqual(42, ?M:steps(#{scale => full})).

each_kind_of_cell_says_what_it_is_test() ->
    Text = format([row(#{multiple => 1, extra => 1234567}),
                   row(#{multiple => 10, status => skipped, skipped => cell,
                         predicted_ms => 100000}),
                   row(#{multiple => 100, status => skipped, skipped => total}),
                   row(#{multiple => 1000, status => failed, why => <<"the reason">>}),
                   row(#{multiple => 10000, status => timeout, limit_ms => 50000})]),
    fairnif_lab_said:contains(Text,
                              ["calls of 10 ms", "1.23 ms", "(100 s)", "(left out)", "failed",
                               "> 50 s", "plain NIF", "1,000x", "-/-/1s/10s/2m",
                               "predicted to take so long", "all together would take longer",
                               "Failed: spinsleep, 10 ms, 1,000x: the reason",
                               "no answer within the time limit", "Andrew Bennett"]).

spinwork_has_no_published_figures_test() ->
    ?assertEqual(nomatch, string:find(format([row(#{job => spinwork})]), "-/-/1s")).

a_busy_machine_is_named_as_a_doubt_test() ->
    Doubt = fun(Others) ->
                    string:find(format([row(#{})], [#{mode => normal, others => Others}]),
                                "doubt plain NIF")
            end,
    ?assertNotEqual(nomatch, Doubt(0.9)),
    ?assertEqual(nomatch, Doubt(0.05)),
    ?assertEqual(nomatch, Doubt(undefined)).

the_conclusion_takes_the_cell_in_which_plain_nifs_were_latest_test() ->
    Text = format([row(#{multiple => 1, extra => 5000000}),
                   row(#{multiple => 100, extra => 990000000, processes => 200}),
                   row(#{multiple => 100, extra => 12000000, processes => 200,
                         mode => fair_auto})]),
    [?assertMatch({_, {match, _}}, {Part, re:run(Text, Part)})
     || Part <- ["200 calls of 10 ms", "990 ms  plain NIF", "12.0 ms  fairnif AUTO"]].

nothing_is_concluded_from_what_was_not_measured_test() ->
    ?assertEqual(nomatch, string:find(
        format([row(#{status => failed, why => <<"x">>})]), "What to see")).

on_a_terminal_the_hot_cells_are_coloured_and_the_skipped_are_not_test() ->
    Rows = [row(#{multiple => 1, extra => 2000000000}),
            row(#{multiple => 10, status => skipped, skipped => total})],
    Text = unicode:characters_to_binary(?M:format(result(Rows, []), colour)),
    ?assertMatch({match, _}, re:run(Text, "\e\\[30;41m *2.00 s *\e\\[0m", [unicode])),
    ?assertMatch({match, [[_]]}, re:run(Text, "\e\\[30", [global, unicode])).

format(Rows) ->
    format(Rows, []).

format(Rows, Others) ->
    unicode:characters_to_binary(?M:format(result(Rows, Others), plain)).

result(Rows, Others) ->
    #{ok => true, scale => normal, others => Others, rows => Rows}.

row(More) ->
    maps:merge(#{job => spinsleep, mode => normal, form => spinsleep,
                 duration_us => 10000, multiple => 1, runs => 1, processes => 2,
                 predicted_ms => 10, skipped => undefined, status => measured,
                 elapsed => [10000000], extra => 0}, More).
