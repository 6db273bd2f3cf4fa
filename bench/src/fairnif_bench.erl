%% `bin/fairnif bench': the figures, each beside its peer in the same run.
%%
%% Each run has a node of its own, with the emulator flags that its rows need;
%% one run after the other.
-module(fairnif_bench).

-export([main/1, main/2]).
-export([in_peer/3]).

%% What runs longer than this hangs.
-define(LIMIT_MS, 300000).

%% From here on the machine is too busy to call a figure in wall time missed:
%% two processors of two are used for most of it, and others want 5 % of them.
-define(BUSY, 0.05).

-type result() :: #{row := fairnif_bench_rows:row(),
                    verdict := met | not_met | within_noise | machine_busy
                             | reported | failed,
                    %% not of a run that failed:
                    samples => [number()],
                    estimate => fairnif_bench_series:estimate(),
                    other_clock => fairnif_bench_series:estimate() | undefined,
                    bound => none | {at_most | at_least | within, number()}}.

%% @doc `main(#{}, Args)'.
-spec main([string()]) -> 0..3.
main(Args) -> main(#{}, Args).

%% @doc Runs what is named: runs, or everything but `auto_rule'.  With `json'
%% as `-' nothing but JSON goes to standard output; as a file name, the JSON
%% goes there.  Answers the exit code: 0 all figures met or within noise, 1 not,
%% 2 usage, 3 this machine was too busy to say.
-spec main(#{json => string()}, [string()]) -> 0..3.
main(Opts, ["auto_rule"]) ->
    Run = fairnif_bench_rows:auto_rule(),
    {Samples, Facts} = measure(Run, fairnif_lab_progress:start(1)),
    fairnif_lab_cli_text:note(Opts, "~ts", [fairnif_bench_report:auto_rule(Samples)]),
    fairnif_lab_cli_text:write(
      Opts, fairnif_bench_report:json([], #{auto_rule => {Samples, Facts}})),
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
    fairnif_lab_cli_text:note(Opts, "~ts", [fairnif_bench_report:table(Results)]),
    fairnif_lab_cli_text:write(Opts, fairnif_bench_report:json(Results, Measured)),
    Verdicts = [V || #{verdict := V} <- Results],
    case {lists:member(not_met, Verdicts) orelse lists:member(failed, Verdicts),
          lists:member(machine_busy, Verdicts)} of
        {true, _} -> 1;
        {false, true} -> 3;
        {false, false} -> 0
    end.

measure(#{flags := Flags, call := Call, about := About}, Progress) ->
    fairnif_lab_progress:step(Progress, About),
    T0 = erlang:monotonic_time(millisecond),
    {Samples, Facts} =
        case fairnif_lab_peer:run(Flags, {?MODULE, in_peer, tuple_to_list(Call)}, ?LIMIT_MS) of
            {ok, Both} -> Both;
            {error, Reason} ->
                Text = fairnif_lab_peer:format_error(Reason),
                io:format(standard_error, "fairnif: ~ts: ~ts~n", [About, Text]),
                {#{}, #{failed => unicode:characters_to_binary(Text)}}
        end,
    {Samples, Facts#{took_ms => erlang:monotonic_time(millisecond) - T0,
                     emulator_flags => [list_to_binary(F) || F <- Flags]}}.

%% @private The samples and facts of a run, with the part of all processors that
%% other programs (and, on a virtual machine, other machines) used meanwhile.
-spec in_peer(module(), atom(), [term()]) -> {fairnif_bench_series:samples(), map()}.
in_peer(M, F, Args) ->
    _ = fairnif:calibrate(),
    Before = fairnif_lab_machine:cpu_clock(),
    {Samples, Facts} = case apply(M, F, Args) of
                           {_, _} = Both -> Both;
                           Only -> {Only, #{}}
                       end,
    {Samples, Facts#{others => part(fairnif_lab_machine:others(
                                      Before, fairnif_lab_machine:cpu_clock()))}}.

%% Of all processors; of a run too short to say, none.
part(undefined) -> 0.0;
part(Processors) -> Processors / erlang:system_info(logical_processors).

-spec result(fairnif_bench_rows:row(), {fairnif_bench_series:samples(), map()}) -> result().
result(Row, {_, #{failed := _}}) ->
    #{row => Row, verdict => failed};
result(#{value := {p99, A}} = Row, {Samples, Facts}) ->
    case lists:append(maps:get(A, Samples)) of
        [] -> #{row => Row, verdict => failed};
        _ -> excused(judged(Row, Samples, Facts), Facts)
    end;
result(Row, {Samples, Facts}) ->
    excused(judged(Row, Samples, Facts), Facts).

%% Wall time says little while others use the processors.  (p99 of slices is CPU
%% time, and has `over'.)
excused(#{verdict := Verdict, row := Row} = Result, #{others := Others})
  when Verdict =/= met, Verdict =/= reported, Others > ?BUSY,
       not is_map_key(clock, Row), not is_map_key(over, Row) ->
    Result#{verdict := machine_busy};
excused(Result, _) ->
    Result.

judged(#{value := Value, bound := Bound} = Row, Samples, Facts) ->
    Over = case Row of
               #{over := Fact} -> maps:get(Fact, Facts);
               _ -> 1
           end,
    Number = bound(Bound, Facts),
    {Here, There} = case Row of
                        #{clock := cpu} -> {in_cpu(Value), Value};
                        _ -> {Value, in_cpu(Value)}
                    end,
    {Estimate, Derived} = derive(Here, Samples, Over),
    #{row => Row, samples => Derived, estimate => Estimate, bound => Number,
      other_clock => by_other_clock(There, Samples), verdict => verdict(Number, Estimate)}.

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

in_cpu({Kind, A, B}) -> {Kind, <<A/binary, " cpu">>, <<B/binary, " cpu">>};
in_cpu(Value) -> Value.

%% The same by the other clock, where it was read.
by_other_clock({_, A, B} = Value, Samples) when is_map_key(A, Samples), is_map_key(B, Samples) ->
    fairnif_bench_series:estimate(derived(Value, Samples));
by_other_clock(_, _) ->
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
