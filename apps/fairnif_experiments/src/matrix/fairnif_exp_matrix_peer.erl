%% The part of the experiment `matrix' that runs inside its peer nodes: many
%% processes call one form of the example `spinsleep' at once.
-module(fairnif_exp_matrix_peer).

-export([prepare/0, cell/3]).

%% What a call of spinwork takes alone is measured with this one: the shortest
%% of some, as whatever else the machine does only adds.
-define(ALONE_US, 5000).
-define(ALONE_RUNS, 5).
-define(SETTLE_MS, 20).

%% @doc Loads the example and measures its unit of work in this node: how many
%% microseconds a microsecond of `spinwork' takes when nothing else runs.  It is
%% counted in steps whose number was measured when the library was loaded.
-spec prepare() -> #{schedulers := pos_integer(), work_scale := float()}.
prepare() ->
    Example = fairnif_exp:spinsleep(),
    Took = [Example:spinwork(?ALONE_US) || _ <- lists:seq(1, ?ALONE_RUNS)],
    #{schedulers => erlang:system_info(schedulers_online),
      work_scale => lists:min(Took) / ?ALONE_US}.

%% @doc Multiple x schedulers_online processes call Form with Us once each:
%% nanoseconds from the first start to the last end.  An error when a call
%% fails.
-spec cell(atom(), pos_integer(), pos_integer()) ->
          {ok, Ns :: non_neg_integer()} | {error, term()}.
cell(Form, Us, Multiple) ->
    %% What the cell before has left behind shall not count.
    erlang:garbage_collect(),
    timer:sleep(?SETTLE_MS),
    N = Multiple * erlang:system_info(schedulers_online),
    Callers = [spawn_monitor(fun() -> exit({took, timed(Form, Us)}) end)
               || _ <- lists:seq(1, N)],
    %% All are told before this process competes with the first of them.
    process_flag(priority, high),
    _ = [Pid ! go || {Pid, _} <- Callers],
    collect(Callers, undefined, undefined).

timed(Form, Us) ->
    Example = fairnif_exp:spinsleep(),
    receive go -> ok end,
    Start = erlang:monotonic_time(),
    _ = Example:Form(Us),
    {Start, erlang:monotonic_time()}.

collect([], Start, End) ->
    {ok, erlang:convert_time_unit(End - Start, native, nanosecond)};
collect([{Pid, Monitor} | Callers], Start, End) ->
    receive
        {'DOWN', Monitor, process, Pid, {took, {S, E}}} ->
            collect(Callers, first(S, Start), last(E, End));
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, Reason}
    end.

first(S, undefined) -> S;
first(S, Start) -> min(S, Start).

last(E, undefined) -> E;
last(E, End) -> max(E, End).
