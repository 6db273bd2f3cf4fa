%% @doc A counter that is a native process: its body is c_src/counter_server.c.
%% counter_server_erl is the same in Erlang. To those who call them they are one and the same.
-module(counter_server).

-export([start_link/1, start_link/2, add/2, value/1, wait_for/2, add_later/2, stop/1]).
-export([nif_counter/1]).

-on_load(init/0).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @doc A counter that begins at First.
-spec start_link(integer()) -> {ok, pid()} | {error, term()}.
start_link(First) ->
    start_link(First, []).

%% @doc With more of fairnif_process's options, such as a name.
-spec start_link(integer(), fairnif_process:options()) -> {ok, pid()} | {error, term()}.
start_link(First, Options) ->
    fairnif_process:start_link(fun ?MODULE:nif_counter/1, [First], [{system, true} | Options]).

%% @doc Adds; answers the new value.
-spec add(gen_server:server_ref(), integer()) -> integer().
add(Counter, Number) -> gen_server:call(Counter, {add, Number}).

-spec value(gen_server:server_ref()) -> integer().
value(Counter) -> gen_server:call(Counter, value).

%% @doc Answers once the value is Least or more.
-spec wait_for(gen_server:server_ref(), integer()) -> integer().
wait_for(Counter, Least) -> gen_server:call(Counter, {wait_for, Least}, infinity).

%% @doc Adds, and does not wait for it.
-spec add_later(gen_server:server_ref(), integer()) -> ok.
add_later(Counter, Number) -> gen_server:cast(Counter, {add, Number}).

-spec stop(gen_server:server_ref()) -> ok.
stop(Counter) -> gen_server:call(Counter, stop).

%% @private
-spec nif_counter(integer()) -> fairnif:pending().
nif_counter(_First) -> erlang:nif_error(not_loaded).
