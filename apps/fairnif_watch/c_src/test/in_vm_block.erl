%% NIFs that sleep in their thread for so many milliseconds (in_vm_block.c).
-module(in_vm_block).

-export([load/1, nap/1, nap_dirty/1]).

load(Path) -> erlang:load_nif(Path, 0).
nap(Ms) -> erlang:nif_error({not_loaded, Ms}).
nap_dirty(Ms) -> erlang:nif_error({not_loaded, Ms}).
