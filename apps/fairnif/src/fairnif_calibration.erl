%% @doc How long the fair slice is on this machine: what 4000 reductions of
%% ordinary Erlang take.
%%
%% The VM gives an Erlang process 4000 reductions before the next one has its
%% turn.  A reduction is about a function call, so their time depends on the
%% code; the mix below is data, and every part of it is work that ordinary
%% programs do.
-module(fairnif_calibration).

-export([run/0, mix/0]).
%% For fairnif and fairnif_settings.
-export([figures/0, put_figures/1]).

-export_type([result/0]).

-type result() :: #{measured := boolean(),
                    turn_ns := pos_integer(),
                    slice_ns := pos_integer(),
                    reschedule_ns := pos_integer(),
                    dirty_round_trip_ns := pos_integer(),
                    mix := [{Name :: atom(), NsOf4000 :: pos_integer()}]}.
%% `measured': false while these are the defaults; `turn_ns': 4000 reductions of
%% the mix, the smallest of 20 runs, 10 to 100 us; `slice_ns': the same, and at
%% least 100 reschedules, so that yielding costs at most 1 percent;
%% `dirty_round_trip_ns': the median of 20 runs, since what counts is a usual trip.
%% What is over 20 us is a busy machine's: ten of it are what fair_offload holds a
%% scheduler for.

-define(RUNS, 20).
-define(CONTEXT_REDS, 4000).
-define(TRIP_MOST, 20000).

%% -- the figures in force --------------------------------------------------------

%% @private
-spec figures() -> result().
figures() ->
    persistent_term:get({fairnif, calibration}, defaults()).

%% @private
-spec put_figures(result()) -> ok.
put_figures(Figures) ->
    persistent_term:put({fairnif, calibration}, Figures).

%% In force until something better is known: what fast and slow machines of today have is half and
%% twice as much.
defaults() ->
    #{measured => false,
      turn_ns => 25000,
      slice_ns => 25000,
      reschedule_ns => 250,
      dirty_round_trip_ns => 2000,
      mix => []}.

%% -- the measurement -----------------------------------------------------------

%% @doc Runs the mix and the two native measurements; about 20 ms.
-spec run() -> result().
run() ->
    Parts = [{Name, smallest(fun() -> ns_of_context_reds(Work) end)}
             || {Name, Work} <- mix()],
    Mean = lists:sum([Ns || {_, Ns} <- Parts]) div length(Parts),
    Fair = min(100000, max(10000, Mean)),
    Reschedule = max(1, reschedule_ns()),
    Trip = median(fun() -> fairnif:nif_dirty_round_trip_ns(4) end),
    #{measured => true,
      turn_ns => Fair,
      slice_ns => max(Fair, 100 * Reschedule),
      reschedule_ns => Reschedule,
      dirty_round_trip_ns => min(?TRIP_MOST, max(Reschedule, Trip)),
      mix => Parts}.

%% @doc The mix: sorting, lists, maps, binaries.  Each part takes about 100 us.
-spec mix() -> [{atom(), fun(() -> term())}].
mix() ->
    Numbers = [(N * 7919) rem 1009 || N <- lists:seq(1, 400)],
    Text = binary:copy(<<"the quick brown fox ">>, 40),
    [{sort, fun() -> lists:sort(Numbers) end},
     {lists, fun() ->
                     lists:foldl(fun(N, Sum) -> N + Sum end, 0,
                                 [N * 3 || N <- Numbers, N rem 2 =:= 0])
             end},
     {maps, fun() ->
                    lists:foldl(fun(N, Map) -> maps:put(N rem 64, N, Map) end,
                                #{}, Numbers)
            end},
     {binaries, fun() -> << <<(C bxor 32)>> || <<C>> <= Text >> end}].

ns_of_context_reds(Work) ->
    {reductions, Reds0} = process_info(self(), reductions),
    T0 = erlang:monotonic_time(nanosecond),
    _ = Work(),
    _ = Work(),
    T1 = erlang:monotonic_time(nanosecond),
    {reductions, Reds1} = process_info(self(), reductions),
    (T1 - T0) * ?CONTEXT_REDS div max(1, Reds1 - Reds0).

%% With high priority, for some 0.2 ms: else each reschedule would wait for the turns of all the
%% others that have work on this scheduler, and come out as long as these.
reschedule_ns() ->
    Before = process_flag(priority, high),
    try
        smallest(fun() -> fairnif:nif_reschedule_ns(50) end)
    after
        process_flag(priority, Before)
    end.

smallest(Measure) ->
    lists:min([Measure() || _ <- lists:seq(1, ?RUNS)]).

median(Measure) ->
    lists:nth(?RUNS div 2, lists:sort([Measure() || _ <- lists:seq(1, ?RUNS)])).
