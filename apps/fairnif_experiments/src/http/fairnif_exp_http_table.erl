%% What the experiment `http' shows: its table and what to see in it.  Nothing
%% here measures.
-module(fairnif_exp_http_table).

-export([format/1, title/1]).


%% @doc The text for a person: a table for each load, and the same light load
%% beside nothing as its first row.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rows := Rows, compared := Compared} = Result) ->
    [[table(Load, Compared, Rows) || Load <- loads(Compared)],
     footnotes(Result), conclusion(Compared)].

%% In the order in which they were measured; idle alone is none, unless there is
%% no other.
loads(Compared) ->
    Loads = [load_of(C) || #{mode := Mode} = C <- Compared, Mode =/= idle],
    case lists:uniq(Loads) of
        [] -> lists:uniq([load_of(C) || C <- Compared]);
        Some -> Some
    end.

load_of(Compared) ->
    maps:with([job, duration_ms, at_once, rate], Compared).

table(#{rate := Rate} = Load, Compared, Rows) ->
    Shown = [C || #{mode := idle, rate := R} = C <- Compared, R =:= Rate]
        ++ [C || #{mode := Mode} = C <- Compared, Mode =/= idle, load_of(C) =:= Load],
    [fairnif_lab_table:render(columns(Load), [cells(C, rows(C, Rows)) || C <- Shown]), $\n].

columns(Load) ->
    [{["beside\n", load(Load)], left}, {"light\nrequests/s", right}, {"p50", right},
     {"p99", right}, {"max", right}, {"p99 /\nErlang", right}, {"failed", right},
     {"heavy\ndone/s", right}, {"in use: normal,\ndirty, other", right},
     {"queues:\nnormal, dirty", right}].

cells(#{title := Title, requests_per_s := PerS, p50_us := P50, p99_us := P99, max_us := Max,
        times_erlang := Times, heavy_per_s := Heavy}, Rows) ->
    [Title, number(PerS), duration(P50), duration(P99), duration(Max), times(Times),
     fairnif_lab_table:count(lists:sum([F + U || #{light := #{failed := F, unanswered := U}}
                                                     <- Rows])),
     number(Heavy),
     [pair(Rows, use, dirty_cpu_use, fun fairnif_lab_table:percent/1), ", ",
      fairnif_lab_table:percent(other(Rows))],
     pair(Rows, queues, dirty_queues, fun number/1)].

rows(Compared, Rows) ->
    Key = fun(R) -> maps:with([mode, job, duration_ms, at_once, rate], R) end,
    [R || #{status := measured} = R <- Rows, Key(R) =:= Key(Compared)].

load(#{at_once := 0}) ->
    "nothing heavy";
load(#{job := Job, duration_ms := Ms, at_once := N}) ->
    io_lib:format("~b x ~s ~ts", [N, Job, fairnif_exp:time(1000 * Ms)]).

%% The mean of all schedulers of a kind, over the repeats.
pair(Rows, Normal, Dirty, Text) ->
    [Text(mean([V || #{whole := #{Normal := Vs}} <- Rows, is_list(Vs), V <- Vs])), ", ",
     Text(mean([V || #{whole := #{Dirty := Vs}} <- Rows, is_list(Vs), V <- Vs]))].

%% All threads that are no scheduler, those of fairnif's pool among them.
other(Rows) ->
    mean([U || #{whole := #{other_use := U}} <- Rows, is_number(U)]).

mean([]) -> undefined;
mean(Values) -> lists:sum(Values) / length(Values).

%% @doc What a run is called.
-spec title(#{atom() => term()}) -> unicode:chardata().
title(#{title := Title, rate := Rate, repeat := Repeat} = Run) ->
    io_lib:format("~ts: ~ts, ~b light/s, repeat ~b", [load(Run), Title, Rate, Repeat]).

duration(undefined) -> "-";
duration(Us) -> fairnif_lab_table:duration(1000 * Us).

number(undefined) -> "-";
number(N) when N >= 100 -> fairnif_lab_table:count(round(N));
number(N) -> float_to_list(float(N), [{decimals, 1}]).

times(undefined) -> "-";
times(X) when X >= 9.95 -> [fairnif_lab_table:count(round(X)), "x"];
times(X) -> [float_to_list(float(X), [{decimals, 1}]), "x"].

footnotes(#{rows := Rows, load := #{clients := Clients, streams := Streams}}) ->
    [io_lib:format(
       "Light: ~b connections of up to ~b requests under way, ~ts a second in all.  A time is that "
       "from when\nthe request was due, or sent, to its answer: due where h2load could not send it "
       "yet because so\nmany were under way.  Failed: answered with an error, or not within a "
       "second after the window.\nIn use: CPU time of normal and dirty CPU schedulers, the mean, "
       "and of all threads that are none,\nadded up; queues: how many waited, the mean.\n",
       [Clients, Streams, rates(Rows)]),
     [["Skipped: ", Title, ": ", Why, ".\n"]
      || {Title, Why} <- lists:usort([{T, W} || #{status := skipped, title := T, why := W}
                                                    <- Rows])],
     [["Failed: ", title(R), ": ", Why, ".\n"] || #{status := failed, why := Why} = R <- Rows],
     [["Found: ", title(R), ": ", F, ".\n"] || #{finding := F} = R <- Rows, is_binary(F)],
     doubt([R || #{status := measured} = R <- Rows])].

rates(Rows) ->
    lists:join(" or ", [integer_to_list(R) || R <- lists:usort([R || #{rate := R} <- Rows])]).

doubt(Rows) ->
    case [R || #{others := N} = R <- Rows, fairnif_exp:doubted(N)] of
        [] -> "";
        Noisy -> io_lib:format("Other programs kept the machine busy: doubt ~b of ~b runs.~n",
                               [length(Noisy), length(Rows)])
    end.

%% Written from the figures, so that it cannot say what they do not.
conclusion(Compared) ->
    case [C || #{at_most := N, times_erlang := T} = C <- Compared, is_number(N), is_number(T)] of
        [] ->
            "";
        All ->
            [#{at_most := AtMost} | _] = All,
            [io_lib:format(
               "~nWhat to see: beside ~ts the light route's p99 is to be at most~n~ts that beside "
               "ordinary Erlang that works as long.~n",
               [lists:join(" and ", lists:usort([T || #{title := T} <- All])), times(AtMost)]),
             said([C || #{kept := Kept} = C <- All, is_boolean(Kept)], length(All))]
    end.

said([], _) ->
    "That cannot be said: other programs kept the machine busy.\n";
said(Promised, All) ->
    Above = [C || #{kept := false} = C <- Promised],
    #{times_erlang := Most} = Worst = hd(worst_first(Promised)),
    [io_lib:format("It is in ~b of ~b; the most is ~ts (~ts, ~ts, ~b light/s).~n",
                   [length(Promised) - length(Above), length(Promised), times(Most),
                    maps:get(title, Worst), load(Worst), maps:get(rate, Worst)]),
     [io_lib:format("Above: ~ts, ~ts, ~b light/s: ~ts.~n", [load(C), Title, Rate, times(Times)])
      || #{title := Title, times_erlang := Times, rate := Rate} = C <- worst_first(Above)],
     [io_lib:format("Of ~b more it cannot be said: other programs kept the machine busy.~n",
                    [All - length(Promised)]) || length(Promised) < All]].

worst_first(Compared) ->
    lists:sort(fun(#{times_erlang := A}, #{times_erlang := B}) -> A >= B end, Compared).
