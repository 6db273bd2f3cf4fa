%% From figures to verdicts: does the function block its scheduler, is it charged too little, and so
%% on. Nothing here measures.
%%
%% The properties are a table: which decide by default, their limits, and where each limit comes
%% from. A verdict says what was seen in a sentence for a person, and keeps the evidence. Where the
%% figures do not suffice it is `unsure', never a guess.
-module(fairnif_check_verdict).

-export([properties/0, title/1, thresholds/1, judge/2, worst/2, exit_code/2]).

-export_type([property/0, status/0, verdict/0, options/0]).

-type property() :: crash | block | first_call | undercharge | unfair | latency | destructor
                    | unkillable | leak.
%% `warn': fails, but does not decide (it does with `strict').
-type status() :: pass | warn | fail | unsure | waived.
-type verdict() :: #{property := property(), status := status(),
                     size := pos_integer() | undefined, sentence := binary(),
                     evidence := #{atom() => number() | binary() | undefined}}.
-type options() :: #{limit_ns => pos_integer(), strict => boolean(),
                     waive => #{property() => unicode:chardata()}, atom() => term()}.
%% A row: limit in its unit, whether it decides without `strict', and the source of the limit.
-type row() :: #{property := property(), title := binary(), limit := number() | undefined,
                 unit := binary(), decides := boolean(), source := binary()}.

%% A function blocks schedulers if this part of its time on normal ones is in stretches over the
%% limit. Rarer stretches count if this part of the calls has one, or more calls than
%% the machine alone explains, and the control has not.
-define(HOLDING, 0.05).
-define(EVERY, 0.9).
%% A block of that many times the limit, and as much longer than any of the control's, in every call
%% that was seen is the function's however few they were.
-define(FAR, 10).
%% One long call of fewer than these may be one of many, too.
-define(FEW, 10).
%% How many blocks the machine may cause though the control has seen none (Poisson, 95 %).
-define(UNSEEN, 3).
%% Times the control's part of the time and, for parts up to a half, times its blocks.
-define(OVER_CONTROL, 4).
%% A block that is judged alone is over the limit, or within it, beyond these factors; what is no
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
    [#{property => crash, title => <<"crashes or does not return">>,
       limit => undefined, unit => <<>>, decides => true,
       source => <<"a crash in native code ends the node">>},
     #{property => block, title => <<"blocks the scheduler">>,
       limit => 1000000, unit => <<"ns">>, decides => true,
       source => <<"erl_nif, Long-running NIFs: a native function should return within 1 ms">>},
     #{property => first_call, title => <<"long first call">>,
       limit => 1000000, unit => <<"ns">>, decides => false,
       source => <<"as for blocking the scheduler; once in the life of a node: our choice">>},
     #{property => undercharge, title => <<"under-charged">>,
       limit => 1000, unit => <<"reductions per ms">>, decides => true,
       source => <<"a quarter of what enif_consume_timeslice says: 4000 reductions are about 1 ms. "
                   "Ordinary Erlang uses 60,000 to 400,000 a ms">>},
     #{property => unfair, title => <<"unfair to neighbours">>,
       limit => 0.2, unit => <<"of the scheduler">>, decides => false,
       source => <<"measured: two Erlang processes leave each other 0.5, a NIF that yields every "
                   "1 ms leaves 0.02 to 0.07, one that yields every 25 us 0.28 to 0.73">>},
     #{property => latency, title => <<"delays others">>,
       limit => 10000000, unit => <<"ns">>, decides => true,
       source => <<"p99 minus that beside as many busy Erlang processes; ten documented "
                   "timeslices: our choice">>},
     #{property => destructor, title => <<"its garbage blocks the scheduler">>,
       limit => 1000000, unit => <<"ns">>, decides => true,
       source => <<"as for blocking the scheduler: a destructor does not yield either">>},
     #{property => unkillable, title => <<"cannot be killed">>,
       limit => 10000000, unit => <<"ns">>, decides => false,
       source => <<"a quarter of the kills take longer until native code ends; ten timeslices: "
                   "our choice">>},
     #{property => leak, title => <<"leaks memory">>,
       limit => undefined, unit => <<"bytes per kill">>, decides => true,
       source => <<"memory that grows with each kill, or with each call, is never freed">>}].

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

%% @doc Of the verdicts on several sizes, for each property the worst; of equals the largest size's.
%% A doubt about one size hides no finding at another; but where it decides the exit code it is what
%% is shown, and the finding beside it.
-spec worst([verdict()], options()) -> [verdict()].
worst(Verdicts, Opts) ->
    [worst_of(lists:sort(fun(A, B) -> rank(A) =< rank(B) end, Of), decides(P, Opts))
     || #{property := P} <- properties(),
        [_ | _] = Of <- [[V || #{property := Q} = V <- Verdicts, Q =:= P]]].

worst_of([#{status := warn, size := Size, sentence := Certain} = Worst | Others], true) ->
    case [V || #{status := unsure} = V <- Others] of
        [#{sentence := Doubt} = Unsure | _] ->
            Sentence = [Doubt, "; with ", bytes(Size), ": ", Certain],
            Unsure#{sentence := unicode:characters_to_binary(Sentence)};
        [] ->
            Worst
    end;
worst_of([Worst | _], _) ->
    Worst.

%% Numbers are less than `undefined'.
rank(#{status := Status, size := Size}) ->
    {maps:get(Status, #{fail => 1, warn => 2, unsure => 3, waived => 4, pass => 5}),
     case Size of undefined -> undefined; _ -> -Size end}.

%% @doc 0 well-behaved, 1 not, 3 cannot say.
-spec exit_code([verdict()], options()) -> 0 | 1 | 3.
exit_code(Verdicts, Opts) ->
    Statuses = [S || #{status := S} <- Verdicts],
    Unsure = [P || #{status := unsure, property := P} <- Verdicts, decides(P, Opts)],
    case lists:member(fail, Statuses) of
        true -> 1;
        false when Unsure =/= [] -> 3;
        false -> 0
    end.

row(Property) ->
    hd([R || #{property := P} = R <- properties(), P =:= Property]).

limit(Property, #{limit_ns := Ns})
  when Property =:= block; Property =:= first_call; Property =:= destructor -> Ns;
limit(Property, _) -> maps:get(limit, row(Property)).

%% ---- each property: {Status, Sentence, Evidence} ----

%% Another property than that which failed may have to go without its figures.
property(Property, #{unmeasured := Why}, _) when is_map_key(Property, Why) ->
    {unsure, maps:get(Property, Why), #{}};

property(crash, #{error := Error}, _) when is_binary(Error) ->
    {fail, Error, #{}};
%% It has done nothing wrong that was seen, nor has it returned.
property(crash, #{late := Late}, _) ->
    {unsure, Late, #{}};
property(crash, #{time := _}, _) ->
    {pass, "every call returned", #{}};
property(crash, _, _) ->
    {unsure, "it was not called", #{}};

property(block, #{slices := #{block := Block, control := Control}} = Figures, Opts) ->
    First = maps:get(block, maps:get(first, Figures, #{}), undefined),
    block(Block#{first => First}, Control, limit(block, Opts));

property(first_call, #{first := #{block := _} = First,
                  slices := #{block := #{repeated := Later}}}, Opts) ->
    first(First, Later, limit(first_call, Opts));

property(undercharge, #{charge := #{per_ms := PerMs, per_call := PerCall, ns := Ns,
                                    erlang := Erlang},
                   time := #{median := Wall}, slices := Slices}, Opts) ->
    Evidence = #{reductions_per_ms => PerMs, reductions_per_call => PerCall, call_ns => Wall,
                 scheduled_ns => Ns, erlang_per_ms => lists:min(maps:values(Erlang))},
    Limit = limit(undercharge, Opts),
    Charged = io_lib:format("charged ~ts reductions for ~ts~s",
                            [count(PerCall), fairnif_check_table:duration(Ns),
                          case Ns < Wall of true -> " on a scheduler"; false -> "" end]),
    Most = 4 * lists:max(maps:values(Erlang)),
    case dirty_part(Slices) > ?DIRTY of
        true ->
            {pass, [Charged, "; on dirty schedulers reductions do not matter"], Evidence};
        false when PerMs < Limit, Ns < ?WAITING * Wall ->
            {pass, [Charged, ": it waits for most of its ", fairnif_check_table:duration(Wall)],
             Evidence};
        false when PerMs < Limit, Ns < ?CHARGED_NS ->
            {pass, [Charged, ": little, but the call is short. A loop of such calls is charged ",
                    fraction(PerMs, Evidence), " of what ordinary Erlang is charged"], Evidence};
        false when PerMs < Limit ->
            {fail, [Charged, ", ", fraction(PerMs, Evidence),
                    " of what ordinary Erlang is charged"], Evidence};
        false when PerMs > Most ->
            {pass, [Charged, ": more than ordinary Erlang. It yields more often than it "
                    "needs to"], Evidence};
        false ->
            {pass, Charged, Evidence}
    end;

property(unfair, #{share := #{median := Share} = Mixes}, Opts) ->
    Sentence = ["leaves a busy Erlang process ", fairnif_check_table:percent(Share),
                " of the scheduler (an Erlang process leaves 50 %)"],
    {case Share < limit(unfair, Opts) of true -> fail; false -> pass end, Sentence, Mixes};

property(latency, #{delay := #{beside := unanswered}}, _) ->
    {fail, "no other process ran while every scheduler ran it", #{}};
property(latency, #{delay := #{idle := Idle, erlang := Erlang, beside := Beside}} = Figures,
         Opts) ->
    as_large(delay(Idle, Erlang, Beside, Figures, Opts), Figures, limit(latency, Opts));

property(destructor, #{garbage := #{collected := [_ | _]} = Garbage}, Opts) ->
    garbage(Garbage, limit(destructor, Opts));

property(unkillable, #{kill := Kill}, Opts) ->
    kill(Kill, limit(unkillable, Opts));

property(leak, #{leak := #{kills := Kills, total := Total,
                           resolution := Resolution} = Leak}, _) ->
    Evidence = maps:with([kills, total, per_kill, resolution], Leak),
    if
        Total =:= undefined ->
            {unsure, "could not be killed often enough: its calls take too long", Evidence};
        Total > Resolution ->
            {PerCall, Sentence} = lost(Leak),
            {fail, Sentence, Evidence#{per_call => PerCall}};
        true ->
            {pass, io_lib:format("memory did not grow over ~b kills (less than ~ts could not "
                                 "be seen)", [Kills, bytes(Resolution)]), Evidence}
    end;

property(_, #{error := Error}, _) when is_binary(Error) ->
    {unsure, "not measured: the call fails", #{}};
property(_, _, _) ->
    {unsure, "not measured", #{}}.

block(#{calls := 0}, _, _) ->
    {unsure, "no call was traced to its end", #{}};
block(#{calls := Calls, over := Over, over_part := Part, longest := Longest, repeated := Repeated,
        taken := Taken} = Block, #{over := ControlOver, over_part := ControlPart} = Control,
      Limit) ->
    Evidence = #{calls => Calls, over => Over, over_part => Part, longest_ns => Longest,
                 repeated_ns => Repeated, taken_ns => Taken, control_over => ControlOver,
                 control_part => ControlPart},
    [Often, Long, Rarely] = [fairnif_check_table:duration(D) || D <- [Repeated, Limit, Longest]],
    {Status, Format, Args} =
        case blocking(Block, Control, Limit) of
            as_a_rule ->
                {fail, "blocks its scheduler for ~ts without yielding (limit ~ts), in ~b of ~b "
                 "calls", [Often, Long, Over, Calls]};
            again_and_again ->
                {fail, "blocks its scheduler for ~ts without yielding (limit ~ts): little of its "
                 "total time, but in ~b of ~b calls", [Often, Long, Over, Calls]};
            noise ->
                {unsure, "~b of ~b calls blocked the scheduler for over ~ts, but so did ~b calls "
                 "of ordinary Erlang: it may be this machine's noise",
                 [Over, Calls, Long, ControlOver]};
            %% What no second call shows either way.
            too_few ->
                {unsure, "blocked the scheduler for ~ts, but only ~ts could be traced: each "
                 "takes too long", [Rarely, calls(Calls)]};
            close ->
                {unsure, "blocks its scheduler for ~ts, too close to the limit of ~ts",
                 [Often, Long]};
            seldom ->
                {pass, "usually blocks its scheduler for less than ~ts; ~b of ~b calls "
                 "blocked longer, up to ~ts", [Long, Over, Calls, Rarely]};
            never ->
                {pass, "blocks its scheduler for up to ~ts (~ts)", [Often, calls(Calls)]}
        end,
    {Status, io_lib:format(Format, Args), Evidence}.

%% `over' counts calls with a stretch over the limit; the parts are of the time.
blocking(#{calls := Calls, over := Over, close := CloseCalls, over_part := Part,
           close_part := ClosePart, elapsed := Elapsed} = Block,
         #{over := ControlOver, over_part := ControlPart, elapsed := ControlElapsed} = Control,
         Limit) ->
    Times = Elapsed / max(1, ControlElapsed),
    %% How many the machine could have made, and at most, if the control was lucky.
    Expected = ?OVER_CONTROL * ControlOver * Times,
    AtMost = Expected + ?UNSEEN * Times,
    Own = Part > ?OVER_CONTROL * ControlPart andalso (Part > 0.5 orelse Over > 2 + Expected),
    Shortest = shortest(Block),
    #{longest := LongestControl} = Control,
    if
        Part > ?HOLDING, Own, Over >= 2 orelse Calls =:= 1 -> as_a_rule;
        Shortest > ?FAR * Limit, Shortest > ?OVER_CONTROL * LongestControl -> as_a_rule;
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

%% Of the longest blocks of all calls that were seen, the first in the node among them (an atom,
%% more than any number, where that was not).
shortest(#{least := Least, first := First}) -> min(Least, First).

%% `block' is the shortest of those that the nodes have shown.
first(#{block := Block, elapsed := Elapsed, nodes := Nodes}, Later, Limit) ->
    Evidence = #{blocked_ns => Block, elapsed_ns => Elapsed, nodes => Nodes, later_ns => Later},
    [Blocked, AsLater, Long] = [fairnif_check_table:duration(D) || D <- [Block, Later, Limit]],
    if
        Block > ?OVER * Limit, Block =< ?SAME * Later ->
            {pass, ["the first call blocks its scheduler for ", Blocked, ", as later ones do"],
             Evidence};
        Block > ?OVER * Limit, Nodes > 1 ->
            {fail, io_lib:format("the first call in a node blocks its scheduler for ~ts (limit "
                                 "~ts), in each of ~b nodes; later ones for ~ts",
                                 [Blocked, Long, Nodes, AsLater]), Evidence};
        Block > ?OVER * Limit ->
            {unsure, ["the first call blocked its scheduler for ", Blocked,
                          ", but only one node was measured"], Evidence};
        Block > ?WITHIN * Limit ->
            {unsure, ["the first call blocks its scheduler for ", Blocked,
                          ", too close to the limit of ", Long], Evidence};
        true ->
            {pass, ["the first call blocks its scheduler for ", Blocked], Evidence}
    end.

garbage(#{collected := Collected, killed := Killed, control := Control, bytes := Bytes}, Limit) ->
    AtCollection = fairnif_check_stats:median(Collected),
    AtKill = fairnif_check_stats:median(Killed),
    Erlang = case Control of [] -> undefined; _ -> fairnif_check_stats:median(Control) end,
    Rounds = length(Collected),
    Evidence = #{collected_ns => AtCollection, killed_ns => AtKill, erlang_ns => Erlang,
                 rounds => Rounds, bytes => Bytes},
    Longest = max(AtCollection, AtKill),
    [Blocked, Long] = [fairnif_check_table:duration(D) || D <- [Longest, Limit]],
    When = case AtCollection >= AtKill of
               true -> "collected";
               false -> "freed as its owner dies"
           end,
    if
        Longest > ?WITHIN * Limit, is_number(Erlang), Longest =< ?SAME * Erlang ->
            {pass, io_lib:format("garbage of a call blocks a scheduler for ~ts when it is ~s; "
                                 "so does a term of ~ts made in Erlang (~ts)",
                                 [Blocked, When, bytes(Bytes),
                                  fairnif_check_table:duration(Erlang)]),
             Evidence};
        Longest > ?OVER * Limit ->
            {fail, io_lib:format("garbage of a call blocks a scheduler for ~ts when it is ~s "
                                 "(limit ~ts; median of ~b)", [Blocked, When, Long, Rounds]),
             Evidence};
        Longest > ?WITHIN * Limit ->
            {unsure, ["garbage of a call blocks a scheduler for ", Blocked, " when it is ", When,
                          ", too close to the limit of ", Long], Evidence};
        true ->
            {pass, ["garbage of a call blocks a scheduler for up to ", Blocked,
                    " when it is freed"], Evidence}
    end.

delay(#{p99 := Idle, windows := Is}, #{p99 := Erlang, windows := Es},
      #{p99 := Beside, windows := Ws, count := Count}, Figures, Opts) ->
    Limit = limit(latency, Opts),
    Evidence = #{samples => Count, idle_p99_ns => Idle, erlang_p99_ns => Erlang,
                 beside_p99_ns => Beside, beside_least_window_ns => lists:min(Ws)},
    Allowed = Limit + fairnif_check_stats:median(Es),
    Sentence = io_lib:format("a process that is due every ms runs ~ts late (p99 of ~ts times); "
                             "beside as many busy Erlang processes ~ts, idle ~ts",
                             [fairnif_check_table:duration(Beside), count(Count)
                              | [fairnif_check_table:duration(D) || D <- [Erlang, Idle]]]),
    %% Every window shows it, and no window of the others does.
    Always = lists:min(Ws) > Allowed andalso lists:min(Ws) > lists:max(Es ++ Is),
    Mostly = fairnif_check_stats:median(Ws) > Allowed,
    Dirty = dirty_part(maps:get(slices, Figures, #{})) > ?DIRTY,
    if
        Mostly, Dirty ->
            {warn, [Sentence, ". It runs on dirty schedulers, which compete for the cores: more "
                    "cores, or fewer dirty schedulers, would help"], Evidence};
        Always -> {fail, Sentence, Evidence};
        Mostly -> {unsure, [Sentence, "; not in every window"], Evidence};
        true -> {pass, Sentence, Evidence}
    end.

%% Is it the function, or what any term takes to be built and collected that is as large as its
%% result? How long that takes depends on how it is built, too: up to twice as long is `unsure'.
as_large({Status, Sentence, Evidence},
         #{delay := #{sized := #{p99 := Sized, windows := Ss}, bytes := Bytes,
                      beside := #{windows := Ws}}}, Limit) when Status =/= pass ->
    Late = fairnif_check_stats:median(Ws),
    AsLarge = fairnif_check_stats:median(Ss),
    Beside = io_lib:format("; but ~ts beside Erlang that builds terms of ~ts, as much as a call "
                           "leaves",
                         [fairnif_check_table:duration(Sized), bytes(Bytes)]),
    More = Evidence#{sized_p99_ns => Sized, bytes => Bytes},
    if
        Late =< Limit + AsLarge ->
            {pass, [Sentence, Beside, ": collecting such terms delays others"], More};
        Late =< Limit + ?SAME * AsLarge ->
            {unsure, [Sentence, Beside, ", and collecting such terms may delay others"],
             More};
        true ->
            {Status, Sentence, More}
    end;
as_large(Verdict, _, _) ->
    Verdict.

kill(#{count := Count, unstopped := Unstopped, stop_samples := Stops, control_samples := Control,
       down := #{median := Down}, threads_cpu := Threads} = Kill, Limit) ->
    %% Kills fall anywhere, some of them where nothing is to be stopped.
    Stop = case Stops of [] -> undefined; _ -> fairnif_check_stats:percentile(75, Stops) end,
    %% What the machine has done to one kill it may do to a quarter of them.
    Erlang = lists:max(Control),
    Evidence = #{kills => Count, unstopped => Unstopped, stop_p75_ns => Stop, erlang_ns => Erlang,
                 down_median_ns => Down, threads_cpu_ns => Threads},
    if
        Unstopped > 0 ->
            {fail, "continues after its caller was killed, and was not seen to stop", Evidence};
        Threads > ?THREADS_NS ->
            {fail, io_lib:format("threads that it started continue after the kill (~ts of CPU time "
                                 "in 100 ms)", [fairnif_check_table:duration(Threads)]), Evidence};
        Stop > ?OVER * Limit + ?SAME * Erlang ->
            {fail, io_lib:format("its code runs for another ~ts after the caller was killed (DOWN "
                                 "came after ~ts)", [fairnif_check_table:duration(Stop),
                                          fairnif_check_table:duration(Down)]), Evidence};
        Stop > ?OVER * Limit ->
            {unsure, io_lib:format("its code runs for another ~ts after the caller was killed, "
                                       "but ~ts did so for ~ts: it may be this machine's "
                                       "noise",
                                       [fairnif_check_table:duration(Stop), killed_before(Kill),
                                        fairnif_check_table:duration(Erlang)]),
             Evidence};
        Stop > Limit ->
            {unsure, ["its code runs for another ", fairnif_check_table:duration(Stop),
                          " after the caller was killed, too close to the limit of ",
                          fairnif_check_table:duration(Limit)], Evidence};
        true ->
            {pass, ["stops within ", fairnif_check_table:duration(Stop), " of the kill"], Evidence}
    end.

killed_before(#{control_bytes := Bytes}) ->
    ["ordinary Erlang that builds terms of ", bytes(Bytes), ", as large as a call's heap,"];
killed_before(_) ->
    "ordinary Erlang".

%% Bytes that a call loses that is not killed (0: none were seen), and in words. Before a kill some
%% calls have returned, and the last one has begun.
lost(#{total := Total, per_kill := PerKill, memory := Memory} = Leak) ->
    Killed = io_lib:format("~b kills left ~ts that were never freed, ~ts a kill",
                           [round(Total / PerKill), bytes(Total), bytes(PerKill)]),
    #{kills := Counted, calls := Returned} = lists:last(Memory),
    Calls = 1 + Returned / Counted,
    case Leak of
        #{alone := #{per_call := Lost, total := All, resolution := Least}}
          when is_float(All), All > Least ->
            EveryCall = io_lib:format("loses ~ts in every call: ~b that were not killed left ~ts",
                                      [bytes(Lost), round(All / Lost), bytes(All)]),
            case PerKill =< ?OVER * Lost * Calls of
                true -> {Lost, [EveryCall, " that were never freed"]};
                false -> {Lost, [EveryCall, "; and more when killed: ", Killed]}
            end;
        %% Twice what could be seen, if they lost what those lose that are killed.
        #{alone := #{calls := Alone, total := All, resolution := Least}}
          when is_float(All), Alone * PerKill / Calls > ?SAME * Least ->
            {0, io_lib:format("~ts; ~b calls that were not killed left nothing", [Killed, Alone])};
        _ ->
            {undefined, [Killed, "; it is not known whether calls that are not killed lose it too"]}
    end.

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

count(N) -> fairnif_check_table:count(round(N)).

bytes(N) -> fairnif_check_table:bytes(round(N)).
