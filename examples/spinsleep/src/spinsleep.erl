%% @doc NIFs that take a given time, in every manner a NIF can have.
%%
%% Each form takes microseconds, 0 to 3,600,000,000 (an hour), and returns how
%% many it really took from its first step to its last, by the clock on the
%% wall. Anything else is `badarg'.
%%
%% `spinsleep' spins until that much time has passed, whoever had the core
%% meanwhile. `spinwork' does what takes that much CPU time when nothing
%% interrupts it: the number of its steps is fixed.
-module(spinsleep).

-export([echo/1,
         spinsleep/1, spinsleep_dirty/1, spinsleep_timeslice/1,
         spinsleep_timeslice_dirty/1, spinsleep_original/1,
         spinwork/1, spinwork_dirty/1, spinwork_timeslice/1,
         spinwork_timeslice_dirty/1,
         spinsleep_fair/1, spinsleep_fair_yield/1, spinsleep_fair_dirty_yield/1,
         spinwork_fair/1, spinwork_fair_yield/1, spinwork_fair_dirty_yield/1,
         spinsleep_threaded/1, spinwork_threaded/1]).
%% What they await: for measuring.
-export([nif_spinsleep_threaded/1, nif_spinwork_threaded/1]).
-export([many/3, slices/2]).

-nifs([echo/1,
       spinsleep/1, spinsleep_dirty/1, spinsleep_timeslice/1,
       spinsleep_timeslice_dirty/1, spinsleep_original/1,
       spinwork/1, spinwork_dirty/1, spinwork_timeslice/1,
       spinwork_timeslice_dirty/1,
       spinsleep_fair/1, spinsleep_fair_yield/1, spinsleep_fair_dirty_yield/1,
       spinwork_fair/1, spinwork_fair_yield/1, spinwork_fair_dirty_yield/1,
       nif_spinsleep_threaded/1, nif_spinwork_threaded/1]).

-on_load(init/0).

-export_type([microseconds/0, form/0]).

-type microseconds() :: 0..3600000000.
-type form() :: atom().
%% The name of one of the functions of arity 1 above.

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @doc Its argument: the cheapest NIF there is.
-spec echo(Term) -> Term.
echo(_Term) -> erlang:nif_error(not_loaded).

%% -- until a deadline --------------------------------------------------------

%% @doc A plain NIF: holds its scheduler to the end.
-spec spinsleep(microseconds()) -> non_neg_integer().
spinsleep(_Us) -> erlang:nif_error(not_loaded).

%% @doc A plain dirty CPU NIF.
-spec spinsleep_dirty(microseconds()) -> non_neg_integer().
spinsleep_dirty(_Us) -> erlang:nif_error(not_loaded).

%% @doc Sliced by hand, 1 ms each, with `enif_consume_timeslice' and
%% `enif_schedule_nif'.
-spec spinsleep_timeslice(microseconds()) -> non_neg_integer().
spinsleep_timeslice(_Us) -> erlang:nif_error(not_loaded).

%% @doc The same on dirty CPU schedulers, where `enif_consume_timeslice' does
%% nothing.
-spec spinsleep_timeslice_dirty(microseconds()) -> non_neg_integer().
spinsleep_timeslice_dirty(_Us) -> erlang:nif_error(not_loaded).

%% @doc Sliced by the rule of the original of 2017: 1 ms, then all the rest.
-spec spinsleep_original(microseconds()) -> non_neg_integer().
spinsleep_original(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode AUTO.
-spec spinsleep_fair(microseconds()) -> non_neg_integer().
spinsleep_fair(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode NORMAL, which gives way.
-spec spinsleep_fair_yield(microseconds()) -> non_neg_integer().
spinsleep_fair_yield(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode DIRTY_CPU, which gives way.
-spec spinsleep_fair_dirty_yield(microseconds()) -> non_neg_integer().
spinsleep_fair_dirty_yield(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode THREADED: on a thread of fairnif's pool, while the caller waits and
%% holds no scheduler.
-spec spinsleep_threaded(microseconds()) -> non_neg_integer().
spinsleep_threaded(Us) -> fairnif:await(nif_spinsleep_threaded(Us)).

%% @private
-spec nif_spinsleep_threaded(microseconds()) -> fairnif:pending().
nif_spinsleep_threaded(_Us) -> erlang:nif_error(not_loaded).

%% -- a fixed amount of work --------------------------------------------------

%% @doc A plain NIF: holds its scheduler to the end.
-spec spinwork(microseconds()) -> non_neg_integer().
spinwork(_Us) -> erlang:nif_error(not_loaded).

%% @doc A plain dirty CPU NIF.
-spec spinwork_dirty(microseconds()) -> non_neg_integer().
spinwork_dirty(_Us) -> erlang:nif_error(not_loaded).

%% @doc Sliced by hand, as {@link spinsleep_timeslice/1}.
-spec spinwork_timeslice(microseconds()) -> non_neg_integer().
spinwork_timeslice(_Us) -> erlang:nif_error(not_loaded).

%% @doc Sliced by hand, as {@link spinsleep_timeslice_dirty/1}.
-spec spinwork_timeslice_dirty(microseconds()) -> non_neg_integer().
spinwork_timeslice_dirty(_Us) -> erlang:nif_error(not_loaded).

%% @doc The one to use: mode AUTO.
-spec spinwork_fair(microseconds()) -> non_neg_integer().
spinwork_fair(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode NORMAL, which gives way.
-spec spinwork_fair_yield(microseconds()) -> non_neg_integer().
spinwork_fair_yield(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode DIRTY_CPU, which gives way.
-spec spinwork_fair_dirty_yield(microseconds()) -> non_neg_integer().
spinwork_fair_dirty_yield(_Us) -> erlang:nif_error(not_loaded).

%% @doc Mode THREADED, as {@link spinsleep_threaded/1}.
-spec spinwork_threaded(microseconds()) -> non_neg_integer().
spinwork_threaded(Us) -> fairnif:await(nif_spinwork_threaded(Us)).

%% @private
-spec nif_spinwork_threaded(microseconds()) -> fairnif:pending().
nif_spinwork_threaded(_Us) -> erlang:nif_error(not_loaded).

%% -- measuring ---------------------------------------------------------------

%% @doc N processes call Form at once: milliseconds until the last has ended,
%% the CPU time that the whole VM used meanwhile, and the shortest and the
%% longest of what the calls themselves answered.
-spec many(form(), microseconds(), pos_integer()) ->
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

%% @doc The turns that one call of Form was given: where, and for how many
%% microseconds, in order. By a trace of its process; those before and after the
%% call (under 10 us) are left out.
-spec slices(form(), microseconds()) -> [{normal | dirty, non_neg_integer()}].
slices(Form, Us) ->
    Parent = self(),
    Pid = spawn_link(fun() ->
                         receive go -> Parent ! {self(), ?MODULE:Form(Us)} end,
                         receive stop -> ok end
                     end),
    1 = erlang:trace(Pid, true, [running, scheduler_id, monotonic_timestamp]),
    Pid ! go,
    receive {Pid, _} -> Pid ! stop end,
    Delivered = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Delivered} -> ok end,
    [Slice || {_, Length} = Slice <- turns(Pid), Length >= 10].

turns(Pid) ->
    receive
        {trace_ts, Pid, in, _, Scheduler, From} ->
            receive
                {trace_ts, Pid, out, _, Scheduler, To} ->
                    [{place(Scheduler), microseconds(To - From)} | turns(Pid)]
            after 0 -> []
            end
    after 0 -> []
    end.

%% The VM gives dirty schedulers no number here.
place(0) -> dirty;
place(_) -> normal.

microseconds(Native) ->
    erlang:convert_time_unit(Native, native, microsecond).
