%% A normal scheduler that runs one piece of native code, or sleeps in it, and gets to nothing else.
-module(fairnif_watch_detect_blocked).

-behaviour(fairnif_watch_detector).

-export([name/0, describe/0, thresholds/0, remedy/0, init/0, observe/3]).

%% @private
-spec name() -> scheduler_blocked.
name() -> scheduler_blocked.

%% @private
-spec describe() -> binary().
describe() -> <<"Native code blocks a normal scheduler: nothing else runs on it.">>.

%% @private
-spec thresholds() -> [fairnif_watch_detector:threshold()].
thresholds() ->
    fairnif_watch_detector:thresholds(
      [{warn_ms, {config, warn_ms}, ms,
        <<"ten times the 1 ms that erl_nif's documentation allows a call, and above what ordinary "
          "collections and BIFs take">>},
       {error_ms, {config, error_ms}, ms,
        <<"a tenth of a second is what a person notices, and more than most time-outs of one hop "
          "leave to spare">>},
       {forget_ms, 5000, ms,
        <<"the watchdog reports a blocked scheduler once a second: when five reports are missing, "
          "its end was lost">>}]).

%% @private
-spec remedy() -> binary().
remedy() -> fairnif_watch_culprit:remedy(nif).

%% State: by scheduler, so that it is bounded whatever comes: when it was last told of, the event,
%% the issue.
%% @private
-spec init() -> map().
init() -> #{}.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), map()) ->
          {same | [fairnif_watch_finding:issue()], map()}.
observe({event, #{event := held, kind := normal, number := N} = Event, Now}, Limits, Open) ->
    Next = Open#{N => {Now, Event, issue(Event, true, Now, Limits)}},
    {issues(Next), Next};
observe({event, #{event := released, kind := normal, number := N, id := Id} = Event, Now}, Limits,
        Open) ->
    case Open of
        #{N := {_, #{id := Id} = Held, _}} ->
            Rest = maps:remove(N, Open),
            {[issue(while_held(Held, Event), false, Now, Limits) | issues(Rest)], Rest};
        #{} ->
            {[issue(Event, false, Now, Limits) | issues(Open)], Open}
    end;
observe({sample, #{at := Now}}, #{forget_ms := Forget}, Open) ->
    Next = maps:filter(fun(_, {Seen, _, _}) -> Now - Seen =< Forget * 1000 end, Open),
    {issues(Next), Next};
observe(_, _, Open) ->
    {same, Open}.

issues(Open) -> [Issue || {_, _, Issue} <- maps:values(Open)].

%% What the thread does when it has been released says nothing of what held it.
while_held(Held, Released) ->
    Seen = case Released of
               #{stack := [_ | _]} -> maps:with([state, syscall], Held);
               #{} -> maps:with([state, syscall, stack, stack_note, cause, process, fairnif], Held)
           end,
    maps:merge(Released, Seen).

issue(#{id := Id, number := N, held_ns := Held} = Event, Ongoing, Now, Limits) ->
    Culprit = fairnif_watch_culprit:of_event(Event),
    Issue = #{key => Id,
              severity => severity(Held, Limits),
              subject => {scheduler, N},
              since => Now - Held div 1000,
              ongoing => Ongoing,
              duration_ms => Held / 1.0e6,
              culprit => Culprit,
              stack => maps:get(stack, Event, []),
              evidence => maps:with([held_ns, cpu_ns, delay_ns, state, syscall, stack_note, native,
                                     cause | [process || maps:get(kind, Culprit) =/= destructor]],
                                    Event)},
    maps:merge(Issue, fairnif_watch_finding:held(Issue)).

severity(Held, #{error_ms := Error}) when Held >= Error * 1000000 -> error;
severity(_, _) -> warning.
