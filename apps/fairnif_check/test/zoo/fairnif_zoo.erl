%% The zoo: native functions with known manners, good and bad. What each of them is, and what the
%% checker must say about it, stands in fairnif_zoo_table; the code is in C, beside this file.
%%
%% Every function takes a number, mostly of microseconds, at most a minute's. Load it only into a
%% node that may die.
-module(fairnif_zoo).

-export([block/1, block_charged/1, ignores_timeslice/1, block_sometimes/1, block_above/1,
         block_first/1, sleep/1, pipe/1, lock/1, free_lock/1, huge_list/1, slices_fair/1,
         slices_tiny/1, slices_700us/1, slices_5ms/1, slices_100ms/1, slices_uncharged/1,
         slices_endless/1, slices_then_5ms/1, statement/1, keeps_in_resource/1,
         leaks_malloc/1, leaks_enif/1, leaks_always/1, fills_cache/1, dirty_cpu/1, dirty_io/1,
         dirty_alive/1, dirty_slices/1, dirty_endless/1, eats_memory/1, segv/1, ill/1, deep/1,
         dirty_deep/1, abort/1, exit/1,
         endless/1, badarg/1, raise_sometimes/1, error_tuple/1, short/1, gives_way_uncharged/1,
         thread_goes_on/1, thread_stops/1, wait/1]).
-nifs([block/1, block_charged/1, ignores_timeslice/1, block_sometimes/1, block_above/1,
       block_first/1, sleep/1, pipe/1, lock/1, free_lock/1, huge_list/1, slices_fair/1,
       slices_tiny/1, slices_700us/1, slices_5ms/1, slices_100ms/1, slices_uncharged/1,
       slices_endless/1, slices_then_5ms/1, statement/1, keeps_in_resource/1,
       leaks_malloc/1, leaks_enif/1, leaks_always/1, fills_cache/1, dirty_cpu/1, dirty_io/1,
       dirty_alive/1, dirty_slices/1, dirty_endless/1, eats_memory/1, start_thread_goes_on/1,
       start_thread_stops/1, start_wait/1, wait_done/1, segv/1, ill/1, deep/1, dirty_deep/1,
       abort/1, exit/1, endless/1,
       badarg/1, raise_sometimes/1, error_tuple/1, short/1]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    erlang:load_nif(filename:join([filename:dirname(code:which(?MODULE)), "nifs", ?MODULE]), 0).

%% 700 us at a time in a NIF that charges nothing, then the turn is given up: what is
%% left of it is not charged either.
gives_way_uncharged(Us) when Us > 700 ->
    ok = block(700),
    erlang:yield(),
    gives_way_uncharged(Us - 700);
gives_way_uncharged(Us) ->
    block(Us).

thread_goes_on(Us) ->
    thread_done(start_thread_goes_on(Us)).

thread_stops(Us) ->
    thread_done(start_thread_stops(Us)).

%% The handle is compared so that it lives until the thread has ended.
thread_done({Ref, Handle}) ->
    receive
        {Ref, done} when Handle =/= done -> ok
    end.

wait(Us) ->
    {Ref, Timer} = start_wait(Us),
    receive
        {select, Timer, Ref, ready_input} -> wait_done(Timer)
    end.

block(_) -> ?NIF.
block_charged(_) -> ?NIF.
ignores_timeslice(_) -> ?NIF.
block_sometimes(_) -> ?NIF.
block_above(_) -> ?NIF.
block_first(_) -> ?NIF.
sleep(_) -> ?NIF.
pipe(_) -> ?NIF.
lock(_) -> ?NIF.
free_lock(_) -> ?NIF.
huge_list(_) -> ?NIF.
slices_fair(_) -> ?NIF.
slices_tiny(_) -> ?NIF.
slices_700us(_) -> ?NIF.
slices_5ms(_) -> ?NIF.
slices_100ms(_) -> ?NIF.
slices_uncharged(_) -> ?NIF.
slices_endless(_) -> ?NIF.
slices_then_5ms(_) -> ?NIF.
statement(_) -> ?NIF.
keeps_in_resource(_) -> ?NIF.
leaks_malloc(_) -> ?NIF.
leaks_enif(_) -> ?NIF.
leaks_always(_) -> ?NIF.
fills_cache(_) -> ?NIF.
dirty_cpu(_) -> ?NIF.
dirty_io(_) -> ?NIF.
dirty_alive(_) -> ?NIF.
dirty_slices(_) -> ?NIF.
dirty_endless(_) -> ?NIF.
eats_memory(_) -> ?NIF.
start_thread_goes_on(_) -> ?NIF.
start_thread_stops(_) -> ?NIF.
start_wait(_) -> ?NIF.
wait_done(_) -> ?NIF.
segv(_) -> ?NIF.
ill(_) -> ?NIF.
deep(_) -> ?NIF.
dirty_deep(_) -> ?NIF.
abort(_) -> ?NIF.
exit(_) -> ?NIF.
endless(_) -> ?NIF.
badarg(_) -> ?NIF.
raise_sometimes(_) -> ?NIF.
error_tuple(_) -> ?NIF.
short(_) -> ?NIF.
