%% One run queue is much longer than the others, and stays so.
-module(fairnif_watch_detect_imbalance).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => imbalance,
      looks_for => <<"One run queue is much longer than the others, for seconds.">>,
      thresholds =>
          [{longest, 10, processes,
            <<"ten fair shares of 20 to 60 us are still under a millisecond of delay">>},
           {ratio, 4, 'times the median',
            <<"queues that the VM has balanced differ by less: it evens them out to their mean">>},
           {looks, 5, looks, <<"one look at the queues says nothing">>},
           {seconds, 5, s,
            <<"the VM balances at least every few hundred milliseconds, and bursts are over by "
              "then">>}],
      remedy => remedy(),
      %% State: seconds in a row, which scheduler, and when the first began.
      init => {0, 0, 0},
      observe => fun ?MODULE:observe/3}.

remedy() ->
    <<"Look for processes bound to that scheduler (spawn option scheduler), and for what "
      "blocks it: others can take over its queue only now and then.">>.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), tuple()) ->
          {same | [fairnif_watch_finding:issue()], tuple()}.
observe({sample, #{at := At, interval_ms := Interval} = Sample}, #{seconds := Seconds} = Limits,
        {Before, Which, Since}) ->
    case longest(Sample, Limits) of
        none ->
            {[], {0, 0, 0}};
        Which when Before + 1 >= Seconds ->
            {[issue(Which, Sample, Since)], {Before + 1, Which, Since}};
        Which when Before > 0 ->
            {[], {Before + 1, Which, Since}};
        Other ->
            {[], {1, Other, At - Interval * 1000}}
    end;
observe(_, _, State) ->
    {same, State}.

%% The scheduler whose queue was the longest by far at each look. Not while another is idle: that is
%% for `schedulers_asleep' to say.
longest(#{looks := Looks, threads := Threads}, #{looks := Least} = Limits)
  when length(Looks) >= Least ->
    Idle = [N || #{kind := normal, number := N, busy := Busy, state := State} <- Threads,
                 is_number(Busy), Busy < 0.5, State =/= offline],
    case lists:usort([of_look(Queues, Limits) || #{queues := Queues} <- Looks]) of
        [N] when is_integer(N), Idle =:= [] -> N;
        _ -> none
    end;
longest(_, _) ->
    none.

of_look(Queues, #{longest := Longest, ratio := Ratio}) when length(Queues) > 1 ->
    Sorted = lists:sort(Queues),
    Median = max(1, lists:nth((length(Sorted) + 1) div 2, Sorted)),
    {Max, N} = lists:max(lists:zip(Queues, lists:seq(1, length(Queues)))),
    case Max >= Longest andalso Max >= Ratio * Median of
        true -> N;
        false -> none
    end;
of_look(_, _) ->
    none.

issue(N, #{looks := Looks, threads := Threads, at := At}, Since) ->
    #{queues := Queues} = lists:last(Looks),
    %% Without the threads' times the others may be idle: then it is something else.
    Severity = case [Busy || #{kind := normal, busy := Busy} <- Threads, is_number(Busy)] of
                   [] -> unconfirmed;
                   _ -> warning
               end,
    #{key => N, severity => Severity, subject => {scheduler, N}, since => Since, ongoing => true,
      duration_ms => (At - Since) / 1000,
      remedy => remedy(),
      sentence => iolist_to_binary(
                    io_lib:format("Scheduler ~b has ~b processes waiting, all schedulers together "
                                  "~b.", [N, lists:nth(N, Queues), lists:sum(Queues)])),
      evidence => #{queues => Queues}}.
