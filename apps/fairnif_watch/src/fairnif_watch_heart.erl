%% @doc A heart: one process for each normal scheduler, bound to it, of priority max.  Poked, it
%% answers at once, if its scheduler is given back at all.
%%
%% It must never do more than that: it runs before everything else on its scheduler.  It makes no
%% garbage.
%%
%% While another scheduler is held, who is to hear of it may wait in that one's queue. What idle
%% schedulers are then told makes them look for work elsewhere: see `rouse' in watch.c.
-module(fairnif_watch_heart).

-export([start_link/2, start_link/3, start_clock/3, activation/0]).

-define(TURNS, 4400).
-define(TURN, 4000).

%% @doc A heart that answers the watch thread.  Linked to the caller.
-spec start_link(Scheduler :: pos_integer(), fairnif_watch_native:watch()) -> pid().
start_link(Scheduler, Watch) ->
    bound(Scheduler, fun() ->
                             ok = fairnif_watch_native:heart(Watch, Scheduler),
                             answer_thread(Scheduler, Watch)
                     end).

%% @doc A heart that answers `{poke, N}' from `Watchdog' with `{beat, Scheduler, N, Time}', where
%% the native part is not there.
-spec start_link(Scheduler :: pos_integer(), erlang, Watchdog :: pid()) -> pid().
start_link(Scheduler, erlang, Watchdog) ->
    bound(Scheduler, fun() -> answer_process(Scheduler, Watchdog) end).

%% @doc A clock on that scheduler: sends `tick' to `Watchdog' every `Ms'. A process's own timers
%% stand still while the scheduler is blocked on which it set them.
-spec start_clock(Scheduler :: pos_integer(), Watchdog :: pid(), Ms :: pos_integer()) -> pid().
start_clock(Scheduler, Watchdog, Ms) ->
    bound(Scheduler, fun() -> clock(Watchdog, Ms) end).

clock(Watchdog, Ms) ->
    receive after Ms -> ok end,
    Watchdog ! tick,
    clock(Watchdog, Ms).

%% @doc The reductions that making a scheduler active uses: they are in the node's sum.
-spec activation() -> pos_integer().
activation() -> ?TURNS * ?TURN.

%% The option that binds a process to a scheduler is in no type of OTP's: dialyzer must not see
%% which tuple it is.
bound(Scheduler, Fun) ->
    bound(Scheduler, Fun, max).

bound(Scheduler, Fun, Priority) ->
    Bind = list_to_tuple([scheduler, Scheduler]),
    spawn_opt(Fun, [link, Bind, {priority, Priority}]).

answer_thread(Scheduler, Watch) ->
    receive
        poke ->
            ok = fairnif_watch_native:beat(Watch, Scheduler),
            answer_thread(Scheduler, Watch);
        rouse ->
            ok = fairnif_watch_native:beat(Watch, Scheduler),
            answer_thread(Scheduler, Watch);
        activate ->
            _ = bound(Scheduler, fun() -> use(?TURNS) end, low),
            ok = fairnif_watch_native:beat(Watch, Scheduler),
            answer_thread(Scheduler, Watch);
        _ ->
            answer_thread(Scheduler, Watch)
    end.

%% The VM keeps little work on few schedulers; the others take work from nobody, whoever waits.
%% Which they are it decides anew by the reductions of the last two periods of 4,000,000 reductions:
%% this uses them up in 1 to 3 ms. Half as many turns were not enough in one of three tries.
use(0) ->
    ok;
use(Turns) ->
    true = erlang:bump_reductions(?TURN),
    true = erlang:yield(),
    use(Turns - 1).

answer_process(Scheduler, Watchdog) ->
    receive
        {poke, N} ->
            Watchdog ! {beat, Scheduler, N, erlang:monotonic_time(nanosecond)},
            answer_process(Scheduler, Watchdog);
        _ ->
            answer_process(Scheduler, Watchdog)
    end.
