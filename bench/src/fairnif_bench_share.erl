%% What a NORMAL call leaves to a busy Erlang neighbour on one scheduler.
-module(fairnif_bench_share).

-export([flags/0, run/0, mixes/0]).

-define(ROUNDS, 11).

-spec flags() -> [string()].
flags() -> fairnif_lab_share:flags().

-spec run() -> fairnif_bench_series:samples().
run() ->
    {A, B} = {binary:copy(<<"a">>, 12000), binary:copy(<<"b">>, 12000)},
    fairnif_bench_series:interleave(
      ?ROUNDS,
      [fun() -> share(Mix, fun() -> levenshtein:yielding_levenshtein(A, B) end) end
       || Mix <- mixes()]).

-spec mixes() -> [fairnif_lab_share:mix(), ...].
mixes() ->
    [long_sort | fairnif_lab_share:mixes()].

share(Mix, Fun) ->
    {ok, #{share := Share}} =
        fairnif_lab_share:measure(Fun, #{mix => Mix, time_ms => 500, alone_ms => 150}),
    [{atom_to_binary(Mix), Share}].
