%% An echo as a gen_server in Erlang: what a native process is held against.
-module(echo_gen_server).
-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> gen_server:start_link(?MODULE, [], []).

init([]) -> {ok, none}.

handle_call(Request, _From, State) -> {reply, Request, State}.

handle_cast(_, State) -> {noreply, State}.
