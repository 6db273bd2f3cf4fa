%% Lists of five million elements: examples/lists beside its plain NIFs.
%%
%% Each call has a process of its own with the least heap, as most callers have:
%% how it grows, and how often it is collected meanwhile, is part of what is
%% measured.  What is read stands outside the heap, as a literal.  In a node
%% with one scheduler; CPU time is that of all its threads, since the VM
%% collects large heaps on a dirty one.
-module(fairnif_bench_lists).

-export([flags/0, run/0]).

-define(COUNT, 5000000).
-define(ROUNDS, 5).

-spec flags() -> [string()].
flags() -> fairnif_bench_calls:flags().

%% @doc Samples of `CALL FORM', FORM being fair, plain or erlang: wall time;
%% with ` cpu' after it CPU time, and with ` gc' what went into collections.
-spec run() -> fairnif_bench_series:samples().
run() ->
    ok = code:ensure_modules_loaded([big_lists, fairnif_bench_nif, lists, maps]),
    Ints = literal(ints, random_ints(?COUNT)),
    Pairs = literal(pairs, [{X, X} || X <- Ints]),
    lists:foldl(fun maps:merge/2, #{},
                [fairnif_bench_series:interleave(
                   ?ROUNDS, [fun() -> timed(<<Call/binary, $\s, Form/binary>>, Times, MFA) end
                             || {Form, MFA} <- Forms])
                 || {Call, Times, Forms} <- calls(Ints, Pairs)]).

%% A sum is soon done, and CPU time is read in milliseconds.
calls(Ints, Pairs) ->
    [{<<"sum">>, 5, forms(sum, unfair_sum, {lists, sum}, [Ints])},
     {<<"range">>, 1, forms(range, unfair_range, {lists, seq}, [1, ?COUNT])},
     {<<"sort">>, 1, forms(sort, unfair_sort, {lists, sort}, [Ints])},
     {<<"to_map">>, 1, forms(to_map, unfair_to_map, {maps, from_list}, [Pairs])}].

forms(Fair, Plain, {M, F}, Args) ->
    [{<<"fair">>, {big_lists, Fair, Args}}, {<<"plain">>, {big_lists, Plain, Args}},
     {<<"erlang">>, {M, F, Args}}].

timed(Series, Times, {M, F, Args}) ->
    {Pid, Monitor} =
        spawn_monitor(fun() ->
                              receive go -> ok end,
                              fairnif_bench_series:repeat(Times, fun() -> apply(M, F, Args) end)
                      end),
    1 = erlang:trace(Pid, true, [garbage_collection, monotonic_timestamp]),
    {Runtime, _} = statistics(runtime),
    Begin = fairnif_bench_nif:now(),
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    Wall = fairnif_bench_nif:now() - Begin,
    {After, _} = statistics(runtime),
    Delivered = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Delivered} -> ok end,
    [{Series, Wall / Times},
     {<<Series/binary, " cpu">>, (After - Runtime) * 1.0e6 / Times},
     {<<Series/binary, " gc">>, collecting(Pid, 0, 0) / Times}].

%% Ns between the begin of each collection and its end.  One that begins as a
%% minor one and turns out to be a major one ends before it begins again.
collecting(Pid, Begin, Sum) ->
    receive
        {trace_ts, Pid, Event, _, Now} when Event =:= gc_minor_start; Event =:= gc_major_start ->
            collecting(Pid, Now, Sum);
        {trace_ts, Pid, Event, _, Now} when Event =:= gc_minor_end; Event =:= gc_major_end ->
            collecting(Pid, Begin, Sum + Now - Begin)
    after 0 ->
        erlang:convert_time_unit(Sum, native, nanosecond)
    end.

random_ints(Count) ->
    {Ints, _} = lists:mapfoldl(fun(_, S) -> rand:uniform_s(1 bsl 58, S) end,
                               rand:seed_s(exsss, 1), lists:seq(1, Count)),
    Ints.

literal(Key, Term) ->
    persistent_term:put({?MODULE, Key}, Term),
    persistent_term:get({?MODULE, Key}).
