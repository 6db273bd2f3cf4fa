%% The cluster's view of nodes that hang, leave and are replaced, that cannot load what is brought,
%% or are still starting: from this node, so that what happens inside can be looked at.
-module(fairnif_watch_nodes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, end_per_testcase/2]).

-export([leaves_it_so_when_nothing_is_heard_of_the_watcher/1,
         works_without_a_native_part_that_cannot_be_loaded/1,
         takes_back_what_a_node_cannot_load/1,
         a_node_that_hangs_goes_and_is_replaced_is_reported/1,
         waits_for_a_node_whose_scheduler_is_blocked/1,
         comes_to_a_node_whose_dirty_io_hangs_and_leaves_it/1,
         waits_for_a_node_that_is_starting/1,
         follows_the_nodes_that_one_knows_and_is_in_no_nodes/1]).

-import(fairnif_watch_test_node, [node_up/0, node_up/1, paths/0, state/1, as_before/2, as_before/3,
                                  attached/1, is_attached/1, signal/2, until/2, contains/2]).

-define(COOKIE, "suite_cookie").

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

end_per_testcase(_, _) ->
    _ = net_kernel:stop(),
    ok.

leaves_it_so_when_nothing_is_heard_of_the_watcher(_) ->
    {Peer, Node} = node_up(),
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
    proc_lib:translate_initial_call(Pid) =:= {fairnif_watch_node, init, 1}.


%% ---- what is brought ----

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

works_without_a_native_part_that_cannot_be_loaded(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    Path = filename:join(?config(priv_dir, Config), "fairnif_watch"),
    ok = file:write_file(Path ++ ".so", "of another processor"),
    Cluster = cluster([Node], #{attach => #{libraries => #{native_library => Path}}}),
    #{view := #{native := false, blind := [_ | _], schedulers := [_ | _]}} = up(Cluster, Node),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    as_before(Peer, Before, [connected]).

takes_back_what_a_node_cannot_load(_) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    {fairnif_watch_session, Beam, _} = code:get_object_code(fairnif_watch_session),
    {fairnif_watch_json, Json, _} = code:get_object_code(fairnif_watch_json),
    {module, _} = peer:call(Peer, code, load_binary, [fairnif_watch_session, "x", Beam]),
    ?assertMatch({error, {load, fairnif_watch, _}},
                 peer:call(Peer, fairnif_watch_session, start,
                           [#{owner => peer:call(Peer, erlang, whereis, [init]),
                              modules => [{fairnif_watch_json, Json},
                                          {fairnif_watch, <<"of a later release">>}],
                              itself => true, libraries => [], config => #{},
                              lease_ms => 60000, schema => 1}])),
    as_before(Peer, Before),
    ?assert(is_atom(Node)).

%% ---- nodes that come and go ----

a_node_that_hangs_goes_and_is_replaced_is_reported(_) ->
    {Stays, StaysNode} = node_up(),
    {Goes, Node} = node_up(),
    true = unlink(Goes),
    Os = peer:call(Goes, os, getpid, []),
    Cluster = cluster([StaysNode, Node], #{}),
    {ok, _} = fairnif_watch_cluster:subscribe(Cluster, self()),
    up(Cluster, Node),
    up(Cluster, StaysNode),
    signal(Os, "STOP"),
    #{reason := <<"it is connected and says nothing">>} = status(Cluster, Node, hanging),
    until(fun() -> #{outside := Seen} = entry(Cluster, Node), Seen =/= [] end, "it is looked at"),
    #{outside := [<<"The process is stopped by a signal", _/binary>> | _]} = entry(Cluster, Node),
    %% The other one is in view all the time.
    #{status := up, view := #{at := At}} = entry(Cluster, StaysNode),
    until(fun() -> #{view := #{at := Later}} = entry(Cluster, StaysNode), Later > At end,
          "the other's next view"),
    signal(Os, "CONT"),
    #{reason := none, outside := []} = status(Cluster, Node, up),
    signal(Os, "KILL"),
    #{reason := Gone} = status(Cluster, Node, gone),
    contains(Gone, "no node"),
    [Name, _] = string:split(atom_to_list(Node), "@"),
    {Again, Node} = node_up(#{name => Name}),
    #{reason := Replaced} = status(Cluster, Node, up),
    contains(Replaced, "another node has this name now: process "
             ++ peer:call(Again, os, getpid, [])),
    %% A node that a busy machine lets wait for seconds is rightly reported as hanging, too.
    ?assertEqual([], lists:usort(besides([down, up, hanging, up, down, gone, replaced, up],
                                         no_repeats([down | statuses(Node)]))) -- [hanging, up]),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    _ = [peer:stop(P) || P <- [Stays, Again]],
    _ = try peer:stop(Goes) catch exit:_ -> gone end,
    ok.

statuses(Node) ->
    receive
        {fairnif_watch, Node, {node, #{status := Status}}} -> [Status | statuses(Node)];
        {fairnif_watch, _, _} -> statuses(Node);
        {fairnif_watch_cluster, _} -> statuses(Node)
    after 0 -> []
    end.

no_repeats([A, A | Rest]) -> no_repeats([A | Rest]);
no_repeats([A | Rest]) -> [A | no_repeats(Rest)];
no_repeats([]) -> [].

%% All that was reported besides these, which must have been, in this order.
besides([Status | Rest], [Status | Seen]) -> besides(Rest, Seen);
besides(Expected, [Other | Seen]) -> [Other | besides(Expected, Seen)];
besides([], []) -> [].

%% Code is loaded when every scheduler has passed by.
waits_for_a_node_whose_scheduler_is_blocked(_) ->
    {Peer, Node} = node_up(#{args => paths() ++ ["+S", "2:2"]}),
    ok = peer:call(Peer, fairnif_watch_probe, load, [#{probe_library => default}]),
    Before = ours(Peer),
    %% Long enough for this side to come to a conclusion on a busy machine, too.
    peer:cast(Peer, lists, foreach, [fun fairnif_watch_probe:block/1, [10000, 9000]]),
    timer:sleep(200),
    Cluster = cluster([Node], #{}),
    %% Its connection may have been that scheduler's to accept, or not.
    #{reason := Why} = status(Cluster, Node, hanging),
    {match, _} = re:run(Why, "cannot be attached to yet|accepts a connection and says nothing|"
                        "takes a connection and does not finish it"),
    up(Cluster, Node),
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    until(fun() -> not is_attached(Peer) end, "the watch is gone"),
    until(fun() -> ours(Peer) =:= Before end, {ours, fun() -> ours(Peer) end}).

%% What it takes of OTP is there, as in a release; what is in files, or has to be put into one, is
%% not.
comes_to_a_node_whose_dirty_io_hangs_and_leaves_it(Config) ->
    {Peer, Node} = node_up(#{args => ["+S", "2:2", "+SDio", "2"]}),
    [{module, _} = peer:call(Peer, code, ensure_loaded, [M])
     || M <- fairnif_watch_sup:needed()],
    %% And another watcher was there before, so that all is loaded that a connection takes.
    Earlier = cluster([Node], #{}),
    up(Earlier, Node),
    ok = fairnif_watch_cluster:stop(Earlier, 10000),
    until(fun() -> not is_attached(Peer) end, "the watch is gone"),
    true = erlang:disconnect_node(Node),
    Fifos = [filename:join(?config(priv_dir, Config), Name) || Name <- ["one", "two"]],
    "" = os:cmd(["mkfifo ", lists:join($\s, Fifos)]),
    Hung = [peer:call(Peer, erlang, spawn, [file, open, [Fifo, [raw, read]]]) || Fifo <- Fifos],
    Jobs = fun() -> lists:last(peer:call(Peer, erlang, statistics, [active_tasks_all])) end,
    until(fun() -> Jobs() =:= 2 end, {hung, Jobs}),
    %% By way of the file server, which waits then.
    _ = peer:call(Peer, erlang, spawn, [file, read_file_info, ["/etc/hosts"]]),
    Before = ours(Peer),
    Cluster = cluster([Node], #{}),
    Begin = erlang:monotonic_time(millisecond),
    #{view := #{native := false, blind := [Blind | _]}} = up(Cluster, Node),
    ?assert(erlang:monotonic_time(millisecond) - Begin < 5000),
    contains(Blind, "all dirty I/O schedulers are taken"),
    Is = fun(#{detector := D, severity := S}) -> D =:= dirty_io_saturated andalso S =:= error end,
    until(fun() -> lists:any(Is, findings(Cluster, Node)) end,
          {saturated, fun() -> findings(Cluster, Node) end}),
    [Found] = lists:filter(Is, findings(Cluster, Node)),
    [contains(maps:get(sentence, Found), local(Pid)) || Pid <- Hung],
    ok = fairnif_watch_cluster:stop(Cluster, 10000),
    until(fun() -> not is_attached(Peer) end, "the watch is gone"),
    until(fun() -> ours(Peer) =:= Before end, {ours, fun() -> ours(Peer) end}),
    signal(peer:call(Peer, os, getpid, []), "KILL").

findings(Cluster, Node) ->
    #{view := #{findings := Findings}} = entry(Cluster, Node),
    Findings.

%% As its node writes it.
local(Pid) ->
    [_ | Rest] = string:split(pid_to_list(Pid), "."),
    "<0." ++ Rest.

ours(Peer) ->
    lists:sort([M || M <- peer:call(Peer, erlang, loaded, []),
                     lists:prefix("fairnif_watch", atom_to_list(M))]).

follows_the_nodes_that_one_knows_and_is_in_no_nodes(_) ->
    {A, NodeA} = node_up(),
    {B, NodeB} = node_up(),
    true = peer:call(A, net_kernel, connect_node, [NodeB]),
    Cluster = cluster([NodeA], #{follow => true}),
    up(Cluster, NodeA),
    up(Cluster, NodeB),
    {C, NodeC} = node_up(),
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

%% ---- the cluster ----

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
