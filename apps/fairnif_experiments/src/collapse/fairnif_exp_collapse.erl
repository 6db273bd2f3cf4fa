%% Scheduler collapse, as Fritchie provoked it: many processes with native work that holds its
%% scheduler, after which schedulers sleep while work waits.
%%
%% Forms of the work: md5 by crypto as he had it, a NIF that holds its scheduler as long, the same
%% work on fairnif, and ordinary Erlang, which is the measure: what the VM makes of work that no one
%% can call badly behaved.  Each runs in nodes of its own: as is, and with the workaround +sfwi.
-module(fairnif_exp_collapse).

-behaviour(fairnif_experiment).

-export([experiment/0, run/4, spec/1]).

-import(fairnif_exp, [ask/3, about/1, now_ms/0, range/2, text/1]).

-define(VERDICT, fairnif_exp_collapse_verdict).
%% With fewer, half of the schedulers would be one, and one cannot sleep while another works.
-define(SCHEDULERS, 4).
%% Processors on which a collapse was published.
-define(ENOUGH, 8).
%% What a run may take: this many times its prediction, and this.
-define(TIMES, 8).
-define(LIMIT_MS, 30000).
-define(LINE_MS, 1000).
-define(TRIES, 5).
%% Of busy wait, to measure how many there are in a microsecond.
-define(ROUNDS, 1000000).

%% In the order of the table: what is done, how the node is started, its further flags.
sequences(#{sfwi := Sfwi}) ->
    [{Form, Title, Variant, Flags}
     || {Form, Title} <- [{md5, "md5 by crypto"}, {blocking, "blocking NIF"},
                          {fair, "fairnif AUTO"}, {erlang, "ordinary Erlang"}],
        {Variant, Flags} <- [{"as is", []} | [{"+sfwi 500", ["+sfwi", "500"]}
                                              || lists:member(Form, Sfwi)]]].

%% n: processes, of all or for each scheduler; w: bytes of md5; r: repetitions, each with bw rounds
%% of Erlang; gap: between runs; sample: from look to look; sfwi: what runs with the workaround as
%% well.  Milliseconds.  Where less is done, R stays large: a process must be made to wait between
%% its repetitions to be treated unfairly.
scale(quick) ->
    #{n => {each, 10}, w => 65536, r => 20, bw => 5, runs => 1,
      gap => 20, ready => 20, sample => 10, sfwi => [blocking]};
scale(normal) ->
    #{n => {each, 25}, w => 131072, r => 400, bw => 5, runs => 3,
      gap => 2000, ready => 1000, sample => 250, sfwi => [md5, blocking, fair]};
scale(full) ->
    #{n => 400, w => 1048576, r => 1100, bw => 5, runs => 8,
      gap => 12000, ready => 1000, sample => 1000, sfwi => [md5, blocking, fair]}.

%% What Scott Lystig Fritchie published (github.com/slfritchie/nifwait, branch md5), for machines
%% with 16 and with 8 schedulers: seconds of a process, hashes a scheduler did in 5 s, per cent in
%% use of the schedulers online.
published() ->
    [#{what => <<"R15B01">>, shortest => 2.621872, longest => 126.171889},
     #{what => <<"R16B">>, shortest => 2.694947, longest => 139.574922},
     #{what => <<"R16B">>, online => <<"8 of 16">>, runs => <<"after 8">>,
       in_use => <<"one 100 %, seven 18 to 20 %">>, collapsed => true},
     #{what => <<"R16B, worst">>, online => <<"half">>,
       in_use => <<"one 100 %, others under 5 %">>, collapsed => true},
     #{what => <<"on 8">>, online => <<"8 of 8">>, per_5s => <<"about 2,000">>,
       collapsed => false}].

%% @doc The whole sequence for each form (quick: some seconds; normal: some minutes; full: hours),
%% with the parameters of spec/1.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => collapse, needs => [fairnif_exp:spinsleep()],
      description =>
          "schedulers that sleep while work waits, after native calls (Fritchie's nifwait)",
      steps => fun(Opts) ->                     % one per run
                       #{runs := Runs} = Spec = spec(Opts),
                       length(sequences(Spec)) * (Runs + 1)
               end,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

%% @doc The parameters of a run with these options: those of its `scale', and `n', `w' (bytes), `r',
%% `bw' where the options have them.
-spec spec(fairnif_experiment:options()) -> #{atom() => term()}.
spec(Opts) ->
    Schedulers = max(?SCHEDULERS, cores()),
    #{n := N} = Spec = maps:merge(scale(maps:get(scale, Opts, normal)),
                                  maps:with([n, w, r, bw], Opts)),
    Spec#{n := case N of {each, One} -> One * Schedulers; _ -> N end, schedulers => Schedulers}.

%% @doc One run of the form md5 in this node, as the original's: N processes hash W bytes R times,
%% with BW rounds of busy wait after each.  Prints a status line once a second.  Answers the seconds
%% that each process took, and how many per cent of the time each normal scheduler was in use.
-spec run(pos_integer(), pos_integer(), pos_integer(), non_neg_integer()) ->
          {[float()], [{Scheduler :: pos_integer(), PercentInUse :: float()}]}.
run(N, W, R, BW) ->
    case peer({measure, #{form => md5, n => N, w => W, r => R, bw => BW, ready => 1000,
                          sample => 1000, print => true}}) of
        {ok, #{seconds := Seconds, in_use := InUse}} -> {Seconds, InUse};
        {error, Reason} -> error(Reason)
    end.

%% ---- running ----

measure(Scale, Opts, Step) ->
    Spec = (spec(Opts))#{print => is_map_key(progress, Opts)},
    Start = now_ms(),
    %% All do the work that the first one measured.
    {Rows, JobUs} = lists:mapfoldl(fun(Sequence, Known) ->
                                           Row = row(Sequence, Spec#{job_us => Known}, Step),
                                           {Row, maps:get(job_us, Row, Known)}
                                   end, undefined, sequences(Spec)),
    fairnif_exp:result(
      Rows,
      #{scale => Scale, took_ms => now_ms() - Start, cores => cores(), job_us => JobUs,
        spec => maps:with([n, w, r, bw, runs, gap, schedulers], Spec),
        units => <<"w in bytes, of other work job_us; seconds per process; in_use: per cent, by "
                   "scheduler; done: jobs by scheduler; samples: queues of online schedulers, with "
                   "ms since go">>,
        published => published(), rows => Rows}).

row({Form, Work, Variant, More}, #{schedulers := S} = Spec, Step) ->
    All = integer_to_list(S),
    Flags = ["+S", All ++ ":" ++ All, "+scl", "false" | More],
    Say = fun(Format, Args) -> Step([Work, ", ", Variant, ": ", io_lib:format(Format, Args)]) end,
    Row = fairnif_exp:failing(Flags, fun(Peer) -> sequence(Peer, Spec#{form => Form}, Say) end),
    Row#{form => Form, work => list_to_binary(Work), variant => list_to_binary(Variant),
         flags => list_to_binary(lists:join($\s, Flags))}.

%% Runs with all schedulers, half of them taken offline, a last run.
sequence(Peer, #{form := Form, w := W, runs := Count, schedulers := S, gap := Gap,
                 job_us := Known} = Spec, Say) ->
    Us = ask(Peer, {?MODULE, {prepare, W}}, ?LIMIT_MS),
    JobUs = case Known of undefined -> Us; _ -> Known end,
    Run = fun(Phase, Online) ->
                  Ms = predicted(JobUs, Online, Spec),
                  Say("~b schedulers, about ~ts of ~ts",
                      [Online, about(Ms), about(whole(JobUs, Spec))]),
                  Own = case Form of md5 -> Spec; _ -> Spec#{w := JobUs} end,
                  Answer = ask(Peer, {?MODULE, {measure, Own}}, ?TIMES * Ms + ?LIMIT_MS),
                  timer:sleep(Gap),
                  judged(Phase, Answer)
          end,
    First = [Run(all, S) || _ <- lists:seq(1, Count)],
    Half = max(1, S div 2),
    S = ask(Peer, {?MODULE, {set_online, Half}}, ?LIMIT_MS),
    timer:sleep(Gap),
    #{job_us => JobUs, runs => First ++ [Run(half, Half)]}.

%% Milliseconds of a run, and of all runs with the time between them.
predicted(JobUs, Online, #{n := N, r := R}) ->
    JobUs * N * R div (1000 * min(Online, cores())).

whole(JobUs, #{runs := Count, schedulers := S, gap := Gap, ready := Ready} = Spec) ->
    length(sequences(Spec))
        * (Count * (predicted(JobUs, S, Spec) + Gap + Ready)
           + predicted(JobUs, max(1, S div 2), Spec) + 2 * Gap + Ready).

judged(_, {error, Reason}) ->
    throw({failed, io_lib:format("a process ended with ~0tP", [Reason, 8])});
judged(Phase, {ok, #{seconds := Seconds, in_use := InUse, online := Online, samples := Samples,
                     done := Done, elapsed_ms := Ms} = Measured}) ->
    {Shortest, Longest} = {lists:min(Seconds), lists:max(Seconds)},
    maps:merge(?VERDICT:verdict(InUse, Samples, Online),
               Measured#{phase => Phase, fairness => Longest / Shortest,
                         shortest => Shortest, longest => Longest,
                         in_use := [Share || {_, Share} <- InUse],
                         samples := [[T, Q] || {T, Q} <- Samples],
                         per_5s => [round(5000 * D / Ms) || D <- Done]}).

%% Those this process may use; the schedulers of this node say nothing, as bin/fairnif starts it
%% with one.
cores() ->
    case erlang:system_info(logical_processors_available) of
        N when is_integer(N) -> N;
        unknown -> 1
    end.

%% ---- in the peers ----

%% Many processes, spawned on one scheduler, do native work again and again.  While they run no
%% process may ask for scheduler_wall_time, nor for anything else that wakes every scheduler: that
%% is the workaround (+sfwi) whose absence is to be seen.  Queue lengths and counters are only read.

%% Loads what is called, and measures how many microseconds md5 of this many bytes takes: the
%% shortest of some.
peer({prepare, Bytes}) ->
    {module, _} = code:ensure_loaded(fairnif_exp:spinsleep()),
    {ok, _} = application:ensure_all_started(crypto),
    max(1, shortest(job(md5, Bytes)));
%% Sets how many schedulers are online; how many were.
peer({set_online, N}) ->
    erlang:system_flag(schedulers_online, N);
%% One run, in a process of its own: its priority is raised, and a job that fails ends it.  `w' is
%% bytes for md5, microseconds for the others; `ready': ms from spawn to go.
peer({measure, Spec}) ->
    try {ok, fairnif_check_machine:apart([], fun() -> measured(Spec) end)}
    catch exit:Reason -> {error, Reason}
    end.

shortest(Job) ->
    lists:min([begin {Us, _} = timer:tc(Job), Us end || _ <- lists:seq(1, ?TRIES)]).

measured(#{n := N, w := W, r := R, bw := BW, form := Form, ready := ReadyMs} = Spec) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    Job = job(Form, W),
    Done = counters:new(erlang:system_info(schedulers), [write_concurrency]),
    Parent = self(),
    Pids = [spawn_link(fun() -> worker(Parent, Job, R, BW, Done) end) || _ <- lists:seq(1, N)],
    timer:sleep(ReadyMs),
    process_flag(priority, high),
    Clock = fairnif_check_machine:cpu_clock(),
    Wall = wall(),
    Start = now_ms(),
    _ = [Pid ! go || Pid <- Pids],
    Watcher = spawn_opt(fun() -> look_on(Spec, Start, Start, [], []) end,
                        [link, {priority, high}]),
    Seconds = [receive {done, Pid, Took} -> Took end || Pid <- Pids],
    Elapsed = max(1, now_ms() - Start),
    InUse = [{Id, 100.0 * (A1 - A0) / max(1, T1 - T0)}
             || {{Id, A0, T0}, {Id, A1, T1}} <- lists:zip(Wall, wall())],
    Watcher ! {stop, Parent},
    Seen = receive {Watcher, Answer} -> Answer end,
    Seen#{seconds => Seconds, in_use => InUse, elapsed_ms => Elapsed,
          done => [counters:get(Done, I) || I <- lists:seq(1, erlang:system_info(schedulers))],
          others => fairnif_check_machine:others(Clock, fairnif_check_machine:cpu_clock()),
          online => erlang:system_info(schedulers_online)}.

%% The normal schedulers come first, numbered from 1.
wall() ->
    lists:sublist(lists:sort(erlang:statistics(scheduler_wall_time)),
                  erlang:system_info(schedulers)).

worker(Parent, Job, R, BW, Done) ->
    receive go -> ok end,
    Start = erlang:monotonic_time(nanosecond),
    repeat(R, Job, BW, Done),
    Parent ! {done, self(), (erlang:monotonic_time(nanosecond) - Start) / 1.0e9}.

repeat(0, _, _, _) ->
    ok;
repeat(R, Job, BW, Done) ->
    _ = Job(),
    %% That of the scheduler on which the job ended.
    counters:add(Done, erlang:system_info(scheduler_id), 1),
    busywait(BW),
    repeat(R - 1, Job, BW, Done).

busywait(0) -> ok;
busywait(N) -> busywait(N - 1).

job(md5, Bytes) ->
    Bin = rand:bytes(Bytes),
    fun() -> crypto:hash_final(crypto:hash_update(crypto:hash_init(md5), Bin)) end;
%% Work and no deadline: with more schedulers than cores a deadline passes while another thread has
%% the core, and there would be less to do.
job(blocking, Us) ->
    fun() -> fairnif_exp:spin(spinwork, Us) end;
job(fair, Us) ->
    fun() -> fairnif_exp:spin(spinwork_fair, Us) end;
job(erlang, Us) ->
    Rounds = max(1, ?ROUNDS * Us div max(1, shortest(fun() -> busywait(?ROUNDS) end))),
    fun() -> busywait(Rounds) end.

%% A look at the queues again and again, and a status line once a second.
look_on(#{sample := Every, print := Print} = Spec, Start, LineAt, Samples, Lines) ->
    %% Of the schedulers that are online: a queue that is offline is always empty, and the list
    %% ends with the dirty ones.
    Queues = lists:sublist(erlang:statistics(run_queue_lengths),
                           erlang:system_info(schedulers_online)),
    Now = now_ms(),
    More = [text(?VERDICT:line(erlang:time(), Queues)) || Now >= LineAt],
    _ = [io:put_chars([wipe(os:getenv("FAIRNIF_STDERR")), Line, $\n]) || Line <- More, Print],
    Next = case More of [] -> LineAt; _ -> LineAt + ?LINE_MS end,
    Taken = [{Now - Start, Queues} | Samples],
    receive
        {stop, Parent} ->
            Parent ! {self(), #{samples => lists:reverse(Taken),
                                lines => lists:reverse(More ++ Lines)}}
    after Every ->
            look_on(Spec, Start, Next, Taken, More ++ Lines)
    end.

%% The line of the checker's progress, which is on the same terminal.
wipe("terminal") -> "\r\e[K";
wipe(_) -> "".

%% ---- the table ----

format(#{rows := Rows, spec := #{n := N, w := W, r := R, bw := BW, gap := Gap, schedulers := S},
         cores := Cores, job_us := JobUs}) ->
    [fairnif_exp:table(
       [{"work", left, {what, text}}, {"schedulers\nonline", right, {online, text}},
        {"runs", right, {runs, text}}, {"a process:\nshortest", right, {shortest, s}},
        {"\nlongest", right, {longest, s}}, {"longest /\nshortest", right, {fairness, text}},
        {"in use, of\nthose online", right, {in_use, text}},
        {"jobs a scheduler\ndoes in 5 s", right, {per_5s, text}},
        {"collapsed", right, {collapsed, fun(Yes) -> maps:get(Yes, answers()) end}}],
       [Line || Row <- Rows, Line <- lines(Row)] ++ [published(P) || P <- published()]),
     io_lib:format(
       "~b processes, spawned on one scheduler; each does md5 of ~s, or other work~n"
       "that takes as long (~ts), ~b times, with ~b rounds of Erlang after each.~n"
       "Runs ~ts apart; +scl false.  Collapsed: a scheduler was in use for less than half~n"
       "of the time in which as many processes waited as there were schedulers; an empty~n"
       "queue alone says nothing.  Published: Scott Lystig Fritchie's nifwait, 400~n"
       "processes, 1 MiB, 1,100 times.  Compare with ordinary Erlang: the VM leaves a process~n"
       "alone on a scheduler now and then, whatever it does.~n",
       [N, fairnif_check_table:bytes(W), fairnif_exp:shown(us, JobUs), R, BW,
        fairnif_check_table:duration(Gap * 1000000)]),
     [io_lib:format(
        "~b processors, ~b schedulers: a collapse was published for 8 to 16 processors, and~n"
        "came by chance: that none happened here does not say that none happens there.~n",
        [Cores, S])
      || Cores < ?ENOUGH],
     fairnif_exp:footnotes(fun title/1, [Row || #{error := _} = Row <- Rows]),
     fairnif_exp:doubt("; ", [title(Row) || #{runs := Runs} = Row <- Rows,
                                            lists:any(fun fairnif_exp:doubted/1,
                                                      [O || #{others := O} <- Runs])]),
     [[$\n, title(Row), ": ", said(Runs), $\n] || #{runs := Runs} = Row <- Rows]].

title(#{work := Work, variant := Variant}) -> [Work, ", ", Variant].

answers() -> #{true => "yes", false => "no", unsure => "can't say"}.

%% Of a sequence its runs with all schedulers, and the one with half of them.
lines(#{error := _} = Row) ->
    [Row#{what => title(Row)}];
lines(#{runs := [#{online := Schedulers} | _] = Runs} = Row) ->
    {Half, All} = {lists:last(Runs), lists:droplast(Runs)},
    [phase(title(Row), Schedulers, integer_to_list(length(All)), All),
     phase(title(Row), Schedulers, ["after ", integer_to_list(length(All))], [Half])].

phase(Title, Schedulers, Count, [#{online := Online} | _] = Runs) ->
    Of = fun(Key) -> [maps:get(Key, Run) || Run <- Runs] end,
    Own = fun(Key) -> [V || List <- Of(Key), V <- lists:sublist(List, Online)] end,
    #{what => Title, online => io_lib:format("~b of ~b", [Online, Schedulers]), runs => Count,
      shortest => lists:min(Of(shortest)), longest => lists:max(Of(longest)),
      fairness => range(times, Of(fairness)), per_5s => range(count, Own(per_5s)),
      in_use => range(fun(P) -> [integer_to_list(round(P)), " %"] end, Own(in_use)),
      collapsed => hd([A || A <- [true, false, unsure], lists:member(A, Of(collapsed))])}.

published(#{what := What} = Row) ->
    maps:merge(Row#{what => ["published: ", What]},
               case Row of
                   #{shortest := S, longest := L} ->
                       #{fairness => fairnif_exp:shown(times, L / S)};
                   _ -> #{}
               end).

%% Written from the figures, so that it cannot say what they do not: a run that collapsed, or the
%% last one.
said(Runs) ->
    #{collapsed := Collapsed, why := Why} =
        hd([Run || #{collapsed := true} = Run <- Runs] ++ [lists:last(Runs)]),
    [maps:get(Collapsed, #{true => "collapsed; ", false => "no collapse; ",
                           unsure => "can't say; "}), Why, "."].
