%% @doc A counter that is a native process: its body is c_src/counter_server.c.
%% counter_server_erl is the same in Erlang. Their callers see no difference.
-module(counter_server).

-export([start_link/1, start_link/2, add/2, value/1, wait_for/2, add_later/2, stop/1,
         nif_counter/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() -> ?FAIRNIF_LOAD.

%% @doc A counter that begins at First; with fairnif_process's options, such as a name.
start_link(First) -> start_link(First, []).
start_link(First, Options) ->
    fairnif_process:start_link(fun ?MODULE:nif_counter/1, [{First, []}],
                               [{system, true} | Options]).

%% @doc Adds; answers the new value.
add(Counter, Number) -> gen_server:call(Counter, {add, Number}).
value(Counter) -> gen_server:call(Counter, value).

%% @doc Answers once the value is Least or more.
wait_for(Counter, Least) -> gen_server:call(Counter, {wait_for, Least}, infinity).

%% @doc Adds, and does not wait for it.
add_later(Counter, Number) -> gen_server:cast(Counter, {add, Number}).
stop(Counter) -> gen_server:call(Counter, stop).

nif_counter(_State) -> erlang:nif_error(not_loaded).
