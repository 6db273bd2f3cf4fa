%% Schedulers that would run but get no processor: the operating system's doing, or the
%% hypervisor's. Never reported as blocked.
-module(fairnif_watch_detect_no_cpu).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => no_cpu_time,
      looks_for => <<"Schedulers that are ready to run get no processor.">>,
      thresholds =>
          [{window_ms, 10000, ms, <<"every system loses some time now and then">>},
           {lost_ms, 1000, ms,
            <<"a tenth of one scheduler's time in the window. Only pieces of warn_ms and longer "
              "count: shorter delays are hardly noticed">>}],
      remedy => remedy(),
      %% `{At, {Kind, Number}, DelayNs, ThrottledNs, StolenNs}', newest first, and who had the
      %% processors in each second.
      init => {[], []},
      observe => fun ?MODULE:observe/3}.

remedy() ->
    <<"Raise the quota of the control group, or start only as many schedulers as it allows "
      "(+S). Else run fewer programs on this machine.">>.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), State) ->
          {same | [fairnif_watch_finding:issue()], State}
              when State :: {[tuple()], [{integer(), fairnif_watch_taken:taken()}]}.
observe({event, #{event := no_cpu_time, kind := Kind, number := N} = Event, Now}, _, {Seen,
                                                                                      Taken}) ->
    Ns = fun(Key) -> maps:get(Key, Event, 0) end,
    {same, {[{Now, {Kind, N}, Ns(delay_ns), Ns(throttled_ns), Ns(stolen_ns)} | Seen], Taken}};
observe({sample, #{at := Now, interval_ms := Ms} = Sample},
        #{window_ms := Window, lost_ms := Lost}, {Seen, Before}) ->
    %% One that had little to do in that second is fairnif_watch_detect_late's.
    Late = [{Kind, N} || #{kind := Kind, number := N} <- fairnif_watch_detect_late:late(Sample)],
    Recent = [E || {At, Who, _, _, _} = E <- Seen, Now - At =< Window * 1000,
                   At < Now - Ms * 1000 orelse not lists:member(Who, Late)],
    Taken = [{Now, maps:get(taken, Sample, none)}
             | [T || {At, _} = T <- Before, Now - At < Window * 1000]],
    Delay = lists:sum([Ns || {_, _, Ns, _, _} <- Recent]),
    case Delay >= Lost * 1000000 of
        true ->
            Had = fairnif_watch_taken:sum([T || {_, T} <- Taken]),
            {[issue(Recent, Delay, Window, Had)], {Recent, Taken}};
        false ->
            {[], {Recent, Taken}}
    end;
observe(_, _, State) ->
    {same, State}.

issue(Recent, Delay, Window, Taken) ->
    Throttled = lists:sum([Ns || {_, _, _, Ns, _} <- Recent]),
    Stolen = lists:sum([Ns || {_, _, _, _, Ns} <- Recent]),
    Who = who(Delay, Throttled, Stolen, Taken),
    #{key => node, subject => node, severity => warning, ongoing => true,
      since => lists:min([At || {At, _, _, _, _} <- Recent]),
      remedy => remedy(),
      culprit => fairnif_watch_culprit:os(Who),
      sentence => iolist_to_binary(
                    ["Schedulers got no processor for ", fairnif_watch_finding:ms(Delay),
                     " of the last ", fairnif_watch_finding:ms(Window * 1000000), ": ", Who, "."]),
      evidence => #{delay_ns => Delay, throttled_ns => Throttled, stolen_ns => Stolen,
                    schedulers => lists:usort([S || {_, S, _, _, _} <- Recent])}}.

%% Throttling and theft are separated from the delay only roughly, so: what makes up half of it.
who(Delay, Throttled, _, _) when 2 * Throttled >= Delay ->
    <<"the control group's quota is used up">>;
who(Delay, _, Stolen, _) when 2 * Stolen >= Delay -> <<"the hypervisor gave it to others">>;
who(_, _, _, Taken) -> iolist_to_binary(fairnif_watch_taken:words(Taken, [])).
