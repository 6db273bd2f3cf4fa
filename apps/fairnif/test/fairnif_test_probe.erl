%% What bodies under test have counted, and gates that keep dirty schedulers busy: plain NIFs that
%% stay while the library under test is upgraded and purged.
-module(fairnif_test_probe).

-export([block_cpu/0, block_io/0, pass/2, waiting/1, address/0, new_slot/0, slot/1, finish/1,
         alive/0, now_ns/0]).

-on_load(init/0).

init() ->
    erlang:load_nif(fairnif_test:library(?MODULE), 0).

block_cpu() -> erlang:nif_error(not_loaded).
block_io() -> erlang:nif_error(not_loaded).
pass(_Gate, _N) -> erlang:nif_error(not_loaded).
waiting(_Gate) -> erlang:nif_error(not_loaded).
address() -> erlang:nif_error(not_loaded).
new_slot() -> erlang:nif_error(not_loaded).
slot(_Slot) -> erlang:nif_error(not_loaded).
finish(_Slot) -> erlang:nif_error(not_loaded).
alive() -> erlang:nif_error(not_loaded).
now_ns() -> erlang:nif_error(not_loaded).
