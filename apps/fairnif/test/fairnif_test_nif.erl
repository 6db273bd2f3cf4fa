%% An author's module: each body of test_bodies.h in each mode, as Body_Mode, and plain NIFs beside.
%%
%% The library is the one that use/1 named last; a new version of it is loaded with the module.
-module(fairnif_test_nif).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    Library = persistent_term:get({?MODULE, library}, ?MODULE),
    fairnif:loaded(
      erlang:load_nif(fairnif_test:library(Library),
                      fairnif:load_info({probe, fairnif_test_probe:address()}))).

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
    [normal, yielding, dirty_cpu, dirty_io, yielding_dirty, auto].

%% @doc Two of them with FAIR_UNWINDS. Only `spin' is registered in these.
unwinding_modes() ->
    [unwinding, unwinding_dirty].

%% @doc The first, and those whose calls are awaited: FAIR_THREADED, and AUTO after a wait.
all_modes() ->
    modes() ++ [threaded, waited].

%% @doc The bodies that keep the rules, with their arity.
bodies() ->
    [{spin, 3}, {never_tick, 1}, {ticks, 2}, {echo, 1}, {kinds, 1}, {walk, 1}, {build, 1},
     {reverse, 1}, {bytes, 1}, {text, 1}, {flip, 1}, {garbage, 2}, {fail, 1},
     {object, 2}, {move, 2}, {call, 2}, {blocking, 1}, {memory, 2},
     {undefer, 1}, {harmonic, 1}, {roots, 2}].

version() -> ?NIF.
new_object(_) -> ?NIF.
pretend(_) -> ?NIF.
nothing() -> ?NIF.
nothing_dirty() -> ?NIF.
plain_burn(_) -> ?NIF.
limited(_, _, _) -> ?NIF.
deep_enough(_) -> ?NIF.
long_slices(_, _, _) -> ?NIF.
deep(_) -> ?NIF.
deep_dirty(_) -> ?NIF.
keeps_term(_) -> ?NIF.
holds_mutex() -> ?NIF.

spin_unwinding(_, _, _) -> ?NIF.
spin_unwinding_dirty(_, _, _) -> ?NIF.
spin_normal(_, _, _) -> ?NIF.
spin_yielding(_, _, _) -> ?NIF.
spin_dirty_cpu(_, _, _) -> ?NIF.
spin_dirty_io(_, _, _) -> ?NIF.
spin_yielding_dirty(_, _, _) -> ?NIF.
spin_auto(_, _, _) -> ?NIF.

never_tick_normal(_) -> ?NIF.
never_tick_yielding(_) -> ?NIF.
never_tick_dirty_cpu(_) -> ?NIF.
never_tick_dirty_io(_) -> ?NIF.
never_tick_yielding_dirty(_) -> ?NIF.
never_tick_auto(_) -> ?NIF.

ticks_normal(_, _) -> ?NIF.
ticks_yielding(_, _) -> ?NIF.
ticks_dirty_cpu(_, _) -> ?NIF.
ticks_dirty_io(_, _) -> ?NIF.
ticks_yielding_dirty(_, _) -> ?NIF.
ticks_auto(_, _) -> ?NIF.

echo_normal(_) -> ?NIF.
echo_yielding(_) -> ?NIF.
echo_dirty_cpu(_) -> ?NIF.
echo_dirty_io(_) -> ?NIF.
echo_yielding_dirty(_) -> ?NIF.
echo_auto(_) -> ?NIF.

kinds_normal(_) -> ?NIF.
kinds_yielding(_) -> ?NIF.
kinds_dirty_cpu(_) -> ?NIF.
kinds_dirty_io(_) -> ?NIF.
kinds_yielding_dirty(_) -> ?NIF.
kinds_auto(_) -> ?NIF.

walk_normal(_) -> ?NIF.
walk_yielding(_) -> ?NIF.
walk_dirty_cpu(_) -> ?NIF.
walk_dirty_io(_) -> ?NIF.
walk_yielding_dirty(_) -> ?NIF.
walk_auto(_) -> ?NIF.

build_normal(_) -> ?NIF.
build_yielding(_) -> ?NIF.
build_dirty_cpu(_) -> ?NIF.
build_dirty_io(_) -> ?NIF.
build_yielding_dirty(_) -> ?NIF.
build_auto(_) -> ?NIF.

reverse_normal(_) -> ?NIF.
reverse_yielding(_) -> ?NIF.
reverse_dirty_cpu(_) -> ?NIF.
reverse_dirty_io(_) -> ?NIF.
reverse_yielding_dirty(_) -> ?NIF.
reverse_auto(_) -> ?NIF.

bytes_normal(_) -> ?NIF.
bytes_yielding(_) -> ?NIF.
bytes_dirty_cpu(_) -> ?NIF.
bytes_dirty_io(_) -> ?NIF.
bytes_yielding_dirty(_) -> ?NIF.
bytes_auto(_) -> ?NIF.

text_normal(_) -> ?NIF.
text_yielding(_) -> ?NIF.
text_dirty_cpu(_) -> ?NIF.
text_dirty_io(_) -> ?NIF.
text_yielding_dirty(_) -> ?NIF.
text_auto(_) -> ?NIF.

flip_normal(_) -> ?NIF.
flip_yielding(_) -> ?NIF.
flip_dirty_cpu(_) -> ?NIF.
flip_dirty_io(_) -> ?NIF.
flip_yielding_dirty(_) -> ?NIF.
flip_auto(_) -> ?NIF.

garbage_normal(_, _) -> ?NIF.
garbage_yielding(_, _) -> ?NIF.
garbage_dirty_cpu(_, _) -> ?NIF.
garbage_dirty_io(_, _) -> ?NIF.
garbage_yielding_dirty(_, _) -> ?NIF.
garbage_auto(_, _) -> ?NIF.

fail_normal(_) -> ?NIF.
fail_yielding(_) -> ?NIF.
fail_dirty_cpu(_) -> ?NIF.
fail_dirty_io(_) -> ?NIF.
fail_yielding_dirty(_) -> ?NIF.
fail_auto(_) -> ?NIF.

object_normal(_, _) -> ?NIF.
object_yielding(_, _) -> ?NIF.
object_dirty_cpu(_, _) -> ?NIF.
object_dirty_io(_, _) -> ?NIF.
object_yielding_dirty(_, _) -> ?NIF.
object_auto(_, _) -> ?NIF.

move_normal(_, _) -> ?NIF.
move_yielding(_, _) -> ?NIF.
move_dirty_cpu(_, _) -> ?NIF.
move_dirty_io(_, _) -> ?NIF.
move_yielding_dirty(_, _) -> ?NIF.
move_auto(_, _) -> ?NIF.

call_normal(_, _) -> ?NIF.
call_yielding(_, _) -> ?NIF.
call_dirty_cpu(_, _) -> ?NIF.
call_dirty_io(_, _) -> ?NIF.
call_yielding_dirty(_, _) -> ?NIF.
call_auto(_, _) -> ?NIF.

blocking_normal(_) -> ?NIF.
blocking_yielding(_) -> ?NIF.
blocking_dirty_cpu(_) -> ?NIF.
blocking_dirty_io(_) -> ?NIF.
blocking_yielding_dirty(_) -> ?NIF.
blocking_auto(_) -> ?NIF.

memory_normal(_, _) -> ?NIF.
memory_yielding(_, _) -> ?NIF.
memory_dirty_cpu(_, _) -> ?NIF.
memory_dirty_io(_, _) -> ?NIF.
memory_yielding_dirty(_, _) -> ?NIF.
memory_auto(_, _) -> ?NIF.

undefer_normal(_) -> ?NIF.
undefer_yielding(_) -> ?NIF.
undefer_dirty_cpu(_) -> ?NIF.
undefer_dirty_io(_) -> ?NIF.
undefer_yielding_dirty(_) -> ?NIF.
undefer_auto(_) -> ?NIF.

harmonic_normal(_) -> ?NIF.
harmonic_yielding(_) -> ?NIF.
harmonic_dirty_cpu(_) -> ?NIF.
harmonic_dirty_io(_) -> ?NIF.
harmonic_yielding_dirty(_) -> ?NIF.
harmonic_auto(_) -> ?NIF.

roots_normal(_, _) -> ?NIF.
roots_yielding(_, _) -> ?NIF.
roots_dirty_cpu(_, _) -> ?NIF.
roots_dirty_io(_, _) -> ?NIF.
roots_yielding_dirty(_, _) -> ?NIF.
roots_auto(_, _) -> ?NIF.
