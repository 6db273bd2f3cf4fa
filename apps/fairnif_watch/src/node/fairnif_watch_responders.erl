%% @doc The responders of a node: one for each normal scheduler that is online, made and ended as
%% those come and go.  Where there is no native part two clocks as well.
%%
%% A responder goes to its scheduler for each reply; without the native part it waits there too.  A
%% scheduler that is taken offline then keeps it: it is bound, and no other may run it.  It answers
%% no signal any more, and a caller that asks all processes (`code:purge/1') waits for it.  Only
%% that scheduler can release it: so it is brought online for some milliseconds, and taken offline
%% again.
-module(fairnif_watch_responders).

-export([new/1, new/2, keep/1, follow/1, by_scheduler/1, ended/2, stop/1]).

-export_type([responders/0]).

-type role() :: {responder | clock, Scheduler :: pos_integer()}.

%% Data and no fun: the watchdog keeps it, and would not survive this module's being loaded twice.
%% With `erlang' there are clocks, and all wait bound.
-type way() :: {native, fairnif_watch_native:watch()}
             | {erlang, Watchdog :: pid(), Ms :: pos_integer()}.

-record(responders, {way :: way(),
                 online = 0 :: non_neg_integer(),
                 there = #{} :: #{role() => pid()},
                 leaving = #{} :: #{pid() => Scheduler :: pos_integer()},
                 freeing = none :: none | pid()}).
-opaque responders() :: #responders{}.

-define(LEAVE_MS, 1000).

%% @doc Responders that answer the watch thread, linked to the caller.
-spec new(fairnif_watch_native:watch()) -> responders().
new(Watch) ->
    keep(#responders{way = {native, Watch}}).

%% @doc Responders that answer the caller, which gets `{tick, Clock}' from each of two clocks every
%% `Ms', and answers `tock'. Two, so that one is left when the scheduler of the other is blocked.
-spec new(erlang, Ms :: pos_integer()) -> responders().
new(erlang, Ms) ->
    keep(#responders{way = {erlang, self(), Ms}}).

start({responder, N}, {native, Watch}) ->
    fairnif_watch_responder:start_link(N, Watch);
start({responder, N}, {erlang, Watchdog, _}) ->
    fairnif_watch_responder:start_link(N, erlang, Watchdog);
start({clock, N}, {erlang, Watchdog, Ms}) ->
    fairnif_watch_responder:start_clock(N, Watchdog, Ms).

clocks({native, _}) -> 0;
clocks({erlang, _, _}) -> 2.

%% @doc To be called every second or so: makes those that are missing, and ends those of schedulers
%% that are offline. One that has not ended since the last call is caught, and freed.
-spec keep(responders()) -> responders().
keep(Responders = #responders{freeing = Freeing, leaving = Leaving}) ->
    case is_pid(Freeing) andalso is_process_alive(Freeing) of
        true -> Responders;
        false -> match_online(online(), Responders#responders{freeing = free(Leaving)})
    end.

%% @doc To be called as often as wanted: like keep/1 where the number that are online has changed.
-spec follow(responders()) -> responders().
follow(Responders = #responders{online = Online}) ->
    case online() of
        Online -> Responders;
        _ -> keep(Responders)
    end.

match_online(Online, Responders = #responders{way = Way, there = There, leaving = Leaving}) ->
    Wanted = [{responder, N} || N <- lists:seq(1, Online)]
        ++ [{clock, N} || N <- lists:seq(1, min(clocks(Way), Online))],
    Left = maps:without(Wanted, There),
    _ = [fairnif_watch_responder:finish(Pid) || Pid <- maps:values(Left)],
    Missing = Wanted -- maps:keys(There),
    caught(Responders#responders{there = maps:merge(maps:with(Wanted, There),
                                            maps:from_list([{R, start(R, Way)} || R <- Missing])),
                         leaving = maps:merge(Leaving, schedulers(Left)), online = Online}).

%% Those that wait bound are caught whenever it comes; the others seldom, and have until next time.
caught(Responders = #responders{way = {erlang, _, _}, freeing = none, leaving = Leaving}) ->
    Responders#responders{freeing = free(Leaving)};
caught(Responders) ->
    Responders.

schedulers(Roles) ->
    maps:from_list([{Pid, N} || {{_, N}, Pid} <- maps:to_list(Roles)]).

%% @doc The responders, by scheduler.
-spec by_scheduler(responders()) -> #{Scheduler :: pos_integer() => pid()}.
by_scheduler(#responders{there = There}) ->
    maps:from_list([{N, Pid} || {{responder, N}, Pid} <- maps:to_list(There)]).

%% @doc The caller is notified that a process has ended. `false': it was none of these. One that
%% was killed is made again by keep/1: not at once, since it could end again and again.
-spec ended(pid(), responders()) -> {true, responders()} | false.
ended(Pid, Responders = #responders{there = There, leaving = Leaving}) ->
    Rest = maps:filter(fun(_, P) -> P =/= Pid end, There),
    case is_map_key(Pid, Leaving) orelse map_size(Rest) < map_size(There) of
        true -> {true, Responders#responders{there = Rest, leaving = maps:remove(Pid, Leaving)}};
        false -> false
    end.

%% @doc Ends them all. One whose scheduler is blocked ends when that is given back: it is not waited
%% for longer than a second. One that is caught is freed.
-spec stop(responders()) -> ok.
stop(#responders{there = There, leaving = Leaving, freeing = Freeing}) ->
    All = maps:merge(Leaving, schedulers(There)),
    _ = [fairnif_watch_responder:finish(Pid) || Pid <- maps:keys(All)],
    Left = maps:with(await(maps:keys(All)), All),
    _ = await([Pid || Pid <- [Freeing, free(Left)], is_pid(Pid)], 5 * ?LEAVE_MS),
    lists:foreach(fun(Pid) -> true = unlink(Pid), exit(Pid, kill) end, maps:keys(Left)).

%% Those that are still there after a second.
await(Pids) ->
    await(Pids, ?LEAVE_MS).

await(Pids, Ms) ->
    Monitors = [{Pid, monitor(process, Pid)} || Pid <- Pids],
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    [Pid || {Pid, Monitor} <- Monitors, not is_down(Monitor, Deadline)].

is_down(Monitor, Deadline) ->
    receive {'DOWN', Monitor, process, _, _} -> true
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
            true = erlang:demonitor(Monitor, [flush]),
            false
    end.

%% A process of its own does it: it may wait for a scheduler that is blocked. Not linked, since it
%% has something to put back; and soon.
free(Leaving) ->
    Online = online(),
    case maps:filter(fun(_, N) -> N > Online end, Leaving) of
        Caught when map_size(Caught) =:= 0 -> none;
        Caught ->
            {Pids, To} = {maps:keys(Caught), lists:max(maps:values(Caught))},
            spawn_opt(fun() -> free(Pids, To) end, [{priority, high}])
    end.

free(Pids, To) ->
    Dirty = dirty_online(),
    Before = erlang:system_flag(schedulers_online, To),
    _ = await(Pids),
    case erlang:system_flag(schedulers_online, Before) of
        To -> dirty_online(Dirty);
        Theirs -> erlang:system_flag(schedulers_online, Theirs)     % set meanwhile by others
    end,
    logger:notice("fairnif_watch: ~w schedulers were online for a moment, not ~w: a process of "
                  "ours was on one that was taken offline, and could run nowhere else",
                  [To, Before]).

%% How many dirty CPU schedulers shall be online. `system_info' says how many are: more, while jobs
%% run on some that shall not. Only setting it says what was set.
dirty_online() ->
    Are = erlang:system_info(dirty_cpu_schedulers_online),
    Shall = dirty_online(Are),
    _ = dirty_online(Shall),
    Shall.

%% Not more than normal ones.
dirty_online(N) ->
    try erlang:system_flag(dirty_cpu_schedulers_online, N)
    catch error:badarg -> N
    end.

online() ->
    erlang:system_info(schedulers_online).
