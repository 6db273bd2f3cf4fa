%% What the experiment `collapse' says about queues, process times and schedulers in use.  Pure
%% functions: each was checked with the figures that were published.
-module(fairnif_exp_collapse_verdict).

-export([line/2, ratio/1, classify/1, verdict/3]).

%% Asleep is a scheduler that was in use for less than this part of the time in which work waited
%% for it.  Published collapses: 0.2 and less; without one every scheduler is in use whenever work
%% waits.
-define(ASLEEP, 0.5).
%% With fewer looks, or when work waited less, nothing can be said.
-define(LOOKS, 3).
-define(WAITED, 0.25).

%% @doc A status line: `{H,M,S} {Class,Ratio} {Q1,...}'.
-spec line(calendar:time(), [non_neg_integer(), ...]) -> unicode:chardata().
line(Time, Queues) ->
    io_lib:format("~0p {~s,~p} ~0p",
                  [Time, classify(Queues), ratio(Queues), list_to_tuple(Queues)]).

%% @doc Whether no normal run queue is empty, a minority of them (half counts as one), or a
%% majority.
-spec classify([non_neg_integer(), ...]) -> even | minority_zero | unbalanced.
classify(Queues) ->
    case length([Q || Q <- Queues, Q =:= 0]) of
        0 -> even;
        Empty when 2 * Empty =< length(Queues) -> minority_zero;
        _ -> unbalanced
    end.

%% @doc The longest queue over the median one (of an even number the lower of the middle two), an
%% empty one counted as 1; two digits behind the point, cut off.
-spec ratio([non_neg_integer(), ...]) -> float().
ratio(Queues) ->
    Sorted = lists:sort([max(1, Q) || Q <- Queues]),
    Median = lists:nth((length(Sorted) + 1) div 2, Sorted),
    trunc(100 * lists:last(Sorted) / Median) / 100.

%% @doc Whether schedulers slept while work waited, which they were, for what part of the time work
%% waited, and why.  InUse: per cent of the run, by scheduler; Looks: milliseconds and the queues of
%% the online schedulers, now and then.  An empty queue says nothing, its scheduler may be busy with
%% the process it took from there; and a scheduler that is not in use says nothing when there is
%% nothing to do.  So it needs both: at least as many processes waited as there are schedulers, and
%% one of these was not in use.
-spec verdict([{pos_integer(), number()}], [{Ms :: integer(), [non_neg_integer()]}],
              Online :: pos_integer()) ->
          #{collapsed := true | false | unsure, asleep := [pos_integer()],
            waited := float(), why := binary()}.
verdict(InUse, Looks, Online) ->
    Waited = waited(Looks, Online),
    Own = [One || {S, _} = One <- InUse, S =< Online],
    Asleep = [One || {_, Share} = One <- Own, Share < 100 * ?ASLEEP * Waited],
    {Collapsed, Sleepers, Format, Args} =
        case length(Looks) < ?LOOKS orelse Waited < ?WAITED of
            true -> {unsure, [], "looks: ~b; ", [length(Looks)]};
            false when Asleep =:= [] ->
                {false, [], "each of ~b schedulers was in use for ~ts; ", [Online, range(Own)]};
            false ->
                {true, [S || {S, _} <- Asleep], "~b of ~b schedulers were in use for ~ts only; ",
                 [length(Asleep), Online, range(Asleep)]}
        end,
    #{collapsed => Collapsed, asleep => Sleepers, waited => Waited,
      why => fairnif_exp:text(io_lib:format(Format ++ "work waited for ~b % of the time",
                                            Args ++ [round(100 * Waited)]))}.

%% The part of the time from the first look to the last; between two looks work waited when it did
%% at both.
waited([{First, _} | _] = Looks, Online) ->
    Waiting = [{Ms, lists:sum(Queues) >= Online} || {Ms, Queues} <- Looks],
    Spans = lists:zip(lists:droplast(Waiting), tl(Waiting)),
    {Last, _} = lists:last(Looks),
    lists:sum([B - A || {{A, true}, {B, true}} <- Spans]) / max(1, Last - First);
waited([], _) ->
    0.0.

range(Shares) ->
    fairnif_exp:range(fun(Share) -> [integer_to_list(round(Share)), " %"] end,
                      [Share || {_, Share} <- Shares]).
