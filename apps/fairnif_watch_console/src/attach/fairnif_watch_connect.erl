%% The watching node's way to other nodes: starts distribution, gives each node its cookie,
%% connects, and says in one sentence why a connection does not come about.
%%
%% The node that is started is hidden and does not listen: it is in no node's nodes(), in no epmd,
%% and no node can connect to it. It must never write the user's cookie file nor show a cookie.
-module(fairnif_watch_connect).

-export([start/2, node_name/1, cookie/1, connect/2, why_unreachable/3, inet_addresses/1]).

-export_type([cookie_source/0, outcome/0]).

-type cookie_source() :: {text, string()} | {file, file:name_all()} | default.
%% `closed': the other side ended it; `late': it did not end what it had begun.
-type outcome() :: connected | closed | late.

%% Each step that looks for the reason of a failure, in milliseconds.
-define(PROBE_MS, 2000).
%% What the distribution's handshake may take, in seconds (OTP's own default is 7).
-define(SETUP_S, 5).
%% A timer of ours ends a connection no sooner than this much before that.
-define(SLACK_MS, 100).
%% What OTP 25 says of itself in a handshake, all that OTP 26 to 29 insist on among it.
-define(FLAGS, 16#1d07df7fbc).

%% @doc The name of a node as it stands on a command line: `name@host'; without a host it is this
%% machine's, short.  Names whose host holds a point or a colon are long ones, as OTP has it: nodes
%% with long names talk to no other.  Costs nothing but, without a host, one look-up of its name.
-spec node_name(string()) -> {ok, node(), shortnames | longnames} | {error, unicode:chardata()}.
node_name(Text) ->
    case string:split(Text, "@", all) of
        [Name] -> node_name(Name, short_host());
        [Name, Host] -> node_name(Name, Host);
        _ -> {error, ["`", Text, "' is not the name of a node"]}
    end.

node_name(Name, Host) ->
    Full = Name ++ "@" ++ Host,
    Sound = re:run(Name, "^[0-9A-Za-z_\\-]+\\z", [unicode]) =/= nomatch
        andalso re:run(Host, "^[^@\\s]+\\z", [unicode]) =/= nomatch
        andalso length(Full) < 256,
    case Sound of
        true -> {ok, list_to_atom(Full), form(Host)};
        false -> {error, ["`", Full, "' is not the name of a node"]}
    end.

form(Host) ->
    case lists:any(fun(C) -> C =:= $. orelse C =:= $: end, Host) of
        true -> longnames;
        false -> shortnames
    end.

short_host() ->
    {ok, Host} = inet:gethostname(),
    hd(string:split(Host, ".")).

%% @doc The cookie: the text given, or the first line of a file; by default of the user's
%% `.erlang.cookie', which is read and never made.  Only files are read.
-spec cookie(cookie_source()) -> {ok, atom()} | {error, unicode:chardata()}.
cookie({text, Text}) ->
    as_cookie(Text, "the cookie");
cookie({file, File}) ->
    case file:read_file(File) of
        {ok, Bin} -> as_cookie(first_line(Bin), ["the cookie in ", File]);
        {error, Why} -> {error, ["cannot read ", File, ": ", file:format_error(Why)]}
    end;
cookie(default) ->
    Home = filename:join(os:getenv("HOME", "/"), ".erlang.cookie"),
    Config = filename:join(filename:basedir(user_config, "erlang"), ".erlang.cookie"),
    case [F || F <- [Home, Config], filelib:is_regular(F)] of
        [File | _] -> cookie({file, File});
        [] -> {error, ["there is no cookie: no ", Home, ", and none was given (FAIRNIF_COOKIE, "
                       "--cookie-file, --cookie)"]}
    end.

first_line(Bin) ->
    [Line | _] = binary:split(Bin, [<<"\r">>, <<"\n">>]),
    unicode:characters_to_list(Line).

as_cookie(Text, What) ->
    case is_list(Text) andalso length(Text) of
        N when is_integer(N), N > 0, N < 256 -> {ok, list_to_atom(Text)};
        false -> {error, [What, " is not text"]};
        0 -> {error, [What, " is empty"]};
        _ -> {error, [What, " is longer than 255 characters"]}
    end.

%% @doc Makes this a hidden node that does not listen. The name, unless one is given, is one that no
%% other has: some nodes admit certain names only (`net_kernel:allow/1'). Connections are made by
%% `connect/2' alone: a stray message to a node that hangs makes none.
-spec start(shortnames | longnames, default | node()) -> ok | {error, unicode:chardata()}.
start(Form, Name) ->
    ok = application:set_env(kernel, dist_auto_connect, never),
    ok = application:set_env(kernel, net_setuptime, ?SETUP_S),
    Chosen = case Name of default -> own_name(Form); _ -> Name end,
    Options = #{name_domain => Form, hidden => true, dist_listen => false},
    case net_kernel:start(Chosen, Options) of
        {ok, _} -> ok;
        {error, Why} ->
            {error, io_lib:format("cannot start distribution as ~ts: ~0tP~ts",
                                  [Chosen, Why, 8, tls_hint()])}
    end.

tls_hint() ->
    case tls() of
        true -> " (is the file of TLS options sound?)";
        false -> ""
    end.

own_name(Form) ->
    Unique = io_lib:format("fairnif_watch_~s_~.36b", [os:getpid(), rand:uniform(1 bsl 40)]),
    list_to_atom(lists:flatten([Unique, $@, own_host(Form)])).

%% No node connects to us by it: it only has to have the right form.
own_host(shortnames) -> short_host();
own_host(longnames) ->
    {ok, Host} = inet:gethostname(),
    Domain = case inet_db:res_option(domain) of
                 "" -> "";
                 D -> "." ++ D
             end,
    case form(Host ++ Domain) of
        longnames -> Host ++ Domain;
        shortnames -> "127.0.0.1"
    end.

%% @doc Connects to a node, with this cookie.  Takes at most some seconds; only the calling process
%% waits.  Where it fails, `why_unreachable/3' says what was wrong.
-spec connect(node(), atom()) -> outcome().
connect(Node, Cookie) ->
    true = erlang:set_cookie(Node, Cookie),
    Begin = erlang:monotonic_time(millisecond),
    Connected = net_kernel:connect_node(Node),
    case erlang:monotonic_time(millisecond) - Begin of
        _ when Connected =:= true -> connected;
        Ms when Ms < ?SETUP_S * 1000 - ?SLACK_MS -> closed;
        _ -> late
    end.

%% @doc Why there is no connection: `gone' when its machine says that no such node runs there,
%% `down' when the machine or the node cannot be reached, `hanging' when it is there and says
%% nothing, or does not end what it begins, `refused' when it refuses us; and a sentence. Looks
%% itself, so it takes up to some seconds. How a connection ended it cannot see for itself: a node
%% with a blocked scheduler may greet at once and never look at the cookie.
-spec why_unreachable(node(), shortnames | longnames, closed | late) ->
          {gone | down | hanging | refused, unicode:chardata()}.
why_unreachable(Node, Form, Ended) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    case inet_addresses(Host) of
        [] -> {down, ["the host ", Host, " is not known here"]};
        [Address | _] -> at_epmd(Name, Host, Address, {Form, Ended})
    end.

%% @doc Of a host, as far as its name is known here: one of each kind.
-spec inet_addresses(string()) -> [inet:ip_address()].
inet_addresses(Host) ->
    [A || Family <- [inet, inet6], {ok, A} <- [inet:getaddr(Host, Family)]].

at_epmd(Name, Host, Address, How) ->
    case erl_epmd:port_please(Name, Address, ?PROBE_MS) of
        {port, Port, _} -> at_port(Name, Host, Address, Port, How);
        noport -> no_such_node(Name, Host, Address);
        closed -> no_epmd(Host)
    end.

no_epmd(Host) ->
    {down, ["what answers at ", Host, ":", integer_to_list(epmd_port()),
            " closes the connection: it is not epmd"]}.

no_such_node(Name, Host, Address) ->
    case within(fun() -> erl_epmd:names(Address) end) of
        {ok, []} ->
            case is_epmd(Address) of
                true -> {gone, ["no node runs on ", Host, ", says its epmd"]};
                false -> no_epmd(Host)
            end;
        {ok, Names} ->
            {gone, ["no node ", Name, " runs on ", Host, "; there are: ",
                    lists:join(", ", lists:sort([N || {N, _} <- Names]))]};
        _ ->
            {down, ["no epmd answers at ", Host, ":", integer_to_list(epmd_port()),
                    ", so no node is found there"]}
    end.

%% To erl_epmd:names/1 a connection that is closed without a word is one without names, too.
is_epmd(Address) ->
    Options = [binary, {active, false}],
    case gen_tcp:connect(Address, epmd_port(), Options, ?PROBE_MS) of
        {ok, Socket} ->
            _ = gen_tcp:send(Socket, <<1:16, $n>>),             % NAMES_REQ
            Said = gen_tcp:recv(Socket, 4, ?PROBE_MS),          % its own port comes first
            ok = gen_tcp:close(Socket),
            element(1, Said) =:= ok;
        {error, _} ->
            false
    end.

epmd_port() ->
    try list_to_integer(os:getenv("ERL_EPMD_PORT", "4369"))
    catch error:badarg -> 4369
    end.

within(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({said, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {said, Answer}} -> Answer;
        {'DOWN', Ref, process, Pid, _} -> failed
    after ?PROBE_MS ->
        true = erlang:demonitor(Ref, [flush]),
        exit(Pid, kill),
        late
    end.

at_port(Name, Host, Address, Port, How) ->
    Where = io_lib:format("~ts (port ~b of ~ts, says epmd)", [Name, Port, Host]),
    case gen_tcp:connect(Address, Port, [binary, {active, false}, {packet, 2}], ?PROBE_MS) of
        {ok, Socket} ->
            Said = greet(Socket),
            ok = gen_tcp:close(Socket),
            verdict(Said, Name ++ "@" ++ Host, Where, How);
        {error, timeout} ->
            {hanging, [Where, " accepts no connection: it hangs, or something is between"]};
        {error, Why} ->
            {down, [Where, " cannot be reached: ", inet:format_error(Why)]}
    end.

%% The first words of the distribution's handshake, as its protocol has them since OTP 23: enough to
%% know whether an Erlang node without TLS is there, what it calls itself and whether it would have
%% us. It is left before the cookie comes up, so that no secret is part of it.
greet(Socket) ->
    Name = atom_to_binary(node()),
    Hello = <<$N, ?FLAGS:64, 0:32, (byte_size(Name)):16, Name/binary>>,
    case gen_tcp:send(Socket, Hello) of
        ok -> greeted(gen_tcp:recv(Socket, 0, ?PROBE_MS), Socket);
        {error, _} = Error -> Error
    end.

greeted({ok, <<"sok", _/binary>>}, Socket) ->
    case gen_tcp:recv(Socket, 0, ?PROBE_MS) of
        {ok, <<$N, _Flags:64, _Challenge:32, _Creation:32, Size:16, Name:Size/binary, _/binary>>} ->
            {named, unicode:characters_to_list(Name)};
        Other -> Other
    end;
greeted(Other, _) ->
    Other.

verdict({named, Other}, Node, Where, _) when Other =/= Node ->
    {refused, [Where, " calls itself ", Other, ": give that name"]};
verdict({ok, <<"snot_allowed">>}, _, Where, _) ->
    {refused, [Where, " admits only nodes with certain names (net_kernel:allow/1); give --name"]};
verdict({error, timeout}, _, Where, _) ->
    {hanging, [Where, " accepts a connection and says nothing: it hangs"]};
%% One that greets without TLS has no use for ours.
verdict({named, _}, _, Where, {_, Ended}) ->
    case Ended =:= closed orelse tls() of
        true -> turned_down(Where);
        false -> unfinished(Where)
    end;
%% `nok', `alive': it still has an earlier one of ours.
verdict({ok, <<"s", _/binary>>}, _, Where, _) ->
    unfinished(Where);
verdict(_, _, Where, {_, late}) ->
    unfinished(Where);
verdict(_, _, Where, {Form, closed}) ->
    Other = case Form of
                longnames -> "short";
                shortnames -> "long"
            end,
    Tls = case tls() of
              true -> "does it use TLS distribution, with these certificates";
              false -> "does it use TLS distribution (--tls FILE)"
          end,
    {refused, [Where, " closes the connection: ", Tls, ", or does it have a ", Other, " name?"]}.

unfinished(Where) ->
    {hanging, [Where, " takes a connection and does not finish it: is a scheduler blocked?"]}.

turned_down(Where) ->
    case tls() of
        true -> {refused, [Where, " uses no TLS distribution: leave out --tls"]};
        false -> {refused, [Where, " does not take this cookie"]}
    end.

tls() ->
    case init:get_argument(proto_dist) of
        {ok, [["inet_tls"] | _]} -> true;
        {ok, [["inet6_tls"] | _]} -> true;
        _ -> false
    end.
