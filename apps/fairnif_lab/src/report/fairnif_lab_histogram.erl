%% Histograms with bins of one width: pure functions, any unit in, the same out.
-module(fairnif_lab_histogram).

-export([new/3, humps/2, over/2]).

-export_type([histogram/0]).

%% `counts': of each bin from 0 on, bin N holding N * width =< sample <
%% (N + 1) * width; samples below 0 count in the first.  `over': at or above the
%% limit.
-type histogram() :: #{width := pos_integer(), counts := [non_neg_integer()],
                       over := non_neg_integer(), total := non_neg_integer()}.

%% @doc The histogram of samples in bins of Width up to Limit, a multiple of it.
%% Cost: one pass.
-spec new([number()], pos_integer(), pos_integer()) -> histogram().
new(Samples, Width, Limit) when Limit rem Width =:= 0 ->
    Bins = Limit div Width,
    Counts = lists:foldl(fun(S, Acc) ->
                                 Bin = min(Bins, max(0, floor(S / Width))),
                                 Acc#{Bin => maps:get(Bin, Acc, 0) + 1}
                         end, #{}, Samples),
    #{width => Width, counts => [maps:get(N, Counts, 0) || N <- lists:seq(0, Bins - 1)],
      over => maps:get(Bins, Counts, 0), total => length(Samples)}.

%% @doc Where the histogram has humps: the lower ends of the bins that are higher
%% than the one before, not lower than the one after, and hold at least this
%% fraction of all samples; what is over the limit is none.
-spec humps(histogram(), float()) -> [non_neg_integer()].
humps(#{width := Width, counts := Counts, total := Total}, Least) ->
    Triples = lists:zip3([0 | lists:droplast(Counts)], Counts, tl(Counts) ++ [0]),
    [N * Width || {N, {Before, Count, After}} <- lists:zip(lists:seq(0, length(Counts) - 1),
                                                           Triples),
                  Count > Before, Count >= After, Count >= Least * Total].

%% @doc The fraction of the samples at or above At, a multiple of the width within
%% the limit; 0.0 without samples.
-spec over(histogram(), non_neg_integer()) -> float().
over(#{total := 0}, _) ->
    0.0;
over(#{width := Width, counts := Counts, over := Over, total := Total}, At) ->
    (Over + lists:sum(lists:nthtail(At div Width, Counts))) / Total.
