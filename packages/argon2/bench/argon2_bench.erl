%% libargon2 on a thread of the pool, beside the same on dirty schedulers: what sleepers and Erlang
%% work have of it, and hashes a second. `bin/fairnif bench argon2' in fairnif's repository, which
%% compiles this and nothing else does. With the emulator's default flags, as users run it.
-module(argon2_bench).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [interleave/2, late/3, merged/1, name/2]).

-define(ROUNDS, 7).
%% A tenth of a second each.
-define(OPTIONS, #{memory_kib => 32768, passes => 3, lanes => 1}).
-define(WORK_MS, 700).
%% For what has begun to end.
-define(END_MS, 400).

-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [#{id => argon2, flags => [], needs => [{argon2, "argon2"}],
       about => "libargon2 on a thread",
       samples => fun samples/0,
       all => #{how => "4 callers that hash without end; default flags"},
       rows => [#{id => <<"argon2-late">>, what => "sleeper of 1 ms beside hashes, p99",
                  peer => "idle", value => {ratio, <<"late thread">>, <<"late idle">>},
                  unit => times, bound => {at_most, 2}},
                #{id => <<"argon2-late-dirty">>, what => "the same, dirty NIFs", peer => "idle",
                  value => {ratio, <<"late dirty">>, <<"late idle">>}, unit => times},
                #{id => <<"argon2-erlang">>, what => "Erlang work beside hashes", peer => "idle",
                  value => {ratio, <<"work thread">>, <<"work idle">>}, unit => times,
                  bound => {at_least, 0.85}},
                #{id => <<"argon2-erlang-dirty">>, what => "the same, dirty NIFs", peer => "idle",
                  value => {ratio, <<"work dirty">>, <<"work idle">>}, unit => times},
                #{id => <<"argon2-rate">>, what => "a hash, one caller", peer => "dirty NIF",
                  how => "nothing else runs", value => {ratio, <<"hash thread">>, <<"hash dirty">>},
                  unit => times, bound => {at_most, 1.1}}]}].

samples() ->
    Forms = [{idle, []},
             {thread, callers(fun(P) -> argon2:hash(P, ?OPTIONS) end)},
             {dirty, callers(fun(P) -> argon2:hash_dirty(P, ?OPTIONS) end)}],
    merged([interleave(?ROUNDS, [late(name("late ~s", [F]), Loads, ?END_MS)
                                 || {F, Loads} <- Forms]),
            interleave(?ROUNDS, [work(name("work ~s", [F]), Loads) || {F, Loads} <- Forms]),
            fairnif_exp_series:alone(
              ?ROUNDS, [{name("hash ~s", [F]), 1, {argon2, Function, [<<"p">>, ?OPTIONS]}}
                        || {F, Function} <- [{thread, hash}, {dirty, hash_dirty}]])]).

callers(Hash) ->
    [fun() -> fairnif_exp:forever(fun() -> Hash(<<"p">>) end) end || _ <- [1, 2, 3, 4]].

work(Name, Loads) ->
    fun() ->
            Pids = [spawn(Load) || Load <- Loads],
            Done = fairnif_exp:work(?WORK_MS),
            [exit(P, kill) || P <- Pids],
            timer:sleep(?END_MS),
            [{Name, Done}]
    end.
