%% The same echo in ten ways that Erlang has to reach code, as a table: how to open a form, how to
%% send bytes there and have them back, how to close it.
%%
%% The process that opens a form is the one that uses and closes it: ports are its own.
-module(echo).
-behaviour(gen_server).

-export([forms/0, flags/0]).
-export([nif/1, dirty_cpu/1, fair_auto/1, fair_threaded/1, nif_process/0]).
-export([init/1, handle_call/3, handle_cast/2, program/2, stop/1]).

-nifs([nif/1, dirty_cpu/1, fair_auto/1, nif_fair_threaded/1, nif_process/0]).
-include_lib("fairnif/include/fairnif.hrl").
-on_load(load/0).

%% `shared': it lives in the VM, and takes it along when it crashes. `process': a program beside
%% the VM. `network': as well on another machine. What `open' returns goes to the others; with it,
%% the operating system's numbers of the processes that were started.
-type form() :: #{form := atom(), title := string(), isolation := shared | process | network,
                  published_us := number() | undefined,         % the order of magnitude
                  open := fun(() -> {ok, State :: term(), [non_neg_integer()]}),
                  echo := fun((State :: term(), binary()) -> binary()),
                  close := fun((State :: term()) -> ok)}.

-define(LIMIT_MS, 5000).

load() -> ?FAIRNIF_LOAD.

%% @doc All forms, in the order of a table. Those that are nodes need flags/0.
-spec forms() -> [form()].
forms() ->
    [#{form => Form, title => Title, isolation => Isolation, published_us => Us,
       open => Open, echo => Echo, close => Close}
     || {Form, Title, Isolation, Us, {Open, Echo, Close}} <-
            [{nif, "NIF", shared, 0.1, called(fun(_, Bin) -> nif(Bin) end)},
             {dirty_cpu, "NIF, dirty CPU scheduler", shared, undefined,
              called(fun(_, Bin) -> dirty_cpu(Bin) end)},
             {fair_auto, "fairnif, AUTO", shared, undefined,
              called(fun(_, Bin) -> fair_auto(Bin) end)},
             {fair_threaded, "fairnif, THREADED", shared, undefined,
              called(fun(_, Bin) -> fair_threaded(Bin) end)},
             {native_process, "native process", shared, undefined,
              process(fun() -> fairnif_process:start_link(fun ?MODULE:nif_process/0, [], []) end)},
             {gen_server, "gen_server", shared, undefined,
              process(fun() -> gen_server:start_link(?MODULE, [], []) end)},
             {driver_outputv, "driver, outputv", shared, 10,
              {fun() -> {ok, driver(), []} end, fun through/2, fun close_driver/1}},
             {port, "port program", process, 100,
              {fun() -> program("echo_port", [{packet, 4}]) end, fun through/2, fun stop/1}},
             {c_node, "C node", network, 100,
              {fun echo_dist:open_c/0, fun echo_dist:echo/2, fun echo_dist:close_c/1}},
             {erlang_node, "Erlang node", network, 100,
              {fun echo_dist:open_erlang/0, fun echo_dist:echo/2, fun echo_dist:close_erlang/1}}]].

%% @doc The emulator flags of a node that is to open them all.
flags() -> echo_dist:flags().

called(Echo) ->
    {fun() -> {ok, none, []} end, Echo, fun(_) -> ok end}.

%% ---- NIFs: c_src/echo.c ----

%% The binary itself; `badarg' for anything else.
nif(_Bin) -> erlang:nif_error(not_loaded).
dirty_cpu(_Bin) -> erlang:nif_error(not_loaded).
fair_auto(_Bin) -> erlang:nif_error(not_loaded).
nif_fair_threaded(_Bin) -> erlang:nif_error(not_loaded).

%% The same by a thread of fairnif's pool, while the caller waits in a receive.
fair_threaded(Bin) -> fairnif:await(nif_fair_threaded(Bin)).

%% ---- processes: a native one, and what it is compared with ----

process(Start) ->
    {fun() -> {ok, Pid} = Start(), {ok, Pid, []} end,
     fun(Pid, Bin) -> gen_server:call(Pid, Bin, infinity) end,
     fun gen_server:stop/1}.

nif_process() -> erlang:nif_error(not_loaded).

init([]) -> {ok, none}.
handle_call(Request, _From, State) -> {reply, Request, State}.
handle_cast(_, State) -> {noreply, State}.

%% ---- ports: a linked-in driver, programs ----

%% There and back through a port, for its owner only; error `timeout' after 5 s.
through(Port, Bin) ->
    true = port_command(Port, Bin),
    receive
        {Port, {data, []}} -> <<>>;     % nothing is a list, also from a binary port
        {Port, {data, Answer}} -> Answer
    after ?LIMIT_MS -> error(timeout)
    end.

driver() ->
    ok = erl_ddll:load_driver(code:priv_dir(echo), "echo_driver"),
    open_port({spawn_driver, "echo_driver"}, [binary]).

close_driver(Port) ->
    true = port_close(Port),
    _ = erl_ddll:unload_driver("echo_driver"),
    ok.

%% @doc Starts a program of this application, which ends when its port is closed: standard input
%% comes to its end then, and also when the node dies.
-spec program(string(), [term()]) -> {ok, port(), [non_neg_integer()]}.
program(Name, Options) ->
    Port = open_port({spawn_executable, filename:join(code:priv_dir(echo), Name)},
                     [exit_status, use_stdio, binary | Options]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    {ok, Port, [OsPid]}.

%% @doc Closes the port, which ends the program, and forgets what it still said.
-spec stop(port()) -> ok.
stop(Port) ->
    _ = try port_close(Port) catch error:badarg -> true end,
    (fun Forget() -> receive {Port, _} -> Forget() after 0 -> ok end end)().
