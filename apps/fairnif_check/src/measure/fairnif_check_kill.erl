%% What happens when the caller of a function is killed: how long until its native code has really
%% stopped, what continues all the same, and what memory does not come back.
%%
%% DOWN proves nothing: for a process in a dirty NIF it comes at once, and the code continues. What
%% the process held on its heap stays until the NIF has returned, so a sentinel on it tells the
%% moment. Threads that the function started are seen by the CPU time they still use afterwards.
%%
%% A thread that waits for a processor stops nothing, and beside other programs that may take longer
%% than the limit. Hence a control: before each kill a process that runs ordinary Erlang is killed
%% in the same way on the same scheduler. Where a call leaves a large heap, that one builds a term
%% of that size: at his death that is freed, or is just being collected, by whatever it was made.
%% Binaries beside the heap are freed at once, and to copy some would itself not stop.
%%
%% Memory that is lost may be lost in every call, killed or not. So where it grows there are rounds
%% of as many calls that are not killed.
%%
%% Use a node of its own: what continues here is not stopped.
-module(fairnif_check_kill).

-export([flags/0, measure/2, growth/1, growth/2]).

-export_type([options/0, result/0]).

-type options() :: #{time_ms => pos_integer(),          % about; default 1000
                     call_ns => number(),               % what a call takes, about
                     patience_ms => pos_integer()}.     % for native code to stop; default 30000
-type result() :: #{count := non_neg_integer(),         % kills
                    down := fairnif_check_stats:summary(),        % ns from the kill to DOWN
                    stop := fairnif_check_stats:summary(),        % to the end of native code
                    stop_samples := [non_neg_integer()],
                    control_samples := [non_neg_integer()],     % to the end of ordinary Erlang
                    control_bytes => pos_integer(),     % that builds a term so large
                    unstopped := non_neg_integer(),     % did not stop while patience lasted
                    threads_cpu := non_neg_integer(),   % ns that threads unknown to the VM
                                                        % computed within 100 ms after the last stop
                    memory := [memory()],       % after each round of kills
                    alone := [memory()]}.       % of calls that return; none where it did not grow
%% Bytes after those kills, and those calls that had returned.
-type memory() :: #{kills => pos_integer(), calls := non_neg_integer(),
                    native := integer() | undefined, resident := integer(), vm := integer()}.

%% Rounds of kills after which memory is looked at; of each, the most kills.
-define(ROUNDS, 8).
%% One less and growth could not be distinguished from a single step.
-define(LEAST_ROUNDS, 4).
-define(KILLS, 25).
%% A victim is killed at a moment within its first call or within this many ms.
-define(MOMENT_MS, 100).
-define(AFTER_MS, 100).
%% A call that takes so long, and ten times what earlier ones took, is not waited for.
-define(CONTROL_MS, 1000).
%% What looks like a leak is looked at so often again.
-define(AGAIN, 2).
%% Growth counts that is this many times the largest fall.
-define(DROPS, 4).

%% @doc Emulator flags of a node to measure in, whatever the machine has: with one scheduler the
%% killer would only run, and so kill, between two calls, and find that they stop at once.
-spec flags() -> [string()].
flags() ->
    fairnif_check_slices:flags().

%% @doc Kills callers of Fun, at least 8 (4 when each takes longer than `time_ms'). An error when a
%% caller ended before it was killed: why it did.
%%
%% Victims live on the first scheduler and their killer on the last one. On the same one he would
%% kill between two calls only, never during one; and one that yields but is charged nothing
%% would keep him asleep, since the VM looks at a scheduler's timers once in 4000 reductions.
-spec measure(fun(() -> term()), options()) -> {ok, result()} | {error, term()}.
measure(Fun, Opts) ->
    Last = fairnif_check_machine:bound_to(erlang:system_info(schedulers_online)),
    fairnif_check_machine:apart([{priority, high}, Last], fun() -> measure_here(Fun, Opts) end).

measure_here(Fun, Opts) ->
    ok = fairnif_check_nif:load(),
    Ticks = [spawn_opt(fun tick/0, [link, fairnif_check_machine:bound_to(S)])
             || S <- lists:seq(1, erlang:system_info(schedulers_online))],
    Known = [T || {T, _} <- threads()],
    TimeMs = maps:get(time_ms, Opts, 1000),
    CallMs = ceil(maps:get(call_ns, Opts, 1000000) / 1.0e6),
    MomentMs = max(1, min(?MOMENT_MS, CallMs)),
    Patience = maps:get(patience_ms, Opts, 30000),
    {Control, Sized} = control(Fun, min(Patience, ?CONTROL_MS + 10 * CallMs)),
    State = #{function => Fun, control => Control, moment => MomentMs, patience => Patience,
              time => TimeMs, returned => counters:new(1, [])},
    try
        {Kills, Memory} = until_sure(?AGAIN, State, []),
        Result = result(Kills, Memory, unknown_threads(Known)),
        {ok, maps:merge(Sized, Result#{alone => alone(Memory, State)})}
    catch
        throw:{ended, Why} -> {error, Why}
    after
        [begin unlink(P), exit(P, kill) end || P <- Ticks]
    end.

result(Kills, Memory, ThreadsCpu) ->
    Stops = [S || {_, S, _} <- Kills, is_integer(S)],
    #{count => length(Kills),
      down => fairnif_check_stats:summary([D || {D, _, _} <- Kills, is_integer(D)]),
      stop => fairnif_check_stats:summary(Stops),
      stop_samples => Stops,
      control_samples => [C || {_, _, C} <- Kills],
      unstopped => length(Kills) - length(Stops),
      threads_cpu => ThreadsCpu,
      memory => Memory}.

%% What a process owned that died in a dirty NIF is freed by a normal scheduler, when it next wakes.
%% One that has nothing else to do wakes once a second, and it is not that second that is asked for.
tick() ->
    receive after 1 -> tick() end.

%% A leak continues; memory that the VM keeps for later ends growing. So what looks like a leak is
%% looked at again, with what came before as a warm-up.
until_sure(Again, #{time := TimeMs} = State, Before) ->
    Now = now_ms(),
    counters:put(maps:get(returned, State), 1, 0),
    {Kills, Memory} = rounds(?ROUNDS, State#{until => Now + TimeMs, late => Now + 5 * TimeMs}, [],
                             []),
    All = Kills ++ Before,
    case Again > 0 andalso length(Memory) =:= ?ROUNDS andalso grows(Memory) of
        true -> until_sure(Again - 1, State, All);
        false -> {All, Memory}
    end.

grows(Memory) ->
    case growth(kills, Memory) of
        {_, Total, Resolution} when is_float(Total) -> Total > Resolution;
        _ -> false
    end.

rounds(0, _, Kills, Memory) ->
    {Kills, lists:reverse(Memory)};
rounds(N, State, Kills, Memory) ->
    Share = (maps:get(until, State) - now_ms()) / N,
    Some = round_of(?KILLS, State, now_ms() + Share, []),
    Kills1 = Some ++ Kills,
    Memory1 = [(memory(State))#{kills => length(Kills1)} | Memory],
    Stuck = lists:any(fun({_, Stop, _}) -> Stop =:= never end, Some),
    case Stuck orelse ?ROUNDS - N + 1 >= ?LEAST_ROUNDS andalso now_ms() > maps:get(late, State) of
        true -> {Kills1, lists:reverse(Memory1)};
        false -> rounds(N - 1, State, Kills1, Memory1)
    end.

%% At least one.
round_of(0, _, _, Kills) ->
    Kills;
round_of(N, #{control := Erlang} = State, Until, Kills) ->
    {_, Control} = kill(State#{function := Erlang, returned := counters:new(1, [])}),
    {Down, Stop} = kill(State),
    %% An atom is more than any number: what never came took the patience at least.
    Kill = {Down, Stop, min(Control, maps:get(patience, State) * 1000000)},
    case now_ms() >= Until orelse Stop =:= never of
        true -> [Kill | Kills];
        false -> round_of(N - 1, State, Until, [Kill | Kills])
    end.

control(Fun, Patience) ->
    case fairnif_check_garbage:alike(Fun, heap, Patience) of
        {Bytes, Build} -> {Build, #{control_bytes => Bytes}};
        none -> {fun() -> fairnif_check_share:work(long_sort) end, #{}}
    end.

%% {NsToDown, NsToStop}
kill(#{function := Fun, moment := MomentMs, patience := Patience, returned := Returned}) ->
    Me = self(),
    Key = make_ref(),
    {Victim, Monitor} = spawn_opt(fun() -> victim(Me, Key, Fun, Returned) end,
                                  [monitor, fairnif_check_machine:bound_to(1)]),
    receive
        {Key, began} -> ok;
        {'DOWN', Monitor, process, _, Early} -> throw({ended, Early})
    end,
    timer:sleep(rand:uniform(MomentMs)),
    At = fairnif_check_nif:now(),
    exit(Victim, kill),
    Down = receive
               {'DOWN', Monitor, process, _, killed} -> fairnif_check_nif:now() - At;
               {'DOWN', Monitor, process, _, Why} -> throw({ended, Why})
           after Patience -> never
           end,
    Stop = receive {sentinel, Key, Gone} -> max(0, Gone - At)
           after Patience -> never
           end,
    {Down, Stop}.

victim(Me, Key, Fun, Returned) ->
    Sentinel = fairnif_check_nif:sentinel(Me, Key),
    Me ! {Key, began},
    calls(Fun, Returned, Sentinel).

%% The sentinel is an argument so that it stays on the heap during each call. The process yields
%% after each: how long a loop of calls that are charged too little takes is another question.
calls(Fun, Returned, Sentinel) ->
    call(Fun, Returned),
    erlang:yield(),
    calls(Fun, Returned, Sentinel).

call(Fun, Returned) ->
    try Fun() of
        _ -> counters:add(Returned, 1, 1)
    catch
        Class:Reason -> exit({Class, Reason})
    end.

%% ---- calls that are not killed ----

%% As many as there were among the kills, so that what they lose can be seen if they do.
alone(Memory, #{returned := Returned, time := TimeMs} = State) ->
    case grows(Memory) of
        true ->
            #{kills := Kills, calls := Calls} = lists:last(Memory),
            counters:put(Returned, 1, 0),
            alone(length(Memory), ceil((Kills + Calls) / length(Memory)), TimeMs, State);
        false ->
            []
    end.

alone(0, _, _, _) ->
    [];
alone(Rounds, Calls, TimeMs, #{function := Fun, returned := Returned} = State) ->
    Until = now_ms() + 2 * TimeMs div ?ROUNDS,
    {Caller, Monitor} = spawn_opt(fun() -> some_calls(Calls, Fun, Returned, Until) end,
                                  [monitor, fairnif_check_machine:bound_to(1)]),
    receive
        {'DOWN', Monitor, process, _, normal} ->
            [memory(State) | alone(Rounds - 1, Calls, TimeMs, State)];
        {'DOWN', Monitor, process, _, Why} ->
            throw({ended, Why})
    after maps:get(patience, State) + 2 * TimeMs ->
            exit(Caller, kill),
            []
    end.

some_calls(Calls, Fun, Returned, Until) ->
    call(Fun, Returned),
    erlang:yield(),
    case Calls > 1 andalso now_ms() < Until of
        true -> some_calls(Calls - 1, Fun, Returned, Until);
        false -> ok
    end.

%% ---- what stays ----

memory(#{returned := Returned}) ->
    [erlang:garbage_collect(P) || P <- processes(), P =/= self()],
    erlang:garbage_collect(),
    %% Freed blocks travel to the allocator instance that owns them.
    timer:sleep(2),
    #{calls => counters:get(Returned, 1), native => native(), resident => resident(), vm => vm()}.

%% 0 where emulator flags have it do without allocators of its own: all is malloc's then.
vm() ->
    try erlang:memory(total)
    catch error:notsup -> 0
    end.

%% What native code holds of malloc: all that is given out, less what the VM's allocators have. That
%% is exact, where the resident size tells more of what the VM keeps for later.
native() ->
    case fairnif_check_nif:malloc_used() of
        undefined -> undefined;
        Bytes -> Bytes - lists:sum([of_malloc(A) || A <- erlang:system_info(alloc_util_allocators)])
    end.

of_malloc(Allocator) ->
    case erlang:system_info({allocator, Allocator}) of
        false ->
            0;
        Instances ->
            lists:sum([Size || {instance, _, Instance} <- Instances,
                               {Kind, Info} <- Instance, Kind =:= mbcs orelse Kind =:= sbcs,
                               {sys_alloc_carriers_size, Size} <- Info])
    end.

resident() ->
    case file:read_file("/proc/self/status") of
        {ok, Text} ->
            {match, [Kilobytes]} = re:run(Text, "^VmRSS:\\s*(\\d+) kB",
                                          [multiline, {capture, all_but_first, binary}]),
            binary_to_integer(Kilobytes) * 1024;
        _ ->
            0
    end.

%% @doc Bytes per kill that did not come back, the total they make, and the least total that would
%% be seen: {PerKill, Total, Resolution}. The first two rounds warm up. Steady growth counts, a few
%% steps do not, and a step back is no proof of the contrary: of the slopes from round to round, one
%% is disregarded and the next smallest is what counts. The first two are `undefined' after fewer
%% than four rounds.
%%
%% What native code maps by itself, past malloc, is not seen, where malloc tells what it gave out.
-spec growth(#{memory := [map()], _ => _}) ->
          {float() | undefined, float() | undefined, float()}.
growth(#{memory := Memory}) ->
    growth(kills, Memory).

%% @doc The same per kill or per call.
-spec growth(kills | calls, [memory()]) ->
          {float() | undefined, float() | undefined, float()}.
growth(Per, Memory) ->
    Native = {_, T1, L1} = case [N || #{native := N} <- Memory, is_integer(N)] of
                               [] -> grown(resident, 2097152, Per, Memory);
                               _ -> grown(native, 131072, Per, Memory)
                           end,
    Vm = {_, T2, L2} = grown(vm, 131072, Per, Memory),
    %% Whichever stands out more above what it can resolve.
    case is_float(T1) andalso T1 / L1 >= T2 / L2 of
        true -> Native;
        false -> Vm
    end.

grown(Kind, Resolution, Per, [_, _, _, _ | More] = Memory) ->
    Warm = case More of
               [] -> tl(Memory);
               _ -> lists:nthtail(2, Memory)
           end,
    Points = [{K, B} || #{Per := K, Kind := B} <- Warm],
    {K0, _} = hd(Points),
    {K1, _} = lists:last(Points),
    Slopes = lists:sort([(B - A) / (L - K)
                         || {{K, A}, {L, B}} <- lists:zip(lists:droplast(Points), tl(Points))]),
    PerKill = max(0.0, lists:nth(min(2, length(Slopes) - 1), Slopes)),
    {PerKill, PerKill * (K1 - K0), float(max(Resolution, ?DROPS * drop(Points)))};
grown(_, Resolution, _, _) ->
    {undefined, undefined, float(Resolution)}.

%% What is lost never comes back. Memory that does (reserves of the VM) can grow by chance too, by
%% megabytes beside large heaps.
drop(Points) ->
    lists:max([0 | [A - B || {{_, A}, {_, B}} <- lists:zip(lists:droplast(Points), tl(Points))]]).

%% ---- what continues ----

%% A thread that a NIF starts has the name of the one that started it, so names tell nothing: those
%% that were there before are the VM's.
unknown_threads(Known) ->
    Before = maps:from_list(threads()),
    timer:sleep(?AFTER_MS),
    %% One that has ended meanwhile has no time any more.
    lists:sum([max(0, Cpu - maps:get(T, Before, 0))
               || {T, Cpu} <- threads(), not lists:member(T, Known)]).

threads() ->
    case file:list_dir("/proc/self/task") of
        {ok, Threads} -> [{T, cpu(T)} || T <- Threads];
        _ -> []
    end.

cpu(Thread) ->
    case file:read_file(["/proc/self/task/", Thread, "/schedstat"]) of
        {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>)));
        _ -> 0                                  % it has ended
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
