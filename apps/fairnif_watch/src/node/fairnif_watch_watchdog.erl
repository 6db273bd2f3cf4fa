%% @doc Runs the watch thread and the responders of one node, and tells its owner what they see.
%%
%% The owner gets `{fairnif_watch, Event}', a map with the key `event':
%% `blocked' (a normal scheduler is blocked, at `warn_ms', at `error_ms', then once a second),
%% `unblocked', `no_cpu_time' (ready to run, and given no processor), `late' (the watch thread
%% itself), `suppressed', `looked'.  All times are of `erlang:monotonic_time(nanosecond)'.
%%
%% What is asked here is answered from tables, by the caller itself: a blocked scheduler cannot
%% delay it, unless the caller is on it.
-module(fairnif_watch_watchdog).

-behaviour(gen_server).

-export([start_link/1, stop/0, threads/0, pool/0, top/0, counters/0, look/3, blind/0,
         busy_waiting/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([event/0, options/0, native_function/0]).

-type options() :: #{owner := pid(), config := #{atom() => term()}}.
-type event() :: #{event := blocked | unblocked | no_cpu_time | late | suppressed | looked,
                   atom() => term()}.
-type native_function() :: #{function := mfa() | {Library :: binary(), Place :: binary()} | other,
                      label := binary(), samples := non_neg_integer(), share := float(),
                      ns_per_s := non_neg_integer()}.

-record(state, {watch :: fairnif_watch_native:watch() | {plain, fairnif_watch_plain:watch()},
                responders :: fairnif_watch_responders:responders(),
                reaper = none :: pid() | none,
                %% Schedulers of which it was said that they have no responder.
                unwatched = [] :: [pos_integer()],
                fairnif = none :: none | bound | {refused, reference()}}).

-define(TABLE, ?MODULE).
-define(EVERY_MS, 1000).
%% How long the watch of a watchdog that was killed may take to end.
-define(BUSY_MS, 10000).
%% What the thread is writing may be asked for so often, a millisecond apart.
-define(BUSY_TRIES, 20).

%% @doc Starts watching.  `config' has the keys of the application environment; of them are used
%% here `period_ms', `warn_ms', `error_ms', `sample_hz', `signals', `native', `emergency_ms', and
%% `native_library', the path without extension of the native part (default: in `priv').
%%
%% Where the native part cannot be loaded, or is switched off, it does what Erlang alone can
%% (fairnif_watch_plain), and blind/0 says what that is not. An emulator whose threads have unknown
%% names is an error.
%%
%% One watchdog runs on a node at a time. Takes some milliseconds; loading the library waits for
%% blocked schedulers.
-spec start_link(options()) -> {ok, pid()} | {error, {native, term()} | term()}.
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @doc Ends the thread and the responders, and waits for that.
-spec stop() -> ok.
stop() ->
    gen_server:stop(?MODULE).

%% @doc Each scheduler thread: what it does now, and its share of a processor in the last second.
-spec threads() -> [#{atom() => term()}].
threads() ->
    Online = erlang:system_info(schedulers_online),
    case lookup(watch, none) of
        none -> [];
        plain -> fairnif_watch_plain:threads(lookup(blocked, #{}));
        Watch -> [offline(Thread, Online) || Thread <- native_threads(Watch)]
    end.

%% @doc What fairnif runs on threads of its own, which are no schedulers.
-spec pool() -> [#{atom() => term()}].
pool() ->
    case native() of
        none -> [];
        Watch -> asked(fun() -> fairnif_watch_native:pool(Watch) end, [])
    end.

offline(Thread = #{kind := normal, number := N}, Online) when N > Online ->
    Thread#{state := offline};
offline(Thread, _) ->
    Thread.

%% @doc The native functions that busy schedulers were found in, of the last ten to twenty seconds,
%% most first; `share' is of all times one was found busy, `ns_per_s' of processor time.
-spec top() -> [native_function()].
top() ->
    case native() of
        none ->
            [];
        Watch ->
            {All, Other, Functions} = asked(fun() -> fairnif_watch_native:top(Watch) end,
                                            {0, 0, []}),
            Busy = lists:sum([Share || #{busy := Share} <- native_threads(Watch)]),
            Sorted = lists:reverse(lists:keysort(2, readable(Functions))),
            [function(Function, Samples, max(1, All), Busy)
             || {Function, Samples} <- Sorted ++ [{other, Other} || Other > 0]]
    end.

%% Several symbols may have one name: one generic function for several types.
readable(Functions) ->
    maps:to_list(lists:foldl(fun({Function, Samples}, Sums) ->
                                     maps:update_with(named(Function), fun(N) -> N + Samples end,
                                                      Samples, Sums)
                             end, #{}, Functions)).

named({Library, Symbol}) -> {Library, fairnif_watch_symbol:readable(Symbol)};
named(Function) -> Function.

function(Function, Samples, All, Busy) ->
    Share = Samples / All,
    #{function => Function, label => label(Function), samples => Samples, share => Share,
      ns_per_s => round(Share * Busy * 1.0e9)}.

label({Module, Name, Arity}) ->
    unicode:characters_to_binary(io_lib:format("~tw:~tw/~w", [Module, Name, Arity]));
label({Library, Place}) ->
    <<Library/binary, ": ", Place/binary>>;
label(other) ->
    <<"other">>.

%% @doc What the watch thread has done so far.
-spec counters() -> #{atom() => non_neg_integer()}.
counters() ->
    case native() of
        none -> #{};
        Watch -> fairnif_watch_native:counters(Watch)
    end.

%% @doc Asks what a scheduler runs now: the owner gets the event `looked', with `Ref'. Nothing comes
%% where sixteen are asked for, or there is no native part. Costs the thread a stack, with names.
-spec look(normal | dirty_cpu | dirty_io, pos_integer(), Ref :: term()) -> ok.
look(Kind, Number, Ref) ->
    case native() of
        none -> ok;
        Watch -> _ = fairnif_watch_native:look(Watch, Kind, Number, Ref), ok
    end.

%% @doc What cannot be seen here, a sentence each.
-spec blind() -> [binary()].
blind() ->
    lookup(blind, []).

%% @doc Whether schedulers spin before they sleep: the emulator's flags. Whatever gave it its
%% flags (vm.args, ERL_FLAGS), they stand on its command line.
-spec busy_waiting() -> fairnif_watch_taken:busy_waiting().
busy_waiting() ->
    lookup(busy_waiting, unknown).

command_line() ->
    case file:read_file("/proc/self/cmdline") of
        {ok, Line} -> Line;
        {error, _} -> <<>>
    end.

native() ->
    case lookup(watch, none) of
        plain -> none;
        Watch -> Watch
    end.

native_threads(Watch) ->
    asked(fun() -> fairnif_watch_native:threads(Watch) end, []).

%% The thread writes it at this moment, which takes it less than a microsecond: unless it is given
%% no processor just then. So it is not waited for on a scheduler.
asked(Fun, Default) ->
    asked(Fun, Default, ?BUSY_TRIES).

asked(_, Default, 0) ->
    Default;
asked(Fun, Default, Left) ->
    case Fun() of
        busy -> receive after 1 -> asked(Fun, Default, Left - 1) end;
        Answer -> Answer
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
init(#{owner := Owner, config := Given}) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(priority, high),
    ?TABLE = ets:new(?TABLE, [named_table, protected, {read_concurrency, true}]),
    Config = maps:merge(defaults(), Given),
    case start_native(Owner, Config) of
        {ok, Watch, Blind} ->
            true = ets:insert(?TABLE, [{watch, Watch}, {blind, Blind},
                                      {busy_waiting,
                                       fairnif_watch_taken:busy_waiting(command_line())}]),
            self() ! every,
            {ok, #state{watch = Watch, responders = fairnif_watch_responders:new(Watch),
                        reaper = reaper(Watch)}};
        {plain, Why} ->
            true = ets:insert(?TABLE, [{watch, plain}, {blind, fairnif_watch_plain:blind(Why)}]),
            Plain = fairnif_watch_plain:new(Owner, Config),
            Responders = fairnif_watch_responders:new(erlang, fairnif_watch_plain:period_ms(Plain)),
            self() ! every,
            {ok, #state{watch = {plain, Plain}, responders = Responders}};
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
handle_info(every, State = #state{responders = Responders}) ->
    _ = erlang:send_after(?EVERY_MS, self(), every),
    {noreply, tell_native(State#state{responders = fairnif_watch_responders:keep(Responders)})};
handle_info({tick, Clock}, State = #state{watch = {plain, Plain}, responders = Responders}) ->
    Clock ! tock,
    Now = fairnif_watch_responders:follow(Responders),
    By = fairnif_watch_responders:by_scheduler(Now),
    {noreply, plain(fairnif_watch_plain:tick(Plain, By), State#state{responders = Now})};
handle_info({reply, Scheduler, N, At}, State = #state{watch = {plain, Plain}}) ->
    {noreply, plain(fairnif_watch_plain:reply(Scheduler, N, At, Plain), State)};
handle_info({'EXIT', Pid, Reason}, State = #state{responders = Responders}) ->
    case fairnif_watch_responders:ended(Pid, Responders) of
        {true, Rest} -> {noreply, said_once(Reason, State#state{responders = Rest})};
        false -> {stop, Reason, State}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% @private
-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{watch = {plain, _}, responders = Responders}) ->
    fairnif_watch_responders:stop(Responders);
terminate(_Reason, #state{watch = Watch, responders = Responders, reaper = Reaper}) ->
    %% First: the end of the thread may wait for a dirty scheduler, what is caught must not.
    ok = fairnif_watch_responders:stop(Responders),
    ok = stop_thread(Watch),
    Monitor = monitor(process, Reaper),
    Reaper ! {done, self()},
    receive {'DOWN', Monitor, process, _, _} -> ok end.

%% The module may have been purged: then the last term of the watch ends the thread.
stop_thread(Watch) ->
    try fairnif_watch_native:stop(Watch)
    catch error:_ -> ok
    end.

%% Made again every second, and said once.
said_once({no_responder, Scheduler, Why}, State = #state{unwatched = Said}) ->
    lists:member(Scheduler, Said)
        orelse logger:warning("fairnif_watch: scheduler ~b is not watched: ~0tp",
                              [Scheduler, Why]),
    State#state{unwatched = lists:usort([Scheduler | Said])};
said_once(_, State) ->
    State.

%% What is blocked stands where threads/0 finds it, which asks no process.
plain(Plain, State) ->
    true = ets:insert(?TABLE, {blocked, fairnif_watch_plain:blocked(Plain)}),
    State#state{watch = {plain, Plain}}.

%% What the thread cannot know by itself.
tell_native(State = #state{watch = {plain, _}}) ->
    State;
tell_native(State = #state{watch = Watch, fairnif = Bound}) ->
    ok = fairnif_watch_native:online(Watch, erlang:system_info(schedulers_online)),
    %% Where fairnif keeps the object that leads to its runtime, once that is loaded.
    case persistent_term:get({fairnif, runtime}, none) of
        _ when Bound =:= bound -> State;
        none -> State;
        Runtime when Bound =:= {refused, Runtime} -> State;
        Runtime ->
            case fairnif_watch_native:fairnif(Watch, Runtime) of
                true -> State#state{fairnif = bound};
                false -> State#state{fairnif = {refused, Runtime}}
            end
    end.

%% Joins the thread when the watchdog is killed: a resource destructor would do it on whatever
%% scheduler comes.
reaper(Watch) ->
    Watchdog = self(),
    proc_lib:spawn(fun() ->
                           Monitor = monitor(process, Watchdog),
                           receive
                               {done, Watchdog} -> ok;
                               {'DOWN', Monitor, process, _, _} -> stop_thread(Watch)
                           end
                   end).

%% -- the native part ------------------------------------------------------------------

start_native(_Owner, #{native := false}) ->
    {plain, off};
start_native(_Owner, #{native := Why}) when Why =/= true ->
    {plain, Why};
start_native(Owner, Config) ->
    case load(Config) of
        ok ->
            case fairnif_watch_native:new(native_config(Config), Owner, self()) of
                {ok, Watch} -> start_thread(Watch, Config, ?BUSY_MS);
                {error, _} = Error -> Error
            end;
        {error, Reason} ->
            {plain, Reason}
    end.

%% The watch of a watchdog that was killed may still be ending.
start_thread(Watch, Config = #{signals := Signals}, Left) ->
    case fairnif_watch_native:start(Watch) of
        {ok, Errno, Hidden} ->
            {ok, Watch, unnamed(Errno, Signals) ++ unseen(Hidden)};
        {error, busy} when Left > 0 ->
            timer:sleep(50),
            start_thread(Watch, Config, Left - 50);
        {error, no_thread} ->
            {plain, no_thread};
        {error, busy} ->
            {error, busy}
    end.

unnamed(0, true) ->
    [];
unnamed(0, false) ->
    [<<"signals are switched off: what runs is not named, only what sleeps">>];
unnamed(Errno, _) ->
    [iolist_to_binary(io_lib:format("there is no signal for looking at running threads (errno "
                                    "~w): what runs is not named, only what sleeps", [Errno]))].

unseen(false) ->
    [];
unseen(true) ->
    [<<"the system does not show where this process's threads sleep (has its program file "
       "capabilities?): code that blocks a scheduler while it sleeps is not seen">>].

load(Config) ->
    Setting = maps:get(native_library, Config, default),
    case fairnif_watch_library:path(Setting, fairnif_watch) of
        {ok, Path} -> fairnif_watch_native:load(Path);
        {error, _} = Error -> Error
    end.

%% What the thread is set to.
defaults() ->
    {ok, All} = fairnif_watch_config:check(#{}),
    Settings = maps:with([period_ms, warn_ms, error_ms, sample_hz, emergency_ms, signals, native],
                         All),
    Settings#{events_per_s => 50}.

native_config(Config) ->
    All = maps:map(fun(_, true) -> 1; (_, false) -> 0; (_, N) -> N end,
                   maps:with(maps:keys(defaults()), Config)),
    All#{normal => erlang:system_info(schedulers),
         dirty_cpu => erlang:system_info(dirty_cpu_schedulers),
         dirty_io => erlang:system_info(dirty_io_schedulers)}.
