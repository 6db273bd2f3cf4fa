%% docs/manual/watch.md against the tables that it describes.
-module(fairnif_watch_manual_tests).

-include_lib("eunit/include/eunit.hrl").

-export([tables/0]).

manual() ->
    {ok, Text} = file:read_file(filename:join([fairnif_watch_here:root(), "docs", "manual",
                                               "watch.md"])),
    string:split(Text, "\n", all).

text(Format, Args) -> unicode:characters_to_binary(io_lib:format(Format, Args)).

allowed({integer, Min, Max}) -> text("~b to ~b", [Min, Max]);
allowed(boolean) -> <<"true, false">>;
allowed(http) -> <<"`off`, `{Address, Port}`">>;
allowed(token) -> <<"`none`, a binary of 16 to 256 letters, digits or `._~-`">>;
allowed(path) -> <<"`default`, `false`, a path">>.

settings() ->
    [text("| ~s | ~p | ~ts | ~ts |", [Key, Default, allowed(Bound), Help])
     || {Key, Default, Bound, Help} <- fairnif_watch_config:table()].

value({config, Key}) -> text("setting `~s`", [Key]);
value(Number) -> text("~p", [Number]).

thresholds() ->
    [{Module:name(),
      [text("| ~s | ~ts | ~s | ~ts |", [Name, value(Value), Unit, Reason])
       || #{name := Name, value := Value, unit := Unit, reason := Reason} <- Module:thresholds()]}
     || Module <- fairnif_watch_detector:all()].

detectors() ->
    [text("| ~s | ~ts | ~ts |", [Module:name(), Module:describe(), Module:remedy()])
     || Module <- fairnif_watch_detector:all()].

counters() ->
    [text("| ~s | ~ts | ~s | ~ts |", [Name, fairnif_watch_counters:metric(Row), Unit, Help])
     || {Name, _, Unit, _, Help} = Row <- fairnif_watch_counters:list()].

metrics() ->
    Counted = [fairnif_watch_counters:metric(Row) || Row <- fairnif_watch_counters:list()],
    [text("| ~ts | ~s | ~ts |", [Name, Type, Help])
     || {Name, Type, Help, _} <- fairnif_watch_metrics:families(),
        not lists:member(Name, Counted)].

%% @doc The tables as they belong into the manual, for whoever changes one.
tables() ->
    io:format("~ts~n", [lists:join("\n", settings() ++ [""] ++ detectors() ++
                                       lists:append([["", atom_to_binary(Name) | Rows]
                                                     || {Name, Rows} <- thresholds()])
                                       ++ ["" | counters()] ++ ["" | metrics()])]).

missing(Rows) -> Rows -- manual().

every_setting_stands_in_the_manual_test() -> ?assertEqual([], missing(settings())).
every_detector_stands_in_the_manual_test() -> ?assertEqual([], missing(detectors())).
every_counter_stands_in_the_manual_test() -> ?assertEqual([], missing(counters())).
every_metric_stands_in_the_manual_test() -> ?assertEqual([], missing(metrics())).

every_threshold_stands_in_the_manual_with_its_reason_test() ->
    ?assertEqual([], missing(lists:append([Rows || {_, Rows} <- thresholds()]))).

%% A row that describes what is not there any more is as bad. The tables that are not tested have
%% their first column in backquotes.
the_manual_has_no_row_more_test() ->
    Known = settings() ++ detectors() ++ counters() ++ metrics()
        ++ lists:append([Rows || {_, Rows} <- thresholds()]),
    {_, [_ | Tested]} = lists:splitwith(fun(Line) -> Line =/= <<"<!-- tested -->">> end, manual()),
    Heads = [<<"| setting |">>, <<"| detector |">>, <<"| counter |">>, <<"| metric |">>,
             <<"| threshold |">>, <<"| key |">>, <<"| kind |">>, <<"| `">>],
    Rows = [Line || <<"| ", _/binary>> = Line <- Tested,
                    not lists:any(fun(Head) -> string:prefix(Line, Head) =/= nomatch end, Heads)],
    ?assertEqual([], Rows -- Known).

all_that_the_watchdog_counts_stands_in_the_list_test_() ->
    {timeout, 30,
     fun() ->
             fairnif_watch_here:with_watch(
               #{},
               fun() ->
                       Known = [Name || {Name, _, _, native, _} <- fairnif_watch_counters:list()],
                       Counted = maps:keys(fairnif_watch_watchdog:counters()),
                       ?assertEqual([], Counted -- Known)
               end)
     end}.
