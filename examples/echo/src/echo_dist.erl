%% An echo by another node on this machine, in C or in Erlang: {Pid, Ref, Bin} is answered with
%% {Ref, Bin}.
%%
%% All stays on the loopback interface, and no epmd is started: the others connect to the node that
%% calls, where it listens (`-erl_epmd_port'). No cookie is shown in a command line.
-module(echo_dist).

-export([flags/0, open_c/0, close_c/1, open_erlang/0, close_erlang/1, echo/2]).
-export([answer/0]).

-define(LIMIT_MS, 5000).
-define(START_MS, 30000).

%% @doc With these a node is started that is to open any of these.
-spec flags() -> [string()].
flags() ->
    {ok, Free} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Free),
    ok = gen_tcp:close(Free),
    flags(integer_to_list(Port)).

flags(Port) ->
    ["-start_epmd", "false", "-erl_epmd_port", Port,
     "-kernel", "inet_dist_use_interface", "{127,0,0,1}"].

%% This node listens from now on, if it did not; at that port.
listen() ->
    case init:get_argument(erl_epmd_port) of
        {ok, [[Port]]} ->
            Name = list_to_atom("echo" ++ os:getpid() ++ "@localhost"),
            is_alive() orelse
                net_kernel:start(Name, #{name_domain => shortnames, hidden => true}),
            Port;
        error ->
            error({flags_missing, flags()})
    end.

%% @doc The bytes as the other one sends them back; error `timeout' after 5 s.
-spec echo({pid() | {atom(), node()}, term()}, binary()) -> binary().
echo({Remote, _}, Bin) ->
    Ref = make_ref(),
    Remote ! {self(), Ref, Bin},
    receive {Ref, Answer} -> Answer after ?LIMIT_MS -> error(timeout) end.

%% @doc Starts the C node, which connects.
open_c() ->
    Listens = listen(),
    {ok, Port, [OsPid]} = echo:program("echo_node", [{line, 100}]),
    Name = "echo_c" ++ integer_to_list(OsPid),
    Cookie = atom_to_list(erlang:get_cookie()),
    true = port_command(Port, lists:join(" ", [Name, Cookie, Listens, "\n"])),
    receive
        {Port, {data, {eol, <<"connected">>}}} ->
            Node = list_to_atom(Name ++ "@localhost"),
            %% Waits where this node's half of the handshake is still under way: until it is done,
            %% erlang:disconnect_node/1 does nothing, and the program would never end.
            true = net_kernel:connect_node(Node),
            {ok, {{echo, Node}, Port}, [OsPid]};
        {Port, {exit_status, Status}} ->
            error({ended, Status})
    after ?START_MS ->
            echo:stop(Port),
            error(timeout)
    end.

%% @doc Disconnects, which ends the program.
close_c({{_, Node}, Port}) ->
    _ = erlang:disconnect_node(Node),
    echo:stop(Port).

%% @doc Starts an Erlang node, which connects. It ends with the calling process.
open_erlang() ->
    Listens = listen(),
    Name = io_lib:format("echo_erlang~b@localhost", [rand:uniform(1 bsl 32)]),
    {ok, Peer, _} =
        peer:start_link(#{connection => standard_io, wait_boot => ?START_MS,
                          %% The name we were started by may be an escript's.
                          exec => filename:join([code:root_dir(), "bin", "erl"]),
                          args => ["-pa", filename:dirname(code:which(?MODULE)),
                                   "-sname", lists:flatten(Name), "-hidden",
                                   "-dist_listen", "false" | flags(Listens)]}),
    true = peer:call(Peer, net_kernel, connect_node, [node()]),
    Echo = peer:call(Peer, erlang, spawn, [?MODULE, answer, []]),
    {ok, {Echo, Peer}, [list_to_integer(peer:call(Peer, os, getpid, []))]}.

%% @doc Disconnects and ends that node.
close_erlang({Echo, Peer}) ->
    _ = erlang:disconnect_node(node(Echo)),
    unlink(Peer),
    peer:stop(Peer).

answer() ->
    receive {From, Ref, Bin} -> From ! {Ref, Bin} end,
    answer().
