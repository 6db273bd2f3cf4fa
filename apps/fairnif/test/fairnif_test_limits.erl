%% What fairnif_limits_SUITE runs inside peer nodes: measurements, no judgement.
-module(fairnif_test_limits).

-export([slices/2, big_calls/0, peak_of_garbage/1, kill_to_stop_ns/2,
         reductions_of_a_slice/1, rule_violations/1]).

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

%% @doc Runs one of them in each mode: slices in CPU time, in multiples of the slice: how many there
%% were, the longest, that which one in a hundred exceeds. And those of a body that only touches new
%% memory, for as long: a virtual machine's CPU time has in it what the host took, and what it does
%% when a page is used for the first time.
slices(Name, Modes) ->
    {Name, Body, Args} = lists:keyfind(Name, 1, big_calls()),
    fairnif:debug(#{measure_cpu => true}),
    Began = erlang:monotonic_time(),
    Seen = [slices_in(Mode, Body, Args) || Mode <- Modes],
    fairnif_test_ends:touch(2 * erlang:monotonic_time() - Began),
    {Seen, slices_of({fairnif_test_ends, block, 1})}.

slices_in(Mode, Body, Args) ->
    fairnif_test:apply_in_fresh_process(fun() -> ?MOD:run(Body, Mode, Args()), ok end),
    (slices_of({?MOD, ?MOD:name(Body, Mode), 1}))#{mode => Mode}.

slices_of(Function) ->
    #{slice_histogram := Histogram, longest_slice_ns := Longest, slice_ns := Slice} =
        fairnif:info(Function),
    N = lists:sum([Count || {_, Count} <- Histogram]),
    #{slices => N, longest => Longest / Slice, one_in_100 => up_to(Histogram, N * 0.99) / Slice}.

up_to([{Ns, Count} | _], Left) when Count >= Left -> Ns;
up_to([{_, Count} | Rest], Left) -> up_to(Rest, Left - Count);
up_to([], _) -> 0.

%% @doc The caller's largest heap, bytes, while it makes some hundred MB of garbage.
peak_of_garbage(Mode) ->
    {Pid, Monitor} = spawn_monitor(fun() -> ?MOD:run(garbage, Mode, [20000, 200]) end),
    Peak = watch(Pid, 0),
    normal = fairnif_test:down(Monitor),
    Peak.

watch(Pid, Peak) ->
    case process_info(Pid, memory) of
        {memory, Bytes} -> timer:sleep(1), watch(Pid, max(Peak, Bytes));
        undefined -> Peak
    end.

%% @doc N times: from exit(Pid, kill) to the last defer, and the same from a word in memory that
%% tells the body to end, which it looks at all the time; sorted. A busy machine delays both alike.
kill_to_stop_ns(Mode, N) ->
    Kill = fun(_, Pid) -> exit(Pid, kill) end,
    Tell = fun(Slot, _) -> ?PROBE:finish(Slot) end,
    {Killed, Asked} = lists:unzip([{stop_ns(Mode, Kill), stop_ns(Mode, Tell)}
                                  || _ <- lists:seq(1, N)]),
    {lists:sort(Killed), lists:sort(Asked)}.

stop_ns(Mode, Stop) ->
    Slot = ?PROBE:new_slot(),
    {Pid, Monitor} = spawn_monitor(fun() -> ?MOD:run(spin, Mode, [Slot, 0, x]) end),
    fairnif_test:eventually(fun() -> maps:get(begun, ?PROBE:slot(Slot)) =:= 1 end),
    timer:sleep(rand:uniform(3)),
    T0 = ?PROBE:now_ns(),
    Stop(Slot, Pid),
    _ = fairnif_test:down(Monitor),
    fairnif_test:eventually(fun() -> maps:get(ended, ?PROBE:slot(Slot)) =:= 1 end),
    maps:get(end_ns, ?PROBE:slot(Slot)) - T0.

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
rule_violations({Function, Args}) ->
    MFA = {?MOD, Function, length(Args)},
    #{rule_violations := Before} = fairnif:info(MFA),
    _ = apply(?MOD, Function, Args),
    #{rule_violations := After} = fairnif:info(MFA),
    After - Before.
