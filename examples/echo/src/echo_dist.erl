%% An echo by another node on this machine: in C, in Java, in Erlang. {Pid, Ref, Bin} is answered
%% with {Ref, Bin}.
%%
%% Everything stays on the loopback interface, without epmd (see echo_epmd): the node that calls
%% must have been started with flags/0. It does not listen itself. Cookies are random, one for each
%% of the others, and are not shown in any command line.
-module(echo_dist).

-export([flags/0, echo/2]).
-export([open_c/0, open_java/0, close_program/1, java/0]).
-export([open_erlang/0, close_erlang/1]).
-export([erl/0, listen/1]).

-export_type([remote/0, program/0]).

-type remote() :: pid() | {atom(), node()}.
-type program() :: {remote(), Name :: string(), port()}.

-define(LIMIT_MS, 5000).
-define(START_MS, 30000).
-define(HOST, "@localhost").

%% @doc With these a node is started that is to open any of these.
-spec flags() -> [string()].
flags() ->
    %% This cookie opens nothing: the node does not listen. With none auth would look for the
    %% user's file, and make one.
    ["-setcookie", "none" | flags_of_all()].

flags_of_all() ->
    ["-start_epmd", "false", "-epmd_module", "echo_epmd",
     "-kernel", "inet_dist_use_interface", "{127,0,0,1}"].

%% @doc The bytes as the other one sends them back; error `timeout' after 5 s.
-spec echo(remote(), binary()) -> binary().
echo(Remote, Bin) ->
    Ref = make_ref(),
    Remote ! {self(), Ref, Bin},
    receive {Ref, Answer} -> Answer after ?LIMIT_MS -> error(timeout) end.

%% ---- programs ----

%% @doc Starts the C node and connects to it.
-spec open_c() -> program().
open_c() ->
    connected("echo_c", echo_program:path("echo_node"), []).

%% @doc The same in Java; java/0 says whether there is one. Takes half a second.
-spec open_java() -> program().
open_java() ->
    {ok, Java, ClassPath} = java(),
    connected("echo_java", Java, ["-cp", ClassPath, "EchoNode"]).

%% @doc The command and the class path, or why there are none.
-spec java() -> {ok, file:filename(), string()} | {left_out, string()}.
java() ->
    Class = echo_program:path("EchoNode.class"),
    case {os:find_executable("java"), jinterface(), filelib:is_file(Class)} of
        {false, _, _} -> {left_out, "no java"};
        {_, false, _} -> {left_out, "no Jinterface (Debian: erlang-jinterface)"};
        {Java, Jar, true} -> {ok, Java, Jar ++ ":" ++ filename:dirname(Class)};
        {_, _, false} ->
            {left_out, case os:find_executable("javac") of
                           false -> "no javac";
                           _ -> "EchoNode.java was not compiled: make compile"
                       end}
    end.

jinterface() ->
    case code:lib_dir(jinterface) of
        {error, _} -> false;
        Dir ->
            Jar = filename:join([Dir, "priv", "OtpErlang.jar"]),
            filelib:is_file(Jar) andalso Jar
    end.

connected(Kind, Path, Args) ->
    distributed(),
    Port = echo_program:start(Path, Args, [{line, 100}]),
    try
        Name = Kind ++ integer_to_list(echo_program:os_pid(Port)),
        Cookie = cookie(),
        true = port_command(Port, [Name, $\s, Cookie, $\n]),
        Node = joined(Name, binary_to_integer(echo_program:line(Port)), Cookie),
        {{echo, Node}, Name, Port}
    catch
        Class:Reason:Stack ->
            echo_program:stop(Port),
            erlang:raise(Class, Reason, Stack)
    end.

%% @doc Disconnects, which ends the program.
-spec close_program(program()) -> ok.
close_program({{_, Node}, Name, Port}) ->
    _ = erlang:disconnect_node(Node),
    echo_epmd:forget(Name),
    echo_program:stop(Port).

%% ---- another Erlang node ----

%% @doc Starts it and connects to it; with its number at the operating system. It ends with the
%% calling process.
-spec open_erlang() -> {{pid(), string(), pid()}, non_neg_integer()}.
open_erlang() ->
    distributed(),
    %% There auth makes the node's cookie, for the owner's eyes only.
    Home = temporary(),
    ok = file:make_dir(Home),
    try open_erlang(Home)
    after file:del_dir_r(Home)
    end.

open_erlang(Home) ->
    {ok, Control, _} =
        peer:start_link(#{connection => standard_io, wait_boot => ?START_MS, exec => erl(),
                          env => [{"HOME", Home}],
                          args => ["-pa", filename:dirname(code:which(?MODULE))
                                   | flags_of_all()]}),
    OsPid = list_to_integer(peer:call(Control, os, getpid, [])),
    Name = "echo_erlang" ++ integer_to_list(OsPid),
    {Port, Cookie, Echo} = peer:call(Control, ?MODULE, listen, [Name], ?START_MS),
    _ = joined(Name, Port, atom_to_list(Cookie)),
    {{Echo, Name, Control}, OsPid}.

%% @doc The command of this VM; the name it was started by may be an escript's.
-spec erl() -> file:filename().
erl() ->
    filename:join([code:root_dir(), "bin", "erl"]).

%% @doc Disconnects and ends that node.
-spec close_erlang({pid(), string(), pid()}) -> ok.
close_erlang({Echo, Name, Control}) ->
    _ = erlang:disconnect_node(node(Echo)),
    echo_epmd:forget(Name),
    unlink(Control),
    peer:stop(Control).

%% @private In the other node: where it listens, its cookie, and the process that answers.
-spec listen(string()) -> {inet:port_number(), atom(), pid()}.
listen(Name) ->
    {ok, _} = net_kernel:start(list_to_atom(Name ++ ?HOST),
                               #{name_domain => shortnames, hidden => true}),
    {echo_epmd:own_port(), erlang:get_cookie(), spawn(fun answer/0)}.

answer() ->
    receive {From, Ref, Bin} -> From ! {Ref, Bin} end,
    answer().

%% ---- distribution ----

distributed() ->
    case {init:get_argument(epmd_module), is_alive()} of
        {{ok, [["echo_epmd"]]}, true} ->
            ok;
        {{ok, [["echo_epmd"]]}, false} ->
            Me = list_to_atom("echo" ++ os:getpid() ++ ?HOST),
            {ok, _} = net_kernel:start(Me, #{name_domain => shortnames, dist_listen => false,
                                             hidden => true}),
            ok;
        _ ->
            error({flags_missing, flags()})
    end.

joined(Name, Port, Cookie) ->
    Node = list_to_atom(Name ++ ?HOST),
    echo_epmd:tell(Name, Port),
    true = erlang:set_cookie(Node, list_to_atom(Cookie)),
    case net_kernel:connect_node(Node) of
        true -> Node;
        _ -> error({not_connected, Node})
    end.

cookie() ->
    binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(16))).

temporary() ->
    Name = io_lib:format("fairnif-echo-~s-~b", [os:getpid(), erlang:unique_integer([positive])]),
    filename:join(os:getenv("TMPDIR", "/tmp"), lists:flatten(Name)).
