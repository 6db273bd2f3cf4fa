%% @doc The hearts of a node: one for each normal scheduler that is online, made and ended as those
%% come and go.  Where there is no native part two clocks as well.
%%
%% A heart goes to its scheduler for each beat; without the native part it waits there too.  A
%% scheduler that is taken offline then keeps it: it is bound, and nobody else may run it. It
%% answers no signal any more, and whoever asks all processes (`code:purge/1') waits for it. Only
%% that scheduler can let it go: so it is brought online for some milliseconds, and taken offline
%% again.
-module(fairnif_watch_hearts).

-export([new/1, new/2, keep/1, follow/1, by_scheduler/1, ended/2, stop/1]).

-export_type([hearts/0]).

-type role() :: {heart | clock, Scheduler :: pos_integer()}.

%% Data and no fun: the watchdog keeps it, and would not survive this module's being loaded twice.
%% With `erlang' there are clocks, and all wait bound.
-type way() :: {native, fairnif_watch_native:watch()}
             | {erlang, Watchdog :: pid(), Ms :: pos_integer()}.

-record(hearts, {way :: way(),
                 online = 0 :: non_neg_integer(),
                 there = #{} :: #{role() => pid()},
                 leaving = #{} :: #{pid() => Scheduler :: pos_integer()},
                 freeing = none :: none | pid()}).
-opaque hearts() :: #hearts{}.

-define(LEAVE_MS, 1000).

%% @doc Hearts that answer the watch thread, linked to the caller.
-spec new(fairnif_watch_native:watch()) -> hearts().
new(Watch) ->
    keep(#hearts{way = {native, Watch}}).

%% @doc Hearts that answer the caller, which gets `{tick, Clock}' from each of two clocks every
%% `Ms', and answers `tock'. Two, so that one is left when the scheduler of the other is blocked.
-spec new(erlang, Ms :: pos_integer()) -> hearts().
new(erlang, Ms) ->
    keep(#hearts{way = {erlang, self(), Ms}}).

start({heart, N}, {native, Watch}) -> fairnif_watch_heart:start_link(N, Watch);
start({heart, N}, {erlang, Watchdog, _}) -> fairnif_watch_heart:start_link(N, erlang, Watchdog);
start({clock, N}, {erlang, Watchdog, Ms}) -> fairnif_watch_heart:start_clock(N, Watchdog, Ms).

clocks({native, _}) -> 0;
clocks({erlang, _, _}) -> 2.

%% @doc To be called every second or so: makes those that are missing, and ends those of schedulers
%% that are offline. One that has not ended since the last call is caught, and freed.
-spec keep(hearts()) -> hearts().
keep(Hearts = #hearts{freeing = Freeing, leaving = Leaving}) ->
    case is_pid(Freeing) andalso is_process_alive(Freeing) of
        true -> Hearts;
        false -> match_online(online(), Hearts#hearts{freeing = free(Leaving)})
    end.

%% @doc To be called as often as wanted: like keep/1 where the number that are online has changed.
-spec follow(hearts()) -> hearts().
follow(Hearts = #hearts{online = Online}) ->
    case online() of
        Online -> Hearts;
        _ -> keep(Hearts)
    end.

match_online(Online, Hearts = #hearts{way = Way, there = There, leaving = Leaving}) ->
    Wanted = [{heart, N} || N <- lists:seq(1, Online)]
        ++ [{clock, N} || N <- lists:seq(1, min(clocks(Way), Online))],
    Left = maps:without(Wanted, There),
    _ = [fairnif_watch_heart:finish(Pid) || Pid <- maps:values(Left)],
    Missing = Wanted -- maps:keys(There),
    caught(Hearts#hearts{there = maps:merge(maps:with(Wanted, There),
                                            maps:from_list([{R, start(R, Way)} || R <- Missing])),
                         leaving = maps:merge(Leaving, schedulers(Left)), online = Online}).

%% Those that wait bound are caught whenever it comes; the others seldom, and have until next time.
caught(Hearts = #hearts{way = {erlang, _, _}, freeing = none, leaving = Leaving}) ->
    Hearts#hearts{freeing = free(Leaving)};
caught(Hearts) ->
    Hearts.

schedulers(Roles) ->
    maps:from_list([{Pid, N} || {{_, N}, Pid} <- maps:to_list(Roles)]).

%% @doc The hearts, by scheduler.
-spec by_scheduler(hearts()) -> #{Scheduler :: pos_integer() => pid()}.
by_scheduler(#hearts{there = There}) ->
    maps:from_list([{N, Pid} || {{heart, N}, Pid} <- maps:to_list(There)]).

%% @doc The caller is told that a process has ended. `false': it was none of these. One that
%% somebody killed is made again by keep/1: not at once, since it could end again and again.
-spec ended(pid(), hearts()) -> {true, hearts()} | false.
ended(Pid, Hearts = #hearts{there = There, leaving = Leaving}) ->
    Rest = maps:filter(fun(_, P) -> P =/= Pid end, There),
    case is_map_key(Pid, Leaving) orelse map_size(Rest) < map_size(There) of
        true -> {true, Hearts#hearts{there = Rest, leaving = maps:remove(Pid, Leaving)}};
        false -> false
    end.

%% @doc Ends them all. One whose scheduler is blocked ends when that is given back: it is not waited
%% for longer than a second. One that is caught is freed.
-spec stop(hearts()) -> ok.
stop(#hearts{there = There, leaving = Leaving, freeing = Freeing}) ->
    All = maps:merge(Leaving, schedulers(There)),
    _ = [fairnif_watch_heart:finish(Pid) || Pid <- maps:keys(All)],
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
        Theirs -> erlang:system_flag(schedulers_online, Theirs)     % set meanwhile by somebody
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
