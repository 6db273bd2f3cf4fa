%% Reductions charged per millisecond of CPU time: many short calls beside one
%% long one.
-module(fairnif_bench_charge).

-export([flags/0, run/0, cases/0]).

-define(ROUNDS, 11).
-define(TOTAL_US, 30000).

-type kind() :: ticking | quiet.

-spec flags() -> [string()].
flags() -> fairnif_bench_calls:flags().

%% @doc The short calls: mode, whether they tick, microseconds.
-spec cases() -> [{auto | yielding, kind(), pos_integer()}].
cases() ->
    [{Mode, Kind, Us} || Mode <- [auto, yielding], Kind <- [ticking, quiet],
                         Us <- [1, 2, 5, 10]].

-spec run() -> fairnif_bench_series:samples().
run() ->
    PerUs = 1000000 / fairnif_bench_nif:work_ns(1000000) * 1000,
    fairnif_bench_series:interleave(
      ?ROUNDS,
      [fun() -> charged(long, 1, round(?TOTAL_US * PerUs), 700, Mode, ticking) end
       || Mode <- [auto, yielding]]
      ++ [fun() -> short(Mode, Kind, Us, PerUs) end || {Mode, Kind, Us} <- cases()]).

short(Mode, Kind, Us, PerUs) ->
    Step = case Kind of
               ticking -> max(1, round(PerUs / 2));
               quiet -> 0
           end,
    Rounds = round(Us * PerUs),
    %% What the runtime has learned of the calls before goes first.
    spin(500, Rounds, Step, function(Mode, Kind)),
    charged(Us, ?TOTAL_US div Us, Rounds, Step, Mode, Kind).

charged(What, Calls, Rounds, Step, Mode, Kind) ->
    {reductions, R0} = process_info(self(), reductions),
    C0 = fairnif_bench_nif:cpu(),
    spin(Calls, Rounds, Step, function(Mode, Kind)),
    C1 = fairnif_bench_nif:cpu(),
    {reductions, R1} = process_info(self(), reductions),
    [{name(Mode, Kind, What), (R1 - R0) * 1.0e6 / (C1 - C0)}].

name(Mode, Kind, What) ->
    iolist_to_binary(io_lib:format("~p ~p ~p", [Mode, Kind, What])).

function(auto, ticking) -> fun fairnif_bench_nif:auto_spin/2;
function(auto, quiet) -> fun fairnif_bench_nif:auto_spin_quiet/2;
function(yielding, ticking) -> fun fairnif_bench_nif:yielding_spin/2;
function(yielding, quiet) -> fun fairnif_bench_nif:yielding_spin_quiet/2.

spin(0, _, _, _) -> ok;
spin(N, Rounds, Step, Fun) -> _ = Fun(Rounds, Step), spin(N - 1, Rounds, Step, Fun).
