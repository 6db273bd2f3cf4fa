%% Programs beside the VM, each started as a port and ended by its being closed: standard input
%% comes to its end then, and also when the node dies.
-module(echo_program).

-export([path/1, start/3, line/1, os_pid/1, stop/1]).
-export([open_port_program/0, port/2]).
-export([open_tcp/0, tcp/2, open_udp/0, udp/2, close_socket/1]).

-export_type([socket/0]).

-type socket() :: {gen_tcp:socket() | gen_udp:socket(), inet:port_number(), port()}.

-define(LIMIT_MS, 5000).
%% A JVM on a busy machine takes its time.
-define(START_MS, 30000).
%% A datagram over IPv4 carries 65,507 bytes at most; larger echoes go in several.
-define(DATAGRAM, 32768).
-define(BUFFER, 1048576).

%% @doc The path of a program of this application.
-spec path(string()) -> file:filename().
path(Name) ->
    filename:join(code:priv_dir(echo), Name).

%% @doc Starts a program; error `enoent' when there is none. The port belongs to the caller.
-spec start(file:filename(), [string()], [term()]) -> port().
start(Path, Args, Options) ->
    open_port({spawn_executable, Path}, [{args, Args}, exit_status, use_stdio, binary | Options]).

%% @doc The line that a program says when it is ready; it was started with `{line, _}'. Errors:
%% `{ended, Status}' when it ended instead; `timeout' after 30 s.
-spec line(port()) -> binary().
line(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> Line;
        {Port, {exit_status, Status}} -> error({ended, Status})
    after ?START_MS ->
            error(timeout)
    end.

%% @doc The operating system's number of a program.
-spec os_pid(port()) -> non_neg_integer().
os_pid(Port) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Pid.

%% @doc Closes the port, which ends the program, and forgets what it still said.
-spec stop(port()) -> ok.
stop(Port) ->
    _ = try port_close(Port) catch error:badarg -> true end,
    forget(Port).

forget(Port) ->
    receive {Port, _} -> forget(Port) after 0 -> ok end.

%% ---- a port program ----

%% @doc Starts echo_port.
-spec open_port_program() -> port().
open_port_program() ->
    start(path("echo_port"), [], [{packet, 4}]).

%% @doc The bytes as the port program sends them back. Errors: `{ended, Status}', `timeout' after
%% 5 s.
-spec port(port(), binary()) -> binary().
port(Port, Bin) ->
    true = port_command(Port, Bin),
    receive
        {Port, {data, Answer}} -> Answer;
        {Port, {exit_status, Status}} -> error({ended, Status})
    after ?LIMIT_MS ->
            error(timeout)
    end.

%% ---- servers on the loopback interface ----

%% @doc Starts `echo_server tcp' and connects to it.
-spec open_tcp() -> socket().
open_tcp() ->
    {Port, Number} = server("tcp"),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number,
                                   [binary, {packet, 4}, {active, false}, {nodelay, true},
                                    {sndbuf, ?BUFFER}, {recbuf, ?BUFFER}], ?LIMIT_MS),
    {Socket, Number, Port}.

%% @doc The bytes as the server sends them back, as one frame; the socket is passive.
-spec tcp(socket(), binary()) -> binary().
tcp({Socket, _, _}, Bin) ->
    ok = gen_tcp:send(Socket, Bin),
    {ok, Answer} = gen_tcp:recv(Socket, 0, ?LIMIT_MS),
    Answer.

%% @doc Starts `echo_server udp' and opens a socket for it.
-spec open_udp() -> socket().
open_udp() ->
    {Port, Number} = server("udp"),
    {ok, Socket} = gen_udp:open(0, [binary, {active, false}, {ip, {127, 0, 0, 1}},
                                    {sndbuf, ?BUFFER}, {recbuf, ?BUFFER},
                                    {buffer, 2 * ?DATAGRAM}]),
    {Socket, Number, Port}.

%% @doc The same in datagrams of up to 32 KiB, at least one, two of them under way at once: the
%% system drops what exceeds its buffers. One that is lost is not sent again: an error after 5 s.
-spec udp(socket(), binary()) -> binary().
udp({Socket, Number, _}, Bin) when byte_size(Bin) =< ?DATAGRAM ->
    sent(Socket, Number, Bin),
    received(Socket, Number);
udp({Socket, Number, _}, Bin) ->
    iolist_to_binary(in_pairs(Socket, Number, Bin)).

in_pairs(Socket, Number, <<A:?DATAGRAM/binary, B:?DATAGRAM/binary, Rest/binary>>) ->
    Pair = pair(Socket, Number, A, B),
    [Pair | in_pairs(Socket, Number, Rest)];
in_pairs(Socket, Number, <<A:?DATAGRAM/binary, B/binary>>) ->
    pair(Socket, Number, A, B);
in_pairs(_, _, <<>>) ->
    [];
in_pairs(Socket, Number, Last) ->
    sent(Socket, Number, Last),
    [received(Socket, Number)].

pair(Socket, Number, A, B) ->
    sent(Socket, Number, A),
    sent(Socket, Number, B),
    First = received(Socket, Number),
    [First, received(Socket, Number)].

sent(Socket, Number, Datagram) ->
    ok = gen_udp:send(Socket, {127, 0, 0, 1}, Number, Datagram).

%% Nobody else's datagrams.
received(Socket, Number) ->
    case gen_udp:recv(Socket, 0, ?LIMIT_MS) of
        {ok, {{127, 0, 0, 1}, Number, Data}} -> Data;
        {ok, _} -> received(Socket, Number);
        {error, Reason} -> error(Reason)
    end.

%% @doc Closes the socket, and ends the server.
-spec close_socket(socket()) -> ok.
close_socket({Socket, _, Port}) ->
    ok = inet:close(Socket),
    stop(Port).

server(Kind) ->
    Port = start(path("echo_server"), [Kind], [{line, 100}]),
    {Port, binary_to_integer(line(Port))}.
