%% Plain NIFs that block a scheduler for as many ms as asked (c_src/block_nif.c). Each answers
%% {Since, Until, Interrupted}: ns of erlang:monotonic_time/1, and how many of its system calls a
%% signal broke off.
-module(fairnif_watch_block_nif).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-include("fairnif_watch_block.hrl").

init() ->
    erlang:load_nif(fairnif_watch_test:library(persistent_term:get(?MODULE, ?MODULE)), 0).

%% @doc The library to load with the next load of this module.
use(Library) ->
    persistent_term:put(?MODULE, Library).
