%% What fairnif_watch_storm_SUITE does, inside its peer nodes: the watch and what it watches come
%% and go at once. Answers facts; the suite judges them.
-module(fairnif_watch_test_storm).

-export([starts/1, upgrades/1, hammer/1]).

-define(NIF, fairnif_watch_block_nif).
-define(FAIR, fairnif_watch_block_fair).
%% As attentive as can be: all that is expensive is done all the time.
-define(KEEN, #{warn_ms => 1, period_ms => 1, sample_hz => 1000, log => false}).

%% @doc Starts and stops that many times, while NIFs block. How the node was before and is
%% afterwards, and what each pair took.
starts(Times) ->
    %% The first one loads code and makes atoms, which stay.
    _ = pair(?KEEN),
    _ = with_load(fun() -> pair(?KEEN) end),
    Before = fairnif_watch_test:traces(),
    R0 = fairnif_watch_test:resident(),
    Us = with_load(fun() -> [pair(config(N)) || N <- lists:seq(1, Times)] end),
    R1 = fairnif_watch_test:resident(),
    After = same(Before, 100),
    #{before => Before, after_all => After, us => Us, resident => {R0, R1}}.

config(N) when N rem 3 =:= 0 -> #{log => false};
config(N) when N rem 7 =:= 0 -> #{log => false, native => false};
config(_) -> ?KEEN.

pair(Config) ->
    T0 = erlang:monotonic_time(microsecond),
    started(fairnif_watch:start(Config)),
    timer:sleep(rand:uniform(40) - 1),
    ok = fairnif_watch:stop(),
    erlang:monotonic_time(microsecond) - T0.

started(ok) -> ok;
started({ok, _}) -> ok.

%% What goes away does so a little later.
same(Before, Tries) ->
    case fairnif_watch_test:traces() of
        Before -> Before;
        Other when Tries =:= 0 -> Other;
        _ -> timer:sleep(50), same(Before, Tries - 1)
    end.

%% Fun's value, while native code blocks here and there and ordinary work runs.
with_load(Fun) ->
    Loads = fairnif_watch_test_load:start([ets, spawns, files, auto, yielding_dirty, dirty_cpu],
                                          none),
    Blockers = [spawn_link(fun() -> forever(Block) end)
                || Block <- [fun() -> ?NIF:spin(30), timer:sleep(20) end,
                             fun() -> ?NIF:sleep(30), timer:sleep(20) end,
                             fun() -> ?FAIR:spin_normal(12), timer:sleep(30) end,
                             fun() -> ?NIF:spin_dirty_cpu(20) end,
                             fun() -> ?NIF:poll_dirty_io(15) end]],
    try
        Fun()
    after
        [begin unlink(P), exit(P, kill) end || P <- Blockers],
        fairnif_watch_test_load:stop(Loads),
        %% A killed process stays until its NIF returns.
        timer:sleep(100)
    end.

%% A turn is over after each call: a NIF is charged next to nothing, and thousands would be one.
forever(Fun) ->
    Fun(),
    true = erlang:bump_reductions(4000),
    forever(Fun).

%% @doc That many upgrades of a library that is spun in all the time, each old version purged and so
%% unmapped. Who was named.
upgrades(Times) ->
    started(fairnif_watch:start(?KEEN)),
    {module, ?NIF} = code:ensure_loaded(?NIF),
    Spinners = [spawn_link(fun() -> spinner() end) || _ <- [1, 2, 3]],
    N = upgrade(Times, 0),
    [begin unlink(P), exit(P, kill) end || P <- Spinners],
    #{findings := Findings} = fairnif_watch:view(),
    ok = fairnif_watch:stop(),
    %% That schedulers are starved is true where others have the processors: its culprits are those.
    #{upgrades => N, named => lists:usort([Name || #{detector := D, culprit := #{name := Name}}
                                                       <- Findings,
                                                    not lists:member(D, [no_cpu_time, late_wakeups,
                                                                         quota])])}.

%% By full name each time: in the version that is current, so that the old one can go.
spinner() ->
    _ = try ?NIF:spin(3) catch error:_ -> timer:sleep(1) end,
    true = erlang:bump_reductions(4000),
    spinner().

upgrade(0, Done) ->
    Done;
upgrade(Times, Done) ->
    ?NIF:use(case Times rem 2 of 0 -> ?NIF; 1 -> fairnif_watch_block_nif_2 end),
    timer:sleep(5),
    {module, ?NIF} = code:load_file(?NIF),
    _ = wait_purged(200),
    upgrade(Times - 1, Done + 1).

wait_purged(0) -> code:purge(?NIF);
wait_purged(Tries) ->
    case code:soft_purge(?NIF) of
        true -> true;
        false -> timer:sleep(1), wait_purged(Tries - 1)
    end.

%% @doc Everything that a signal could break off, for that many ms, under as many signals as there
%% can be: threads that run native code long enough to be sampled, and sleep in between.
hammer(Ms) ->
    {module, ?FAIR} = code:ensure_loaded(?FAIR),
    started(fairnif_watch:start(?KEEN)),
    Me = self(),
    Sleepers = [{Way, spawn_link(fun() -> sleeper(Me, Way, 0) end)}
                || Way <- [sleep, poll, read, lock, sleep_dirty_cpu, poll_dirty_cpu, read_dirty_io,
                           sleep_dirty_io, lock_dirty_io]],
    Spinners = [spawn_link(fun() -> forever(Spin) end)
                || Spin <- [fun() -> ?NIF:spin(4) end,
                            fun() -> ?NIF:libc(4) end,
                            fun() -> ?NIF:spin_dirty_cpu(10) end,
                            fun() -> ?NIF:spin_dirty_io(10) end]],
    Loads = fairnif_watch_test_load:start([ports, files, sockets, timers], none),
    timer:sleep(Ms),
    Units = fairnif_watch_test_load:stop(Loads),
    Interrupted = [begin P ! {Me, stop}, receive {P, N} -> {Way, N} end end
                   || {Way, P} <- Sleepers],
    [begin unlink(P), exit(P, kill) end || P <- Spinners],
    #{counters := Counters} = fairnif_watch:view(),
    ok = fairnif_watch:stop(),
    #{interrupted => [{Way, N} || {Way, N} <- Interrupted, N > 0], units => Units,
      signals => maps:get(signals, Counters), counters => Counters}.

sleeper(To, Way, Sum) ->
    {_, _, Interrupted} = ?NIF:Way(10),
    receive
        {To, stop} -> unlink(To), To ! {self(), Sum + Interrupted}
    after 0 ->
            timer:sleep(1),
            sleeper(To, Way, Sum + Interrupted)
    end.
