%% The live page's server, asked over real sockets.
-module(fairnif_watch_web_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

-define(TOKEN, <<"a-token.of_24~characters">>).
%% As fairnif_watch_web has it.
-define(STREAMS, 32).

%% -- a server whose source is the test --------------------------------------------------------

source() ->
    Test = self(),
    #{subscribe => fun(Pid) -> Test ! {source, Pid}, {ok, subscribed} end,
      unsubscribe => fun(subscribed) -> Test ! unsubscribed, ok end}.

start() -> start(#{}).

start(Options) ->
    {ok, Server} = fairnif_watch_web:start_link(maps:merge(#{source => source()}, Options)),
    {Server, port(fairnif_watch_web:url(Server))}.

port(Url) ->
    #{port := Port} = uri_string:parse(Url),
    Port.

stop({Server, _}) ->
    unlink(Server),
    fairnif_watch_web:stop(Server).

with(Test) -> with(#{}, Test).

with(Options, Test) ->
    {timeout, 60, fun() ->
                          Web = start(Options),
                          try Test(Web) after stop(Web), drain() end
                  end}.

%% What the source said goes to no other test.
drain() ->
    receive
        {source, _} -> drain();
        unsubscribed -> drain()
    after 0 ->
            ok
    end.

view(At) -> view(At, []).

view(At, Findings) ->
    #{at => At, started => 1, findings => Findings,
      schedulers => [#{kind => normal, number => 1, state => busy, busy => 0.5}]}.

finding(Id, Sentence) -> #{id => Id, sentence => Sentence, since => Id}.

tell({Server, _}, Message) -> tell(Server, Message);
tell(Server, Message) -> Server ! {fairnif_watch, a@b, Message}.

%% -- a client ---------------------------------------------------------------------------------

connect(Port) -> connect(Port, []).

connect(Port, Options) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false} | Options]),
    Socket.

request(Method, Path, Headers) ->
    All = [{"Host", "localhost"} || not lists:keymember("Host", 1, Headers)] ++ Headers,
    [Method, " ", Path, " HTTP/1.1\r\n", [[N, ": ", V, "\r\n"] || {N, V} <- All, V =/= none],
     "\r\n"].

get({_, Port}, Path) -> get({none, Port}, Path, []).

get(Web, Path, Headers) -> ask(Web, "GET", Path, Headers).

ask({_, Port}, Method, Path, Headers) ->
    Socket = connect(Port),
    ok = gen_tcp:send(Socket, request(Method, Path, [{"Connection", "close"} | Headers])),
    Answer = all(Socket, <<>>),
    gen_tcp:close(Socket),
    answer(Answer).

all(Socket, Before) ->
    case gen_tcp:recv(Socket, 0, 10000) of
        {ok, More} -> all(Socket, <<Before/binary, More/binary>>);
        {error, closed} -> Before
    end.

answer(Text) ->
    [Head, Body] = binary:split(Text, <<"\r\n\r\n">>),
    [Status | Lines] = binary:split(Head, <<"\r\n">>, [global]),
    <<"HTTP/1.1 ", Code:3/binary, _/binary>> = Status,
    Headers = maps:from_list([{string:lowercase(N), string:trim(V)}
                              || [N, V] <- [binary:split(L, <<":">>) || L <- Lines]]),
    {binary_to_integer(Code), Headers, Body}.

code({Code, _, _}) -> Code.

%% A stream, its head read: {socket, what came after}.
stream(Web) -> stream(Web, "/events", []).

stream({_, Port}, Path, Headers) ->
    Socket = connect(Port),
    ok = gen_tcp:send(Socket, request("GET", Path, Headers)),
    read(Socket, <<>>, <<"retry: 1000\n\n">>).

read(Socket, Before, Mark) ->
    case binary:split(Before, Mark) of
        [_, After] -> {Socket, After};
        [_] ->
            {ok, More} = gen_tcp:recv(Socket, 0, 10000),
            read(Socket, <<Before/binary, More/binary>>, Mark)
    end.

%% The next event: {Name, Id, Data}.
event({Socket, Text}) ->
    case binary:split(Text, <<"\n\n">>) of
        [Event, After] ->
            Fields = maps:from_list([{N, V} || [N, V] <- [binary:split(L, <<": ">>)
                                                          || L <- lines(Event)]]),
            {{maps:get(<<"event">>, Fields), maps:get(<<"id">>, Fields, none),
              maps:get(<<"data">>, Fields)}, {Socket, After}};
        [_] ->
            {ok, More} = gen_tcp:recv(Socket, 0, 10000),
            event({Socket, <<Text/binary, More/binary>>})
    end.

lines(Text) -> binary:split(Text, <<"\n">>, [global]).

%% Of what a page is sent, beside that the line is alive.
first(Stream) ->
    case event(Stream) of
        {{<<"heartbeat">>, _, _}, Rest} -> first(Rest);
        {Event, _} -> Event
    end.

events(Stream, N) ->
    lists:mapfoldl(fun(_, S) -> event(S) end, Stream, lists:seq(1, N)).

has(Part, Text) -> ?assertNotEqual({nomatch, Text}, {string:find(Text, Part), Text}).

lacks(Part, Text) -> ?assertEqual({nomatch, Text}, {string:find(Text, Part), Text}).

until(Condition) -> fairnif_test:eventually(Condition).

%% -- who may, and what ------------------------------------------------------------------------

the_page_is_one_file_never_framed_or_kept_test_() ->
    with(fun(Web) ->
                 {Code, Headers, Body} = get(Web, "/"),
                 %% Without Node.js there is no page, and a text says so.
                 case Code of
                     200 -> has(<<"<title>fairnif watch</title>">>, Body),
                            has(<<"script-src 'sha256-">>, Body);
                     503 -> has(<<"make page">>, Body)
                 end,
                 Policy = maps:get(<<"content-security-policy">>, Headers),
                 has(<<"frame-ancestors 'none'">>, Policy),
                 ?assertEqual(<<"nosniff">>, maps:get(<<"x-content-type-options">>, Headers)),
                 ?assertEqual(<<"no-store">>, maps:get(<<"cache-control">>, Headers)),
                 ?assertNot(maps:is_key(<<"access-control-allow-origin">>, Headers))
         end).

without_a_token_only_names_of_this_machine_are_answered_test_() ->
    with(fun(Web) ->
                 Ask = fun(Host) -> code(get(Web, "/view", [{"Host", Host}])) end,
                 [?assertEqual({Host, 200}, {Host, Ask(Host)})
                  || Host <- ["localhost", "LocalHost:80", "127.0.0.1:4711", "127.1.2.3", "[::1]",
                              "[::1]:80"]],
                 [?assertEqual({Host, 403}, {Host, Ask(Host)})
                  || Host <- ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                              "192.168.1.1", "[::2]", "localhost@evil.example", "",
                              "2130706433", "127.1"]],
                 ?assertEqual(400, Ask(none))
         end).

a_script_of_another_site_is_refused_test_() ->
    with(fun(Web) ->
                 Ask = fun(Headers) -> code(get(Web, "/view", Headers)) end,
                 ?assertEqual(403, Ask([{"Origin", "http://evil.example"}])),
                 ?assertEqual(403, Ask([{"Origin", "null"}])),
                 ?assertEqual(403, Ask([{"Sec-Fetch-Site", "cross-site"}])),
                 ?assertEqual(200, Ask([{"Origin", "http://localhost"}])),
                 ?assertEqual(200, Ask([{"Sec-Fetch-Site", "cross-site"},
                                        {"Sec-Fetch-Mode", "navigate"}]))
         end).

%% On the same host, which is the same site to a browser: it sends no Origin for an image.
no_page_of_another_port_of_this_machine_takes_up_streams_test_() ->
    with(fun({_, Port} = Web) ->
                 Others = [[{"Sec-Fetch-Site", Site}, {"Sec-Fetch-Mode", Mode},
                            {"Sec-Fetch-Dest", Dest}]
                           || Site <- ["same-site", "cross-site"],
                              {Mode, Dest} <- [{"no-cors", "image"}, {"navigate", "iframe"},
                                               {"navigate", "document"}, {"cors", "empty"}]],
                 [?assertEqual({Headers, 403}, {Headers, code(get(Web, "/events", Headers))})
                  || Headers <- Others],
                 %% Nor connections: refused, they are closed, though the browser would keep them.
                 Kept = [begin
                             Socket = connect(Port),
                             ok = gen_tcp:send(Socket, request("GET", "/events", hd(Others))),
                             Socket
                         end || _ <- lists:seq(1, 2 * ?STREAMS)],
                 [?assertMatch({_, 403}, {Socket, code(answer(all(Socket, <<>>)))})
                  || Socket <- Kept],
                 Own = [[], [{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}],
                        [{"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Mode", "navigate"}]],
                 [gen_tcp:close(element(1, stream(Web, "/events", Headers))) || Headers <- Own],
                 %% A link to the page is none of that; a frame is.
                 Link = fun(Dest) -> [{"Sec-Fetch-Site", "same-site"},
                                      {"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", Dest}]
                        end,
                 ?assertNotEqual(403, code(get(Web, "/", Link("document")))),
                 ?assertEqual(403, code(get(Web, "/", Link("iframe")))),
                 [gen_tcp:close(Socket) || Socket <- Kept]
         end).

it_can_only_be_read_test_() ->
    with(fun(Web) ->
                 [begin
                      {Code, Headers, _} = ask(Web, Method, "/view", []),
                      ?assertEqual({Method, 405}, {Method, Code}),
                      ?assertEqual(<<"GET, HEAD">>, maps:get(<<"allow">>, Headers))
                  end || Method <- ["POST", "PUT", "DELETE", "PATCH"]],
                 %% inets answers what it does not know itself; OPTIONS it knows from OTP 29 on.
                 [?assert(lists:member(code(ask(Web, Method, "/view", [])), [405, 501]), Method)
                  || Method <- ["OPTIONS", "BREW"]],
                 ?assertEqual(404, code(get(Web, "/etc/passwd"))),
                 ?assertEqual(404, code(get(Web, "/../../../../etc/passwd"))),
                 {200, #{<<"content-length">> := Length}, <<>>} = ask(Web, "HEAD", "/view", []),
                 {200, _, Body} = get(Web, "/view"),
                 ?assertEqual(integer_to_binary(byte_size(Body)), Length)
         end).

off_loopback_it_does_not_start_without_a_token_test() ->
    {error, {http, Text}} = fairnif_watch_web:start_link(#{ip => {0, 0, 0, 0}}),
    has(<<"needs a token">>, Text),
    {error, Six} = fairnif_watch_web:check(#{ip => {0, 0, 0, 0, 0, 0, 0, 0}}),
    has(<<"needs a token">>, Six),
    ?assertEqual(ok, fairnif_watch_web:check(#{ip => {0, 0, 0, 0, 0, 0, 0, 1}, port => 80})),
    ?assertEqual(ok, fairnif_watch_web:check(#{ip => {0, 0, 0, 0}, token => ?TOKEN})),
    [?assertMatch({error, _}, fairnif_watch_web:check(Bad))
     || Bad <- [#{port => 65536}, #{ip => "localhost"}
                | [#{token => Token} || Token <- [<<>>, <<"short">>, "a-token.of_24~characters",
                                                  <<"sixteen letters;">>]]]].

%% Supervisors log the arguments of their children.
the_token_is_in_no_report_test() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    {ok, #{level := Shown}} = logger:get_handler_config(default),
    ok = logger:set_handler_config(default, level, emergency),
    ok = logger:set_primary_config(level, info),
    try
        {Server, _} = with_page([{http_token, ?TOKEN}]),
        true = exit(Server, kill),
        until(fun() -> page() =/= Server andalso is_pid(page()) end),
        ok = application:stop(fairnif_watch)
    after
        stop_applications(),
        ok = logger:set_primary_config(level, Level),
        ok = logger:set_handler_config(default, level, Shown),
        ok = logger:remove_handler(?MODULE)
    end,
    Text = iolist_to_binary(logged()),
    %% The death of a part, among others.
    has(<<"killed">>, Text),
    ?assertEqual(nomatch, string:find(Text, ?TOKEN)).

%% A handler of Logger's.
log(Event, #{config := To}) ->
    To ! {logged, logger_formatter:format(Event, #{})},
    ok.

logged() ->
    receive {logged, Text} -> [unicode:characters_to_binary(Text) | logged()]
    after 500 -> []
    end.

what_cannot_be_listened_at_is_one_sentence_test_() ->
    with(fun({_, Port}) ->
                 {error, {http, Used}} = fairnif_watch_web:start_link(#{port => Port,
                                                                        source => source()}),
                 has(<<"address already in use">>, Used),
                 {error, {http, Bad}} = fairnif_watch_web:start_link(#{ip => localhost}),
                 has(<<"not an IP address">>, Bad),
                 {error, {http, None}} =
                     fairnif_watch_web:start_link(
                       #{source => #{subscribe => fun(_) -> {error, too_many} end,
                                     unsubscribe => fun(_) -> ok end}}),
                 has(<<"too_many">>, None)
         end).

with_a_token_each_way_to_bring_it_does_and_nothing_else_test_() ->
    with(#{token => ?TOKEN, ip => {0, 0, 0, 0}},
         fun(Web) ->
                 Ask = fun(Path, Headers) -> code(get(Web, Path, [{"Host", "any.example:81"}
                                                                  | Headers])) end,
                 Bearer = "Bearer " ++ binary_to_list(?TOKEN),
                 [?assertEqual({Path, 401}, {Path, Ask(Path, [])})
                  || Path <- ["/", "/view", "/events", "/metrics", "/other"]],
                 ?assertEqual(200, Ask("/view", [{"Authorization", Bearer}])),
                 [?assertEqual({Wrong, 401}, {Wrong, Ask("/view", [Wrong])})
                  || Wrong <- [{"Authorization", Bearer ++ "x"},
                               {"Authorization", lists:droplast(Bearer)},
                               {"Authorization", "Basic " ++ binary_to_list(?TOKEN)},
                               {"Cookie", "fairnif_watch_82=" ++ binary_to_list(?TOKEN)},
                               {"Cookie", "fairnif_watch_81=wrong"}]],
                 ?assertEqual(401, Ask("/?token=wrong", [])),
                 {303, Headers, _} = get(Web, ["/?token=", ?TOKEN], [{"Host", "any.example:81"}]),
                 ?assertEqual(<<"/">>, maps:get(<<"location">>, Headers)),
                 Cookie = maps:get(<<"set-cookie">>, Headers),
                 has(<<"HttpOnly">>, Cookie),
                 [Pair | _] = binary:split(Cookie, <<";">>),
                 ?assertEqual(200, Ask("/view", [{"Cookie", ["other=1; ", Pair]}])),
                 ?assertEqual(403, Ask("/view", [{"Authorization", Bearer},
                                                 {"Origin", "http://evil.example"}]))
         end).

no_process_that_crashes_prints_the_token_test_() ->
    with(#{token => ?TOKEN},
         fun({Server, _}) ->
                 {links, Links} = process_info(Server, links),
                 Printed = [io_lib:format("~p", [supervisor:which_children(Pid)])
                            || Pid <- Links, Pid =/= self()]
                     ++ [io_lib:format("~p", [ets:tab2list(Table)])
                         || Table <- ets:all(), is_atom(Table),
                            lists:prefix("httpd_conf", atom_to_list(Table))],
                 has("fairnif_watch_web_http", lists:flatten(Printed)),
                 lacks(binary_to_list(?TOKEN), lists:flatten(Printed))
         end).

requests_of_any_size_are_cut_off_test_() ->
    with(fun(Web) ->
                 Long = lists:duplicate(20000, $a),
                 ?assertEqual(414, code(get(Web, ["/", Long]))),
                 ?assertEqual(413, code(get(Web, "/", [{"X-Long", Long}]))),
                 ?assertEqual(413, code(get(Web, "/", [{"Content-Length", "100000000000"}])))
         end).

%% -- the stream -------------------------------------------------------------------------------

a_page_gets_everything_then_what_happens_test_() ->
    with(fun(Web) ->
                 tell(Web, {view, view(1, [finding(1, <<"first">>)])}),
                 {[{<<"state">>, _, State}], S1} = events(stream(Web), 1),
                 has(<<"\"sentence\":\"first\"">>, State),
                 has(<<"\"busy\":[[50]]">>, State),
                 tell(Web, {finding, finding(2, <<"second">>)}),
                 {[{<<"finding">>, _, Finding}], S2} = events(S1, 1),
                 has(<<"second">>, Finding),
                 %% The view has both, of which one is known; and one that no message announced.
                 tell(Web, {view, view(2, [finding(3, <<"third">>), finding(2, <<"second">>),
                                           finding(1, <<"first">>)])}),
                 {[{<<"finding">>, _, Third}, {<<"view">>, _, View}], _} = events(S2, 2),
                 has(<<"third">>, Third),
                 lacks(<<"findings">>, View)
         end).

who_comes_back_gets_what_was_missed_and_no_more_test_() ->
    with(fun(Web) ->
                 tell(Web, {view, view(1)}),
                 {[{_, _, _}], S1} = events(stream(Web), 1),
                 [tell(Web, {finding, finding(N, <<"x">>)}) || N <- [1, 2, 3]],
                 {[{_, First, _}, _, {_, Last, _}], {Socket, _}} = events(S1, 3),
                 gen_tcp:close(Socket),
                 tell(Web, {finding, finding(4, <<"missed">>)}),
                 Back = fun(Path, Headers, N) ->
                                {Events, {S, _}} = events(stream(Web, Path, Headers), N),
                                gen_tcp:close(S),
                                [{Name, Data} || {Name, _, Data} <- Events]
                        end,
                 [{<<"finding">>, Missed}] = Back("/events", [{"Last-Event-ID", Last}], 1),
                 has(<<"missed">>, Missed),
                 ?assertMatch([{<<"finding">>, _}, {<<"finding">>, _}, {<<"finding">>, Missed}],
                              Back(["/events?after=", First], [], 3)),
                 %% What is not known here, whatever it says, is answered with all of it.
                 [?assertMatch([{<<"state">>, _}], Back("/events", [{"Last-Event-ID", Odd}], 1))
                  || Odd <- ["", "x", "0-1", [Last, "0"], "-1", [First, "-"], <<255, 254>>]]
         end).

a_page_far_behind_gets_everything_again_test_() ->
    with(fun(Web) ->
                 tell(Web, {view, view(1)}),
                 {[{_, First, _}], S1} = events(stream(Web), 1),
                 [tell(Web, {finding, finding(N, binary:copy(<<"x">>, 3000))})
                  || N <- lists:seq(1, 600)],
                 gen_tcp:close(element(1, S1)),
                 ?assertMatch({<<"state">>, _, _},
                              first(stream(Web, "/events", [{"Last-Event-ID", First}])))
         end).

while_nothing_happens_the_line_is_heard_to_be_alive_test_() ->
    with(fun(Web) ->
                 {[{<<"state">>, _, _}, {<<"heartbeat">>, none, _},
                   {<<"heartbeat">>, none, _}], _} =
                     events(stream(Web), 3)
         end).

a_reader_that_does_not_read_is_dropped_and_costs_nothing_test_() ->
    with(fun({Server, Port} = Web) ->
                 tell(Web, {view, view(1)}),
                 Slow = connect(Port, [{recbuf, 4096}]),
                 ok = gen_tcp:send(Slow, request("GET", "/events", [])),
                 Monitors = fun() -> element(2, process_info(Server, monitors)) end,
                 until(fun() -> Monitors() =/= [] end),
                 [{process, Connection}] = Monitors(),
                 %% 5 MB a second: more than sockets and buffers hold, for as long as it lasts.
                 {Us, Most} = timer:tc(fun() ->
                                               flood(Web, Connection, binary:copy(<<"x">>, 10000),
                                                     1, 0)
                                       end),
                 ?assertEqual([], Monitors()),
                 ?assert(Most < 5000000, Most),
                 ?assert(Us > 3000000, Us),
                 gen_tcp:close(Slow)
         end).

%% Until the connection is gone; the most memory that it and the server had until then.
flood(_, _, _, 3000, Most) ->
    error({still_there, Most});
flood({Server, _} = Web, Connection, Big, N, Most) ->
    [tell(Web, {finding, finding(10 * N + I, Big)}) || I <- lists:seq(1, 10)],
    timer:sleep(20),
    Info = [I || Pid <- [Server, Connection],
                 I <- [process_info(Pid, [memory, message_queue_len])], I =/= undefined],
    %% As many as come in two seconds, in which a busy machine may give no processor; a server that
    %% waits for this reader would do so for five.
    [?assert(length(Info) < 2 orelse Queue < 1000, Queue)
     || [_, {message_queue_len, Queue}] <- Info],
    Now = max(Most, lists:sum([Bytes || [{memory, Bytes}, _] <- Info])),
    case is_process_alive(Connection) of
        true -> flood(Web, Connection, Big, N + 1, Now);
        false -> until(fun() -> process_info(Server, monitors) =:= {monitors, []} end),
                 Now
    end.

more_pages_than_there_is_room_for_get_an_error_test_() ->
    with(fun({Server, _} = Web) ->
                 Streams = [stream(Web) || _ <- lists:seq(1, ?STREAMS)],
                 {503, Headers, Body} = get(Web, "/events"),
                 has(<<"Too many">>, Body),
                 ?assertEqual(<<"10">>, maps:get(<<"retry-after">>, Headers)),
                 %% The rest is answered as before.
                 ?assertEqual(200, code(get(Web, "/view"))),
                 tell(Web, {view, view(1)}),
                 [?assertMatch({{<<"state">>, _, _}, _}, event(S)) || S <- Streams],
                 %% Who leaves is noticed though nothing is sent to him.
                 [gen_tcp:close(Socket) || {Socket, _} <- Streams],
                 until(fun() -> process_info(Server, monitors) =:= {monitors, []} end),
                 ?assertMatch({[{<<"state">>, _, _}], _}, events(stream(Web), 1))
         end).

stopped_it_leaves_nothing_behind_test_() ->
    {timeout, 60,
     fun() ->
             %% What httpd's modules do once, when they are loaded.
             stop(start()),
             drain(),
             fairnif_test:retry(3, fun stopped/0)
     end}.

stopped() ->
    Before = here(),
    {Server, Port} = Web = start(),
    %% In this order: a connection that is being accepted while its server stops holds that up for
    %% 4 s, within inets. On a busy machine one may be, all the same.
    Idle = [connect(Port) || _ <- lists:seq(1, 5)],
    Streams = [stream(Web) || _ <- lists:seq(1, 5)],
    {Us, ok} = timer:tc(fun() -> stop({Server, Port}) end),
    receive unsubscribed -> ok after 0 -> error(still_subscribed) end,
    drain(),
    [?assertMatch({error, _}, drained(Socket)) || {Socket, _} <- Streams],
    [gen_tcp:close(Socket) || Socket <- Idle ++ [S || {S, _} <- Streams]],
    %% What is refused may be reset, while the system is not done with the socket.
    until(fun() -> gen_tcp:connect({127, 0, 0, 1}, Port, []) =:= {error, econnrefused} end),
    until(fun() -> here() =:= Before end),
    case Us < 3000000 of
        true -> ok;
        false -> {took_us, Us}
    end.

drained(Socket) ->
    case gen_tcp:recv(Socket, 0, 5000) of
        {ok, _} -> drained(Socket);
        Error -> Error
    end.

here() ->
    {length(processes()), length(erlang:ports()), length(ets:all()), lists:sort(registered())}.

%% -- of the application -----------------------------------------------------------------------

the_application_serves_its_own_node_when_configured_to_test_() ->
    {timeout, 60,
     fun() ->
             try
                 Web = with_page([]),
                 {200, _, Metrics} = get(Web, "/metrics"),
                 has(<<"# TYPE ">>, Metrics),
                 Name = atom_to_binary(node()),
                 until(fun() -> {200, _, View} = get(Web, "/view"),
                                string:find(View, Name) =/= nomatch end),
                 {{<<"state">>, _, State}, Stream} = event(stream(Web)),
                 has(Name, State),
                 Shown = sees(<<"\"schedulers\":">>, Stream),
                 %% And still does so when the watch starts again.
                 Old = whereis(fairnif_watch_collector),
                 true = exit(Old, kill),
                 until(fun() -> not lists:member(whereis(fairnif_watch_collector),
                                                 [Old, undefined]) end),
                 #{started := Started} = fairnif_watch:view(),
                 _ = sees(<<"\"started\":", (integer_to_binary(Started))/binary>>, Shown)
             after
                 stop_applications()
             end
     end}.

with_page(Settings) ->
    ok = application:load(fairnif_watch_console),
    [ok = application:set_env(fairnif_watch_console, Key, Value)
     || {Key, Value} <- [{http, {{127, 0, 0, 1}, 0}} | Settings]],
    {ok, _} = application:ensure_all_started(fairnif_watch_console),
    Server = page(),
    {Server, port(fairnif_watch_web:url(Server))}.

page() ->
    [{page, Page, _, _}] = supervisor:which_children(fairnif_watch_console),
    [{web, Web, _, _}] = supervisor:which_children(Page),
    Web.

stop_applications() ->
    [begin
         _ = application:stop(Application),
         ok = application:unload(Application)
     end || Application <- [fairnif_watch_console, fairnif_watch]].

%% Others may come before it: a finding, a heartbeat.
sees(Part, Stream) ->
    case event(Stream) of
        {{_, _, Data}, Next} ->
            case binary:match(Data, Part) of
                nomatch -> sees(Part, Next);
                _ -> Next
            end
    end.

a_page_that_cannot_be_served_does_not_keep_the_watch_from_starting_test_() ->
    with(fun({_, Port}) ->
                 application:set_env(fairnif_watch_console, http, {{127, 0, 0, 1}, Port}),
                 ?assertEqual(ignore, fairnif_watch_console:start_page()),
                 application:unset_env(fairnif_watch_console, http)
         end).

a_setting_that_is_not_allowed_keeps_the_page_from_starting_test_() ->
    [fun() ->
             _ = application:load(fairnif_watch_console),
             [application:set_env(fairnif_watch_console, Key, Value) || {Key, Value} <- Settings],
             {error, Why} = application:ensure_all_started(fairnif_watch_console),
             has(Said, lists:flatten(io_lib:format("~p", [Why]))),
             stop_applications()
     end || {Settings, Said} <-
                [{[{http, 8080}], "{Address, Port}"},
                 {[{http, {"localhost", 80}}], "is not an IP address"},
                 {[{http, {{0, 0, 0, 0}, 80}}], "needs a token"},
                 {[{https, on}], "no such setting"}]].
