%% An author's module whose calls wait. NIF Name_nif is called through run/2 (the module's own
%% wrapper, gone when the call waits) or nested/2 (which the caller comes back to).
-module(fairnif_test_waits).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-in_modes({[{spin, 3}, {never_tick, 1}, {ticks, 2}, {echo, 1}, {kinds, 1}, {walk, 1}, {build, 1},
           {reverse, 1}, {bytes, 1}, {text, 1}, {flip, 1}, {garbage, 2}, {fail, 1}, {object, 2},
           {move, 2}, {call, 2}, {blocking, 1}, {roots, 2}], [threaded, waited], "_nif"}).
-nifs([deep_threaded_nif/1, offload_nif/3, offload_threaded_nif/3, offload_often_nif/1,
       locked_nif/4, locked_dirty_nif/4, locked_threaded_nif/4, sleep_nif/1, sleep_threaded_nif/1,
       limited_nif/3, limited_threaded_nif/3]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() ->
    ?FAIRNIF_LOAD(fairnif_test:library(?MODULE), {probe, fairnif_test_probe:address()}).

%% @doc Calls Name_nif and waits for what it comes to.
run(Name, Args) ->
    fairnif:await(start(Name, Args)).

%% @doc The same with a frame of this module under the wait.
nested(Name, Args) ->
    put(nested, run(Name, Args)),
    erase(nested).

%% @doc What the NIF itself answers.
start(Name, Args) ->
    apply(?MODULE, list_to_atom(atom_to_list(Name) ++ "_nif"), Args).
