%% docs/reference/watch.md against the tables that it describes.
-module(fairnif_watch_manual_tests).

-include_lib("eunit/include/eunit.hrl").

-export([tables/0]).

manual() ->
    {ok, Text} = file:read_file(filename:join([fairnif_check_schema:root(), "docs", "reference",
                                               "watch.md"])),
    string:split(Text, "\n", all).

text(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)).

allowed({integer, Min, Max}) -> text("~b to ~b", [Min, Max]);
allowed(Kind) when Kind =:= boolean; Kind =:= native -> <<"true, false">>;
allowed(path) -> <<"`default`, `false`, a path">>.

settings() ->
    [text("| ~s | ~p | ~ts | ~ts |", [Key, Default, allowed(Bound), Help])
     || {Key, Default, Bound, Help} <- fairnif_watch_config:table()].

value({config, Key}) -> text("setting `~s`", [Key]);
value(Number) -> text("~p", [Number]).

thresholds() ->
    [{Detector,
      [text("| ~s | ~ts | ~s | ~ts |", [Name, value(Value), Unit, Reason])
       || {Name, Value, Unit, Reason} <- Thresholds]}
     || #{name := Detector, thresholds := Thresholds} <- fairnif_watch_detector:all()].

detectors() ->
    [text("| ~s | ~ts | ~ts |", [Name, LooksFor, Remedy])
     || #{name := Name, looks_for := LooksFor, remedy := Remedy} <- fairnif_watch_detector:all()].

%% @doc The tables as they belong into the manual, for an author who changes one.
tables() ->
    io:format("~ts~n", [lists:join("\n", settings() ++ [""] ++ detectors() ++
                                       lists:append([["", atom_to_binary(Name) | Rows]
                                                     || {Name, Rows} <- thresholds()]))]).

missing(Rows) -> Rows -- manual().

every_setting_stands_in_the_manual_test() -> ?assertEqual([], missing(settings())).
every_detector_stands_in_the_manual_test() -> ?assertEqual([], missing(detectors())).

%% What a metric means stands beside it, as # HELP.
every_metric_that_the_manual_names_is_one_test() ->
    Names = [fairnif_watch_counters:metric(Row) || Row <- fairnif_watch_counters:list()]
        ++ [Name || {Name, _, _, _} <- fairnif_watch_metrics:families()],
    {match, Named} = re:run(lists:join("\n", manual()),
                            "`(fairnif_watch_\\w+_(?:total|seconds|ratio|verdict))`",
                            [global, {capture, all_but_first, binary}]),
    ?assertEqual([], [Name || [Name] <- Named] -- [iolist_to_binary(Name) || Name <- Names]).

every_threshold_stands_in_the_manual_with_its_reason_test() ->
    %% Detectors with the same thresholds share a table.
    ?assertEqual([], missing(lists:append(lists:usort([Rows || {_, Rows} <- thresholds()])))).

%% A row that describes what is not there any more is as bad. The tables that are not tested have
%% their first column in backquotes.
the_manual_has_no_row_more_test() ->
    Known = settings() ++ detectors()
        ++ lists:append([Rows || {_, Rows} <- thresholds()]),
    {_, [_ | Tested]} = lists:splitwith(fun(Line) -> Line =/= <<"<!-- tested -->">> end, manual()),
    Heads = [<<"| setting |">>, <<"| detector |">>, <<"| threshold |">>, <<"| key |">>,
             <<"| kind |">>, <<"| `">>],
    Rows = [Line || <<"| ", _/binary>> = Line <- Tested,
                    not lists:any(fun(Head) -> string:prefix(Line, Head) =/= nomatch end, Heads)],
    ?assertEqual([], Rows -- Known).

all_that_the_watchdog_counts_stands_in_the_list_test_() ->
    {timeout, 30,
     fun() ->
             fairnif_watch_test:with_watch(
               #{},
               fun() ->
                       Known = [Name || {Name, _, _, native, _} <- fairnif_watch_counters:list()],
                       Counted = maps:keys(fairnif_watch_watchdog:counters()),
                       ?assertEqual([], Counted -- Known)
               end)
     end}.
