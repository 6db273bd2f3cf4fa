%% The node's system_monitor, where no other process has it: says which block was a long collection.
%%
%% There is one per node. Never takes it from another process, gives it up when one takes it, and
%% leaves it as it was. long_schedule is not asked for: it names the wrong function.
%%
%% `erlang:system_monitor/2' stops all schedulers for a moment, and so waits, with all of them, for
%% one that native code holds. So it is called only while the watch thread sees none blocked, and
%% not at all to give the monitor up: the VM does that when its owner ends, and stops no process.
-module(fairnif_watch_sysmon).

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Collections at least this long are reported.
-define(LONG_GC_MS, 10).
%% Before the first look: the watch thread must have seen what there is.
-define(FIRST_MS, 500).
%% Between two looks whether the monitor is still ours, or is free now.
-define(LOOK_MS, 5000).

-record(state, {collector :: pid()}).

%% @private
-spec start_link(pid()) -> gen_server:start_ret().
start_link(Collector) ->
    gen_server:start_link(?MODULE, Collector, []).

%% @private
-spec init(pid()) -> {ok, #state{}}.
init(Collector) ->
    _ = erlang:send_after(?FIRST_MS, self(), look),
    {ok, #state{collector = Collector}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, {error, unknown}, #state{}}.
handle_call(_, _, State) ->
    {reply, {error, unknown}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({monitor, Pid, long_gc, Info}, #state{collector = Collector} = State) ->
    {timeout, Ms} = lists:keyfind(timeout, 1, Info),
    Collector ! {fairnif_watch_sysmon, long_gc, Pid, Ms},
    {noreply, State};
handle_info(look, State) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    _ = is_calm() andalso take(),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

%% Without the thread it cannot be known.
is_calm() ->
    case fairnif_watch_sample:from_watchdog(threads, []) of
        [#{tid := Tid} | _] = Threads when Tid > 0 ->
            [] =:= [N || #{kind := normal, number := N, blocked_ns := Ns} <- Threads, Ns > 0];
        _ ->
            false
    end.

%% Between the look and the taking another process may have come: then it is theirs again.
take() ->
    case erlang:system_monitor() of
        undefined ->
            case erlang:system_monitor(self(), [{long_gc, ?LONG_GC_MS}]) of
                {Pid, Options} when Pid =/= self() ->
                    %% It may have ended meanwhile.
                    _ = try erlang:system_monitor(Pid, Options) catch error:badarg -> gone end,
                    ok;
                _ ->
                    ok
            end;
        _ ->
            ok
    end.
