%% The application: the watch of this node.
-module(fairnif_watch_app).

-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case fairnif_watch_config:read() of
        {ok, Config} -> fairnif_watch_sup:start_link(Config);
        {error, _} = Error -> Error
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.
