%% The ruler: every stretch of time for which one process ran, to the
%% nanosecond, and whether on a normal or on a dirty scheduler.
%%
%% The VM tells a tracer (fairnif_check_tracer) when a process is scheduled in and when it is
%% scheduled out.  An event costs the traced process about a microsecond, which is inside the
%% slices: so a run that is traced is never the run that is timed.
%%
%% A slice is wall time.  How much of it the operating system gave to others stands beside; what the
%% hypervisor took is not known: repeat, and believe what repeats show.
-module(fairnif_check_slices).

-export([flags/0, trace/1, trace/2, summary/1, summary/2, without_gc/2]).

-export_type([trace/0, slice/0, span/0, summary/0, later/0]).

-type span() :: {Start :: integer(), End :: integer()}.
%% Monotonic time in ns; and how long of it the thread was ready to run while
%% another had its processor.
-type slice() :: {Start :: integer(), End :: integer(), normal | dirty,
                  Waited :: non_neg_integer()}.
-type trace() :: #{value := term(),         % what the fun returned
                   call := span(),          % from its call to its return
                   slices := [slice()],     % in order, cut to the call
                   gcs := [span()],         % garbage collections, in order
                   truncated := boolean(),  % more slices than the limit: of those
                                            % beyond it only the longest are here,
                   later := later()}.       % and the others are counted
-type later() :: #{since := integer(), until := integer(),
                   normal := {Count :: non_neg_integer(), Ns :: non_neg_integer()},
                   dirty := {Count :: non_neg_integer(), Ns :: non_neg_integer()}}.
-type kind_summary() :: fairnif_check_stats:summary().
%% All times in ns.  Slices with the time of garbage collection taken out.
-type summary() :: #{normal := kind_summary(), dirty := kind_summary(),
                     elapsed := non_neg_integer(),
                     gc := kind_summary(), truncated := boolean()}.

%% A slice is two events.
-define(LIMIT, 1000000).

%% @doc Emulator flags of a node to trace in.
-spec flags() -> [string()].
flags() ->
    ["+S", "2:2", "+SDcpu", "2:2"].

%% @doc `trace(Fun, #{})'.
-spec trace(fun(() -> term())) ->
          {ok, trace()} | {error, {error | exit | throw, term()}}.
trace(Fun) ->
    trace(Fun, #{}).

%% @doc Calls Fun in a fresh process and returns its slices.  What Fun returns is part of the
%% answer, so let it be small.  `limit' is the number of slices after which only the longest are
%% kept, some thousands, and the others are counted; the default is a million. There is no time
%% limit here: a caller that needs one ends the node.
-spec trace(fun(() -> term()), #{limit => pos_integer()}) ->
          {ok, trace()} | {error, {error | exit | throw, term()}}.
trace(Fun, Opts) ->
    Limit = maps:get(limit, Opts, ?LIMIT),
    Table = fairnif_check_tracer:new(2 * Limit),
    Me = self(),
    {Worker, Monitor} = spawn_opt(fun() -> worker(Me, Fun) end,
                                  [monitor, fairnif_check_machine:bound_to(1)]),
    1 = erlang:trace(Worker, true, [running, garbage_collection,
                                    {tracer, fairnif_check_tracer, Table}]),
    Worker ! go,
    Outcome = receive
                  {Worker, Answer} ->
                      %% Suspended, it has been scheduled out: all is written.
                      suspended(Worker),
                      Answer;
                  {'DOWN', Monitor, process, _, Why} ->
                      {error, {exit, Why}}
              end,
    erlang:demonitor(Monitor, [flush]),
    exit(Worker, kill),
    case Outcome of
        {ok, Call, Value} ->
            #{longest := Longest} = Later = fairnif_check_tracer:later(Table),
            {Slices, Gcs} = slices(fairnif_check_tracer:events(Table), Longest, Call),
            {ok, #{value => Value, call => Call, slices => Slices, gcs => Gcs,
                   truncated => maps:get(since, Later) =/= 0,
                   later => maps:remove(longest, Later)}};
        {error, _} = Error ->
            Error
    end.

%% @doc Count, longest, median and p99 of the slices on normal and on dirty
%% schedulers, and the garbage collections, each apart.
-spec summary(trace()) -> summary().
summary(#{slices := Slices, gcs := Gcs, call := {From, To},
          truncated := Truncated, later := #{normal := Normal, dirty := Dirty}}) ->
    Net = without_gc(Slices, Gcs),
    #{normal => summary([D || {normal, D} <- Net], Normal),
      dirty => summary([D || {dirty, D} <- Net], Dirty),
      elapsed => To - From,
      gc => fairnif_check_stats:summary([E - S || {S, E} <- Gcs]),
      truncated => Truncated}.

%% @doc The summary of some samples and of others, all shorter, of which only
%% number and sum are known: median and p99 are those of the former.
-spec summary([number()], {non_neg_integer(), non_neg_integer()}) -> kind_summary().
summary(Samples, {Count, Ns}) ->
    #{count := Known, total := Total} = Summary = fairnif_check_stats:summary(Samples),
    Summary#{count := Known + Count, total := Total + Ns}.

%% @doc The length of each slice in ns less the garbage collection inside it.
%% Both lists in order of time.  A large heap is collected on a dirty
%% scheduler: such a slice is `gc', wherever the process was sent.
-spec without_gc([slice()], [span()]) ->
          [{normal | dirty | gc, non_neg_integer()}].
without_gc([], _) ->
    [];
without_gc([{Start, _, _, _} | _] = Slices, [{_, GcEnd} | Gcs])
  when GcEnd =< Start ->
    without_gc(Slices, Gcs);
without_gc([{Start, End, Kind, _} | Slices], Gcs) ->
    Net = End - Start - overlap(Start, End, Gcs, 0),
    Type = case Kind of
               dirty when 2 * Net < End - Start -> gc;
               _ -> Kind
           end,
    [{Type, Net} | without_gc(Slices, Gcs)].

overlap(Start, End, [{GcStart, GcEnd} | Gcs], Sum) when GcStart < End ->
    overlap(Start, End, Gcs,
            Sum + max(0, min(End, GcEnd) - max(Start, GcStart)));
overlap(_, _, _, Sum) ->
    Sum.

%% What the fun left behind may have killed it since.
suspended(Worker) ->
    try erlang:suspend_process(Worker) of
        true -> ok
    catch
        error:badarg -> ok
    end.

worker(Owner, Fun) ->
    receive go -> ok end,
    From = erlang:monotonic_time(nanosecond),
    Answer = try Fun() of
                 Value ->
                     To = erlang:monotonic_time(nanosecond),
                     {ok, {From, To}, Value}
             catch
                 Class:Reason -> {error, {Class, Reason}}
             end,
    Owner ! {self(), Answer},
    %% There, until it is killed.
    receive done -> ok end.

%% The slices and the collections of garbage, cut to the call; what is known of
%% those after the limit stands behind the others.
slices(Events, Longest, {From, To}) ->
    Runs = runs(Events)
        ++ lists:append([[{Start, End, Kind, Waited} | [{Start, Start + Gc, gc, 0} || Gc > 0]]
                         || {Start, End, Kind, Waited, Gc} <- Longest]),
    Within = [Run || {Start, End, _, _} = Run <- Runs, End > From, Start < To],
    {[{max(Start, From), min(End, To), Kind, Waited}
      || {Start, End, Kind, Waited} <- Within, Kind =/= gc],
     [{max(Start, From), min(End, To)} || {Start, End, gc, _} <- Within]}.

%% Each begin with its end; what began before the trace or was cut off by its
%% limit has only one of them.  A collection lies inside a run.
runs(Events) ->
    lists:keysort(1, runs(Events, none, none)).

runs([{in, _, At, Waited} | Events], _, Gc) ->
    runs(Events, {At, Waited}, Gc);
runs([{out, Kind, At, Waited} | Events], {Start, WaitedThen}, Gc) ->
    [{Start, At, Kind, max(0, Waited - WaitedThen)} | runs(Events, none, Gc)];
runs([{gc_begin, _, At, _} | Events], In, _) ->
    runs(Events, In, At);
runs([{gc_end, _, At, _} | Events], In, Gc) when is_integer(Gc) ->
    [{Gc, At, gc, 0} | runs(Events, In, none)];
runs([_ | Events], In, Gc) ->
    runs(Events, In, Gc);
runs([], _, _) ->
    [].
