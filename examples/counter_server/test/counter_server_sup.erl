-module(counter_server_sup).
-behaviour(supervisor).

-export([init/1]).

init(Module) ->
    {ok, {#{}, [#{id => counter, start => {Module, start_link, [7]}, shutdown => 1000}]}}.
