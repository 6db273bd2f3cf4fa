%% Scheduler collapse, as Fritchie provoked it: many processes with native work
%% that holds its scheduler, after which schedulers sleep while work waits.
%%
%% Forms of the work: md5 by crypto as he had it, a NIF that holds its scheduler
%% as long, the same work on fairnif, and ordinary Erlang.  Each runs in nodes of
%% its own: as is, and with the workaround +sfwi.
-module(fairnif_exp_collapse).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).
-export([run/4, spec/1]).

-define(PEER, fairnif_exp_collapse_peer).
-define(VERDICT, fairnif_exp_collapse_verdict).
%% With fewer, half of the schedulers would be one, and one cannot sleep while
%% another works.
-define(SCHEDULERS, 4).
%% What a run may take: so many times its prediction, and this.
-define(TIMES, 8).
-define(LIMIT_MS, 30000).

%% In the order of the table.  Ordinary Erlang is the measure: what the VM makes
%% of work that no one can call badly behaved.
forms() ->
    [{md5, "md5 by crypto"}, {blocking, "blocking NIF"}, {fair, "fairnif AUTO"},
     {erlang, "ordinary Erlang"}].

%% {what is done, its title, how the node is started, more flags}
sequences(Spec) ->
    [{Form, Title, Variant, Flags}
     || {Form, Title} <- forms(),
        {Variant, Flags, Forms} <- [{"as is", [], all},
                                    {"+sfwi 500", ["+sfwi", "500"],
                                     maps:get(sfwi, Spec)}],
        Forms =:= all orelse lists:member(Form, Forms)].

%% n: processes, of all or for each scheduler; gap: between runs; sample: from
%% look to look; sfwi: what runs with the workaround as well.  Milliseconds.
%% Where less is done, R stays large: a process must be made to wait between its
%% repetitions to be treated unfairly.
scale(quick) ->
    #{n => {each, 10}, w => 65536, r => 20, bw => 5, runs => 1,
      gap => 20, ready => 20, sample => 10, sfwi => [blocking]};
scale(normal) ->
    #{n => {each, 25}, w => 131072, r => 400, bw => 5, runs => 3,
      gap => 2000, ready => 1000, sample => 250,
      sfwi => [md5, blocking, fair]};
scale(full) ->
    #{n => 400, w => 1048576, r => 1100, bw => 5, runs => 8,
      gap => 12000, ready => 1000, sample => 1000,
      sfwi => [md5, blocking, fair]}.

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => collapse,
      description =>
          "schedulers that sleep while work waits, after native calls (Fritchie's nifwait)"}.

%% @doc One per run.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(Opts) ->
    #{runs := Runs} = Spec = spec(Opts),
    length(sequences(Spec)) * (Runs + 1).

%% @doc The parameters of a run with these options: those of its `scale', and
%% `n', `w' (bytes), `r', `bw' where the options have them.
-spec spec(fairnif_experiment:options()) -> #{atom() => term()}.
spec(Opts) ->
    Schedulers = schedulers(),
    Spec = maps:merge(scale(fairnif_exp:scale(Opts)),
                      maps:with([n, w, r, bw], Opts)),
    Spec#{n := case maps:get(n, Spec) of
                   {each, N} -> N * Schedulers;
                   N -> N
               end,
          schedulers => Schedulers}.

%% @doc The whole sequence for each form (quick: some seconds; normal: some
%% minutes; full: hours).  A form that fails says so and the others go on.
%% `failed' when the example spinsleep is not built.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([fairnif_exp:spinsleep()],
                      fun() ->
                              rows(fairnif_exp:scale(Opts), spec(Opts),
                                   fairnif_exp:progress(Opts),
                                   is_map_key(progress, Opts))
                      end).

%% @doc One run of the form md5 in this node, as the original's: N processes
%% hash W bytes R times, with BW rounds of busy wait after each.  Prints a
%% status line once a second.  Answers the seconds that each process took, and
%% how many per cent of the time each normal scheduler was in use.
-spec run(pos_integer(), pos_integer(), pos_integer(), non_neg_integer()) ->
          {[float()], [{Scheduler :: pos_integer(), PercentInUse :: float()}]}.
run(N, W, R, BW) ->
    Spec = #{form => md5, n => N, w => W, r => R, bw => BW, ready_ms => 1000,
             sample_ms => 1000, print => true},
    case ?PEER:measure(Spec) of
        {ok, #{seconds := Seconds, in_use := InUse}} -> {Seconds, InUse};
        {error, Reason} -> error(Reason)
    end.

%% @doc The table, published figures beside ours, and what was seen.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(Result) ->
    fairnif_exp_collapse_table:format(Result).

%% ---- running ----

rows(Scale, Spec, Progress, Print) ->
    Start = now_ms(),
    %% All do the work that the first one measured.
    {Rows, JobUs} = lists:mapfoldl(
                      fun(Sequence, Known) ->
                              Row = row(Sequence, Spec#{job_us => Known}, Progress,
                                        Print),
                              {Row, maps:get(job_us, Row, Known)}
                      end, undefined, sequences(Spec)),
    fairnif_lab_progress:stop(Progress),
    {ok, fairnif_exp:result(
           Rows,
           #{scale => Scale, took_ms => now_ms() - Start, cores => cores(), job_us => JobUs,
             spec => maps:with([n, w, r, bw, runs, gap, schedulers], Spec),
             units => <<"w in bytes, of other work job_us; seconds per process; in_use: per "
                        "cent, by scheduler; done: jobs by scheduler, windows: so far, every 5 s; "
                        "samples: queues of online schedulers; both with ms since go">>,
             published => fairnif_exp_collapse_table:published(), rows => Rows})}.

row({Form, Work, Variant, More}, #{schedulers := S} = Spec, Progress, Print) ->
    All = integer_to_list(S),
    Flags = ["+S", All ++ ":" ++ All, "+scl", "false" | More],
    Row = #{form => Form, work => list_to_binary(Work),
            variant => list_to_binary(Variant),
            flags => list_to_binary(lists:join($\s, Flags))},
    Step = fun(Text, Args) ->
                   fairnif_lab_progress:step(
                     Progress, [Work, ", ", Variant, ": ", io_lib:format(Text, Args)])
           end,
    try fairnif_lab_peer:with(
          Flags, fun(Peer) -> sequence(Peer, Form, Spec, Step, Print) end) of
        {error, Reason} -> Row#{error => fairnif_exp:text(fairnif_lab_peer:format_error(Reason))};
        #{} = Measured -> maps:merge(Row, Measured)
    catch
        throw:{failed, Text} -> Row#{error => fairnif_exp:text(Text)}
    end.

%% Runs with all schedulers, half of them taken offline, a last run.
sequence(Peer, Form, #{w := W, runs := Count, schedulers := S, gap := Gap,
                       job_us := Known} = Spec, Step, Print) ->
    Us = fairnif_exp:ask(Peer, {?PEER, prepare, [W]}, ?LIMIT_MS),
    JobUs = case Known of undefined -> Us; _ -> Known end,
    Run = fun(Phase, Online) ->
                  Ms = predicted(JobUs, Online, Spec),
                  Step("~b schedulers, about ~ts of ~ts",
                       [Online, fairnif_exp:about(Ms), fairnif_exp:about(whole(JobUs, Spec))]),
                  Call = {?PEER, measure, [run_spec(Form, JobUs, Spec, Print)]},
                  Answer = fairnif_exp:ask(Peer, Call, ?TIMES * Ms + ?LIMIT_MS),
                  timer:sleep(Gap),
                  (judged(Phase, measured(Answer)))#{looks_wanted_ms => maps:get(sample, Spec)}
          end,
    First = [Run(all, S) || _ <- lists:seq(1, Count)],
    Half = max(1, S div 2),
    S = fairnif_exp:ask(Peer, {?PEER, set_online, [Half]}, ?LIMIT_MS),
    timer:sleep(Gap),
    #{job_us => JobUs, runs => First ++ [Run(half, Half)]}.

%% Milliseconds of a run, and of all runs with the time between them.
predicted(JobUs, Online, #{n := N, r := R}) ->
    JobUs * N * R div (1000 * min(Online, cores())).

whole(JobUs, #{runs := Count, schedulers := S, gap := Gap, ready := Ready} = Spec) ->
    length(sequences(Spec))
        * (Count * (predicted(JobUs, S, Spec) + Gap + Ready)
           + predicted(JobUs, max(1, S div 2), Spec) + 2 * Gap + Ready).

measured({ok, Measured}) ->
    Measured;
measured({error, Reason}) ->
    throw({failed, io_lib:format("a process ended with ~0tP", [Reason, 8])}).

run_spec(Form, JobUs, #{ready := Ready, sample := Sample, w := Bytes} = Spec, Print) ->
    (maps:with([n, r, bw], Spec))#{form => Form, ready_ms => Ready,
                                   sample_ms => Sample, print => Print,
                                   w => case Form of md5 -> Bytes; _ -> JobUs end}.

judged(Phase, #{seconds := Seconds, in_use := InUse, online := Online,
                samples := Samples, windows := Windows, done := Done,
                elapsed_ms := Ms} = Measured) ->
    Verdict = #{why := Why} = ?VERDICT:verdict(InUse, Samples, Online),
    maps:merge(
      Verdict#{why := fairnif_exp:text(Why)},
      Measured#{phase => Phase,
                fairness => ?VERDICT:fairness(Seconds),
                shortest => lists:min(Seconds), longest => lists:max(Seconds),
                in_use := [Share || {_, Share} <- InUse],
                samples := [[T, Q] || {T, Q} <- Samples],
                windows := [[T, D] || {T, D} <- Windows],
                per_5s => [round(5000 * D / Ms) || D <- Done],
                looks_apart_ms => apart([T || {T, _} <- Samples] ++ [Ms]),
                classes => classes([Q || {_, Q} <- Samples])}).

%% A look that comes late is itself a sign: the one who looks has priority high.
apart(Times) ->
    lists:max([B - A || {A, B} <- lists:zip(lists:droplast(Times), tl(Times))]).

classes(Samples) ->
    lists:foldl(fun(Q, Acc) ->
                        maps:update_with(?VERDICT:classify(Q),
                                         fun(C) -> C + 1 end, Acc)
                end, #{even => 0, minority_zero => 0, unbalanced => 0}, Samples).

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
