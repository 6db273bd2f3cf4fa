%% The part of a check that runs inside its peer nodes: one function for each measurement.
%%
%% What the function raises is a value here. What these functions raise is the checker's own fault,
%% and is never reported as the function's.
-module(fairnif_check_in_peer).

-export([install/3, probe/1, times/2, blocks/2, first/2, shares/2, crowd/2, garbage/2, kills/2]).

%% Trips whose median is taken, and the work between two: a scheduler that has just been to the
%% dirty side finds it warm, which the calls of an application do not.
-define(TRIPS, 101).
-define(WORK_BETWEEN, 5).

%% @doc Prepares the subjects for inputs of this size.
-spec install([fairnif_check_subject:subject()], pos_integer(), timeout()) ->
          ok | {error, {usage | failed, binary()}}.
install(Subjects, Size, TimeoutMs) ->
    ok = fairnif_check_fault:arm(),
    installed(Subjects, Size, TimeoutMs).

installed([], _, _) ->
    ok = fairnif_check_nif:load();
installed([Subject | Subjects], Size, TimeoutMs) ->
    case fairnif_check_subject:install(Subject, Size, TimeoutMs) of
        ok -> installed(Subjects, Size, TimeoutMs);
        {error, _} = Error -> Error
    end.

%% @doc ns of one call, the second: the first may load code.
-spec probe(fairnif_check_subject:subject()) -> {ok, non_neg_integer()} | {error, binary()}.
probe(Subject) ->
    Fun = guarded(Subject),
    apart(fun() -> probed(Fun) end).

probed(Fun) ->
    case timed(Fun) of
        First when First < 1000000000 -> timed(Fun);
        First -> First
    end.

timed(Fun) ->
    T0 = fairnif_check_nif:now(),
    _ = Fun(),
    fairnif_check_nif:now() - T0.

raised(Class, Reason, Stack) ->
    text("raises ~s:~0tP~ts", [Class, Reason, 12, where(Stack)]).

where([{M, F, Args, _} | _]) when is_list(Args) -> where([{M, F, length(Args), []}]);
where([{fairnif_check_subject_run, _, _, _} | _]) -> "";
where([{fairnif_check_against_run, _, _, _} | _]) -> "";
where([{M, F, A, _} | _]) -> io_lib:format(" in ~tw:~tw/~b", [M, F, A]);
where(_) -> "".

text(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% @doc Time and reductions of the subjects, in turns; reductions of ordinary Erlang; what going
%% dirty costs here (ns, there and back).
-spec times([fairnif_check_subject:subject()], #{atom() => term()}) ->
          {ok, map()} | {error, binary()}.
times(Subjects, Opts) ->
    Idle = fairnif_check_subject:idle(),
    ok = fairnif_check_subject:install(Idle, 1, 10000),
    Timed = fun() ->
                    fairnif_check_time:measure([guarded(S) || S <- Subjects],
                                             Opts#{idle => guarded(Idle)})
            end,
    case apart(Timed) of
        {ok, Results} ->
            {ok, #{results => Results, erlang => fairnif_check_time:erlang(),
                   dirty_trip => dirty_trip()}};
        {error, _} = Error ->
            Error
    end.

%% What a subject raises, apart from what the checker does.
guarded(Subject) ->
    Fun = fairnif_check_subject:function(Subject),
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
    fairnif_check_stats:median([trip() || _ <- lists:seq(1, ?TRIPS)]).

trip() ->
    _ = [fairnif_check_share:work(sort) || _ <- lists:seq(1, ?WORK_BETWEEN)],
    T0 = fairnif_check_nif:now(),
    _ = fairnif_check_nif:now_dirty_cpu(),
    fairnif_check_nif:now() - T0.

%% @doc Slices and blocks, while another process calls what is to be called beside it.
-spec blocks(fairnif_check_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_check_block:result()} | {error | beside, {atom(), term()}}.
blocks(Subject, Opts) ->
    Fun = fairnif_check_subject:function(Subject),
    beside(Opts, fun() -> fairnif_check_block:measure(Fun, Opts) end).

%% On another scheduler. The CPU time of the node is then not the function's.
beside(#{beside := Subject}, Measure) ->
    Fun = fairnif_check_subject:function(Subject),
    Last = fairnif_check_machine:bound_to(erlang:system_info(schedulers_online)),
    {Caller, Monitor} = spawn_opt(fun() -> again_and_again(Fun) end, [monitor, Last]),
    Answer = Measure(),
    exit(Caller, kill),
    receive
        {'DOWN', Monitor, process, _, killed} ->
            case Answer of
                {ok, #{cpu_part := _} = Result} -> {ok, maps:remove(cpu_part, Result)};
                _ -> Answer
            end;
        {'DOWN', Monitor, process, _, Why} ->
            {beside, Why}
    end;
beside(_, Measure) ->
    Measure().

again_and_again(Fun) ->
    try Fun() of
        _ -> erlang:yield()
    catch
        Class:Reason -> exit({Class, Reason})
    end,
    again_and_again(Fun).

%% @doc The first call in this node.
-spec first(fairnif_check_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_check_block:first() | undefined} | {error | beside, {atom(), term()}}.
first(Subject, Opts) ->
    Fun = fairnif_check_subject:function(Subject),
    beside(Opts, fun() -> fairnif_check_block:first(Fun) end).

%% @doc What each kind of Erlang neighbour keeps of the scheduler.
-spec shares(fairnif_check_subject:subject(), #{atom() => term()}) ->
          [{fairnif_check_share:mix(), {ok, fairnif_check_share:result()} | {error, term()}}].
shares(Subject, #{time_ms := TimeMs} = Opts) ->
    Fun = fairnif_check_subject:function(Subject),
    Mixes = fairnif_check_share:mixes(),
    Each = max(50, TimeMs div length(Mixes)),
    [{Mix, fairnif_check_share:measure(Fun, #{mix => Mix, time_ms => Each,
                                            alone_ms => max(50, Each div 3),
                                            patience_ms => maps:get(patience_ms, Opts)})}
     || Mix <- Mixes].

%% @doc What others feel when all schedulers run it.
-spec crowd(fairnif_check_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_check_crowd:result()} | {error, term()}.
crowd(Subject, Opts) ->
    fairnif_check_crowd:measure(fairnif_check_subject:function(Subject), Opts).

%% @doc What a call leaves behind blocks a scheduler for.
-spec garbage(fairnif_check_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_check_garbage:result()} | {error, fairnif_check_garbage:unfinished()}.
garbage(Subject, Opts) ->
    fairnif_check_garbage:measure(fairnif_check_subject:function(Subject), Opts).

%% @doc What happens when its callers are killed.
-spec kills(fairnif_check_subject:subject(), #{atom() => term()}) ->
          {ok, fairnif_check_kill:result()} | {error, term()}.
kills(Subject, Opts) ->
    fairnif_check_kill:measure(fairnif_check_subject:function(Subject), Opts).
