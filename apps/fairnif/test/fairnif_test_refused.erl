%% Loads, or fails to load, a library that is not as it should be.
-module(fairnif_test_refused).

-export([load/2, f/0]).

load(Case, LoadInfo) ->
    erlang:load_nif(fairnif_test:library(list_to_atom("refused_" ++ atom_to_list(Case))),
                    LoadInfo).

f() ->
    erlang:nif_error(not_loaded).
