%% What the tests of several examples share; a link in each one's test folder, which `cp -rL` copies
%% along.
-module(example_test).

-include_lib("eunit/include/eunit.hrl").

-export([eventually/1, holds/2, in_fresh_process/1, most_heap/2, beside/1,
         least_gap/1]).
-export([begun/1, kill_after/2, kill_task_after/2, async/1, fds/0]).
%% For what is about time.
-export([retry/2]).
%% Around tests.
-export([on_one_scheduler/1, with_pauses/1]).

on_one_scheduler(Tests) ->
    {setup,
     fun() -> erlang:system_flag(schedulers_online, 1) end,
     fun(Online) -> erlang:system_flag(schedulers_online, Online) end,
     Tests}.

%% At every tick.
with_pauses(Tests) ->
    {setup,
     fun() -> fairnif:debug(#{pause_every_tick => true, check_terms => true}) end,
     fun(ok) -> fairnif:debug(#{pause_every_tick => false, check_terms => false}) end,
     Tests}.

%% Waits until Condition() is true; an error after four minutes.
eventually(Condition) ->
    until(Condition, erlang:monotonic_time(millisecond) + 240000).

until(Condition, Deadline) ->
    case {Condition(), erlang:monotonic_time(millisecond) > Deadline} of
        {true, _} -> ok;
        {false, true} -> error({never, Condition});
        {false, false} -> timer:sleep(1), until(Condition, Deadline)
    end.

%% For properties of time, which other programs on the machine disturb: true, or what was seen
%% instead; all of it is in the error.
retry(Times, Fun) ->
    retry(Times, Fun, []).

retry(0, _Fun, Seen) ->
    error({each_time, Seen});
retry(Times, Fun, Seen) ->
    case Fun() of
        true -> ok;
        Other -> retry(Times - 1, Fun, [Other | Seen])
    end.

%% A failure shows PropEr's counterexample.
holds(Times, Property) ->
    ?assertEqual(true, proper:quickcheck(Property, [quiet, long_result, {numtests, Times}])).

%% What Fun returns, in a process of its own.
in_fresh_process(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({answer, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {answer, Answer}} -> Answer;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    end.

%% The largest that the heap of a process was that made that many calls, words.
most_heap(Times, Call) ->
    in_fresh_process(fun() -> lists:max([heap_after(Call) || _ <- lists:seq(1, Times)]) end).

heap_after(Call) ->
    _ = Call(),
    element(2, process_info(self(), total_heap_size)).

%% Microseconds the call took, and the longest that a busy process waited. Both are the VM's CPU
%% time: when a busy machine takes the processor away, neither grows.
beside(Call) ->
    Parent = self(),
    Neighbour = spawn_link(fun() ->
                               Parent ! {self(), ready},
                               Parent ! {self(), longest_gap(cpu_us(), 0)}
                           end),
    receive {Neighbour, ready} -> ok end,
    Begin = cpu_us(),
    _ = Call(),
    Elapsed = cpu_us() - Begin,
    Neighbour ! stop,
    receive {Neighbour, Gap} -> {Elapsed, Gap} end.

%% Of three calls of beside/1 the one beside which the neighbour waited least: a longer wait may be
%% the operating system's.
least_gap(Beside) ->
    hd(lists:keysort(2, [Beside() || _ <- [1, 2, 3]])).

longest_gap(Last, Longest) ->
    receive
        stop -> max(Longest, cpu_us() - Last)
    after 0 ->
        Now = cpu_us(),
        longest_gap(Now, max(Longest, Now - Last))
    end.

cpu_us() ->
    {Ms, _} = erlang:statistics(runtime),
    Ms * 1000.

%% A process that runs Fun and whose task was seen: another where it had ended before that.
begun(Fun) ->
    {Pid, Monitor} = spawn_monitor(Fun),
    case is_seen(Pid) of
        true -> {Pid, Monitor};
        false -> demonitor(Monitor, [flush]), begun(Fun)
    end.

is_seen(Pid) ->
    IsAlive = is_process_alive(Pid),
    case [1 || #{owner := Owner} <- fairnif:tasks(), Owner =:= Pid] of
        [] when IsAlive -> timer:sleep(1), is_seen(Pid);
        Tasks -> Tasks =/= []
    end.

%% Kills a process that runs Fun again and again, that long after its start or after its task was
%% seen; no task stays.
kill_after(Ms, Fun) ->
    killed(Ms, spawn_monitor(fun() -> forever(Fun) end)).

kill_task_after(Ms, Fun) ->
    Started = spawn_monitor(fun() -> forever(Fun) end),
    eventually(fun() -> fairnif:tasks() =/= [] end),
    killed(Ms, Started).

%% Not once: on a busy machine Fun may have ended before it is seen.
forever(Fun) ->
    _ = Fun(),
    forever(Fun).

killed(Ms, {Pid, Ref}) ->
    timer:sleep(Ms),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(killed, Reason)
    after 240000 ->
        error({still_alive, Pid})
    end,
    eventually(fun() -> fairnif:tasks() =:= [] end).

%% A process that runs Fun and ends with {result, Result}; its task waits by now.
async(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    eventually(fun() -> [] =/= [1 || #{owner := P, state := waiting} <- fairnif:tasks(), P =:= Pid]
               end),
    {Pid, Monitor}.

%% How many file descriptors are open.
fds() ->
    {ok, Names} = file:list_dir("/proc/self/fd"),
    length(Names).
