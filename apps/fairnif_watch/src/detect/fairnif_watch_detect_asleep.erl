%% Schedulers that sleep while work waits: the VM has put them to sleep and, held up by native code,
%% no thread wakes them.
-module(fairnif_watch_detect_asleep).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => schedulers_asleep,
      looks_for => <<"Schedulers sleep while processes wait for one.">>,
      thresholds =>
          [{asleep, 0.1, 'part of the time',
            <<"a scheduler that finds work is in use all the time while work waits; in published "
              "collapses they were for 0.2 of it or less">>},
           {looks, 5, looks,
            <<"one look at the queues says nothing: work that has just come waits, too">>},
           {seconds, 3, s,
            <<"the VM balances its run queues at least every few hundred milliseconds: what "
              "outlasts several rounds is not going to be balanced">>}],
      remedy => remedy(),
      %% State: seconds in a row, and when the first began.
      init => {0, 0},
      observe => fun ?MODULE:observe/3}.

remedy() ->
    <<"+sfwi 500 wakes them every 500 ms. Use it only until the native call that causes "
      "this is fixed: see scheduler_blocked and undercharged.">>.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), {non_neg_integer(), integer()}) ->
          {same | [fairnif_watch_finding:issue()], {non_neg_integer(), integer()}}.
observe({sample, Sample}, #{seconds := Seconds} = Limits, {Before, Since}) ->
    #{at := At, interval_ms := Interval} = Sample,
    case asleep(Sample, Limits) of
        [] ->
            {[], {0, 0}};
        Asleep ->
            Start = case Before of 0 -> At - Interval * 1000; _ -> Since end,
            State = {Before + 1, Start},
            case Before + 1 >= Seconds of
                true -> {[issue(Asleep, Sample, Start)], State};
                false -> {[], State}
            end
    end;
observe(_, _, State) ->
    {same, State}.

%% Those asleep in a second in which, at each look, at least as many processes waited as there are
%% schedulers (an empty queue alone says nothing: its scheduler may be busy with what was in it).
asleep(#{looks := Looks, threads := Threads}, #{looks := Least, asleep := Asleep})
  when length(Looks) >= Least ->
    Waited = lists:all(fun(#{queues := Queues}) ->
                               length(Queues) > 1 andalso lists:sum(Queues) >= length(Queues)
                       end, Looks),
    case Waited of
        true ->
            [N || #{kind := normal, number := N, busy := Busy, state := State} <- Threads,
                  is_number(Busy), Busy < Asleep, State =/= offline,
                  lists:all(fun(#{queues := Queues}) ->
                                    N =< length(Queues) andalso lists:nth(N, Queues) =:= 0
                            end, Looks)];
        false ->
            []
    end;
asleep(_, _) ->
    [].

issue(Asleep, #{looks := Looks, at := At}, Since) ->
    #{queues := Queues} = lists:last(Looks),
    #{key => node, severity => error, subject => node, since => Since, ongoing => true,
      duration_ms => (At - Since) / 1000,
      remedy => remedy(),
      sentence => iolist_to_binary(
                    io_lib:format("~b of ~b schedulers sleep while ~b processes wait.",
                                  [length(Asleep), length(Queues), lists:sum(Queues)])),
      evidence => #{asleep => Asleep, queues => Queues}}.
