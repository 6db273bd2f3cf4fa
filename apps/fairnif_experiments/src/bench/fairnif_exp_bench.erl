%% `bin/fairnif bench': the project's figures, each beside its peer in the same run.
%%
%% A run has a node of its own, with the emulator flags that its rows need; one run after the other.
%% Runs and their rows are data: adding a figure means adding a row to a run, or a run to a module
%% with this behaviour. A package has those of its own figures in its folder `bench'; they are
%% compiled here.
-module(fairnif_exp_bench).

-export([main/2, all/0, rows/1, judged/2]).
-export([in_peer/3]).

-export_type([run/0, row/0, facts/0]).

%% `needs': modules of examples that are called, with the example's name.  `extra': only where it is
%% named.  What `all' has, each of the rows has, if it does not say otherwise.
-type run() :: #{id := atom(), about := string(), flags := one | two | [string()],
                 samples := fun(() -> fairnif_exp_series:samples()
                                      | {fairnif_exp_series:samples(), facts()}),
                 rows := [row()], all => row(),
                 needs => [{module(), string()}], extra => true}.
-type facts() :: #{atom() => term()}.
-type row() :: #{id => binary(), what => unicode:chardata(), how => string(),
                 peer => unicode:chardata(),    % none: ""
                 %% what is made of the samples:
                 %%   ratio        of each round's A and B
                 %%   speed        the same upside down: how much faster A is
                 %%   difference   A less B, ns
                 %%   value        A as it is
                 %%   p99          of all that A's distributions hold
                 value => {ratio | speed | difference, series(), series()}
                        | {value | p99, series()},
                 over => atom(),        % a fact: divided by
                 clock => wall | cpu,   % of these samples, where both are taken; default wall
                 unit => times | ns | percent | bytes,
                 %% `within': at most that far from 1, up and down; default none
                 bound => {at_most | at_least | within, number() | {Fact :: atom(), plus, number()}}
                        | none,
                 run => atom()}.
-type series() :: fairnif_exp_series:name().
%% Verdict: met, not_met, within_noise, machine_busy, reported, failed; of one that did not fail
%% `samples', `estimate' and `bound' too.
-type result() :: #{row := row(), verdict := atom(), atom() => term()}.

-callback runs() -> [run()].

%% In the order of the table.
-define(FAMILIES, [fairnif_exp_bench_calls, fairnif_exp_bench_memory, fairnif_exp_bench_slices,
                   fairnif_exp_bench_others, fairnif_exp_bench_lists, fairnif_exp_bench_process,
                   fairnif_exp_bench_rust, fairnif_exp_bench_watch]).
-define(PACKAGES, "../../../../packages/*/bench/*_bench.erl").
%% What runs longer than this hangs.
-define(LIMIT_MS, 300000).
%% From here on the machine is too busy to call a figure in wall time missed: two processors of two
%% are used for most of it, and others want 5 % of them.
-define(BUSY, 0.05).

%% @doc All runs, each with the module that has it, and its code where it is a package's.
-spec all() -> [{{module(), binary() | none}, run()}].
all() ->
    Files = filelib:wildcard(filename:join(code:lib_dir(fairnif_experiments), ?PACKAGES)),
    [{{Family, Code}, Run}
     || {Family, Code} <- [{F, none} || F <- ?FAMILIES] ++ [compiled(F) || F <- Files],
        Run <- runs(Family, Code)].

compiled(File) ->
    {ok, Module, Code} = compile:file(File, [binary, report]),
    {Module, Code}.

runs(Family, Code) ->
    _ = [{module, Family} = code:load_binary(Family, "", Code) || is_binary(Code)],
    Family:runs().

%% @doc The rows of a run.
-spec rows(run()) -> [row()].
rows(#{id := Id, rows := Rows} = Run) ->
    Default = maps:merge(#{run => Id, peer => "", bound => none}, maps:get(all, Run, #{})),
    [maps:merge(Default, Row) || Row <- Rows].

%% @doc Runs what is named: runs, or all but the extra ones.  With `json' as `-' nothing but JSON
%% goes to standard output; as a file name, the JSON goes there.  Answers the exit code: 0 all
%% figures met or within noise, 1 not, 2 usage, 3 this machine was too busy to say.
-spec main(#{json => string()}, [string()]) -> 0..3.
main(Opts, Names) ->
    All = all(),
    case Names -- [atom_to_list(Id) || {_, #{id := Id}} <- All] of
        [] ->
            bench(Opts, [One || {_, #{id := Id} = Run} = One <- All,
                                Names =:= [] andalso not is_map_key(extra, Run)
                                    orelse lists:member(atom_to_list(Id), Names)]);
        [Unknown | _] ->
            fairnif_check_cli_text:usage("there is no run `~ts'; there are~ts",
                                       [Unknown, [[$\s, atom_to_list(Id)]
                                                  || {_, #{id := Id}} <- All]])
    end.

bench(Opts, Runs) ->
    Progress = fairnif_check_progress:start(length(Runs)),
    Measured = [{Run, measured(Family, Run, Progress)} || {Family, Run} <- Runs],
    fairnif_check_progress:stop(Progress),
    Results = [judged(Row, Taken) || {Run, Taken} <- Measured, Row <- rows(Run)],
    fairnif_check_cli_text:note(Opts, "~ts", [table(Results)]),
    fairnif_check_cli_text:write(Opts, json(Results, Measured)),
    Verdicts = [V || #{verdict := V} <- Results]
        ++ [failed || {_, {_, #{failed := _}}} <- Measured],
    case [lists:member(V, Verdicts) || V <- [not_met, failed, machine_busy]] of
        [false, false, false] -> 0;
        [false, false, true] -> 3;
        _ -> 1
    end.

measured({Family, Code}, #{id := Id, flags := Of, about := About} = Run, Progress) ->
    fairnif_check_progress:step(Progress, About),
    Flags = case is_atom(Of) of true -> fairnif_exp_series:flags(Of); false -> Of end,
    T0 = fairnif_exp:now_ms(),
    {Samples, Facts} =
        case fairnif_exp:missing(maps:get(needs, Run, [])) of
            none -> taken(fairnif_exp:in_peer(Flags, {?MODULE, in_peer, [Family, Code, Id]},
                                              ?LIMIT_MS));
            {missing, Text} -> taken(#{error => Text})
        end,
    _ = [fairnif_check_cli_text:complain([About, ": ", Error]) || #{failed := Error} <- [Facts]],
    {Samples, Facts#{took_ms => fairnif_exp:now_ms() - T0,
                     emulator_flags => [list_to_binary(F) || F <- Flags]}}.

%% Others: of all processors; of a run too short to say, none.
taken(#{value := {Samples, Facts}, others := undefined}) ->
    {Samples, Facts#{others => 0.0}};
taken(#{value := {Samples, Facts}, others := Others}) ->
    {Samples, Facts#{others => Others / erlang:system_info(logical_processors)}};
taken(#{error := Error}) ->
    {#{}, #{failed => Error}}.

%% @private The samples and the facts of a run, in its node.
-spec in_peer(module(), binary() | none, atom()) -> {fairnif_exp_series:samples(), facts()}.
in_peer(Family, Code, Id) ->
    _ = fairnif:calibrate(),
    [Samples] = [S || #{id := I, samples := S} <- runs(Family, Code), I =:= Id],
    case Samples() of
        {_, _} = Both -> Both;
        Only -> {Only, #{}}
    end.

%% ---- what is made of it ----

%% @doc The row with what its run's samples and facts say.
-spec judged(row(), {fairnif_exp_series:samples(), facts()}) -> result().
judged(#{value := Value} = Row, {Samples, Facts}) ->
    Empty = case Value of
                _ when is_map_key(failed, Facts) -> true;
                {p99, A} -> lists:append(maps:get(A, Samples)) =:= [];
                _ -> false
            end,
    case Empty of
        true -> #{row => Row, verdict => failed};
        false -> excused(estimated(Row, Samples, Facts), Facts)
    end.

%% Wall time says little while others use the processors.  (p99 of slices is CPU time, and has
%% `over'.)
excused(#{verdict := Verdict, row := Row} = Result, #{others := Others})
  when Verdict =/= met, Verdict =/= reported, Others > ?BUSY,
       not is_map_key(clock, Row), not is_map_key(over, Row) ->
    Result#{verdict := machine_busy};
excused(Result, _) ->
    Result.

estimated(#{value := Value, bound := Bound} = Row, Samples, Facts) ->
    Over = case Row of
               #{over := Fact} -> maps:get(Fact, Facts);
               _ -> 1
           end,
    Number = case Bound of
                 {Direction, {Setting, plus, Ns}} -> {Direction, maps:get(Setting, Facts) + Ns};
                 _ -> Bound
             end,
    By = case {Row, Value} of
             {#{clock := cpu}, {Kind, A, B}} ->
                 {Kind, <<A/binary, " cpu">>, <<B/binary, " cpu">>};
             _ -> Value
         end,
    {Estimate, Derived} = derive(By, Samples, Over),
    #{row => Row, samples => Derived, estimate => Estimate, bound => Number,
      verdict => verdict(Number, Estimate)}.

derive({p99, A}, Samples, Over) ->
    Distributions = [[{V / Over, C} || {V, C} <- D] || D <- maps:get(A, Samples)],
    {fairnif_exp_series:pooled_p99(Distributions), []};
derive(Value, Samples, 1) ->
    Derived = derived(Value, Samples),
    {fairnif_exp_series:estimate(Derived), Derived}.

derived({value, A}, S) -> maps:get(A, S);
derived({ratio, A, B}, S) -> pairs(fun(X, Y) -> X / Y end, A, B, S);
derived({speed, A, B}, S) -> pairs(fun(X, Y) -> Y / X end, A, B, S);
derived({difference, A, B}, S) -> pairs(fun(X, Y) -> X - Y end, A, B, S).

pairs(Fun, A, B, Samples) ->
    lists:zipwith(Fun, maps:get(A, Samples), maps:get(B, Samples)).

%% Where the median misses the bound, but the interval in which it lies for sure does not, this
%% machine cannot say.
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

%% ---- as a table and as JSON ----

table(Results) ->
    [fairnif_check_table:render(
       [{"what", left}, {"beside", left}, {"median", right}, {"quartiles", right},
        {"bound", right}, {"n", right}, {"", left}],
       [cells(R) || R <- Results]),
     "Samples are taken in turns. A figure of two is the median of each round's; p99 is that of\n"
     "all slices or kills, its quartiles are those of the rounds. What runs in one thread is\n"
     "measured by its CPU time, everything else by wall time. `within noise': the median misses\n"
     "the bound, the 95 % interval of the median does not. `machine busy': it is missed in wall\n"
     "time while other programs used over 5 % of the processors.\n"].

cells(#{row := #{what := What, peer := Peer}, verdict := failed}) ->
    [What, Peer, "", "", "", "", "FAILED"];
cells(#{row := #{what := What, peer := Peer, unit := Unit}, bound := Bound, verdict := Verdict,
        estimate := #{value := Value, low := Low, high := High, count := N}}) ->
    [What, Peer, number(Unit, Value), [number(Unit, Low), " .. ", number(Unit, High)],
     bounded(Unit, Bound), fairnif_check_table:count(N), said(Verdict)].

bounded(_, none) -> "-";
bounded(Unit, {at_most, X}) -> ["<= ", number(Unit, X)];
bounded(Unit, {at_least, X}) -> [">= ", number(Unit, X)];
bounded(Unit, {within, X}) -> [number(Unit, 1 - X), " .. ", number(Unit, 1 + X)].

number(times, X) when X < 2 -> [float_to_list(float(X), [{decimals, 3}]), " x"];
number(times, X) when X < 20 -> [float_to_list(float(X), [{decimals, 2}]), " x"];
number(times, X) -> [integer_to_list(round(X)), " x"];
number(Unit, X) -> fairnif_exp:shown(Unit, X).

said(not_met) -> "NOT MET";
said(reported) -> "";
said(Verdict) -> string:replace(atom_to_list(Verdict), "_", " ").

%% Everything: rows with their bounds and verdicts, and raw samples by run.
json(Results, Measured) ->
    {[{schema_version, 1},
      {kind, bench},
      {context, context()},
      {rows, [row_json(R) || R <- Results]},
      {runs, maps:from_list([{Id, #{facts => Facts,
                                    samples => maps:map(fun(_, S) -> [sample(X) || X <- S] end,
                                                        Samples)}}
                             || {#{id := Id}, {Samples, Facts}} <- Measured])}]}.

row_json(#{row := #{id := Id, run := Run, what := What, peer := Peer} = Row,
           verdict := Verdict} = Result) ->
    {[{id, Id}, {what, fairnif_exp:text(What)}, {peer, fairnif_exp:text(Peer)}, {verdict, Verdict},
      {run, Run} | case Verdict of failed -> []; _ -> figures_json(Row, Result) end]}.

figures_json(#{how := How, unit := Unit, value := Value} = Row,
             #{samples := Samples, estimate := Estimate, bound := Bound}) ->
    {Direction, Number} = case Bound of none -> {undefined, undefined}; _ -> Bound end,
    [{how, fairnif_exp:text(How)}, {unit, Unit}, {direction, Direction}, {bound, Number},
     {estimate, Estimate}, {clock, maps:get(clock, Row, wall)}, {made_of, tuple_to_list(Value)},
     {samples, Samples}].

%% A distribution is a list of [value, count].
sample(X) when is_number(X) -> X;
sample(Distribution) -> [[V, C] || {V, C} <- Distribution].

context() ->
    maps:merge(fairnif_check_machine:context(),
               #{kernel => read("/proc/sys/kernel/osrelease"), load => read("/proc/loadavg"),
                 transparent_hugepages => read("/sys/kernel/mm/transparent_hugepage/enabled")}).

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> string:trim(Text);
        {error, _} -> undefined
    end.
