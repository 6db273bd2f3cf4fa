%% A normal scheduler that runs one piece of native code, or sleeps in it, and gets to nothing else.
-module(fairnif_watch_detect_blocked).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => scheduler_blocked,
      looks_for => <<"Native code blocks a normal scheduler: nothing else runs on it.">>,
      thresholds =>
          [{warn_ms, {config, warn_ms}, ms,
            <<"ten times the 1 ms that erl_nif's documentation allows a call, and above what "
              "ordinary collections and BIFs take">>},
           {error_ms, {config, error_ms}, ms,
            <<"a tenth of a second is what a person notices, and more than most time-outs of one "
              "hop leave to spare">>},
           {forget_ms, 5000, ms,
            <<"the watchdog reports a blocked scheduler once a second: when five reports are "
              "missing, its end was lost">>}],
      remedy => fairnif_watch_culprit:remedy(nif),
      %% By scheduler, so that it is bounded whatever comes: when it was last reported, the event,
      %% the issue.
      init => #{},
      observe => fun ?MODULE:observe/3}.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), map()) ->
          {same | [fairnif_watch_finding:issue()], map()}.
observe({event, #{event := blocked, kind := normal, number := N} = Event, Now}, Limits, Open) ->
    Next = Open#{N => {Now, Event, issue(Event, true, Now, Limits)}},
    {issues(Next), Next};
observe({event, #{event := unblocked, kind := normal, number := N, id := Id} = Event, Now}, Limits,
        Open) ->
    case Open of
        #{N := {_, #{id := Id} = Blocked, _}} ->
            Rest = maps:remove(N, Open),
            {[issue(while_blocked(Blocked, Event), false, Now, Limits) | issues(Rest)], Rest};
        #{} ->
            {[issue(Event, false, Now, Limits) | issues(Open)], Open}
    end;
observe({sample, #{at := Now}}, #{forget_ms := Forget}, Open) ->
    Next = maps:filter(fun(_, {Seen, _, _}) -> Now - Seen =< Forget * 1000 end, Open),
    {issues(Next), Next};
observe(_, _, Open) ->
    {same, Open}.

issues(Open) -> [Issue || {_, _, Issue} <- maps:values(Open)].

%% What the thread does when it has been unblocked says nothing of what blocked it.
while_blocked(Last, Unblocked) ->
    Seen = case Unblocked of
               #{stack := [_ | _]} -> maps:with([state, syscall], Last);
               #{} -> maps:with([state, syscall, stack, stack_note, cause, process, fairnif], Last)
           end,
    maps:merge(Unblocked, Seen).

issue(#{id := Id, number := N, blocked_ns := Blocked} = Event, Ongoing, Now, Limits) ->
    Culprit = fairnif_watch_culprit:of_event(Event),
    Issue = #{key => Id,
              severity => severity(Blocked, Limits),
              subject => {scheduler, N},
              since => Now - Blocked div 1000,
              ongoing => Ongoing,
              duration_ms => Blocked / 1.0e6,
              culprit => Culprit,
              stack => maps:get(stack, Event, []),
              evidence => maps:with([blocked_ns, cpu_ns, delay_ns, state, syscall, stack_note,
                                     native, cause
                                     | [process || maps:get(kind, Culprit) =/= destructor]],
                                    Event)},
    maps:merge(Issue, fairnif_watch_finding:blocked(Issue)).

severity(Blocked, #{error_ms := Error}) when Blocked >= Error * 1000000 -> error;
severity(_, _) -> warning.
