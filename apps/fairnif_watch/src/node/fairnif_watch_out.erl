%% Logs findings and emits telemetry events: both run other people's code, which may take long or
%% wait, so a process of its own does it. The collector sends it no more than it can take.
-module(fairnif_watch_out).

-behaviour(gen_server).

-export([start_link/1, finding/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {log :: fairnif_watch_log:limit() | off, telemetry :: boolean()}).

%% @private
-spec start_link(map()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @doc Sends a finding that is `new', `worse', `changed' or `ended'; the caller gets
%% `{fairnif_watch_out, 1}' when that is done.
-spec finding(atom(), fairnif_watch_finding:finding()) -> ok.
finding(What, Finding) ->
    gen_server:cast(?MODULE, {finding, What, Finding, self()}).

%% @private
-spec init(map()) -> {ok, #state{}}.
init(#{log := Log, log_per_minute := PerMinute, telemetry := Telemetry}) ->
    {ok, #state{log = case Log of
                          true -> fairnif_watch_log:new(PerMinute);
                          false -> off
                      end,
                telemetry = Telemetry}}.

%% @private
-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, {error, unknown}, #state{}}.
handle_call(_, _, State) ->
    {reply, {error, unknown}, State}.

%% @private
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast({finding, What, Finding, From}, #state{log = Limit, telemetry = Telemetry} = State) ->
    Now = erlang:monotonic_time(millisecond),
    {Suppressed, Next} = fairnif_watch_log:finding(What, Finding, Now, Limit),
    _ = [From ! {fairnif_watch_count, logs_suppressed, Suppressed} || Suppressed > 0],
    Emitted = Telemetry andalso fairnif_watch_telemetry:finding(What, Finding),
    _ = [From ! {fairnif_watch_count, telemetry_events, 1} || Emitted],
    From ! {fairnif_watch_out, 1},
    {noreply, State#state{log = Next}};
handle_cast(_, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(_, State) ->
    {noreply, State}.
