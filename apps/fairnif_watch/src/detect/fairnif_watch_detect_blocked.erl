%% A normal scheduler that runs one piece of native code, or sleeps in it, and gets to nothing else.
-module(fairnif_watch_detect_blocked).

-behaviour(fairnif_watch_detector).

-export([name/0, describe/0, thresholds/0, remedy/0, init/0, observe/3]).
-export([words/1]).

%% @private
-spec name() -> scheduler_blocked.
name() -> scheduler_blocked.

%% @private
-spec describe() -> binary().
describe() -> <<"A normal scheduler is held in native code and gets to nothing else.">>.

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
        <<"the watchdog tells of a held scheduler once a second: after five that are missing, the "
          "end was lost">>}]).

%% @private
-spec remedy() -> binary().
remedy() -> remedy(nif).

%% By the kind of culprit, which may become known later.
remedy(fairnif) ->
    <<"Tick more often (fair_tick), or put the part that cannot tick into fair_call or "
      "FAIR_THREADED.">>;
remedy(destructor) ->
    <<"Free what takes long before the last reference goes, in a call of its own that yields or is "
      "dirty; or let the destructor hand it to a thread.">>;
remedy(driver) ->
    <<"Put the callback's work off: fairdrv.h, or driver_async.">>;
remedy(Kind) when Kind =:= bif; Kind =:= emulator ->
    <<"The emulator's own code: give it less in one call, or call it where nothing else waits.">>;
remedy(gc) ->
    <<"Keep that process's heap small: hand large terms to short-lived processes, or keep them in "
      "binaries or ETS.">>;
remedy(_) ->
    <<"Make the call yield (fair_tick), or run it on a dirty scheduler: "
      "ERL_NIF_DIRTY_JOB_CPU_BOUND, or _IO_BOUND where it sleeps.">>.

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
    maps:merge(Issue, words(Issue)).

severity(Held, #{error_ms := Error}) when Held >= Error * 1000000 -> error;
severity(_, _) -> warning.

%% @private The sentence and the remedy of an issue or a finding, from the rest of it.
-spec words(map()) -> #{sentence => binary(), remedy => binary()}.
words(#{subject := {scheduler, N}, duration_ms := Ms, ongoing := Ongoing,
        culprit := #{kind := Kind} = Culprit} = About) ->
    Held = case Ongoing of true -> " has been held for "; false -> " was held for " end,
    #{sentence => iolist_to_binary(["Scheduler ", integer_to_binary(N), Held,
                                    fairnif_watch_finding:ms(round(Ms * 1.0e6)), by(Culprit),
                                    how(maps:get(evidence, About, #{}), Culprit), "."]),
      remedy => remedy(Kind)};
words(_) ->
    #{}.

by(#{name := <<"unknown">>}) -> " by an unknown call";
by(#{name := Name}) -> [" by ", Name].

how(#{state := State}, #{syscall := Call}) when State =:= sleeping; State =:= disk ->
    [", asleep", [[" in the system call ", atom_to_binary(Call)] || Call =/= none]];
how(_, _) ->
    [].
