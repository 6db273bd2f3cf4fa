%% The metrics in Prometheus's text format.
-module(fairnif_watch_metrics).
-export([text/0]).
%% @doc x
-spec text() -> iodata().
text() -> [].
