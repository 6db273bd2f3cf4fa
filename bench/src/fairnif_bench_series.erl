%% Samples: how they are taken, and what they say.
%%
%% Contestants take turns, A B C, C B A, A B C, ..., so that a machine that
%% gets slower or busier meanwhile does so for all of them, and samples of the
%% same round are compared with each other.
-module(fairnif_bench_series).

-export([interleave/2, timed/2, timed_loop/3, repeat/2]).
-export([estimate/1, pooled_p99/1]).

-export_type([name/0, sample/0, samples/0, estimate/0]).

-type name() :: binary().
%% A number, or a distribution: how many times each value was met.
-type sample() :: number() | [{number(), pos_integer()}].
-type samples() :: #{name() => [sample()]}.
-type estimate() :: #{value := number(),        % the median
                      low := number(), high := number(),    % quartiles
                      sure_low := number(), sure_high := number(),
                                                % 95 % interval of the median
                      count := pos_integer()}.

%% @doc Runs every contestant once unrecorded, then `Rounds' times.  A
%% contestant returns its samples of that round by name.
-spec interleave(pos_integer(), [fun(() -> [{name(), sample()}])]) -> samples().
interleave(Rounds, Contestants) ->
    _ = [Run() || Run <- Contestants],
    lists:foldr(fun({Name, Sample}, Acc) ->
                        maps:update_with(Name, fun(S) -> [Sample | S] end,
                                         [Sample], Acc)
                end, #{}, rounds(Rounds, Contestants)).

rounds(0, _) ->
    [];
rounds(N, Contestants) ->
    Samples = lists:append([Run() || Run <- Contestants]),
    Samples ++ rounds(N - 1, lists:reverse(Contestants)).

%% @doc Wall and CPU time of one call, ns, under `Name' and `Name cpu'.  Waste
%% is collected before, and after, outside the time.  CPU time is that of the
%% caller's thread: it means something in a node with one scheduler.
-spec timed(name(), fun(() -> term())) -> [{name(), number()}].
timed(Name, Fun) ->
    timed_loop(Name, 1, fun(1) -> Fun() end).

%% @doc The same per call, for `Loop(N)' that makes N of them.
-spec timed_loop(name(), pos_integer(), fun((pos_integer()) -> term())) ->
          [{name(), number()}].
timed_loop(Name, N, Loop) ->
    erlang:garbage_collect(),
    C0 = fairnif_bench_nif:cpu(),
    T0 = fairnif_bench_nif:now(),
    _ = Loop(N),
    T1 = fairnif_bench_nif:now(),
    C1 = fairnif_bench_nif:cpu(),
    erlang:garbage_collect(),
    [{Name, (T1 - T0) / N}, {<<Name/binary, " cpu">>, (C1 - C0) / N}].

%% @doc Calls Fun N times.
-spec repeat(non_neg_integer(), fun(() -> term())) -> ok.
repeat(0, _) -> ok;
repeat(N, Fun) -> _ = Fun(), repeat(N - 1, Fun).

%% @doc The median with its quartiles and the interval that holds the true
%% median in 95 of 100 runs (order statistics; nothing is assumed about the
%% distribution).
-spec estimate([number(), ...]) -> estimate().
estimate(Samples) ->
    Sorted = list_to_tuple(lists:sort(Samples)),
    N = tuple_size(Sorted),
    Rank = max(1, floor(N / 2 - 0.98 * math:sqrt(N))),
    #{value => fairnif_lab_stats:median(Samples),
      low => fairnif_lab_stats:percentile(25, Samples),
      high => fairnif_lab_stats:percentile(75, Samples),
      sure_low => element(Rank, Sorted),
      sure_high => element(N + 1 - Rank, Sorted),
      count => N}.

%% @doc The 99th percentile of all that the distributions hold; its spread is
%% that of theirs.  An empty one (a round in which AUTO went to dirty schedulers
%% has no normal slices) says nothing.
-spec pooled_p99([[{number(), pos_integer()}]]) -> estimate().
pooled_p99(All) ->
    [_ | _] = Distributions = [D || [_ | _] = D <- All],
    (estimate([p99(D) || D <- Distributions]))
        #{value := p99(lists:append(Distributions)),
          count := lists:sum([C || {_, C} <- lists:append(Distributions)])}.

p99(Distribution) ->
    Sorted = lists:keysort(1, Distribution),
    rank(ceil(0.99 * lists:sum([C || {_, C} <- Sorted])), Sorted).

rank(Rank, [{Value, Count} | _]) when Rank =< Count -> Value;
rank(Rank, [{_, Count} | Rest]) -> rank(Rank - Count, Rest).
