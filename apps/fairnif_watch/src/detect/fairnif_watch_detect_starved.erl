%% Schedulers that would run but get no processor: the operating system's doing, or the
%% hypervisor's. Never reported as blocked.
-module(fairnif_watch_detect_starved).

-behaviour(fairnif_watch_detector).

-export([name/0, describe/0, thresholds/0, remedy/0, init/0, observe/3]).

%% @private
-spec name() -> starved.
name() -> starved.

%% @private
-spec describe() -> binary().
describe() -> <<"Schedulers that are ready to run get no processor.">>.

%% @private
-spec thresholds() -> [fairnif_watch_detector:threshold()].
thresholds() ->
    fairnif_watch_detector:thresholds(
      [{window_ms, 10000, ms, <<"every system loses some time now and then">>},
       {lost_ms, 1000, ms,
        <<"a tenth of one scheduler's time in the window. Only pieces of warn_ms and longer count: "
          "each was a delay that somebody could notice">>}]).

%% @private
-spec remedy() -> binary().
remedy() ->
    <<"Raise the quota of the control group, or start only as many schedulers as it allows (+S). "
      "Else run fewer programs on this machine.">>.

%% State: `{At, {Kind, Number}, DelayNs, ThrottledNs, StolenNs}', newest first.
%% @private
-spec init() -> [tuple()].
init() -> [].

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), [tuple()]) ->
          {same | [fairnif_watch_finding:issue()], [tuple()]}.
observe({event, #{event := starved, kind := Kind, number := N} = Event, Now}, _, Seen) ->
    Ns = fun(Key) -> maps:get(Key, Event, 0) end,
    {same, [{Now, {Kind, N}, Ns(delay_ns), Ns(throttled_ns), Ns(stolen_ns)} | Seen]};
observe({sample, #{at := Now}}, #{window_ms := Window, lost_ms := Lost}, Seen) ->
    Recent = [E || {At, _, _, _, _} = E <- Seen, Now - At =< Window * 1000],
    Delay = lists:sum([Ns || {_, _, Ns, _, _} <- Recent]),
    case Delay >= Lost * 1000000 of
        true -> {[issue(Recent, Delay, Window)], Recent};
        false -> {[], Recent}
    end;
observe(_, _, State) ->
    {same, State}.

issue(Recent, Delay, Window) ->
    Throttled = lists:sum([Ns || {_, _, _, Ns, _} <- Recent]),
    Stolen = lists:sum([Ns || {_, _, _, _, Ns} <- Recent]),
    Who = who(Delay, Throttled, Stolen),
    #{key => node, subject => node, severity => warning, ongoing => true,
      since => lists:min([At || {At, _, _, _, _} <- Recent]),
      remedy => remedy(),
      culprit => fairnif_watch_culprit:os(Who),
      sentence => iolist_to_binary(
                    ["Schedulers got no processor for ", fairnif_watch_finding:ms(Delay),
                     " of the last ", fairnif_watch_finding:ms(Window * 1000000), ": ", Who, "."]),
      evidence => #{delay_ns => Delay, throttled_ns => Throttled, stolen_ns => Stolen,
                    schedulers => lists:usort([S || {_, S, _, _, _} <- Recent])}}.

%% Throttling and theft are told apart from the delay only roughly, so: what makes up half of it.
who(Delay, Throttled, _) when 2 * Throttled >= Delay -> <<"the control group's quota is used up">>;
who(Delay, _, Stolen) when 2 * Stolen >= Delay -> <<"the hypervisor gave it to others">>;
who(_, _, _) -> <<"other programs used it">>.
