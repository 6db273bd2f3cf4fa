%% fairnif functions that block a scheduler since they do not tick, and some that tick
%% (c_src/block_fair.c). Each takes ms and answers {Since, Until, 0}, ns of erlang:monotonic_time/1.
-module(fairnif_watch_block_fair).

-compile([export_all, nowarn_export_all]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-define(NIF(Ms), erlang:nif_error({not_loaded, Ms})).

init() ->
    ?FAIRNIF_LOAD(fairnif_watch_test:library(?MODULE)).

spin_normal(Ms) -> ?NIF(Ms).
spin_yielding(Ms) -> ?NIF(Ms).
spin_auto(Ms) -> ?NIF(Ms).
spin_dirty_cpu(Ms) -> ?NIF(Ms).
spin_dirty_io(Ms) -> ?NIF(Ms).
sleep_normal(Ms) -> ?NIF(Ms).
kernel_normal(Ms) -> ?NIF(Ms).
sleep_dirty_io(Ms) -> ?NIF(Ms).
sleep_threaded(Ms) -> ?NIF(Ms).
unwinds(Ms) -> ?NIF(Ms).
call_auto(Ms) -> ?NIF(Ms).
fair_yielding(Ms) -> ?NIF(Ms).
fair_auto(Ms) -> ?NIF(Ms).
fair_yielding_dirty(Ms) -> ?NIF(Ms).
