%% The NIFs of fairnif_watch_block_nif, from a library without symbols.
-module(fairnif_watch_block_stripped).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-include("fairnif_watch_block.hrl").

init() ->
    erlang:load_nif(fairnif_watch_test:library(?MODULE), 0).
