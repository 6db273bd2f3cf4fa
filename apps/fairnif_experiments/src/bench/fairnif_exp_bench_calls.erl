%% Run times of calls, fair beside plain: in a node with one scheduler CPU time of its thread, in
%% one with two, where dirty calls are warm, wall time.
-module(fairnif_exp_bench_calls).
-behaviour(fairnif_exp_bench).

-export([runs/0]).
-export([in_fresh_node/0]).

-import(fairnif_exp_series, [alone/2, compare/2, merged/1, name/2, random_bytes/2]).

-define(NIF, fairnif_exp_nif).
-define(ROUNDS, 21).
%% Large calls take a second.
-define(FEW_ROUNDS, 11).
-define(NODES, 20).
-define(LOOP, "mean of a loop of calls in compiled Erlang code, loop included; ").
-define(CPU, "time of a call, in one process of a node with one scheduler; CPU time of its thread, "
        "so without what the operating system gave to other programs").

%% @doc The runs.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [noop(), levenshtein(), fresh(), large(), exor(), move(), threads()].

noop() ->
    #{id => noop, flags => two, about => "calls that do nothing",
      samples => fun() ->
                         Calls = [{<<"plain">>, 500000, noop}, {<<"auto">>, 500000, auto_noop},
                                  {<<"dirty">>, 10000, dirty_noop}],
                         alone(?ROUNDS, [{Name, N, {?NIF, F, [ok]}} || {Name, N, F} <- Calls])
                 end,
      all => #{unit => ns, how => ?LOOP},
      rows =>
          [#{id => <<"noop-auto">>, what => "AUTO call that does nothing", peer => "a plain NIF",
             value => {difference, <<"auto">>, <<"plain">>}, clock => cpu, bound => {at_most, 60},
             how => ?LOOP "500,000 calls"},
           #{id => <<"noop-auto-dirty">>, what => "AUTO call that does nothing",
             peer => "a dirty NIF (cost of it)", value => {speed, <<"auto">>, <<"dirty">>},
             unit => times, bound => {at_least, 10},
             how => ?LOOP "both schedulers awake between the calls"}
           | [#{id => name("noop-~s-ns", [Name]), what => What, value => {value, Name}}
              || {Name, What} <- [{<<"plain">>, "a plain NIF that does nothing"},
                                  {<<"auto">>, "an AUTO call that does nothing"},
                                  {<<"dirty">>, "a dirty NIF that does nothing"}]]]}.

%% Two strings that have nothing in common at their ends.
levenshtein() ->
    #{id => levenshtein, flags => one, needs => [{levenshtein, "levenshtein"}],
      about => "levenshtein of short and long strings",
      samples => fun() ->
                         merged([strings(Size, Calls)
                                 || {Size, Calls} <- [{12000, 1}, {100, 5000}, {36, 40000},
                                                      {10, 200000}]])
                 end,
      all => #{unit => times, clock => cpu, peer => "the plain NIF"},
      rows =>
          [times("levenshtein", 12000, "12,000", {at_most, 1.02}, ?CPU)]
          ++ [times("levenshtein", Size, integer_to_list(Size), none, "mean of many calls; " ?CPU)
              || Size <- [100, 36, 10]]
          ++ [#{id => <<"levenshtein-auto-36">>, what => "AUTO levenshtein, 36 bytes",
                value => {difference, <<"auto 36">>, <<"plain 36">>}, unit => ns,
                bound => {at_most, 60}, how => ?LOOP "40,000 calls"}]}.

strings(Size, Calls) ->
    Args = [random_bytes(Size, 1), random_bytes(Size, 2)],
    alone(?ROUNDS, [{name("~s ~b", [Name, Size]), Calls, {levenshtein, F, Args}}
                    || {Name, F} <- [{"plain", unfair_levenshtein},
                                     {"yielding", yielding_levenshtein}, {"auto", levenshtein}]]).

times(Function, Size, Bytes, Bound, How) ->
    #{id => name("~s-yielding ~b", [Function, Size]), bound => Bound, how => How,
      what => name("NORMAL ~s, ~s bytes", [Function, Bytes]),
      value => {ratio, name("yielding ~b", [Size]), name("plain ~b", [Size])}}.

%% What is learned of a function may stay wrong: in one node of many.  Nearly all calls
%% then read the clock, and cost 1.7 to 2 times as much.  Each node's cost is a multiple of its
%% plain NIF's, since a machine's speed changes too.
fresh() ->
    #{id => fresh, flags => one, needs => [{levenshtein, "levenshtein"}],
      about => "levenshtein of 8 bytes in fresh nodes", samples => fun fresh_nodes/0,
      all => #{how => "800,000 calls; times are each node's least of three loops; " ?CPU},
      rows => [#{id => <<"fresh-most">>,
                 what => name("AUTO levenshtein, 8 bytes, most expensive of ~b fresh nodes",
                              [?NODES]),
                 peer => "their median", value => {ratio, <<"most">>, <<"median">>},
                 unit => times, bound => {at_most, 1.5}},
               #{id => <<"fresh-timed">>, what => "of its calls read the clock, in each node",
                 value => {value, <<"timed">>}, unit => percent, bound => {at_most, 0.025}}]}.

fresh_nodes() ->
    {Costs, Timed} = lists:unzip([in_node() || _ <- lists:seq(1, ?NODES)]),
    Sorted = lists:sort(Costs),
    #{<<"most">> => [lists:last(Sorted)], <<"median">> => [lists:nth(?NODES div 2, Sorted)],
      <<"timed">> => [lists:max(Timed)]}.

in_node() ->
    #{value := Seen} = fairnif_exp:in_peer(fairnif_exp_series:flags(one),
                                           {?MODULE, in_fresh_node, []}, 30000),
    Seen.

%% @private
-spec in_fresh_node() -> {float(), float()}.
in_fresh_node() ->
    Args = [<<"abcdefgh">>, <<"abcdefgh">>],
    #{<<"auto cpu">> := Auto, <<"plain cpu">> := Plain} =
        alone(3, [{<<"auto">>, 200000, {levenshtein, levenshtein, Args}},
                  {<<"plain">>, 200000, {levenshtein, unfair_levenshtein, Args}}]),
    #{slice_histogram := Timed, calls := Calls} = fairnif:info({levenshtein, levenshtein, 2}),
    {lists:min(Auto) / lists:min(Plain), lists:sum([N || {_, N} <- Timed]) / Calls}.

%% As many cells as 512 MB.  (exor of 512 MB: fairnif_exp_bench_memory.)
large() ->
    #{id => levenshtein_large, flags => one, needs => [{levenshtein, "levenshtein"}],
      about => "levenshtein of 512 MB",
      samples =>
          fun() ->
                  Args = [binary:copy(<<"a">>, 512 * 1024 * 1024), <<"b">>],
                  alone(?FEW_ROUNDS,
                        [{<<"plain">>, 1, {levenshtein, unfair_levenshtein, Args}},
                         {<<"yielding">>, 1, {levenshtein, yielding_levenshtein, Args}}])
          end,
      rows => [#{id => <<"levenshtein_large-yielding">>,
                 what => "NORMAL levenshtein, 512 MB and 1 byte", peer => "the plain NIF",
                 value => {ratio, <<"yielding">>, <<"plain">>}, unit => times, clock => cpu,
                 bound => {at_most, 1.02}, how => ?CPU}]}.

%% 100 calls between two collections, since each makes a binary: what frees the binaries of a batch
%% is inside the time, for everyone the same.
exor() ->
    #{id => exor, flags => one, needs => [{bitwise, "bitwise"}], about => "exor of 12,000 bytes",
      samples =>
          fun() ->
                  Bin = random_bytes(12000, 1),
                  alone(?ROUNDS, [{name("~s 12000", [Name]), 4000,
                                   fun(_) -> batches(40, fun bitwise:F/2, Bin) end}
                                  || {Name, F} <- [{"plain", exor_bad}, {"yielding", exor_yield},
                                                   {"auto", exor}]])
          end,
      rows => [(times("exor", 12000, "12,000", {at_most, 1.02}, "mean of 4000 calls; " ?CPU))
                   #{peer => "the plain NIF", unit => times, clock => cpu}]}.

batches(0, _, _) -> ok;
batches(N, Exor, Bin) ->
    batch(100, Exor, Bin),
    erlang:garbage_collect(self(), [{type, minor}]),
    batches(N - 1, Exor, Bin).

batch(0, _, _) -> ok;
batch(N, Exor, Bin) -> _ = Exor(Bin, 170), batch(N - 1, Exor, Bin).

%% To a dirty scheduler and back: as a call, within one call, and as the only thing a call does.
move() ->
    #{id => move, flags => two, about => "moves between schedulers",
      samples => fun() ->
                         alone(?ROUNDS, [{<<"move">>, 5000, fun ?NIF:flip/1},
                                         {<<"dirty call">>, 5000, {?NIF, dirty_noop, [ok]}},
                                         {<<"call that moves">>, 5000, {?NIF, flip, [1]}}])
                 end,
      all => #{peer => "a dirty call", unit => times,
               how => "mean of 5000; both schedulers awake between them"},
      rows =>
          [#{id => <<"move">>, what => "fair_move to dirty and back", bound => {at_most, 1.5},
             value => {ratio, <<"move">>, <<"dirty call">>}},
           #{id => <<"move-call">>, what => "AUTO call that moves to dirty and back",
             value => {ratio, <<"call that moves">>, <<"dirty call">>}}]}.

%% The runtime's pool beside a thread made for the call.
threads() ->
    #{id => threads, flags => two, about => "round trips to threads",
      samples => fun() ->
                         compare(?ROUNDS,
                                 [{<<"threaded">>, 2000, {?NIF, threaded_noop, [ok]}},
                                  {<<"thread per call">>, 2000, {?NIF, thread_noop, [ok]}}])
                 end,
      rows =>
          [#{id => <<"threaded">>, what => "THREADED call that does nothing",
             peer => "a thread created, joined, answered per call",
             value => {speed, <<"threaded">>, <<"thread per call">>}, unit => times,
             bound => {at_least, 3},
             how => "mean of 2000 calls, one after the other, of one process"},
           #{id => <<"threaded-ns">>, what => "a THREADED call that does nothing",
             value => {value, <<"threaded">>}, unit => ns, how => "the same"}]}.
