%% From exit(Pid, kill) to the moment at which the task's clean-up runs.
%%
%% Killer and victim have a scheduler each; nothing else runs in the node. The
%% killer sleeps a millisecond first, so the kill falls anywhere in a slice.
%%
%% FAIR_NORMAL is not among the modes: a process on a normal scheduler receives
%% its signals when it gives way, and that mode never does.  Up to then nobody
%% in the VM knows that it was killed.
-module(fairnif_bench_kill).

-export([flags/0, run/0, modes/0, kills/2]).

-define(ROUNDS, 11).
-define(KILLS, 100).

-spec flags() -> [string()].
flags() -> ["+S", "2:2", "+SDcpu", "2:2"].

%% @doc The modes that can be stopped, with the setting that is their slice.
-spec modes() -> [{atom(), slice_ns | dirty_slice_ns}].
modes() ->
    [{yielding, slice_ns}, {auto, slice_ns},
     {dirty_cpu, dirty_slice_ns}, {dirty_io, dirty_slice_ns},
     {yielding_dirty, dirty_slice_ns}].

-spec run() -> {fairnif_bench_series:samples(), map()}.
run() ->
    ok = code:ensure_modules_loaded([fairnif_bench_nif]),
    Samples = fairnif_bench_series:interleave(
                ?ROUNDS,
                [fun() -> [{atom_to_binary(Mode), kills(fairnif_bench_nif, Mode)}] end
                 || {Mode, _} <- modes()]),
    {Samples, maps:with([slice_ns, dirty_slice_ns], fairnif:info())}.

%% @doc So long after each of some kills the endless call of that mode had stopped.
-spec kills(module(), atom()) -> [{integer(), 1}].
kills(Module, Mode) ->
    Function = list_to_existing_atom(atom_to_list(Mode) ++ "_forever"),
    Me = self(),
    Killer = spawn_opt(fun() ->
                               Me ! {self(), [{kill(Module, Function), 1}
                                              || _ <- lists:seq(1, ?KILLS)]}
                       end, [link, {scheduler, 2}]),
    receive {Killer, Distribution} -> Distribution end.

kill(Module, Function) ->
    ok = Module:clear_slot(0),
    {Pid, Monitor} = spawn_opt(fun() -> Module:Function(0) end, [monitor, {scheduler, 1}]),
    wait_for(Module, 2),
    T0 = fairnif_bench_nif:now(),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, _, killed} -> ok end,
    wait_for(Module, 3),
    element(3, Module:slot(0)) - T0.

wait_for(Module, Element) ->
    receive after 1 -> ok end,
    case element(Element, Module:slot(0)) of
        0 -> wait_for(Module, Element);
        _ -> ok
    end.
