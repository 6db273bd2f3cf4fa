%% `fairnif watch' against real nodes: attaching, what is left afterwards, nodes that hang, leave
%% and are replaced, and the live view on a pseudo-terminal.
-module(fairnif_watch_attach_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).

-export([leaves_a_node_as_it_was/1, leaves_it_so_when_killed/1,
         leaves_it_so_when_the_connection_is_lost_and_comes_back/1,
         leaves_it_so_when_nothing_is_heard_of_the_watcher/1,
         leaves_what_a_node_had_loaded_itself/1, ends_with_its_janitor/1,
         attaches_by_long_names/1, attaches_over_tls/1,
         says_why_there_is_no_connection/1, says_what_is_no_epmd/1,
         refuses_options_that_have_no_effect/1, shows_the_cookie_to_nobody/1,
         subscribes_where_the_application_runs/1, gives_way_to_the_application/1,
         waits_for_a_node_that_is_starting/1, two_watchers_share_what_is_brought/1,
         brings_nothing_over_another_version/1, brings_no_native_part_when_told/1,
         goes_on_without_a_native_part_that_cannot_be_loaded/1,
         takes_back_what_a_node_cannot_load/1,
         a_node_that_hangs_goes_and_is_replaced_is_told/1,
         waits_for_a_node_whose_scheduler_is_held/1,
         follows_the_nodes_that_one_knows_and_is_in_nobodys_nodes/1,
         one_look_keeps_to_its_schema/1, tests_the_watch_of_a_node/1,
         shows_a_screen_and_puts_the_terminal_back/1,
         puts_the_terminal_back_when_it_is_killed/1, writes_lines_where_no_terminal_is/1,
         ends_quietly_where_nobody_reads/1]).

-define(COOKIE, "suite_cookie").

suite() -> [{timetrap, {seconds, 90}}].

all() ->
    [{group, command}, {group, inside}].

%% What the command is for; and what needs to look inside, from this node.
groups() ->
    [{command, [],
      [leaves_a_node_as_it_was, leaves_it_so_when_killed,
       leaves_it_so_when_the_connection_is_lost_and_comes_back,
       leaves_what_a_node_had_loaded_itself, ends_with_its_janitor,
       attaches_by_long_names, attaches_over_tls, says_why_there_is_no_connection,
       says_what_is_no_epmd, refuses_options_that_have_no_effect,
       shows_the_cookie_to_nobody, subscribes_where_the_application_runs,
       gives_way_to_the_application, two_watchers_share_what_is_brought,
       brings_nothing_over_another_version,
       brings_no_native_part_when_told, one_look_keeps_to_its_schema, tests_the_watch_of_a_node,
       shows_a_screen_and_puts_the_terminal_back, puts_the_terminal_back_when_it_is_killed,
       writes_lines_where_no_terminal_is, ends_quietly_where_nobody_reads]},
     {inside, [],
      [leaves_it_so_when_nothing_is_heard_of_the_watcher,
       goes_on_without_a_native_part_that_cannot_be_loaded, takes_back_what_a_node_cannot_load,
       a_node_that_hangs_goes_and_is_replaced_is_told, waits_for_a_node_whose_scheduler_is_held,
       waits_for_a_node_that_is_starting,
       follows_the_nodes_that_one_knows_and_is_in_nobodys_nodes]}].

init_per_suite(Config) ->
    Root = root(filename:dirname(code:which(?MODULE))),
    [{root, Root}, {fairnif, filename:join([Root, "bin", "fairnif"])} | Config].

end_per_suite(_) ->
    ok.

end_per_testcase(_, _) ->
    _ = net_kernel:stop(),
    ok.

root("/") -> error(no_root);
root(Folder) ->
    case filelib:is_regular(filename:join([Folder, "bin", "fairnif"])) of
        true -> Folder;
        false -> root(filename:dirname(Folder))
    end.

%% ---- what is left ----

leaves_a_node_as_it_was(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    Taints = peer:call(Peer, erlang, system_info, [taints]),
    {0, Text} = watch(Config, [Node, "--once", "--seconds", "1"]),
    {match, _} = re:run(Text, "1 of 1 nodes seen for 1 s: 0 findings"),
    as_before(Peer, Before),
    %% What the manual says that stays.
    ?assertEqual([fairnif_watch_native, fairnif_watch_probe],
                 lists:sort(peer:call(Peer, erlang, system_info, [taints]) -- Taints)).

%% Its own code, not running: what is started is ended, and no module is taken.
leaves_what_a_node_had_loaded_itself(Config) ->
    {Peer, Node} = node_up(Config, #{args => paths()}),
    ok = peer:call(Peer, application, load, [fairnif_watch]),
    {ok, Modules} = peer:call(Peer, application, get_key, [fairnif_watch, modules]),
    ok = peer:call(Peer, code, ensure_modules_loaded, [Modules]),
    Before = state(Peer),
    {0, _} = watch(Config, [Node, "--once", "--seconds", "1"]),
    %% Its own module keeps the library that it was given.
    as_before(Peer, Before, [mapped]).

%% The code stays: nobody else knows that it was brought.
ends_with_its_janitor(Config) ->
    {Peer, Node} = node_up(Config),
    #{threads := Threads, signals := Signals, system_monitor := Monitor} = state(Peer),
    {Port, Os} = watching(Config, [Node]),
    attached(Peer),
    signal(Os, "STOP"),
    true = peer:call(Peer, erlang, exit,
                     [peer:call(Peer, erlang, whereis, [fairnif_watch_janitor]), kill]),
    until(fun() -> not is_attached(Peer) end, "the watch ends"),
    until(fun() -> case state(Peer) of
                       #{threads := Threads, signals := Signals, system_monitor := Monitor} -> true;
                       #{} -> false
                   end
          end, "no thread, no handler, no monitor"),
    signal(Os, "KILL"),
    _ = ended(Port).

leaves_it_so_when_killed(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    {Port, Os} = watching(Config, [Node]),
    attached(Peer),
    signal(Os, "KILL"),
    as_before(Peer, Before),
    {137, _} = ended(Port).

%% A watcher that is stopped cannot connect again at once, which it would.
leaves_it_so_when_the_connection_is_lost_and_comes_back(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    {_, Os} = watching(Config, [Node]),
    attached(Peer),
    signal(Os, "STOP"),
    [Watcher] = peer:call(Peer, erlang, nodes, [connected]),
    true = peer:call(Peer, erlang, disconnect_node, [Watcher]),
    as_before(Peer, Before),
    signal(Os, "CONT"),
    attached(Peer),
    signal(Os, "KILL"),
    as_before(Peer, Before).

leaves_it_so_when_nothing_is_heard_of_the_watcher(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    Cluster = cluster([Node], #{attach => #{lease_ms => 1000}}),
    attached(Peer),
    [Worker] = [P || P <- linked(Cluster), is_worker(P)],
    true = erlang:suspend_process(Worker),
    until(fun() -> not is_attached(Peer) end, "the lease ends"),
    %% The connection stays, so that it is of no consequence here.
    as_before(Peer, Before, [connected]),
    true = erlang:resume_process(Worker),
    attached(Peer),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    as_before(Peer, Before, [connected]).

linked(Pid) ->
    {links, Links} = process_info(Pid, links),
    Links.

is_worker(Pid) ->
    process_info(Pid, initial_call) =:= {initial_call, {fairnif_watch_node, init, 1}}.

%% ---- connections ----

attaches_by_long_names(Config) ->
    {Peer, Node} = node_up(Config, #{longnames => true, host => "127.0.0.1"}),
    Before = state(Peer),
    {0, _} = watch(Config, [Node, "--once", "--seconds", "1"]),
    as_before(Peer, Before).

attaches_over_tls(Config) ->
    Options = tls_options(Config),
    {Peer, Node} = node_up(Config, #{args => ["-proto_dist", "inet_tls", "-ssl_dist_optfile",
                                              Options]}),
    attached_by(Config, Peer, [Node, "--once", "--seconds", "1", "--tls", Options]),
    {3, Text} = watch(Config, [Node, "--once", "--seconds", "1"]),
    contains(Text, "does it use TLS distribution"),
    {Plain, PlainNode} = node_up(Config),
    {3, Text2} = watch(Config, [PlainNode, "--once", "--seconds", "1", "--tls", Options]),
    contains(Text2, "leave out --tls"),
    peer:stop(Plain).

%% Processes of TLS itself live on for a while: that the watch is gone is what counts here.
attached_by(Config, Peer, Args) ->
    {0, _} = watch(Config, Args),
    until(fun() -> not is_attached(Peer) end, "the watch is gone").

tls_options(Config) ->
    %% By itself it signs with SHA-1, which TLS refuses since OTP 27, and with a curve that TLS 1.3
    %% does not have.
    Strong = [{digest, sha256}, {key, {rsa, 2048, 65537}}],
    Chain = #{root => Strong, intermediates => [], peer => Strong},
    #{server_config := Server} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {Type, Key} = proplists:get_value(key, Server),
    Pem = public_key:pem_encode([{'Certificate', proplists:get_value(cert, Server), not_encrypted},
                                 {Type, Key, not_encrypted}]),
    Folder = ?config(priv_dir, Config),
    File = filename:join(Folder, "node.pem"),
    ok = file:write_file(File, Pem),
    Options = filename:join(Folder, "tls.conf"),
    ok = file:write_file(Options, io_lib:format(
                                    "[{server, [{certfile, ~p}]}, {client, [{verify, "
                                    "verify_none}]}].~n", [File])),
    Options.

says_why_there_is_no_connection(Config) ->
    {Peer, Node} = node_up(Config),
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    [begin
         {Time, {Code, Text}} = timer:tc(fun() -> watch(Config, [Arg | More]) end),
         ct:log("~ts (~b ms)", [Text, Time div 1000]),
         ?assertEqual({Arg, 3}, {Arg, Code}),
         contains(Text, Reason)
     end || {Arg, More, Reason} <-
                [{Node, ["--cookie", "another"], "does not take this cookie"},
                 {"nobody_" ++ Name ++ "@" ++ Host, [], "no node nobody_"},
                 {Name ++ "@127.0.0.1", [], "calls itself " ++ atom_to_list(Node)},
                 {Name ++ "@nohost", [], "the host nohost is not known here"}]],
    ok = peer:call(Peer, net_kernel, allow, [['friend@host']]),
    {3, Text} = watch(Config, [Node]),
    contains(Text, "admits only nodes with certain names"),
    {0, _} = watch(Config, [Node, "--once", "--seconds", "1", "--name", "friend@host"]).

%% As a forwarded port with nothing behind it does.
says_what_is_no_epmd(Config) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Socket),
    Closer = spawn_link(fun Loop() ->
                                {ok, Accepted} = gen_tcp:accept(Socket),
                                ok = gen_tcp:close(Accepted),
                                Loop()
                        end),
    {3, Text} = run(?config(fairnif, Config), ["watch", "app@127.0.0.1"],
                    [{"FAIRNIF_COOKIE", ?COOKIE}, {"ERL_EPMD_PORT", integer_to_list(Number)}]),
    %% As the connection ended: with what it says read, or not.
    {{match, _}, _} = {re:run(Text, "it is no epmd|no epmd answers"), Text},
    true = unlink(Closer),
    true = exit(Closer, kill),
    ok = gen_tcp:close(Socket).

%% Also those that the shell script takes away.
refuses_options_that_have_no_effect(Config) ->
    [begin
         {2, Text} = watch(Config, ["app@127.0.0.1" | Args]),
         contains(Text, Part)
     end || {Args, Part} <-
                [{["--token", "0123456789abcdef"], "`--token' needs `--http'"},
                 {["--token=0123456789abcdef", "--once"], "`--token' needs `--http'"},
                 {["--cookie", "c", "--cookie-file", "f"],
                  "`--cookie' contradicts `--cookie-file'"}]].

shows_the_cookie_to_nobody(Config) ->
    {Peer, Node} = node_up(Config),
    [begin
         {Port, Os} = watching(Config, [Node | Args], Env),
         attached(Peer),
         {ok, Line} = file:read_file(["/proc/", integer_to_list(Os), "/cmdline"]),
         ?assertEqual(nomatch, binary:match(Line, <<?COOKIE>>)),
         ?assertNotEqual(nomatch, binary:match(Line, <<"fairnif_cli">>)),
         signal(Os, "TERM"),
         _ = ended(Port),
         until(fun() -> not is_attached(Peer) end, "the watch is gone")
     end || {Args, Env} <- [{["--cookie", ?COOKIE], [{"FAIRNIF_COOKIE", false}]},
                            {["--cookie=" ++ ?COOKIE], [{"FAIRNIF_COOKIE", false}]},
                            {["--cookie-file", cookie_file(Config)], [{"FAIRNIF_COOKIE", false}]}]].

cookie_file(Config) ->
    File = filename:join(?config(priv_dir, Config), "cookie"),
    ok = file:write_file(File, ?COOKIE "\n"),
    File.

%% ---- what is brought ----

subscribes_where_the_application_runs(Config) ->
    {Peer, Node} = node_up(Config, #{args => paths()}),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [fairnif_watch]),
    Before = state(Peer),
    {Port, Os} = watching(Config, [Node, "--seconds", "60"]),
    until(fun() -> #{counters := #{subscribers := N}} = peer:call(Peer, fairnif_watch, report, []),
                   N =:= 1
          end, "a subscriber"),
    ?assertEqual(undefined, peer:call(Peer, erlang, whereis, [fairnif_watch_janitor])),
    signal(Os, "KILL"),
    _ = ended(Port),
    %% What the watch that runs there holds is not all held from its first second on.
    as_before(Peer, Before, [descriptors, persistent_terms, system_monitor]),
    until(fun() -> #{counters := #{subscribers := N}} = peer:call(Peer, fairnif_watch, report, []),
                   N =:= 0
          end, "no subscriber").

gives_way_to_the_application(Config) ->
    {Peer, Node} = node_up(Config, #{args => paths()}),
    {Port, Os} = watching(Config, [Node, "--seconds", "60"]),
    attached(Peer),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [fairnif_watch], 30000),
    until(fun() -> subscribers(Peer) =:= 1 end, "the watcher is there again"),
    ?assertEqual(undefined, peer:call(Peer, erlang, whereis, [fairnif_watch_janitor])),
    until(fun() -> #{native := Native, schedulers := [#{state := State} | _]} =
                       peer:call(Peer, fairnif_watch, report, []),
                   Native andalso State =/= unknown
          end, "its own library works"),
    signal(Os, "KILL"),
    _ = ended(Port).

%% Nothing is brought to a node whose own applications may be about to start.
waits_for_a_node_that_is_starting(_Config) ->
    Name = peer:random_name("watched"),
    {ok, Host} = inet:gethostname(),
    Node = list_to_atom(Name ++ "@" ++ hd(string:split(Host, "."))),
    {ok, Peer} = peer:start_link(#{name => Name, connection => standard_io,
                                   wait_boot => {self(), booted},
                                   args => ["-setcookie", ?COOKIE,
                                            "-kernel", "sync_nodes_optional", "[nosuch@nohost]",
                                            "-kernel", "sync_nodes_timeout", "6000",
                                            %% Is started, for this one.
                                            "-eval", "timer:sleep(infinity)"]}),
    Cluster = cluster([Node], #{}),
    #{reason := Why} = status(Cluster, Node, hanging),
    contains(Why, "still starting"),
    up(Cluster, Node),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    until(fun() -> not is_attached(Peer) end, "the watch is gone").

two_watchers_share_what_is_brought(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    %% At the same time, so that one finds the other at work.
    {First, Os1} = watching(Config, [Node]),
    {Second, Os2} = watching(Config, [Node]),
    until(fun() -> is_attached(Peer) andalso subscribers(Peer) =:= 2 end, "both are attached"),
    signal(Os1, "KILL"),
    until(fun() -> subscribers(Peer) =:= 1 end, "one is left"),
    timer:sleep(500),
    ?assert(is_attached(Peer)),
    signal(Os2, "KILL"),
    as_before(Peer, Before),
    _ = ended(First),
    _ = ended(Second).

brings_nothing_over_another_version(Config) ->
    {Peer, Node} = node_up(Config),
    Forms = [{attribute, 1, module, fairnif_watch_json}],
    {ok, fairnif_watch_json, Beam} = compile:forms(Forms),
    {module, _} = peer:call(Peer, code, load_binary, [fairnif_watch_json, "x", Beam]),
    Before = state(Peer),
    {3, Text} = watch(Config, [Node]),
    contains(Text, "another version of fairnif_watch"),
    as_before(Peer, Before).

brings_no_native_part_when_told(Config) ->
    {Peer, Node} = node_up(Config),
    {0, Text} = watch(Config, [Node, "--once", "--seconds", "1", "--erlang-only"]),
    contains(Text, "not seen: "),
    ?assertNot(lists:member(fairnif_watch_native, peer:call(Peer, erlang, system_info, [taints]))).

goes_on_without_a_native_part_that_cannot_be_loaded(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    Path = filename:join(?config(priv_dir, Config), "fairnif_watch"),
    ok = file:write_file(Path ++ ".so", "of another processor"),
    Cluster = cluster([Node], #{attach => #{libraries => #{native_library => Path}}}),
    #{view := #{native := false, blind := [_ | _], schedulers := [_ | _]}} = up(Cluster, Node),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    as_before(Peer, Before, [connected]).

takes_back_what_a_node_cannot_load(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    {fairnif_watch_janitor, Beam, _} = code:get_object_code(fairnif_watch_janitor),
    {fairnif_watch_json, Json, _} = code:get_object_code(fairnif_watch_json),
    {module, _} = peer:call(Peer, code, load_binary, [fairnif_watch_janitor, "x", Beam]),
    ?assertMatch({error, {load, fairnif_watch, _}},
                 peer:call(Peer, fairnif_watch_janitor, start,
                           [#{owner => peer:call(Peer, erlang, whereis, [init]),
                              modules => [{fairnif_watch_json, "x", Json},
                                          {fairnif_watch, "x", <<"of a later release">>}],
                              itself => true, libraries => [], config => #{},
                              lease_ms => 60000, schema => 1}])),
    as_before(Peer, Before),
    ?assert(is_atom(Node)).

%% ---- nodes that come and go ----

a_node_that_hangs_goes_and_is_replaced_is_told(Config) ->
    {Stays, StaysNode} = node_up(Config),
    {Goes, Node} = node_up(Config),
    true = unlink(Goes),
    Os = peer:call(Goes, os, getpid, []),
    Cluster = cluster([StaysNode, Node], #{}),
    {ok, _} = fairnif_watch_cluster:subscribe(Cluster, self()),
    up(Cluster, Node),
    up(Cluster, StaysNode),
    signal(Os, "STOP"),
    #{reason := <<"it is connected and says nothing">>} = status(Cluster, Node, hanging),
    %% The other one is in view all the time.
    #{status := up, view := #{at := At}} = entry(Cluster, StaysNode),
    until(fun() -> #{view := #{at := Later}} = entry(Cluster, StaysNode), Later > At end,
          "the other's next view"),
    signal(Os, "CONT"),
    #{reason := none} = status(Cluster, Node, up),
    signal(Os, "KILL"),
    #{reason := Gone} = status(Cluster, Node, gone),
    contains(Gone, "no node"),
    [Name, _] = string:split(atom_to_list(Node), "@"),
    {Again, Node} = node_up(Config, #{name => Name}),
    #{reason := Replaced} = status(Cluster, Node, up),
    contains(Replaced, "another node has this name now: process "
             ++ peer:call(Again, os, getpid, [])),
    ?assertEqual([down, up, hanging, up, down, gone, replaced, up],
                 no_repeats([down | told(Node)])),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    _ = [peer:stop(P) || P <- [Stays, Again]],
    _ = try peer:stop(Goes) catch exit:_ -> gone end,
    ok.

told(Node) ->
    receive
        {fairnif_watch, Node, {node, #{status := Status}}} -> [Status | told(Node)];
        {fairnif_watch, _, _} -> told(Node);
        {fairnif_watch_cluster, _} -> told(Node)
    after 0 -> []
    end.

no_repeats([A, A | Rest]) -> no_repeats([A | Rest]);
no_repeats([A | Rest]) -> [A | no_repeats(Rest)];
no_repeats([]) -> [].

%% Code is loaded when every scheduler has passed by.
waits_for_a_node_whose_scheduler_is_held(Config) ->
    {Peer, Node} = node_up(Config, #{args => paths() ++ ["+S", "2:2"]}),
    ok = peer:call(Peer, fairnif_watch_probe, load, [#{probe_library => default}]),
    Before = ours(Peer),
    %% Long enough for this side to come to a conclusion on a busy machine, too.
    peer:cast(Peer, lists, foreach, [fun fairnif_watch_probe:block/1, [10000, 9000]]),
    timer:sleep(200),
    Cluster = cluster([Node], #{}),
    %% Its connection may have been that scheduler's to accept, or not.
    #{reason := Why} = status(Cluster, Node, hanging),
    {match, _} = re:run(Why, "cannot be attached to yet|accepts a connection and says nothing"),
    up(Cluster, Node),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    until(fun() -> not is_attached(Peer) end, "the watch is gone"),
    until(fun() -> ours(Peer) =:= Before end, {ours, fun() -> ours(Peer) end}).

ours(Peer) ->
    lists:sort([M || M <- peer:call(Peer, erlang, loaded, []),
                     lists:prefix("fairnif_watch", atom_to_list(M))]).

follows_the_nodes_that_one_knows_and_is_in_nobodys_nodes(Config) ->
    {A, NodeA} = node_up(Config),
    {B, NodeB} = node_up(Config),
    true = peer:call(A, net_kernel, connect_node, [NodeB]),
    Cluster = cluster([NodeA], #{follow => true}),
    up(Cluster, NodeA),
    up(Cluster, NodeB),
    {C, NodeC} = node_up(Config),
    true = peer:call(C, net_kernel, connect_node, [NodeA]),
    up(Cluster, NodeC),
    Nodes = lists:sort([NodeA, NodeB, NodeC]),
    [?assertEqual(Nodes -- [Node], lists:sort(peer:call(Peer, erlang, nodes, [])))
     || {Peer, Node} <- [{A, NodeA}, {B, NodeB}, {C, NodeC}]],
    ?assertEqual([], nodes()),
    ?assertEqual({error, address}, peer_names(node())),
    peer:stop(C),
    status(Cluster, NodeC, gone),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    [until(fun() -> not is_attached(Peer) end, "the watch is gone") || Peer <- [A, B]].

%% We are in no epmd.
peer_names(Node) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    case erl_epmd:port_please(Name, Host) of
        noport -> {error, address};
        Other -> Other
    end.

%% ---- what is shown ----

one_look_keeps_to_its_schema(Config) ->
    {_, Node} = node_up(Config),
    File = filename:join(?config(priv_dir, Config), "watch.json"),
    {3, Text} = watch(Config, [Node, "nobody_" ++ atom_to_list(Node), "--once", "--json", File]),
    contains(Text, "1 of 2 nodes seen"),
    Root = ?config(root, Config),
    Validate = filename:join([Root, "apps", "fairnif_lab", "test", "fairnif_lab_validate.py"]),
    Schema = filename:join([Root, "docs", "schema", "watch-1.schema.json"]),
    ?assertEqual({0, ""}, run("/usr/bin/python3", [Validate, Schema, File], [])),
    {0, Json} = watch(Config, [Node, "--once", "--seconds", "1", "--json", "-"]),
    {match, _} = re:run(Json, "^{\"schema_version\":1,.*}\n\\z", [dotall]).

tests_the_watch_of_a_node(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    {0, Text} = watch(Config, [Node, "--self-test"]),
    contains(Text, "passed"),
    contains(Text, "fairnif_watch_probe:block/1"),
    as_before(Peer, Before).

shows_a_screen_and_puts_the_terminal_back(Config) ->
    {Peer, Node} = node_up(Config),
    Before = state(Peer),
    #{screens := [First, Second, _], exit := 0, restored := true, entered := true,
      overflow := false, error := null} =
        terminal(Config, [Node], ["{\"wait\": \"run queues\"}",
                                  "{\"size\": [30, 100], \"sleep\": 2.5}",
                                  "{\"keys\": \"q\"}"]),
    contains(First, "fairnif watch  " ++ atom_to_list(Node) ++ "  up"),
    contains(First, "no findings"),
    ?assertEqual(24, length(binary:split(First, <<"\n">>, [global]))),
    contains(lists:last(binary:split(Second, <<"\n">>, [global])), "q: quit"),
    ?assertEqual(30, length(binary:split(Second, <<"\n">>, [global]))),
    as_before(Peer, Before).

puts_the_terminal_back_when_it_is_killed(Config) ->
    {Peer, Node} = node_up(Config),
    [begin
         #{restored := true, entered := true, exit := Exit, error := null} =
             terminal(Config, [Node], ["{\"wait\": \"run queues\"}", Step])
     end || {Step, Exit} <- [{"{\"signal\": 9}", -9}, {"{\"signal\": 15}", -15},
                             {"{\"keys\": \"\\u0003\"}", 0}]],
    until(fun() -> not is_attached(Peer) end, "the watch is gone").

writes_lines_where_no_terminal_is(Config) ->
    {_, Node} = node_up(Config),
    {0, Text} = watch(Config, [Node, "--seconds", "2"]),
    {match, _} = re:run(Text, "^20[^ ]+ " ++ atom_to_list(Node) ++ " up\n\\z").

%% As before a pipe's other end that has gone.
ends_quietly_where_nobody_reads(Config) ->
    {_, Node} = node_up(Config),
    Script = "cd $0 && { $1 watch $2 nobody --seconds 5; echo \"was $?\" >&2; } | true",
    Folder = ?config(priv_dir, Config),
    {0, Text} = run("/bin/sh", ["-c", Script, Folder, ?config(fairnif, Config) | text([Node])],
                    [{"FAIRNIF_COOKIE", ?COOKIE}]),
    contains(Text, "was 3"),
    ?assertEqual(nomatch, string:find(Text, "terminat")),
    ?assertEqual([], filelib:wildcard(filename:join(Folder, "erl_crash*"))).

%% ---- the command ----

watch(Config, Args) ->
    run(?config(fairnif, Config), ["watch" | text(Args)], [{"FAIRNIF_COOKIE", ?COOKIE}]).

text(Args) ->
    [case A of _ when is_atom(A) -> atom_to_list(A); _ -> A end || A <- Args].

run(Program, Args, Env) ->
    Port = open_port({spawn_executable, Program},
                     [{args, Args}, {env, Env}, exit_status, stderr_to_stdout, binary]),
    {Status, Text} = ended(Port),
    ct:log("~ts: ~b~n~ts", [lists:join(" ", Args), Status, Text]),
    {Status, Text}.

ended(Port) ->
    ended(Port, []).

ended(Port, Text) ->
    receive
        {Port, {data, Data}} -> ended(Port, [Text, Data]);
        {Port, {exit_status, Status}} ->
            {Status, unicode:characters_to_list(iolist_to_binary(Text))}
    after 60000 -> error({no_end, Text})
    end.

watching(Config, Args) ->
    watching(Config, Args, [{"FAIRNIF_COOKIE", ?COOKIE}]).

watching(Config, Args, Env) ->
    Port = open_port({spawn_executable, ?config(fairnif, Config)},
                     [{args, ["watch" | text(Args)]}, {env, Env}, exit_status, stderr_to_stdout,
                      binary]),
    {os_pid, Os} = erlang:port_info(Port, os_pid),
    {Port, Os}.

signal(Os, Name) when is_integer(Os) -> signal(integer_to_list(Os), Name);
signal(Os, Name) -> [] = os:cmd("kill -" ++ Name ++ " " ++ Os).

terminal(Config, Args, Steps) ->
    Script = filename:join([?config(root, Config), "apps", "fairnif_watch", "test",
                            "fairnif_watch_pty.py"]),
    {Status, Text} = run("/usr/bin/python3",
                         [Script, "24", "80", lists:flatten(["[", lists:join(",", Steps), "]"]),
                          ?config(fairnif, Config), "watch" | text(Args)],
                         [{"FAIRNIF_COOKIE", ?COOKIE}, {"TERM", "xterm"}]),
    ?assertEqual({0, Text}, {Status, Text}),
    json(Text).

%% What the script writes is read by Erlang's own reader: JSON of strings, numbers, true, null,
%% lists and one object is nearly Erlang.
json(Text) ->
    Swapped = re:replace(Text, "\"([a-z]+)\": ", "'\\1' => ", [global, {return, binary}]),
    Term = re:replace(Swapped, "^{(.*)}\\s*\\z", "#{\\1}.", [dotall, {return, list}]),
    {ok, Tokens, _} = erl_scan:string(unescaped(Term)),
    {ok, Map} = erl_parse:parse_term(Tokens),
    maps:map(fun(screens, Screens) -> [unicode:characters_to_binary(S) || S <- Screens];
                (_, Value) -> Value
             end, Map).

unescaped([$\\, $u, A, B, C, D | Rest]) -> "\\x{" ++ [A, B, C, D] ++ "}" ++ unescaped(Rest);
unescaped([C | Rest]) -> [C | unescaped(Rest)];
unescaped([]) -> [].

%% ---- nodes ----

node_up(Config) ->
    node_up(Config, #{}).

node_up(_Config, More) ->
    Args = maps:get(args, More, []) ++ ["-setcookie", ?COOKIE],
    {ok, Peer, Node} = fairnif_lab_peer:control(
                         group_leader(),
                         maps:merge(#{name => peer:random_name("watched"), longnames => false},
                                    More#{args => Args})),
    {Peer, Node}.

paths() ->
    lists:append([["-pa", filename:dirname(code:which(M))] || M <- [fairnif_watch]]).

cluster(Nodes, More) ->
    case node() of
        nonode@nohost -> ok = fairnif_watch_connect:start(shortnames, default);
        _ -> ok
    end,
    {ok, Cluster} = fairnif_watch_cluster:start_link(
                      maps:merge(#{nodes => Nodes, cookie => list_to_atom(?COOKIE),
                                   form => shortnames}, More)),
    Cluster.

up(Cluster, Node) -> status(Cluster, Node, up).

status(Cluster, Node, Status) ->
    until(fun() -> case entry(Cluster, Node) of
                       #{status := up, view := none} -> false;
                       #{status := Status} -> true;
                       _ -> false
                   end
          end, {Node, Status, fun() -> entry(Cluster, Node) end}),
    entry(Cluster, Node).

entry(Cluster, Node) ->
    #{nodes := Nodes} = fairnif_watch_cluster:views(Cluster),
    hd([E || #{node := N} = E <- Nodes, N =:= Node] ++ [none]).

attached(Peer) ->
    until(fun() -> is_attached(Peer) end, "the watch is there").

is_attached(Peer) ->
    peer:call(Peer, erlang, whereis, [fairnif_watch_collector]) =/= undefined.

subscribers(Peer) ->
    #{counters := #{subscribers := N}} = peer:call(Peer, fairnif_watch, report, []),
    N.

%% ---- a node's state ----

%% Everything that is meant by "as it was". Modules of OTP that its code server loaded on demand,
%% for us or for anybody, are no trace of ours.
state(Peer) ->
    Otp = peer:call(Peer, code, lib_dir, []),
    Call = fun(M, F, A) -> peer:call(Peer, M, F, A) end,
    Os = Call(os, getpid, []),
    Folder = fun(Name) ->
                     {ok, Files} = file:list_dir(["/proc/", Os, "/", Name]),
                     Files
             end,
    #{processes => lists:sort([process(Peer, P) || P <- Call(erlang, processes, [])]),
      modules => lists:sort([M || M <- Call(erlang, loaded, []),
                                  not is_otp(Call(code, which, [M]), Otp)]),
      ets => length(Call(ets, all, [])),
      persistent_terms => maps:get(count, Call(persistent_term, info, [])),
      ports => length(Call(erlang, ports, [])),
      descriptors => length(Folder("fd")),
      threads => length(Folder("task")),
      applications => lists:sort([A || {A, _, _} <- Call(application, which_applications, [])]),
      loaded_applications => lists:sort([A || {A, _, _}
                                                  <- Call(application, loaded_applications, [])]),
      paths => Call(code, get_path, []),
      handlers => lists:sort(Call(logger, get_handler_ids, [])),
      system_monitor => Call(erlang, system_monitor, []),
      scheduler_flags => Call(erlang, system_info, [schedulers_online]),
      connected => length(Call(erlang, nodes, [connected])),
      signals => line(["/proc/", Os, "/status"], "SigCgt"),
      mapped => mapped(Os),
      files => lists:sort([F || Place <- ["/tmp", "/dev/shm", os:getenv("TMPDIR", "/tmp")],
                                F <- filelib:wildcard(Place ++ "/fairnif_watch_" ++ Os ++ "_*")])}.

is_otp(preloaded, _) -> true;
is_otp(File, Otp) when is_list(File) -> lists:prefix(Otp, File);
is_otp(_, _) -> false.

%% By what it is, since another one of the same kind is as good.
process(Peer, Pid) ->
    Items = [registered_name, initial_call, dictionary],
    case peer:call(Peer, erlang, process_info, [Pid, Items]) of
        [{_, []}, {_, Call}, {_, Dictionary}] ->
            proplists:get_value('$initial_call', Dictionary, Call);
        [{_, Name} | _] -> Name;
        undefined -> gone
    end.

line(File, Word) ->
    {ok, Text} = file:read_file(File),
    [L || L <- binary:split(Text, <<"\n">>, [global]), string:prefix(L, Word) =/= nomatch].

mapped(Os) ->
    {ok, Maps} = file:read_file(["/proc/", Os, "/maps"]),
    lists:usort([lists:last(binary:split(L, <<" ">>, [global]))
                 || L <- binary:split(Maps, <<"\n">>, [global]),
                    binary:match(L, <<"fairnif_watch">>) =/= nomatch]).

as_before(Peer, Before) ->
    as_before(Peer, Before, []).

as_before(Peer, Before, Except) ->
    Differs = fun() ->
                      Now = state(Peer),
                      [{Key, {before, maps:get(Key, Before)}, {now, maps:get(Key, Now)}}
                       || Key <- maps:keys(Before) -- Except,
                          not same(Key, maps:get(Key, Before), maps:get(Key, Now), Except)]
              end,
    until(fun() -> Differs() =:= [] end, {as_before, Differs}).

%% With a connection that stays, so do its process, port and descriptor.
same(Key, Before, Now, [connected]) when Key =:= ports; Key =:= descriptors; Key =:= processes;
                                         Key =:= ets ->
    count(Now) - count(Before) =< 1;
same(_, Before, Now, _) ->
    Before =:= Now.

count(List) when is_list(List) -> length(List);
count(N) -> N.

%% Longer than a scheduler is held here, and than an attempt waits after one that failed.
until(Condition, What) ->
    until(Condition, What, erlang:monotonic_time(millisecond) + 45000).

until(Condition, What, Limit) ->
    case Condition() of
        true -> ok;
        false ->
            case erlang:monotonic_time(millisecond) > Limit of
                true -> error({never, explained(What)});
                false -> timer:sleep(100), until(Condition, What, Limit)
            end
    end.

explained({What, Fun}) when is_function(Fun) -> {What, Fun()};
explained({What, Which, Fun}) when is_function(Fun) -> {What, Which, Fun()};
explained(What) -> What.

contains(Text, Part) ->
    case string:find(Text, Part) of
        nomatch -> error({not_there, Part, Text});
        _ -> ok
    end.
