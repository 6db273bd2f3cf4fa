%% The figures as a table and as JSON.
-module(fairnif_bench_report).

-export([table/1, auto_rule/1, json/2]).

-spec table([map()]) -> unicode:chardata().
table(Results) ->
    [fairnif_lab_table:render(
       [{"what", left}, {"beside", left}, {"median", right}, {"quartiles", right},
        {"by the\nother clock", right}, {"bound", right}, {"n", right}, {"", left}],
       [row(R) || R <- Results]),
     "Samples are taken in turns. A figure of two is the median of each round's; p99 is that of\n"
     "all slices or kills, its quartiles are those of the rounds. What runs in one thread is\n"
     "measured by its CPU time (wall time beside it), everything else by wall time. `within\n"
     "noise': the median misses the bound, the 95 % interval of the median does not. `machine\n"
     "busy': it is missed in wall time while other programs used over 5 % of the processors.\n"].

row(#{row := #{what := What, peer := Peer}, verdict := failed}) ->
    [What, Peer, "", "", "", "", "", "FAILED"];
row(#{row := #{what := What, peer := Peer, unit := Unit}, estimate := E, bound := Bound,
      other_clock := Other, verdict := Verdict} = Result) ->
    #{value := Value, low := Low, high := High, count := N} = E,
    [What, Peer, number(Unit, Value),
     [number(Unit, Low), " .. ", number(Unit, High)],
     case Other of
         undefined -> "";
         #{value := ByOther} -> [number(Unit, ByOther), clock(Result)]
     end,
     bound(Unit, Bound), fairnif_lab_table:count(N), verdict(Verdict)].

clock(#{row := #{clock := cpu}}) -> " wall";
clock(_) -> " CPU ".

bound(_, none) -> "-";
bound(Unit, {at_most, X}) -> ["<= ", number(Unit, X)];
bound(Unit, {at_least, X}) -> [">= ", number(Unit, X)];
bound(Unit, {within, X}) -> [number(Unit, 1 - X), " .. ", number(Unit, 1 + X)].

number(times, X) -> [float_to_list(float(X), [{decimals, decimals(X)}]), " x"];
number(ns, X) -> fairnif_lab_table:duration(X);
number(percent, X) -> fairnif_lab_table:percent(X);
number(bytes, X) -> fairnif_lab_table:bytes(round(X)).

decimals(X) when X < 2 -> 3;
decimals(X) when X < 20 -> 2;
decimals(_) -> 0.

verdict(met) -> "met";
verdict(not_met) -> "NOT MET";
verdict(within_noise) -> "within noise";
verdict(machine_busy) -> "machine busy";
verdict(reported) -> "".

%% @doc The table of AUTO's rule.
-spec auto_rule(fairnif_bench_series:samples()) -> unicode:chardata().
auto_rule(Samples) ->
    Median = fun(KB, Series, Format) ->
                     Name = iolist_to_binary([KB, $\s, Series]),
                     case Samples of
                         #{Name := S} -> Format(fairnif_lab_stats:median(S));
                         _ -> "-"
                     end
             end,
    Ms = fun fairnif_lab_table:duration/1,
    Part = fun fairnif_lab_table:percent/1,
    [fairnif_lab_table:render(
       [{"native tasks,\nErlang processes", left},
        {"sleeper p99\nfair, normal", right}, {"\ndirty, 1 ms", right},
        {"Erlang work left\nfair, normal", right}, {"\ndirty, 1 ms", right},
        {"native work\nfair, normal", right}, {"\ndirty, 1 ms", right}],
       [[KB | [Median(KB, S, F) || {S, F} <- [{"normal p99", Ms}, {"dirty p99", Ms},
                                              {"normal erlang", Part}, {"dirty erlang", Part},
                                              {"normal native", Part}, {"dirty native", Part}]]]
        || KB <- ["2,0", "4,0", "1,2", "2,2", "4,4", "16,4"]]),
     "Native work: of what two schedulers do when one task has each.\n"
     "Erlang work left: of what the same processes do alone.\n"].

%% @doc Everything: rows with their bounds and verdicts, and raw samples by run.
-spec json([map()], #{atom() => {fairnif_bench_series:samples(), map()}}) ->
          fairnif_lab_json:value().
json(Results, Measured) ->
    {[{schema_version, 1},
      {kind, bench},
      {context, context()},
      {rows, [row_json(R) || R <- Results]},
      {runs, maps:map(fun(_, {Samples, Facts}) ->
                              #{facts => Facts,
                                samples => maps:map(fun(_, S) -> [sample(X) || X <- S] end,
                                                    Samples)}
                      end, Measured)}]}.

row_json(#{row := #{id := Id, run := Run, what := What, peer := Peer}, verdict := failed}) ->
    {[{id, Id}, {what, text(What)}, {peer, text(Peer)}, {verdict, failed}, {run, Run}]};
row_json(#{row := Row, samples := Samples, estimate := Estimate, bound := Bound,
           other_clock := Other, verdict := Verdict}) ->
    #{id := Id, run := Run, what := What, peer := Peer, how := How, unit := Unit,
      value := Value} = Row,
    {Direction, Number} = case Bound of
                              none -> {undefined, undefined};
                              _ -> Bound
                          end,
    {[{id, Id}, {what, text(What)}, {peer, text(Peer)}, {how, text(How)}, {unit, Unit},
      {direction, Direction}, {bound, Number}, {verdict, Verdict},
      {estimate, Estimate}, {clock, maps:get(clock, Row, wall)}, {other_clock, Other}, {run, Run},
      {made_of, tuple_to_list(Value)}, {samples, Samples}]}.

%% A distribution is a list of [value, count].
sample(X) when is_number(X) -> X;
sample(Distribution) -> [[V, C] || {V, C} <- Distribution].

context() ->
    Machine = fairnif_lab_machine:context(),
    Machine#{kernel => read("/proc/sys/kernel/osrelease"),
             transparent_hugepages => read("/sys/kernel/mm/transparent_hugepage/enabled"),
             load => read("/proc/loadavg")}.

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> string:trim(Text);
        {error, _} -> undefined
    end.

text(Chars) -> unicode:characters_to_binary(Chars).
