%% @doc A heart: one process for each normal scheduler, bound to it, of priority max.  Poked, it
%% answers at once, if its scheduler is given back at all.
%%
%% It must never do more than that: it runs before everything else on its scheduler.  It makes no
%% garbage.
-module(fairnif_watch_heart).

-export([start_link/2, start_link/3, start_clock/3]).

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

%% The option that binds a process to a scheduler is in no type of OTP's: dialyzer must not see which
%% tuple it is.
bound(Scheduler, Fun) ->
    Bind = list_to_tuple([scheduler, Scheduler]),
    spawn_opt(Fun, [link, Bind, {priority, max}]).

answer_thread(Scheduler, Watch) ->
    receive
        poke ->
            ok = fairnif_watch_native:beat(Watch, Scheduler),
            answer_thread(Scheduler, Watch);
        _ ->
            answer_thread(Scheduler, Watch)
    end.

answer_process(Scheduler, Watchdog) ->
    receive
        {poke, N} ->
            Watchdog ! {beat, Scheduler, N, erlang:monotonic_time(nanosecond)},
            answer_process(Scheduler, Watchdog);
        _ ->
            answer_process(Scheduler, Watchdog)
    end.
