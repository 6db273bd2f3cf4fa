%% A dirty pool with all its threads busy and jobs that wait: a detector for each of the two.
%%
%% Busy threads are no finding: that is what they are for. Nor is a queue that is gone in no time.
-module(fairnif_watch_detect_pool).

-export([detector/1, dirty_cpu/3, dirty_io/3]).

%% Functions, and processes of each, in a sentence.
-define(NAMED, 3).

-type result() :: {same | [fairnif_watch_finding:issue()], Since :: none | integer()}.

%% @private
-spec detector(dirty_cpu | dirty_io) -> fairnif_watch_detector:detector().
detector(dirty_cpu) ->
    #{name => dirty_cpu_saturated,
      looks_for => <<"All dirty CPU schedulers are busy and jobs wait for one.">>,
      thresholds => thresholds(), remedy => remedy(dirty_cpu), init => none,
      observe => fun ?MODULE:dirty_cpu/3};
detector(dirty_io) ->
    #{name => dirty_io_saturated,
      looks_for => <<"All dirty I/O schedulers are busy and jobs wait for one.">>,
      thresholds => thresholds(), remedy => remedy(dirty_io), init => none,
      observe => fun ?MODULE:dirty_io/3}.

remedy(dirty_cpu) ->
    <<"Let dirty jobs yield (fair_tick in a dirty mode), limit how many run at once, or start more "
      "threads: +SDcpu, up to the number of schedulers.">>;
remedy(dirty_io) ->
    <<"Start more threads: +SDio (up to 1024). Or wait outside of dirty schedulers (fair_wait, "
      "FAIR_THREADED).">>.

thresholds() ->
    [{looks, 3, looks, <<"a queue that is there at each look, not one that a burst left">>},
     {full_ms, 250, ms, <<"a burst of jobs that is over sooner needs no remedy">>},
     {wait_ms, 10, ms,
      <<"how long a job waits. Longer waits delay collections of large heaps, which run there "
        "too, as a blocked scheduler would">>},
     {error_ms, 1000, ms,
      <<"the call after one whose caller was killed was measured to wait 1.9 s; callers' "
        "time-outs are 5 s">>}].

%% @private The state: since when it is full.
-spec dirty_cpu(fairnif_watch_detector:observation(), map(), none | integer()) -> result().
dirty_cpu(Observation, Limits, Since) -> observe(dirty_cpu, Observation, Limits, Since).

%% @private
-spec dirty_io(fairnif_watch_detector:observation(), map(), none | integer()) -> result().
dirty_io(Observation, Limits, Since) -> observe(dirty_io, Observation, Limits, Since).

observe(Kind, {sample, Sample}, #{full_ms := FullMs} = Limits, Since) ->
    #{at := At, interval_ms := Interval, waits := Waits, looks := Looks} = Sample,
    Wait = maps:get(Kind, Waits, none),
    case full_looks(Kind, Looks) of
        0 ->
            {[], none};
        Full ->
            %% Looks are evenly spaced, near enough.
            Start = case Since of
                        none -> At - Interval * 1000 * Full div length(Looks);
                        _ -> Since
                    end,
            Long = Full >= maps:get(looks, Limits) andalso At - Start >= FullMs * 1000,
            case Long andalso severity(Wait, Limits) of
                false -> {[], Start};
                none -> {[], Start};
                Severity -> {[issue(Kind, Severity, Wait, Sample, Start)], Start}
            end
    end;
observe(_, _, _, Since) ->
    {same, Since}.

%% How many of the last looks found it so. With a job in the queue no thread of the pool is idle for
%% longer than it takes to wake.
full_looks(Kind, Looks) ->
    length(lists:takewhile(fun(Look) -> {Queued, _} = maps:get(Kind, Look), Queued > 0 end,
                           lists:reverse(Looks))).

%% How long jobs wait is measured by one more job. While that one itself waits, it is so long at
%% least.
severity({_, Ms}, #{error_ms := Error}) when Ms >= Error -> error;
severity({_, Ms}, #{wait_ms := Wait}) when Ms >= Wait -> warning;
severity({measured, _}, _) -> none;
severity(_, _) -> unconfirmed.

issue(Kind, Severity, Wait, Sample, Since) ->
    #{at := At, looks := Looks, online := Online, dirty := Dirty} = Sample,
    {Queued, _} = maps:get(Kind, lists:last(Looks)),
    Jobs = [Job || #{pool := Of} = Job <- maps:get(jobs, Dirty, []),
                   Of =:= Kind orelse Of =:= unknown],
    #{key => Kind, severity => Severity, subject => node, since => Since, ongoing => true,
      duration_ms => (At - Since) / 1000,
      remedy => remedy(Kind),
      culprit => culprit(Jobs),
      sentence => iolist_to_binary(
                    [io_lib:format("All ~b ~s schedulers are busy and ~b jobs wait",
                                   [maps:get(Kind, Online), what(Kind), Queued]),
                     waited(Wait), busy_with(Jobs), "."]),
      evidence => #{queued => Queued,
                    wait_ms => case Wait of {_, Ms} -> Ms; none -> none end,
                    jobs => lists:sublist(Jobs, 20)}}.

what(dirty_cpu) -> "dirty CPU";
what(dirty_io) -> "dirty I/O".

waited({measured, Ms}) -> [", each for ", fairnif_watch_finding:ms(round(Ms * 1.0e6))];
waited({at_least, Ms}) -> [", each for ", fairnif_watch_finding:ms(round(Ms * 1.0e6)), " at least"];
waited(none) -> ", how long is not known".

busy_with([]) ->
    [];
busy_with(Jobs) ->
    ["; seen there: ", lists:join(", ", [for(Name, Pids)
                                         || {Name, Pids} <- lists:sublist(by_name(Jobs), ?NAMED)])].

for(Name, Pids) ->
    Shown = lists:join(", ", [pid_to_list(Pid) || Pid <- lists:sublist(Pids, ?NAMED)]),
    [Name, " for ", Shown, [[" and ", integer_to_list(N), " more"]
                            || N <- [length(Pids) - ?NAMED], N > 0]].

%% The name that most have is the first.
by_name(Jobs) ->
    Pids = lists:foldr(fun(#{name := Name, pid := Pid}, Acc) ->
                               maps:update_with(Name, fun(More) -> [Pid | More] end, [Pid], Acc)
                       end, #{}, Jobs),
    lists:sort(fun({N1, A}, {N2, B}) -> {-length(A), N1} =< {-length(B), N2} end,
               maps:to_list(Pids)).

%% The function that most of the jobs are in.
culprit([]) ->
    fairnif_watch_culprit:none();
culprit(Jobs) ->
    [{Name, _} | _] = by_name(Jobs),
    [#{mfa := Mfa, pid := Pid} = Job | _] = [J || #{name := N} = J <- Jobs, N =:= Name],
    (fairnif_watch_culprit:none())#{kind := maps:get(kind, Job, nif), name := Name, mfa := Mfa,
                                    pid := Pid,
                                    module := case Mfa of {M, _, _} -> M; none -> none end}.
