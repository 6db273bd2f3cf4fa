%% Two measurements of one function, before and after: is it better, worse, or the same within what
%% the machine's own unrest explains? Pure; whether the two may be compared at all is for
%% fairnif_check_baseline to say.
%%
%% A false alarm costs more than a small change that is missed: people stop looking. So each figure
%% must move beyond what repeats of the same check differ by, and in absolute terms by as much as
%% matters to anybody.
-module(fairnif_check_compare).

-export([figures/1, figures/2, names/0, compare/4, change/3, bands/0, table/1, table/3, title/1]).

-export_type([figures/0, row/0, verdict/0]).

%% What is kept of a size: figures by name, and the raw samples of the time.
-type figures() :: #{samples := [number()], figure() => number()}.
-type figure() :: time | block | charge | share | delay | kill | leak
                | block_control | delay_control | resolution | kills | speed | others
                | delay_least | delay_most.
-type verdict() :: improved | worse | within_noise | unsure.
-type row() :: #{role := atom(), size := pos_integer(), figure := figure(),
                 verdict := verdict(), before := number() | undefined,
                 now := number() | undefined, ratio := float() | undefined, why := binary()}.

%% The figures that are compared. `factor': beyond this factor it may be a change; `least': if it is
%% at least this, in its own unit; `cap': above it, more is not better. `control': another figure
%% of the same run, which the function cannot move; when it has moved as far, the machine has.
figure_rows() ->
    [#{figure => block, path => [slices, block, repeated], good => less, format => fun duration/1,
       title => "longest block, repeated", factor => 2.0, least => 100000,
       control => block_control,
       %% An extreme and no average, though two calls reached it; a fair slice is 25 to 30 us, and a
       %% tenth of the documented 1 ms is the least that anybody could notice.
       source => "docs/internals/task.md; erl_nif: 1 ms"},
     #{figure => charge, path => [charge, ratio], good => more, format => fun fraction/1,
       title => "reductions per ms, of Erlang's", factor => 1.5, least => 0.1, cap => 1.0,
       %% 4000 reductions of ordinary Erlang take 18 to 60 us, by what it does: charged as Erlang
       %% is charged is right, and more than that is no better.
       source => "4000 reductions of sort, maps, binaries: 18-60 us"},
     #{figure => share, path => [share, median], good => more, format => fun fraction/1,
       title => "share left to a neighbour", factor => 1.5, least => 0.1,
       %% Two runs of one check differ by less than that.
       source => "docs/reference/figures.md: 38 % of a scheduler, in another run 28 %"},
     #{figure => delay, path => [delay, beside, p99], good => less, format => fun duration/1,
       title => "wake-up delay, p99", factor => 2.0, least => 1000000, control => delay_control,
       %% A process due beside fair work runs 0.03 to 0.12 ms late, beside dirty work 4 to 23 ms.
       source => "lateness of who is due every ms: 0.03-0.12 against 4-23 ms"},
     #{figure => kill, path => [kill, stop, median], good => less, format => fun duration/1,
       title => "from kill to stop", factor => 2.0, least => 1000000,
       %% A task that is suspended stops 10 to 25 us after the kill; one that runs, after its slice.
       source => "exit(Pid, kill) to the destructor: 10-25 us"},
     #{figure => leak, path => [leak, per_kill], good => less, format => fun bytes/1,
       title => "memory lost per kill", factor => 2.0, least => resolution,
       source => "the resolution that the check itself reports"}].

%% Kept beside them: what time is judged by, and controls.
-define(KEPT, [{time, [time, median]}, {block_control, [slices, control, repeated]},
               {delay_control, [delay, erlang, p99]}, {resolution, [leak, resolution]},
               {kills, [leak, kills]}]).
%% And what is computed: how fast ordinary Erlang was (reductions per ms); which part of the machine
%% other programs kept busy; the least and the greatest p99 of the windows of the wake-up delay.
-define(COMPUTED, [{speed, [charge, erlang],
                    fun(Mixes) -> fairnif_check_stats:median(maps:values(Mixes)) end},
                   {others, [others], fun(L) -> lists:max([O || O <- L, is_number(O)]) end},
                   {delay_least, [delay, beside, windows], fun lists:min/1},
                   {delay_most, [delay, beside, windows], fun lists:max/1}]).

%% The part of the machine that other programs may keep busy before bands double; and before nothing
%% is said of figures that depend on who gets a processor. Measured: with half and more of 2
%% processors busy, repeats of one check differed by factors of up to 3 in time, 6 in what is
%% charged per ms, 13 in wake-up delay, 37 from kill to stop, 200 in blocks (four functions, 100
%% pairs).
-define(UNQUIET, 0.1).
-define(BUSY, 0.25).
-define(NEED_QUIET, [time, block, charge, share, delay, kill]).
-define(UNQUIET_BAND, 0.5).

%% Time moves by more than this before it counts. criterion takes 1 % for noise, but of one process
%% that it calls again and again; here each check has nodes of its own, whose medians differ by a
%% few per cent with the layout of code and memory (Kalibera and Jones, "Rigorous benchmarking in
%% reasonable time", 2013: the variation between executions is not seen from within one).
-define(TIME_BAND, 0.05).
%% Two-sided: with two sizes and ten checks a day, 0.01 lets about one chance finding a week
%% through, and the band stops most of those.
-define(ALPHA, 0.01).
%% With fewer on each side the normal approximation of U is no longer good at ALPHA.
-define(LEAST_SAMPLES, 6).

%% @doc What is compared of two functions that one check measured in turns: what other programs did
%% met both, and is left out.
-spec figures(#{size := pos_integer(), atom() => term()}) -> figures().
figures(Size) ->
    maps:remove(others, figures(Size, 1)).

%% @doc What is compared of one size of a check's result, measured on a machine with that many
%% processors. Figures that were not measured are left out.
-spec figures(#{size := pos_integer(), atom() => term()}, pos_integer()) -> figures().
figures(Size, Processors) ->
    Found = [{F, V} || {F, Path} <- paths(), V <- [at(Path, Size)], is_number(V)]
        ++ [{F, V} || {F, Path, Compute} <- ?COMPUTED, V <- [computed(Compute, at(Path, Size))],
                      is_number(V)],
    Samples = case at([time, samples], Size) of
                  List when is_list(List) -> List;
                  _ -> []
              end,
    Figures = (maps:from_list(Found))#{samples => Samples},
    case Figures of
        #{others := Others} -> Figures#{others := Others / Processors};
        _ -> Figures
    end.

%% @doc The names of the figures that `figures/2' gives.
-spec names() -> [figure()].
names() ->
    [F || {F, _} <- paths()] ++ [F || {F, _, _} <- ?COMPUTED].

computed(_, undefined) -> undefined;
computed(Compute, Value) ->
    try Compute(Value)
    catch error:_ -> undefined          % of nothing at all there is no greatest
    end.

paths() ->
    ?KEPT ++ [{F, P} || #{figure := F, path := P} <- figure_rows()].

%% @doc One row for each figure that either side has.
-spec compare(atom(), pos_integer(), figures(), figures()) -> [row()].
compare(Role, Size, Before, Now) ->
    [#{role => Role, size => Size, figure => Figure, verdict => Verdict,
       before => maps:get(Figure, Before, undefined), now => maps:get(Figure, Now, undefined),
       ratio => ratio(maps:get(Figure, Before, undefined), maps:get(Figure, Now, undefined)),
       why => unicode:characters_to_binary(Why)}
     || Figure <- [time | [F || #{figure := F} <- figure_rows()]],
        is_map_key(Figure, Before) orelse is_map_key(Figure, Now),
        {Verdict, Why} <- [judge(Figure, Before, Now)]].

%% @doc What the rows are judged by, each with its source, for the report.
-spec bands() -> [#{atom() => atom() | number() | binary()}].
bands() ->
    [#{figure => time, better => less, factor => 1.0 + ?TIME_BAND, least => 0,
       source => <<"Mann-Whitney's U of the raw samples, p 0.01, and each quarter of them; "
                   "Kalibera and Jones 2013">>}
    | [#{figure => F, better => G, factor => By, least => L, source => list_to_binary(S)}
       || #{figure := F, good := G, factor := By, least := L, source := S} <- figure_rows()]].

%% @doc The rows as a table for the terminal.
-spec table([row()]) -> unicode:chardata().
table(Rows) ->
    table("baseline", "now", Rows).

%% @doc The same with what the two sides are called.
-spec table(string(), string(), [row()]) -> unicode:chardata().
table(BeforeTitle, NowTitle, Rows) ->
    fairnif_check_table:render(
      [{"size", right}, {"figure", left}, {BeforeTitle, right}, {NowTitle, right}, {"ratio", right},
       {"verdict", left}, {"why", left}],
      [[[case Role of subject -> []; _ -> [atom_to_list(Role), ", "] end,
         fairnif_check_table:bytes(Size)],
        title(Figure), (format(Figure))(Before), (format(Figure))(Now), fraction(Ratio),
        phrase(Verdict), Why]
       || #{role := Role, size := Size, figure := Figure, before := Before, now := Now,
            ratio := Ratio, verdict := Verdict, why := Why} <- Rows]).

%% ---- verdicts ----

judge(Figure, Before, Now) ->
    case {Before, Now} of
        {#{Figure := _}, #{Figure := _}} ->
            quiet(judge_both(Figure, Before, Now), Figure, others(Before, Now));
        {#{Figure := _}, _} -> {unsure, "not measured now"};
        {_, _} -> {unsure, "not measured in the baseline"}
    end.

%% In a crowd it is not known which of them it was.
quiet({Verdict, _}, Figure, Others)
  when Others > ?BUSY, Verdict =:= worse orelse Verdict =:= improved ->
    case lists:member(Figure, ?NEED_QUIET) of
        true -> {unsure, ["other programs kept ", fairnif_check_table:percent(Others),
                              " of the machine busy"]};
        false -> {Verdict, "though other programs kept the machine busy"}
    end;
quiet(Judged, _, _) ->
    Judged.

judge_both(time, #{samples := Samples} = Before, #{samples := SamplesNow} = Now) ->
    change(Samples, SamplesNow, machine_noise(Before, Now));
judge_both(Figure, Before, Now) ->
    [Row] = [R || #{figure := F} = R <- figure_rows(), F =:= Figure],
    #{Figure := A0} = Before,
    #{Figure := B0} = Now,
    {A, B} = capped(A0, B0, Row),
    #{good := Good} = Row,
    Factor = factor(Row, Before, Now),
    Least = least(Row, Before, Now),
    case {abs(A - B) =< Least, is_beyond(Factor, A, B)} of
        {true, _} when A == B, A0 /= B0 ->
            {within_noise, ["more than ", (format(Figure))(A), " is no better"]};
        {true, _} ->
            {within_noise, ["differ by no more than ", (format(Figure))(Least)]};
        {_, false} ->
            {within_noise, io_lib:format("within a factor of ~.2f", [Factor])};
        {false, true} ->
            controlled(Row#{factor := Factor}, Before, Now, direction(Good, A, B),
                       io_lib:format("beyond a factor of ~.2f", [Factor]))
    end.

%% On a machine with other work, twice as far (as ratios go).
factor(#{factor := Factor}, Before, Now) ->
    case others(Before, Now) > ?UNQUIET of
        true -> Factor * Factor;
        false -> Factor
    end.

others(Before, Now) ->
    lists:max([Others || #{others := Others} <- [Before, Now]] ++ [0]).

%% By what fraction times may differ for the machine's sake: as much as ordinary Erlang's do.
machine_noise(Before, Now) ->
    Speed = case {Before, Now} of
                {#{speed := A}, #{speed := B}} when A > 0, B > 0 -> max(A, B) / min(A, B) - 1;
                _ -> 0.0
            end,
    case others(Before, Now) > ?UNQUIET of
        true -> max(?UNQUIET_BAND, Speed);
        false -> Speed
    end.

%% @doc The same for run times: raw samples before and now in the order in which they were taken,
%% any unit; Noise is the fraction that the machine itself may account for.
%%
%% Mann-Whitney's U says whether the one tend to be longer than the other, without asking how they
%% are distributed. That is not enough: samples of one minute resemble each other. So the medians
%% must differ by more than TIME_BAND, Noise and the samples' own spread, and each quarter of the
%% one must lie beyond each quarter of the other. `unsure' with fewer than six on a side. Cost:
%% one sort of all samples.
-spec change([number()], [number()], number()) -> {verdict(), Why :: unicode:chardata()}.
change(Before, Now, _) when length(Before) < ?LEAST_SAMPLES; length(Now) < ?LEAST_SAMPLES ->
    {unsure, io_lib:format("~b and ~b samples; ~b each are needed",
                               [length(Before), length(Now), ?LEAST_SAMPLES])};
change(Before, Now, Noise) ->
    A = fairnif_check_stats:median(Before),
    B = fairnif_check_stats:median(Now),
    Band = lists:max([?TIME_BAND, Noise, fairnif_check_stats:spread(Before),
                      fairnif_check_stats:spread(Now)]),
    P = fairnif_check_stats:mann_whitney(Before, Now),
    case {is_beyond(1.0 + Band, A, B), P =< ?ALPHA, is_apart(quarters(Before), quarters(Now))} of
        {false, _, _} ->
            {within_noise, ["within ", fairnif_check_table:percent(Band)]};
        {true, false, _} ->
            {within_noise, io_lib:format("the samples may well be of one kind (p ~s)", [p(P)])};
        {true, true, false} ->
            {within_noise, "not in each quarter of the time"};
        {true, true, true} ->
            {direction(less, A, B),
             io_lib:format("medians beyond ~s, p ~s", [fairnif_check_table:percent(Band), p(P)])}
    end.

%% The medians of four parts, in time; of fewer than three samples each, all is one part.
quarters(Samples) when length(Samples) < 12 ->
    [fairnif_check_stats:median(Samples)];
quarters(Samples) ->
    quarters(Samples, length(Samples) div 4, 4).

quarters(Samples, _, 1) ->
    [fairnif_check_stats:median(Samples)];
quarters(Samples, Size, Left) ->
    {Part, Rest} = lists:split(Size, Samples),
    [fairnif_check_stats:median(Part) | quarters(Rest, Size, Left - 1)].

is_apart(As, Bs) ->
    lists:max(As) < lists:min(Bs) orelse lists:max(Bs) < lists:min(As).

direction(less, A, B) when B > A -> worse;
direction(more, A, B) when B < A -> worse;
direction(_, _, _) -> improved.

%% What the function cannot move must have stayed, and the windows must not overlap.
controlled(#{control := Control, factor := Factor} = Row, Before, Now, Verdict, Why) ->
    Moved = case {Before, Now} of
                {#{Control := A}, #{Control := B}} -> is_beyond(Factor, A, B);
                _ -> false
            end,
    case {Moved, Row, Before, Now} of
        {true, _, _, _} ->
            {unsure, "beside ordinary Erlang it has changed as much: the machine"};
        {_, #{figure := delay}, #{delay_least := L1, delay_most := M1},
         #{delay_least := L2, delay_most := M2}} when L1 =< M2, L2 =< M1 ->
            {within_noise, "not in each quarter of the time"};
        _ ->
            {Verdict, Why}
    end;
controlled(_, _, _, Verdict, Why) ->
    {Verdict, Why}.

capped(A, B, #{cap := Cap}) -> {min(A, Cap), min(B, Cap)};
capped(A, B, _) -> {A, B}.

%% The check reports how many bytes it can tell from none, over all kills.
least(#{least := resolution}, Before, Now) ->
    lists:max([Bytes / max(1, Kills) || #{resolution := Bytes, kills := Kills} <- [Before, Now]]
              ++ [0]);
least(#{least := Least}, _, _) ->
    Least.

is_beyond(Factor, A, B) ->
    max(A, B) > Factor * max(0, min(A, B)).

%% ---- texts ----

phrase(within_noise) -> "within noise";
phrase(Verdict) -> atom_to_list(Verdict).

%% @doc What a figure is called for a person.
-spec title(figure()) -> string().
title(time) -> "run time, median";
title(Figure) ->
    [Title] = [T || #{figure := F, title := T} <- figure_rows(), F =:= Figure],
    Title.

format(time) -> fun duration/1;
format(Figure) ->
    [Format] = [F || #{figure := G, format := F} <- figure_rows(), G =:= Figure],
    Format.

duration(Ns) -> fairnif_check_table:duration(Ns).

fraction(undefined) -> "-";
fraction(F) -> io_lib:format("~.2f", [float(F)]).

bytes(undefined) -> "-";
bytes(B) when B < 0 -> ["-", bytes(-B)];
bytes(B) -> fairnif_check_table:bytes(round(B)).

p(P) when P < 0.001 -> "< 0.001";
p(P) -> io_lib:format("~.3f", [P]).

ratio(A, B) when is_number(A), is_number(B), A > 0, B >= 0 -> B / A;
ratio(_, _) -> undefined.

at([], Value) -> Value;
at([Key | Path], Map) ->
    case Map of
        #{Key := Value} -> at(Path, Value);
        _ -> undefined
    end.
