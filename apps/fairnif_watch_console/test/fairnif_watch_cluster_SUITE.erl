%% Five nodes on this machine are watched from a sixth: what blocks a scheduler of any is seen; one
%% is cut off, which the view says while it keeps the others, and has it again when it is back.
%% fairnif_watch_nodes_SUITE stops one, kills one, and replaces it.
%%
%% Cutting off needs a network of its own for a node (a network namespace) and so root; where that
%% cannot be the case is skipped, with the reason. Nodes, the name server in that network, and the
%% network itself are ended by their numbers and names, also after a failure.
-module(fairnif_watch_cluster_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
%% For the node that watches.
-export([watch/1]).
-export([a_blocked_scheduler_of_any_node_comes_into_view/1,
         a_node_that_is_cut_off_is_lost_from_view_and_comes_back/1]).

%% A silent node is one after 3 s, a lost one after the distribution's tick time. The watch tries a
%% lost one again within 5 s.
-define(TICK_S, 4).
-define(COOKIE, fairnif_watch_cluster).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE) -- [watch].

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% What must be undone is noted in a file as it is done: the case's process may be killed.
init_per_testcase(Case, Config) ->
    [{undo, filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case))} | Config].

end_per_testcase(_Case, Config) ->
    case file:consult(proplists:get_value(undo, Config)) of
        {ok, Done} -> [undo(D) || D <- lists:reverse(Done)];
        {error, enoent} -> ok
    end.

undo({os_pid, Pid}) ->
    %% A stopped process dies of this too.
    _ = os:cmd("kill -9 " ++ Pid);
undo({link, Name}) ->
    _ = os:cmd("ip link delete " ++ Name);
undo({netns, Name}) ->
    _ = os:cmd("ip netns delete " ++ Name).

note(Done, Config) ->
    ok = file:write_file(proplists:get_value(undo, Config), io_lib:format("~p.~n", [Done]),
                         [append]).

%% -- the cases ---------------------------------------------------------------

a_blocked_scheduler_of_any_node_comes_into_view(Config) ->
    {Nodes, Watcher} = cluster(Config),
    %% Each tells of itself.
    [] = [N || #{node := N, view := View} <- views(Watcher), maps:get(node, View) =/= N],
    [begin
         Peer = maps:get(peer, Node),
         seen(Watcher, Name,
              fun(#{status := up, view := #{findings := Findings}}) ->
                      [] =/= [F || #{detector := scheduler_blocked,
                                     culprit := #{name := Culprit}} = F <- Findings,
                                   binary:match(Culprit, <<"spin">>) =/= nomatch]
                          orelse spin(Peer);
                 (_) ->
                      false
              end)
     end || {Name, Node} <- maps:to_list(Nodes)],
    others(Watcher, none, maps:keys(Nodes)).

%% Not found yet; more than once, since a watch that is given no processor does not see every one.
spin(Peer) ->
    {_, _, 0} = fairnif_watch_test:call(Peer, fairnif_watch_block_nif, spin, [300]),
    timer:sleep(1000),
    false.

a_node_that_is_cut_off_is_lost_from_view_and_comes_back(Config) ->
    case network(Config) of
        {ok, Network} -> cut_off(Network, Config);
        {cannot, Why} -> {skip, "no network of its own for a node: " ++ Why}
    end.

cut_off(#{here := Here, there := There, link := Link, inside := Inside}, Config) ->
    Near = [name(N, Here) || N <- [1, 2, 3, 4]],
    Far = name(5, There),
    Nodes = started(Near, [], Config),
    #{Far := _} = Cut = started([Far], Inside, Config),
    All = maps:merge(Nodes, Cut),
    meet(All),
    Watcher = watcher(hd(Near), Config),
    seen_all(Watcher, maps:keys(All)),
    "" = os:cmd("ip link set " ++ Link ++ " down"),
    Status = seen_as(Watcher, Far, [hanging, down]),
    others(Watcher, Far, maps:keys(All)),
    "" = os:cmd("ip link set " ++ Link ++ " up"),
    up = seen_as(Watcher, Far, [up]),
    others(Watcher, none, maps:keys(All)),
    {comment, atom_to_list(Status)}.

%% -- what is seen ------------------------------------------------------------

views(#{peer := Peer, cluster := Cluster}) ->
    #{nodes := Entries} = fairnif_watch_test:call(Peer, fairnif_watch_cluster, views, [Cluster]),
    Entries.

entry(Watcher, Name) ->
    [Entry] = [E || #{node := N} = E <- views(Watcher), N =:= Name],
    Entry.

seen(Watcher, Name, Fun) ->
    fairnif_test:eventually(
      fun() ->
              case [E || #{node := N} = E <- views(Watcher), N =:= Name] of
                  [Entry] -> Fun(Entry) orelse maps:remove(view, Entry);
                  [] -> {not_in_view, Name}
              end
      end).

seen_as(Watcher, Name, Statuses) ->
    ok = seen(Watcher, Name, fun(#{status := S}) -> lists:member(S, Statuses) end),
    maps:get(status, entry(Watcher, Name)).

seen_all(Watcher, Names) ->
    [ok = seen(Watcher, Name, fun(#{status := S, view := V}) -> S =:= up andalso is_map(V) end)
     || Name <- Names].

%% All but one are in view, up, and their views are new ones: none waited for the one.
others(Watcher, But, Names) ->
    [begin
         Now = erlang:system_time(microsecond),
         ok = seen(Watcher, Name, fun(#{status := up, view := #{at := At}}) -> At > Now;
                                     (_) -> false
                                  end)
     end || Name <- Names, Name =/= But],
    ok.

%% -- nodes -------------------------------------------------------------------

name(N, Host) ->
    list_to_atom(lists:flatten(io_lib:format("fairnif_w~b_~s@~s", [N, os:getpid(), Host]))).

%% Five nodes that know each other, and one that watches what the first one knows.
cluster(Config) ->
    Names = [name(N, "127.0.0.1") || N <- [1, 2, 3, 4, 5]],
    Nodes = started(Names, [], Config),
    meet(Nodes),
    Watcher = watcher(hd(Names), Config),
    seen_all(Watcher, Names),
    {Nodes, Watcher}.

started(Names, Inside, Config) ->
    maps:from_list([{Name, start(Name, Inside, Config)} || Name <- Names]).

%% `Inside': the command that runs another in its network.
start(Name, Inside, Config) ->
    Erl = os:find_executable("erl"),
    Exec = case Inside of
               [] -> Erl;
               [Command | Args] -> {os:find_executable(Command), Args ++ [Erl]}
           end,
    Peer = fairnif_watch_test:peer(["-name", atom_to_list(Name), "-setcookie",
                                    atom_to_list(?COOKIE), "-kernel", "net_ticktime",
                                    integer_to_list(?TICK_S), "+S", "2:2"],
                                   #{exec => Exec, peer_down => continue}),
    OsPid = fairnif_watch_test:call(Peer, os, getpid, []),
    note({os_pid, OsPid}, Config),
    {module, _} = fairnif_watch_test:call(Peer, code, ensure_loaded, [fairnif_watch_block_nif]),
    #{peer => Peer, os_pid => OsPid}.

meet(Nodes) ->
    Names = maps:keys(Nodes),
    [pong = fairnif_watch_test:call(Peer, net_adm, ping, [Name])
     || #{peer := Peer} <- maps:values(Nodes), Name <- Names].

%% As `bin/fairnif watch NODE --cluster' does it.
watcher(Node, Config) ->
    Paths = [filename:dirname(code:which(Module)) || Module <- [fairnif_watch_cluster, ?MODULE]],
    Peer = fairnif_watch_test:peer(["-kernel", "net_ticktime", integer_to_list(?TICK_S), "-pa"
                                    | Paths], #{peer_down => continue}),
    note({os_pid, fairnif_watch_test:call(Peer, os, getpid, [])}, Config),
    Cluster = fairnif_watch_test:call(Peer, ?MODULE, watch, [Node]),
    #{peer => Peer, cluster => Cluster}.

%% In the node that watches: a process keeps the cluster's.
watch(Node) ->
    ok = fairnif_watch_connect:start(longnames, default),
    Me = self(),
    Keeper = spawn(fun() ->
                           {ok, Cluster} =
                               fairnif_watch_cluster:start_link(#{nodes => [Node],
                                                                  cookie => ?COOKIE,
                                                                  form => longnames,
                                                                  follow => true}),
                           Me ! {self(), Cluster},
                           receive stop -> ok end
                   end),
    receive {Keeper, Cluster} -> Cluster end.

%% -- a network of its own ----------------------------------------------------

%% A pair of linked interfaces, one of them in a namespace. The addresses are of a documentation
%% network (RFC 5737) that this machine is not in: nothing real may be hidden by them.
network(Config) ->
    {ok, Interfaces} = inet:getifaddrs(),
    Used = [{A, B, C} || {_, Options} <- Interfaces, {addr, {A, B, C, _}} <- Options],
    case [{198, 51, 100}, {203, 0, 113}, {192, 0, 2}] -- Used of
        [] -> {cannot, "this machine is in all documentation networks"};
        [Free | _] -> network(Free, Config)
    end.

network(Free, Config) ->
    Tag = string:slice(os:getpid(), max(0, length(os:getpid()) - 6)),
    Namespace = "fairnif" ++ Tag,
    [Here, There] = [inet:ntoa(erlang:append_element(Free, N)) || N <- [1, 2]],
    {Link, Other} = {"fairh" ++ Tag, "fairn" ++ Tag},
    Inside = ["ip", "netns", "exec", Namespace],
    note({netns, Namespace}, Config),
    note({link, Link}, Config),
    Steps = ["ip netns add " ++ Namespace,
             "ip link add " ++ Link ++ " type veth peer name " ++ Other,
             "ip link set " ++ Other ++ " netns " ++ Namespace,
             "ip address add " ++ Here ++ "/30 dev " ++ Link,
             "ip link set " ++ Link ++ " up",
             lists:join(" ", Inside) ++ " ip address add " ++ There ++ "/30 dev " ++ Other,
             lists:join(" ", Inside) ++ " ip link set " ++ Other ++ " up",
             lists:join(" ", Inside) ++ " ip link set lo up"],
    case os:find_executable("ip") of
        false -> {cannot, "there is no `ip'"};
        _ -> steps(Steps, #{here => Here, there => There, link => Link, inside => Inside}, Config)
    end.

steps([], #{inside := [Command | Args]} = Network, Config) ->
    %% A name server for that network, in the foreground, so that its number is known.
    Port = open_port({spawn_executable, os:find_executable(Command)},
                     [{args, Args ++ [os:find_executable("epmd")]}, exit_status, stderr_to_stdout]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    note({os_pid, integer_to_list(Pid)}, Config),
    {ok, Network};
steps([Step | Steps], Network, Config) ->
    case os:cmd(lists:flatten(Step)) of
        "" -> steps(Steps, Network, Config);
        Said -> {cannot, lists:flatten(Step) ++ ": " ++ string:trim(Said)}
    end.
