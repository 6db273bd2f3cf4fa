%% Statistics over samples: pure functions, any unit in, the same unit out.
%%
%% Medians and percentiles rather than means: one sample that the operating
%% system disturbed must not move a result.
-module(fairnif_check_stats).

-export([median/1, percentile/2, spread/1, summary/1, mann_whitney/2, crossing/2]).

-export_type([summary/0]).

-type samples() :: [number()].
-type summary() :: #{count := non_neg_integer(),
                     total := number(),
                     shortest := number() | undefined,
                     median := number() | undefined,
                     p99 := number() | undefined,
                     longest := number() | undefined}.

%% @doc The middle sample; of an even number, the mean of the middle two.
%% Error `badarg' without samples.  Cost: one sort.
-spec median(samples()) -> number().
median([]) ->
    error(badarg);
median(Samples) ->
    Sorted = list_to_tuple(lists:sort(Samples)),
    Size = tuple_size(Sorted),
    Upper = element(Size div 2 + 1, Sorted),
    case Size rem 2 of
        1 -> Upper;
        0 -> mean(element(Size div 2, Sorted), Upper)
    end.

%% @doc The smallest sample that at least P per cent of the samples do not
%% exceed (nearest rank, so always a value that was measured); P from 0 to 100.
%% Error `badarg' without samples.  Cost: one sort.
-spec percentile(number(), samples()) -> number().
percentile(P, [_ | _] = Samples) when is_number(P), P >= 0, P =< 100 ->
    ranked(P, list_to_tuple(lists:sort(Samples)));
percentile(_, _) ->
    error(badarg).

%% @doc How far the samples lie apart: half the distance between the quartiles, as a fraction of the
%% median (0.05 reads "within 5 %").  0.0 for fewer than two samples or a median of 0.
-spec spread(samples()) -> float().
spread(Samples) when length(Samples) < 2 ->
    0.0;
spread(Samples) ->
    Sorted = list_to_tuple(lists:sort(Samples)),
    case median(Samples) of
        M when M == 0 -> 0.0;
        M -> abs((ranked(75, Sorted) - ranked(25, Sorted)) / 2 / M)
    end.

%% @doc All of it at once; `undefined' where no sample says anything.
-spec summary(samples()) -> summary().
summary([]) ->
    #{count => 0, total => 0, shortest => undefined, median => undefined,
      p99 => undefined, longest => undefined};
summary(Samples) ->
    #{count => length(Samples), total => lists:sum(Samples),
      shortest => lists:min(Samples), median => median(Samples),
      p99 => percentile(99, Samples), longest => lists:max(Samples)}.

%% @doc Do the one tend to be greater than the other? The chance (two-sided) that
%% samples of one kind would look at least as different: Mann and Whitney's U, by
%% the normal approximation, corrected for ties and for continuity; good from
%% about six samples a side.  It asks nothing of how they are distributed.  Error
%% `badarg' without samples.  Cost: one sort of all.
-spec mann_whitney(samples(), samples()) -> float().
mann_whitney([_ | _] = As, [_ | _] = Bs) ->
    N = length(As),
    M = length(Bs),
    {RankSum, Ties} = ranks(lists:sort([{V, a} || V <- As] ++ [{V, b} || V <- Bs]), 1, 0, 0),
    U = RankSum - N * (N + 1) / 2,
    T = N + M,
    Variance = N * M / 12 * (T + 1 - Ties / (T * (T - 1))),
    case Variance > 0 of
        false ->
            1.0;                            % all samples are equal
        true ->
            Z = max(0, abs(U - N * M / 2) - 0.5) / math:sqrt(Variance),
            math:erfc(Z / math:sqrt(2))
    end;
mann_whitney(_, _) ->
    error(badarg).

%% The sum of the ranks of the a's, equal samples having the mean of their ranks,
%% and the sum of T^3 - T over groups of T equal samples.
ranks([], _, Sum, Ties) ->
    {Sum, Ties};
ranks([{V, _} | _] = Sorted, Rank, Sum, Ties) ->
    {Equal, Rest} = lists:splitwith(fun({W, _}) -> W == V end, Sorted),
    T = length(Equal),
    Mean = Rank + (T - 1) / 2,
    ranks(Rest, Rank + T, Sum + Mean * length([a || {_, a} <- Equal]), Ties + T * T * T - T).

%% @doc Where a rising curve, given as points, reaches a height: between two points along the
%% straight line of their logarithms, so that a cost that grows with a power of the size is read
%% exactly.  `below' the first point, `above' the last.  All numbers above 0, points in order of X;
%% of a curve that wavers the first crossing.
-spec crossing(number(), [{X :: number(), Y :: number()}, ...]) -> float() | below | above.
crossing(Y, [{_, Y0} | _]) when Y < Y0 -> below;
crossing(Y, [{X0, Y0} | _]) when Y == Y0 -> float(X0);
crossing(Y, Points) -> between(Y, Points).

between(Y, [{X0, Y0}, {X1, Y1} | _]) when Y0 < Y, Y =< Y1 ->
    X0 * math:pow(X1 / X0, math:log(Y / Y0) / math:log(Y1 / Y0));
between(Y, [_ | [_ | _] = Points]) -> between(Y, Points);
between(_, [_]) -> above.

ranked(P, Sorted) ->
    Rank = ceil(P * tuple_size(Sorted) / 100),
    element(max(1, Rank), Sorted).

mean(A, A) ->
    A;
mean(A, B) ->
    (A + B) / 2.
