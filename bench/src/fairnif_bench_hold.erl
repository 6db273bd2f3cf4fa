%% How long one slice holds a normal scheduler, in CPU time of its thread.
%%
%% The runtime measures it itself (`measure_cpu'); the probe measures it from
%% within the body, as a check on the runtime.
-module(fairnif_bench_hold).

-export([flags/0, run/0, slices/2]).

-define(ROUNDS, 11).
%% Rounds of work between two ticks: 1 and 4.5 us.
-define(STEP, 700).
-define(LONG_STEP, 3000).

-spec flags() -> [string()].
flags() -> fairnif_bench_calls:flags().

-spec run() -> {fairnif_bench_series:samples(), map()}.
run() ->
    ok = code:ensure_modules_loaded([levenshtein, fairnif_bench_nif]),
    {A, B} = {binary:copy(<<"a">>, 12000), binary:copy(<<"b">>, 12000)},
    Bodies =
        [{<<"levenshtein yielding">>, {levenshtein, yielding_levenshtein, 2}, [A, B]},
         {<<"levenshtein auto">>, {levenshtein, levenshtein, 2}, [A, B]},
         {<<"spin yielding">>, {fairnif_bench_nif, yielding_spin, 2}, [40000000, ?STEP]},
         {<<"spin auto">>, {fairnif_bench_nif, auto_spin, 2}, [40000000, ?LONG_STEP]}],
    Samples = fairnif_bench_series:interleave(
                ?ROUNDS,
                [fun() -> [{Name, slices(MFA, fun() -> apply(M, F, Args) end)}] end
                 || {Name, {M, F, _} = MFA, Args} <- Bodies]
                ++ [fun() -> [{<<"probe yielding">>,
                               times(fairnif_bench_nif:yielding_probe(1000, ?STEP))}] end,
                    fun() -> [{<<"probe auto">>,
                               times(fairnif_bench_nif:auto_probe(1000, ?STEP))}] end]),
    {Samples, maps:with([slice_ns], fairnif:info())}.

%% @doc The slices of a fair function during Fun, as the runtime's histogram
%% has them: up to that many ns, so many.
-spec slices(mfa(), fun(() -> term())) -> [{pos_integer(), pos_integer()}].
slices(MFA, Fun) ->
    Before = histogram(MFA),
    fairnif:debug(#{measure_cpu => true}),
    _ = Fun(),
    fairnif:debug(#{measure_cpu => false}),
    [{Ns, Count - maps:get(Ns, Before, 0)}
     || {Ns, Count} <- maps:to_list(histogram(MFA)),
        Count > maps:get(Ns, Before, 0)].

histogram(MFA) ->
    maps:from_list(maps:get(slice_histogram, fairnif:info(MFA))).

times(Binary) ->
    [{Ns, 1} || <<Ns:64/native>> <= Binary].
