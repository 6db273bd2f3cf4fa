%% The CPU share that a function leaves to a busy Erlang neighbour.
%%
%% The neighbour does small rounds of ordinary Erlang work and counts them,
%% alone and beside the function, on the same normal scheduler.  Share = rounds
%% per second beside / rounds per second alone.  Two processes that do the same
%% Erlang work leave each other 50 %.  The VM shares out reductions, not time:
%% beside a function that is worth less time per reduction the share is higher.
%%
%% Only the time from calling the function to its return counts; freeing its
%% results happens between, and is part of no share.
%%
%% On a dirty scheduler the function runs in another thread, and it is the operating system that
%% shares out the cores (and the memory bandwidth).  No thread is pinned to a core here: that is how
%% nodes run.  So the figure of a dirty function says what this machine had to spare: near 100 %
%% with an idle core, half of that with none.
-module(fairnif_check_share).

-export([flags/0, mixes/0, work/1, measure/2]).

-export_type([mix/0, options/0, result/0]).

-type mix() :: sort | maps | binaries | long_sort.
-type options() :: #{mix => mix(),              % default sort
                     time_ms => pos_integer(),  % beside; default 1000
                     alone_ms => pos_integer(), % before, and again after;
                                                % default 300
                     patience_ms => pos_integer()}. % for a call to return
                                                    % after that; default 30000
-type result() :: #{share := float(),           % 1.0: all of it
                    mix := mix(),
                    alone := float(),           % rounds per second
                    alone_samples := [float()],
                    beside := float(),          % rounds per second
                    beside_samples := [float()], % share by batch of calls,
                                                 % the first 1000
                    calls := non_neg_integer(), % that returned
                    finished := boolean()}.     % false: a call was still
                                                % running when patience ended

-define(WINDOW_MS, 25).
-define(WARM_MS, 50).
%% A batch lasts at least this long, so that reading clock and counter between
%% batches costs nothing that matters.
-define(BATCH_NS, 1000000).
-define(SAMPLES, 1000).

%% Slots of the shared atomics.
-define(ROUNDS, 1).             % of the neighbour, ever
-define(IN_ROUNDS, 2).          % of those, during finished batches
-define(IN_NS, 3).              % how long those batches took
-define(CALLS, 4).
-define(FROM_ROUNDS, 5).        % at the start of the batch under way
-define(FROM_NS, 6).
-define(BUSY, 7).               % 1 while a batch is under way
-define(SLOTS, 7).

%% @doc Emulator flags of the node to measure in: one scheduler for both, one dirty CPU scheduler.
-spec flags() -> [string()].
flags() ->
    ["+S", "1:1", "+SDcpu", "1:1"].

%% @doc The kinds of ordinary Erlang work that a neighbour can do. Not among them, for comparison:
%% `long_sort', whose turn of 4000 reductions takes three times as long as that of `sort'.
-spec mixes() -> [mix(), ...].
mixes() ->
    [sort, maps, binaries].

%% @doc One round of a mix: 3 to 20 us on current machines (`long_sort': 700),
%% with the garbage that such code makes.
-spec work(mix()) -> term().
work(sort) ->
    lists:sort([erlang:phash2(N) || N <- lists:seq(1, 100)]);
work(long_sort) ->
    lists:sort([erlang:phash2(N) || N <- lists:seq(1, 5000)]);
work(maps) ->
    maps:fold(fun(K, V, Sum) -> K + V + Sum end, 0,
              lists:foldl(fun(N, M) -> M#{N band 63 => N} end, #{},
                          lists:seq(1, 200)));
work(binaries) ->
    Text = << <<($a + N rem 26)>> || N <- lists:seq(1, 400) >>,
    binary:split(Text, <<"z">>, [global]).

%% @doc Measures beside Fun, called again and again in a process of its own. Takes `time_ms' and
%% twice `alone_ms', and longer when one call does.  Both processes are bound to scheduler 1; use a
%% node started with `flags/0', or the others' work is in the figure.
-spec measure(fun(() -> term()), options()) ->
          {ok, result()} | {error, {error | exit | throw, term()}}.
measure(Fun, Opts) ->
    Mix = maps:get(mix, Opts, sort),
    AloneMs = maps:get(alone_ms, Opts, 300),
    TimeMs = maps:get(time_ms, Opts, 1000),
    Slots = atomics:new(?SLOTS, [{signed, true}]),
    Neighbour = spawn_opt(fun() -> neighbour(Mix, Slots) end,
                          [link, fairnif_check_machine:bound_to(1)]),
    %% So that the windows end when they should, as far as a scheduler that may be blocked allows.
    Before = process_flag(priority, high),
    try
        timer:sleep(?WARM_MS),
        Alone1 = alone(Slots, AloneMs),
        case beside(Fun, Slots, TimeMs, maps:get(patience_ms, Opts, 30000)) of
            {error, _} = Error ->
                Error;
            {Finished, Samples} ->
                %% What did not return may still be running.
                Alone2 = case Finished of
                             true -> alone(Slots, AloneMs);
                             false -> []
                         end,
                {ok, result(Mix, Alone1 ++ Alone2, Samples, Finished, Slots)}
        end
    after
        process_flag(priority, Before),
        unlink(Neighbour),
        exit(Neighbour, kill)
    end.

result(Mix, AloneSamples, BatchSamples, Finished, Slots) ->
    Alone = fairnif_check_stats:median(AloneSamples),
    Beside = per_second(atomics:get(Slots, ?IN_ROUNDS),
                        atomics:get(Slots, ?IN_NS)),
    #{share => Beside / Alone, mix => Mix,
      alone => Alone, alone_samples => AloneSamples,
      beside => Beside, beside_samples => [B / Alone || B <- BatchSamples],
      calls => atomics:get(Slots, ?CALLS), finished => Finished}.

neighbour(Mix, Slots) ->
    _ = work(Mix),
    atomics:add(Slots, ?ROUNDS, 1),
    neighbour(Mix, Slots).

%% Several short windows, of which the median counts: the machine's noise comes in bursts.
alone(Slots, Ms) ->
    [window(Slots) || _ <- lists:seq(1, max(1, Ms div ?WINDOW_MS))].

window(Slots) ->
    Rounds = atomics:get(Slots, ?ROUNDS),
    Start = now_ns(),
    timer:sleep(?WINDOW_MS),
    per_second(atomics:get(Slots, ?ROUNDS) - Rounds, now_ns() - Start).

beside(Fun, Slots, TimeMs, PatienceMs) ->
    Me = self(),
    Until = now_ns() + TimeMs * 1000000,
    {Caller, Monitor} =
        spawn_opt(fun() -> Me ! {self(), caller(Fun, Slots, Until)} end,
                  [monitor, fairnif_check_machine:bound_to(1)]),
    receive
        {Caller, Outcome} ->
            erlang:demonitor(Monitor, [flush]),
            Outcome;
        {'DOWN', Monitor, process, _, Reason} ->
            {error, {exit, Reason}}
    after TimeMs + PatienceMs ->
            unfinished(Slots, Caller, Monitor)
    end.

caller(Fun, Slots, Until) ->
    try calls(Fun, Slots, Until, 1, []) of
        Samples -> {true, Samples}
    catch
        Class:Reason -> {error, {Class, Reason}}
    end.

calls(Fun, Slots, Until, Batch, Samples) ->
    FromRounds = atomics:get(Slots, ?ROUNDS),
    From = now_ns(),
    atomics:put(Slots, ?FROM_ROUNDS, FromRounds),
    atomics:put(Slots, ?FROM_NS, From),
    atomics:put(Slots, ?BUSY, 1),
    repeat(Fun, Batch),
    To = now_ns(),
    Rounds = atomics:get(Slots, ?ROUNDS) - FromRounds,
    atomics:put(Slots, ?BUSY, 0),
    atomics:add(Slots, ?IN_ROUNDS, Rounds),
    atomics:add(Slots, ?IN_NS, To - From),
    atomics:add(Slots, ?CALLS, Batch),
    %% Results, which can be huge, must not pile up.
    erlang:garbage_collect(),
    Samples1 = case length(Samples) < ?SAMPLES of
                   true -> [per_second(Rounds, To - From) | Samples];
                   false -> Samples
               end,
    case now_ns() < Until of
        true -> calls(Fun, Slots, Until, next_batch(Batch, To - From), Samples1);
        false -> lists:reverse(Samples1)
    end.

repeat(_, 0) ->
    ok;
repeat(Fun, N) ->
    _ = Fun(),
    repeat(Fun, N - 1).

next_batch(Batch, Ns) when Ns < ?BATCH_NS -> 2 * Batch;
next_batch(Batch, _) -> Batch.

%% The part of a call that was seen is as good a sample as a whole one.
unfinished(Slots, Caller, Monitor) ->
    case atomics:get(Slots, ?BUSY) of
        1 ->
            atomics:add(Slots, ?IN_NS, now_ns() - atomics:get(Slots, ?FROM_NS)),
            atomics:add(Slots, ?IN_ROUNDS, atomics:get(Slots, ?ROUNDS)
                        - atomics:get(Slots, ?FROM_ROUNDS));
        0 ->
            ok
    end,
    exit(Caller, kill),
    erlang:demonitor(Monitor, [flush]),
    receive {Caller, _} -> ok after 0 -> ok end,
    {false, []}.

per_second(_, Ns) when Ns =< 0 -> 0.0;
per_second(Rounds, Ns) -> Rounds * 1.0e9 / Ns.

now_ns() ->
    erlang:monotonic_time(nanosecond).
