%% The ruler: every stretch of time for which one process ran, to the
%% nanosecond, and whether on a normal or on a dirty scheduler.
%%
%% The VM writes a trace event when a process is scheduled in and when it is
%% scheduled out, with a monotonic time stamp and the scheduler's number (0
%% for every dirty one).  An event costs the traced process about half a
%% microsecond, which is inside the slices: so a run that is traced is never
%% the run that is timed.
%%
%% A slice is wall time.  What the operating system took away in the middle of
%% it is part of it; repeat, and believe what repeats show.
%%
%% Run it in a node with at least two normal schedulers: the measured process
%% is bound to the first, the collector of the events to the last.
-module(fairnif_lab_slices).

-export([flags/0, trace/1, trace/2, summary/1, without_gc/2]).

-export_type([trace/0, slice/0, span/0, summary/0]).

-type span() :: {Start :: integer(), End :: integer()}.
%% Monotonic time in ns; the scheduler's number is 0 for dirty ones.
-type slice() :: {Start :: integer(), End :: integer(), normal | dirty,
                  Scheduler :: non_neg_integer()}.
-type trace() :: #{value := term(),         % what the fun returned
                   call := span(),          % from its call to its return
                   slices := [slice()],     % in order, cut to the call
                   gcs := [span()],         % garbage collections, in order
                   truncated := boolean()}. % more slices than the limit
-type kind_summary() :: fairnif_lab_stats:summary().
%% All times in ns.  Slices with the time of garbage collection taken out.
-type summary() :: #{normal := kind_summary(), dirty := kind_summary(),
                     elapsed := non_neg_integer(),
                     gc := kind_summary(), truncated := boolean()}.

%% A slice takes 56 bytes in the collector.
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

%% @doc Calls Fun in a fresh process and returns its slices.  What Fun returns
%% is part of the answer, so let it be small.  `limit' is the number of slices
%% after which tracing ends (the call goes on); the default is a million.
%% There is no time limit here: a caller that needs one ends the node.
-spec trace(fun(() -> term()), #{limit => pos_integer()}) ->
          {ok, trace()} | {error, {error | exit | throw, term()}}.
trace(Fun, Opts) ->
    Collector = spawn_opt(fun() -> collector(maps:get(limit, Opts, ?LIMIT)) end,
                          [link, {priority, high},
                           {message_queue_data, off_heap},
                           fairnif_lab_machine:bound_to(
                             erlang:system_info(schedulers))]),
    Me = self(),
    {Worker, Monitor} = spawn_opt(fun() -> worker(Me, Fun) end,
                                  [monitor, fairnif_lab_machine:bound_to(1)]),
    1 = erlang:trace(Worker, true,
                     [running, garbage_collection, scheduler_id,
                      monotonic_timestamp, {tracer, Collector}]),
    Worker ! go,
    Outcome = receive
                  {Worker, Answer} -> Answer;
                  {'DOWN', Monitor, process, _, Why} -> {error, {exit, Why}}
              end,
    Delivered = erlang:trace_delivered(Worker),
    receive {trace_delivered, Worker, Delivered} -> ok end,
    Worker ! done,
    erlang:demonitor(Monitor, [flush]),
    Collector ! {finish, self()},
    {Events, Truncated} = receive {Collector, E, T} -> {E, T} end,
    case Outcome of
        {ok, Call, Value} ->
            {Slices, Gcs} = slices(Events, Call),
            {ok, #{value => Value, call => Call, slices => Slices,
                   gcs => Gcs, truncated => Truncated}};
        {error, _} = Error ->
            Error
    end.

%% @doc Count, longest, median and p99 of the slices on normal and on dirty
%% schedulers, and the garbage collections, told apart.
-spec summary(trace()) -> summary().
summary(#{slices := Slices, gcs := Gcs, call := {From, To},
          truncated := Truncated}) ->
    Net = without_gc(Slices, Gcs),
    #{normal => fairnif_lab_stats:summary([D || {normal, D} <- Net]),
      dirty => fairnif_lab_stats:summary([D || {dirty, D} <- Net]),
      elapsed => To - From,
      gc => fairnif_lab_stats:summary([E - S || {S, E} <- Gcs]),
      truncated => Truncated}.

%% @doc The length of each slice in ns less the garbage collection inside it.
%% Both lists in order of time.  A large heap is collected on a dirty
%% scheduler: such a slice is `gc', whoever was sent there.
-spec without_gc([slice()], [span()]) ->
          [{normal | dirty | gc, non_neg_integer()}].
without_gc([], _) ->
    [];
without_gc([{Start, _, _, _} | _] = Slices, [{_, GcEnd} | Gcs])
  when GcEnd =< Start ->
    without_gc(Slices, Gcs);
without_gc([{Start, End, Kind, _} | Slices], Gcs) ->
    Net = End - Start - overlap(Start, End, Gcs, 0),
    Told = case Kind of
               dirty when 2 * Net < End - Start -> gc;
               _ -> Kind
           end,
    [{Told, Net} | without_gc(Slices, Gcs)].

overlap(Start, End, [{GcStart, GcEnd} | Gcs], Sum) when GcStart < End ->
    overlap(Start, End, Gcs,
            Sum + max(0, min(End, GcEnd) - max(Start, GcStart)));
overlap(_, _, _, Sum) ->
    Sum.

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
    %% Alive until all events are delivered.
    receive done -> ok end.

%% Keeps {Start, End, Scheduler} and {gc, Start, End}, newest first.
-record(collected, {left :: integer(),
                    in = none :: none | {integer(), non_neg_integer()},
                    gc = none :: none | integer(),
                    events = [] :: list()}).

collector(Limit) ->
    collect(#collected{left = Limit}).

collect(#collected{left = 0} = C) ->
    %% Enough: from here on the call runs untraced.
    receive
        {trace_ts, Pid, _, _, _, _} ->
            try erlang:trace(Pid, false, [all]) of
                _ -> ok
            catch
                error:badarg -> ok              % it has ended
            end,
            collect(C#collected{left = -1});
        {finish, _} = Finish ->
            self() ! Finish,
            collect(C#collected{left = -1})
    end;
collect(#collected{left = Left, in = In, gc = Gc, events = Events} = C) ->
    receive
        {finish, From} ->
            From ! {self(), lists:reverse(still_running(C)), Left < 0};
        _ when Left < 0 ->
            collect(C);
        {trace_ts, _, in, _, Scheduler, At} ->
            collect(C#collected{in = {At, Scheduler}});
        {trace_ts, _, Out, _, _, At}
          when Out =:= out; Out =:= out_exited; Out =:= out_exiting ->
            case In of
                {Start, Scheduler} ->
                    collect(C#collected{
                              in = none, left = Left - 1,
                              events = [{Start, At, Scheduler} | Events]});
                none ->
                    collect(C)
            end;
        {trace_ts, _, Begin, _, _, At} when Begin =:= gc_minor_start;
                                         Begin =:= gc_major_start ->
            collect(C#collected{gc = At});
        {trace_ts, _, End, _, _, At} when is_integer(Gc),
                                       (End =:= gc_minor_end orelse
                                        End =:= gc_major_end) ->
            collect(C#collected{gc = none, events = [{gc, Gc, At} | Events]});
        _ ->
            collect(C)
    end.

%% The slice in which the call ended may have no end yet.
still_running(#collected{in = {Start, Scheduler}, events = Events}) ->
    [{Start, infinity, Scheduler} | Events];
still_running(#collected{events = Events}) ->
    Events.

slices(Events, {From, To}) ->
    Cut = fun(S, E) -> {max(S, From), min(E, To)} end,     % infinity > any int
    Slices = [{S1, E1, kind(Id), Id}
              || {S, E, Id} <- Events, S =/= gc,
                 {S1, E1} <- [Cut(S, E)], E1 > S1],
    Gcs = [Span || {gc, S, E} <- Events, {S1, E1} = Span <- [Cut(S, E)],
                   E1 > S1],
    {Slices, Gcs}.

kind(0) -> dirty;
kind(_) -> normal.
