%% An author's module whose calls wait. NIF Name_nif is called through run/2 (the module's own
%% wrapper, gone when the call waits) or nested/2 (which the caller comes back to).
-module(fairnif_test_waits).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    fairnif:loaded(
      erlang:load_nif(fairnif_test:library(?MODULE),
                      fairnif:load_info({probe, fairnif_test_probe:address()}))).

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

spin_threaded_nif(_, _, _) -> ?NIF.
spin_waited_nif(_, _, _) -> ?NIF.
never_tick_threaded_nif(_) -> ?NIF.
never_tick_waited_nif(_) -> ?NIF.
ticks_threaded_nif(_, _) -> ?NIF.
ticks_waited_nif(_, _) -> ?NIF.
echo_threaded_nif(_) -> ?NIF.
echo_waited_nif(_) -> ?NIF.
kinds_threaded_nif(_) -> ?NIF.
kinds_waited_nif(_) -> ?NIF.
walk_threaded_nif(_) -> ?NIF.
walk_waited_nif(_) -> ?NIF.
build_threaded_nif(_) -> ?NIF.
build_waited_nif(_) -> ?NIF.
reverse_threaded_nif(_) -> ?NIF.
reverse_waited_nif(_) -> ?NIF.
bytes_threaded_nif(_) -> ?NIF.
bytes_waited_nif(_) -> ?NIF.
text_threaded_nif(_) -> ?NIF.
text_waited_nif(_) -> ?NIF.
flip_threaded_nif(_) -> ?NIF.
flip_waited_nif(_) -> ?NIF.
garbage_threaded_nif(_, _) -> ?NIF.
garbage_waited_nif(_, _) -> ?NIF.
fail_threaded_nif(_) -> ?NIF.
fail_waited_nif(_) -> ?NIF.
object_threaded_nif(_, _) -> ?NIF.
object_waited_nif(_, _) -> ?NIF.
move_threaded_nif(_, _) -> ?NIF.
move_waited_nif(_, _) -> ?NIF.
call_threaded_nif(_, _) -> ?NIF.
call_waited_nif(_, _) -> ?NIF.
blocking_threaded_nif(_) -> ?NIF.
blocking_waited_nif(_) -> ?NIF.
memory_threaded_nif(_, _) -> ?NIF.
memory_waited_nif(_, _) -> ?NIF.
undefer_threaded_nif(_) -> ?NIF.
undefer_waited_nif(_) -> ?NIF.
harmonic_threaded_nif(_) -> ?NIF.
harmonic_waited_nif(_) -> ?NIF.
roots_threaded_nif(_, _) -> ?NIF.
roots_waited_nif(_, _) -> ?NIF.
about_threaded_nif(_) -> ?NIF.
about_waited_nif(_) -> ?NIF.
about_normal_nif(_) -> ?NIF.
about_yielding_nif(_) -> ?NIF.
about_dirty_cpu_nif(_) -> ?NIF.
about_dirty_io_nif(_) -> ?NIF.
about_yielding_dirty_nif(_) -> ?NIF.
about_auto_nif(_) -> ?NIF.
about_dirty_waited_nif(_) -> ?NIF.
deep_threaded_nif(_) -> ?NIF.
offload_nif(_, _, _) -> ?NIF.
offload_dirty_nif(_, _, _) -> ?NIF.
offload_threaded_nif(_, _, _) -> ?NIF.
offload_not_awaited_nif(_, _, _) -> ?NIF.
offload_often_nif(_) -> ?NIF.
clock_nif() -> ?NIF.
clock_threaded_nif() -> ?NIF.
first_nif(_) -> ?NIF.
locked_nif(_, _, _, _) -> ?NIF.
locked_dirty_nif(_, _, _, _) -> ?NIF.
locked_threaded_nif(_, _, _, _) -> ?NIF.
locked_not_awaited_nif(_, _, _, _) -> ?NIF.
left_nif(_) -> ?NIF.
try_lock_nif(_) -> ?NIF.
twice_nif(_) -> ?NIF.
twice_threaded_nif(_) -> ?NIF.
many_locks_nif() -> ?NIF.
many_locks_threaded_nif() -> ?NIF.
sleep_nif(_) -> ?NIF.
sleep_threaded_nif(_) -> ?NIF.
limited_nif(_, _, _) -> ?NIF.
limited_threaded_nif(_, _, _) -> ?NIF.
