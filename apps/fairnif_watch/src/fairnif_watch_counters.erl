%% The watch's own counters: one list gives their storage, their export and the manual's table.
-module(fairnif_watch_counters).

-export([list/0, new/0, add/3, read/1]).

-export_type([counters/0, row/0]).

-opaque counters() :: counters:counters_ref().
-type row() :: {Name :: atom(), counter | gauge, Unit :: atom(), own | native, Help :: string()}.
%% `own': counted by the Erlang side, stored here; `native': read from the watchdog. Units:
%% `ns' is exported as seconds.

%% @doc Every counter, in the manual's order.
-spec list() -> [row()].
list() ->
    [{events, counter, events, own, "reports of the watchdog looked at"},
     {events_dropped, counter, events, own, "reports of the watchdog that came too fast"},
     {findings, counter, findings, own, "findings made"},
     {findings_changed, counter, findings, own, "times that a finding was told again"},
     {out_dropped, counter, findings, own,
      "findings neither logged nor emitted: the process that does so was behind"},
     {logs_held, counter, findings, own, "findings not logged because of log_per_minute"},
     {telemetry_events, counter, events, own, "telemetry events emitted"},
     {asks, counter, processes, own, "culprit processes asked what they are"},
     {asks_failed, counter, processes, own, "of these, those that did not answer in time"},
     {dirty_asked, counter, processes, own, "processes asked whether they run on a dirty scheduler"},
     {dirty_probes, counter, jobs, own, "probes sent to a full dirty pool"},
     {views, counter, views, own, "looks at the node, one a second"}].

%% @doc New counters, all 0.
-spec new() -> counters().
new() ->
    counters:new(length(own()), []).

%% @doc Adds to one of the own counters. Any process may.
-spec add(counters(), atom(), integer()) -> ok.
add(Ref, Name, Value) ->
    counters:add(Ref, index(Name, own(), 1), Value).

%% @doc The own counters, as a map.
-spec read(counters()) -> #{atom() => non_neg_integer()}.
read(Ref) ->
    Names = own(),
    maps:from_list([{Name, counters:get(Ref, index(Name, Names, 1))} || Name <- Names]).

own() ->
    [Name || {Name, _, _, own, _} <- list()].

index(Name, [Name | _], N) -> N;
index(Name, [_ | Names], N) -> index(Name, Names, N + 1).
