%% @doc Sees a blocked scheduler while it is blocked, and names the culprit.
%%
%% As an application: `application:ensure_all_started(fairnif_watch)'. The settings are its
%% environment; see docs/manual/watch.md. Nothing here asks a process that may be held by native
%% code. But caller and collector need a scheduler: where one is held and the others are too busy to
%% take over what waits there, an answer may be as late as that one is held; the calls give up with
%% `exit:{timeout, _}' after 5 s (subscribe, unsubscribe) or 60 s (report, metrics).
-module(fairnif_watch).

-export([start/1, stop/0, report/0, subscribe/1, unsubscribe/1, json/1, metrics/0, self_test/0]).

-export_type([finding/0, view/0]).

-type finding() :: fairnif_watch_finding:finding().
-type view() :: #{schema_version := 1, node := node(), at := integer(), started := integer(),
                  otp := binary(), version := binary(), native := boolean(), blind := [binary()],
                  schedulers := [map()], queues := map(), pools := map(), detectors := [map()],
                  findings := [finding()], top := [map()], counters := map(), memory := map()}.
%% docs/manual/watch.md says what is in each.

%% @doc Starts the watch without the application, for a node that somebody is attached to. `Config'
%% has the settings that differ from the defaults (the application's environment is not read) and
%% may have `owner', a process whose end, or whose node's, stops the watch.
%%
%% Answers the process that keeps it, which is linked to nobody. Errors: `{bad_config, _}';
%% `{already_started, pid()}' where the node is watched already: then use what is there.
-spec start(map()) -> {ok, pid()} | {error, term()}.
start(Config) ->
    fairnif_watch_keeper:start(Config).

%% @doc Stops what {@link start/1} started, and answers when it is gone: processes, the thread, the
%% signal handler, the system monitor. The application's is stopped by `application:stop/1'.
-spec stop() -> ok | {error, not_started}.
stop() ->
    fairnif_watch_keeper:stop().

%% @doc What is known of this node now. Costs some hundred microseconds; raises `exit:{noproc, _}'
%% where the watch does not run.
-spec report() -> view().
report() ->
    fairnif_watch_collector:report().

%% @doc From now on `Pid', here or on another node, is sent `{fairnif_watch, Node, {view, view()}}'
%% once a second, and `{fairnif_watch, Node, {finding, finding()}}' at once when a finding is new or
%% has changed. Ends with {@link unsubscribe/1}, or with the process or the connection. What a full
%% connection does not take is left out. Error `too_many' from the 65th on.
-spec subscribe(pid()) -> {ok, reference()} | {error, too_many}.
subscribe(Pid) when is_pid(Pid) ->
    fairnif_watch_collector:subscribe(Pid).

%% @doc Ends a subscription; one that is not there is no error.
-spec unsubscribe(reference()) -> ok.
unsubscribe(Ref) ->
    fairnif_watch_collector:unsubscribe(Ref).

%% @doc A view or a finding as JSON text, UTF-8.
-spec json(view() | finding() | term()) -> iodata().
json(Value) ->
    fairnif_watch_json:encode(Value).

%% @doc The metrics in Prometheus's text format, version 0.0.4.
-spec metrics() -> iodata().
metrics() ->
    fairnif_watch_metrics:text().

%% @doc Blocks a scheduler for 300 ms with a NIF of our own, and checks that the watch saw it, named
%% it and measured it to within 20 %. Takes up to 3 s. Other processes of that scheduler wait
%% meanwhile: not for a node whose users would notice.
-spec self_test() -> {ok, map()} | {error, term()}.
self_test() ->
    fairnif_watch_self_test:run().
