%% @doc NIFs that take a given time, in every manner a NIF can have.
%%
%% Each form takes microseconds, 0 to 3,600,000,000 (an hour), and returns how many it really took
%% from its first step to its last, by the clock on the wall. Anything else is `badarg'.
%%
%% `spinsleep' spins until that much time has passed, whatever had the core meanwhile. `spinwork'
%% does what takes that much CPU time when nothing interrupts it: the number of its steps is fixed.
-module(spinsleep).

-export([echo/1, many/3,
         spinsleep/1, spinsleep_dirty/1, spinsleep_timeslice/1, spinsleep_timeslice_dirty/1,
         spinsleep_fair/1, spinsleep_fair_yield/1, spinsleep_fair_dirty_yield/1,
         spinsleep_threaded/1,
         spinwork/1, spinwork_dirty/1, spinwork_timeslice/1, spinwork_timeslice_dirty/1,
         spinwork_fair/1, spinwork_fair_yield/1, spinwork_fair_dirty_yield/1,
         spinwork_threaded/1]).
%% What these await: for measuring.
-export([nif_spinsleep_threaded/1, nif_spinwork_threaded/1]).

-nifs([echo/1,
       spinsleep/1, spinsleep_dirty/1, spinsleep_timeslice/1, spinsleep_timeslice_dirty/1,
       spinsleep_fair/1, spinsleep_fair_yield/1, spinsleep_fair_dirty_yield/1,
       nif_spinsleep_threaded/1,
       spinwork/1, spinwork_dirty/1, spinwork_timeslice/1, spinwork_timeslice_dirty/1,
       spinwork_fair/1, spinwork_fair_yield/1, spinwork_fair_dirty_yield/1,
       nif_spinwork_threaded/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-define(NIF(FUNCTION), FUNCTION(_Us) -> erlang:nif_error(not_loaded)).

init() -> ?FAIRNIF_LOAD.

%% @doc Its argument: the cheapest NIF there is.
echo(_Term) -> erlang:nif_error(not_loaded).

%% Plain NIFs, on a normal scheduler and on a dirty one.
?NIF(spinsleep).
?NIF(spinsleep_dirty).
?NIF(spinwork).
?NIF(spinwork_dirty).

%% Sliced by hand, 1 ms each, with `enif_consume_timeslice', which does nothing on a dirty
%% scheduler, and `enif_schedule_nif'.
?NIF(spinsleep_timeslice).
?NIF(spinsleep_timeslice_dirty).
?NIF(spinwork_timeslice).
?NIF(spinwork_timeslice_dirty).

%% Modes AUTO (the one to use), NORMAL and DIRTY_CPU.
?NIF(spinsleep_fair).
?NIF(spinsleep_fair_yield).
?NIF(spinsleep_fair_dirty_yield).
?NIF(spinwork_fair).
?NIF(spinwork_fair_yield).
?NIF(spinwork_fair_dirty_yield).

%% Mode THREADED: on a thread of fairnif's pool, while the caller waits and holds no scheduler.
?NIF(nif_spinsleep_threaded).
?NIF(nif_spinwork_threaded).
spinsleep_threaded(Us) -> fairnif:await(nif_spinsleep_threaded(Us)).
spinwork_threaded(Us) -> fairnif:await(nif_spinwork_threaded(Us)).

%% @doc N processes call Form at once: milliseconds until the last has ended, the CPU time that the
%% whole VM used meanwhile, and the shortest and the longest of what the calls themselves answered.
-spec many(Form :: atom(), Us :: non_neg_integer(), pos_integer()) ->
          #{until_last_ms := non_neg_integer(), cpu_ms := non_neg_integer(),
            shortest_ms := non_neg_integer(), longest_ms := non_neg_integer()}.
many(Form, Us, N) ->
    Call = fun() -> receive go -> exit({took, ?MODULE:Form(Us)}) end end,
    Callers = [spawn_monitor(Call) || _ <- lists:seq(1, N)],
    {Cpu0, _} = statistics(runtime),
    T0 = erlang:monotonic_time(millisecond),
    [Pid ! go || {Pid, _} <- Callers],
    Took = [receive
                {'DOWN', Monitor, process, Pid, {took, T}} -> T;
                {'DOWN', Monitor, process, Pid, Reason} -> exit(Reason)
            end || {Pid, Monitor} <- Callers],
    T1 = erlang:monotonic_time(millisecond),
    {Cpu1, _} = statistics(runtime),
    #{until_last_ms => T1 - T0, cpu_ms => Cpu1 - Cpu0,
      shortest_ms => lists:min(Took) div 1000, longest_ms => lists:max(Took) div 1000}.
