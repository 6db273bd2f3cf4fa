%% How long a function blocks a normal scheduler, call by call.
%%
%% A stretch is wall time between two trace events (fairnif_check_slices). Two kinds of it are not
%% the function's: garbage collection, and what the operating system took away. The second is found
%% by asking the kernel how long the thread was ready to run while another had its processor. A
%% function that sleeps, or waits for a lock, is not ready to run, and that time is counted against
%% it.
%%
%% What the hypervisor takes away no guest can see. Hence a control: ordinary Erlang, measured in
%% the same way just before, shows how often this machine makes innocent code look guilty.
-module(fairnif_check_block).

-export([flags/0, measure/2, first/1]).

-export_type([options/0, result/0, calls/0, first/0]).

-type options() :: #{time_ms => pos_integer(),          % default 1000
                     limit_ns => pos_integer(),         % a block longer than this counts; 1 ms
                     call_ns => number(),               % what a call takes, about
                     slices => pos_integer()}.          % kept of a pass whatever their length
-type calls() :: #{calls := non_neg_integer(),
                   over := non_neg_integer(),           % of them, with a block over the limit
                   close := non_neg_integer(),          % of them, with one near it or over
                   over_part := float(),                % of the time on normal schedulers, that of
                   close_part := float(),               % stretches over the limit; near it or over
                   longest := non_neg_integer(),        % block, ns
                   least := non_neg_integer(),          % the block that every call has reached
                   repeated := non_neg_integer(),       % the longest that another call reached too
                   taken := non_neg_integer(),          % ns of slices that others had the processor
                   elapsed := non_neg_integer()}.       % ns inside calls
-type result() :: #{normal := fairnif_check_stats:summary(), dirty := fairnif_check_stats:summary(),
                    gc := fairnif_check_stats:summary(),
                    normal_samples := [integer()], dirty_samples := [integer()],
                    blocks := [non_neg_integer()],      % by call
                    cpu_part := float(),                % CPU time of the node in parts of the time
                                                        % for which calls had a scheduler and could
                                                        % have had a processor
                    block := calls(), control := calls(),
                    first := first() | undefined}.      % not traced, as calls may be: undefined
%% The first call in this node, which is none of the others.
-type first() :: #{block := non_neg_integer(), elapsed := non_neg_integer()}.
-type call() :: {[OwnNs :: non_neg_integer()], Taken :: non_neg_integer(),
                 Elapsed :: non_neg_integer()}.
%% What one pass, or several, have seen; `later' are the slices of which only number and time are
%% known.
-type seen() :: #{first := [call()], calls := [call()],
                  slices := [{normal | dirty | gc, integer(), integer()}],
                  gcs := [non_neg_integer()], cpu_ns := non_neg_integer(),
                  later := fairnif_check_slices:later()}.

-define(LIMIT_NS, 1000000).
%% A stretch up to the first times the limit is within it (who yields after 1 ms by the clock is a
%% little over), one beyond the second is over, and what lies between is close.
-define(WITHIN, 1.25).
-define(OVER, 1.5).
%% The first call of a pass is not among those that count.
-define(MOST_CALLS, 301).
-define(LEAST_CALLS, 4).
%% After a call as long as that there is no further one, unless it was the first.
-define(LONG_CALL_NS, 3000000000).
%% Stretches that make up more than this part of the time are the rule.
-define(RULE, 0.5).
%% The control takes this part of the time, half of it before and half after.
-define(CONTROL_PART, 0.5).
-define(SAMPLES, 2000).
%% Of the slices after this many in one pass the longest are kept, and the others counted.
-define(SLICES, 200000).
%% What some calls show and the control does not is looked at so often again.
-define(AGAIN, 2).

%% @doc Emulator flags of the node to measure in.
-spec flags() -> [string()].
flags() ->
    fairnif_check_slices:flags().

%% @doc Calls Fun once, and then 3 to 300 times, about `time_ms' together, under trace. What the
%% first call in a node does, as one that makes its tables then, is counted apart; so use a fresh
%% node. After calls of 3 s and more there are fewer, but at least one that is not the first.
-spec measure(fun(() -> term()), options()) ->
          {ok, result()} | {error, {error | exit | throw, term()}}.
measure(Fun, Opts) ->
    ok = fairnif_check_nif:load(),
    Limit = maps:get(limit_ns, Opts, ?LIMIT_NS),
    TimeMs = maps:get(time_ms, Opts, 1000),
    case passes(Fun, Opts, Limit, control(TimeMs), ?AGAIN) of
        {ok, Seen, Control} ->
            #{calls := Calls, slices := Slices, gcs := Gcs, cpu_ns := CpuNs, later := Later} = Seen,
            #{normal := LaterNormal, dirty := LaterDirty} = Later,
            Normal = [D || {normal, D, _} <- Slices],
            Dirty = [D || {dirty, D, _} <- Slices],
            AllNormal = #{total := OnNormal} = fairnif_check_slices:summary(Normal, LaterNormal),
            AllDirty = #{total := OnDirty} = fairnif_check_slices:summary(Dirty, LaterDirty),
            Blocked = OnNormal + OnDirty + lists:sum(Gcs),
            {ok, #{cpu_part => cpu_part(CpuNs, Blocked, calls(Seen, Limit), Control),
                   normal => AllNormal,
                   dirty => AllDirty,
                   gc => fairnif_check_stats:summary(Gcs),
                   normal_samples => lists:sublist(Normal, ?SAMPLES),
                   dirty_samples => lists:sublist(Dirty, ?SAMPLES),
                   blocks => [longest(Own) || {Own, _, _} <- Calls],
                   first => first_of(Seen),
                   block => calls(Seen, Limit),
                   control => calls(Control, Limit)}};
        {error, _} = Error ->
            Error
    end.

%% @doc The first call alone.
-spec first(fun(() -> term())) -> {ok, first() | undefined} | {error, {atom(), term()}}.
first(Fun) ->
    ok = fairnif_check_nif:load(),
    case pass(Fun, 0, 1, ?SLICES) of
        {ok, Seen} -> {ok, first_of(Seen)};
        {error, _} = Error -> Error
    end.

%% A thread that is ready while others have its processor does not wait. What else uses time only
%% adds: what is far below 1 has waited. Where the kernel does not count, or the hypervisor takes
%% the processor away, ordinary Erlang, which never waits, has less as well.
cpu_part(CpuNs, Blocked, #{taken := Taken}, #{cpu_ns := ErlangNs, slices := Slices, gcs := Gcs}) ->
    Erlang = lists:sum([max(0, Ns - Waited) || {_, Ns, Waited} <- Slices]) + lists:sum(Gcs),
    CpuNs / max(1, Blocked - Taken) / min(1.0, max(0.01, ErlangNs / max(1, Erlang))).

first_of(#{first := [{Own, _, Elapsed}]}) -> #{block => longest(Own), elapsed => Elapsed};
first_of(#{first := []}) -> undefined.

control(TimeMs) ->
    Work = fun() -> fairnif_check_share:work(long_sort) end,
    {ok, Seen} = pass(Work, max(50, round(?CONTROL_PART * TimeMs / 2)), ?LEAST_CALLS, ?SLICES),
    Seen.

%% Passes with a control before and after each. A block of some calls that is not the rule may be
%% the machine's or the function's: more calls tell.
passes(Fun, Opts, Limit, Before, Again) ->
    TimeMs = maps:get(time_ms, Opts, 1000),
    case pass(Fun, TimeMs, ?LEAST_CALLS, maps:get(slices, Opts, ?SLICES)) of
        {ok, Seen} ->
            Control = together(Before, control(TimeMs)),
            #{over := Over, over_part := Part} = calls(Seen, Limit),
            Some = Over =:= 1 orelse Over > 0 andalso Part =< ?RULE,
            case Some andalso length(maps:get(calls, Seen)) > 1 andalso Again > 0 of
                true -> more_passes(Fun, Opts, Limit, Seen, Control, Again - 1);
                false -> {ok, Seen, Control}
            end;
        {error, _} = Error ->
            Error
    end.

more_passes(Fun, Opts, Limit, Seen, Control, Again) ->
    Before = control(maps:get(time_ms, Opts, 1000)),
    case passes(Fun, Opts, Limit, Before, Again) of
        {ok, MoreSeen, MoreControl} ->
            {ok, together(Seen, MoreSeen), together(Control, MoreControl)};
        {error, _} = Error ->
            Error
    end.

-spec together(seen(), seen()) -> seen().
together(A, B) ->
    maps:map(fun(cpu_ns, Ns) -> Ns + maps:get(cpu_ns, B);
                (first, First) -> First;
                (later, Later) -> together_later(Later, maps:get(later, B));
                (Key, List) -> List ++ maps:get(Key, B)
             end, A).

together_later(#{normal := {N, NNs}, dirty := {D, DNs}} = A,
               #{normal := {MoreN, MoreNNs}, dirty := {MoreD, MoreDNs}}) ->
    A#{normal := {N + MoreN, NNs + MoreNNs}, dirty := {D + MoreD, DNs + MoreDNs}}.

-spec calls(seen(), pos_integer()) -> calls().
calls(#{calls := Calls, later := #{normal := {_, LaterNs}}}, Limit) ->
    Own = lists:append([O || {O, _, _} <- Calls]),
    All = lists:sum(Own) + LaterNs,
    Blocks = lists:reverse(lists:sort([longest(O) || {O, _, _} <- Calls])),
    #{calls => length(Calls), over => length([H || H <- Blocks, H > ?OVER * Limit]),
      close => length([H || H <- Blocks, H > ?WITHIN * Limit]),
      over_part => part(?OVER * Limit, Own, All), close_part => part(?WITHIN * Limit, Own, All),
      longest => longest(Blocks), repeated => repeated(Blocks),
      least => case Blocks of [] -> 0; _ -> lists:last(Blocks) end,
      taken => lists:sum([T || {_, T, _} <- Calls]),
      elapsed => lists:sum([E || {_, _, E} <- Calls])}.

%% The longest first.
repeated([_, Second | _]) -> Second;
repeated(Blocks) -> longest(Blocks).

longest(Stretches) ->
    lists:max([0 | Stretches]).

part(Limit, Stretches, All) ->
    lists:sum([S || S <- Stretches, S > Limit]) / max(1, All).

pass(Fun, TimeMs, Least, Most) ->
    Until = erlang:monotonic_time(nanosecond) + TimeMs * 1000000,
    Calls = fun() ->
                    Cpu = fairnif_check_nif:cpu_time(),
                    Spans = loop(Fun, Until, Least, 0, []),
                    {Spans, fairnif_check_nif:cpu_time() - Cpu}
            end,
    case fairnif_check_slices:trace(Calls, #{limit => Most}) of
        {ok, #{value := {Spans, CpuNs}, slices := Slices, gcs := Gcs, later := Later}} ->
            [FirstSpan | Rest] = Spans,
            {First, _, _} = by_call([FirstSpan], Slices, Gcs, Later),
            {ByCall, InCalls, GcsInCalls} = by_call(Rest, Slices, Gcs, Later),
            {ok, #{first => First, calls => ByCall, slices => InCalls, gcs => GcsInCalls,
                   cpu_ns => CpuNs, later => Later}};
        {error, _} = Error ->
            Error
    end.

%% The process yields between two calls, so that no slice has two of them in it, and its garbage
%% is collected there.
loop(Fun, Until, Least, N, Spans) ->
    erlang:garbage_collect(),
    erlang:yield(),
    From = fairnif_check_nif:now(),
    _ = Fun(),
    To = fairnif_check_nif:now(),
    Spans1 = [{From, To} | Spans],
    Left = Until - To,
    case N + 1 of
        ?MOST_CALLS -> lists:reverse(Spans1);
        N1 when Left > 0 -> loop(Fun, Until, Least, N1, Spans1);
        %% Fewer than the least number where a call takes all the time twice over. But the first
        %% says nothing of the others: it may be the only long one.
        N1 when N1 < Least, N1 =:= 1 orelse To - From < ?LONG_CALL_NS ->
            loop(Fun, Until, Least, N1, Spans1);
        _ -> lists:reverse(Spans1)
    end.

%% {[{[OwnNs], Taken, Elapsed}] by call, [{Kind, Ns, Waited}], [GcNs]}: slices and collections
%% inside calls; own is what a call's normal slices had of the processor.
%%
%% A call without any slice was not seen: the function has made its caller `sensitive', which ends
%% all tracing. It is not counted. Of a call after the table was full all slices may be among those
%% that were too short to be kept: it was seen.
by_call(Spans, Slices, Gcs, Later) ->
    by_call(Spans, Slices, Gcs, Later, [], [], []).

by_call([], _, _, _, Calls, Slices, Gcs) ->
    {lists:reverse(Calls), lists:append(lists:reverse(Slices)), lists:append(lists:reverse(Gcs))};
by_call([{From, To} | Spans], Slices, Gcs, Later, Calls, AccS, AccG) ->
    Slices1 = lists:dropwhile(fun({_, End, _, _}) -> End =< From end, Slices),
    Gcs1 = lists:dropwhile(fun({_, End}) -> End =< From end, Gcs),
    Mine = [{max(S, From), min(E, To), Kind, Waited}
            || {S, E, Kind, Waited} <- lists:takewhile(fun({S, _, _, _}) -> S < To end, Slices1)],
    MyGcs = lists:takewhile(fun({S, _}) -> S < To end, Gcs1),
    Net = [{Kind, Ns, Waited} || {{Kind, Ns}, {_, _, _, Waited}} <-
                                     lists:zip(fairnif_check_slices:without_gc(Mine, MyGcs), Mine)],
    Own = [max(0, Ns - Waited) || {normal, Ns, Waited} <- Net],
    Taken = lists:sum([Waited || {_, _, Waited} <- Net]),
    Seen = [{Own, Taken, To - From} || Net =/= [] orelse seen_late(From, To, Later)],
    by_call(Spans, Slices1, Gcs1, Later, Seen ++ Calls,
            [Net | AccS], [[E - S || {S, E} <- MyGcs] | AccG]).

seen_late(From, To, #{since := Since, until := Until}) ->
    Since =/= 0 andalso To > Since andalso From < Until.
