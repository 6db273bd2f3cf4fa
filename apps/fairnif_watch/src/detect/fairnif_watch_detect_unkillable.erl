%% A process that is dead, or dying, while native code still runs for it on a dirty scheduler or on
%% a thread of fairnif's pool: neither is free, nor is what it holds. A body that takes long to
%% clean up (FAIR_CLEANUP) is such code.
-module(fairnif_watch_detect_unkillable).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => unkillable,
      looks_for => <<"Native code continues for a process that was killed.">>,
      thresholds =>
          [{grace_ms, 1000, ms,
            <<"a fairnif body stops within its slice of about 1 ms; code that polls now and then "
              "should stop within a second">>},
           {error_ms, 10000, ms,
            <<"by then the call was made again, and each try takes more of the pool">>}],
      remedy => remedy(),
      init => none,
      observe => fun ?MODULE:observe/3}.

remedy() ->
    <<"Let the code notice: call fair_tick, or enif_is_current_process_alive every "
      "millisecond. Until then start more threads: +SDcpu, +SDio.">>.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), none) ->
          {same | [fairnif_watch_finding:issue()], none}.
observe({sample, #{dirty := Dirty, at := At}}, #{grace_ms := Grace} = Limits, State) ->
    {[issue(Job, At, Limits) || #{died := Died} = Job <- maps:get(dead, Dirty, []),
                                At - Died >= Grace * 1000],
     State};
observe(_, _, State) ->
    {same, State}.

issue(#{key := Key, pid := Pid, died := Died, name := Name, certain := Certain, pool := Pool,
        mfa := Mfa, count := Count} = Job, At, #{error_ms := Error}) ->
    Ms = (At - Died) / 1000,
    #{key => Key, subject => subject(Job), since => Died, ongoing => true, duration_ms => Ms,
      severity => if not Certain -> unconfirmed;
                     Ms >= Error -> error;
                     true -> warning
                  end,
      remedy => remedy(),
      culprit => (fairnif_watch_culprit:none())
                     #{kind := maps:get(kind, Job, nif), name := Name, mfa := Mfa, pid := Pid,
                       module := case Mfa of {M, _, _} -> M; none -> none end},
      sentence => iolist_to_binary(
                    [Name, case Certain of
                               true -> " still runs on ";
                               false -> " may still run on "
                           end,
                     threads(Count, Pool), ", ", fairnif_watch_finding:ms(round(Ms * 1.0e6)),
                     " after ", died(Job), "."]),
      evidence => maps:with([pool, number, candidates, count], Job)}.

threads(1, thread) -> "a thread of fairnif's pool";
threads(1, Pool) -> ["a ", what(Pool), " scheduler"];
threads(Count, Pool) -> [integer_to_binary(Count), " ", what(Pool), " schedulers"].

what(dirty_cpu) -> "dirty CPU";
what(dirty_io) -> "dirty I/O";
what(_) -> "dirty".

died(#{pid := Pid}) when is_pid(Pid) -> ["its process ", pid_to_list(Pid), " died"];
died(#{candidates := Pids}) -> ["the first of ", integer_to_binary(length(Pids)),
                                " processes that were in it died"].

subject(#{pool := thread, pid := Pid}) -> {process, Pid};
subject(#{pool := Pool, number := Number}) when is_integer(Number) -> {Pool, Number};
subject(#{pid := Pid}) when is_pid(Pid) -> {process, Pid};
subject(_) -> node.
