%% The live page of one node or of a cluster, over HTTP, read-only.
%%
%% This process holds what is shown (fairnif_watch_web_state), makes each event's text once, and
%% keeps the last of them for its readers. A page's connection (fairnif_watch_web_http) asks for
%% what came after the last event it has sent, and gets it now or when there is some: what no page
%% asks for is not kept for them, so that a slow reader costs nothing. One that asks for more than
%% is kept gets everything again. The HTTP server is OTP's (inets), in this process's care: they end
%% together.
%%
%% Never reachable from another machine without a token, and nothing here changes anything.
-module(fairnif_watch_web).

-behaviour(gen_server).

-export([start_link/1, check/1, stop/1, page/0, url/1]).
%% For fairnif_watch_web_http.
-export([open/1, next/2, views/1, loopback/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([options/0, source/0, cursor/0]).

%% `process': with its end the subscription ends, and there will be another one to subscribe to.
-type source() :: #{subscribe := fun((pid()) -> {ok, Ref :: term()} | {error, term()}),
                    unsubscribe := fun((Ref :: term()) -> term()),
                    metrics => fun(() -> iodata()), process => atom()}.
-type options() :: #{ip => inet:ip_address(), port => inet:port_number(),
                     token => binary() | none, source => source()}.
%% An event's place, as text: of this process, and how many were before it.
-type cursor() :: binary().

%% Events that are kept for those who come back, or are slow.
-define(KEPT, 512).
-define(KEPT_BYTES, 1048576).
%% Pages that look at the same time. The others of the HTTP server's connections are for the rest.
-define(STREAMS, 32).
-define(CLIENTS, 64).
-define(REQUEST_S, 10).
%% Findings that come one after the other are sent together, this many milliseconds apart.
-define(TOGETHER_MS, 100).
%% After the last page has gone events are kept for so long, should it come back.
-define(LINGER_MS, 30000).
%% Between two tries to subscribe again.
-define(AGAIN_MS, 500).

-record(state, {epoch :: binary(),
                source :: map(),
                subscription = none :: none | {Ref :: term(), Monitor :: reference()},
                httpd :: pid(),
                url :: binary(),
                shown = fairnif_watch_web_state:new() :: fairnif_watch_web_state:state(),
                %% Events so far, and of them the last ones, newest first.
                count = 0 :: non_neg_integer(),
                kept = queue:new() :: queue:queue({pos_integer(), binary()}),
                bytes = 0 :: non_neg_integer(),
                %% The text of everything, as of that count.
                full = none :: none | {non_neg_integer(), binary()},
                %% Connections, and what they wait for.
                streams = #{} :: #{pid() => {reference(), none | non_neg_integer()}},
                %% Until when (monotonic, ms) events are kept though no page looks.
                linger :: integer(),
                flush = none :: none | reference(),
                flushed :: integer()}).

%% @doc Serves the page at `ip' (default 127.0.0.1) and `port' (default 0: any, see url/1), linked
%% to the caller. An address that other machines can reach needs a `token' of 16 to 256 letters,
%% digits or `._~-', which a request then must bring. `source' (default: the own node) gives what is
%% shown. Errors are `{http, Text}', Text being a sentence for a person.
-spec start_link(options()) -> {ok, pid()} | {error, {http, binary()}}.
start_link(Options) ->
    case check(Options) of
        ok ->
            {ok, Server} = gen_server:start_link(?MODULE, [], []),
            %% Not in init/1: a caller that is linked would get the error as an exit signal too.
            case gen_server:call(Server, {serve, maps:merge(defaults(), Options)}, infinity) of
                ok -> {ok, Server};
                {error, Text} -> {error, {http, Text}}
            end;
        {error, Text} ->
            {error, {http, Text}}
    end.

defaults() ->
    #{ip => {127, 0, 0, 1}, port => 0, token => none,
      source => #{subscribe => fun fairnif_watch:subscribe/1,
                  unsubscribe => fun fairnif_watch:unsubscribe/1,
                  metrics => fun fairnif_watch:metrics/0, process => fairnif_watch_collector}}.

%% @doc The page's file. Read again for each reader: one that was built later is seen.
-spec page() -> file:filename_all().
page() ->
    filename:join([code:priv_dir(fairnif_watch_console), "page", "live.html"]).

%% @doc Stops serving; nothing stays behind. Takes as long as its connections need to end, a moment.
-spec stop(pid()) -> ok.
stop(Pid) ->
    gen_server:stop(Pid).

%% @doc Where the page is, without the token.
-spec url(pid()) -> binary().
url(Pid) ->
    gen_server:call(Pid, url).

url(Ip, Port) ->
    Host = case inet:ntoa(Ip) of
               Six when tuple_size(Ip) =:= 8 -> [$[, Six, $]];
               Four -> Four
           end,
    iolist_to_binary(["http://", Host, $:, integer_to_list(Port), $/]).

%% @private The caller is a page's connection from now on; or there are too many.
-spec open(pid()) -> ok | full.
open(Server) ->
    gen_server:call(Server, open).

%% @private Asks for the events after that one (or for everything: any other text). They come as
%% `{fairnif_watch_web, Last :: cursor(), Events :: iodata()}', once, when there are some.
-spec next(pid(), cursor()) -> ok.
next(Server, After) ->
    gen_server:cast(Server, {next, self(), After}).

%% @private The JSON of all nodes, now.
-spec views(pid()) -> iodata().
views(Server) ->
    gen_server:call(Server, views).

%% @doc Whether these options are allowed; else a sentence for a person.
-spec check(options()) -> ok | {error, binary()}.
check(Options) ->
    #{ip := Ip, port := Port, token := Token} = maps:merge(defaults(), Options),
    Checks = [{is_integer(Port) andalso Port >= 0 andalso Port < 65536,
               ["port ", io_lib:format("~tp", [Port]), " is not a number from 0 to 65535"]},
              {inet:is_ip_address(Ip),
               [io_lib:format("~tp", [Ip]), " is not an IP address, such as {127,0,0,1}"]},
              {Token =:= none orelse is_token(Token),
               "a token is 16 to 256 letters, digits or ._~- (in Erlang, a binary)"},
              {Token =/= none orelse loopback(Ip),
               [inet_text(Ip), " can be reached from other machines: that needs a token "
                "(http_token, or --token). Without one the page is for 127.0.0.1 only"]},
              {code:ensure_loaded(httpd) =:= {module, httpd},
               "the application inets is not there, whose HTTP server serves the page"}],
    case [Text || {false, Text} <- Checks] of
        [] -> ok;
        [First | _] -> {error, iolist_to_binary(First)}
    end.

%% @private Is an address for this machine only?
-spec loopback(inet:ip_address()) -> boolean().
loopback({127, _, _, _}) -> true;
loopback({0, 0, 0, 0, 0, 0, 0, 1}) -> true;
loopback({0, 0, 0, 0, 0, 16#FFFF, High, _}) -> High bsr 8 =:= 127;
loopback(_) -> false.

%% One that is not guessed, and needs no escapes in an address or a cookie.
is_token(Value) ->
    is_binary(Value)
        andalso re:run(Value, "^[A-Za-z0-9._~-]{16,256}\\z", [{capture, none}]) =:= match.

inet_text(Ip) ->
    case inet:ntoa(Ip) of
        {error, einval} -> io_lib:format("~tp", [Ip]);
        Text -> Text
    end.

%% @private
-spec init([]) -> {ok, none}.
init([]) ->
    process_flag(trap_exit, true),
    {ok, none}.

serve(#{source := Source} = Options) ->
    case httpd(Options) of
        {ok, Httpd, Url} ->
            case subscribe(Source) of
                {ok, Subscription} ->
                    {ok, #state{epoch = epoch(), source = Source, subscription = Subscription,
                                httpd = Httpd, url = Url, linger = now_ms(),
                                flushed = now_ms()}};
                {error, Reason} ->
                    stop_httpd(Httpd),
                    {error, text("nothing to show: ~tp", [Reason])}
            end;
        {error, _} = Error ->
            Error
    end.

subscribe(#{subscribe := Subscribe} = Source) ->
    Monitor = case Source of
                  #{process := Process} -> monitor(process, Process);
                  #{} -> make_ref()
              end,
    try Subscribe(self()) of
        {ok, Ref} -> {ok, {Ref, Monitor}};
        {error, _} = Error -> true = demonitor(Monitor, [flush]), Error
    catch
        exit:{Reason, _} -> true = demonitor(Monitor, [flush]), {error, Reason}
    end.

%% A reader that comes back to another process starts again.
epoch() ->
    integer_to_binary(erlang:system_time(microsecond), 36).

httpd(#{ip := Ip, port := Port, token := Token, source := Source}) ->
    Web = #{server => self(), token => Token, loopback => loopback(Ip),
            metrics => maps:get(metrics, Source, none)},
    Config = [{bind_address, Ip}, {port, Port}, {ipfamily, family(Ip)},
              {server_name, "fairnif_watch"}, {server_tokens, none},
              %% Both must be there; nothing is served from them.
              {server_root, code:lib_dir(kernel)}, {document_root, code:lib_dir(kernel)},
              %% Supervisors print their children's arguments, and of a fun not what is in it.
              {modules, [fairnif_watch_web_http]}, {fairnif_watch_web_http, fun() -> Web end},
              %% No request of unlimited size, time or number.
              {max_clients, ?CLIENTS}, {keep_alive_timeout, ?REQUEST_S},
              {max_uri_size, 2048}, {max_header_size, 8192},
              {max_body_size, 1024}, {max_content_length, 1024}],
    %% Asked first, since a start that fails is some screens of reports.
    case gen_tcp:listen(Port, [family(Ip), {ip, Ip}, {reuseaddr, true}]) of
        {ok, Socket} ->
            ok = gen_tcp:close(Socket),
            served(Ip, Port, inets:start(httpd, Config, stand_alone));
        {error, Reason} ->
            served(Ip, Port, {error, inet:format_error(Reason)})
    end.

served(Ip, Port, {ok, Httpd}) ->
    {ok, Httpd, url(Ip, port_of(Httpd, Port))};
served(Ip, Port, {error, Reason}) ->
    Why = case io_lib:char_list(Reason) of
              true -> Reason;
              false -> io_lib:format("~0tp", [Reason])
          end,
    {error, text("cannot listen at ~ts, port ~b: ~ts", [inet_text(Ip), Port, Why])}.

family(Ip) when tuple_size(Ip) =:= 8 -> inet6;
family(_) -> inet.

port_of(Httpd, 0) ->
    [Port | _] = [Port || {{httpd_instance_sup, _, Port, _}, _, _, _}
                              <- supervisor:which_children(Httpd)],
    Port;
port_of(_, Port) ->
    Port.

text(Format, Arguments) ->
    unicode:characters_to_binary(io_lib:format(Format, Arguments)).

%% @private
-spec handle_call({serve, options()} | open | views | url, gen_server:from(), none | #state{}) ->
          {reply, term(), #state{}} | {stop, normal, {error, binary()}, none}.
handle_call({serve, Options}, _, none) ->
    case serve(Options) of
        {ok, State} -> {reply, ok, State};
        {error, _} = Error -> {stop, normal, Error, none}
    end;
handle_call(open, {Pid, _}, #state{streams = Streams} = State) ->
    case map_size(Streams) < ?STREAMS of
        true ->
            Monitor = monitor(process, Pid),
            {reply, ok, State#state{streams = Streams#{Pid => {Monitor, none}}}};
        false ->
            {reply, full, State}
    end;
handle_call(views, _, #state{shown = Shown} = State) ->
    {reply, json(fairnif_watch_web_state:views(Shown)), State};
handle_call(url, _, #state{url = Url} = State) ->
    {reply, Url, State}.

%% @private
-spec handle_cast({next, pid(), cursor()}, #state{}) -> {noreply, #state{}}.
handle_cast({next, Pid, After}, #state{streams = Streams} = State) ->
    case Streams of
        #{Pid := {Monitor, _}} -> {noreply, answer(Pid, Monitor, seen(After, State), State)};
        #{} -> {noreply, State}
    end.

%% @private
-spec handle_info(term(), none | #state{}) ->
          {noreply, none | #state{}} | {stop, term(), #state{}}.
handle_info({fairnif_watch, Node, Message}, State) ->
    {noreply, news({Node, Message}, State)};
handle_info({fairnif_watch_cluster, Cluster}, State) ->
    {noreply, news({cluster, Cluster}, State)};
handle_info(flush, State) ->
    {noreply, flush(State#state{flush = none})};
handle_info({'DOWN', Monitor, process, _, _}, #state{subscription = {_, Monitor}} = State) ->
    {noreply, again(State)};
handle_info(subscribe, #state{source = Source} = State) ->
    case subscribe(Source) of
        {ok, Subscription} -> {noreply, State#state{subscription = Subscription}};
        {error, _} -> {noreply, again(State)}
    end;
handle_info({'DOWN', Monitor, process, Pid, _}, #state{streams = Streams} = State) ->
    case Streams of
        #{Pid := {Monitor, _}} -> {noreply, State#state{streams = maps:remove(Pid, Streams),
                                                        linger = now_ms() + ?LINGER_MS}};
        #{} -> {noreply, State}
    end;
handle_info({'EXIT', Httpd, Reason}, #state{httpd = Httpd} = State) ->
    {stop, {httpd, Reason}, State};
handle_info(_, State) ->
    {noreply, State}.

%% @private
-spec terminate(term(), none | #state{}) -> ok.
terminate(_, none) ->
    ok;
terminate(_, #state{source = #{unsubscribe := Unsubscribe}, subscription = Subscription,
                    httpd = Httpd}) ->
    %% What gives the views may be gone before.
    _ = try Unsubscribe(element(1, Subscription)) catch _:_ -> ok end,
    stop_httpd(Httpd).

%% What gives the views has ended: its supervisor restarts it, or it has given up.
again(State) ->
    _ = erlang:send_after(?AGAIN_MS, self(), subscribe),
    State#state{subscription = none}.

%% It is linked and stops in the time that its connections need (fairnif_watch_web_http: at once).
stop_httpd(Httpd) ->
    Monitor = monitor(process, Httpd),
    exit(Httpd, shutdown),
    receive {'DOWN', Monitor, process, _, _} -> ok end.

%% Without a page that looks nothing is made into text, and none of it is kept.
news(Message, #state{shown = Shown, count = Count} = State) ->
    {Events, After} = fairnif_watch_web_state:update(Message, Shown),
    case Events =:= [] orelse looked_at(State) of
        true ->
            soon(lists:foldl(fun keep/2, State#state{shown = After}, Events));
        false ->
            State#state{shown = After, count = Count + length(Events), kept = queue:new(),
                        bytes = 0, full = none}
    end.

looked_at(#state{streams = Streams, linger = Until}) ->
    map_size(Streams) > 0 orelse now_ms() < Until.

now_ms() -> erlang:monotonic_time(millisecond).

keep({Name, Data}, #state{count = Before, kept = Kept, bytes = Bytes} = State) ->
    Next = State#state{count = Before + 1},
    Text = iolist_to_binary(event(Name, cursor(Next), Data)),
    trim(Next#state{kept = queue:in({Before + 1, Text}, Kept), bytes = Bytes + byte_size(Text)}).

%% JSON has no line feed.
event(Name, Id, Data) ->
    ["event: ", atom_to_binary(Name), "\nid: ", Id, "\ndata: ", json(Data), "\n\n"].

json(Data) ->
    fairnif_watch_json:encode(Data#{schema_version => 1}).

trim(#state{kept = Kept, bytes = Bytes} = State) ->
    case queue:len(Kept) > ?KEPT orelse Bytes > ?KEPT_BYTES of
        true ->
            {{value, {_, Text}}, Rest} = queue:out(Kept),
            trim(State#state{kept = Rest, bytes = Bytes - byte_size(Text)});
        false ->
            State
    end.

%% At once, unless that was only just done.
soon(#state{flush = none, flushed = Last} = State) ->
    case Last + ?TOGETHER_MS - now_ms() of
        Wait when Wait =< 0 -> flush(State);
        Wait -> State#state{flush = erlang:send_after(Wait, self(), flush)}
    end;
soon(State) ->
    State.

flush(#state{streams = Streams} = State) ->
    maps:fold(fun(_, {_, none}, S) -> S;
                 (Pid, {Monitor, Seen}, S) -> answer(Pid, Monitor, Seen, S)
              end, State#state{flushed = now_ms()}, Streams).

%% The number of the last event that this text names, if it is of here and the next is kept.
seen(After, #state{epoch = Epoch, count = Count, kept = Kept}) ->
    Least = Count - queue:len(Kept),
    case binary:split(After, <<"-">>) of
        [Epoch, Number] ->
            try binary_to_integer(Number) of
                Seen when Seen =< Count, Seen >= Least -> Seen;
                _ -> none
            catch
                error:badarg -> none
            end;
        _ ->
            none
    end.

%% Everything, what is new, or later.
answer(Pid, Monitor, none, State) ->
    {Text, After} = full(State),
    reply(Pid, Monitor, Text, After);
answer(Pid, Monitor, Seen, #state{count = Seen, streams = Streams} = State) ->
    State#state{streams = Streams#{Pid => {Monitor, Seen}}};
answer(Pid, Monitor, Seen, #state{count = Count, kept = Kept} = State) ->
    case Seen < Count - queue:len(Kept) of
        true -> answer(Pid, Monitor, none, State);
        false -> reply(Pid, Monitor, [Text || {N, Text} <- queue:to_list(Kept), N > Seen], State)
    end.

reply(Pid, Monitor, Text, #state{streams = Streams} = State) ->
    Pid ! {fairnif_watch_web, iolist_to_binary(cursor(State)), Text},
    State#state{streams = Streams#{Pid => {Monitor, none}}}.

cursor(#state{epoch = Epoch, count = Count}) -> [Epoch, $-, integer_to_binary(Count)].

full(#state{full = {Count, Text}, count = Count} = State) ->
    {Text, State};
full(#state{count = Count, shown = Shown} = State) ->
    Text = iolist_to_binary(event(state, cursor(State), fairnif_watch_web_state:full(Shown))),
    {Text, State#state{full = {Count, Text}}}.
