%% What is known of the nodes that are watched from here: of each its status, since when, and its
%% last view. The source of the terminal view, of the live page and of `--once'.
%%
%% It never calls a node nor waits for one: each has a worker (fairnif_watch_node), which tells.
-module(fairnif_watch_cluster).

-behaviour(gen_server).

-export([start_link/1, views/1, subscribe/2, unsubscribe/2, source/1, stop/2]).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([options/0, views/0, entry/0, status/0]).

%% `follow': the nodes that these know are watched too.
-type options() :: #{nodes := [node()], cookie := atom(), form := shortnames | longnames,
                     follow => boolean(), attach => fairnif_watch_attach:options()}.
-type status() :: fairnif_watch_node:status().
%% `since': us of the system's time. `reason': a sentence, of anything but `up' and of an `up' that
%% was not the first. `view': the last one, however old; pids in it are binaries, as the node writes
%% them, so that they read the same anywhere.
-type entry() :: #{node := node(), status := status(), since := integer(),
                   reason := binary() | none, view := map() | none, from := integer() | none,
                   outside := [binary()]}.
%% `from': since when we are attached, us of the node's own time; the first time counts. `outside':
%% of one that is hanging, what is seen of it from outside (fairnif_watch_outside).
-type views() :: #{nodes := [entry()]}.

-record(known, {worker :: pid(),
                entry :: entry(),
                %% Named by the user; the others come and go.
                asked :: boolean(),
                looker = none :: none | pid(),
                peers = [] :: [node()]}).
-record(state, {options :: options(),
                %% In the order in which they became known, newest first.
                order = [] :: [node()],
                nodes = #{} :: #{node() => #known{}},
                subscribers = #{} :: #{reference() => pid()}}).

-define(FINDINGS, 100).
-define(NODES, 256).
%% A node that was found, went, and is known to no other any more stays in view for so long.
-define(FORGET_US, 60000000).
-define(LOOK_MS, 1000).
%% Before a worker that failed is replaced: what made it fail may still be so.
-define(RESTART_MS, 1000).

%% @doc Watches these nodes; distribution runs (fairnif_watch_connect:start/2).
-spec start_link(options()) -> {ok, pid()}.
start_link(Options) ->
    {ok, Pid} = gen_server:start_link(?MODULE, Options, []),
    {ok, Pid}.

%% @doc What is known now; no node is asked.
-spec views(pid()) -> views().
views(Cluster) ->
    gen_server:call(Cluster, views).

%% @doc Sends a process of this node what changes, as it comes: `{fairnif_watch, Node, Message}',
%% `Message' being `{view, View}', `{finding, Finding}' or `{node, Entry}', part of its entry; and
%% `{fairnif_watch_cluster, views()}' at once, and whenever a node comes or is forgotten.
-spec subscribe(pid(), pid()) -> {ok, reference()}.
subscribe(Cluster, Pid) ->
    gen_server:call(Cluster, {subscribe, Pid}).

%% @doc Ends a subscription, as the end of its process does.
-spec unsubscribe(pid(), reference()) -> ok.
unsubscribe(Cluster, Ref) ->
    gen_server:call(Cluster, {unsubscribe, Ref}).

%% @doc What fairnif_watch_web takes as its source.
-spec source(pid()) -> #{subscribe := fun((pid()) -> {ok, reference()}),
                         unsubscribe := fun((reference()) -> ok)}.
source(Cluster) ->
    #{subscribe => fun(Pid) -> subscribe(Cluster, Pid) end,
      unsubscribe => fun(Ref) -> unsubscribe(Cluster, Ref) end}.

%% @doc Leaves all nodes, and ends. Waits for them to be as they were, but not longer than that many
%% milliseconds for all together.
-spec stop(pid(), timeout()) -> ok.
stop(Cluster, Timeout) ->
    gen_server:call(Cluster, {stop, Timeout}, Timeout + 2000).

%% @private
-spec init(options()) -> {ok, #state{}}.
init(#{nodes := Nodes} = Options) ->
    _ = process_flag(trap_exit, true),
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {ok, lists:foldl(fun(Node, State) -> add(Node, true, State) end, #state{options = Options},
                     lists:uniq(Nodes))}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) ->
          {reply, term(), #state{}} | {stop, normal, ok, #state{}}.
handle_call(views, _, State) ->
    {reply, all(State), State};
handle_call({subscribe, Pid}, _, #state{subscribers = Subscribers} = State) ->
    Ref = erlang:monitor(process, Pid),
    Pid ! {fairnif_watch_cluster, all(State)},
    {reply, {ok, Ref}, State#state{subscribers = Subscribers#{Ref => Pid}}};
handle_call({unsubscribe, Ref}, _, #state{subscribers = Subscribers} = State) ->
    true = erlang:demonitor(Ref, [flush]),
    {reply, ok, State#state{subscribers = maps:remove(Ref, Subscribers)}};
handle_call({stop, Timeout}, _, #state{nodes = Nodes} = State) ->
    Stopping = [spawn_monitor(fun() -> fairnif_watch_node:stop(Worker, Timeout) end)
                || #known{worker = Worker} <- maps:values(Nodes), unlink(Worker)],
    [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Stopping],
    {stop, normal, ok, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({fairnif_watch_node, Worker, Node, Message}, #state{nodes = Nodes} = State) ->
    case Nodes of
        #{Node := #known{worker = Worker} = Known} ->
            {noreply, update(Message, Node, Known, State)};
        #{} -> {noreply, State}
    end;
handle_info({fairnif_watch_outside, Looker, Node, Seen}, #state{nodes = Nodes} = State) ->
    case Nodes of
        #{Node := #known{looker = Looker, entry = Entry} = Known} ->
            {noreply, changed(Node, Known#known{entry = Entry#{outside := Seen}}, State)};
        #{} -> {noreply, State}
    end;
handle_info(look, State) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {noreply, forget(State)};
handle_info({'DOWN', Ref, process, _, _}, #state{subscribers = Subscribers} = State) ->
    {noreply, State#state{subscribers = maps:remove(Ref, Subscribers)}};
handle_info({'EXIT', From, Reason}, #state{nodes = Nodes} = State) ->
    case [Node || {Node, #known{worker = Worker}} <- maps:to_list(Nodes), Worker =:= From] of
        %% A fault of ours: the others stay in view, and this one is restarted.
        [Node] -> {noreply, restart(Node, Reason, State)};
        %% Our parent, then; or a process that we unlinked.
        [] when Reason =:= normal -> {noreply, State};
        [] -> {stop, Reason, State}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% ---- nodes ----

add(Node, Asked, #state{options = Options, nodes = Nodes, order = Order} = State) ->
    Entry = #{node => Node, status => down, since => now_us(), reason => <<"not reached yet">>,
              view => none, from => none, outside => []},
    Known = #known{worker = worker(Node, 0, Options), entry = Entry, asked = Asked},
    State#state{nodes = Nodes#{Node => Known}, order = [Node | Order]}.

worker(Node, DelayMs, #{cookie := Cookie, form := Form} = Options) ->
    fairnif_watch_node:start_link(#{node => Node, cookie => Cookie, form => Form, to => self(),
                                    delay_ms => DelayMs,
                                    follow => maps:get(follow, Options, false),
                                    attach => maps:get(attach, Options, #{})}).

restart(Node, Reason, #state{options = Options, nodes = Nodes} = State) ->
    #{Node := Known} = Nodes,
    Why = iolist_to_binary(io_lib:format("watching it failed: ~0tP", [Reason, 12])),
    Worker = worker(Node, ?RESTART_MS, Options),
    update({status, down, Why}, Node, Known#known{worker = Worker}, State).

update({view, View}, Node, Known, State) ->
    up(Node, Known, fun(Entry) -> Entry#{view := View} end, {view, View}, State);
update({finding, Finding}, Node, Known, State) ->
    up(Node, Known, fun(Entry) -> with_finding(Finding, Entry) end, {finding, Finding}, State);
update({attached, From}, Node, #known{entry = #{from := none} = Entry} = Known,
       #state{nodes = Nodes} = State) ->
    State#state{nodes = Nodes#{Node := Known#known{entry = Entry#{from := From}}}};
update({attached, _}, _, _, State) ->
    State;
update({status, Status, Why}, Node, #known{entry = #{status := Before} = Entry} = Known, State) ->
    Entry1 = case Status of
                 Before -> Entry#{reason := Why};
                 _ -> Entry#{status := Status, since := now_us(), reason := Why}
             end,
    changed(Node, outside(Node, Known#known{entry = Entry1}), State);
update({peers, Peers}, Node, Known, #state{nodes = Nodes} = State) ->
    State1 = State#state{nodes = Nodes#{Node := Known#known{peers = Peers}}},
    case [Peer || Peer <- Peers, not is_map_key(Peer, Nodes), map_size(Nodes) < ?NODES] of
        [] ->
            State1;
        New ->
            State2 = lists:foldl(fun(Peer, S) -> add(Peer, false, S) end, State1, lists:sort(New)),
            tell({fairnif_watch_cluster, all(State2)}, State2),
            State2
    end.

up(Node, #known{entry = #{status := up} = Entry} = Known, Change, Message,
   #state{nodes = Nodes} = State) ->
    tell({fairnif_watch, Node, Message}, State),
    State#state{nodes = Nodes#{Node := Known#known{entry = Change(Entry)}}};
up(Node, #known{entry = #{status := Before, reason := Why} = Entry} = Known, Change, Message,
   State) ->
    Reason = case Before of
                 replaced -> Why;
                 _ -> none
             end,
    Up = outside(Node, Known#known{entry = Entry#{status := up, since := now_us(),
                                                  reason := Reason}}),
    up(Node, Up, Change, Message, changed(Node, Up, State)).

changed(Node, #known{entry = Entry} = Known, #state{nodes = Nodes} = State) ->
    Told = maps:with([status, since, reason, from, outside], Entry),
    tell({fairnif_watch, Node, {node, Told}}, State),
    State#state{nodes = Nodes#{Node := Known}}.

%% One that hangs is looked at from outside for as long as it does.
outside(Node, #known{entry = #{status := hanging}, looker = none} = Known) ->
    Known#known{looker = fairnif_watch_outside:start(Node)};
outside(_, #known{entry = #{status := Status} = Entry, looker = Looker} = Known)
  when Status =/= hanging, Looker =/= none ->
    ok = fairnif_watch_outside:stop(Looker),
    Known#known{entry = Entry#{outside := []}, looker = none};
outside(_, Known) ->
    Known.

%% A finding that comes by itself belongs into the view that it comes before.
with_finding(_, #{view := none} = Entry) ->
    Entry;
with_finding(#{id := Id} = Finding, #{view := #{findings := Findings} = View} = Entry) ->
    Others = [F || #{id := Other} = F <- Findings, Other =/= Id],
    Newest = lists:sort(fun(#{id := A}, #{id := B}) -> A >= B end, [Finding | Others]),
    Entry#{view := View#{findings := lists:sublist(Newest, ?FINDINGS)}}.

forget(#state{nodes = Nodes} = State) ->
    Peers = lists:append([P || #known{peers = P, entry = #{status := up}} <- maps:values(Nodes)]),
    Limit = now_us() - ?FORGET_US,
    Old = [{Node, Known}
           || {Node, #known{asked = false, entry = #{status := S, since := Since}} = Known}
                  <- maps:to_list(Nodes),
              S =/= up, Since < Limit, not lists:member(Node, Peers)],
    case Old of
        [] ->
            State;
        _ ->
            %% Not waited for: there is nothing to leave.
            [begin true = unlink(W), exit(W, kill) end || {_, #known{worker = W}} <- Old],
            [ok = fairnif_watch_outside:stop(L) || {_, #known{looker = L}} <- Old, L =/= none],
            Gone = [Node || {Node, _} <- Old],
            State1 = State#state{nodes = maps:without(Gone, Nodes),
                                 order = State#state.order -- Gone},
            tell({fairnif_watch_cluster, all(State1)}, State1),
            State1
    end.

all(#state{order = Order, nodes = Nodes}) ->
    #{nodes => [Entry || Node <- lists:reverse(Order),
                         #known{entry = Entry} <- [maps:get(Node, Nodes)]]}.

tell(Message, #state{subscribers = Subscribers}) ->
    maps:foreach(fun(_, Pid) -> Pid ! Message end, Subscribers).

now_us() ->
    erlang:system_time(microsecond).
