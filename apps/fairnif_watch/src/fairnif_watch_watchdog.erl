%% @doc Runs the watch thread and the hearts of one node, and tells its owner what they see.
%%
%% The owner gets `{fairnif_watch, Event}', a map with the key `event':
%% `held' (a normal scheduler is blocked, at `warn_ms', at `error_ms', then once a second),
%% `released', `starved' (ready to run, and given no processor), `late' (the watch thread itself),
%% `suppressed', `looked'.  All times are of `erlang:monotonic_time(nanosecond)'.
%%
%% What is asked here is answered from tables, by the caller itself: a blocked scheduler cannot delay
%% it, unless the caller is on it.
-module(fairnif_watch_watchdog).

-behaviour(gen_server).

-export([start_link/1, stop/0, threads/0, counters/0, blind/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([event/0, options/0]).

-type options() :: #{owner := pid(), config := #{atom() => term()}}.
-type event() :: #{event := held | released | starved | late | suppressed | looked,
                   atom() => term()}.

-record(state, {owner :: pid(),
                watch :: fairnif_watch_native:watch(),
                hearts = #{} :: #{pid() => Scheduler :: pos_integer()},
                ended = [] :: [Scheduler :: pos_integer()],
                reaper :: pid()}).

-define(TABLE, ?MODULE).
-define(EVERY_MS, 1000).

%% @doc Starts watching.  `config' has the keys of the application environment; of them are used here
%% `period_ms', `warn_ms', `error_ms', `sample_hz', `signals', `native', `emergency_ms', and
%% `native_library', the path without extension of the native part (default: in `priv').
%%
%% One watchdog runs on a node at a time.  Takes some milliseconds; loading the library waits for
%% blocked schedulers.
-spec start_link(options()) -> {ok, pid()} | {error, {native, term()} | term()}.
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc Ends the thread and the hearts, and waits for that.
-spec stop() -> ok.
stop() ->
    gen_server:stop(?MODULE).

%% @doc Each scheduler thread: what it does now, and its share of a processor in the last second.
-spec threads() -> [#{atom() => term()}].
threads() ->
    Online = erlang:system_info(schedulers_online),
    [case Thread of
         #{kind := normal, number := N} when N > Online -> Thread#{state := offline};
         _ -> Thread
     end || Thread <- with_watch(fun fairnif_watch_native:threads/1, [])].

%% @doc What the watch thread has done so far.
-spec counters() -> #{atom() => non_neg_integer()}.
counters() ->
    with_watch(fun fairnif_watch_native:counters/1, #{}).

%% @doc What cannot be seen here, a sentence each.
-spec blind() -> [binary()].
blind() ->
    lookup(blind, []).

with_watch(Fun, Default) ->
    case lookup(watch, none) of
        none -> Default;
        Watch -> Fun(Watch)
    end.

lookup(Key, Default) ->
    try ets:lookup(?TABLE, Key) of
        [{_, Value}] -> Value;
        [] -> Default
    catch
        error:badarg -> Default
    end.

%% -- the process -----------------------------------------------------------------

%% @private
-spec init(options()) -> {ok, #state{}} | {stop, term()}.
init(#{owner := Owner, config := Config}) ->
    _ = process_flag(trap_exit, true),
    ?TABLE = ets:new(?TABLE, [named_table, protected, {read_concurrency, true}]),
    case start_native(Owner, Config) of
        {ok, Watch} ->
            true = ets:insert(?TABLE, {watch, Watch}),
            Hearts = hearts(lists:seq(1, erlang:system_info(schedulers)), Watch),
            {ok, _} = timer(),
            {ok, #state{owner = Owner, watch = Watch, hearts = Hearts, reaper = reaper(Watch)}};
        {error, Reason} ->
            {stop, {native, Reason}}
    end.

%% @private
-spec handle_call(term(), {pid(), term()}, #state{}) -> {reply, {error, unknown}, #state{}}.
handle_call(_Request, _From, State) ->
    {reply, {error, unknown}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_Request, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info(every, State = #state{watch = Watch, hearts = Hearts, ended = Ended}) ->
    ok = fairnif_watch_native:online(Watch, erlang:system_info(schedulers_online)),
    {ok, _} = timer(),
    {noreply, State#state{hearts = maps:merge(Hearts, hearts(Ended, Watch)), ended = []}};
handle_info({'EXIT', Pid, Reason}, State = #state{hearts = Hearts, ended = Ended}) ->
    case maps:take(Pid, Hearts) of
        {Scheduler, Rest} ->
            %% Somebody killed it. Not at once: it could end again and again.
            {noreply, State#state{hearts = Rest, ended = [Scheduler | Ended]}};
        error ->
            {stop, Reason, State}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{watch = Watch, hearts = Hearts, reaper = Reaper}) ->
    ok = fairnif_watch_native:stop(Watch),
    Reaper ! {done, self()},
    end_hearts(Hearts).

%% A heart whose scheduler is blocked ends when that is given back: it is not waited for long.
end_hearts(Hearts) ->
    Monitors = [begin
                    Monitor = monitor(process, Heart),
                    unlink(Heart),
                    exit(Heart, kill),
                    Monitor
                end || Heart <- maps:keys(Hearts)],
    Deadline = erlang:monotonic_time(millisecond) + 1000,
    lists:foreach(
      fun(Monitor) ->
              Left = max(0, Deadline - erlang:monotonic_time(millisecond)),
              receive {'DOWN', Monitor, process, _, _} -> ok after Left -> ok end
      end, Monitors).

hearts(Schedulers, Watch) ->
    maps:from_list([{fairnif_watch_heart:start_link(N, Watch), N} || N <- Schedulers]).

timer() ->
    {ok, erlang:send_after(?EVERY_MS, self(), every)}.

%% Joins the thread when the watchdog is killed: a resource destructor would do it on whatever
%% scheduler comes.
reaper(Watch) ->
    Watchdog = self(),
    spawn(fun() ->
                  Monitor = monitor(process, Watchdog),
                  receive
                      {done, Watchdog} -> ok;
                      {'DOWN', Monitor, process, _, _} -> fairnif_watch_native:stop(Watch)
                  end
          end).

%% -- the native part ------------------------------------------------------------------

start_native(Owner, Config) ->
    case fairnif_watch_native:load(library(Config)) of
        ok ->
            case fairnif_watch_native:new(native_config(Config), Owner, self()) of
                {ok, Watch} ->
                    case fairnif_watch_native:start(Watch) of
                        ok -> {ok, Watch};
                        Error -> Error
                    end;
                Error ->
                    Error
            end;
        {error, Reason} ->
            {error, Reason}
    end.

library(#{native_library := Path}) ->
    Path;
library(_) ->
    Beam = code:which(?MODULE),
    filename:join([filename:dirname(filename:dirname(Beam)), "priv", "fairnif_watch"]).

native_config(Config) ->
    Defaults = #{period_ms => 5, warn_ms => 10, error_ms => 100, sample_hz => 20,
                 events_per_s => 50, emergency_ms => 1000, signals => true},
    Given = maps:with(maps:keys(Defaults), Config),
    All = maps:map(fun(_, true) -> 1; (_, false) -> 0; (_, N) -> N end,
                   maps:merge(Defaults, Given)),
    All#{normal => erlang:system_info(schedulers),
         dirty_cpu => erlang:system_info(dirty_cpu_schedulers),
         dirty_io => erlang:system_info(dirty_io_schedulers)}.
