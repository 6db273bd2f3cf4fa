%% libsodium by fair_offload, on messages of 16 bytes to 16 MB, beside its plain and its dirty form:
%% `bin/fairnif bench sodium' in fairnif's repository, which compiles this and nothing else does.
-module(sodium_bench).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [alone/2, merged/1, name/2]).

-define(ROUNDS, 21).
%% Of a batch of calls.
-define(BATCH_NS, 2000000).

%% @doc The run: `better' are the samples of the plain or the dirty form, whichever has the lower
%% median.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    Cases = [{F, 1 bsl Bits} || F <- [crypto_secretbox, crypto_box, randombytes],
                                Bits <- lists:seq(4, 24, 2)],
    [#{id => sodium, flags => two, needs => [{sodium, "sodium"}],
       about => "libsodium by fair_offload",
      samples => fun() -> merged([samples(F, S) || {F, S} <- Cases]) end,
      all => #{peer => "the better of plain and dirty",
               how => "mean of a batch of 2 ms; both schedulers awake between the calls"},
      rows => [(value(F, S, name("fair ~s ~b", [F, S]), name("better ~s ~b", [F, S])))
                   #{id => name("sodium-~s-~b", [F, S]),
                     what => name("~s, ~b bytes, by fair_offload", [F, S])} || {F, S} <- Cases]}].

%% Up to 256 bytes all but a box take under a microsecond: there it is the nanoseconds that count.
value(F, S, A, B) when F =/= crypto_box, S =< 256 ->
    #{value => {difference, A, B}, unit => ns, bound => {at_most, 100}};
value(_, _, A, B) ->
    #{value => {ratio, A, B}, unit => times, bound => {at_most, 1.1}}.

samples(Function, Size) ->
    Args = arguments(Function, Size),
    [Fair, Plain, Dirty] =
        [{name("~s ~s ~b", [Form, Function, Size]),
          {sodium, list_to_atom(lists:concat([Function, Suffix])), Args}}
         || {Form, Suffix} <- [{fair, ""}, {plain, "_b"}, {dirty, "_dirty"}]],
    %% As many as fill a batch, at least one.
    {Name, Call} = Plain,
    #{Name := [Ns]} = alone(1, [{Name, 1, Call}]),
    N = max(1, min(2000, round(?BATCH_NS / Ns))),
    Samples = alone(?ROUNDS, [{Form, N, MFA} || {Form, MFA} <- [Fair, Plain, Dirty]]),
    [A, B] = [maps:get(Form, Samples) || {Form, _} <- [Plain, Dirty]],
    Samples#{name("better ~s ~b", [Function, Size]) =>
                 case fairnif_check_stats:median(A) =< fairnif_check_stats:median(B) of
                     true -> A;
                     false -> B
                 end}.

arguments(randombytes, Size) ->
    [Size];
arguments(crypto_secretbox, Size) ->
    [rand:bytes(Size), rand:bytes(24), rand:bytes(32)];
arguments(crypto_box, Size) ->
    {Pk, Sk} = sodium:crypto_box_keypair(),
    [rand:bytes(Size), rand:bytes(24), Pk, Sk].
