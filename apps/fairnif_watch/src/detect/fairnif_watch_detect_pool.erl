%% A dirty pool with all its threads busy and jobs that wait: what is common to both pools.
%%
%% Busy threads are no finding: that is what they are for. Nor is a queue that is gone in no time.
-module(fairnif_watch_detect_pool).

-export([thresholds/0, init/0, observe/4]).

-type pool() :: #{kind := dirty_cpu | dirty_io, what := string(), remedy := binary()}.

%% @doc The same for both pools.
-spec thresholds() -> [fairnif_watch_detector:threshold()].
thresholds() ->
    fairnif_watch_detector:thresholds(
      [{looks, 3, looks, <<"a queue that is there at each look, not one that a burst left">>},
       {full_ms, 250, ms, <<"a burst of jobs that is over sooner needs no remedy">>},
       {wait_ms, 10, ms,
        <<"how long a job waits. Longer waits delay collections of large heaps, which run there "
          "too, as a blocked scheduler would">>},
       {error_ms, 1000, ms,
        <<"the call after one whose caller was killed was measured to wait 1.9 s; callers' "
          "time-outs are 5 s">>}]).

%% @doc Since when it is full.
-spec init() -> none | integer().
init() -> none.

%% @doc As the callback, for one of the pools.
-spec observe(pool(), fairnif_watch_detector:observation(), map(), none | integer()) ->
          {same | [fairnif_watch_finding:issue()], none | integer()}.
observe(#{kind := Kind} = Pool, {sample, Sample}, #{full_ms := FullMs} = Limits, Since) ->
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
                Severity -> {[issue(Pool, Severity, Wait, Sample, Start)], Start}
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
severity(_, _) -> recheck.

issue(#{kind := Kind, what := What, remedy := Remedy}, Severity, Wait, Sample, Since) ->
    #{at := At, looks := Looks, online := Online, dirty := Dirty} = Sample,
    {Queued, _} = maps:get(Kind, lists:last(Looks)),
    Jobs = [Job || #{pool := Of} = Job <- maps:get(jobs, Dirty, []),
                   Of =:= Kind orelse Of =:= unknown],
    #{key => Kind, severity => Severity, subject => node, since => Since, ongoing => true,
      duration_ms => (At - Since) / 1000,
      remedy => Remedy,
      culprit => culprit(Jobs),
      sentence => iolist_to_binary(
                    [io_lib:format("All ~b ~s schedulers are busy and ~b jobs wait",
                                   [maps:get(Kind, Online), What, Queued]),
                     waited(Wait), busy_with(Jobs), "."]),
      evidence => #{queued => Queued,
                    wait_ms => case Wait of {_, Ms} -> Ms; none -> none end,
                    jobs => lists:sublist(Jobs, 20)}}.

waited({measured, Ms}) -> [", each for ", fairnif_watch_finding:ms(round(Ms * 1.0e6))];
waited({at_least, Ms}) -> [", each for ", fairnif_watch_finding:ms(round(Ms * 1.0e6)), " at least"];
waited(none) -> ", how long is not known".

busy_with([]) ->
    [];
busy_with(Jobs) ->
    Named = [[Name, case N of 1 -> ""; _ -> [" (", integer_to_binary(N), " times)"] end]
             || {Name, N} <- lists:sublist(counted(Jobs), 3)],
    ["; seen there: ", lists:join(", ", Named)].

counted(Jobs) ->
    Counts = lists:foldl(fun(#{name := Name}, Acc) ->
                                 maps:update_with(Name, fun(N) -> N + 1 end, 1, Acc)
                         end, #{}, Jobs),
    lists:reverse(lists:keysort(2, maps:to_list(Counts))).

%% The function that most of the jobs are in.
culprit([]) ->
    fairnif_watch_culprit:none();
culprit(Jobs) ->
    [{Name, _} | _] = counted(Jobs),
    [#{mfa := Mfa, pid := Pid} = Job | _] = [J || #{name := N} = J <- Jobs, N =:= Name],
    (fairnif_watch_culprit:none())#{kind := maps:get(kind, Job, nif), name := Name, mfa := Mfa,
                                    pid := Pid,
                                    module := case Mfa of {M, _, _} -> M; none -> none end}.
