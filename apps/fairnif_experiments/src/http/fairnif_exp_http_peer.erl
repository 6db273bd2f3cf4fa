%% The part of the experiment `http' that runs inside its peer nodes: the server, the work of its
%% heavy route, and the samples of run queues.
%%
%% Cowboy is no dependency of the checker: it is found in the code path and called by name alone, as
%% the example is.  Nothing here may need all schedulers: what is measured may hold any of them, and
%% what a blocked one holds is missing from the samples and not waited for.
-module(fairnif_exp_http_peer).

-export([libraries/0, serve/1, samples/1]).
-export([init/2]).

-export_type([served/0, sample/0]).

-type served() :: #{port := inet:port_number(), os_pid := string(),
                    schedulers := pos_integer(), dirty_cpu := pos_integer(),
                    dirty_io := pos_integer(), cowboy := binary()}.
%% When a process bound to a scheduler woke (us since the epoch), the scheduler, how late it was
%% (us), and the length of each run queue, dirty CPU and dirty I/O at the end.
-type sample() :: {Us :: integer(), Scheduler :: pos_integer(), LateUs :: integer(),
                   Queues :: [non_neg_integer()]}.

-define(LISTENER, ?MODULE).
%% More than a connection can send: Cowboy takes 10,000 frames within ten seconds for an attack and
%% closes the connection.  Where heavy requests fail at once, a fast machine has asked for as many
%% before the window begins.
-define(FRAMES, {1000000000, 10000}).
-define(SAMPLES, ?MODULE).
-define(SAMPLE_MS, 50).
%% What the light route answers: a few hundred bytes, as a small JSON or page is.
-define(LIGHT, binary:copy(<<"0123456789">>, 30)).
%% How long the work of ordinary Erlang takes alone is measured with this many rounds of it; the
%% shortest counts, as whatever else the machine does only adds.
-define(ROUNDS, 20).
-define(TRIES, 20).

%% @doc The modules without which there is no server: one of each application.
-spec libraries() -> [module()].
libraries() ->
    [cowboy, cow_http2, ranch].

%% @doc Starts the server on a port of the loopback interface that is free.  Its light route answers
%% 300 bytes; its heavy route does this much of this work and answers how many microseconds that
%% took.  `skipped' when the example has no such function, which is no failure: a form may be newer
%% than what is built.
-spec serve({fairnif_exp_http_plan:work(), Us :: pos_integer()} | undefined) ->
          {ok, served()} | {skipped, unicode:chardata()}.
serve(undefined) ->
    serve_calls(fun() -> 0 end);
serve({{nif, Function}, Us}) ->
    Example = fairnif_exp:spinsleep(),
    {module, _} = code:ensure_loaded(Example),
    case erlang:function_exported(Example, Function, 1) of
        true -> serve_calls(fun() -> fairnif_exp:spin(Function, Us) end);
        false -> {skipped, io_lib:format("~s has no ~s/1", [Example, Function])}
    end;
serve({{erlang, spinwork}, Us}) ->
    Alone = lists:min([timed(fun() -> rounds(?ROUNDS) end) || _ <- lists:seq(1, ?TRIES)]) / ?ROUNDS,
    Rounds = max(1, round(Us / Alone)),
    serve_calls(fun() -> timed(fun() -> rounds(Rounds) end) end);
serve({{erlang, spinsleep}, Us}) ->
    serve_calls(fun() -> timed(fun() -> spin(now_us() + Us) end) end).

timed(Fun) ->
    {Us, ok} = timer:tc(Fun),
    Us.

%% A round is some of each kind of work that ordinary Erlang does: what the checker's neighbours are
%% made of.
rounds(0) -> ok;
rounds(N) -> _ = round_of_work(), rounds(N - 1).

spin(Until) ->
    _ = round_of_work(),
    case now_us() < Until of
        true -> spin(Until);
        false -> ok
    end.

round_of_work() ->
    [fairnif_check_share:work(Mix) || Mix <- [sort, maps, binaries]].

%% ---- the server ----

serve_calls(Fun) ->
    [Cowboy, _, Ranch] = libraries(),
    Router = cowboy_router(),
    {ok, _} = application:ensure_all_started(Cowboy),
    Routes = Router:compile([{'_', [{"/light", ?MODULE, ?LIGHT}, {"/heavy", ?MODULE, Fun}]}]),
    {ok, _} = Cowboy:start_clear(?LISTENER, [{ip, {127, 0, 0, 1}}, {port, 0}],
                                 #{env => #{dispatch => Routes},
                                   max_received_frame_rate => ?FRAMES}),
    ok = start_sampling(),
    {ok, Version} = application:get_key(Cowboy, vsn),
    {ok, #{port => Ranch:get_port(?LISTENER), os_pid => os:getpid(),
           schedulers => erlang:system_info(schedulers_online),
           dirty_cpu => erlang:system_info(dirty_cpu_schedulers_online),
           dirty_io => erlang:system_info(dirty_io_schedulers),
           cowboy => list_to_binary(Version)}}.

%% By name, as all of cowboy.
-spec cowboy_router() -> module().
cowboy_router() -> cowboy_router.

-spec cowboy_req() -> module().
cowboy_req() -> cowboy_req.

%% @private A handler of cowboy: it runs in a process of the request's own.
-spec init(Request, binary() | fun(() -> integer())) ->
          {ok, Request, binary() | fun(() -> integer())}.
init(Request, Light) when is_binary(Light) ->
    reply(200, Light, Request, Light);
init(Request, Heavy) ->
    %% Cowboy takes a connection on which ten requests crash for an attack and closes it; the load
    %% would end.
    try Heavy() of
        Us -> reply(200, integer_to_binary(Us), Request, Heavy)
    catch
        Class:_ -> reply(500, atom_to_binary(Class), Request, Heavy)
    end.

reply(Status, Body, Request, State) ->
    Req = cowboy_req(),
    {ok, Req:reply(Status, #{<<"content-type">> => <<"text/plain">>}, Body, Request), State}.

%% ---- sampling ----

%% One process for each scheduler, bound to it, at the highest priority: as long as any scheduler is
%% free, one of them looks.  They write into a table and send nothing, and take turns, so that they
%% do not see each other in the queues.
start_sampling() ->
    Schedulers = erlang:system_info(schedulers_online),
    Me = self(),
    Keeper = proc_lib:spawn(
               fun() ->
                       ?SAMPLES = ets:new(?SAMPLES, [named_table, public, ordered_set,
                                                     {write_concurrency, true}]),
                       _ = [sampler(S, Schedulers) || S <- lists:seq(1, Schedulers)],
                       Me ! {self(), sampling},
                       receive stop -> ok end
               end),
    receive {Keeper, sampling} -> ok end.

sampler(Scheduler, Schedulers) ->
    proc_lib:spawn_opt(
      fun() -> sample(Scheduler, now_us() + ?SAMPLE_MS * 1000 * Scheduler div Schedulers) end,
      [link, {priority, max}, fairnif_check_machine:bound_to(Scheduler)]).

sample(Scheduler, At) ->
    %% A timer of this process is one of its scheduler's.
    receive after max(0, (At - now_us()) div 1000) -> ok end,
    Now = now_us(),
    Queues = erlang:statistics(run_queue_lengths_all),
    true = ets:insert(?SAMPLES, {{erlang:system_time(microsecond), Scheduler},
                                 max(0, Now - At), Queues}),
    sample(Scheduler, max(At + ?SAMPLE_MS * 1000, Now)).

now_us() ->
    erlang:monotonic_time(microsecond).

%% @doc The samples of a window, in order of time.  Answers when some scheduler is free to.
-spec samples({From :: integer(), To :: integer()}) -> [sample()].
samples({From, To}) ->
    ets:select(?SAMPLES, [{{{'$1', '$2'}, '$3', '$4'},
                           [{'>=', '$1', From}, {'<', '$1', To}],
                           [{{'$1', '$2', '$3', '$4'}}]}]).
