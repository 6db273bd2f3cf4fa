%% What others feel: the lateness of a sleeper beside endless calls, and what
%% is left to busy Erlang processes.
-module(fairnif_bench_delay).

-export([flags/0, sleeper/0, auto_rule/0]).

-define(ROUNDS, 11).
-define(TIME_MS, 700).

%% The default busy wait: sleepers wake schedulers, as they do in a real node.
-spec flags() -> [string()].
flags() -> ["+S", "2:2", "+SDcpu", "2:2"].

%% @doc p99 (ns) beside nothing, 4 AUTO calls, 4 ordinary dirty NIFs.
-spec sleeper() -> fairnif_bench_series:samples().
sleeper() ->
    fairnif_bench_series:interleave(
      ?ROUNDS,
      [fun() -> [{Name, p99(fairnif_lab_delay:beside(Loads, #{time_ms => ?TIME_MS}))}] end
       || {Name, Loads} <-
              [{<<"idle">>, []},
               {<<"auto">>, loads(4, fun fairnif_bench_nif:auto_forever/1)},
               {<<"dirty">>, loads(4, fun fairnif_bench_nif:plain_dirty_forever/1)}]]).

%% @doc AUTO's rule for long work: K endless native calls and B busy Erlang
%% processes, in fair slices on normal schedulers and in slices of 1 ms on
%% dirty ones.
-spec auto_rule() -> fairnif_bench_series:samples().
auto_rule() ->
    Alone = native_alone(),
    maps:map(
      fun(_, Samples) -> Samples end,
      lists:foldl(
        fun({K, B}, Acc) ->
                Erlang = median_of([element(3, cell(0, none, B)) || _ <- [1, 2, 3]]),
                Case = fairnif_bench_series:interleave(
                         3, [fun() -> named(K, B, Name, Erlang, Alone,
                                            cell(K, Body, B))
                             end
                             || {Name, Body} <-
                                    [{"normal", fun fairnif_bench_nif:auto_forever/1},
                                     {"dirty",
                                      fun fairnif_bench_nif:yielding_dirty_forever/1}]]),
                maps:merge(Acc, Case)
        end, #{}, [{2, 0}, {4, 0}, {1, 2}, {2, 2}, {4, 4}, {16, 4}])).

named(K, B, Name, Erlang, Alone, {P99, Native, Rounds}) ->
    Series = fun(What) ->
                     iolist_to_binary(io_lib:format("~b,~b ~s ~s", [K, B, Name, What]))
             end,
    [{Series("p99"), P99},
     {Series("native"), Native / (2 * Alone)}
     | [{Series("erlang"), Rounds / Erlang} || B > 0]].

%% Rounds per second of one native call on an idle node.
native_alone() ->
    {_, Native, _} = cell(1, fun fairnif_bench_nif:auto_forever/1, 0),
    Native.

%% {p99 in ns, native rounds per second, rounds of Erlang work per second}
cell(K, Body, B) ->
    Slots = lists:seq(0, K - 1),
    [fairnif_bench_nif:clear_slot(N) || N <- Slots],
    Rounds = counters:new(1, [write_concurrency]),
    T0 = fairnif_bench_nif:now(),
    #{p99 := P99} = fairnif_lab_delay:beside(
                      loads(K, Body) ++ [fun() -> busy(Rounds) end || _ <- lists:seq(1, B)],
                      #{time_ms => ?TIME_MS}),
    Ns = fairnif_bench_nif:now() - T0,
    Native = lists:sum([element(1, fairnif_bench_nif:slot(N)) || N <- Slots]),
    Erlang = counters:get(Rounds, 1),
    %% Killed ones may need a slice, of which there are many, to end.
    timer:sleep(100),
    {P99, Native * 1.0e9 / Ns, Erlang * 1.0e9 / Ns}.

busy(Rounds) ->
    _ = fairnif_lab_share:work(sort),
    counters:add(Rounds, 1, 1),
    busy(Rounds).

loads(K, Body) ->
    [fun() -> Body(N) end || N <- lists:seq(0, K - 1)].

p99(#{p99 := P99}) ->
    timer:sleep(100),
    P99.

median_of(Samples) -> fairnif_lab_stats:median(Samples).
