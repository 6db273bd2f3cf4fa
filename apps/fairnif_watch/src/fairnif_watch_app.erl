%% The application: the watch of this node. One that was brought from outside is replaced by it, and
%% its watchers find this one in its place.
-module(fairnif_watch_app).

-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    %% First of all: what was brought may be of another version.
    ok = alone(),
    case fairnif_watch_config:read() of
        {ok, Config} -> fairnif_watch_sup:start_link(Config);
        {error, _} = Error -> Error
    end.

%% No function of the session's is called: what runs its code when that is purged is killed.
alone() ->
    Session = monitor(process, fairnif_watch_session),
    _ = try fairnif_watch_session ! hand_over catch error:badarg -> none end,
    receive {'DOWN', Session, process, _, _} -> ok end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.
