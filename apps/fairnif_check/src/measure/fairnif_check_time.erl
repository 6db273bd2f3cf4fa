%% How long a call takes and how many reductions it is charged. Nothing is traced meanwhile.
%%
%% Functions that are compared take turns, so that what disturbs the machine disturbs both. The
%% loop's own cost, measured beside with a function that does nothing, is taken off.
-module(fairnif_check_time).

-export([measure/2, erlang/0]).

-export_type([options/0, result/0]).

-type options() :: #{time_ms => pos_integer(),          % for all functions together; default 1000
                     runs => pos_integer(),             % batches of each; default: what time allows
                     idle => fun(() -> term())}.        % does nothing; default: nothing taken off
%% Per call: ns of wall time, and reductions. `mean' and `per_call' belong together, and leave out
%% the longest tenth of the batches, as those may be the machine's doing: for what is charged the
%% median will not do, since a function may be short four times and long the fifth.
-type result() :: #{time := #{count := pos_integer(), median := number(), mean := number(),
                              spread := float(), shortest := number(), samples := [number()]},
                    per_call := number()}.

%% A batch is so long that reading the clock costs nothing that matters, and so short that most are
%% not interrupted.
-define(BATCH_NS, 200000).
-define(MOST_SAMPLES, 1000).
-define(LEAST, 3).
%% Beyond the least number of batches none is begun that would end after this many times the time.
-define(PATIENCE, 3).

%% @doc Measures each of the functions. Takes `time_ms', and longer where three calls do.
-spec measure([fun(() -> term())], options()) -> [result()].
measure(Funs, Opts) ->
    Idle = case Opts of
               #{idle := Nothing} -> batches([prepared(Nothing)], until(50), 1000);
               _ -> [[{0, 0}]]
           end,
    {IdleNs, IdleReds} = hd([{fairnif_check_stats:median([Ns || {Ns, _} <- S]),
                              fairnif_check_stats:median([R || {_, R} <- S])} || S <- Idle]),
    Runs = maps:get(runs, Opts, ?MOST_SAMPLES),
    Samples = batches([prepared(F) || F <- Funs], until(maps:get(time_ms, Opts, 1000)), Runs),
    [result([{max(0, Ns - IdleNs), max(0, R - IdleReds)} || {Ns, R} <- S]) || S <- Samples].

result(Pairs) ->
    Ns = [T || {T, _} <- Pairs],
    Count = length(Pairs),
    Kept = lists:sublist(lists:sort(Pairs), Count - Count div 10),
    #{time => #{count => Count, median => fairnif_check_stats:median(Ns),
                mean => lists:sum([T || {T, _} <- Kept]) / length(Kept),
                spread => fairnif_check_stats:spread(Ns), shortest => lists:min(Ns),
                samples => Ns},
      per_call => lists:sum([R || {_, R} <- Kept]) / length(Kept)}.

%% The first call of a function may load code or allocate what stays: it is not counted.
prepared(Fun) ->
    _ = batch(Fun, 1),
    {Ns, _} = batch(Fun, 1),
    {Fun, size_of_batch(Fun, max(1, Ns))}.

size_of_batch(_, Ns) when Ns >= ?BATCH_NS -> 1;
size_of_batch(Fun, Ns) ->
    Guess = max(2, trunc(?BATCH_NS / Ns)),
    {PerCall, _} = batch(Fun, Guess),
    max(1, round(?BATCH_NS / max(1, PerCall))).

until(Ms) ->
    Now = now_ns(),
    {Now + Ms * 1000000, Now + ?PATIENCE * Ms * 1000000}.

batches(Prepared, Until, Runs) ->
    rounds(Prepared, Until, 0, Runs, [[] || _ <- Prepared]).

rounds(Prepared, {Soon, Late} = Until, Done, Runs, Acc) ->
    Now = now_ns(),
    Enough = Done >= Runs orelse Now > Late andalso Done > 0
        orelse Now > Soon andalso Done >= ?LEAST,
    case Enough of
        true ->
            [lists:reverse(S) || S <- Acc];
        false ->
            Acc1 = lists:zipwith(fun({Fun, Size}, S) -> [batch(Fun, Size) | S] end,
                                 Prepared, Acc),
            rounds(Prepared, Until, Done + 1, Runs, Acc1)
    end.

%% {Ns, Reductions} of one call. Results, which can be huge, are collected outside.
batch(Fun, Size) ->
    Me = self(),
    {reductions, R0} = process_info(Me, reductions),
    T0 = now_ns(),
    repeat(Fun, Size),
    T1 = now_ns(),
    {reductions, R1} = process_info(Me, reductions),
    erlang:garbage_collect(),
    {(T1 - T0) / Size, (R1 - R0) / Size}.

repeat(_, 0) -> ok;
repeat(Fun, N) ->
    _ = Fun(),
    repeat(Fun, N - 1).

%% @doc Reductions per millisecond of ordinary Erlang, by kind of work: the yardstick for what a
%% native function is charged. Takes 0.1 s.
-spec erlang() -> #{fairnif_check_share:mix() => float()}.
erlang() ->
    maps:from_list(
      [begin
           [#{time := #{mean := Ns}, per_call := Reductions}] =
               measure([fun() -> fairnif_check_share:work(Mix) end], #{time_ms => 30}),
           {Mix, Reductions * 1.0e6 / Ns}
       end || Mix <- fairnif_check_share:mixes()]).

now_ns() ->
    erlang:monotonic_time(nanosecond).
