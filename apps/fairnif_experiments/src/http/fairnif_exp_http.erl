%% How a web server answers light requests while heavy ones call native code:
%% Cowboy over HTTP/2, loaded by h2load, beside each mode, beside nothing, and
%% beside ordinary Erlang that works as long.
%%
%% Each run has a node of its own, which is killed when its time is over: a mode
%% that stops the server from answering is what is to be found, and never a hang.
-module(fairnif_exp_http).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).
-export([finding/1, compared/1]).

-define(PEER, fairnif_exp_http_peer).
-define(PLAN, fairnif_exp_http_plan).
-define(LOAD, fairnif_exp_http_load).
-define(LOG, fairnif_exp_http_log).
-define(WATCH, fairnif_exp_http_watch).
%% One point of a timeline.
-define(STEP_MS, 250).
%% The server starts and measures its work; a busy machine shall not fail.
-define(SERVE_MS, 30000).
%% h2load ends by itself; when it has not by so much later it is killed.
-define(GRACE_MS, 3000).
%% So long the node may take to tell its samples after the load has ended.
-define(ANSWER_MS, 5000).
%% So long without an answer is no delay any more.
-define(SILENCE_MS, 1000).

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => http,
      description =>
          "a web server's light requests while heavy ones call native code (Cowboy, HTTP/2)"}.

%% @doc One per run.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(Opts) ->
    length(runs(Opts)).

runs(Opts) ->
    ?PLAN:runs(fairnif_exp:scale(Opts),
               maps:with([modes, jobs, durations, at_once, rates, repeats, window], Opts)).

%% @doc Makes the runs of `scale' (quick: half a minute; normal: six minutes;
%% full: nine hours), or of what the options say instead of it: `modes', `jobs',
%% `durations' (ms), `at_once', `rates', `repeats', `window' (ms).  A run that
%% fails says so and the others go on.  `failed' when the example spinsleep is
%% not built, when Cowboy is not in the code path or h2load not installed.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([fairnif_exp:spinsleep()], fun() -> needs(fun() -> measured(Opts) end) end).

needs(Fun) ->
    case {[L || L <- ?PEER:libraries(), code:which(L) =:= non_existing], ?LOAD:executable()} of
        {[Missing | _], _} ->
            {error, {failed, io_lib:format(
                "the module ~s is not in the code path: `tools/cowboy' in fairnif's sources "
                "fetches Cowboy 2\nfrom Debian; with one of your own, name its directories in "
                "ERL_LIBS", [Missing])}};
        {[], false} ->
            {error, {failed, "h2load is not installed (Debian: apt-get install nghttp2-client)"}};
        {[], _} ->
            Fun()
    end.

%% @doc The table, and a sentence that says what to see in it.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(Result) ->
    fairnif_exp_http_table:format(Result).

%% ---- running ----

measured(Opts) ->
    Progress = fairnif_exp:progress(Opts),
    Runs = [#{window_ms := Window} | _] = runs(Opts),
    Start = now_ms(),
    {Rows, _} = lists:mapfoldl(fun(Run, Left) ->
                                       step(Progress, Run, Left),
                                       {row(Run), Left - ?PLAN:cost_ms([Run])}
                               end, ?PLAN:cost_ms(Runs), Runs),
    fairnif_lab_progress:stop(Progress),
    {ok, #{ok => [] =:= [R || #{status := failed} = R <- Rows],
           scale => fairnif_exp:scale(Opts), took_ms => now_ms() - Start,
           server => hd([S || #{server := S} <- Rows] ++ [undefined]),
           load => #{clients => ?PLAN:clients(), streams => ?PLAN:streams(),
                     window_ms => Window, h2load => ?LOAD:version()},
           units => <<"light: since due, us; sent: since sent; use: 1.0 is all of a processor; "
                      "queues: mean length; t_ms: since the begin of the window">>,
           rows => [maps:remove(server, R) || R <- Rows],
           compared => compared(Rows)}}.

step(Progress, Run, Left) ->
    fairnif_lab_progress:step(Progress, [fairnif_exp_http_table:title(Run),
                                         ": ", fairnif_exp:about(Left), " left"]).

%% What a run shows.
row(#{title := Title, work := Work} = Run) ->
    Row = (maps:remove(work, Run))#{title := list_to_binary(Title),
                                    function => case Work of
                                                    {nif, Function} -> Function;
                                                    _ -> undefined
                                                end,
                                    status => measured, why => undefined},
    case fairnif_lab_peer:with([], #{quiet => true}, fun(Peer) -> in_peer(Peer, Run) end) of
        {ok, Taken} ->
            Whole = maps:merge(Row, figures(Taken)),
            maps:remove(silent, Whole#{finding => finding(Whole)});
        {error, Reason} ->
            Row#{status := failed, why := fairnif_exp:text(fairnif_lab_peer:format_error(Reason))};
        {Status, Why} ->
            Row#{status := Status, why := fairnif_exp:text(Why)}
    end.

in_peer(Peer, #{work := Work, duration_ms := Ms} = Run) ->
    Call = case Work of undefined -> undefined; _ -> {Work, 1000 * Ms} end,
    case fairnif_lab_peer:call(Peer, {?PEER, serve, [Call]}, ?SERVE_MS) of
        {ok, {ok, Server}} -> loaded(Peer, Server, Run);
        {ok, NotServed} -> NotServed;
        {error, _} = Error -> Error
    end.

%% Nothing here waits for the node: what it has to say is asked for at the end,
%% with a time limit.
loaded(Peer, #{port := Port, os_pid := OsPid} = Server, #{rate := Rate} = Run) ->
    {Heavy, From, To, End} = ?PLAN:takes_ms(Run),
    Url = fun(Route) -> io_lib:format("http://127.0.0.1:~b/~s", [Port, Route]) end,
    PerS = Rate div ?PLAN:clients(),
    Begin = now_ms(),
    Epoch = erlang:system_time(microsecond),
    Light = [?LOAD:start(#{url => Url("light"), streams => ?PLAN:streams(), per_s => PerS,
                           ms => End})
             || _ <- lists:seq(1, ?PLAN:clients())],
    timer:sleep(Heavy),
    Loads = heavy(Run, Url("heavy"), To - Heavy),
    %% Its beat is that of the timeline.
    Watch = ?WATCH:start(#{os_pid => OsPid, load => [?LOAD:os_pid(L) || L <- Light ++ Loads],
                           at => Begin + Heavy}, ?STEP_MS),
    Kill = Begin + End + ?GRACE_MS,
    {LightLogs, LightEnds} = lists:unzip([?LOAD:wait(L, Kill) || L <- Light]),
    {HeavyLogs, HeavyEnds} = lists:unzip([?LOAD:wait(L, Kill) || L <- Loads]),
    Usage = ?WATCH:stop(Watch),
    Window = {Epoch + 1000 * From, Epoch + 1000 * To},
    case {fairnif_lab_peer:call(Peer, {?PEER, samples, [Window]}, ?ANSWER_MS),
          [{Status, Words} || {failed, Status, Words} <- LightEnds ++ HeavyEnds]} of
        {{ok, _}, [{Status, Words} | _]} ->
            {failed, io_lib:format("h2load ended with ~b: ~ts", [Status, Words])};
        {Answer, _} ->
            {Queues, Silent} =
                case Answer of
                    {ok, Samples} -> {Samples, undefined};
                    {error, Reason} -> {[], fairnif_exp:text(fairnif_lab_peer:format_error(Reason))}
                end,
            {ok, #{server => maps:without([port, os_pid], Server), silent => Silent,
                   light_logs => LightLogs, heavy_logs => HeavyLogs, usage => Usage,
                   queues => Queues, window => Window, epoch => Epoch,
                   until => Epoch + 1000 * End, per_s => PerS}}
    end.

%% As many as are to be under way, each asked for again when it is answered.
heavy(#{at_once := 0}, _, _) ->
    [];
heavy(#{at_once := N}, Url, Ms) ->
    [?LOAD:start(#{url => Url, streams => N, ms => Ms})].

%% ---- what was measured ----

figures(#{server := Server, light_logs := LightLogs, heavy_logs := HeavyLogs, usage := Usage,
          queues := Queues, window := Window, epoch := Epoch, until := Until,
          per_s := PerS, silent := Silent}) ->
    Requests = lists:append([?LOG:due(?LOG:parse(Log),
                                      #{per_s => PerS, streams => ?PLAN:streams(),
                                        from => Epoch, until => Until})
                             || Log <- LightLogs]),
    #{server => Server,
      light => ?LOG:light(Requests, Window, Until),
      heavy => case HeavyLogs of
                   [] -> undefined;
                   [Log] -> ?LOG:heavy(?LOG:parse(Log), Window)
               end,
      silent => Silent,
      others => ?WATCH:others(Usage, Window),
      whole => scheduling(Window, Server, Usage, Queues),
      timeline => [maps:merge(Point, scheduling(step(Point, Window), Server, Usage, Queues))
                   || Point <- ?LOG:timeline(Requests, Window, 1000 * ?STEP_MS, Until)]}.

step(#{t_ms := Ms}, {From, _}) ->
    {From + 1000 * Ms, From + 1000 * (Ms + ?STEP_MS)}.

%% What schedulers did, and what waited for them, within a time.
scheduling({From, To} = Time, #{schedulers := Normal, dirty_cpu := Dirty}, Usage, Queues) ->
    Samples = [S || {Us, _, _, _} = S <- Queues, Us >= From, Us < To],
    maps:merge(used(?WATCH:use(Usage, Time), Normal, Dirty),
               maps:put(late_ms, [late(Id, Samples) || Id <- lists:seq(1, Normal)],
                        waiting([Q || {_, _, _, Q} <- Samples], Normal))).

used(undefined, _, _) ->
    #{use => undefined, dirty_cpu_use => undefined, dirty_io_use => undefined,
      other_use => undefined};
used(Use, Normal, Dirty) ->
    #{use => [maps:get({scheduler, Id}, Use, 0.0) || Id <- lists:seq(1, Normal)],
      dirty_cpu_use => [maps:get({dirty_cpu, Id}, Use, 0.0) || Id <- lists:seq(1, Dirty)],
      dirty_io_use => maps:get(dirty_io, Use, 0.0),
      other_use => maps:get(other, Use, 0.0)}.

%% The queues of dirty CPU and of dirty I/O schedulers stand at the end.
waiting([], _) ->
    #{queues => undefined, dirty_queues => undefined};
waiting(Lengths, Normal) ->
    Means = [round(10 * lists:sum(Ls) / length(Ls)) / 10 || Ls <- transposed(Lengths)],
    #{queues => lists:sublist(Means, Normal),
      dirty_queues => lists:nthtail(length(Means) - 2, Means)}.

transposed([[] | _]) -> [];
transposed(Lists) -> [[hd(L) || L <- Lists] | transposed([tl(L) || L <- Lists])].

late(Id, Samples) ->
    case [Late || {_, S, Late, _} <- Samples, S =:= Id] of
        [] -> undefined;
        Lates -> lists:max(Lates) div 1000
    end.

%% @doc What a run did to the server, if that is more than a delay: a sentence,
%% or `undefined'.
-spec finding(#{atom() => term()}) -> binary() | undefined.
finding(#{light := Light, heavy := Heavy, silent := Silent}) ->
    case of_light(Light)
        ++ [["the node itself: ", Silent] || Silent =/= undefined]
        ++ [io_lib:format("~b heavy requests failed", [F])
            || #{failed := F} <- [Heavy], F > 0] of
        [] -> undefined;
        Said -> fairnif_exp:text(lists:join("; ", Said))
    end.

of_light(#{answered := 0}) ->
    ["the server answered no light request"];
of_light(#{silence_ms := Silence, unanswered := Unanswered, failed := Failed, due := Due}) ->
    [io_lib:format("no light request was answered for ~ts",
                   [fairnif_lab_table:duration(1.0e6 * Silence)]) || Silence >= ?SILENCE_MS]
        ++ [io_lib:format("~b of ~b had no answer a second after the window", [Unanswered, Due])
            || Unanswered > 0]
        ++ [io_lib:format("~b of ~b were answered with an error", [Failed, Due]) || Failed > 0].

%% @doc What is to be compared: the medians of the repeats of each load, beside
%% those of the same light load beside nothing and beside ordinary Erlang.
-spec compared([#{atom() => term()}]) -> [#{atom() => term()}].
compared(Rows) ->
    Measured = [R || #{status := measured} = R <- Rows],
    Keys = [key(R) || R <- Measured],
    Medians = maps:from_list([{Key, medians([R || R <- Measured, key(R) =:= Key])}
                              || Key <- lists:usort(Keys)]),
    [compared(Key, Medians) || Key <- lists:uniq(Keys)].

key(#{mode := Mode, job := Job, duration_ms := Ms, at_once := N, rate := Rate}) ->
    {Mode, Job, Ms, N, Rate}.

medians(Rows) ->
    Of = fun(Part, Key) ->
                 case [V || #{Part := #{Key := V}} <- Rows, is_number(V)] of
                     [] -> undefined;
                     Values -> fairnif_lab_stats:median(Values)
                 end
         end,
    #{p50_us => Of(light, p50_us), p99_us => Of(light, p99_us), max_us => Of(light, max_us),
      requests_per_s => Of(light, requests_per_s), heavy_per_s => Of(heavy, per_s),
      doubtful => doubtful([N || #{others := N} <- Rows, is_number(N)]),
      finding => hd([F || #{finding := F} <- Rows, F =/= undefined] ++ [undefined])}.

doubtful([]) -> false;
doubtful(Others) -> fairnif_exp:doubted(fairnif_lab_stats:median(Others)).

compared({Mode, Job, Ms, N, Rate} = Key, Medians) ->
    #{p99_us := P99, doubtful := Doubtful} = Ours = maps:get(Key, Medians),
    {Idle, _} = p99({idle, undefined, undefined, 0, Rate}, Medians),
    {Erlang, ErlangDoubtful} = p99({erlang, Job, Ms, N, Rate}, Medians),
    AtMost = ?PLAN:at_most(Mode),
    Times = case {P99, Erlang} of
                {_, undefined} -> undefined;
                {undefined, _} -> undefined;
                _ -> round(100 * P99 / max(1, Erlang)) / 100
            end,
    Ours#{mode => Mode, title => list_to_binary(?PLAN:title(Mode)), job => Job,
          duration_ms => Ms, at_once => N, rate => Rate, idle_p99_us => Idle,
          erlang_p99_us => Erlang, times_erlang => Times, at_most => AtMost,
          doubtful => Doubtful orelse ErlangDoubtful,
          %% What other programs did to either of the two is no finding.
          kept => case AtMost =:= undefined orelse Times =:= undefined
                      orelse Doubtful orelse ErlangDoubtful of
                      true -> undefined;
                      false -> Times =< AtMost
                  end}.

p99(Key, Medians) ->
    case Medians of
        #{Key := #{p99_us := P99, doubtful := Doubtful}} -> {P99, Doubtful};
        _ -> {undefined, false}
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
