%% @doc Sees a blocked scheduler while it is blocked, and names the culprit.
%%
%% Start it with `application:ensure_all_started(fairnif_watch)'. Its settings are the application's
%% environment: docs/reference/watch.md. No function here asks a process that native code may block.
%% But the caller and the collector need a scheduler. If one is blocked and the others are too busy
%% to take over its processes, an answer is as late as that block is long. The calls give up with
%% `exit:{timeout, _}' after 5 s (subscribe, unsubscribe) or 60 s (view, metrics).
-module(fairnif_watch).

-export([start/1, stop/0, view/0, subscribe/1, unsubscribe/1, json/1, metrics/0, self_test/0]).

-export_type([finding/0, view/0]).

-type finding() :: fairnif_watch_finding:finding().
-type view() :: #{schema_version := 1, node := node(), at := integer(), started := integer(),
                  otp := binary(), version := binary(), native := boolean(), blind := [binary()],
                  crowded := binary() | none,
                  schedulers := [map()], queues := map(), pools := map(), detectors := [map()],
                  findings := [finding()], top := [map()], counters := map(), memory := map()}.
%% docs/reference/watch.md says what is in each.

%% @doc Starts the watch without the application, on a node to which a watcher has attached.
%% `Config' has the settings that differ from the defaults; the application's environment is not
%% read. It may also have `owner': the watch stops when that process or its node ends.
%%
%% Returns the process that keeps the watch running, which is not linked to the caller. Errors:
%% `{bad_config, _}'; `{already_started, pid()}' if the node is watched already: use that watch.
-spec start(map()) -> {ok, pid()} | {error, term()}.
start(Config) ->
    fairnif_watch_starter:start(Config).

%% @doc Stops what {@link start/1} started, and returns when its processes, its thread, its signal
%% handler and its system monitor are gone. `application:stop/1' stops the application's watch.
-spec stop() -> ok | {error, not_started}.
stop() ->
    fairnif_watch_starter:stop().

%% @doc Returns what is known about this node now. Takes some hundred microseconds. Raises
%% `exit:{noproc, _}' if the watch does not run.
-spec view() -> view().
view() ->
    fairnif_watch_collector:view().

%% @doc Subscribes `Pid', on this node or another one. It receives `{fairnif_watch, Node, {view,
%% view()}}' once a second, and `{fairnif_watch, Node, {finding, finding()}}' as soon as a finding
%% is new or has changed. The subscription ends with {@link unsubscribe/1}, the process or the
%% connection. Messages that a full connection does not accept are dropped. Error `too_many' beyond
%% 64 subscribers.
-spec subscribe(pid()) -> {ok, reference()} | {error, too_many}.
subscribe(Pid) when is_pid(Pid) ->
    fairnif_watch_collector:subscribe(Pid).

%% @doc Ends a subscription. It is not an error if there is none.
-spec unsubscribe(reference()) -> ok.
unsubscribe(Ref) ->
    fairnif_watch_collector:unsubscribe(Ref).

%% @doc Returns a view or a finding as JSON text in UTF-8.
-spec json(view() | finding() | term()) -> iodata().
json(Value) ->
    fairnif_watch_json:encode(Value).

%% @doc Returns the metrics in Prometheus's text format, version 0.0.4.
-spec metrics() -> iodata().
metrics() ->
    fairnif_watch_metrics:text().

%% @doc Blocks a scheduler for 300 ms with a NIF of this application, and checks that the watch saw
%% the block, named it and measured it to within 20 %. Takes up to 3 s. Other processes on that
%% scheduler wait meanwhile, so do not run it on a node whose users would notice.
-spec self_test() -> {ok, map()} | {error, term()}.
self_test() ->
    fairnif_watch_self_test:run().
