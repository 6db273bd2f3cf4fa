%% Threads: what a round trip to the runtime's pool costs beside a thread made for the
%% call, and what others feel of a thousand jobs that wait there.
-module(fairnif_bench_threads).

-export([flags/0, round_trip/0, delay/0]).

-define(ROUNDS, 21).
-define(CALLS, 2000).
-define(DELAY_ROUNDS, 7).
-define(TIME_MS, 700).
-define(JOBS, 1000).
-define(JOB_MS, 100).

-spec flags() -> [string()].
flags() -> ["+S", "2:2", "+SDcpu", "2:2"].

%% @doc Ns of an empty call: THREADED, and by a thread that is created, answers and is joined.
-spec round_trip() -> fairnif_bench_series:samples().
round_trip() ->
    fairnif_bench_series:interleave(
      ?ROUNDS,
      [fun() -> fairnif_bench_series:timed_loop(Name, ?CALLS, Loop) end
       || {Name, Loop} <- [{<<"threaded">>, fun threaded/1},
                           {<<"thread per call">>, fun per_call/1}]]).

threaded(0) -> ok;
threaded(N) -> _ = fairnif_bench_nif:threaded_noop(N), threaded(N - 1).

per_call(0) -> ok;
per_call(N) -> _ = fairnif_bench_nif:thread_noop(N), per_call(N - 1).

%% @doc p99 (ns) of a sleeper of 1 ms, beside nothing and beside a thousand jobs that each wait
%% 100 ms on the pool's threads, again and again.
-spec delay() -> fairnif_bench_series:samples().
delay() ->
    fairnif_bench_series:interleave(
      ?DELAY_ROUNDS,
      [fun() ->
               #{p99 := P99} = fairnif_lab_delay:beside(Loads, #{time_ms => ?TIME_MS}),
               %% What a killed caller has begun ends first.
               timer:sleep(2 * ?JOB_MS),
               [{Name, P99}]
       end || {Name, Loads} <- [{<<"idle">>, []},
                                {<<"offloaded">>, lists:duplicate(?JOBS, fun jobs/0)}]]).

jobs() ->
    _ = fairnif_bench_nif:offload_sleep(?JOB_MS),
    jobs().
