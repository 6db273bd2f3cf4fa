%% What fairnif_limits_SUITE runs inside peer nodes: measurements, no judgement.
-module(fairnif_test_limits).

-export([slices/2, big_calls/0, peak_of_garbage/1, kill_to_stop_ns/2, overloaded/2,
         reductions_of_a_slice/1, misuses/1]).

-define(MOD, fairnif_test_nif).
-define(PROBE, fairnif_test_probe).

%% @doc Calls that get or make 64 MB: a name, the body, its arguments.
big_calls() ->
    Cells = 4 * 1024 * 1024,                    % 16 bytes each
    [{walk_a_list, walk, fun() -> [lists:seq(1, Cells)] end},
     {reverse_a_list, reverse, fun() -> [lists:seq(1, Cells)] end},
     {build_a_list, build, fun() -> [Cells] end},
     {iolist_of_bytes, bytes, fun() -> [lists:duplicate(Cells, 7)] end},
     {iolist_of_binaries, bytes, fun() -> [lists:duplicate(64, binary:copy(<<1>>, 1 bsl 20))] end},
     {iolist_in_depth, bytes, fun() -> [nested(Cells, [])] end},
     {iolist_of_one_binary, bytes, fun() -> [[binary:copy(<<1>>, 1 bsl 26)]] end},
     {string, text, fun() -> [lists:duplicate(Cells, $x)] end}].

nested(0, In) -> In;
nested(N, In) -> nested(N - 1, [In]).

%% @doc Runs one of them in a mode: slices in CPU time, in multiples of the slice: how many there
%% were, the longest, that which one in a hundred exceeds.
slices(Name, Mode) ->
    {Name, Body, Args} = lists:keyfind(Name, 1, big_calls()),
    MFA = {?MOD, ?MOD:name(Body, Mode), 1},
    fairnif:debug(#{measure_cpu => true}),
    fairnif_test:apply_in_fresh_process(fun() -> ?MOD:run(Body, Mode, Args()), ok end),
    #{slice_histogram := Histogram, longest_slice_ns := Longest, slice_ns := Slice} =
        fairnif:info(MFA),
    N = lists:sum([Count || {_, Count} <- Histogram]),
    #{slices => N, longest => Longest / Slice, one_in_100 => up_to(Histogram, N * 0.99) / Slice}.

up_to([{Ns, Count} | _], Left) when Count >= Left -> Ns;
up_to([{_, Count} | Rest], Left) -> up_to(Rest, Left - Count);
up_to([], _) -> 0.

%% @doc The caller's largest heap, bytes, while it makes some hundred MB of garbage.
peak_of_garbage(Mode) ->
    {Pid, Monitor} = spawn_monitor(fun() -> ?MOD:run(garbage, Mode, [20000, 200]) end),
    Peak = watch(Pid, 0),
    normal = fairnif_test:down(Monitor, 60000),
    Peak.

watch(Pid, Peak) ->
    case process_info(Pid, memory) of
        {memory, Bytes} -> timer:sleep(1), watch(Pid, max(Peak, Bytes));
        undefined -> Peak
    end.

%% @doc N times: from exit(Pid, kill) to the last defer, and to the end of ordinary Erlang; sorted.
kill_to_stop_ns(Mode, N) ->
    {Times, Erlang} = lists:unzip([{kill_once(Mode), kill_erlang()} || _ <- lists:seq(1, N)]),
    {lists:sort(Times), lists:sort(Erlang)}.

kill_once(Mode) ->
    Slot = ?PROBE:new_slot(),
    {Pid, Monitor} = spawn_monitor(fun() -> ?MOD:run(spin, Mode, [Slot, 0, x]) end),
    fairnif_test:eventually(fun() -> maps:get(begun, ?PROBE:slot(Slot)) =:= 1 end),
    timer:sleep(rand:uniform(3)),
    T0 = ?PROBE:now_ns(),
    exit(Pid, kill),
    killed = fairnif_test:down(Monitor, 5000),
    fairnif_test:eventually(fun() -> maps:get(ended, ?PROBE:slot(Slot)) =:= 1 end),
    maps:get(end_ns, ?PROBE:slot(Slot)) - T0.

kill_erlang() ->
    {Pid, Monitor} = spawn_monitor(fun endless/0),
    timer:sleep(rand:uniform(3)),
    T0 = ?PROBE:now_ns(),
    exit(Pid, kill),
    killed = fairnif_test:down(Monitor, 5000),
    ?PROBE:now_ns() - T0.

endless() -> endless().

%% @doc How many of N endless calls are refused, and whether one is admitted afterwards.
overloaded(Function, N) ->
    Slot = ?PROBE:new_slot(),
    Callers = [spawn_monitor(fun() -> exit(call(Function, Slot)) end) || _ <- lists:seq(1, N)],
    Refused = fun() -> length([Pid || {Pid, _} <- Callers, not is_process_alive(Pid)]) end,
    Under = N - 2,
    fairnif_test:eventually(fun() -> Refused() =:= Under orelse Refused() end),
    %% The dead make room as the others do.
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= 2 end),
    exit(hd([Pid || {Pid, _} <- Callers, is_process_alive(Pid)]), kill),
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= 1 end),
    ?PROBE:finish(Slot),
    Ends = [fairnif_test:down(Monitor, 5000) || {_, Monitor} <- Callers],
    {ok, _} = {call(Function, Slot), after_all},
    [{End, length([E || E <- Ends, E =:= End])} || End <- lists:usort(Ends)].

call(Function, Slot) ->
    try ?MOD:Function(Slot, 0, x) of
        {x, _} -> ok
    catch
        error:Reason -> Reason
    end.

%% @doc What a slice of a mode is charged on average, of 100 ms of work. By the runtime's own count
%% of slices: in wall time there is what the operating system took.
reductions_of_a_slice(Mode) ->
    MFA = {?MOD, ?MOD:name(spin, Mode), 3},
    #{slices := S0} = fairnif:info(MFA),
    Reductions = fairnif_test:apply_in_fresh_process(
                   fun() ->
                           {reductions, R0} = process_info(self(), reductions),
                           _ = ?MOD:run(spin, Mode, [?PROBE:new_slot(), 100000, x]),
                           {reductions, R1} = process_info(self(), reductions),
                           R1 - R0
                   end),
    #{slices := S1} = fairnif:info(MFA),
    Reductions / (S1 - S0).

%% @doc How many reports a body causes.
misuses({Function, Args}) ->
    MFA = {?MOD, Function, length(Args)},
    #{misuses := Before} = fairnif:info(MFA),
    _ = apply(?MOD, Function, Args),
    #{misuses := After} = fairnif:info(MFA),
    After - Before.
