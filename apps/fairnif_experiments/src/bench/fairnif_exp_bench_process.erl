%% Native processes beside gen_servers: the counter of examples/counter_server in C and in Erlang.
%%
%% In a node with one scheduler: no process has to be woken, so what is measured is what they
%% themselves take.  There the neighbour of a server that is flooded is on the same one.
-module(fairnif_exp_bench_process).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [alone/1, interleave/2, merged/1, name/2, repeat/2, timed/3]).

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

-define(TITLES, [{native, "native process"}, {erlang, "gen_server"}]).

%% @doc The run.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [#{id => process, flags => one, about => "native processes beside gen_servers",
       needs => [{counter_server, "counter_server"}],
       samples => fun() ->
                          ok = code:ensure_modules_loaded([example(native), example(erlang)]),
                          merged([alone(F) || F <- [fun messages/0, fun shares/0, fun memory/0]])
                  end,
       rows => lists:append([call_rows(Load, What) || {Load, What} <- loads()])
           ++ lists:append([share_rows(Mix) || Mix <- fairnif_check_share:mixes()])
           ++ memory_rows()}].

loads() ->
    [{name("calls ~b", [N]), name("calls of ~b at once", [N])} || {N, _} <- ?CALLS]
        ++ [{<<"casts">>, <<"casts">>}].

%% Beside a gen_server in Erlang it has an aim with one client, which waits for each answer.
call_rows(Load, What) ->
    How = "examples/counter_server in C and in Erlang; mean of many in a round, which end with an "
          "answer; CPU time of the only scheduler's thread, so with what the clients take",
    Id = string:replace(Load, " ", "-"),
    [#{id => name("process-~s-erlang", [Id]), what => ["native process, ", What],
       peer => "the same gen_server", unit => times, clock => cpu, how => How,
       value => {ratio, name("native ~s", [Load]), name("erlang ~s", [Load])},
       bound => case Load of <<"calls 1">> -> {at_most, 1.5}; _ -> none end}
     | [#{id => name("process-~s-~s-ns", [Id, Form]), what => [Text, ", ", What], unit => ns,
          value => {value, name("~s ~s cpu", [Form, Load])}, how => How}
        || {Form, Text} <- ?TITLES]].

share_rows(Mix) ->
    How = "rounds of work beside 10 clients that send 100 casts and a call again and again, one "
          "scheduler for all",
    What = name("share of a busy neighbour (~s), ", [Mix]),
    [#{id => name("process-share-~s", [Mix]), what => [What, "native process"],
       peer => "the same gen_server", unit => times, how => How,
       value => {ratio, name("native share ~s", [Mix]), name("erlang share ~s", [Mix])}}
     | [#{id => name("process-share-~s-~s", [Mix, Form]), what => [What, Text],
          peer => "the neighbour alone", unit => percent, how => How,
          value => {value, name("~s share ~s", [Form, Mix])}}
        || {Form, Text} <- ?TITLES]].

memory_rows() ->
    [#{id => name("process-memory-~s-~s", [State, Form]),
       what => name("memory of one ~s ~s", [State, Text]), unit => bytes,
       value => {value, name("~s ~s", [Form, State])},
       how => "what is resident of the node, by how much it grows with 2,000 of them; without page "
              "tables"}
     || State <- [idle, hibernated], {Form, Text} <- ?TITLES].

%% ---- who is called ----

start(Form, Options) ->
    Example = example(Form),
    {ok, Pid} = Example:start_link(0, Options),
    Pid.

-spec example(native | erlang) -> module().
example(native) -> counter_server;
example(erlang) -> counter_server_erl.

%% ---- calls and casts ----

messages() ->
    Servers = [{Form, start(Form, [])} || Form <- [native, erlang]],
    Me = self(),
    Clients = [spawn_link(fun() -> client(Me) end)
               || _ <- lists:seq(1, lists:max([N || {N, _} <- ?CALLS]))],
    {Casts, Times} = ?CASTS,
    interleave(?ROUNDS,
               [timed(name("~s calls ~b", [Form, Count]), Count * Calls,
                      fun(_) -> all(lists:sublist(Clients, Count), Server, Calls) end)
                || {Count, Calls} <- ?CALLS, {Form, Server} <- Servers]
               ++ [timed(name("~s casts", [Form]), Casts * Times,
                         fun(_) -> repeat(Times, fun() -> flood(Server, Casts) end) end)
                   || {Form, Server} <- Servers]).

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

%% ---- what a neighbour on the same scheduler keeps ----

shares() ->
    Servers = [{Form, start(Form, [])} || Form <- [native, erlang]],
    interleave(?SHARE_ROUNDS, [fun() -> share(Form, Server, Mix) end
                               || Mix <- fairnif_check_share:mixes(), {Form, Server} <- Servers]).

%% The process that is measured is one of the clients; the others are there while it is.
share(Form, Server, Mix) ->
    {ok, #{share := Share}} =
        fairnif_check_share:measure(fun() -> flooded(Server) end,
                                  #{mix => Mix, time_ms => ?SHARE_MS, alone_ms => 100}),
    [{name("~s share ~s", [Form, Mix]), Share}].

flooded(Server) ->
    Others = [element(2, spawn_monitor(fun() -> floods(Server) end))
              || _ <- lists:seq(2, ?FLOOD)],
    floods(Server),
    [receive {'DOWN', M, process, _, normal} -> ok end || M <- Others].

floods(Server) ->
    repeat(10, fun() -> flood(Server, ?FLOOD_CASTS) end).

%% ---- memory of those that wait ----

memory() ->
    interleave(?MEMORY_ROUNDS,
               [fun() -> [{name("~s ~s", [Form, State]), grown(Form, Options)}] end
                || {State, Options} <- [{idle, []},
                                        {hibernated, [{hibernate_after, ?HIBERNATE_MS}]}],
                   Form <- [native, erlang]]).

%% They wait on until this process ends.
grown(Form, Options) ->
    Before = resident(),
    _ = [start(Form, Options) || _ <- lists:seq(1, ?IDLE)],
    timer:sleep(4 * ?HIBERNATE_MS),
    (resident() - Before) / ?IDLE.

resident() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kb]} = re:run(Text, "VmRSS:\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Kb) * 1024.
