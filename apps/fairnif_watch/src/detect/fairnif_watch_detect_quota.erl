%% A control group whose quota is used up again and again: then the whole node stands still.
-module(fairnif_watch_detect_quota).

-export([detector/0, observe/3]).

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => quota,
      looks_for => <<"The control group's quota stops the whole node, again and again.">>,
      thresholds =>
          [{window_ms, 8000, ms, <<"the quota is read every two seconds">>},
           {periods, 30, periods, <<"three seconds, of the 100 ms that a period most often has">>},
           {part, 0.2, 'of the periods',
            <<"a burst now and then is what a quota is for: a node that fits in its quota was "
              "stopped in 2 of 195, one that does not in 93 to 130 of 196">>},
           {each_ms, 5, ms, <<"all processors together; a shorter stop is hardly noticed">>}],
      remedy => fairnif_watch_taken:remedy(quota, unknown),
      %% State: the last seconds, newest first.
      init => [],
      observe => fun ?MODULE:observe/3}.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(),
              [{integer(), fairnif_watch_taken:taken()}]) ->
          {same | [fairnif_watch_finding:issue()], [{integer(), fairnif_watch_taken:taken()}]}.
observe({sample, #{at := Now, taken := #{} = Taken} = Sample}, #{window_ms := Window} = Limits,
        Before) ->
    Seconds = [{Now, Taken} | [S || {At, _} = S <- Before, Now - At < Window * 1000]],
    Sum = fairnif_watch_taken:sum([T || {_, T} <- Seconds]),
    case is_stopped(Sum, Limits) of
        true -> {[issue(Sum, Sample, element(1, lists:last(Seconds)))], Seconds};
        false -> {[], Seconds}
    end;
observe({sample, _}, _, _) ->
    {[], []};
observe(_, _, State) ->
    {same, State}.

is_stopped(#{periods := Periods, throttled := Times, throttled_ns := Ns},
           #{periods := Least, part := Part, each_ms := Each}) ->
    Times > 0 andalso Periods >= Least andalso Times >= Part * Periods
        andalso Ns >= Each * 1000000 * Times.

issue(Sum, #{busy_waiting := Spins}, Since) ->
    <<T, Rest/binary>> = iolist_to_binary(fairnif_watch_taken:quota(Sum)),
    #{key => node, subject => node, severity => warning, ongoing => true, since => Since,
      remedy => fairnif_watch_taken:remedy(quota, Spins),
      culprit => fairnif_watch_culprit:os(list_to_binary(fairnif_watch_taken:name(quota))),
      sentence => <<(string:to_upper(T)), Rest/binary, ".">>,
      evidence => (maps:with([quota, periods, throttled, throttled_ns], Sum))
                      #{busy_waiting => Spins}}.
