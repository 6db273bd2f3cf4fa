%% Native processes in nodes of their own: very many, killed at any moment, called from another
%% node, their library loaded again.
-module(fairnif_process_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([ten_thousand_idle_ones_take_12_kib_each/1, a_storm_of_kills_leaves_nothing/1,
         callers_on_another_node_cannot_tell/1,
         a_second_upgrade_ends_who_has_not_followed/1]).
-export([idle/1, upgrades/0]).

-define(T, fairnif_test_process).
-define(IDLE_MOST, 12 * 1024).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE) -- [idle].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

ten_thousand_idle_ones_take_12_kib_each(_) ->
    idle(10000).

%% fairnif_soak_SUITE has 100,000.
idle(N) ->
    Each = in_peer(["+P", "300000"], idle, [N, [{hibernate_after, 500}]]),
    Awake = in_peer(["+P", "300000"], idle, [N, []]),
    true = Each =< ?IDLE_MOST,
    {comment, io_lib:format("bytes resident for each: ~b, without hibernation ~b",
                            [Each, Awake])}.

a_storm_of_kills_leaves_nothing(_) ->
    ok = in_peer([], storm, [fairnif_test:env_number("FAIR_STORM", 10) * 20]).

callers_on_another_node_cannot_tell(_) ->
    Peer = peer(["-sname", "fairnif_process_here"]),
    Other = peer(["-sname", "fairnif_process_there"]),
    P = fairnif_test:call(Peer, ?T, start, [normal, [{name, {local, served}}]]),
    Large = lists:seq(1, 100000),
    Served = {served, fairnif_test:call(Peer, erlang, node, [])},
    Call = fun(Request) -> fairnif_test:call(Other, gen_server, call, [Served, Request]) end,
    Large = Call({echo, Large}),
    hello = Call({echo, hello}),
    P = Call({self, x}),
    fairnif_test:stop(Other),
    fairnif_test:stop(Peer).

a_second_upgrade_ends_who_has_not_followed(_) ->
    Peer = peer([]),
    ok = fairnif_test:call(Peer, ?MODULE, upgrades, []),
    fairnif_test:stop(Peer).

%% In the peer: those of a version continue beside the next one, and end with the one after, idle
%% ones and one at work; but not a process that waits for such a call in fairnif:await/1.
upgrades() ->
    Old = [?T:start(Mode) || Mode <- ?T:modes()],
    Plain = spawn(fun() -> exit(fairnif:await(?T:normal(x))) end),
    Busy = ?T:start(normal),
    spawn(fun() -> gen_server:call(Busy, {work, 2000000000}, infinity) end),
    {module, ?T} = code:load_file(?T),
    [hi = gen_server:call(P, {echo, hi}) || P <- Old],
    New = ?T:start(normal),
    Monitors = [{P, monitor(process, P)} || P <- [Busy | Old]],
    true = code:soft_purge(?T),
    [hi = gen_server:call(P, {echo, hi}) || P <- Old],
    {module, ?T} = code:load_file(?T),
    [receive {'DOWN', M, process, P, killed} -> ok end || {P, M} <- Monitors],
    [hi = gen_server:call(P, {echo, hi}) || P <- [New, Plain]],
    exit(Plain, kill),
    ?T:kill([New]).

%% -- -------------------------------------------------------------------------------------

peer(Args) ->
    Peer = fairnif_test:peer(["+S", "2:2" | Args], [?T, ?MODULE]),
    ok = fairnif_test:call(Peer, application, start, [fairnif]),
    Peer.

in_peer(Args, Function, FunctionArgs) ->
    Peer = peer(Args),
    Result = fairnif_test:call(Peer, ?T, Function, FunctionArgs),
    fairnif_test:stop(Peer),
    Result.
