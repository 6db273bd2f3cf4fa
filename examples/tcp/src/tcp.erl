%% @doc TCP sockets as straight-line C on fairnif: what waits is suspended in the
%% middle of a C function, and holds neither a scheduler nor a thread.
%%
%% Passive mode only, and binaries only. Errors are named as those of `gen_tcp':
%% `closed', `timeout', `econnrefused' and so on. A socket belongs to the process
%% that made it and is closed when that dies; {@link own/1} takes one over.
%%
%% One process at a time may wait to receive from a socket (or to accept), and
%% one to send: a second gets `{error, ebusy}'.
-module(tcp).

-export([connect/2, connect/3, listen/2, listen/3, accept/1, accept/2]).
-export([send/2, send/3, recv/2, recv/3, shutdown/2, close/1, own/1, port/1]).

-export_type([socket/0, reason/0]).

-nifs([nif_connect/3, nif_listen/3, nif_accept/2, nif_send/3, nif_recv/2,
       nif_recv_exactly/3, shutdown/2, close/1, own/1, port/1]).

-on_load(init/0).

-opaque socket() :: reference().
-type reason() :: closed | timeout | inet:posix() | atom().
-type address() :: inet:ip_address() | inet:hostname().

-define(SIZE_MOST, 16#4000000).         % of recv/3, as gen_tcp has it

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @equiv connect(Address, Port, infinity)
-spec connect(address(), inet:port_number()) -> {ok, socket()} | {error, reason()}.
connect(Address, Port) ->
    connect(Address, Port, infinity).

%% @doc A connection to a port. A host's name is looked up first, which is not
%% within the time.
-spec connect(address(), inet:port_number(), timeout()) -> {ok, socket()} | {error, reason()}.
connect(Address, Port, Timeout) ->
    case ip(Address) of
        {ok, Ip} -> fairnif:await(nif_connect(Ip, Port, ms(Timeout)));
        Error -> Error
    end.

%% @equiv listen(Address, Port, 128)
-spec listen(address(), inet:port_number()) -> {ok, socket()} | {error, reason()}.
listen(Address, Port) ->
    listen(Address, Port, 128).

%% @doc Listens; port 0 for any that is free ({@link port/1} says which).
-spec listen(address(), inet:port_number(), Backlog :: non_neg_integer()) ->
          {ok, socket()} | {error, reason()}.
listen(Address, Port, Backlog) ->
    case ip(Address) of
        {ok, Ip} -> nif_listen(Ip, Port, Backlog);
        Error -> Error
    end.

%% @equiv accept(Listening, infinity)
-spec accept(socket()) -> {ok, socket()} | {error, reason()}.
accept(Listening) ->
    accept(Listening, infinity).

%% @doc The next connection. The caller owns it.
-spec accept(socket(), timeout()) -> {ok, socket()} | {error, reason()}.
accept(Listening, Timeout) ->
    fairnif:await(nif_accept(Listening, ms(Timeout))).

%% @equiv send(Socket, Data, infinity)
-spec send(socket(), iodata()) -> ok | {error, reason()}.
send(Socket, Data) ->
    send(Socket, Data, infinity).

%% @doc Sends all of it, without copying its large binaries. After an error some
%% of it may have been sent.
-spec send(socket(), iodata(), timeout()) -> ok | {error, reason()}.
send(Socket, Data, Timeout) ->
    fairnif:await(nif_send(Socket, erlang:iolist_to_iovec(Data), ms(Timeout))).

%% @equiv recv(Socket, Size, infinity)
-spec recv(socket(), non_neg_integer()) ->
          {ok, binary()} | {error, reason() | {timeout, binary()}}.
recv(Socket, Size) ->
    recv(Socket, Size, infinity).

%% @doc Exactly `Size' bytes, at most 64 MiB; with 0 what has come, at least one
%% byte and at most 256 KiB. When the time is up and some of `Size' bytes had
%% come, the error has them: `{timeout, Bytes}'.
-spec recv(socket(), non_neg_integer(), timeout()) ->
          {ok, binary()} | {error, reason() | {timeout, binary()}}.
recv(Socket, 0, Timeout) ->
    fairnif:await(nif_recv(Socket, ms(Timeout)));
recv(_Socket, Size, _Timeout) when is_integer(Size), Size > ?SIZE_MOST ->
    {error, enomem};
recv(Socket, Size, Timeout) ->
    fairnif:await(nif_recv_exactly(Socket, Size, ms(Timeout))).

%% @doc Ends one direction, or both: after `write' the peer sees the end when it has
%% read everything.
-spec shutdown(socket(), read | write | read_write) -> ok | {error, reason()}.
shutdown(_Socket, _How) -> erlang:nif_error(not_loaded).

%% @doc Closes it; who waits for it gets `{error, closed}'.
-spec close(socket()) -> ok.
close(_Socket) -> erlang:nif_error(not_loaded).

%% @doc Makes the caller the owner of a connection: of a new socket for it. The one
%% given is closed.
-spec own(socket()) -> {ok, socket()} | {error, reason()}.
own(_Socket) -> erlang:nif_error(not_loaded).

%% @doc The port number of the socket's own end.
-spec port(socket()) -> {ok, inet:port_number()} | {error, reason()}.
port(_Socket) -> erlang:nif_error(not_loaded).

nif_connect(_Ip, _Port, _Ms) -> erlang:nif_error(not_loaded).
nif_listen(_Ip, _Port, _Backlog) -> erlang:nif_error(not_loaded).
nif_accept(_Listening, _Ms) -> erlang:nif_error(not_loaded).
nif_send(_Socket, _Pieces, _Ms) -> erlang:nif_error(not_loaded).
nif_recv(_Socket, _Ms) -> erlang:nif_error(not_loaded).
nif_recv_exactly(_Socket, _Size, _Ms) -> erlang:nif_error(not_loaded).

%% In network order.
ip({A, B, C, D}) -> {ok, <<A, B, C, D>>};
ip(Address) when tuple_size(Address) =:= 8 ->
    {ok, << <<Part:16>> || Part <- tuple_to_list(Address) >>};
ip(Name) ->
    case inet:getaddr(Name, inet) of
        {ok, Address} -> ip(Address);
        Error -> Error
    end.

ms(infinity) -> -1;
ms(Ms) when is_integer(Ms), Ms >= 0 -> Ms.
