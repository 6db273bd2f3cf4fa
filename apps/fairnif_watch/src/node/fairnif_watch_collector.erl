%% Where everything meets: takes the watchdog's events, looks at the node once a second, runs the
%% detectors, keeps the findings, tells subscribers.
%%
%% Must never wait for anybody: it asks no process anything, reads no file (that would need a dirty
%% scheduler), calls only what a blocked scheduler cannot hold up, and sends only. What may take
%% long is done by others: fairnif_watch_out logs and emits, fairnif_watch_ask asks the culprits,
%% fairnif_watch_dirty looks for dirty jobs.
%%
%% Runs at priority high: it is wanted most when run queues are long, and works for well under a
%% millisecond each second. It must not be bound to a scheduler: where that one is blocked no other
%% could take it over.
-module(fairnif_watch_collector).

-behaviour(gen_server).

-export([start_link/1, view/0, metrics/0, probe/0, subscribe/1, unsubscribe/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(TICK_MS, 1000).
%% Between two looks while something waits: whether it waits all the time cannot be seen from one.
-define(LOOK_MS, 100).
%% Between two looks while nothing does.
-define(IDLE_LOOK_MS, 500).
%% Reports of the watchdog looked at in a second; it sends 50 at most, so this is for what is wrong.
-define(EVENTS, 200).
%% Findings under way to fairnif_watch_out.
-define(OUT, 100).
%% Subscribers at most: each costs a copy of the view each second.
-define(SUBSCRIBERS, 64).

-record(state, {config :: map(),
                started :: integer(),
                counters :: fairnif_watch_counters:counters(),
                store :: fairnif_watch_store:store(),
                detectors :: [{fairnif_watch_detector:detector(), map(), State :: term()}],
                subscribers = #{} :: #{reference() => pid()},
                looks = [] :: [map()],
                last_look = none :: none | map(),
                sample = none :: none | map(),
                tick_at :: integer(),
                due :: integer(),
                %% Was a pool full at the last tick?
                full = false :: boolean(),
                look_timer = none :: none | reference(),
                budget = ?EVENTS :: integer(),
                out = 0 :: non_neg_integer(),
                collections = [] :: [{integer(), pid(), non_neg_integer()}],
                asks :: fairnif_watch_ask:asks(),
                pools :: fairnif_watch_pools:pools()}).

%% @private
-spec start_link(map()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @private
-spec view() -> map().
view() ->
    gen_server:call(?MODULE, view, 60000).

%% @private What the metrics are made of.
-spec metrics() -> fairnif_watch_metrics:input().
metrics() ->
    gen_server:call(?MODULE, metrics, 60000).

%% @private Loads the probe as the settings say; in the caller, since that may wait.
-spec probe() -> ok | {error, term()}.
probe() ->
    fairnif_watch_probe:load(gen_server:call(?MODULE, config)).

%% @private
-spec subscribe(pid()) -> {ok, reference()} | {error, too_many}.
subscribe(Pid) ->
    gen_server:call(?MODULE, {subscribe, Pid}).

%% @private
-spec unsubscribe(reference()) -> ok.
unsubscribe(Ref) ->
    gen_server:call(?MODULE, {unsubscribe, Ref}).

%% @private
-spec init(map()) -> {ok, #state{}}.
init(Config) ->
    _ = process_flag(priority, high),
    _ = process_flag(message_queue_data, off_heap),
    Now = erlang:monotonic_time(millisecond),
    _ = erlang:send_after(Now + ?TICK_MS, self(), {tick, Now + ?TICK_MS}, [{abs, true}]),
    {ok, #state{config = Config,
                started = erlang:system_time(microsecond),
                counters = fairnif_watch_counters:new(),
                store = fairnif_watch_store:new(Config),
                detectors = [{Detector, fairnif_watch_detector:limits(Detector, Config), Init}
                             || #{init := Init} = Detector <- fairnif_watch_detector:all()],
                tick_at = Now, due = Now + ?TICK_MS,
                asks = fairnif_watch_ask:new(),
                pools = fairnif_watch_pools:new(Config)}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(view, _, State) ->
    Seen = seen(State),
    {reply, view(Seen), Seen};
handle_call(metrics, _, State) ->
    Seen = seen(State),
    {reply, #{view => view(Seen), sample => Seen#state.sample, config => Seen#state.config,
              totals => fairnif_watch_store:totals(Seen#state.store)}, Seen};
handle_call(config, _, State) ->
    {reply, State#state.config, State};
handle_call({subscribe, _}, _, #state{subscribers = Subscribers} = State)
  when map_size(Subscribers) >= ?SUBSCRIBERS ->
    {reply, {error, too_many}, State};
handle_call({subscribe, Pid}, _, #state{subscribers = Subscribers} = State) ->
    Ref = erlang:monitor(process, Pid),
    {reply, {ok, Ref}, State#state{subscribers = Subscribers#{Ref => Pid}}};
handle_call({unsubscribe, Ref}, _, #state{subscribers = Subscribers} = State) ->
    _ = [erlang:demonitor(Ref, [flush]) || maps:is_key(Ref, Subscribers)],
    {reply, ok, State#state{subscribers = maps:remove(Ref, Subscribers)}};
handle_call(_, _, State) ->
    {reply, {error, unknown}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({fairnif_watch, #{event := _}}, #state{budget = Budget} = State) when Budget =< 0 ->
    count(reports_dropped, 1, State),
    {noreply, State};
handle_info({fairnif_watch, #{event := Kind} = Event}, #state{budget = Budget} = State) ->
    count(reports, 1, State),
    Readable = fairnif_watch_symbol:in_event(Event),
    {noreply, overdue(event(Kind, Readable, State#state{budget = Budget - 1}))};
handle_info({tick, Due}, #state{due = Due} = State) ->
    {noreply, tick(State)};
handle_info(look, State) ->
    Looked = look(State#state{look_timer = none}),
    case is_newly_full(Looked) of
        true -> {noreply, tick(Looked)};
        false -> {noreply, look_again(Looked)}
    end;
handle_info({fairnif_watch_out, Done}, #state{out = Out} = State) ->
    {noreply, State#state{out = max(0, Out - Done)}};
handle_info({fairnif_watch_count, Name, Value}, State) ->
    count(Name, Value, State),
    {noreply, State};
handle_info({fairnif_watch_sysmon, long_gc, Pid, Ms}, #state{collections = Known} = State) ->
    Now = erlang:system_time(microsecond),
    Next = State#state{collections = lists:sublist([{Now, Pid, Ms} | Known], 32)},
    {noreply, lists:foldl(fun(Id, S) -> learned(Id, #{}, S) end, Next,
                          fairnif_watch_store:unlearned(State#state.store))};
handle_info({fairnif_watch_asked, _, _} = Answer, State) ->
    {noreply, asked(Answer, State)};
handle_info({fairnif_watch_pools, Message}, #state{pools = Pools} = State) ->
    {noreply, beside(State#state{pools = fairnif_watch_pools:handle(Message, Pools)})};
handle_info({'DOWN', Ref, process, _, Why}, #state{subscribers = Subscribers} = State) ->
    case maps:is_key(Ref, Subscribers) of
        true ->
            {noreply, State#state{subscribers = maps:remove(Ref, Subscribers)}};
        false ->
            Now = erlang:system_time(microsecond),
            Asks = fairnif_watch_ask:down(Ref, State#state.asks),
            Pools = fairnif_watch_pools:down(Ref, Why, Now, State#state.pools),
            {noreply, State#state{asks = Asks, pools = Pools}}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{asks = Asks, pools = Pools}) ->
    fairnif_watch_ask:stop(Asks),
    fairnif_watch_pools:stop(Pools).

%% Events.

event(Kind, Event, State) when Kind =:= blocked; Kind =:= unblocked; Kind =:= no_cpu_time ->
    observe({event, Event, seen_at(Event)}, State);
event(looked, Event, #state{pools = Pools} = State) ->
    beside(State#state{pools = fairnif_watch_pools:looked(Event, Pools)});
event(_, _, State) ->
    State.

%% When the thread saw it: where everybody is blocked the report comes much later.
seen_at(#{since := Since, blocked_ns := Blocked}) ->
    (Since + Blocked + erlang:time_offset(nanosecond)) div 1000.

%% The second.

%% A timer stands still with the scheduler on which it was set: while that is blocked it is the
%% watch thread's reports that keep the time.
overdue(#state{due = Due} = State) ->
    case erlang:monotonic_time(millisecond) > Due + ?LOOK_MS of
        true -> tick(State);
        false -> State
    end.

tick(#state{tick_at = Last} = State) ->
    Now = erlang:monotonic_time(millisecond),
    %% Late by more than a second: continue from here instead of catching up.
    Next = max(min(Last + 2 * ?TICK_MS, Now + ?TICK_MS), Now + ?TICK_MS div 2),
    _ = erlang:send_after(Next, self(), {tick, Next}, [{abs, true}]),
    Looked = look(State),
    Sample = fairnif_watch_sample:take(lists:reverse(Looked#state.looks), max(1, Now - Last),
                                       Looked#state.sample),
    {Counts, Pools} = fairnif_watch_pools:sample(Sample, Looked#state.pools),
    lists:foreach(fun({Name, Value}) -> count(Name, Value, State) end, Counts),
    Full = fairnif_watch_pools:add(Sample, Pools),
    count(views, 1, State),
    fairnif_watch_ask:expire(Looked#state.asks),
    IsFull = is_newly_full(Looked#state{full = false}),
    Fresh = Looked#state{looks = [], full = IsFull, sample = Full, tick_at = Next - ?TICK_MS,
                         due = Next, pools = Pools, budget = ?EVENTS},
    Observed = observe({sample, Full}, Fresh),
    tell_view(Observed),
    look_again(Observed).

look(#state{looks = Looks} = State) ->
    Look = fairnif_watch_sample:look(),
    State#state{last_look = Look, looks = lists:sublist([Look | Looks], 20)}.

%% A pool that has just become full is looked into at once: a finding must be there within a second.
is_newly_full(#state{looks = Looks, full = Known}) ->
    Last = lists:sublist(Looks, 3),
    length(Last) =:= 3 andalso not Known
        andalso lists:any(fun(Kind) ->
                                  lists:all(fun(Look) -> element(1, maps:get(Kind, Look)) > 0 end,
                                            Last)
                          end, [dirty_cpu, dirty_io]).

%% Looks closely only while something waits: else an idle node would be woken ten times a second.
look_again(#state{look_timer = none, last_look = Last} = State) ->
    Ms = case fairnif_watch_sample:waits(Last) of
             true -> ?LOOK_MS;
             false -> ?IDLE_LOOK_MS
         end,
    State#state{look_timer = erlang:send_after(Ms, self(), look)};
look_again(State) ->
    State.

%% A view of a moment before the first second is over needs a first look.
seen(#state{sample = none} = State) ->
    Sample = fairnif_watch_sample:take([fairnif_watch_sample:look()], 1, none),
    State#state{sample = fairnif_watch_pools:add(Sample, State#state.pools)};
seen(State) ->
    State.

%% Detectors.

observe(Observation, #state{detectors = Detectors} = State) ->
    {New, After} = lists:mapfoldl(
                     fun({#{name := Name, observe := Observe} = Detector, Limits, Own}, S) ->
                             {Issues, NextOwn} = Observe(Observation, Limits, Own),
                             {{Detector, Limits, NextOwn}, issues(Name, Issues, S)}
                     end, State, Detectors),
    After#state{detectors = New}.

issues(_, same, State) ->
    State;
issues(Name, Issues, #state{store = Store} = State) ->
    {Changes, NextStore} = fairnif_watch_store:issues(Name, Issues, Store),
    changed(Changes, State#state{store = NextStore}).

changed(Changes, State) ->
    lists:foldl(fun({What, Finding}, S) -> announce(What, Finding, S) end, State, Changes).

announce(What, Finding, State) ->
    count(case What of new -> findings; _ -> findings_changed end, 1, State),
    tell({finding, Finding}, State),
    out(What, Finding, await(Finding, ask(What, Finding, State))).

%% A thread that sleeps in a lock of a library waits for its owner.
await(#{id := Id, detector := scheduler_blocked, ongoing := Ongoing, culprit := Culprit},
      #state{pools = Pools} = State) ->
    Module = case Culprit of
                 #{syscall := futex, module := M} when Ongoing -> M;
                 #{} -> none
             end,
    State#state{pools = fairnif_watch_pools:await(Id, Module, Pools)};
await(_, State) ->
    State.

beside(#state{pools = Pools} = State) ->
    lists:foldl(fun({_, []}, S) -> S;
                   ({Id, Holders}, S) -> learned(Id, #{beside => Holders}, S)
                end, State, fairnif_watch_pools:beside(Pools)).

%% What a culprit is, is asked when it can answer: after the end.
ask(What, Finding, #state{asks = Asks} = State) when What =:= new; What =:= ended ->
    State#state{asks = fairnif_watch_ask:start(What, Finding, Asks)};
ask(_, _, State) ->
    State.

asked({fairnif_watch_asked, Id, Facts}, State) ->
    count(asks, 1, State),
    case Facts of
        timeout -> count(asks_failed, 1, State);
        _ -> ok
    end,
    learned(Id, Facts, State).

learned(Id, Facts, #state{store = Store, collections = Gcs} = State) ->
    {Changes, Next} = fairnif_watch_store:learned(Id, Facts, Gcs, Store),
    lists:foldl(fun({_, Finding}, S) -> tell({finding, Finding}, S), S end,
                State#state{store = Next}, Changes).

%% Telling.

out(_, _, #state{config = #{log := false, telemetry := false}} = State) ->
    State;
out(What, Finding, #state{out = Out} = State) when Out < ?OUT ->
    fairnif_watch_out:finding(What, Finding),
    State#state{out = Out + 1};
out(_, _, State) ->
    count(out_dropped, 1, State),
    State.

tell_view(#state{subscribers = Subscribers}) when map_size(Subscribers) =:= 0 ->
    ok;
tell_view(State) ->
    tell({view, view(State)}, State).

%% Never suspended by a connection that is full, and never connects: a view that cannot be sent now
%% is not worth waiting for.
tell(Message, #state{subscribers = Subscribers}) ->
    maps:foreach(
      fun(_, Pid) ->
              erlang:send(Pid, {fairnif_watch, node(), Message}, [nosuspend, noconnect])
      end, Subscribers).

view(#state{sample = Sample} = State) ->
    fairnif_watch_view:make(#{sample => Sample,
                              started => State#state.started,
                              findings => fairnif_watch_store:findings(State#state.store),
                              counters => fairnif_watch_counters:read(State#state.counters),
                              subscribers => map_size(State#state.subscribers)}).

count(Name, Value, #state{counters = Counters}) ->
    fairnif_watch_counters:add(Counters, Name, Value).
