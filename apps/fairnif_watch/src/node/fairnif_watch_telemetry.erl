%% Findings as telemetry events, where the application telemetry runs on this node. It is no
%% dependency: it is looked for at each event.
%%
%% `[fairnif_watch, finding]', measurements `duration_ms' (0.0 while that is not known) and `count'
%% (1), metadata `finding' and `change' (`new', `worse', `changed', `ended'). Handlers run in the
%% calling process: never call this in the collector.
-module(fairnif_watch_telemetry).

-export([finding/2]).

%% @doc Emits the event of a finding; `false' where there is no telemetry.
-spec finding(atom(), fairnif_watch_finding:finding()) -> boolean().
finding(What, #{duration_ms := Duration} = Finding) ->
    Measured = case Duration of none -> 0.0; Ms -> Ms end,
    execute([fairnif_watch, finding], #{count => 1, duration_ms => Measured},
            #{change => What, finding => Finding}).

%% telemetry's table of handlers is there while the application runs.
execute(Event, Measurements, Metadata) ->
    Module = telemetry,
    case erlang:function_exported(Module, execute, 3)
        andalso ets:whereis(telemetry_handler_table) =/= undefined of
        true ->
            try Module:execute(Event, Measurements, Metadata) of
                _ -> true
            catch _:_ -> false
            end;
        false ->
            false
    end.
