%% Samples: how they are taken, and what they say.
%%
%% Contestants take turns, A B C, C B A, A B C, ..., so that a machine that gets slower or busier
%% meanwhile does so for all of them, and samples of the same round are compared with each other.
-module(fairnif_exp_series).

-export([flags/1, interleave/2, compare/2, alone/1, alone/2]).
-export([timed/3, apart/4, late/3, slices/2, repeat/2, random_bytes/2, name/2, merged/1]).
-export([estimate/1, pooled_p99/1]).

-export_type([name/0, sample/0, samples/0, estimate/0, contestant/0, call/0]).

-type name() :: binary().
%% A number, or a distribution: how many times each value was met.
-type sample() :: number() | [{number(), pos_integer()}].
-type samples() :: #{name() => [sample()]}.
%% Answers its samples of one round.
-type contestant() :: fun(() -> [{name(), sample()}]).
%% How many calls, or rounds of a loop.
-type call() :: {name(), pos_integer(),
                 {module(), Function :: atom(), Args :: [term()]} | fun((pos_integer()) -> term())}.
-type estimate() :: #{value := number(),        % the median
                      low := number(), high := number(),    % quartiles
                      sure_low := number(), sure_high := number(), % 95 % interval of the median
                      count := pos_integer()}.

%% How long a sleeper of 1 ms sleeps in all.
-define(LATE_MS, 700).

%% @doc Emulator flags.  `one': a scheduler whose threads do not spin when idle, so that the CPU
%% time of its thread is the run time less what the operating system gave to other programs.  `two':
%% dirty calls are warm there, since threads spin a little after each, as they do by default; with
%% a single scheduler they never do, and the same call costs 13 us instead of 1.
-spec flags(one | two) -> [string()].
flags(one) ->
    ["+S", "1:1", "+SDcpu", "1:1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"];
flags(two) ->
    ["+S", "2:2", "+SDcpu", "2:2"].

%% @doc Runs every contestant once unrecorded, then `Rounds' times.
-spec interleave(pos_integer(), [contestant()]) -> samples().
interleave(Rounds, Contestants) ->
    _ = [Run() || Run <- Contestants],
    lists:foldr(fun({Name, Sample}, Acc) ->
                        maps:update_with(Name, fun(S) -> [Sample | S] end, [Sample], Acc)
                end, #{}, rounds(Rounds, Contestants)).

rounds(0, _) ->
    [];
rounds(N, Contestants) ->
    Samples = lists:append([Run() || Run <- Contestants]),
    Samples ++ rounds(N - 1, lists:reverse(Contestants)).

%% @doc The samples of several.
-spec merged([samples()]) -> samples().
merged(All) ->
    lists:foldl(fun maps:merge/2, #{}, All).

%% @doc Runs Fun in a process bound to a scheduler, with a heap so large that it collects no garbage
%% while the clock runs.
-spec alone(fun(() -> T)) -> T.
alone(Fun) ->
    fairnif_check_machine:apart([fairnif_check_machine:bound_to(1), {min_heap_size, 100000},
                               {min_bin_vheap_size, 1000000}], Fun).

%% ---- contestants ----

%% @doc Calls by loops that make no others: ns of each call.
-spec compare(pos_integer(), [call()]) -> samples().
compare(Rounds, Calls) ->
    interleave(Rounds, [timed(Name, N, loop(Call)) || {Name, N, Call} <- Calls]).

%% @doc The same in a process of its own.
-spec alone(pos_integer(), [call()]) -> samples().
alone(Rounds, Calls) ->
    alone(fun() -> compare(Rounds, Calls) end).

%% @doc Wall and CPU time of each of the N rounds that `Loop(N)' makes, ns, under `Name' and `Name
%% cpu'.  Waste is collected before, and after, outside the time.  CPU time is that of the caller's
%% thread: it means something in a node with one scheduler.
-spec timed(name(), pos_integer(), fun((pos_integer()) -> term())) -> contestant().
timed(Name, N, Loop) ->
    fun() ->
            erlang:garbage_collect(),
            {T0, C0, _, _} = fairnif_check_nif:thread_times(),
            _ = Loop(N),
            {T1, C1, _, _} = fairnif_check_nif:thread_times(),
            erlang:garbage_collect(),
            [{Name, (T1 - T0) / N}, {<<Name/binary, " cpu">>, (C1 - C0) / N}]
    end.

loop(Loop) when is_function(Loop) -> Loop;
loop({M, F, [A]}) -> Fun = fun M:F/1, fun(N) -> loop(N, Fun, A) end;
loop({M, F, [A, B]}) -> Fun = fun M:F/2, fun(N) -> loop(N, Fun, A, B) end;
loop({M, F, [A, B, C]}) -> Fun = fun M:F/3, fun(N) -> loop(N, Fun, A, B, C) end;
loop({M, F, [A, B, C, D]}) -> Fun = fun M:F/4, fun(N) -> loop(N, Fun, A, B, C, D) end.

loop(0, _, _) -> ok;
loop(N, F, A) -> _ = F(A), loop(N - 1, F, A).

loop(0, _, _, _) -> ok;
loop(N, F, A, B) -> _ = F(A, B), loop(N - 1, F, A, B).

loop(0, _, _, _, _) -> ok;
loop(N, F, A, B, C) -> _ = F(A, B, C), loop(N - 1, F, A, B, C).

loop(0, _, _, _, _, _) -> ok;
loop(N, F, A, B, C, D) -> _ = F(A, B, C, D), loop(N - 1, F, A, B, C, D).

%% @doc The same in a process of its own with the least heap, as most callers have: how it grows,
%% and how often it is collected meanwhile, is part of what is measured.  What is read is best a
%% literal (persistent_term), outside of that heap.  CPU time is that of the whole node, since the
%% VM collects large heaps on a dirty scheduler.  With `gc' the time between the begin and the end
%% of each collection, from trace events, stands under `Name gc'.
-spec apart(name(), pos_integer(), fun(() -> term()), [gc]) -> contestant().
apart(Name, N, Fun, Traced) ->
    fun() ->
            {Pid, Monitor} = spawn_monitor(fun() -> receive go -> ok end, repeat(N, Fun) end),
            _ = [1 = erlang:trace(Pid, true, [garbage_collection, monotonic_timestamp])
                 || gc <- Traced],
            {Cpu, Begin} = {fairnif_check_nif:cpu_time(), fairnif_check_nif:now()},
            Pid ! go,
            receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
            Wall = fairnif_check_nif:now() - Begin,
            [{Name, Wall / N}, {<<Name/binary, " cpu">>, (fairnif_check_nif:cpu_time() - Cpu) / N}
             | [{<<Name/binary, " gc">>, collecting(Pid) / N} || gc <- Traced]]
    end.

%% One that begins as a minor collection and turns out to be a major one ends before it begins
%% again.
collecting(Pid) ->
    Delivered = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Delivered} -> ok end,
    collecting(Pid, 0, 0).

collecting(Pid, Begin, Sum) ->
    receive
        {trace_ts, Pid, Event, _, Now} when Event =:= gc_minor_start; Event =:= gc_major_start ->
            collecting(Pid, Now, Sum);
        {trace_ts, Pid, Event, _, Now} when Event =:= gc_minor_end; Event =:= gc_major_end ->
            collecting(Pid, Begin, Sum + Now - Begin)
    after 0 ->
        erlang:convert_time_unit(Sum, native, nanosecond)
    end.

%% @doc The p99 (ns) of how late a sleeper of 1 ms is beside these endless processes, which are
%% given that many ms to end after that.
-spec late(name(), [fun(() -> term())], pos_integer()) -> contestant().
late(Name, Loads, EndMs) ->
    fun() ->
            #{p99 := P99} = fairnif_check_delay:beside(Loads, #{time_ms => ?LATE_MS}),
            timer:sleep(EndMs),
            [{Name, P99}]
    end.

%% @doc The slices of a fair function during Fun, as the runtime's histogram has them
%% (`measure_cpu'): up to that many ns of CPU time of the thread, how many.
-spec slices(mfa(), fun(() -> term())) -> [{pos_integer(), pos_integer()}].
slices(MFA, Fun) ->
    Histogram = fun() -> maps:get(slice_histogram, fairnif:info(MFA)) end,
    Before = maps:from_list(Histogram()),
    fairnif:debug(#{measure_cpu => true}),
    _ = Fun(),
    fairnif:debug(#{measure_cpu => false}),
    [{Ns, Count - maps:get(Ns, Before, 0)}
     || {Ns, Count} <- Histogram(), Count > maps:get(Ns, Before, 0)].

%% @doc Calls Fun N times.
-spec repeat(non_neg_integer(), fun(() -> term())) -> ok.
repeat(0, _) -> ok;
repeat(N, Fun) -> _ = Fun(), repeat(N - 1, Fun).

%% @doc The same ones in every run.
-spec random_bytes(non_neg_integer(), Seed :: integer()) -> binary().
random_bytes(Size, Seed) ->
    {Bytes, _} = rand:bytes_s(Size, rand:seed_s(exsss, Seed)),
    Bytes.

%% @doc A name by a format.
-spec name(io:format(), [term()]) -> name().
name(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% ---- what they say ----

%% @doc The median with its quartiles and the interval that holds the true median in 95 of 100 runs
%% (order statistics; nothing is assumed about the distribution).
-spec estimate([number(), ...]) -> estimate().
estimate(Samples) ->
    Sorted = list_to_tuple(lists:sort(Samples)),
    N = tuple_size(Sorted),
    Rank = max(1, floor(N / 2 - 0.98 * math:sqrt(N))),
    #{value => fairnif_check_stats:median(Samples),
      low => fairnif_check_stats:percentile(25, Samples),
      high => fairnif_check_stats:percentile(75, Samples),
      sure_low => element(Rank, Sorted), sure_high => element(N + 1 - Rank, Sorted), count => N}.

%% @doc The 99th percentile of all that the distributions hold; its spread is that of theirs.  An
%% empty one (a round in which AUTO went to dirty schedulers has no normal slices) says nothing.
-spec pooled_p99([[{number(), pos_integer()}]]) -> estimate().
pooled_p99(All) ->
    [_ | _] = Distributions = [D || [_ | _] = D <- All],
    (estimate([p99(D) || D <- Distributions]))
        #{value := p99(lists:append(Distributions)),
          count := lists:sum([C || {_, C} <- lists:append(Distributions)])}.

p99(Distribution) ->
    Sorted = lists:keysort(1, Distribution),
    rank(ceil(0.99 * lists:sum([C || {_, C} <- Sorted])), Sorted).

rank(Rank, [{Value, Count} | _]) when Rank =< Count -> Value;
rank(Rank, [{_, Count} | Rest]) -> rank(Rank - Count, Rest).
