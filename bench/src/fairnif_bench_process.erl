%% Native processes beside gen_servers: the counter of examples/counter_server in C, the same in
%% Erlang, and a gen_server that has its state in a resource object and makes a plain NIF call for
%% each message.
%%
%% In a node with one scheduler: nobody has to be woken, so what is measured is what they
%% themselves take. There the neighbour of a server that is flooded is on the same one.
-module(fairnif_bench_process).
-behaviour(gen_server).

-export([flags/0, run/0, mixes/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(ROUNDS, 21).
%% Clients, and what each calls in a round; casts between two calls, and how often.
-define(CALLS, [{1, 10000}, {10, 1000}, {1000, 10}]).
-define(CASTS, {1000, 10}).

-define(SHARE_ROUNDS, 5).
-define(SHARE_MS, 150).
-define(FLOOD, 10).
-define(FLOOD_CASTS, 100).

%% The first group of idle ones, which is not counted, has what was free before.
-define(MEMORY_ROUNDS, 5).
-define(IDLE, 2000).
-define(HIBERNATE_MS, 50).

-spec flags() -> [string()].
flags() -> fairnif_bench_calls:flags().

-spec run() -> fairnif_bench_series:samples().
run() ->
    ok = code:ensure_modules_loaded([counter_server, counter_server_erl, fairnif_bench_nif]),
    lists:foldl(fun maps:merge/2, #{},
                [fairnif_bench_calls:alone(Fun)
                 || Fun <- [fun messages/0, fun shares/0, fun memory/0]]).

%% -- who is called --

start(native, Options) ->
    {ok, Pid} = counter_server:start_link(0, Options),
    Pid;
start(erlang, Options) ->
    {ok, Pid} = counter_server_erl:start_link(0, Options),
    Pid;
start(nif, Options) ->
    {ok, Pid} = gen_server:start_link(?MODULE, [], Options),
    Pid.

%% @private
-spec init([]) -> {ok, reference()}.
init([]) -> {ok, fairnif_bench_nif:counter_new()}.

%% @private
-spec handle_call({add, integer()}, gen_server:from(), reference()) ->
          {reply, integer(), reference()}.
handle_call({add, Number}, _From, Counter) ->
    {reply, fairnif_bench_nif:counter_add(Counter, Number), Counter}.

%% @private
-spec handle_cast({add, integer()}, reference()) -> {noreply, reference()}.
handle_cast({add, Number}, Counter) ->
    _ = fairnif_bench_nif:counter_add(Counter, Number),
    {noreply, Counter}.

%% -- calls and casts --

messages() ->
    Servers = [{Form, start(Form, [])} || Form <- [native, erlang, nif]],
    Me = self(),
    Clients = [spawn_link(fun() -> client(Me) end)
               || _ <- lists:seq(1, lists:max([N || {N, _} <- ?CALLS]))],
    {Casts, Times} = ?CASTS,
    fairnif_bench_series:interleave(
      ?ROUNDS,
      [fun() ->
               fairnif_bench_series:timed_loop(
                 name("~s calls ~b", [Form, Count]), Count * Calls,
                 fun(_) -> all(lists:sublist(Clients, Count), Server, Calls) end)
       end || {Count, Calls} <- ?CALLS, {Form, Server} <- Servers]
      ++ [fun() ->
                  fairnif_bench_series:timed_loop(
                    name("~s casts", [Form]), Casts * Times,
                    fun(_) ->
                            fairnif_bench_series:repeat(Times, fun() -> flood(Server, Casts) end)
                    end)
          end || {Form, Server} <- Servers]).

all(Clients, Server, Calls) ->
    _ = [C ! {go, Server, Calls} || C <- Clients],
    [receive {C, done} -> ok end || C <- Clients].

client(Parent) ->
    receive {go, Server, Calls} -> call(Server, Calls) end,
    Parent ! {self(), done},
    client(Parent).

call(_, 0) -> ok;
call(Server, N) -> _ = gen_server:call(Server, {add, 1}, infinity), call(Server, N - 1).

%% Over when the last of them was taken.
flood(Server, 0) -> gen_server:call(Server, {add, 1}, infinity);
flood(Server, Casts) -> gen_server:cast(Server, {add, 1}), flood(Server, Casts - 1).

%% -- what a neighbour on the same scheduler keeps --

-spec mixes() -> [fairnif_lab_share:mix(), ...].
mixes() ->
    fairnif_lab_share:mixes().

shares() ->
    Servers = [{Form, start(Form, [])} || Form <- [native, erlang]],
    fairnif_bench_series:interleave(
      ?SHARE_ROUNDS,
      [fun() -> share(Form, Server, Mix) end || Mix <- mixes(), {Form, Server} <- Servers]).

%% The process that is measured is one of the clients; the others are there while it is.
share(Form, Server, Mix) ->
    {ok, #{share := Share}} =
        fairnif_lab_share:measure(fun() -> flooded(Server) end,
                                  #{mix => Mix, time_ms => ?SHARE_MS, alone_ms => 100}),
    [{name("~s share ~s", [Form, Mix]), Share}].

flooded(Server) ->
    Others = [element(2, spawn_monitor(fun() -> floods(Server) end))
              || _ <- lists:seq(2, ?FLOOD)],
    floods(Server),
    [receive {'DOWN', M, process, _, normal} -> ok end || M <- Others].

floods(Server) ->
    fairnif_bench_series:repeat(10, fun() -> flood(Server, ?FLOOD_CASTS) end).

%% -- memory of those that wait --

memory() ->
    fairnif_bench_series:interleave(
      ?MEMORY_ROUNDS,
      [fun() -> [{name("~s ~s", [Form, State]), grown(Form, Options)}] end
       || {State, Options} <- [{idle, []}, {hibernated, [{hibernate_after, ?HIBERNATE_MS}]}],
          Form <- [native, erlang]]).

%% They wait on until the node ends.
grown(Form, Options) ->
    Before = resident(),
    _ = [start(Form, Options) || _ <- lists:seq(1, ?IDLE)],
    timer:sleep(4 * ?HIBERNATE_MS),
    (resident() - Before) / ?IDLE.

resident() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kb]} = re:run(Text, "VmRSS:\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Kb) * 1024.

name(Format, Args) -> iolist_to_binary(io_lib:format(Format, Args)).
