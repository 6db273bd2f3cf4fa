%% How a web server answers light requests while heavy ones call native code: Cowboy over HTTP/2,
%% loaded by h2load, beside each mode, beside nothing, and beside ordinary Erlang that works as
%% long.
%%
%% Each run has a node of its own, which is killed when its time is over: a mode that stops the
%% server from answering is what is to be found, and never a hang.
-module(fairnif_exp_http).

-behaviour(fairnif_experiment).

-export([experiment/0, finding/1, compared/1]).

-import(fairnif_exp, [doubted/1, find/2, now_ms/0, text/1]).

-define(PEER, fairnif_exp_http_peer).
-define(PLAN, fairnif_exp_http_plan).
-define(LOAD, fairnif_exp_http_load).
-define(LOG, fairnif_exp_http_log).
-define(WATCH, fairnif_exp_http_watch).
%% The load of the light route: connections, and requests that each has under way at most.
-define(CLIENTS, 4).
-define(STREAMS, 25).
%% One point of a timeline.
-define(STEP_MS, 250).
%% The server starts and measures its work; a busy machine shall not fail.
-define(SERVE_MS, 30000).
%% h2load ends by itself; when it has not this much later it is killed.
-define(GRACE_MS, 3000).
%% So long the node may take to tell its samples after the load has ended.
-define(ANSWER_MS, 5000).
%% So long without an answer is no delay any more.
-define(SILENCE_MS, 1000).

%% @doc Makes the runs of `scale' (quick: half a minute; normal: six minutes; full: nine hours), or
%% of what the options say instead of it: `modes', `jobs', `durations' (ms), `at_once', `rates',
%% `repeats', `window' (ms).  `failed' when Cowboy is not in the code path or h2load not installed.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => http, needs => [fairnif_exp:spinsleep()],
      description =>
          "a web server's light requests while heavy ones call native code (Cowboy, HTTP/2)",
      steps => fun(Opts) -> length(runs(Opts)) end,     % one per run
      measure => fun measure/3, format => fun format/1}.

runs(Opts) ->
    ?PLAN:runs(maps:get(scale, Opts, normal),
               maps:with([modes, jobs, durations, at_once, rates, repeats, window], Opts)).

%% ---- running ----

measure(Scale, Opts, Step) ->
    _ = [throw({failed, io_lib:format(
           "the module ~s is not in the code path: `tools/cowboy' in fairnif's sources fetches "
           "Cowboy 2\nfrom Debian; with one of your own, name its directories in ERL_LIBS", [L])})
         || L <- ?PEER:libraries(), code:which(L) =:= non_existing],
    ?LOAD:executable() =:= false
        andalso throw({failed,
                       "h2load is not installed (Debian: apt-get install nghttp2-client)"}),
    Runs = [#{window_ms := Window} | _] = runs(Opts),
    Start = now_ms(),
    {Rows, _} = lists:mapfoldl(fun(Run, Left) ->
                                       Step([title(Run), ": ", fairnif_exp:about(Left), " left"]),
                                       {row(Run), Left - ?PLAN:cost_ms([Run])}
                               end, ?PLAN:cost_ms(Runs), Runs),
    #{ok => [] =:= [R || #{status := failed} = R <- Rows],
      scale => Scale, took_ms => now_ms() - Start,
      server => hd([S || #{server := S} <- Rows] ++ [undefined]),
      load => #{clients => ?CLIENTS, streams => ?STREAMS, window_ms => Window,
                h2load => ?LOAD:version()},
      units => <<"light: since due, us; sent: since sent; use: 1.0 is all of a processor; "
                 "queues: mean length; t_ms: since the begin of the window">>,
      rows => [maps:remove(server, R) || R <- Rows], compared => compared(Rows)}.

%% What a run shows.
row(#{title := Title, work := Work} = Run) ->
    Row = (maps:remove(work, Run))#{title := list_to_binary(Title),
                                    function => case Work of
                                                    {nif, Function} -> Function;
                                                    _ -> undefined
                                                end,
                                    status => measured, why => undefined},
    case fairnif_check_peer:with([], #{quiet => true}, fun(Peer) -> in_peer(Peer, Run) end) of
        {ok, Taken} ->
            Whole = maps:merge(Row, figures(Taken)),
            maps:remove(silent, Whole#{finding => finding(Whole)});
        {error, Reason} ->
            Row#{status := failed, why := text(fairnif_check_peer:format_error(Reason))};
        {Status, Why} ->
            Row#{status := Status, why := text(Why)}
    end.

in_peer(Peer, #{work := Work, duration_ms := Ms} = Run) ->
    Call = case Work of undefined -> undefined; _ -> {Work, 1000 * Ms} end,
    case fairnif_check_peer:call(Peer, {?PEER, serve, [Call]}, ?SERVE_MS) of
        {ok, {ok, Server}} -> loaded(Peer, Server, Run);
        {ok, NotServed} -> NotServed;
        {error, _} = Error -> Error
    end.

%% Nothing here waits for the node: what it has to say is asked for at the end, with a time limit.
loaded(Peer, #{port := Port, os_pid := OsPid} = Server, #{rate := Rate, at_once := N} = Run) ->
    {Heavy, From, To, End} = ?PLAN:takes_ms(Run),
    Url = fun(Route) -> io_lib:format("http://127.0.0.1:~b/~s", [Port, Route]) end,
    PerS = Rate div ?CLIENTS,
    Begin = now_ms(),
    Epoch = erlang:system_time(microsecond),
    Light = [?LOAD:start(#{url => Url("light"), streams => ?STREAMS, per_s => PerS, ms => End})
             || _ <- lists:seq(1, ?CLIENTS)],
    timer:sleep(Heavy),
    %% As many as are to be under way, each asked for again when it is answered.
    Loads = [?LOAD:start(#{url => Url("heavy"), streams => N, ms => To - Heavy}) || N > 0],
    %% Its beat is that of the timeline.
    Watch = ?WATCH:start(#{os_pid => OsPid, load => [?LOAD:os_pid(L) || L <- Light ++ Loads],
                           at => Begin + Heavy}, ?STEP_MS),
    Ended = fun(All) -> [?LOAD:wait(L, Begin + End + ?GRACE_MS) || L <- All] end,
    {LightLogs, LightEnds} = lists:unzip(Ended(Light)),
    {HeavyLogs, HeavyEnds} = lists:unzip(Ended(Loads)),
    Usage = ?WATCH:stop(Watch),
    Window = {Epoch + 1000 * From, Epoch + 1000 * To},
    {Queues, Silent} =
        case fairnif_check_peer:call(Peer, {?PEER, samples, [Window]}, ?ANSWER_MS) of
            {ok, Samples} -> {Samples, undefined};
            {error, Reason} -> {[], text(fairnif_check_peer:format_error(Reason))}
        end,
    case [{Status, Words} || {failed, Status, Words} <- LightEnds ++ HeavyEnds] of
        [{Status, Words} | _] when Silent =:= undefined ->
            {failed, io_lib:format("h2load ended with ~b: ~ts", [Status, Words])};
        _ ->
            {ok, #{server => maps:without([port, os_pid], Server), silent => Silent,
                   light_logs => LightLogs, heavy_logs => HeavyLogs, usage => Usage,
                   queues => Queues, window => Window, epoch => Epoch,
                   until => Epoch + 1000 * End, per_s => PerS}}
    end.

%% ---- what was measured ----

figures(#{server := Server, light_logs := LightLogs, heavy_logs := HeavyLogs, usage := Usage,
          queues := Queues, window := {From, _} = Window, epoch := Epoch, until := Until,
          per_s := PerS, silent := Silent}) ->
    Spec = #{per_s => PerS, streams => ?STREAMS, from => Epoch, until => Until},
    Requests = lists:append([?LOG:due(?LOG:parse(Log), Spec) || Log <- LightLogs]),
    Step = fun(Ms) -> {From + 1000 * Ms, From + 1000 * (Ms + ?STEP_MS)} end,
    #{server => Server, silent => Silent, light => ?LOG:light(Requests, Window, Until),
      heavy => hd([?LOG:heavy(?LOG:parse(Log), Window) || Log <- HeavyLogs] ++ [undefined]),
      others => ?WATCH:others(Usage, Window),
      whole => scheduling(Window, Server, Usage, Queues),
      timeline => [maps:merge(Point, scheduling(Step(Ms), Server, Usage, Queues))
                   || #{t_ms := Ms} = Point
                          <- ?LOG:timeline(Requests, Window, 1000 * ?STEP_MS, Until)]}.

%% What schedulers did, and what waited for them, within a time.
scheduling({From, To} = Time, #{schedulers := Normal, dirty_cpu := Dirty}, Usage, Queues) ->
    Samples = [S || {Us, _, _, _} = S <- Queues, Us >= From, Us < To],
    Used = case ?WATCH:use(Usage, Time) of
               undefined -> fun(_) -> undefined end;
               Use -> fun(Thread) -> maps:get(Thread, Use, 0.0) end
           end,
    Each = fun(Kind, Count) -> defined([Used({Kind, Id}) || Id <- lists:seq(1, Count)]) end,
    %% The queues of dirty CPU and of dirty I/O schedulers stand at the end.
    Means = means([Lengths || {_, _, _, Lengths} <- Samples]),
    #{use => Each(scheduler, Normal), dirty_cpu_use => Each(dirty_cpu, Dirty),
      dirty_io_use => Used(dirty_io), other_use => Used(other),
      queues => defined(lists:sublist(Means, Normal)),
      dirty_queues => defined(lists:nthtail(max(0, length(Means) - 2), Means)),
      late_ms => [case [Late || {_, S, Late, _} <- Samples, S =:= Id] of
                      [] -> undefined;
                      Lates -> lists:max(Lates) div 1000
                  end || Id <- lists:seq(1, Normal)]}.

defined([]) -> undefined;
defined([undefined | _]) -> undefined;
defined(Values) -> Values.

means([[_ | _] | _] = Lists) ->
    [round(10 * lists:sum([hd(L) || L <- Lists]) / length(Lists)) / 10
     | means([tl(L) || L <- Lists])];
means(_) ->
    [].

%% @doc What a run did to the server, if that is more than a delay: a sentence, or `undefined'.
-spec finding(#{atom() => term()}) -> binary() | undefined.
finding(#{light := Light, heavy := Heavy, silent := Silent}) ->
    case of_light(Light)
        ++ [["the node itself: ", Silent] || Silent =/= undefined]
        ++ [io_lib:format("~b heavy requests failed", [F]) || #{failed := F} <- [Heavy], F > 0] of
        [] -> undefined;
        Said -> text(lists:join("; ", Said))
    end.

of_light(#{answered := 0}) ->
    ["the server answered no light request"];
of_light(#{silence_ms := Silence, unanswered := Unanswered, failed := Failed, due := Due}) ->
    [io_lib:format("no light request was answered for ~ts",
                   [fairnif_check_table:duration(1.0e6 * Silence)]) || Silence >= ?SILENCE_MS]
        ++ [io_lib:format("~b of ~b had no answer a second after the window", [Unanswered, Due])
            || Unanswered > 0]
        ++ [io_lib:format("~b of ~b were answered with an error", [Failed, Due]) || Failed > 0].

%% @doc What is to be compared: the medians of the repeats of each load, beside those of the same
%% light load beside nothing and beside ordinary Erlang.
-spec compared([#{atom() => term()}]) -> [#{atom() => term()}].
compared(Rows) ->
    Measured = [R || #{status := measured} = R <- Rows],
    Medians = [medians(Key, [R || R <- Measured, key(R) =:= Key])
               || Key <- lists:uniq([key(R) || R <- Measured])],
    [beside(M, Medians) || M <- Medians].

key(Row) -> maps:with([mode, job, duration_ms, at_once, rate], Row).

medians(#{mode := Mode} = Key, Rows) ->
    Of = fun(Values) ->
                 case [V || V <- Values, is_number(V)] of
                     [] -> undefined;
                     Numbers -> fairnif_check_stats:median(Numbers)
                 end
         end,
    Light = fun(Figure) -> Of([maps:get(Figure, L) || #{light := L} <- Rows]) end,
    Key#{title => list_to_binary(?PLAN:title(Mode)), at_most => ?PLAN:at_most(Mode),
         p50_us => Light(p50_us), p99_us => Light(p99_us), max_us => Light(max_us),
         requests_per_s => Light(requests_per_s),
         heavy_per_s => Of([V || #{heavy := #{per_s := V}} <- Rows]),
         doubtful => doubted(Of([maps:get(others, R) || R <- Rows])),
         finding => hd([F || #{finding := F} <- Rows, F =/= undefined] ++ [undefined])}.

beside(#{p99_us := P99, at_most := AtMost, doubtful := Doubtful0, rate := Rate} = Ours, Medians) ->
    Of = fun(Key) -> case find(Key, Medians) of none -> #{}; Found -> Found end end,
    Idle = maps:get(p99_us, Of(#{mode => idle, rate => Rate}), undefined),
    ErlangToo = Of((key(Ours))#{mode := erlang}),
    Erlang = maps:get(p99_us, ErlangToo, undefined),
    Times = case {P99, Erlang} of
                {A, B} when is_number(A), is_number(B) -> round(100 * A / max(1, B)) / 100;
                _ -> undefined
            end,
    %% What other programs did to either of the two is no finding.
    Doubtful = Doubtful0 orelse maps:get(doubtful, ErlangToo, false),
    Ours#{idle_p99_us => Idle, erlang_p99_us => Erlang, times_erlang => Times,
          doubtful => Doubtful,
          kept => case AtMost =:= undefined orelse Times =:= undefined orelse Doubtful of
                      true -> undefined;
                      false -> Times =< AtMost
                  end}.

%% ---- the tables ----

%% A table for each load, in the order in which they were measured, and the same light load beside
%% nothing as its first row.
format(#{rows := Rows, compared := Compared, load := #{clients := Clients, streams := Streams}}) ->
    Load = fun(C) -> maps:remove(mode, key(C)) end,
    Idle = [C || #{mode := idle} = C <- Compared],
    Loads = lists:uniq([Load(C) || C <- case Compared -- Idle of [] -> Idle; Heavy -> Heavy end]),
    Rates = [integer_to_list(R) || R <- lists:usort([R || #{rate := R} <- Rows])],
    Measured = [R || #{status := measured} = R <- Rows],
    [[[table(L, [whole(C, Measured)
                 || #{mode := Mode, rate := R} = C <- Compared,
                    Load(C) =:= L orelse Mode =:= idle andalso R =:= maps:get(rate, L)]), $\n]
      || L <- Loads],
     io_lib:format(
       "Light: ~b connections of up to ~b requests under way, ~ts a second in all.  A time is that "
       "from when\nthe request was due, or sent, to its answer: due where h2load could not send it "
       "yet because so\nmany were under way.  Failed: answered with an error, or not within a "
       "second after the window.\nIn use: CPU time of normal and dirty CPU schedulers, the mean, "
       "and of all threads that are none,\nadded up; queues: how many waited, the mean.\n",
       [Clients, Streams, lists:join(" or ", Rates)]),
     [["Skipped: ", Title, ": ", Why, ".\n"]
      || {Title, Why} <- lists:usort([{T, W} || #{status := skipped, title := T, why := W}
                                                    <- Rows])],
     [["Failed: ", title(R), ": ", Why, ".\n"] || #{status := failed, why := Why} = R <- Rows],
     [["Found: ", title(R), ": ", F, ".\n"] || #{finding := F} = R <- Rows, is_binary(F)],
     case length([R || #{others := N} = R <- Measured, doubted(N)]) of
         0 -> "";
         Noisy -> io_lib:format("Other programs kept the machine busy: doubt ~b of ~b runs.~n",
                                [Noisy, length(Measured)])
     end,
     conclusion([C || #{at_most := N, times_erlang := T} = C <- Compared, is_number(N),
                      is_number(T)])].

table(Load, Rows) ->
    fairnif_exp:table(
      [{["beside\n", load(Load)], left, {title, text}},
       {"light\nrequests/s", right, {requests_per_s, fun number/1}}, {"p50", right, {p50_us, us}},
       {"p99", right, {p99_us, us}}, {"max", right, {max_us, us}},
       {"p99 /\nErlang", right, {times_erlang, times}}, {"failed", right, {failed, count}},
       {"heavy\ndone/s", right, {heavy_per_s, fun number/1}},
       {"in use: normal,\ndirty, other", right, {in_use, text}},
       {"queues:\nnormal, dirty", right, {queues, text}}], Rows).

%% What was compared with what all runs of it came to: of schedulers of a kind the mean.
whole(Compared, Measured) ->
    Rows = [R || R <- Measured, key(R) =:= key(Compared)],
    Mean = fun(Key, Format) ->
                   case [V || #{whole := #{Key := Vs}} <- Rows, V <- lists:flatten([Vs]),
                              is_number(V)] of
                       [] -> "-";
                       Values -> fairnif_exp:shown(Format, lists:sum(Values) / length(Values))
                   end
           end,
    Compared#{failed => lists:sum([F + U || #{light := #{failed := F, unanswered := U}} <- Rows]),
              in_use => lists:join(", ", [Mean(Key, percent)
                                          || Key <- [use, dirty_cpu_use, other_use]]),
              queues => lists:join(", ", [Mean(Key, fun number/1)
                                          || Key <- [queues, dirty_queues]])}.

load(#{at_once := 0}) ->
    "nothing heavy";
load(#{job := Job, duration_ms := Ms, at_once := N}) ->
    io_lib:format("~b x ~s ~ts", [N, Job, fairnif_exp:time(1000 * Ms)]).

title(#{title := Title, rate := Rate, repeat := Repeat} = Run) ->
    io_lib:format("~ts: ~ts, ~b light/s, repeat ~b", [load(Run), Title, Rate, Repeat]).

number(N) when N >= 100 -> fairnif_exp:shown(count, N);
number(N) -> float_to_list(float(N), [{decimals, 1}]).

times(X) -> fairnif_exp:shown(times, X).

%% Written from the figures, so that it cannot say what they do not.
conclusion([]) ->
    "";
conclusion([#{at_most := AtMost} | _] = All) ->
    [io_lib:format(
       "~nWhat to see: beside ~ts the light route's p99 is to be at most~n~ts that beside ordinary "
       "Erlang that works as long.~n",
       [lists:join(" and ", lists:usort([T || #{title := T} <- All])), times(AtMost)]),
     said(lists:reverse(lists:sort([{T, C} || #{kept := Kept, times_erlang := T} = C <- All,
                                              is_boolean(Kept)])), length(All))].

%% The worst first.
said([], _) ->
    "That cannot be said: other programs kept the machine busy.\n";
said([{Most, #{title := Title, rate := Rate} = Worst} | _] = Promised, All) ->
    Above = [C || {_, #{kept := false} = C} <- Promised],
    [io_lib:format("It is in ~b of ~b; the most is ~ts (~ts, ~ts, ~b light/s).~n",
                   [length(Promised) - length(Above), length(Promised), times(Most), Title,
                    load(Worst), Rate]),
     [io_lib:format("Above: ~ts, ~ts, ~b light/s: ~ts.~n", [load(C), T, R, times(X)])
      || #{title := T, times_erlang := X, rate := R} = C <- Above],
     [io_lib:format("Of ~b more it cannot be said: other programs kept the machine busy.~n",
                    [All - length(Promised)]) || length(Promised) < All]].
