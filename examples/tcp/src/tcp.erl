%% @doc TCP sockets as straight-line C on fairnif: what waits is suspended in the middle of a C
%% function, and holds neither a scheduler nor a thread.
%%
%% IPv4, passive mode and binaries only. Errors are named as those of `gen_tcp': `closed',
%% `timeout', `econnrefused' and so on. A socket belongs to the process that made it and is closed
%% when that dies. One process at a time may wait to receive from a socket (or to accept), and one
%% to send: a second gets `{error, ebusy}'.
-module(tcp).

-export([connect/2, connect/3, listen/2, accept/1, accept/2, send/2, send/3, recv/2, recv/3,
         close/1, port/1]).

-nifs([nif_connect/3, nif_listen/2, nif_accept/2, nif_send/3, nif_recv/3, close/1, port/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).
-export_type([socket/0]).
-opaque socket() :: reference().
-type error() :: {error, closed | timeout | inet:posix() | atom()}.
-type address() :: inet:ip4_address() | inet:hostname().

-define(CHUNK, 16#40000).               % what recv takes at once, at most

init() -> ?FAIRNIF_LOAD.

%% @doc A connection to a port. A host's name is looked up first, which is not within the time.
-spec connect(address(), inet:port_number(), timeout()) -> {ok, socket()} | error().
connect(Address, Port) -> connect(Address, Port, infinity).
connect(Address, Port, Timeout) ->
    with_ip(Address, fun(Ip) -> fairnif:await(nif_connect(Ip, Port, ms(Timeout))) end).

%% @doc Listens; port 0 for any that is free ({@link port/1} says which).
-spec listen(address(), inet:port_number()) -> {ok, socket()} | error().
listen(Address, Port) ->
    with_ip(Address, fun(Ip) -> nif_listen(Ip, Port) end).

%% @doc The next connection. The caller owns it.
-spec accept(socket(), timeout()) -> {ok, socket()} | error().
accept(Listening) -> accept(Listening, infinity).
accept(Listening, Timeout) -> fairnif:await(nif_accept(Listening, ms(Timeout))).

%% @doc Sends all of it; a binary is not copied. After an error some of it may have been sent.
-spec send(socket(), iodata(), timeout()) -> ok | error().
send(Socket, Data) -> send(Socket, Data, infinity).
send(Socket, Data, Timeout) ->
    fairnif:await(nif_send(Socket, iolist_to_binary(Data), ms(Timeout))).

%% @doc Exactly `Size' bytes; with 0 what has come, at least one byte and at most 256 KiB. When the
%% time is up and some of `Size' bytes had come, the error has them.
-spec recv(socket(), non_neg_integer(), timeout()) ->
          {ok, binary()} | error() | {error, {timeout, binary()}}.
recv(Socket, Size) -> recv(Socket, Size, infinity).
recv(Socket, 0, Timeout) ->
    fairnif:await(nif_recv(Socket, ?CHUNK, ms(Timeout)));
recv(Socket, Size, infinity) ->
    recv_all(Socket, Size, infinity, []);
recv(Socket, Size, Timeout) ->
    recv_all(Socket, Size, erlang:monotonic_time(millisecond) + Timeout, []).

recv_all(_Socket, 0, _End, Got) ->
    {ok, iolist_to_binary(lists:reverse(Got))};
recv_all(Socket, Size, End, Got) ->
    case fairnif:await(nif_recv(Socket, Size, left(End))) of
        {ok, Bytes} -> recv_all(Socket, Size - byte_size(Bytes), End, [Bytes | Got]);
        {error, timeout} when Got =/= [] ->
            {error, {timeout, iolist_to_binary(lists:reverse(Got))}};
        Error -> Error
    end.

%% @doc Closes it; a process that waits for it gets `{error, closed}'.
-spec close(socket()) -> ok.
close(_Socket) -> erlang:nif_error(not_loaded).

%% @doc The port number of the socket's own end.
-spec port(socket()) -> {ok, inet:port_number()} | error().
port(_Socket) -> erlang:nif_error(not_loaded).

nif_connect(_Ip, _Port, _Ms) -> erlang:nif_error(not_loaded).
nif_listen(_Ip, _Port) -> erlang:nif_error(not_loaded).
nif_accept(_Listening, _Ms) -> erlang:nif_error(not_loaded).
nif_send(_Socket, _Binary, _Ms) -> erlang:nif_error(not_loaded).
nif_recv(_Socket, _Most, _Ms) -> erlang:nif_error(not_loaded).

%% In network order.
with_ip(Address, Fun) ->
    case inet:getaddr(Address, inet) of
        {ok, Ip} -> Fun(list_to_binary(tuple_to_list(Ip)));
        Error -> Error
    end.

ms(infinity) -> -1;
ms(Ms) when is_integer(Ms), Ms >= 0 -> Ms.

left(infinity) -> -1;
left(End) -> max(0, End - erlang:monotonic_time(millisecond)).
