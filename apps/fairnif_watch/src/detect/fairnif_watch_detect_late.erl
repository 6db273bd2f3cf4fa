%% Schedulers that have little to do and run late: what wakes on them waits until the system gives
%% them a processor. While a scheduler is blocked nothing is concluded.
-module(fairnif_watch_detect_late).

-export([detector/0, observe/3, late/1]).

%% Functions named in a sentence.
-define(NAMED, 3).
%% A thread that waits this many times what it works has little to do, and may only spin. Less is a
%% share: see starved.
-define(IDLE, 4).

-type second() :: {At :: integer(), [fairnif_watch_detector:delay()],
                   {fairnif_watch_taken:taken(), Named :: [tuple()]}}.
-type state() :: #{seconds := [second()], blocked := boolean()}.

%% @private
-spec detector() -> fairnif_watch_detector:detector().
detector() ->
    #{name => late_wakeups,
      looks_for =>
          <<"Schedulers with little to do wait long for a processor: all wakes late there.">>,
      thresholds =>
          [{window_ms, 10000, ms, <<"every system loses some time now and then">>},
           {late_ms, 1000, ms,
            <<"a tenth of one scheduler's time in the window. Only stretches of 10 ms and longer "
              "count: shorter delays are hardly noticed">>},
           {known_ms, 5000, ms,
            <<"until it is known who uses the processors: that is counted every two seconds, and "
              "by program from the first long wait on">>}],
      remedy =>
          <<"Where native code of this node takes the processors: +sbwt none +sbwtdcpu none "
            "+sbwtdio none in vm.args, which costs a wake-up 1 to 10 us more. Else run fewer "
            "programs beside it.">>,
      init => #{seconds => [], blocked => false},
      observe => fun ?MODULE:observe/3}.

%% @private
-spec observe(fairnif_watch_detector:observation(), map(), state()) ->
          {same | [fairnif_watch_finding:issue()], state()}.
observe({event, #{event := Event}, _}, _, State) when Event =:= blocked; Event =:= unblocked ->
    {same, State#{blocked := true}};
observe({sample, #{at := Now, threads := Threads} = Sample},
        #{window_ms := Window, late_ms := Late, known_ms := Known},
        #{seconds := Before, blocked := Blocked}) ->
    AnyBlocked = Blocked
        orelse [N || #{kind := normal, number := N, blocked_ns := Ns} <- Threads, Ns > 0]
        =/= [],
    New = [{Now, late(Sample), {maps:get(taken, Sample, none), names(Sample)}} || not AnyBlocked],
    Seconds = New ++ [S || {At, _, _} = S <- Before, Now - At < Window * 1000],
    State = #{seconds => Seconds, blocked => false},
    Since = lists:min([Now | [At || {At, [_ | _], _} <- Seconds]]),
    case by_scheduler(Seconds) of
        [{_, _, Ns} | _] = Schedulers when Ns >= Late * 1000000, Now - Since >= Known * 1000 ->
            Looks = [T || {At, _, T} <- Seconds, At - Since >= (Known - 1000) * 1000],
            {[issue(Schedulers, Since, Looks, maps:get(busy_waiting, Sample), Window)], State};
        _ ->
            {[], State}
    end;
observe(_, _, State) ->
    {same, State}.

%% @doc Of the normal schedulers those that had little to do in that second, and waited long.
-spec late(map()) -> [fairnif_watch_detector:delay()].
late(#{delays := Delays}) ->
    [Delay || #{kind := normal, cpu_ns := Worked, waited_ns := Waited, long_ns := Long} = Delay
                  <- Delays, Long > 0, Waited >= ?IDLE * Worked];
late(_) ->
    [].

%% `{Number, {Ms, Count}s, Ns}', who waited longest first.
by_scheduler(Seconds) ->
    All = lists:append([Delays || {_, Delays, _} <- Seconds]),
    Rows = [{N, lists:append([Long || #{number := M, long := Long} <- All, M =:= N]),
             lists:sum([Ns || #{number := M, long_ns := Ns} <- All, M =:= N])}
            || N <- lists:usort([N || #{number := N} <- All])],
    lists:reverse(lists:keysort(3, Rows)).

issue(Schedulers, Since, Looks, Spins, Window) ->
    Taken = fairnif_watch_taken:sum([T || {T, _} <- Looks]),
    Who = fairnif_watch_taken:who(Taken),
    Names = lists:sublist(lists:usort(lists:append([N || {_, N} <- Looks])), ?NAMED),
    #{key => node, subject => node, ongoing => true,
      severity => case Who of unknown -> unconfirmed; _ -> warning end,
      since => Since,
      remedy => fairnif_watch_taken:remedy(Who, Spins),
      culprit => culprit(Who, Names),
      sentence => iolist_to_binary([waited(Schedulers, Window), ": ",
                                    fairnif_watch_taken:words(Taken, [Name || {Name, _} <- Names]),
                                    [spins(Spins) || Who =:= native], "."]),
      evidence => #{schedulers => [{normal, N} || {N, _, _} <- Schedulers],
                    long_waits => maps:to_list(counts(Schedulers)),
                    taken => Taken, busy_waiting => Spins}}.

spins(on) -> ", and busy waiting is on";
spins(_) -> "".

%% By at least how many ms.
counts(Schedulers) ->
    lists:foldl(fun({Ms, Count}, Acc) -> maps:update_with(Ms, fun(C) -> C + Count end, Count, Acc)
                end, #{}, lists:append([Waits || {_, Waits, _} <- Schedulers])).

waited([{Worst, _, Ns} | _] = Schedulers, Window) ->
    Counts = counts(Schedulers),
    Longest = lists:max([Ms || {Ms, N} <- maps:to_list(Counts), N > 0]),
    [of_schedulers([integer_to_list(N) || {N, _, _} <- lists:sort(Schedulers)]),
     io_lib:format(" ready and given next to no processor time ~b times for 10 ms or longer (the "
                   "longest: ~b ms or more), ", [lists:sum(maps:values(Counts)), Longest]),
     [["number ", integer_to_list(Worst), " "] || tl(Schedulers) =/= []], "for ",
     fairnif_watch_finding:ms(Ns), " of the last ", fairnif_watch_finding:ms(Window * 1000000)].

of_schedulers([One]) -> ["Scheduler ", One, " was"];
of_schedulers(Few) when length(Few) =< 8 ->
    ["Schedulers ", fairnif_watch_taken:listed(Few), " were"];
of_schedulers(Many) -> [integer_to_list(length(Many)), " schedulers were"].

%% What runs on dirty schedulers and threads of fairnif's pool. Of functions that were seen on some
%% scheduler, those that took more than all normal ones together have.
names(#{threads := Threads, interval_ms := Ms} = Sample) ->
    Fair = [{fairnif_watch_culprit:mfa(M, F, A), {M, F, A}}
            || #{kind := Kind, fairnif := #{function := {M, F, A}}}
                   <- Threads ++ maps:get(pool, Sample, []), Kind =/= normal],
    Normal = case Sample of
                 #{cpu_ns := Ns} when is_integer(Ns) -> Ns * 1000 / Ms;
                 #{} -> infinity
             end,
    Seen = [{Label, Function} || #{function := Function, label := Label, ns_per_s := Ns}
                                     <- maps:get(top, Sample, []),
                                 is_named(Function), Ns > max(1.0e8, Normal)],
    Fair ++ Seen.

%% What runs below fairnif's own frames it tells itself.
is_named(other) -> false;
is_named({<<"fairnif.so">>, _}) -> false;
is_named(_) -> true.

culprit(native, [{Name, {M, _, _} = Mfa}]) ->
    (fairnif_watch_culprit:none())#{kind := nif, name := Name, mfa := Mfa, module := M};
culprit(native, [{Name, _} | _]) ->
    (fairnif_watch_culprit:none())#{kind := nif, name := Name};
culprit(Who, _) when Who =:= unknown; Who =:= native ->
    fairnif_watch_culprit:none();
culprit(several, _) ->
    fairnif_watch_culprit:os(<<"several took the processors">>);
culprit(hypervisor, _) ->
    fairnif_watch_culprit:os(<<"the hypervisor gave it to others">>);
culprit(Who, _) ->
    fairnif_watch_culprit:os(list_to_binary(fairnif_watch_taken:name(Who))).
