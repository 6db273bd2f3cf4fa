%% The Grafana dashboard (priv/grafana.json) against the metrics that there are.
-module(fairnif_watch_grafana_tests).

-include_lib("eunit/include/eunit.hrl").

%% Metrics that it does not show: counts of how the watch works, which say something to who works
%% on the watch; limits and totals of which others say more.
-define(NOT_SHOWN,
        [<<"erlang_vm_ets_limit">>,
         <<"fairnif_watch_activations_total">>,
         <<"fairnif_watch_asks_failed_total">>,
         <<"fairnif_watch_asks_total">>,
         <<"fairnif_watch_beats_total">>,
         <<"fairnif_watch_classified_total">>,
         <<"fairnif_watch_dirty_asked_total">>,
         <<"fairnif_watch_dirty_probes_total">>,
         <<"fairnif_watch_dismissed_total">>,
         <<"fairnif_watch_emergencies_total">>,
         <<"fairnif_watch_events_total">>,
         <<"fairnif_watch_findings_changed_total">>,
         <<"fairnif_watch_findings_total">>,
         <<"fairnif_watch_held_total">>,
         <<"fairnif_watch_longest_gap_seconds">>,
         <<"fairnif_watch_looks_total">>,
         <<"fairnif_watch_period_seconds">>,
         <<"fairnif_watch_pokes_total">>,
         <<"fairnif_watch_released_total">>,
         <<"fairnif_watch_reports_total">>,
         <<"fairnif_watch_samples_total">>,
         <<"fairnif_watch_signals_total">>,
         <<"fairnif_watch_starved_total">>,
         <<"fairnif_watch_subscribers">>,
         <<"fairnif_watch_telemetry_events_total">>,
         <<"fairnif_watch_ticks_total">>,
         <<"fairnif_watch_views_total">>]).

file() -> filename:join(code:priv_dir(fairnif_watch), "grafana.json").

text() ->
    {ok, Text} = file:read_file(file()),
    Text.

emitted() -> lists:sort([Name || {Name, _, _, _} <- fairnif_watch_metrics:families()]).

%% Every name in an expression.
shown() ->
    {match, Names} = re:run(text(), "\\b(?:fairnif_watch|erlang_vm)_[a-z0-9_]+",
                            [global, {capture, first, binary}]),
    lists:usort(lists:append(Names)).

it_is_json_test() ->
    ?assertEqual("", os:cmd("python3 -m json.tool '" ++ file() ++ "' >/dev/null")).

every_metric_that_it_names_is_emitted_test() ->
    ?assertEqual([], shown() -- emitted()).

every_metric_that_is_emitted_is_shown_or_known_not_to_be_test() ->
    ?assertEqual(?NOT_SHOWN, emitted() -- shown()).

%% Of each panel that shows something: its unit and its expressions.
panels() ->
    [_ | Panels] = re:split(text(), "\n      \"id\": "),
    [{unit(Panel), exprs(Panel)} || Panel <- Panels, exprs(Panel) =/= []].

unit(Panel) ->
    {match, [Unit]} = re:run(Panel, "\"unit\": \"([a-z]+)\"", [{capture, all_but_first, binary}]),
    Unit.

exprs(Panel) ->
    case re:run(Panel, "\"expr\": \"([^\\n]*)\"", [global, {capture, all_but_first, binary}]) of
        {match, Exprs} -> lists:append(Exprs);
        nomatch -> []
    end.

%% Seconds a second and ratios are parts of a whole; counts by the second are that.
the_units_are_those_of_the_metrics_test() ->
    ?assert(length(panels()) > 10),
    [?assertEqual({Expr, unit_of(Expr)}, {Expr, Unit})
     || {Unit, Exprs} <- panels(), Expr <- Exprs].

unit_of(Expr) ->
    Has = fun(Part) -> re:run(Expr, Part, [{capture, none}]) =:= match end,
    Rate = Has("rate\\("),
    Seconds = Has("_seconds"),
    Part = Has("_ratio") orelse Has(" / "),
    if Rate andalso Seconds; Part -> <<"percentunit">>;
       Rate -> <<"cps">>;
       Seconds -> <<"s">>;
       true -> <<"short">>
    end.

every_expression_asks_for_the_chosen_nodes_of_the_chosen_source_test() ->
    [?assertNotEqual({nomatch, Expr}, {string:find(Expr, <<"instance=~\\\"$instance\\\"">>), Expr})
     || {_, Exprs} <- panels(), Expr <- Exprs],
    {match, Sources} = re:run(text(), "\"uid\": \"([^\"]*)\"",
                              [global, {capture, all_but_first, binary}]),
    ?assertEqual([<<"${datasource}">>, <<"fairnif-watch">>], lists:usort(lists:append(Sources))).
