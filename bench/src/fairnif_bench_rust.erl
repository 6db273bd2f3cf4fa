%% Rust: fair bodies beside plain rustler functions of the same library, bench/rust.
-module(fairnif_bench_rust).

-export([is_here/0, run/0, hold/0, kill/0, modes/0]).
-export([levenshtein/2, plain_levenshtein/2, noop/1, plain_noop/1]).
-export([slot/1, clear_slot/1, auto_forever/1, dirty_cpu_forever/1]).

-import(fairnif_bench_series, [interleave/2, timed_loop/3]).

-on_load(init/0).

-define(ROUNDS, 21).
-define(FEW_ROUNDS, 11).

%% A loop that makes no call but the one it is for.
-define(LOOP2(Name, Call), Name(0, _, _) -> ok; Name(N, A, B) -> _ = Call, Name(N - 1, A, B)).

%% Where there is no Rust for it the module is there and the library is not (bench/Makefile).
init() ->
    case is_here() of
        true -> fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info()));
        false -> ok
    end.

-spec is_here() -> boolean().
is_here() ->
    filelib:is_regular(fairnif:path(?MODULE) ++ ".so").

%% @doc CPU and wall time of calls: levenshtein of 12,000 and of 100 bytes, and
%% one that does nothing.
-spec run() -> fairnif_bench_series:samples().
run() ->
    ok = built(),
    fairnif_bench_calls:alone(
      fun() ->
              maps:merge(maps:merge(series(12000, 1, fun fair_lev/3, fun plain_lev/3),
                                    series(100, 5000, fun fair_lev/3, fun plain_lev/3)),
                         series(0, 200000, fun fair_noop/3, fun plain_noop/3))
      end).

series(Size, Calls, Fair, Plain) ->
    State = rand:seed_s(exsss, Size),
    {A, Next} = rand:bytes_s(Size, State),
    {B, _} = rand:bytes_s(Size, Next),
    interleave(?ROUNDS,
               [fun() -> timed_loop(iolist_to_binary([Name, $\s, integer_to_list(Size)]), Calls,
                                    fun(N) -> Loop(N, A, B) end)
                end || {Name, Loop} <- [{"fair", Fair}, {"plain", Plain}]]).

?LOOP2(fair_lev, levenshtein(A, B)).
?LOOP2(plain_lev, plain_levenshtein(A, B)).
?LOOP2(fair_noop, noop(N)).
?LOOP2(plain_noop, plain_noop(N)).

%% @doc The slices of levenshtein.
-spec hold() -> {fairnif_bench_series:samples(), map()}.
hold() ->
    ok = built(),
    {A, B} = {binary:copy(<<"a">>, 12000), binary:copy(<<"b">>, 12000)},
    Slices = fun() ->
                     [{<<"levenshtein">>,
                       fairnif_bench_hold:slices({?MODULE, levenshtein, 2},
                                                 fun() -> levenshtein(A, B) end)}]
             end,
    {interleave(?FEW_ROUNDS, [Slices]), maps:with([slice_ns], fairnif:info())}.

%% @doc From a kill to the moment at which what the body owns is dropped.
-spec kill() -> {fairnif_bench_series:samples(), map()}.
kill() ->
    ok = built(),
    Samples = interleave(?FEW_ROUNDS,
                         [fun() -> [{atom_to_binary(Mode),
                                     fairnif_bench_kill:kills(?MODULE, Mode)}]
                          end || {Mode, _} <- modes()]),
    {Samples, maps:with([slice_ns, dirty_slice_ns], fairnif:info())}.

%% @doc As fairnif_bench_kill:modes/0.
-spec modes() -> [{auto | dirty_cpu, slice_ns | dirty_slice_ns}].
modes() ->
    [{auto, slice_ns}, {dirty_cpu, dirty_slice_ns}].

built() ->
    is_here() orelse exit('bench/rust is not built: there is no cargo, or an old one'),
    ok.

-spec levenshtein(binary(), binary()) -> non_neg_integer().
levenshtein(_A, _B) -> erlang:nif_error(not_loaded).

-spec plain_levenshtein(binary(), binary()) -> non_neg_integer().
plain_levenshtein(_A, _B) -> erlang:nif_error(not_loaded).

-spec noop(integer()) -> integer().
noop(_Number) -> erlang:nif_error(not_loaded).

-spec plain_noop(integer()) -> integer().
plain_noop(_Number) -> erlang:nif_error(not_loaded).

%% As fairnif_bench_nif's; there is one slot, 0.
-spec slot(0) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
slot(_Slot) -> erlang:nif_error(not_loaded).

-spec clear_slot(0) -> ok.
clear_slot(_Slot) -> erlang:nif_error(not_loaded).

-spec auto_forever(0) -> no_return().
auto_forever(_Slot) -> erlang:nif_error(not_loaded).

-spec dirty_cpu_forever(0) -> no_return().
dirty_cpu_forever(_Slot) -> erlang:nif_error(not_loaded).
