%% From figures to verdicts: does the function hold its scheduler, is it charged too little, and so
%% on. Nothing here measures.
%%
%% The properties are a table: which decide by default, their limits, and where each limit comes
%% from. A verdict says what was seen in a sentence for a person, and keeps the evidence. Where the
%% figures do not suffice it is `cannot_say', never a guess.
-module(fairnif_lab_verdict).

-export([properties/0, title/1, thresholds/1, judge/2, worst/1, exit_code/2]).

-export_type([property/0, status/0, verdict/0, options/0]).

-type property() :: returns | hold | first | charge | share | delay | garbage | kill | leak.
%% `warn': fails, but does not decide (it does with `strict').
-type status() :: pass | warn | fail | cannot_say | waived.
-type verdict() :: #{property := property(), status := status(),
                     size := pos_integer() | undefined, sentence := binary(),
                     evidence := #{atom() => number() | binary() | undefined}}.
-type options() :: #{limit_ns => pos_integer(), strict => boolean(),
                     waive => #{property() => unicode:chardata()}, atom() => term()}.
%% A row: limit in its unit, whether it decides without `strict', and the source of the limit.
-type row() :: #{property := property(), title := binary(), limit := number() | undefined,
                 unit := binary(), decides := boolean(), source := binary()}.

%% Who spends this part of the time on normal schedulers in stretches over the limit holds them.
%% Rarer ones count where the calls have them, and the control has not: this part of the calls, or
%% more of them than the machine could have made.
-define(HOLDING, 0.05).
-define(EVERY, 0.9).
%% One long call of fewer than so many may be one of many, too.
-define(FEW, 10).
%% Of what a control has not seen there may have been so much all the same (Poisson, 95 %).
-define(UNSEEN, 3).
%% So much more of it than the control has; and, where it is not the rule, so much oftener.
-define(OVER_CONTROL, 4).
%% A hold that is judged alone is over the limit, or within it, beyond these factors; what is no
%% longer than that beside what it is compared with is the same.
-define(WITHIN, 1.25).
-define(OVER, 1.5).
-define(SAME, 2).
%% Shorter calls are not judged by their reductions: charging them would cost more than they do.
-define(CHARGED_NS, 100000).
%% Nor are those that keep a scheduler busy for less than this part of their time: they wait.
-define(WAITING, 0.01).
%% That part of its time on dirty schedulers makes a function a dirty one.
-define(DIRTY, 0.5).
%% CPU time within 100 ms that no idle thread uses.
-define(THREADS_NS, 20000000).

%% @doc The properties, in the order of reports.
-spec properties() -> [row()].
properties() ->
    [#{property => returns, title => <<"crashes or does not return">>,
       limit => undefined, unit => <<>>, decides => true,
       source => <<"a crash in native code ends the node">>},
     #{property => hold, title => <<"blocks the scheduler">>,
       limit => 1000000, unit => <<"ns">>, decides => true,
       source => <<"erl_nif, Long-running NIFs: a native function should return within 1 ms">>},
     #{property => first, title => <<"long first call">>,
       limit => 1000000, unit => <<"ns">>, decides => false,
       source => <<"that of blocking the scheduler; once in the life of a node: our choice">>},
     #{property => charge, title => <<"under-charged">>,
       limit => 1000, unit => <<"reductions per ms">>, decides => true,
       source => <<"enif_consume_timeslice: a timeslice, 4000 reductions, is about 1 ms; a quarter "
                   "of that. Ordinary Erlang uses 60,000 to 400,000 a ms">>},
     #{property => share, title => <<"unfair to neighbours">>,
       limit => 0.2, unit => <<"of the scheduler">>, decides => false,
       source => <<"measured: two Erlang processes leave each other 0.5, a NIF that yields every "
                   "1 ms leaves 0.03 to 0.07, one that yields every 25 us 0.35 to 0.7">>},
     #{property => delay, title => <<"delays others">>,
       limit => 10000000, unit => <<"ns">>, decides => true,
       source => <<"p99 over that beside as many busy Erlang processes; ten documented "
                   "timeslices: our choice">>},
     #{property => garbage, title => <<"its garbage blocks the scheduler">>,
       limit => 1000000, unit => <<"ns">>, decides => true,
       source => <<"that of blocking the scheduler: a destructor does not yield either">>},
     #{property => kill, title => <<"cannot be killed">>,
       limit => 10000000, unit => <<"ns">>, decides => false,
       source => <<"a quarter of the kills take longer until native code ends; ten timeslices: "
                   "our choice">>},
     #{property => leak, title => <<"leaks when killed">>,
       limit => undefined, unit => <<"bytes per kill">>, decides => true,
       source => <<"memory that grows with each kill is gone">>}].

%% @doc What a property is called in reports.
-spec title(property()) -> binary().
title(Property) ->
    maps:get(title, row(Property)).

%% @doc The table of properties with the limits in force, for reports.
-spec thresholds(options()) -> [#{atom() => term()}].
thresholds(Opts) ->
    [(maps:remove(title, Row))#{limit => limit(P, Opts), decides => decides(P, Opts)}
     || #{property := P} = Row <- properties()].

%% Whether a property decides if a function is well-behaved.
decides(Property, Opts) ->
    maps:get(strict, Opts, false) orelse maps:get(decides, row(Property)).

%% @doc The verdicts on one size: one for each property that was measured.
-spec judge(#{atom() => term()}, options()) -> [verdict()].
judge(#{size := Size} = Figures, Opts) ->
    [(waived(Property, Status, Opts))
     #{property => Property, size => Size, evidence => Evidence,
       sentence => unicode:characters_to_binary(Sentence)}
     || #{property := Property} <- properties(),
        {Status, Sentence, Evidence} <- [property(Property, Figures, Opts)]].

%% A property that was not to count is shown all the same, with the reason why it does not.
waived(_, pass, _) ->
    #{status => pass};
waived(Property, _, #{waive := Waived}) when is_map_key(Property, Waived) ->
    #{status => waived};
waived(Property, fail, Opts) ->
    #{status => case decides(Property, Opts) of true -> fail; false -> warn end};
waived(_, warn, #{strict := true}) ->
    #{status => fail};
waived(_, Status, _) ->
    #{status => Status}.

%% @doc Of the verdicts on several sizes, for each property the worst; of equals the last size's.
-spec worst([verdict()]) -> [verdict()].
worst(Verdicts) ->
    [hd(lists:sort(fun(A, B) -> rank(A) =< rank(B) end, Of))
     || #{property := P} <- properties(),
        [_ | _] = Of <- [[V || #{property := Q} = V <- lists:reverse(Verdicts), Q =:= P]]].

rank(#{status := Status}) ->
    maps:get(Status, #{fail => 1, cannot_say => 2, warn => 3, waived => 4, pass => 5}).

%% @doc 0 well-behaved, 1 not, 3 cannot say.
-spec exit_code([verdict()], options()) -> 0 | 1 | 3.
exit_code(Verdicts, Opts) ->
    Statuses = [S || #{status := S} <- Verdicts],
    Unsure = [P || #{status := cannot_say, property := P} <- Verdicts, decides(P, Opts)],
    case lists:member(fail, Statuses) of
        true -> 1;
        false when Unsure =/= [] -> 3;
        false -> 0
    end.

row(Property) ->
    hd([R || #{property := P} = R <- properties(), P =:= Property]).

limit(Property, #{limit_ns := Ns})
  when Property =:= hold; Property =:= first; Property =:= garbage -> Ns;
limit(Property, _) -> maps:get(limit, row(Property)).

%% ---- each property: {Status, Sentence, Evidence} ----

%% Another property than that which failed may have to go without its figures.
property(Property, #{unmeasured := Why}, _) when is_map_key(Property, Why) ->
    {cannot_say, maps:get(Property, Why), #{}};

property(returns, #{error := Error}, _) when is_binary(Error) ->
    {fail, Error, #{}};
property(returns, #{time := _}, _) ->
    {pass, "every call returned", #{}};
property(returns, _, _) ->
    {cannot_say, "it was not called", #{}};

property(hold, #{slices := #{hold := Hold, control := Control}}, Opts) ->
    hold(Hold, Control, limit(hold, Opts));

property(first, #{first := #{hold := _} = First,
                  slices := #{hold := #{repeated := Later}}}, Opts) ->
    first(First, Later, limit(first, Opts));

property(charge, #{charge := #{per_ms := PerMs, per_call := PerCall, ns := Ns, erlang := Erlang},
                   time := #{median := Wall}, slices := Slices}, Opts) ->
    Evidence = #{reductions_per_ms => PerMs, reductions_per_call => PerCall, call_ns => Wall,
                 scheduled_ns => Ns, erlang_per_ms => lists:min(maps:values(Erlang))},
    Limit = limit(charge, Opts),
    Told = io_lib:format("charged ~ts reductions for ~ts~s",
                         [count(PerCall), fairnif_lab_table:duration(Ns),
                          case Ns < Wall of true -> " on a scheduler"; false -> "" end]),
    Most = 4 * lists:max(maps:values(Erlang)),
    case dirty_part(Slices) > ?DIRTY of
        true ->
            {pass, [Told, "; on dirty schedulers reductions decide nothing"], Evidence};
        false when PerMs < Limit, Ns < ?WAITING * Wall ->
            {pass, [Told, ": it waits for most of its ", fairnif_lab_table:duration(Wall)],
             Evidence};
        false when PerMs < Limit, Ns < ?CHARGED_NS ->
            {pass, [Told, ": little, but the call is short. A loop of such calls is charged ",
                    fraction(PerMs, Evidence), " of what ordinary Erlang is charged"], Evidence};
        false when PerMs < Limit ->
            {fail, [Told, ", ", fraction(PerMs, Evidence), " of what ordinary Erlang is charged"],
             Evidence};
        false when PerMs > Most ->
            {pass, [Told, ": more than ordinary Erlang. It yields more often than is fair to "
                    "it"], Evidence};
        false ->
            {pass, Told, Evidence}
    end;

property(share, #{share := #{median := Share} = Mixes}, Opts) ->
    Sentence = ["leaves a busy Erlang process ", fairnif_lab_table:percent(Share),
                " of the scheduler (an Erlang process leaves 50 %)"],
    {case Share < limit(share, Opts) of true -> fail; false -> pass end, Sentence, Mixes};

property(delay, #{delay := #{beside := unanswered}}, _) ->
    {fail, "no other process was seen to run while every scheduler ran it", #{}};
property(delay, #{delay := #{idle := Idle, erlang := Erlang, beside := Beside}} = Figures, Opts) ->
    as_large(delay(Idle, Erlang, Beside, Figures, Opts), Figures, limit(delay, Opts));

property(garbage, #{garbage := #{collected := [_ | _]} = Garbage}, Opts) ->
    garbage(Garbage, limit(garbage, Opts));

property(kill, #{kill := Kill}, Opts) ->
    kill(Kill, limit(kill, Opts));

property(leak, #{leak := #{kills := Kills, total := Total, per_kill := PerKill,
                           resolution := Resolution} = Leak}, _) ->
    Evidence = maps:with([kills, total, per_kill, resolution], Leak),
    if
        Total =:= undefined ->
            {cannot_say, "could not be killed often enough: each call takes too long", Evidence};
        Total > Resolution ->
            {fail, io_lib:format("~b kills left ~ts that was never freed, ~ts a kill",
                                 [Kills, bytes(Total), bytes(PerKill)]), Evidence};
        true ->
            {pass, io_lib:format("memory did not grow over ~b kills (less than ~ts would not "
                                 "be seen)", [Kills, bytes(Resolution)]), Evidence}
    end;

property(_, #{error := Error}, _) when is_binary(Error) ->
    {cannot_say, "not measured: the call fails", #{}};
property(_, _, _) ->
    {cannot_say, "not measured", #{}}.

hold(#{calls := 0}, _, _) ->
    {cannot_say, "no call was traced to its end", #{}};
hold(#{calls := Calls, over := Over, over_part := Part, longest := Longest, repeated := Repeated,
       taken := Taken} = Hold, #{over := ControlOver, over_part := ControlPart} = Control, Limit) ->
    Evidence = #{calls => Calls, over => Over, over_part => Part, longest_ns => Longest,
                 repeated_ns => Repeated, taken_ns => Taken, control_over => ControlOver,
                 control_part => ControlPart},
    [Often, Long, Rarely] = [fairnif_lab_table:duration(D) || D <- [Repeated, Limit, Longest]],
    {Status, Format, Args} =
        case holding(Hold, Control) of
            as_a_rule ->
                {fail, "blocks its scheduler for ~ts without yielding (limit ~ts), in ~b of ~b "
                 "calls", [Often, Long, Over, Calls]};
            again_and_again ->
                {fail, "blocks its scheduler for ~ts without yielding (limit ~ts): for a small "
                 "part of its time, but in ~b of ~b calls", [Often, Long, Over, Calls]};
            noise ->
                {cannot_say, "~b of ~b calls blocked the scheduler for over ~ts, which may be this "
                 "machine's noise: so did ~b of ordinary Erlang", [Over, Calls, Long, ControlOver]};
            %% What no second call shows either way.
            too_few ->
                {cannot_say, "blocked the scheduler for ~ts, but only ~ts could be traced: each "
                 "takes too long", [Rarely, calls(Calls)]};
            close ->
                {cannot_say, "blocks its scheduler for ~ts, too close to the limit of ~ts",
                 [Often, Long]};
            seldom ->
                {pass, "blocks its scheduler for less than ~ts as a rule; ~b of ~b calls did so "
                 "for longer, ~ts at most", [Long, Over, Calls, Rarely]};
            never ->
                {pass, "blocks its scheduler for ~ts at most (~ts)", [Often, calls(Calls)]}
        end,
    {Status, io_lib:format(Format, Args), Evidence}.

%% `over' counts calls with a stretch over the limit; the parts are of the time.
holding(#{calls := Calls, over := Over, close := CloseCalls, over_part := Part,
          close_part := ClosePart, elapsed := Elapsed},
        #{over := ControlOver, over_part := ControlPart, elapsed := ControlElapsed}) ->
    Times = Elapsed / max(1, ControlElapsed),
    %% So many the machine could have made; so many at most, if the control was lucky.
    Expected = ?OVER_CONTROL * ControlOver * Times,
    AtMost = Expected + ?UNSEEN * Times,
    Own = Part > ?OVER_CONTROL * ControlPart andalso (Part > 0.5 orelse Over > 2 + Expected),
    if
        Part > ?HOLDING, Own, Over >= 2 orelse Calls =:= 1 -> as_a_rule;
        Part > ?HOLDING, Over >= 2 -> noise;
        Over > 2 + AtMost -> again_and_again;
        Over > 2 + Expected, Over >= ?EVERY * Calls -> again_and_again;
        Over > 0, Calls =< 2 orelse Part > ?HOLDING andalso Calls < ?FEW -> too_few;
        Over > 2, Over >= ?EVERY * Calls -> noise;
        ClosePart > ?HOLDING, Over =:= 0 -> close;
        CloseCalls > 2, CloseCalls >= ?EVERY * Calls -> close;
        Over > 0 -> seldom;
        true -> never
    end.

%% `hold' is the shortest of those that the nodes have shown.
first(#{hold := Hold, elapsed := Elapsed, nodes := Nodes}, Later, Limit) ->
    Evidence = #{hold_ns => Hold, elapsed_ns => Elapsed, nodes => Nodes, later_ns => Later},
    [Held, AsLater, Long] = [fairnif_lab_table:duration(D) || D <- [Hold, Later, Limit]],
    if
        Hold > ?OVER * Limit, Hold =< ?SAME * Later ->
            {pass, ["the first call blocks its scheduler for ", Held, ", as later ones do"],
             Evidence};
        Hold > ?OVER * Limit, Nodes > 1 ->
            {fail, io_lib:format("the first call in a node blocks its scheduler for ~ts (limit "
                                 "~ts), in each of ~b nodes; later ones for ~ts",
                                 [Held, Long, Nodes, AsLater]), Evidence};
        Hold > ?OVER * Limit ->
            {cannot_say, ["the first call blocked its scheduler for ", Held,
                          ", but this was seen in one node only"], Evidence};
        Hold > ?WITHIN * Limit ->
            {cannot_say, ["the first call blocks its scheduler for ", Held,
                          ", too close to the limit of ", Long], Evidence};
        true ->
            {pass, ["the first call blocks its scheduler for ", Held], Evidence}
    end.

garbage(#{collected := Collected, killed := Killed, control := Control, bytes := Bytes}, Limit) ->
    AtCollection = fairnif_lab_stats:median(Collected),
    AtKill = fairnif_lab_stats:median(Killed),
    Erlang = case Control of [] -> undefined; _ -> fairnif_lab_stats:median(Control) end,
    Rounds = length(Collected),
    Evidence = #{collected_ns => AtCollection, killed_ns => AtKill, erlang_ns => Erlang,
                 rounds => Rounds, bytes => Bytes},
    Longest = max(AtCollection, AtKill),
    [Held, Long] = [fairnif_lab_table:duration(D) || D <- [Longest, Limit]],
    When = case AtCollection >= AtKill of
               true -> "collected";
               false -> "freed as its owner dies"
           end,
    if
        Longest > ?WITHIN * Limit, is_number(Erlang), Longest =< ?SAME * Erlang ->
            {pass, io_lib:format("what a call leaves blocks a scheduler for ~ts when it is ~s; "
                                 "so does a term of ~ts made in Erlang (~ts)",
                                 [Held, When, bytes(Bytes), fairnif_lab_table:duration(Erlang)]),
             Evidence};
        Longest > ?OVER * Limit ->
            {fail, io_lib:format("what a call leaves blocks a scheduler for ~ts when it is ~s "
                                 "(limit ~ts; median of ~b)", [Held, When, Long, Rounds]),
             Evidence};
        Longest > ?WITHIN * Limit ->
            {cannot_say, ["what a call leaves blocks a scheduler for ", Held, " when it is ", When,
                          ", too close to the limit of ", Long], Evidence};
        true ->
            {pass, ["what a call leaves blocks a scheduler for ", Held,
                    " at most when it is freed"], Evidence}
    end.

delay(#{p99 := Idle, windows := Is}, #{p99 := Erlang, windows := Es},
      #{p99 := Beside, windows := Ws, count := Count}, Figures, Opts) ->
    Limit = limit(delay, Opts),
    Evidence = #{samples => Count, idle_p99_ns => Idle, erlang_p99_ns => Erlang,
                 beside_p99_ns => Beside, beside_least_window_ns => lists:min(Ws)},
    Allowed = Limit + fairnif_lab_stats:median(Es),
    Sentence = io_lib:format("a process that is due every ms runs ~ts late (p99 of ~ts times); "
                             "beside as many busy Erlang processes ~ts, idle ~ts",
                             [fairnif_lab_table:duration(Beside), count(Count)
                              | [fairnif_lab_table:duration(D) || D <- [Erlang, Idle]]]),
    %% Every window shows it, and no window of the others does.
    Always = lists:min(Ws) > Allowed andalso lists:min(Ws) > lists:max(Es ++ Is),
    Mostly = fairnif_lab_stats:median(Ws) > Allowed,
    Dirty = dirty_part(maps:get(slices, Figures, #{})) > ?DIRTY,
    if
        Mostly, Dirty ->
            {warn, [Sentence, ". It runs on dirty schedulers, which compete for the cores: more "
                    "cores, or fewer dirty schedulers, would help"], Evidence};
        Always -> {fail, Sentence, Evidence};
        Mostly -> {cannot_say, [Sentence, "; not in every window"], Evidence};
        true -> {pass, Sentence, Evidence}
    end.

%% Is it the function, or what any term takes to be built and collected that is as large as its
%% result? How long that takes depends on how it is built, too: up to twice as long nobody can say.
as_large({Status, Sentence, Evidence},
         #{delay := #{sized := #{p99 := Sized, windows := Ss}, bytes := Bytes,
                      beside := #{windows := Ws}}}, Limit) when Status =/= pass ->
    Late = fairnif_lab_stats:median(Ws),
    AsLarge = fairnif_lab_stats:median(Ss),
    Told = io_lib:format("; but ~ts beside Erlang that builds terms of ~ts, as much as a call "
                         "leaves",
                         [fairnif_lab_table:duration(Sized), bytes(Bytes)]),
    More = Evidence#{sized_p99_ns => Sized, bytes => Bytes},
    if
        Late =< Limit + AsLarge ->
            {pass, [Sentence, Told, ": others feel that such terms are collected"], More};
        Late =< Limit + ?SAME * AsLarge ->
            {cannot_say, [Sentence, Told, ", and others may feel that such terms are collected"],
             More};
        true ->
            {Status, Sentence, More}
    end;
as_large(Verdict, _, _) ->
    Verdict.

kill(#{count := Count, unstopped := Unstopped, stop_samples := Stops, control_samples := Control,
       down := #{median := Down}, threads_cpu := Threads} = Kill, Limit) ->
    %% Kills fall anywhere, some of them where nothing is to be stopped.
    Stop = case Stops of [] -> undefined; _ -> fairnif_lab_stats:percentile(75, Stops) end,
    %% What the machine has done to one kill it may do to a quarter of them.
    Erlang = lists:max(Control),
    Evidence = #{kills => Count, unstopped => Unstopped, stop_p75_ns => Stop, erlang_ns => Erlang,
                 down_median_ns => Down, threads_cpu_ns => Threads},
    if
        Unstopped > 0 ->
            {fail, "runs on after its caller was killed, and was not seen to stop", Evidence};
        Threads > ?THREADS_NS ->
            {fail, io_lib:format("threads that it started run on after the kill (~ts of CPU time "
                                 "in 100 ms)", [fairnif_lab_table:duration(Threads)]), Evidence};
        Stop > ?OVER * Limit + ?SAME * Erlang ->
            {fail, io_lib:format("its code runs on for ~ts after the caller was killed (DOWN came "
                                 "after ~ts)", [fairnif_lab_table:duration(Stop),
                                          fairnif_lab_table:duration(Down)]), Evidence};
        Stop > ?OVER * Limit ->
            {cannot_say, io_lib:format("its code runs on for ~ts after the caller was killed, "
                                       "which may be this machine's noise: ~ts ran on for ~ts",
                                       [fairnif_lab_table:duration(Stop), killed_before(Kill),
                                        fairnif_lab_table:duration(Erlang)]),
             Evidence};
        Stop > Limit ->
            {cannot_say, ["its code runs on for ", fairnif_lab_table:duration(Stop),
                          " after the caller was killed, too close to the limit of ",
                          fairnif_lab_table:duration(Limit)], Evidence};
        true ->
            {pass, ["stops within ", fairnif_lab_table:duration(Stop), " of the kill"], Evidence}
    end.

killed_before(#{control_bytes := Bytes}) ->
    ["ordinary Erlang that builds terms of ", bytes(Bytes), ", as large as a call's heap,"];
killed_before(_) ->
    "ordinary Erlang".

%% Of the time that was traced.
dirty_part(#{normal := #{total := Normal}, dirty := #{total := Dirty}}) when Normal + Dirty > 0 ->
    Dirty / (Normal + Dirty);
dirty_part(_) ->
    0.0.

fraction(_, #{erlang_per_ms := Erlang, reductions_per_ms := PerMs}) when PerMs > 0 ->
    ["1/", integer_to_list(round(Erlang / PerMs))];
fraction(_, _) ->
    "nothing".

calls(1) -> "1 call";
calls(N) -> [integer_to_list(N), " calls"].

count(N) -> fairnif_lab_table:count(round(N)).

bytes(N) -> fairnif_lab_table:bytes(round(N)).
