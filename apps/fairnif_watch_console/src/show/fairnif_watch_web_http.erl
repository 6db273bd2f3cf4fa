%% One HTTP connection of the live page: a module of OTP's HTTP server (inets, "Inets Web server
%% API"), which calls do/1 for each request in the connection's process.
%%
%% GET only, of four things. Says who may: with a token those that bring it, else those that asked
%% for this machine by a name that means it (a page elsewhere whose name is pointed at 127.0.0.1 has
%% another one), and in no case a script of another site. Never changes anything, and never waits
%% for a reader longer than the socket's send_timeout: one that does not read is closed.
-module(fairnif_watch_web_http).

-export([do/1]).

-include_lib("inets/include/httpd.hrl").

%% A page that has heard nothing for a few seconds takes the connection for lost.
-define(HEARTBEAT_MS, 2000).
-define(SEND_MS, 5000).

-type config() :: #{server := pid(), token := binary() | none, loopback := boolean(),
                    metrics := none | fun(() -> iodata())}.

%% Of the connection, before anything is sent that a reader could refuse to take. (As socket_type in
%% the server's configuration OTP 25 takes them for port 0 only.)
options() ->
    [{nodelay, true}, {send_timeout, ?SEND_MS}, {send_timeout_close, true}].

%% @private The callback of OTP's HTTP server.
-spec do(#mod{}) -> {proceed, [term()]}.
do(#mod{config_db = Db, socket = Socket} = Mod) ->
    %% It may be closed already, which is seen when something is sent.
    _ = inet:setopts(Socket, options()),
    Config = httpd_util:lookup(Db, ?MODULE),
    request(Config(), Mod).

-spec request(config(), #mod{}) -> {proceed, [term()]}.
request(Config, #mod{request_uri = Uri, parsed_header = Headers} = Mod) ->
    case uri_string:parse(Uri) of
        #{path := Path} = Parts ->
            Query = query(Parts),
            case allowed(Path, Headers, Query, Config) of
                yes -> method(Path, Query, Config, Mod);
                {cookie, Cookie} ->
                    respond(303, [{"location", Path}, {"set-cookie", Cookie}], [], Mod);
                {no, Code, Text} -> refuse(Code, Text, Mod)
            end;
        {error, _, _} ->
            plain(400, "This is not an address.\n", Mod)
    end.

query(#{query := Query}) ->
    case uri_string:dissect_query(Query) of
        Pairs when is_list(Pairs) -> maps:from_list([{K, V} || {K, V} <- Pairs, is_list(V)]);
        {error, _, _} -> #{}
    end;
query(#{}) ->
    #{}.

%% Who may read, in this order: no script of another page; the bearer of the token; who asked for
%% this machine by one of its names.
allowed(Path, Headers, Query, #{token := Token} = Config) ->
    case same_origin(Path, Headers) of
        false -> {no, 403, "Not for another site's page.\n"};
        true when Token =/= none -> token(Headers, Query, Token);
        true -> host(Headers, Config)
    end.

%% A browser says where a request comes from. A page of another port of this machine is `same-site',
%% and may not either: it could not read what comes, but take up all streams, by images. It may send
%% its reader to the page, as any page may, but not to a stream.
same_origin(Path, Headers) ->
    case {header("origin", Headers), header("sec-fetch-site", Headers)} of
        {none, Own} when Own =:= none; Own =:= "same-origin"; Own =:= "none" -> true;
        {none, _} -> Path =/= "/events" andalso opens(Headers);
        {Origin, _} -> origin_host(Origin) =:= header("host", Headers)
    end.

%% In a window of its own.
opens(Headers) ->
    header("sec-fetch-mode", Headers) =:= "navigate"
        andalso lists:member(header("sec-fetch-dest", Headers), [none, "document"]).

origin_host(Origin) ->
    case string:split(Origin, "://") of
        [_, Host] -> Host;
        _ -> Origin
    end.

host(Headers, #{loopback := true}) ->
    case this_machine(header("host", Headers)) of
        true -> yes;
        false -> {no, 403, "This page is for names of this machine: localhost, 127.0.0.1, [::1].\n"}
    end.

this_machine(none) ->
    false;
this_machine(Host) ->
    case uri_string:parse("http://" ++ string:lowercase(Host)) of
        #{host := "localhost"} -> true;
        #{host := Name} ->
            case inet:parse_strict_address(Name) of
                {ok, Ip} -> fairnif_watch_web:loopback(Ip);
                {error, einval} -> false
            end;
        _ -> false
    end.

%% As `Authorization: Bearer', in the page's cookie, or once in the address, which sets the cookie
%% and continues without.
token(Headers, Query, Token) ->
    Name = cookie_name(Headers),
    Brought = [bearer(header("authorization", Headers)), cookie(Name, header("cookie", Headers))],
    InAddress = maps:get("token", Query, none),
    case {lists:any(fun(T) -> equal(T, Token) end, Brought), equal(InAddress, Token)} of
        {_, true} -> {cookie, [Name, $=, binary_to_list(Token),
                               "; Path=/; HttpOnly; SameSite=Lax"]};
        {true, false} -> yes;
        {false, false} ->
            {no, 401, "This page needs its token: open the address with ?token=... at its end, or "
             "send it as Authorization: Bearer.\n"}
    end.

%% Cookies are a host's, whatever the port: two pages on one machine have one each.
cookie_name(Headers) ->
    Host = case header("host", Headers) of none -> ""; Given -> Given end,
    "fairnif_watch_" ++ [C || C <- Host, C >= $0, C =< $9].

bearer("Bearer " ++ Token) -> string:trim(Token);
bearer("bearer " ++ Token) -> string:trim(Token);
bearer(_) -> none.

cookie(_, none) ->
    none;
cookie(Name, Cookies) ->
    Pairs = [string:split(string:trim(Pair), "=") || Pair <- string:split(Cookies, ";", all)],
    case [Value || [N, Value] <- Pairs, N =:= Name] of
        [Value | _] -> Value;
        [] -> none
    end.

%% Takes the same time wherever they differ. How long the token is, is no secret.
equal(none, _) ->
    false;
equal(Given, Token) ->
    Bytes = unicode:characters_to_binary(Given),
    is_binary(Bytes) andalso byte_size(Bytes) =:= byte_size(Token)
        andalso 0 =:= lists:foldl(fun({A, B}, Differ) -> Differ bor (A bxor B) end, 0,
                                  lists:zip(binary_to_list(Bytes), binary_to_list(Token))).

header(Name, Headers) ->
    proplists:get_value(Name, Headers, none).

method(Path, Query, Config, #mod{method = Method} = Mod)
  when Method =:= "GET"; Method =:= "HEAD" ->
    get(Path, Query, Config, Mod);
method(_, _, _, Mod) ->
    respond(405, [{"allow", "GET, HEAD"}, {"content-type", "text/plain"}],
            "This page can only be read.\n", Mod).

get("/", _, _, Mod) ->
    page(Mod);
get("/view", _, #{server := Server}, Mod) ->
    respond(200, [{"content-type", "application/json"}], fairnif_watch_web:views(Server), Mod);
get("/events", Query, #{server := Server}, Mod) ->
    events(Server, Query, Mod);
get("/metrics", _, #{metrics := Metrics}, Mod) when is_function(Metrics, 0) ->
    respond(200, [{"content-type", "text/plain; version=0.0.4; charset=utf-8"}], Metrics(), Mod);
get("/metrics", _, _, Mod) ->
    plain(404, "Metrics are each node's own: ask the application on that node.\n", Mod);
get(_, _, _, Mod) ->
    plain(404, "There is /, /view, /events and /metrics.\n", Mod).

%% It is loaded rarely.
page(Mod) ->
    case file:read_file(fairnif_watch_web:page()) of
        {ok, Page} ->
            respond(200, [{"content-type", "text/html; charset=utf-8"}], Page, Mod);
        {error, _} ->
            plain(503, "The live page is not built: run `make page' in fairnif's repository, which "
                  "needs Node.js 18 or newer and npm. /view and /metrics need no page.\n", Mod)
    end.

%% A refused client keeps no connection either: there are few.
refuse(Code, Text, #mod{socket = Socket} = Mod) ->
    self() ! {tcp_closed, Socket},
    plain(Code, Text, Mod).

plain(Code, Text, Mod) ->
    Challenge = [{"www-authenticate", "Bearer"} || Code =:= 401],
    respond(Code, [{"content-type", "text/plain"} | Challenge], Text, Mod).

%% Nothing is kept by anyone in between, put into a frame, or taken for another type. What the page
%% itself may do stands in the page, beside the hash of its script.
respond(Code, Headers, Body, #mod{method = Method}) ->
    Bytes = iolist_to_binary(Body),
    Text = case Method of "HEAD" -> []; _ -> [Bytes] end,
    Head = [{code, Code}, {"content-length", integer_to_list(byte_size(Bytes))}
            | [{Name, lists:flatten(Value)} || {Name, Value} <- Headers] ++ common()],
    {proceed, [{response, {response, Head, Text}}]}.

common() ->
    [{"cache-control", "no-store"},
     {"x-content-type-options", "nosniff"},
     {"x-frame-options", "DENY"},
     {"referrer-policy", "no-referrer"},
     {"cross-origin-resource-policy", "same-origin"},
     {"content-security-policy", "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}].

events(_, _, #mod{method = "HEAD"} = Mod) ->
    respond(200, [{"content-type", "text/event-stream"}], [], Mod);
events(Server, Query, #mod{socket = Socket, parsed_header = Headers} = Mod) ->
    %% The page asks with the one when it begins a connection, the browser with the other.
    After = case header("last-event-id", Headers) of
                none -> maps:get("after", Query, "");
                Last -> Last
            end,
    case fairnif_watch_web:open(Server) of
        ok ->
            Monitor = monitor(process, Server),
            _ = inet:setopts(Socket, [{active, once}]),
            Head = ["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n",
                    [[Name, ": ", Value, "\r\n"] || {Name, Value} <- common()],
                    "\r\nretry: 1000\n\n"],
            sent(deliver(Head, Mod), unicode:characters_to_binary(After), Server, Mod),
            demonitor(Monitor, [flush]),
            _ = httpd_socket:close(Mod#mod.socket_type, Socket),
            %% For the process that this runs in: there is no next request.
            self() ! {tcp_closed, Socket},
            {proceed, [{response, {already_sent, 200, 0}}]};
        full ->
            respond(503, [{"retry-after", "10"}, {"content-type", "text/plain"}],
                    "Too many pages look at this already.\n", Mod)
    end.

sent(ok, After, Server, Mod) ->
    fairnif_watch_web:next(Server, After),
    wait(Server, Mod);
sent(_, _, _, _) ->
    closed.

%% Until either side ends it. Data from the client is not HTTP any more.
wait(Server, #mod{socket = Socket} = Mod) ->
    receive
        {fairnif_watch_web, Last, Events} -> sent(deliver(Events, Mod), Last, Server, Mod);
        {tcp_closed, Socket} -> closed;
        {tcp_error, Socket, _} -> closed;
        {tcp, Socket, _} -> closed;
        %% The server stops; so does this process, by the same message.
        {'EXIT', _, _} = Exit -> self() ! Exit, closed;
        {'DOWN', _, process, Server, _} -> closed
    after ?HEARTBEAT_MS ->
        case deliver("event: heartbeat\ndata: {}\n\n", Mod) of
            ok -> wait(Server, Mod);
            _ -> closed
        end
    end.

deliver(Text, #mod{socket_type = Type, socket = Socket}) ->
    httpd_socket:deliver(Type, Socket, Text).
