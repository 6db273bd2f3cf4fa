%% fair_call beside plain and dirty NIFs: libsodium on messages of 16 bytes to
%% 16 MB, where a call costs from half a microsecond to a tenth of a second.
%%
%% Wall time: a dirty call takes two threads.
-module(fairnif_bench_sodium).

-export([run/0, sizes/0, functions/0]).

-import(fairnif_bench_series, [interleave/2, timed_loop/3]).

-define(ROUNDS, 21).
-define(BATCH_NS, 2000000).

-spec sizes() -> [pos_integer()].
sizes() ->
    [1 bsl Bits || Bits <- lists:seq(4, 24, 2)].

-spec functions() -> [atom()].
functions() ->
    [crypto_secretbox, crypto_box, randombytes].

%% @doc Samples of the forms `fair', `plain' and `dirty' of each function at
%% each size; `better' are those of the plain or the dirty form, whichever has
%% the lower median.
-spec run() -> fairnif_bench_series:samples().
run() ->
    case code:ensure_loaded(sodium) of
        {module, sodium} ->
            fairnif_bench_calls:alone(
              fun() ->
                      lists:foldl(fun maps:merge/2, #{},
                                  [series(F, S) || F <- functions(), S <- sizes()])
              end);
        {error, _} ->
            exit('examples/sodium is not built: install libsodium-dev, run make examples')
    end.

series(Function, Size) ->
    Message = rand:bytes(Size),
    Nonce = rand:bytes(24),
    {Pk, Sk} = sodium:crypto_box_keypair(),
    Key = rand:bytes(32),
    Forms = [{Form, loop(Function, Form, Message, Nonce, {Key, Pk, Sk})}
             || Form <- [fair, plain, dirty]],
    N = calls(proplists:get_value(plain, Forms)),
    Samples = interleave(?ROUNDS,
                         [fun() -> timed_loop(name(Form, Function, Size), N, Loop) end
                          || {Form, Loop} <- Forms]),
    Samples#{name(better, Function, Size) =>
                 better(maps:get(name(plain, Function, Size), Samples),
                        maps:get(name(dirty, Function, Size), Samples))}.

better(A, B) ->
    case fairnif_lab_stats:median(A) =< fairnif_lab_stats:median(B) of
        true -> A;
        false -> B
    end.

%% As many as fill a batch, at least one.
calls(Loop) ->
    [{_, Ns}, _] = timed_loop(<<>>, 1, Loop),
    max(1, min(2000, round(?BATCH_NS / Ns))).

name(Form, Function, Size) ->
    iolist_to_binary(io_lib:format("~s ~s ~b", [Form, Function, Size])).

%% A loop that makes no call but the one it is for.
-define(LOOP(Name, Call), Name(0, _, _, _) -> ok;
                          Name(N, M, Nonce, K) -> _ = Call, Name(N - 1, M, Nonce, K)).

?LOOP(secretbox, sodium:crypto_secretbox(M, Nonce, element(1, K))).
?LOOP(secretbox_b, sodium:crypto_secretbox_b(M, Nonce, element(1, K))).
?LOOP(secretbox_dirty, sodium:crypto_secretbox_dirty(M, Nonce, element(1, K))).
?LOOP(box, sodium:crypto_box(M, Nonce, element(2, K), element(3, K))).
?LOOP(box_b, sodium:crypto_box_b(M, Nonce, element(2, K), element(3, K))).
?LOOP(box_dirty, sodium:crypto_box_dirty(M, Nonce, element(2, K), element(3, K))).
?LOOP(random, sodium:randombytes(byte_size(M))).
?LOOP(random_b, sodium:randombytes_b(byte_size(M))).
?LOOP(random_dirty, sodium:randombytes_dirty(byte_size(M))).

loop(Function, Form, Message, Nonce, Keys) ->
    Loop = case {Function, Form} of
               {crypto_secretbox, fair} -> fun secretbox/4;
               {crypto_secretbox, plain} -> fun secretbox_b/4;
               {crypto_secretbox, dirty} -> fun secretbox_dirty/4;
               {crypto_box, fair} -> fun box/4;
               {crypto_box, plain} -> fun box_b/4;
               {crypto_box, dirty} -> fun box_dirty/4;
               {randombytes, fair} -> fun random/4;
               {randombytes, plain} -> fun random_b/4;
               {randombytes, dirty} -> fun random_dirty/4
           end,
    fun(N) -> Loop(N, Message, Nonce, Keys) end.
