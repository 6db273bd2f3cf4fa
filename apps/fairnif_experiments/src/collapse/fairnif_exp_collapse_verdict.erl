%% What the experiment `collapse' says about queues, process times and
%% schedulers in use.  Pure functions: each was checked with the figures that
%% were published.
-module(fairnif_exp_collapse_verdict).

-export([classify/1, ratio/1, line/2, fairness/1, verdict/3]).

-export_type([class/0, verdict/0]).

-type class() :: even | minority_zero | unbalanced.
-type verdict() :: #{collapsed := true | false | cannot_say,
                     asleep := [Scheduler :: pos_integer()],
                     waited := float(),           % part of the samples
                     why := unicode:chardata()}.

%% Asleep is a scheduler that was in use for less than this part of the time in
%% which work waited for it.  Published collapses: 0.2 and less; without one
%% every scheduler is in use whenever work waits.
-define(ASLEEP, 0.5).
%% With fewer looks, or when work waited less, nothing can be said.
-define(LOOKS, 3).
-define(WAITED, 0.25).

%% @doc Whether no normal run queue is empty, a minority of them (half counts
%% as one), or a majority.
-spec classify([non_neg_integer(), ...]) -> class().
classify(Queues) ->
    case length([Q || Q <- Queues, Q =:= 0]) of
        0 -> even;
        Empty when 2 * Empty =< length(Queues) -> minority_zero;
        _ -> unbalanced
    end.

%% @doc The longest queue over the median one (of an even number the lower of
%% the middle two), an empty one counted as 1; two digits behind the point, cut
%% off.
-spec ratio([non_neg_integer(), ...]) -> float().
ratio(Queues) ->
    Sorted = lists:sort([max(1, Q) || Q <- Queues]),
    Median = lists:nth((length(Sorted) + 1) div 2, Sorted),
    trunc(100 * lists:last(Sorted) / Median) / 100.

%% @doc A status line: `{H,M,S} {Class,Ratio} {Q1,...}'.
-spec line(calendar:time(), [non_neg_integer(), ...]) -> unicode:chardata().
line(Time, Queues) ->
    io_lib:format("~0p {~s,~p} ~0p",
                  [Time, classify(Queues), ratio(Queues),
                   list_to_tuple(Queues)]).

%% @doc The longest process time over the shortest: 1.0 is fair.
-spec fairness([number(), ...]) -> float().
fairness(Times) ->
    lists:max(Times) / lists:min(Times).

%% @doc Whether schedulers slept while work waited.  InUse: per cent of the run,
%% by scheduler; Looks: {Milliseconds, Queues of the online schedulers}, now and
%% then.  An empty queue says nothing, its scheduler may be busy with the process
%% it took from there; and a scheduler that is not in use says nothing when there
%% is nothing to do.  So it needs both: at least as many processes waited as
%% there are schedulers, and one of these was not in use.
-spec verdict([{pos_integer(), number()}],
              [{Ms :: integer(), [non_neg_integer()]}],
              Online :: pos_integer()) -> verdict().
verdict(InUse, Looks, Online) ->
    Waited = waited(Looks, Online),
    Own = [{S, Share} || {S, Share} <- InUse, S =< Online],
    Asleep = [{S, Share} || {S, Share} <- Own, Share < 100 * ?ASLEEP * Waited],
    case length(Looks) < ?LOOKS orelse Waited < ?WAITED of
        true ->
            verdict(cannot_say, [], Waited,
                    io_lib:format("looks: ~b; work waited for ~b % of the time",
                                  [length(Looks), round(100 * Waited)]));
        false when Asleep =:= [] ->
            verdict(false, [], Waited,
                    io_lib:format("work waited for ~b % of the time, and each of ~b "
                                  "schedulers was in use for ~ts",
                                  [round(100 * Waited), Online, range(Own)]));
        false ->
            verdict(true, [S || {S, _} <- Asleep], Waited,
                    io_lib:format("work waited for ~b % of the time, and ~b of ~b "
                                  "schedulers were in use for ~ts only",
                                  [round(100 * Waited), length(Asleep), Online,
                                   range(Asleep)]))
    end.

%% The part of the time from the first look to the last; between two looks work
%% waited when it did at both.
waited([{First, _} | _] = Looks, Online) ->
    Waiting = [{Ms, lists:sum(Queues) >= Online} || {Ms, Queues} <- Looks],
    Spans = lists:zip(lists:droplast(Waiting), tl(Waiting)),
    {Last, _} = lists:last(Looks),
    lists:sum([B - A || {{A, true}, {B, true}} <- Spans]) / max(1, Last - First);
waited([], _) ->
    0.0.

verdict(Collapsed, Asleep, Waited, Why) ->
    #{collapsed => Collapsed, asleep => Asleep, waited => Waited, why => Why}.

range(Shares) ->
    Values = [Share || {_, Share} <- Shares],
    case {round(lists:min(Values)), round(lists:max(Values))} of
        {Same, Same} -> io_lib:format("~b %", [Same]);
        {Least, Most} -> io_lib:format("~b to ~b %", [Least, Most])
    end.
