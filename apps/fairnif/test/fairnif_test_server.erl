%% A gen_server that calls a fair function while its code is changed.
-module(fairnif_test_server).
-behaviour(gen_server).

-export([start/1, run/2, changes/1]).
-export([init/1, handle_call/3, handle_cast/2, code_change/3]).

%% @doc Slow: on the first scheduler, which it will hold for long.
start(Slow) ->
    Options = case Slow of true -> [{spawn_opt, [{scheduler, 1}]}]; false -> [] end,
    gen_server:start(?MODULE, [], Options).

run(Server, Fun) ->
    gen_server:call(Server, {run, Fun}, infinity).

%% @doc How many times its code was changed.
changes(Server) ->
    gen_server:call(Server, changes).

init([]) ->
    {ok, 0}.

handle_call({run, Fun}, _From, Changes) ->
    {reply, Fun(), Changes};
handle_call(changes, _From, Changes) ->
    {reply, Changes, Changes}.

handle_cast(_, Changes) ->
    {noreply, Changes}.

code_change(_Old, Changes, Extra) ->
    {ok, Changes + Extra}.
