%% The part of a check that runs inside its peer nodes: one function for each measurement.
%%
%% What the function raises is a value here. What these functions raise is the lab's own fault, and
%% is never told as the function's.
-module(fairnif_lab_check_peer).

-export([install/3, probe/1, times/2, holds/2, first/2, shares/2, crowd/2, garbage/2, kills/2]).

%% Trips whose median is taken, and the work between two: a scheduler that has just been to the
%% dirty side finds it warm, which the calls of an application do not.
-define(TRIPS, 101).
-define(WORK_BETWEEN, 5).

%% @doc Prepares the subjects for inputs of this size.
-spec install([fairnif_lab_subject:subject()], pos_integer(), timeout()) ->
          ok | {error, {usage | failed, binary()}}.
install([], _, _) ->
    ok = fairnif_lab_nif:load();
install([Subject | Subjects], Size, TimeoutMs) ->
    case fairnif_lab_subject:install(Subject, Size, TimeoutMs) of
        ok -> install(Subjects, Size, TimeoutMs);
        {error, _} = Error -> Error
    end.

%% @doc ns of one call, the second: the first may load code.
-spec probe(fairnif_lab_subject:subject()) -> {ok, non_neg_integer()} | {error, binary()}.
probe(Subject) ->
    Fun = guarded(Subject),
    apart(fun() -> probed(Fun) end).

probed(Fun) ->
    case timed(Fun) of
        First when First < 1000000000 -> timed(Fun);
        First -> First
    end.

timed(Fun) ->
    T0 = fairnif_lab_nif:now(),
    _ = Fun(),
    fairnif_lab_nif:now() - T0.

raised(Class, Reason, Stack) ->
    text("raises ~s:~0tP~ts", [Class, Reason, 12, where(Stack)]).

where([{M, F, Args, _} | _]) when is_list(Args) -> where([{M, F, length(Args), []}]);
where([{fairnif_lab_subject_run, _, _, _} | _]) -> "";
where([{fairnif_lab_against_run, _, _, _} | _]) -> "";
where([{M, F, A, _} | _]) -> io_lib:format(" in ~tw:~tw/~b", [M, F, A]);
where(_) -> "".

text(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% @doc Time and reductions of the subjects, in turns; reductions of ordinary Erlang; what going
%% dirty costs here (ns, there and back).
-spec times([fairnif_lab_subject:subject()], #{atom() => term()}) ->
          {ok, map()} | {error, binary()}.
times(Subjects, Opts) ->
    Idle = fairnif_lab_subject:idle(),
    ok = fairnif_lab_subject:install(Idle, 1, 10000),
    Timed = fun() ->
                    fairnif_lab_time:measure([guarded(S) || S <- Subjects],
                                             Opts#{idle => guarded(Idle)})
            end,
    case apart(Timed) of
        {ok, Results} ->
            {ok, #{results => Results, erlang => fairnif_lab_time:erlang(),
                   dirty_trip => dirty_trip()}};
        {error, _} = Error ->
            Error
    end.

%% What a subject raises, told from what the lab does.
guarded(Subject) ->
    Fun = fairnif_lab_subject:function(Subject),
    fun() ->
            try Fun()
            catch Class:Reason:Stack -> throw({?MODULE, raised(Class, Reason, Stack)})
            end
    end.

%% In a process of its own, since the function may end the one that calls it.
apart(Measure) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({outcome, outcome(Measure)}) end),
    receive
        {'DOWN', Monitor, process, Pid, {outcome, {lab, Class, Reason, Stack}}} ->
            erlang:raise(Class, Reason, Stack);
        {'DOWN', Monitor, process, Pid, {outcome, Outcome}} ->
            Outcome;
        {'DOWN', Monitor, process, Pid, Why} ->
            {error, text("its caller exited: ~0tP", [Why, 12])}
    end.

outcome(Measure) ->
    try {ok, Measure()}
    catch
        throw:{?MODULE, Text} -> {error, Text};
        Class:Reason:Stack -> {lab, Class, Reason, Stack}
    end.

dirty_trip() ->
    fairnif_lab_stats:median([trip() || _ <- lists:seq(1, ?TRIPS)]).

trip() ->
    _ = [fairnif_lab_share:work(sort) || _ <- lists:seq(1, ?WORK_BETWEEN)],
    T0 = fairnif_lab_nif:now(),
    _ = fairnif_lab_nif:now_dirty_cpu(),
    fairnif_lab_nif:now() - T0.

%% @doc Slices and holds.
-spec holds(fairnif_lab_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_lab_hold:result()} | {error, {atom(), term()}}.
holds(Subject, Opts) ->
    fairnif_lab_hold:measure(fairnif_lab_subject:function(Subject), Opts).

%% @doc The first call in this node.
-spec first(fairnif_lab_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_lab_hold:first() | undefined} | {error, {atom(), term()}}.
first(Subject, _) ->
    fairnif_lab_hold:first(fairnif_lab_subject:function(Subject)).

%% @doc What each kind of Erlang neighbour keeps of the scheduler.
-spec shares(fairnif_lab_subject:subject(), #{atom() => term()}) ->
          [{fairnif_lab_share:mix(), {ok, fairnif_lab_share:result()} | {error, term()}}].
shares(Subject, #{time_ms := TimeMs} = Opts) ->
    Fun = fairnif_lab_subject:function(Subject),
    Mixes = fairnif_lab_share:mixes(),
    Each = max(50, TimeMs div length(Mixes)),
    [{Mix, fairnif_lab_share:measure(Fun, #{mix => Mix, time_ms => Each,
                                            alone_ms => max(50, Each div 3),
                                            patience_ms => maps:get(patience_ms, Opts)})}
     || Mix <- Mixes].

%% @doc What others feel when all schedulers run it.
-spec crowd(fairnif_lab_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_lab_crowd:result()} | {error, term()}.
crowd(Subject, Opts) ->
    fairnif_lab_crowd:measure(fairnif_lab_subject:function(Subject), Opts).

%% @doc What a call leaves behind holds a scheduler with.
-spec garbage(fairnif_lab_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_lab_garbage:result()} | {error, fairnif_lab_garbage:unfinished()}.
garbage(Subject, Opts) ->
    fairnif_lab_garbage:measure(fairnif_lab_subject:function(Subject), Opts).

%% @doc What happens when its callers are killed.
-spec kills(fairnif_lab_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_lab_kill:result()} | {error, term()}.
kills(Subject, Opts) ->
    fairnif_lab_kill:measure(fairnif_lab_subject:function(Subject), Opts).
