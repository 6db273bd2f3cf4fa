%% Native functions that take far more time than they are charged reductions for: the VM takes their
%% processes for idle ones and lets them run again and again, ahead of Erlang work.
%%
%% What one function is charged cannot be read. But all of the node's reductions are known, and so
%% is how much of its time is native: if all reductions together would not pay for that, too few
%% were charged, in whichever call.
-module(fairnif_watch_detect_undercharged).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => undercharged,
      looks_for => <<"Native functions run for far longer than their reductions account for.">>,
      thresholds =>
          [{reductions_per_ms, 4000, 'reductions/ms',
            <<"enif_consume_timeslice's price: a timeslice of 4000 reductions for a millisecond">>},
           {factor, 4, times,
            <<"far above: a function that charges the full price, and misjudges its time twice "
              "by a factor of two, is left alone">>},
           {busy, 0.2, 'schedulers',
            <<"a fifth of one scheduler: less is hardly missed by others">>},
           {seconds, 3, s,
            <<"with 5 samples a second a share is known to an eighth after three; the factor "
              "leaves room for it">>}],
      remedy => remedy(),
      %% State: the last seconds, newest first.
      init => [],
      observe => fun ?MODULE:observe/3}.

remedy() ->
    <<"Charge for the time used: enif_consume_timeslice, or a fairnif function, which is "
      "charged by the clock.">>.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), [map()]) ->
          {same | [fairnif_watch_finding:issue()], [map()]}.
observe({sample, #{cpu_ns := Cpu, top := [_ | _]} = Sample}, #{seconds := Seconds} = Limits, Before)
  when is_integer(Cpu) ->
    Last = lists:sublist([second(Sample) | Before], Seconds),
    case length(Last) < Seconds of
        true -> {[], Last};
        false -> {issues(Last, Sample, Limits), Last}
    end;
observe({sample, _}, _, _) ->
    {[], []};
observe(_, _, State) ->
    {same, State}.

%% Native time of each function in that second. The emulator's own counts as it goes, so it cannot
%% be the one. (A fairnif function is charged by the clock, which is among all reductions.)
%% The table does not tell normal schedulers from dirty ones, where other rules hold: so as much of
%% any function's time as the dirty ones were busy may be theirs.
second(#{top := Top, reductions := Reductions, interval_ms := Interval, threads := Threads}) ->
    Dirty = lists:sum([Busy || #{kind := Kind, busy := Busy} <- Threads,
                               Kind =/= normal, is_number(Busy)]),
    #{ms => Interval, reductions => max(0, Reductions), dirty => Dirty * 1.0e9,
      native => maps:from_list([{Function, {Label, Ns}}
                                || #{function := Function, label := Label, ns_per_s := Ns} <- Top,
                                   is_native(Function), Ns > 0])}.

is_native({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) -> true;
is_native({Library, _}) when is_binary(Library) -> not is_emulator(filename:basename(Library));
is_native(_) -> false.

is_emulator(<<"beam", _/binary>>) -> true;
is_emulator(<<"emulator", _/binary>>) -> true;
is_emulator(<<"libc", _/binary>>) -> true;
is_emulator(_) -> false.

issues(Last, Sample, #{reductions_per_ms := Price, factor := Factor, busy := Busy}) ->
    Ms = lists:sum([M || #{ms := M} <- Last]),
    Reductions = lists:sum([R || #{reductions := R} <- Last]),
    Dirty = lists:sum([D || #{dirty := D} <- Last]) / length(Last),
    Native = [{F, Label, Ns - Dirty}
              || {F, Label, Ns} <- total([N || #{native := N} <- Last], length(Last))],
    Sum = lists:sum([Ns + Dirty || {_, _, Ns} <- Native]) - Dirty,
    %% ns of native time a second; what all reductions would pay for at that price, in ns a second.
    Paid = Reductions / Price * 1.0e9 / Ms,
    case Sum >= Busy * 1.0e9 andalso Sum > Factor * Paid of
        false -> [];
        true -> [issue(Native, Sum, Paid, Factor, Sample, Ms)]
    end.

total(Maps, Seconds) ->
    Sums = lists:foldl(fun(Map, Acc) ->
                               maps:fold(fun(Function, {Label, Ns}, A) ->
                                                 {_, Old} = maps:get(Function, A, {Label, 0}),
                                                 A#{Function => {Label, Old + Ns}}
                                         end, Acc, Map)
                       end, #{}, Maps),
    lists:reverse(lists:keysort(3, [{F, L, Ns / Seconds} || {F, {L, Ns}} <- maps:to_list(Sums)])).

%% It is certain for the first if its time alone exceeds what all reductions pay for. Otherwise some
%% of these functions are undercharged, and which is not known.
issue([{Function, Label, Most} | _] = Native, Sum, Paid, Factor, #{at := At}, Ms) ->
    Certain = Most > Factor * Paid,
    Names = lists:join(", ", [Name || {_, Name, _} <- lists:sublist(Native, 5)]),
    #{key => node, subject => node, since => At - Ms * 1000, ongoing => true,
      severity => case Certain of true -> warning; false -> unconfirmed end,
      remedy => remedy(),
      culprit => case Certain of
                     true -> culprit(Function, Label);
                     false -> fairnif_watch_culprit:none()
                 end,
      sentence => iolist_to_binary(
                    [case Certain of
                         true -> Label;
                         false -> ["Any of these functions, or several: ", Names, ";"]
                     end,
                     io_lib:format(" ran for ~b ms of each second, while all reductions of the "
                                   "node account for ~b ms.",
                                   [round(case Certain of true -> Most; false -> Sum end / 1.0e6),
                                    round(Paid / 1.0e6)])]),
      evidence => #{native_ms_per_s => Sum / 1.0e6, paid_ms_per_s => Paid / 1.0e6,
                    functions => [Name || {_, Name, _} <- lists:sublist(Native, 20)]}}.

culprit({M, _, _} = Mfa, Label) ->
    (fairnif_watch_culprit:none())#{kind := nif, name := Label, mfa := Mfa, module := M};
culprit({Library, _}, Label) ->
    (fairnif_watch_culprit:none())#{kind := nif, name := Label, library := Library}.
