%% @private
%% The runtime's settings: the application environment, the switches, and the figures of the
%% calibration, which a process of its own measures once.
-module(fairnif_settings).

-export([configure/0, configure_or_log/0, calibrate/0, debug/1, start_measuring/0]).
%% Spawned.
-export([measure/0]).

-spec debug(#{atom() => boolean()}) -> ok.
debug(Switches) ->
    maps:foreach(
      fun(Name, On) when is_boolean(On),
                         (Name =:= pause_every_tick orelse Name =:= check_terms
                          orelse Name =:= measure_cpu) ->
              ok = fairnif:nif_set(Name, case On of true -> 1; false -> 0 end);
         (Name, Value) ->
              error({fairnif, {bad_switch, {Name, Value}}})
      end, Switches).

%% At a value out of bounds it stops and raises `error:{fairnif, {bad_env, {Name, Value}}}'.
-spec configure() -> ok.
configure() ->
    ok = fairnif:nif_set(dirty_cpus, erlang:system_info(dirty_cpu_schedulers_online)),
    use_figures(),
    set_env(dirty_slice_ns, dirty_slice_us, 1000, 1000000),
    ok = fairnif:nif_set(spin, spin()),
    set_env(auto_gap_ns, auto_gap_us, 1000, 1000000),
    set_env(threads, threads, 1, 16),
    set_env(pool_nice, pool_nice, 1, 10),
    set_env(scheduler_slice_ns, scheduler_slice_us, 1000, 100000),
    set_env(max_queued, max_queued, 1, 1000),
    set_env(overload_ns, overload_ms, 1000000, 5000000000),
    set_env(max_tasks, max_tasks, 1, 0).

%% A bad value in the environment must not keep an author's library from
%% loading: the defaults hold until the application starts, which then fails.
-spec configure_or_log() -> ok.
configure_or_log() ->
    try
        configure()
    catch
        error:{fairnif, {bad_env, {Key, Value}}} ->
            logger:error("fairnif: bad value of ~p in the application environment: ~p; "
                         "the default is used", [Key, Value])
    end.

%% A thread of the pool may spin for some microseconds where another processor
%% can make work for it meanwhile.
spin() ->
    case erlang:system_info(logical_processors_available) of
        N when is_integer(N), N > 1 -> 1;
        _ -> 0
    end.

set_env(Setting, Key, Factor, Default) ->
    case env(Key) of
        undefined ->
            ok = fairnif:nif_set(Setting, Default);
        Value ->
            try
                ok = fairnif:nif_set(Setting, Value * Factor)
            catch
                error:_ -> error({fairnif, {bad_env, {Key, Value}}})
            end
    end.

%% While a release boots in embedded mode there is no application controller
%% yet; the environment is then read when this application starts.
env(Key) ->
    try application:get_env(fairnif, Key) of
        {ok, Value} -> Value;
        undefined -> undefined
    catch
        error:badarg -> undefined
    end.

%% -- figures -------------------------------------------------------------------

-spec calibrate() -> fairnif_calibration:result().
calibrate() ->
    Figures = fairnif_calibration:run(),
    ok = fairnif_calibration:put_figures(Figures),
    ok = configure(),
    Figures.

%% What was measured, or the defaults.  They may change just then: a process of its own
%% measures.
use_figures() ->
    #{turn_ns := Fair, slice_ns := Slice, dirty_round_trip_ns := Trip} = Figures =
        fairnif_calibration:figures(),
    ok = fairnif:nif_set(turn_ns, Fair),
    ok = fairnif:nif_set(dirty_round_trip_ns, Trip),
    set_env(slice_ns, slice_us, 1000, Slice),
    case fairnif_calibration:figures() of
        Figures -> ok;
        _ -> use_figures()
    end.

%% Starts the process that measures, unless that was done or is under way.  It is linked to no
%% process, since the one that loads the runtime may die; if it is killed itself, the next call of
%% fairnif:load_info/0,1, info/0,1, configure/0 or debug/1 starts it again.
-spec start_measuring() -> ok.
start_measuring() ->
    case is_measured() orelse whereis(fairnif_calibration) =/= undefined of
        true -> ok;
        false -> _ = proc_lib:spawn(?MODULE, measure, []), ok
    end.

-spec measure() -> ok.
measure() ->
    %% An application that stops ends all processes with its group leader.
    true = group_leader(whereis(init), self()),
    try register(fairnif_calibration, self()) of
        true -> is_measured() orelse measure_once()
    catch
        error:badarg -> true    % another one is at it
    end,
    ok.

measure_once() ->
    try
        %% Else a scheduler waits for the pool's first thread, when that is wanted.
        ok = fairnif:nif_start_pool(),
        Figures = fairnif_calibration:run(),
        %% fairnif:calibrate/0 may have been quicker.
        is_measured() orelse fairnif_calibration:put_figures(Figures),
        use_figures()
    catch
        %% Module fairnif is being loaded again: its next call starts this again.
        error:not_loaded -> ok;
        %% Reported when the environment was read.
        error:{fairnif, {bad_env, _}} -> ok
    end.

is_measured() ->
    maps:get(measured, fairnif_calibration:figures()).
