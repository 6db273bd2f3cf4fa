%% The watch's own counters: one list gives their storage, their export and the manual's table.
-module(fairnif_watch_counters).

-export([list/0, metric/1, new/0, add/3, read/1]).

-export_type([counters/0, row/0]).

-opaque counters() :: counters:counters_ref().
-type row() :: {Name :: atom(), counter | gauge, Unit :: atom(), own | view | native,
                Help :: string()}.
%% `own': counted by the Erlang side, stored here; `view': known when a view is made; `native': read
%% from the watchdog. The unit `ns' is exported as seconds, `thousandths' as a ratio.

%% @doc Every counter, in the manual's order.
-spec list() -> [row()].
list() ->
    [{reports, counter, reports, own, "reports of the watchdog looked at"},
     {reports_dropped, counter, reports, own, "reports of the watchdog that came too fast"},
     {findings, counter, findings, own, "findings made"},
     {findings_changed, counter, findings, own, "times that a finding was reported again"},
     {out_dropped, counter, findings, own,
      "findings neither logged nor emitted: the process that does so was behind"},
     {logs_suppressed, counter, findings, own, "findings not logged because of log_per_minute"},
     {telemetry_events, counter, events, own, "telemetry events emitted"},
     {asks, counter, processes, own, "culprit processes asked what they are"},
     {asks_failed, counter, processes, own, "of these, those that did not reply in time"},
     {dirty_asked, counter, processes, own,
      "processes asked whether they run on a dirty scheduler"},
     {dirty_probes, counter, jobs, own, "probes sent to a full dirty pool"},
     {views, counter, views, own, "looks at the node, one a second"},
     {subscribers, gauge, processes, view, "processes that get views and findings"},
     {ticks, counter, ticks, native, "times the watch thread looked at the schedulers' clocks"},
     {period_ns, gauge, ns, native, "time between two such looks now"},
     {probes, counter, messages, native, "times a suspect scheduler's responder was probed"},
     {replies, counter, messages, native, "times a responder replied"},
     {classified, counter, threads, native,
      "sleeping threads looked at once: idle, or in native code"},
     {dismissed, counter, threads, native, "suspect threads that turned out not to be blocked"},
     {blocked, counter, blocks, native, "times a normal scheduler was blocked for warn_ms or more"},
     {unblocked, counter, blocks, native, "of these, those that have ended"},
     {no_cpu_time, counter, blocks, native, "times that the system gave it no processor"},
     {samples, counter, stacks, native, "stacks taken for the table of native functions"},
     {signals, counter, signals, native, "signals sent to running scheduler threads"},
     {failed_stacks, counter, stacks, native, "stacks that could not be taken"},
     {looks, counter, stacks, native, "stacks asked for"},
     {late, counter, gaps, native,
      "times the watch thread itself was late; nothing is concluded then"},
     {longest_gap_ns, gauge, ns, native, "the longest of these"},
     {events, counter, reports, native, "reports that the watch thread has sent"},
     {suppressed, counter, reports, native, "reports not sent because there were too many"},
     {activations, counter, schedulers, native,
      "times an idle scheduler was woken to take over the queue of a blocked one"},
     {emergencies, counter, lines, native,
      "lines on standard error: all normal schedulers blocked"},
     {others, gauge, thousandths, native,
      "of the time of all the machine's processors: what other programs used of late"},
     {port_programs, gauge, thousandths, native,
      "of that time, the programs that this node started; known while a scheduler waits long"},
     {own_native, gauge, thousandths, native,
      "of that time, this node's threads other than normal schedulers: dirty ones, pools"},
     {quota, gauge, thousandths, native,
      "processors that the control group's quota allows; 0: there is none"},
     {quota_periods, counter, periods, native, "periods of the quota"},
     {quota_throttled, counter, periods, native, "of these, those in which it stopped the group"},
     {quota_throttled_ns, counter, ns, native, "for how long, on all processors together"},
     {stolen_ns, counter, ns, native, "time of all processors that the hypervisor gave to others"},
     {watch_cpu_ns, counter, ns, native, "CPU time of the watch thread"}].

%% @doc The metric's name: base units, `_total' where it counts.
-spec metric(row()) -> binary().
metric({Name, Type, Unit, _, _}) ->
    Base = case Unit of
               ns -> [string:replace(atom_to_list(Name), "_ns", "", trailing), "_seconds"];
               thousandths -> [atom_to_list(Name), "_ratio"];
               _ -> atom_to_list(Name)
           end,
    iolist_to_binary(["fairnif_watch_", Base, ["_total" || Type =:= counter]]).

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
