%% The native bodies and peers that experiments and comparisons call and no example has: what each
%% does, says c_src/fairnif_exp_nif.c.  Called in peer nodes only.
-module(fairnif_exp_nif).

-export([now/0, faults/0, yields/0, burn/1, work_ns/1, copy/1, prepare/2]).
-export([noop/1, dirty_noop/1, auto_noop/1, flip/1]).
-export([auto_spin/2, auto_spin_quiet/2, yielding_spin/2, yielding_spin_quiet/2]).
-export([slot/1, clear_slot/1, yielding_forever/1, auto_forever/1, dirty_cpu_forever/1,
         dirty_io_forever/1, yielding_dirty_forever/1, plain_dirty_forever/1]).
-export([threaded_noop/1, thread_noop/1, offload_sleep/1]).
-export([consume/1, sliced/2]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-type slot() :: 0..63.

-define(NIF, erlang:nif_error(not_loaded)).

init() -> ?FAIRNIF_LOAD.

%% Ns of the clock that slot/1 has; page faults of this emulator so far; calls of sched_yield, where
%% fairnif_exp_yield.so is preloaded; ns of rounds of work.
-spec now() -> integer().
now() -> ?NIF.
-spec faults() -> non_neg_integer().
faults() -> ?NIF.
-spec yields() -> non_neg_integer().
yields() -> ?NIF.
%% A program that works until the node has gone, in its session or (1) in one of its own.
-spec burn(0 | 1) -> ok.
burn(_Own) -> ?NIF.
-spec work_ns(pos_integer()) -> pos_integer().
work_ns(_Rounds) -> ?NIF.

%% memcpy into a new binary; puts the memory of the next binary of that size into a state.
-spec copy(binary()) -> binary().
copy(_Binary) -> ?NIF.
-spec prepare(non_neg_integer(), reused | small | huge) -> non_neg_integer().
prepare(_Size, _State) -> ?NIF.

-spec noop(T) -> T.
noop(_) -> ?NIF.
-spec dirty_noop(T) -> T.
dirty_noop(_) -> ?NIF.
-spec auto_noop(T) -> T.
auto_noop(_) -> ?NIF.
-spec flip(non_neg_integer()) -> 0.
flip(_Times) -> ?NIF.

%% Rounds of work with a tick after each Step; the quiet ones never tick (Step is 0).
-spec auto_spin(non_neg_integer(), non_neg_integer()) -> 1.
auto_spin(_Rounds, _Step) -> ?NIF.
-spec auto_spin_quiet(non_neg_integer(), 0) -> 1.
auto_spin_quiet(_Rounds, _Step) -> ?NIF.
-spec yielding_spin(non_neg_integer(), non_neg_integer()) -> 1.
yielding_spin(_Rounds, _Step) -> ?NIF.
-spec yielding_spin_quiet(non_neg_integer(), 0) -> 1.
yielding_spin_quiet(_Rounds, _Step) -> ?NIF.

%% Rounds done and, in ns of now/0, when an endless call began and ended.
-spec slot(slot()) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
slot(_Slot) -> ?NIF.
-spec clear_slot(slot()) -> ok.
clear_slot(_Slot) -> ?NIF.

%% Endless calls: tick about every 2 us and report in a slot; the plain one is an ordinary dirty
%% NIF.
-spec yielding_forever(slot()) -> 0.
yielding_forever(_Slot) -> ?NIF.
-spec auto_forever(slot()) -> 0.
auto_forever(_Slot) -> ?NIF.
-spec dirty_cpu_forever(slot()) -> 0.
dirty_cpu_forever(_Slot) -> ?NIF.
-spec dirty_io_forever(slot()) -> 0.
dirty_io_forever(_Slot) -> ?NIF.
-spec yielding_dirty_forever(slot()) -> 0.
yielding_dirty_forever(_Slot) -> ?NIF.
-spec plain_dirty_forever(slot()) -> 0.
plain_dirty_forever(_Slot) -> ?NIF.

%% Says that Percent (1 to 100) of a time slice was used; whether the VM answered that it is used
%% up.
-spec consume(1..100) -> boolean().
consume(_Percent) -> ?NIF.
%% Slices times SliceUs microseconds of spinning, by the wall clock, each charged as a full time
%% slice, which is the documented way and the costliest.  `badarg' above a second a slice or 10^9
%% slices.
-spec sliced(SliceUs :: 1..1000000, Slices :: 1..1000000000) -> ok.
sliced(_SliceUs, _Slices) -> ?NIF.

%% In mode THREADED; a job that waits that many ms, by fair_offload on a thread.
-spec threaded_noop(T) -> T.
threaded_noop(Term) -> fairnif:await(nif_threaded_noop(Term)).

%% The same by a thread that is created for the call, answers and is joined.
-spec thread_noop(T) -> T.
thread_noop(Term) ->
    Ref = make_ref(),
    Handle = thread_call(Ref),
    receive Ref -> ok end,
    ok = thread_join(Handle),
    Term.

-spec offload_sleep(non_neg_integer()) -> non_neg_integer().
offload_sleep(Ms) -> fairnif:await(nif_offload_sleep(Ms)).

nif_threaded_noop(_Term) -> ?NIF.
thread_call(_Ref) -> ?NIF.
thread_join(_Handle) -> ?NIF.
nif_offload_sleep(_Ms) -> ?NIF.
