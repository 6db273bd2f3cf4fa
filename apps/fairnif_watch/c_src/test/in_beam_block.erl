%% NIFs that block their thread for so many milliseconds (in_beam_block.c).
-module(in_beam_block).

-export([load/1, spin/1, nap/1, spin_dirty/1, nap_dirty/1, machine/1, machine_named/1]).

load(Path) -> erlang:load_nif(Path, 0).
spin(Ms) -> erlang:nif_error({not_loaded, Ms}).
nap(Ms) -> erlang:nif_error({not_loaded, Ms}).
spin_dirty(Ms) -> erlang:nif_error({not_loaded, Ms}).
nap_dirty(Ms) -> erlang:nif_error({not_loaded, Ms}).
machine(Ms) -> erlang:nif_error({not_loaded, Ms}).
machine_named(Ms) -> erlang:nif_error({not_loaded, Ms}).
