%% @doc A responder: one process for each normal scheduler, of priority max.  Probed, it goes there
%% and answers at once, if its scheduler is given back at all.
%%
%% It must never do more than that: it runs before everything else on its scheduler.  It makes no
%% garbage.  And it should not wait bound to a scheduler: one that is taken offline runs nothing,
%% and a process that can never run answers no signal. With one of those neither code is purged, nor
%% an application stopped, nor are processes listed, until fairnif_watch_responders frees it.
%%
%% Without the native part they do wait bound. What a process or a timer wakes goes to the queue of
%% a scheduler that the VM counts on, where its own is not one, and that may be the blocked one.
%% (What a foreign thread wakes does not: the VM cannot look at its migration paths there.)
%%
%% While another scheduler is blocked, the process to notify may wait in that one's queue. What idle
%% schedulers are then sent makes them look for work elsewhere: see `rouse' in watch.c. Without the
%% native part the clocks see to it.
-module(fairnif_watch_responder).

-export([start_link/2, start_link/3, start_clock/3, finish/1, activation/0]).

-define(TURNS, 4400).
-define(TURN, 4000).
-define(ACTIVATE_MS, 500).

-record(clock, {scheduler :: pos_integer(), watchdog :: pid(), ms :: pos_integer(),
                asked = none :: none | integer(),      % ms; of a tick that was not answered
                activated :: integer(),                % ms
                user = none :: none | reference()}).

%% @doc A responder that answers the watch thread, of a scheduler that is online.  Linked to the
%% caller. Ends with `{no_responder, Scheduler, Why}' where it runs on another thread than the watch
%% takes for the scheduler's.
-spec start_link(Scheduler :: pos_integer(), fairnif_watch_native:watch()) -> pid().
start_link(Scheduler, Watch) ->
    bound(Scheduler, fun() ->
                             case fairnif_watch_native:responder(Watch, Scheduler) of
                                 ok -> ok;
                                 {error, Why} -> exit({no_responder, Scheduler, Why})
                             end,
                             Flag = flag(),
                             unbind(Flag),
                             answer_thread(Scheduler, Flag, Watch, none)
                     end).

%% @doc A responder that answers `{probe, N}' from `Watchdog' with `{reply, Scheduler, N, Time}',
%% where the native part is not there.
-spec start_link(Scheduler :: pos_integer(), erlang, Watchdog :: pid()) -> pid().
start_link(Scheduler, erlang, Watchdog) ->
    bound(Scheduler, fun() -> answer_process(Scheduler, Watchdog) end).

%% @doc A clock on that scheduler: sends `{tick, Clock}' to `Watchdog' every `Ms', which answers
%% `tock'. A process's own timers stand still while the scheduler is blocked on which it set them.
%% Where no answer comes the watchdog waits behind a scheduler that is blocked: then the clock makes
%% its own one take it over.
-spec start_clock(Scheduler :: pos_integer(), Watchdog :: pid(), Ms :: pos_integer()) -> pid().
start_clock(Scheduler, Watchdog, Ms) ->
    bound(Scheduler,
          fun() ->
                  clock(#clock{scheduler = Scheduler, watchdog = Watchdog, ms = Ms,
                               activated = now_ms() - ?ACTIVATE_MS})
          end).

clock(Clock = #clock{user = User}) ->
    receive
        tock -> clock(Clock#clock{asked = none});
        {'DOWN', User, process, _, _} -> clock(Clock#clock{user = none});
        finish -> finished(User);
        _ -> clock(Clock)
    after Clock#clock.ms ->
            clock(ticked(now_ms(), Clock))
    end.

%% One tick at a time: a watchdog that waits for a scheduler would have thousands to read.
ticked(Now, Clock = #clock{asked = none, watchdog = Watchdog}) ->
    Watchdog ! {tick, self()},
    Clock#clock{asked = Now};
ticked(Now, Clock = #clock{asked = Asked, ms = Ms, activated = Activated, user = none})
  when Now - Asked >= 2 * Ms, Now - Activated >= ?ACTIVATE_MS ->
    Clock#clock{activated = Now, user = activate(Clock#clock.scheduler)};
ticked(_, Clock) ->
    Clock.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% @doc Asks it to end, which it does where it can run and has nothing left on its scheduler.
-spec finish(pid()) -> ok.
finish(Pid) ->
    Pid ! finish,
    ok.

%% @doc The reductions that making a scheduler active uses: they are in the node's sum.
-spec activation() -> pos_integer().
activation() -> ?TURNS * ?TURN.

%% The option that binds a process to a scheduler is in no type of OTP's: dialyzer must not see
%% which tuple it is; nor which flag.
bound(Scheduler, Fun) ->
    proc_lib:spawn_opt(Fun, [link, bind(Scheduler), {priority, max}]).

bind(Scheduler) ->
    list_to_tuple([scheduler, Scheduler]).

flag() ->
    element(1, list_to_tuple([scheduler])).

%% Where nothing runs there the asker is answered from anywhere.
bind_to(Scheduler, Flag) ->
    case runs(Scheduler) of
        true -> process_flag(Flag, Scheduler);
        false -> ok
    end.

runs(Scheduler) ->
    Scheduler =< erlang:system_info(schedulers_online)
        andalso not lists:member(erlang:system_info(multi_scheduling), [blocked, blocked_normal]).

unbind(Flag) ->
    process_flag(Flag, 0).

answer_thread(Scheduler, Flag, Watch, User) ->
    receive
        Word when Word =:= probe; Word =:= rouse ->
            reply(Scheduler, Flag, Watch),
            answer_thread(Scheduler, Flag, Watch, User);
        activate when User =:= none ->
            Next = activate(Scheduler),
            reply(Scheduler, Flag, Watch),
            answer_thread(Scheduler, Flag, Watch, Next);
        activate ->
            reply(Scheduler, Flag, Watch),
            answer_thread(Scheduler, Flag, Watch, User);
        {'DOWN', User, process, _, _} ->
            answer_thread(Scheduler, Flag, Watch, none);
        finish ->
            finished(User);
        _ ->
            answer_thread(Scheduler, Flag, Watch, User)
    end.

reply(Scheduler, Flag, Watch) ->
    _ = bind_to(Scheduler, Flag),
    ok = fairnif_watch_native:reply(Watch, Scheduler),
    _ = unbind(Flag),
    ok.

finished(none) ->
    ok;
finished(User) ->
    receive {'DOWN', User, process, _, _} -> ok end.

%% The VM keeps little work on few schedulers; the others take no work, whatever waits. Which they
%% are it decides again by the reductions of the last two periods of 4,000,000 reductions: this uses
%% them up in 1 to 3 ms. Half as many turns were not enough in one of three tries.
activate(Scheduler) ->
    case runs(Scheduler) of
        true ->
            {_, User} = spawn_opt(fun() -> use(?TURNS) end,
                                  [link, monitor, bind(Scheduler), {priority, low}]),
            User;
        false ->
            none
    end.

use(0) ->
    ok;
use(Turns) ->
    true = erlang:bump_reductions(?TURN),
    true = erlang:yield(),
    use(Turns - 1).

answer_process(Scheduler, Watchdog) ->
    receive
        {probe, N} ->
            Watchdog ! {reply, Scheduler, N, erlang:monotonic_time(nanosecond)},
            answer_process(Scheduler, Watchdog);
        finish ->
            ok;
        _ ->
            answer_process(Scheduler, Watchdog)
    end.
