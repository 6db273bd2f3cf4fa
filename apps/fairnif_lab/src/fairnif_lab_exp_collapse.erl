%% Scheduler collapse, as Fritchie provoked it: many processes with native work
%% that holds its scheduler, after which schedulers sleep while work waits.
%%
%% Three forms of the work: md5 by crypto as he had it, a NIF that holds its
%% scheduler as long, and the same work on fairnif.  Each runs in two nodes of
%% its own: as is, and with the workaround +sfwi.
-module(fairnif_lab_exp_collapse).

-behaviour(fairnif_lab_experiment).

-export([name/0, description/0, steps/1, run/1, format/1]).
-export([run/4, spec/1]).

-define(PEER, fairnif_lab_exp_collapse_peer).
-define(VERDICT, fairnif_lab_exp_collapse_verdict).
%% With fewer, half of the schedulers would be one, and one cannot sleep while
%% another works.
-define(SCHEDULERS, 4).
%% What a run may take: so many times its prediction, and this.
-define(TIMES, 8).
-define(LIMIT_MS, 30000).

%% In the order of the table.
forms() ->
    [{md5, "md5 by crypto"}, {blocking, "blocking NIF"}, {fair, "fairnif AUTO"}].

variants() ->
    [{"as is", []}, {"+sfwi 500", ["+sfwi", "500"]}].

%% n: processes, of all or for each scheduler; gap: between runs; sample: from
%% look to look.  Milliseconds.  Where less is done, R stays large: a process
%% must be made to wait between its repetitions to be treated unfairly.
scale(quick) ->
    #{n => {each, 10}, w => 65536, r => 40, bw => 5, runs => 1,
      gap => 100, ready => 50, sample => 10};
scale(normal) ->
    #{n => {each, 25}, w => 131072, r => 400, bw => 5, runs => 3,
      gap => 2000, ready => 1000, sample => 250};
scale(full) ->
    #{n => 400, w => 1048576, r => 1100, bw => 5, runs => 8,
      gap => 12000, ready => 1000, sample => 1000}.

%% Scott Lystig Fritchie, github.com/slfritchie/nifwait, branch md5: what he
%% published.  Cells of the table after the first two.
published() ->
    [["published: R15B01", "", "", "2.62 s", "126 s", "48x", "", "", ""],
     ["published: R16B", "", "", "2.69 s", "140 s", "52x", "", "", ""],
     ["published: R16B", "8 of 16", "after 8", "", "", "",
      "one 100 %, seven 18 to 20 %", "", "yes"],
     ["published: R16B, worst", "half", "", "", "", "",
      "one 100 %, others under 5 %", "", "yes"],
     ["published: on 8", "8 of 8", "", "", "", "", "", "about 2,000", "no"]].

%% @doc `collapse'.
-spec name() -> collapse.
name() ->
    collapse.

%% @doc One line for the list of experiments.
-spec description() -> unicode:chardata().
description() ->
    "schedulers that sleep while work waits, after native calls (Fritchie's nifwait)".

%% @doc One per run.
-spec steps(fairnif_lab_experiment:options()) -> pos_integer().
steps(Opts) ->
    #{runs := Runs} = spec(Opts),
    length(forms()) * length(variants()) * (Runs + 1).

%% @doc The parameters of a run with these options: those of its `scale', and
%% `n', `w' (bytes), `r', `bw' where the options have them.
-spec spec(fairnif_lab_experiment:options()) -> #{atom() => term()}.
spec(Opts) ->
    Schedulers = schedulers(),
    Spec = maps:merge(scale(maps:get(scale, Opts, normal)),
                      maps:with([n, w, r, bw], Opts)),
    Spec#{n := case maps:get(n, Spec) of
                   {each, N} -> N * Schedulers;
                   N -> N
               end,
          schedulers => Schedulers}.

%% @doc The whole sequence for each form (quick: some seconds; normal: some
%% minutes; full: hours).  A form that fails says so and the others go on.
%% `failed' when the example spinsleep is not built.
-spec run(fairnif_lab_experiment:options()) ->
          {ok, fairnif_lab_experiment:result()}
        | {error, fairnif_lab_experiment:error()}.
run(Opts) ->
    case code:which(?PEER:example()) of
        non_existing ->
            {error, {failed, "the example spinsleep is not built "
                             "(rebar3 compile in examples/spinsleep)"}};
        _ ->
            Progress = maps:get(progress, Opts, fairnif_lab_progress:none()),
            rows(maps:get(scale, Opts, normal), spec(Opts), Progress,
                 is_map_key(progress, Opts))
    end.

%% @doc One run of the form md5 in this node, as the original's: N processes
%% hash W bytes R times, with BW rounds of busy wait after each.  Prints a
%% status line once a second.  Answers the seconds that each process took, and
%% how many per cent of the time each normal scheduler was in use.
-spec run(pos_integer(), pos_integer(), pos_integer(), non_neg_integer()) ->
          {[float()], [{Scheduler :: pos_integer(), PercentInUse :: float()}]}.
run(N, W, R, BW) ->
    Spec = #{form => md5, n => N, w => W, r => R, bw => BW, ready_ms => 1000,
             sample_ms => 1000, print => true},
    {Pid, Monitor} = spawn_monitor(fun() -> exit({ran, ?PEER:measure(Spec)}) end),
    receive
        {'DOWN', Monitor, process, Pid, {ran, #{seconds := S, in_use := U}}} ->
            {S, U};
        {'DOWN', Monitor, process, Pid, Reason} ->
            error(Reason)
    end.

%% @doc The table, published figures beside ours, and what was seen.
-spec format(fairnif_lab_experiment:result()) -> unicode:chardata().
format(#{rows := Rows} = Result) ->
    [fairnif_lab_table:render(columns(),
                              lists:append([cells(R) || R <- Rows])
                              ++ published()),
     footnotes(Result),
     [sentence(R) || R <- Rows]].

%% ---- running ----

rows(Scale, Spec, Progress, Print) ->
    Start = now_ms(),
    Rows = [row(Form, Name, Flags, Spec, Progress, Print)
            || {Form, _} <- forms(), {Name, Flags} <- variants()],
    fairnif_lab_progress:stop(Progress),
    {ok, #{ok => not lists:any(fun(R) -> is_map_key(error, R) end, Rows),
           scale => Scale, took_ms => now_ms() - Start,
           cores => cores(),
           spec => maps:with([n, w, r, bw, runs, gap, schedulers], Spec),
           units => <<"w in bytes, of the NIFs job_us; seconds per process; in_use in per cent of "
                      "each scheduler; done and windows: jobs by scheduler, samples: queues of "
                      "online schedulers, both with ms since go">>,
           rows => Rows}}.

row(Form, Name, More, #{schedulers := S} = Spec, Progress, Print) ->
    All = integer_to_list(S),
    Flags = ["+S", All ++ ":" ++ All, "+scl", "false" | More],
    Row = #{form => Form, variant => list_to_binary(Name),
            flags => list_to_binary(lists:join($\s, Flags))},
    Result = fairnif_lab_peer:with(
               Flags, fun(Peer) -> sequence(Peer, Form, Name, Spec, Progress, Print) end),
    case Result of
        {error, Why} ->
            Row#{error => unicode:characters_to_binary(
                            fairnif_lab_peer:format_error(Why))};
        #{} ->
            maps:merge(Row, Result)
    end.

%% Runs with all schedulers, half of them taken offline, a last run.
sequence(Peer, Form, Name, #{w := W, runs := Runs, gap := Gap,
                             schedulers := S} = Spec, Progress, Print) ->
    Half = max(1, S div 2),
    Title = [proplists:get_value(Form, forms()), ", ", Name],
    maybe_runs(
      ask(Peer, prepare, [W], ?LIMIT_MS),
      fun(JobUs) ->
              Run = fun(Phase, Online, I) ->
                            Ms = predicted_ms(JobUs, Online, Spec),
                            fairnif_lab_progress:step(
                              Progress,
                              io_lib:format("~ts: run ~b of ~b, ~b schedulers, about ~b s",
                                            [Title, I, Runs + 1, Online,
                                             ceil(Ms / 1000)])),
                            one(Peer, Form, JobUs, Phase, Ms, Spec, Print)
                    end,
              First = [{fun() -> Run(all, S, I) end, Gap}
                       || I <- lists:seq(1, Runs)],
              Halve = {fun() -> ask(Peer, set_online, [Half], ?LIMIT_MS) end, Gap},
              Last = {fun() -> Run(half, Half, Runs + 1) end, 0},
              maybe_runs(in_order(First ++ [Halve, Last]),
                         fun(Answers) ->
                                 #{job_us => JobUs,
                                   runs => [A || #{} = A <- Answers]}
                         end)
      end).

maybe_runs({ok, Value}, Fun) -> Fun(Value);
maybe_runs({error, _} = Error, _) -> Error.

in_order([]) ->
    {ok, []};
in_order([{Fun, Gap} | Rest]) ->
    case Fun() of
        {ok, Answer} ->
            timer:sleep(Gap),
            maybe_runs(in_order(Rest), fun(More) -> {ok, [Answer | More]} end);
        {error, _} = Error ->
            Error
    end.

one(Peer, Form, JobUs, Phase, Ms, Spec, Print) ->
    #{n := N, w := W, r := R, bw := BW, ready := Ready, sample := Sample} = Spec,
    Run = #{form => Form, n => N, r => R, bw => BW, ready_ms => Ready,
            sample_ms => Sample, print => Print,
            w => case Form of md5 -> W; _ -> JobUs end},
    maybe_runs(ask(Peer, measure, [Run], ?TIMES * Ms + ?LIMIT_MS),
               fun(Measured) -> {ok, judged(Phase, Measured)} end).

judged(Phase, #{seconds := Seconds, in_use := InUse, online := Online,
                samples := Samples, windows := Windows, done := Done,
                elapsed_ms := Ms} = Measured) ->
    Verdict = #{why := Why} =
        ?VERDICT:verdict(InUse, [Q || {_, Q} <- Samples], Online),
    maps:merge(
      Verdict#{why := unicode:characters_to_binary(Why)},
      Measured#{phase => Phase,
                fairness => ?VERDICT:fairness(Seconds),
                shortest => lists:min(Seconds), longest => lists:max(Seconds),
                in_use := [Share || {_, Share} <- InUse],
                samples := [[T, Q] || {T, Q} <- Samples],
                windows := [[T, D] || {T, D} <- Windows],
                per_5s => [round(5000 * D / Ms) || D <- Done],
                classes => classes([Q || {_, Q} <- Samples])}).

classes(Samples) ->
    lists:foldl(fun(Q, Acc) ->
                        maps:update_with(?VERDICT:classify(Q),
                                         fun(C) -> C + 1 end, Acc)
                end, #{even => 0, minority_zero => 0, unbalanced => 0}, Samples).

predicted_ms(JobUs, Online, #{n := N, r := R}) ->
    JobUs * N * R div (1000 * min(Online, cores())).

ask(Peer, Function, Args, LimitMs) ->
    fairnif_lab_peer:call(Peer, {?PEER, Function, Args}, LimitMs).

schedulers() ->
    max(?SCHEDULERS, cores()).

%% Those this process may use; the schedulers of this node say nothing, as
%% bin/fairnif starts it with one.
cores() ->
    case erlang:system_info(logical_processors_available) of
        N when is_integer(N) -> N;
        unknown -> 1
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% ---- the table ----

columns() ->
    [{"work", left}, {"schedulers\nonline", right}, {"runs", right},
     {"a process:\nshortest", right}, {"\nlongest", right},
     {"longest /\nshortest", right}, {"in use, of\nthose online", right},
     {"jobs a scheduler\ndoes in 5 s", right}, {"collapsed", right}].

cells(#{error := _} = Row) ->
    [[title(Row), "failed" | ["" || _ <- lists:seq(3, length(columns()))]]];
cells(#{runs := Runs} = Row) ->
    [phase(Row, [R || #{phase := P} = R <- Runs, P =:= Phase])
     || Phase <- [all, half]].

phase(#{runs := All} = Row, [#{online := Online} | _] = Runs) ->
    Schedulers = lists:max([O || #{online := O} <- All]),
    [title(Row), io_lib:format("~b of ~b", [Online, Schedulers]),
     case Runs of
         [#{phase := half}] -> io_lib:format("after ~b", [length(All) - 1]);
         _ -> integer_to_list(length(Runs))
     end,
     seconds(lists:min([S || #{shortest := S} <- Runs])),
     seconds(lists:max([L || #{longest := L} <- Runs])),
     range([F || #{fairness := F} <- Runs], "x", fun times/1),
     range([Share || #{in_use := U} <- Runs, Share <- lists:sublist(U, Online)],
           " %", fun(X) -> integer_to_list(round(X)) end),
     range([J || #{per_5s := D} <- Runs, J <- lists:sublist(D, Online)],
           "", fun fairnif_lab_table:count/1),
     collapsed([C || #{collapsed := C} <- Runs])].

title(#{form := Form, variant := Variant}) ->
    [proplists:get_value(Form, forms()), ", ", Variant].

seconds(S) ->
    fairnif_lab_table:duration(S * 1.0e9).

times(X) when X >= 9.95 -> integer_to_list(round(X));
times(X) -> float_to_list(X, [{decimals, 1}]).

range(Values, Unit, Text) ->
    case {Text(lists:min(Values)), Text(lists:max(Values))} of
        {Same, Same} -> [Same, Unit];
        {Least, Most} -> [Least, " to ", Most, Unit]
    end.

collapsed(Answers) ->
    case {lists:member(true, Answers), lists:member(false, Answers)} of
        {true, _} -> "yes";
        {false, true} -> "no";
        {false, false} -> "can't say"
    end.

footnotes(#{spec := #{n := N, w := W, r := R, bw := BW, gap := Gap,
                      schedulers := S}, cores := Cores, rows := Rows}) ->
    [io_lib:format(
       "~b processes, spawned on one scheduler, each: md5 of ~s, or a NIF that takes as long (~ts),~n"
       "~b times, with ~b rounds of Erlang after each; runs ~ts apart; +scl false.  Collapsed: a scheduler~n"
       "in use for less than half of the time in which more work waited than there were schedulers; an~n"
       "empty queue alone says nothing.  Published: Scott Lystig Fritchie's nifwait (400 processes, 1 MiB,~n"
       "1,100 times), on machines of 8 to 16 processors.~n",
       [N, fairnif_lab_table:bytes(W),
        range([U || #{job_us := U} <- Rows] ++ [0 || not any_job(Rows)], " us",
              fun integer_to_list/1),
        R, BW, fairnif_lab_table:duration(Gap * 1000000)]),
     [io_lib:format(
        "This machine has ~b processors and ran ~b schedulers: unfairness shows here, and a scheduler that~n"
        "sleeps while work waits would.  A collapse was only ever seen by chance and on more processors: that~n"
        "none happened here does not say that none happens there.~n", [Cores, S])
      || Cores < 8],
     [["Failed: ", title(Row), ": ", E, $\n] || #{error := E} = Row <- Rows]].

any_job(Rows) ->
    lists:any(fun(R) -> is_map_key(job_us, R) end, Rows).

%% Written from the figures, so that it cannot say what they do not.
sentence(#{runs := Runs} = Row) ->
    #{collapsed := Collapsed, why := Why} = Shown = worst(Runs),
    ["\n", title(Row), ": ",
     case Collapsed of
         true -> "collapsed; ";
         false -> "no collapse; ";
         cannot_say -> "can't say; "
     end,
     Why, io_lib:format(".~n  Queues: ~ts.", [queues(Shown)]), "\n"];
sentence(_) ->
    "".

%% A run that collapsed, or the last one.
worst(Runs) ->
    case [R || #{collapsed := true} = R <- Runs] of
        [Run | _] -> Run;
        [] -> lists:last(Runs)
    end.

queues(#{classes := Classes, lines := Lines}) ->
    [lists:join(", ", [io_lib:format("~s ~b", [C, maps:get(C, Classes)])
                       || C <- [even, minority_zero, unbalanced]]),
     [["; then ", lists:last(Lines)] || Lines =/= []]].
