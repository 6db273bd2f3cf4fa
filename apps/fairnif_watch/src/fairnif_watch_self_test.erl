%% Does the watch see what it is for?
-module(fairnif_watch_self_test).
-export([run/0]).
%% @doc x
-spec run() -> {ok, map()} | {error, term()}.
run() -> {error, not_yet}.
