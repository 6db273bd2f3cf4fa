%% @private
%% The application: nothing needs to run, the environment is read.
-module(fairnif_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

-spec start(application:start_type(), term()) -> {ok, pid()}.
start(_Type, _Args) ->
    ok = fairnif:configure(),
    {ok, _} = supervisor:start_link({local, fairnif_sup}, ?MODULE, []).

-spec stop(term()) -> ok.
stop(_State) ->
    ok.

-spec init([]) -> {ok, {supervisor:sup_flags(), []}}.
init([]) ->
    {ok, {#{}, []}}.
