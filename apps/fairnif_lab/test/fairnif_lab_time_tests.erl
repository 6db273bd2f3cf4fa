-module(fairnif_lab_time_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_lab_time).

a_function_that_is_long_each_fifth_time_is_long_on_the_mean_test() ->
    Calls = counters:new(1, []),
    Fun = fun() ->
                  counters:add(Calls, 1, 1),
                  counters:get(Calls, 1) rem 5 =:= 0 andalso timer:sleep(5)
          end,
    [#{time := #{mean := Mean}}] = ?T:measure([Fun], #{time_ms => 300}),
    %% A fifth of 5 ms, of which the longest tenth of the batches may take half.
    ?assert(Mean > 400000).

the_reductions_of_a_call_are_those_that_it_bumps_test() ->
    [#{per_call := PerCall}] =
        ?T:measure([fun() -> erlang:bump_reductions(100) end], #{time_ms => 50}),
    %% What goes beyond the end of a turn is not charged.
    ?assert(PerCall > 80 andalso PerCall < 120).

functions_measured_together_have_as_many_samples_each_test() ->
    [#{time := #{count := A, samples := As}}, #{time := #{count := B, samples := Bs}}] =
        ?T:measure([fun() -> a end, fun() -> lists:seq(1, 1000) end], #{time_ms => 50}),
    ?assertEqual(A, B),
    ?assertEqual({A, B}, {length(As), length(Bs)}).
