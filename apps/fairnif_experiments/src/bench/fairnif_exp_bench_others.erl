%% What others feel: the lateness of a sleeper beside endless calls, and what is left to busy Erlang
%% processes.
-module(fairnif_exp_bench_others).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [interleave/2, late/3, merged/1, name/2]).

-define(NIF, fairnif_exp_nif).
-define(ROUNDS, 11).
-define(FEW_ROUNDS, 7).
-define(TIME_MS, 700).
%% Killed ones may need a slice, of which there are many, to end.
-define(END_MS, 100).
-define(JOBS, 1000).
-define(JOB_MS, 100).

%% @doc The runs.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [delay(), share(), jobs(), auto_rule()].

%% The default busy wait: sleepers wake schedulers, as they do in a real node.
delay() ->
    #{id => delay, flags => two, about => "wake-up delays",
      samples => fun() ->
                         Loads = [{<<"idle">>, []},
                                  {<<"auto">>, loads(4, fun ?NIF:auto_forever/1)},
                                  {<<"dirty">>, loads(4, fun ?NIF:plain_dirty_forever/1)}],
                         interleave(?ROUNDS, [late(Name, Load, ?END_MS) || {Name, Load} <- Loads])
                 end,
      all => #{what => "wake-up delay beside 4 AUTO calls", unit => times,
               how => "p99 lateness of a 1 ms sleeper beside 4 endless calls, 2 schedulers"},
      rows => [#{id => <<"delay-idle">>, peer => "idle", bound => {at_most, 1.2},
                 value => {ratio, <<"auto">>, <<"idle">>}},
               #{id => <<"delay-dirty">>, peer => "4 dirty NIFs (delay of it)",
                 bound => {at_least, 4}, value => {speed, <<"auto">>, <<"dirty">>}}]}.

loads(K, Body) ->
    [fun() -> Body(N) end || N <- lists:seq(0, K - 1)].

share() ->
    Mixes = [long_sort | fairnif_check_share:mixes()],
    #{id => share, flags => fairnif_check_share:flags(), about => "a neighbour's share",
      needs => [{levenshtein, "levenshtein"}],
      samples => fun() ->
                         Strings = [binary:copy(<<"a">>, 12000), binary:copy(<<"b">>, 12000)],
                         interleave(?ROUNDS, [fun() -> left(Mix, Strings) end || Mix <- Mixes])
                 end,
      all => #{peer => "the neighbour alone", unit => percent, bound => {at_least, 0.4},
               how => "rounds of work beside NORMAL levenshtein of 12,000 bytes, one scheduler"},
      rows => [#{id => name("share-~s", [Mix]), value => {value, atom_to_binary(Mix)},
                 what => name("share of a busy neighbour (~s)", [Mix])} || Mix <- Mixes]}.

left(Mix, Strings) ->
    {M, F} = {levenshtein, yielding_levenshtein},
    {ok, #{share := Share}} =
        fairnif_check_share:measure(fun() -> apply(M, F, Strings) end,
                                  #{mix => Mix, time_ms => 500, alone_ms => 150}),
    [{atom_to_binary(Mix), Share}].

%% A thousand jobs that each wait 100 ms on the pool's threads, again and again.  What a killed
%% caller has begun ends first.
jobs() ->
    #{id => jobs, flags => two, about => "a thousand jobs that wait",
      samples => fun() ->
                         Wait = fun() -> ?NIF:offload_sleep(?JOB_MS) end,
                         Job = fun() -> fairnif_exp:forever(Wait) end,
                         interleave(?FEW_ROUNDS,
                                    [late(Name, Loads, 2 * ?JOB_MS)
                                     || {Name, Loads} <- [{<<"idle">>, []},
                                                          {<<"offloaded">>,
                                                           lists:duplicate(?JOBS, Job)}]])
                 end,
      rows => [#{id => <<"jobs-delay">>, peer => "idle", unit => times, bound => {at_most, 2},
                 what => "wake-up delay beside 1,000 jobs that wait 100 ms",
                 value => {ratio, <<"offloaded">>, <<"idle">>},
                 how => "p99 lateness of a 1 ms sleeper beside 1,000 callers of fair_offload on "
                        "threads, 2 schedulers"}]}.

%% ---- AUTO's rule for long work ----

%% K endless native calls and B busy Erlang processes, in fair slices on normal schedulers and in
%% slices of 1 ms on dirty ones.
auto_rule() ->
    Cases = [{2, 0}, {4, 0}, {1, 2}, {2, 2}, {4, 4}, {16, 4}],
    #{id => auto_rule, flags => two, extra => true,
      about => "long work on normal and dirty schedulers",
      samples => fun() ->
                         {_, Alone, _} = cell(1, fun ?NIF:auto_forever/1, 0),
                         merged([rule(K, B, Alone) || {K, B} <- Cases])
                 end,
      all => #{how => "K native calls that never end beside B busy Erlang processes, 2 schedulers; "
                      "fair slices on normal schedulers, slices of 1 ms on dirty ones"},
      rows => [#{id => name("auto-rule-~b-~b-~s-~s", [K, B, Figure, Form]),
                 what => name("~s: ~b native, ~b Erlang, ~s", [What, K, B, Form]),
                 peer => Peer, unit => Unit, value => {value, rule_name(K, B, Form, Figure)}}
               || {K, B} <- Cases,
                  {Figure, What, Peer, Unit} <-
                      [{"p99", "p99 lateness of a 1 ms sleeper", "", ns}]
                      ++ [{"erlang", "Erlang work left", "the same processes alone", percent}
                          || B > 0]
                      ++ [{"native", "native work", "two schedulers with a task each", percent}],
                  Form <- ["normal", "dirty"]]}.

rule(K, B, Alone) ->
    Erlang = fairnif_check_stats:median([element(3, cell(0, none, B)) || _ <- [1, 2, 3]]),
    interleave(3, [fun() ->
                           {P99, Native, Rounds} = cell(K, Body, B),
                           [{rule_name(K, B, Form, "p99"), P99},
                            {rule_name(K, B, Form, "native"), Native / (2 * Alone)}
                            | [{rule_name(K, B, Form, "erlang"), Rounds / Erlang} || B > 0]]
                   end || {Form, Body} <- [{"normal", fun ?NIF:auto_forever/1},
                                           {"dirty", fun ?NIF:yielding_dirty_forever/1}]]).

rule_name(K, B, Form, Figure) ->
    name("~b,~b ~s ~s", [K, B, Form, Figure]).

%% {p99 in ns, native rounds per second, rounds of Erlang work per second}
cell(K, Body, B) ->
    Slots = lists:seq(0, K - 1),
    [?NIF:clear_slot(N) || N <- Slots],
    Rounds = counters:new(1, [write_concurrency]),
    Busy = fun() -> fairnif_check_share:work(sort), counters:add(Rounds, 1, 1) end,
    T0 = ?NIF:now(),
    #{p99 := P99} = fairnif_check_delay:beside(
                      loads(K, Body) ++ lists:duplicate(B, fun() -> fairnif_exp:forever(Busy) end),
                      #{time_ms => ?TIME_MS}),
    Ns = ?NIF:now() - T0,
    Native = lists:sum([element(1, ?NIF:slot(N)) || N <- Slots]),
    Erlang = counters:get(Rounds, 1),
    timer:sleep(?END_MS),
    {P99, Native * 1.0e9 / Ns, Erlang * 1.0e9 / Ns}.
