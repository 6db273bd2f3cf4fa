%% The native bodies and peers of the figures; bench_nif.c says what each does.
-module(fairnif_bench_nif).

-export([now/0, cpu/0, node_cpu/0, faults/0, work_ns/1]).
-export([noop/1, dirty_noop/1, auto_noop/1, flip/1]).
-export([auto_spin/2, auto_spin_quiet/2, yielding_spin/2, yielding_spin_quiet/2,
         auto_probe/2, yielding_probe/2]).
-export([slot/1, clear_slot/1, normal_forever/1, yielding_forever/1, auto_forever/1,
         dirty_cpu_forever/1, dirty_io_forever/1, yielding_dirty_forever/1,
         plain_dirty_forever/1]).
-export([copy/1, prepare/2]).
-export([threaded_noop/1, thread_noop/1, offload_sleep/1]).
-export([counter_new/0, counter_add/2]).

-on_load(init/0).

-type slot() :: 0..63.

init() -> fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% Clocks, ns: monotonic; CPU time of the caller's thread; of all threads of this emulator.
-spec now() -> integer().
now() -> erlang:nif_error(not_loaded).

-spec cpu() -> integer().
cpu() -> erlang:nif_error(not_loaded).

-spec node_cpu() -> integer().
node_cpu() -> erlang:nif_error(not_loaded).

%% Page faults of this emulator so far.
-spec faults() -> non_neg_integer().
faults() -> erlang:nif_error(not_loaded).

%% Ns of so many rounds of work.
-spec work_ns(pos_integer()) -> pos_integer().
work_ns(_Rounds) -> erlang:nif_error(not_loaded).

-spec noop(T) -> T.
noop(_) -> erlang:nif_error(not_loaded).

-spec dirty_noop(T) -> T.
dirty_noop(_) -> erlang:nif_error(not_loaded).

-spec auto_noop(T) -> T.
auto_noop(_) -> erlang:nif_error(not_loaded).

-spec flip(non_neg_integer()) -> 0.
flip(_Times) -> erlang:nif_error(not_loaded).

%% Rounds of work with a tick after each Step; the quiet ones never tick (Step
%% is 0).
-spec auto_spin(non_neg_integer(), non_neg_integer()) -> 1.
auto_spin(_Rounds, _Step) -> erlang:nif_error(not_loaded).

-spec auto_spin_quiet(non_neg_integer(), 0) -> 1.
auto_spin_quiet(_Rounds, _Step) -> erlang:nif_error(not_loaded).

-spec yielding_spin(non_neg_integer(), non_neg_integer()) -> 1.
yielding_spin(_Rounds, _Step) -> erlang:nif_error(not_loaded).

-spec yielding_spin_quiet(non_neg_integer(), 0) -> 1.
yielding_spin_quiet(_Rounds, _Step) -> erlang:nif_error(not_loaded).

%% The CPU time of so many slices, as 64-bit native integers.
-spec auto_probe(non_neg_integer(), pos_integer()) -> binary().
auto_probe(_Slices, _Step) -> erlang:nif_error(not_loaded).

-spec yielding_probe(non_neg_integer(), pos_integer()) -> binary().
yielding_probe(_Slices, _Step) -> erlang:nif_error(not_loaded).

%% Rounds done and, in ns of now/0, when an endless call began and ended.
-spec slot(slot()) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
slot(_Slot) -> erlang:nif_error(not_loaded).

-spec clear_slot(slot()) -> ok.
clear_slot(_Slot) -> erlang:nif_error(not_loaded).

%% Endless calls: tick about every 2 us and report in a slot.
-spec normal_forever(slot()) -> 0.
normal_forever(_Slot) -> erlang:nif_error(not_loaded).

-spec yielding_forever(slot()) -> 0.
yielding_forever(_Slot) -> erlang:nif_error(not_loaded).

-spec auto_forever(slot()) -> 0.
auto_forever(_Slot) -> erlang:nif_error(not_loaded).

-spec dirty_cpu_forever(slot()) -> 0.
dirty_cpu_forever(_Slot) -> erlang:nif_error(not_loaded).

-spec dirty_io_forever(slot()) -> 0.
dirty_io_forever(_Slot) -> erlang:nif_error(not_loaded).

-spec yielding_dirty_forever(slot()) -> 0.
yielding_dirty_forever(_Slot) -> erlang:nif_error(not_loaded).

%% An ordinary dirty NIF with the same work.
-spec plain_dirty_forever(slot()) -> 0.
plain_dirty_forever(_Slot) -> erlang:nif_error(not_loaded).

%% memcpy into a new binary.
-spec copy(binary()) -> binary().
copy(_Binary) -> erlang:nif_error(not_loaded).

%% Puts the memory of the next binary of that size into a state; its address.
-spec prepare(non_neg_integer(), reused | small | huge) -> non_neg_integer().
prepare(_Size, _State) -> erlang:nif_error(not_loaded).

%% A number in a resource object, by plain NIFs; for one process.
-spec counter_new() -> reference().
counter_new() -> erlang:nif_error(not_loaded).

-spec counter_add(reference(), integer()) -> integer().
counter_add(_Counter, _Number) -> erlang:nif_error(not_loaded).

%% @doc In mode THREADED.
-spec threaded_noop(T) -> T.
threaded_noop(Term) -> fairnif:await(nif_threaded_noop(Term)).

%% @doc The same by a thread that is created for the call, sends its answer and is joined.
-spec thread_noop(T) -> T.
thread_noop(Term) ->
    Ref = make_ref(),
    Handle = thread_call(Ref),
    receive {Ref, done} -> ok end,
    ok = thread_join(Handle),
    Term.

%% @doc A job that waits so many ms, by fair_call on a thread.
-spec offload_sleep(non_neg_integer()) -> non_neg_integer().
offload_sleep(Ms) -> fairnif:await(nif_offload_sleep(Ms)).

nif_threaded_noop(_Term) -> erlang:nif_error(not_loaded).
nif_offload_sleep(_Ms) -> erlang:nif_error(not_loaded).
thread_call(_Ref) -> erlang:nif_error(not_loaded).
thread_join(_Handle) -> erlang:nif_error(not_loaded).
