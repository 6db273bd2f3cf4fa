%% The Grafana dashboard (priv/grafana.json) against the metrics that there are.
-module(fairnif_watch_grafana_tests).

-include_lib("eunit/include/eunit.hrl").

file() -> filename:join(code:priv_dir(fairnif_watch), "grafana.json").

text() ->
    {ok, Text} = file:read_file(file()),
    Text.

%% Of a histogram what a panel asks for.
emitted() ->
    lists:sort([case Type of histogram -> <<Name/binary, "_bucket">>; _ -> Name end
                || {Name, Type, _, _} <- fairnif_watch_metrics:families()]).

%% Every name in an expression.
shown() ->
    {match, Names} = re:run(text(), "\\b(?:fairnif_watch|erlang_vm)_[a-z0-9_]+",
                            [global, {capture, first, binary}]),
    lists:usort(lists:append(Names)).

it_is_json_test() ->
    ?assertEqual("", os:cmd("python3 -m json.tool '" ++ file() ++ "' >/dev/null")).

every_metric_that_it_names_is_emitted_test() ->
    ?assertEqual([], shown() -- emitted()).

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
    Quantile = Has("^histogram_quantile"),
    if Quantile, Seconds -> <<"s">>;
       Rate andalso Seconds; Part -> <<"percentunit">>;
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
