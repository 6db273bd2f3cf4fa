%% An author's module: each body of test_bodies.h in each mode, as Body_Mode, and plain NIFs beside.
%%
%% The library is the one that use/1 named last; a new version of it is loaded with the module.
-module(fairnif_test_nif).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([version/0, new_object/1, pretend/1, nothing/0, nothing_dirty/0, limited/3,
       deep_enough/1, long_slices/3, deep/1, deep_dirty/1, deep_called/2, deep_called_enough/2,
       keeps_term/1, holds_mutex/0, spin_unwinding/3, spin_unwinding_dirty/3]).
-define(BODIES,
        [{spin, 3}, {never_tick, 1}, {ticks, 2}, {echo, 1}, {kinds, 1}, {walk, 1}, {build, 1},
         {reverse, 1}, {bytes, 1}, {text, 1}, {flip, 1}, {garbage, 2}, {fail, 1}, {object, 2},
         {move, 2}, {call, 2}, {blocking, 1}, {roots, 2}]).
-define(MODES, [normal, yielding, dirty_cpu, dirty_io, yielding_dirty, auto]).
-in_modes({?BODIES, ?MODES, ""}).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() ->
    Library = persistent_term:get({?MODULE, library}, ?MODULE),
    ?FAIRNIF_LOAD(fairnif_test:library(Library), {probe, fairnif_test_probe:address()}).

%% @doc The library to load with the next load of this module.
use(Library) ->
    persistent_term:put({?MODULE, library}, Library).

%% @doc Calls a body in a mode.
run(Body, Mode, Args) when Mode =:= threaded; Mode =:= waited ->
    fairnif_test_waits:run(name(Body, Mode), Args);
run(Body, Mode, Args) ->
    apply(?MODULE, name(Body, Mode), Args).

name(Body, Mode) ->
    list_to_atom(atom_to_list(Body) ++ "_" ++ atom_to_list(Mode)).

%% @doc The modes that take a scheduler.
modes() ->
    ?MODES.

%% @doc Two of them with FAIR_CLEANUP. Only `spin' is registered in these.
unwinding_modes() ->
    [unwinding, unwinding_dirty].

%% @doc The first, and those whose calls are awaited: FAIR_THREADED, and AUTO after a wait.
all_modes() ->
    modes() ++ [threaded, waited].

%% @doc The bodies that keep the rules, with their arity.
bodies() ->
    ?BODIES.
