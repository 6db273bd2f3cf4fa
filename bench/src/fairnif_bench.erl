%% `bin/fairnif bench': the figures, each beside its peer in the same run.
%%
%% Each run has a node of its own, with the emulator flags that its rows need;
%% one run after the other.
-module(fairnif_bench).

-export([main/1, main/2]).

%% What runs longer than this hangs.
-define(LIMIT_MS, 300000).

-type result() :: #{row := fairnif_bench_rows:row(),
                    verdict := met | not_met | within_noise | reported | failed,
                    %% not of a run that failed:
                    samples => [number()],
                    estimate => fairnif_bench_series:estimate(),
                    cpu => fairnif_bench_series:estimate() | undefined,
                    bound => none | {at_most | at_least | within, number()}}.

%% @doc `main(#{}, Args)'.
-spec main([string()]) -> 0..3.
main(Args) -> main(#{}, Args).

%% @doc Runs what is named: runs, or everything but `auto_rule'.  With `json'
%% as `-' nothing but JSON goes to standard output; as a file name, the JSON
%% goes there.  Answers the exit code: 0 all figures met or within noise, 1 not,
%% 2 usage.
-spec main(#{json => string()}, [string()]) -> 0..3.
main(Opts, ["auto_rule"]) ->
    Run = fairnif_bench_rows:auto_rule(),
    {Samples, Facts} = measure(Run, fairnif_lab_progress:start(1)),
    text(Opts, fairnif_bench_report:auto_rule(Samples)),
    json(Opts, fairnif_bench_report:json([], #{auto_rule => {Samples, Facts}})),
    case map_size(Samples) of
        0 -> 1;
        _ -> 0
    end;
main(Opts, Names) ->
    All = fairnif_bench_rows:runs(),
    case Names -- [atom_to_list(Id) || #{id := Id} <- All] of
        [] ->
            bench(Opts, [R || #{id := Id} = R <- All,
                              Names =:= [] orelse lists:member(atom_to_list(Id), Names)]);
        [Unknown | _] ->
            io:format(standard_error, "fairnif: there is no run `~ts'; there are~ts auto_rule~n",
                      [Unknown, [[$\s, atom_to_list(Id)] || #{id := Id} <- All]]),
            2
    end.

bench(Opts, Runs) ->
    Progress = fairnif_lab_progress:start(length(Runs)),
    Measured = maps:from_list([{Id, measure(Run, Progress)} || #{id := Id} = Run <- Runs]),
    fairnif_lab_progress:stop(Progress),
    Results = [result(Row, maps:get(Id, Measured))
               || #{run := Id} = Row <- fairnif_bench_rows:rows(),
                  is_map_key(Id, Measured)],
    text(Opts, fairnif_bench_report:table(Results)),
    json(Opts, fairnif_bench_report:json(Results, Measured)),
    case [R || #{verdict := V} = R <- Results, V =:= not_met orelse V =:= failed] of
        [] -> 0;
        _ -> 1
    end.

measure(#{flags := Flags, call := Call, about := About}, Progress) ->
    fairnif_lab_progress:step(Progress, About),
    T0 = erlang:monotonic_time(millisecond),
    {Samples, Facts} =
        case fairnif_lab_peer:run(Flags, Call, ?LIMIT_MS) of
            {ok, {_, _} = Both} -> Both;
            {ok, Only} -> {Only, #{}};
            {error, Reason} ->
                Text = fairnif_lab_peer:format_error(Reason),
                io:format(standard_error, "fairnif: ~ts: ~ts~n", [About, Text]),
                {#{}, #{failed => unicode:characters_to_binary(Text)}}
        end,
    {Samples, Facts#{took_ms => erlang:monotonic_time(millisecond) - T0,
                     emulator_flags => [list_to_binary(F) || F <- Flags]}}.

-spec result(fairnif_bench_rows:row(), {fairnif_bench_series:samples(), map()}) -> result().
result(Row, {_, #{failed := _}}) ->
    #{row => Row, verdict => failed};
result(#{value := Value, bound := Bound} = Row, {Samples, Facts}) ->
    Over = case Row of
               #{over := Fact} -> maps:get(Fact, Facts);
               _ -> 1
           end,
    Number = bound(Bound, Facts),
    {Estimate, Derived} = derive(Value, Samples, Over),
    #{row => Row, samples => Derived, estimate => Estimate, bound => Number,
      cpu => in_cpu_time(Value, Samples), verdict => verdict(Number, Estimate)}.

derive({p99, A}, Samples, Over) ->
    Distributions = [[{V / Over, C} || {V, C} <- D] || D <- maps:get(A, Samples)],
    {fairnif_bench_series:pooled_p99(Distributions), []};
derive(Value, Samples, 1) ->
    Derived = derived(Value, Samples),
    {fairnif_bench_series:estimate(Derived), Derived}.

derived({value, A}, S) -> maps:get(A, S);
derived({ratio, A, B}, S) -> pairs(fun(X, Y) -> X / Y end, A, B, S);
derived({speed, A, B}, S) -> pairs(fun(X, Y) -> Y / X end, A, B, S);
derived({difference, A, B}, S) -> pairs(fun(X, Y) -> X - Y end, A, B, S).

pairs(Fun, A, B, Samples) ->
    lists:zipwith(Fun, maps:get(A, Samples), maps:get(B, Samples)).

%% The same in CPU time, where that was measured: what the figure would be had
%% the operating system run nothing else.
in_cpu_time({Kind, A, B}, Samples) ->
    {CpuA, CpuB} = {<<A/binary, " cpu">>, <<B/binary, " cpu">>},
    case Samples of
        #{CpuA := _, CpuB := _} ->
            fairnif_bench_series:estimate(derived({Kind, CpuA, CpuB}, Samples));
        _ ->
            undefined
    end;
in_cpu_time(_, _) ->
    undefined.

bound({Direction, {Fact, plus, Ns}}, Facts) -> {Direction, maps:get(Fact, Facts) + Ns};
bound(Bound, _) -> Bound.

%% Where the median misses the bound, but the interval in which it lies for sure
%% does not, this machine cannot say.
verdict(none, _) ->
    reported;
verdict({Direction, Bound}, #{value := Value, sure_low := Low, sure_high := High}) ->
    Holds = fun(X) -> holds(Direction, X, Bound) end,
    case {Holds(Value), lists:any(Holds, [Low, High])} of
        {true, _} -> met;
        {false, true} -> within_noise;
        {false, false} -> not_met
    end.

holds(at_most, X, Bound) -> X =< Bound;
holds(at_least, X, Bound) -> X >= Bound;
holds(within, X, Bound) -> abs(X - 1) =< Bound.

%% With `--json -' standard output is for the JSON alone.
text(#{json := "-"}, Text) -> io:put_chars(standard_error, Text);
text(_, Text) -> io:put_chars(Text).

json(#{json := "-"}, Value) ->
    io:put_chars([fairnif_lab_json:encode(Value), $\n]);
json(#{json := File}, Value) ->
    ok = file:write_file(File, [fairnif_lab_json:encode(Value), $\n]);
json(_, _) ->
    ok.
