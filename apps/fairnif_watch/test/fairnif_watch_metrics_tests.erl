%% The metrics, read back by Prometheus's own parser.
-module(fairnif_watch_metrics_tests).

-include_lib("eunit/include/eunit.hrl").

%% What the parser makes of it: `{Type, Name, Function, Value}'.
parsed(Text) ->
    File = "/tmp/fairnif_watch_metrics." ++ os:getpid(),
    ok = file:write_file(File, Text),
    Script = filename:join([fairnif_check_schema:root(), "apps", "fairnif_watch", "test",
                            "fairnif_watch_metrics_parse.py"]),
    Python = case filelib:is_regular("/usr/bin/python3") of
                 true -> "/usr/bin/python3";
                 false -> "python3"
             end,
    Out = os:cmd(Python ++ " " ++ Script ++ " " ++ File ++ " 2>&1; echo \"exit $?\""),
    ok = file:delete(File),
    Lines = string:split(string:trim(Out), "\n", all),
    ?assertEqual("exit 0", lists:last(Lines), Out),
    [list_to_tuple(string:split(Line, "\t", all)) || Line <- lists:droplast(Lines)].

sample() ->
    #{online => #{normal => 2, dirty_cpu => 2, dirty_io => 10},
      threads => [#{kind => normal, number => 1, cpu_ns => 1500000000}]}.

view() ->
    #{memory => #{processes => 50, process_limit => 100, ports => 1, port_limit => 2, atoms => 3,
                  atom_limit => 4, ets_limit => 5},
      queues => #{normal => 3, dirty_cpu => 0, dirty_io => 0},
      schedulers => [#{kind => normal, number => 1, busy => 0.5, run_queue => 3,
                       blocked_ms => 12.5},
                     #{kind => dirty_cpu, number => 1, busy => none, run_queue => none,
                       blocked_ms => 0.0}],
      pools => #{dirty_cpu => #{size => 2, busy => 1, queue => 0, wait_ms => none},
                 dirty_io => #{size => 10, busy => 10, queue => 4, wait_ms => 250.0}},
      native => true, blind => [], top => [],
      detectors => [#{name => schedulers_asleep, verdict => unconfirmed}],
      counters => #{events => 7, watch_cpu_ns => 2500000}}.

input(Changes) ->
    maps:merge(#{view => view(), sample => sample(), config => #{metrics_functions => 2},
                 totals => #{findings => #{{schedulers_asleep, warning} => 2}, blocked => #{}}},
                     Changes).

text(Changes) -> fairnif_watch_metrics:text(input(Changes)).

value(Name, Rows) ->
    case [Value || {_, N, _, Value} <- Rows, N =:= Name] of
        [Value] -> element(1, string:to_float(Value));
        Other -> Other
    end.

the_units_are_base_units_test() ->
    Rows = parsed(text(#{})),
    ?assertEqual(0.0025, value("fairnif_watch_watch_cpu_seconds_total", Rows)),
    ?assertEqual(0.0125, value("fairnif_watch_scheduler_blocked_seconds", Rows)),
    ?assertEqual(0.25, value("fairnif_watch_dirty_pool_wait_seconds", Rows)),
    ?assertEqual(1.5, value("fairnif_watch_scheduler_cpu_seconds_total", Rows)),
    ?assertEqual(7.0, value("fairnif_watch_events_total", Rows)).

%% Whatever was shorter is known by all waits; and where that was read before the long ones, these
%% count.
waits_make_a_histogram_by_kind_test() ->
    Wait = fun(Kind, Runs, Long) ->
                   #{kind => Kind, number => 1, long_waits => Long, waited_ns => 2500000000,
                     runs => Runs}
           end,
    Threads = [Wait(normal, 90, [{10, 3}, {20, 1}]), Wait(normal, 10, [{10, 1}, {20, 0}]),
               Wait(dirty_io, 1, [{10, 1}, {20, 1}])],
    Text = iolist_to_binary(text(#{sample => (sample())#{threads := Threads}})),
    ?assertEqual([<<"_bucket{kind=\"dirty_io\",le=\"0.01\"} 0">>,
                  <<"_bucket{kind=\"dirty_io\",le=\"0.02\"} 1">>,
                  <<"_bucket{kind=\"dirty_io\",le=\"+Inf\"} 2">>,
                  <<"_sum{kind=\"dirty_io\"} 2.5">>, <<"_count{kind=\"dirty_io\"} 2">>,
                  <<"_bucket{kind=\"normal\",le=\"0.01\"} 95">>,
                  <<"_bucket{kind=\"normal\",le=\"0.02\"} 99">>,
                  <<"_bucket{kind=\"normal\",le=\"+Inf\"} 100">>,
                  <<"_sum{kind=\"normal\"} 5.0">>, <<"_count{kind=\"normal\"} 100">>],
                 [Row || <<"fairnif_watch_run_queue_wait_seconds", Row/binary>>
                             <- binary:split(Text, <<"\n">>, [global])]),
    ?assertMatch([_ | _], parsed(Text)).

that_something_is_hidden_is_a_metric_test() ->
    Says = fun(Changes) ->
                   Text = iolist_to_binary(text(#{view => maps:merge(view(), Changes)})),
                   {match, [Value]} = re:run(Text, "^fairnif_watch_native ([01])$",
                                             [multiline, {capture, all_but_first, binary}]),
                   Value
           end,
    ?assertEqual([<<"1">>, <<"0">>, <<"0">>],
                 [Says(V) || V <- [#{}, #{blind => [<<"no stack">>]}, #{native => false}]]).

what_counts_ends_in_total_and_nothing_else_does_test() ->
    [?assertEqual({Name, Type =:= counter},
                  {Name, binary:longest_common_suffix([Name, <<"_total">>]) =:= 6})
     || {Name, Type, _, _} <- fairnif_watch_metrics:families()].

no_name_comes_twice_test() ->
    Names = [Name || {Name, _, _, _} <- fairnif_watch_metrics:families()],
    ?assertEqual([], Names -- lists:usort(Names)).

no_function_name_breaks_the_format_test() ->
    Names = [<<"a\"b">>, <<"a\\">>, <<"a\nb">>, <<"'\x{e4}'"/utf8>>, <<16#e4, 16#ff>>, <<>>,
             <<"a{b=\"c\"} 1">>],
    Blocked = maps:from_list([{Name, {1, 1000000000}} || Name <- Names]),
    Rows = parsed(text(#{totals => #{findings => #{}, blocked => Blocked}})),
    ?assertEqual(length(Names),
                 length([ok || {_, "fairnif_watch_blocked_seconds_total", _, _} <- Rows])).

functions_are_capped_and_the_rest_is_other_test() ->
    Top = [#{label => <<"f", (integer_to_binary(N))/binary>>, ns_per_s => N * 1.0e8}
           || N <- lists:seq(1, 5)],
    Rows = parsed(text(#{view => (view())#{top := Top ++ [#{label => <<"other">>,
                                                            ns_per_s => 1.0e9}]}})),
    ?assertEqual([{"f4", 0.4}, {"f5", 0.5}, {"other", 1.6}],
                 lists:sort([{Function, element(1, string:to_float(Value))}
                             || {_, "fairnif_watch_native_function_ratio", Function, Value}
                                    <- Rows])).

places_without_a_symbol_share_a_label_test() ->
    Top = [#{function => {<<"my.so">>, <<"0x", (integer_to_binary(N, 16))/binary>>},
             label => <<"my.so: 0x", (integer_to_binary(N, 16))/binary>>, ns_per_s => 1.0e8}
           || N <- lists:seq(1, 60)],
    Named = #{function => {<<"my.so">>, <<"f">>}, label => <<"my.so: f">>, ns_per_s => 1.0e6},
    Rows = parsed(text(#{view => (view())#{top := Top ++ [Named]}})),
    ?assertEqual([{"my.so (no symbol)", 6.0}, {"my.so: f", 0.001}],
                 lists:sort([{Function, binary_to_float(float_to_binary(list_to_float(Value),
                                                                        [{decimals, 3}]))}
                             || {_, "fairnif_watch_native_function_ratio", Function, Value}
                                    <- Rows])).

a_live_node_exports_every_counter_and_no_pid_test_() ->
    {timeout, 60,
     fun() ->
             {ok, _} = fairnif_watch:start(#{log => false}),
             try
                 Text = iolist_to_binary(fairnif_watch:metrics()),
                 Names = [list_to_binary(Name) || {_, Name, _, _} <- parsed(Text)],
                 [?assert(lists:member(fairnif_watch_counters:metric(Row), Names),
                          fairnif_watch_counters:metric(Row))
                  || {_, _, _, Who, _} = Row <- fairnif_watch_counters:list(), Who =/= native],
                 ?assertEqual(nomatch, re:run(Text, "<[0-9]+\\.[0-9]+\\.[0-9]+>"))
             after
                 fairnif_watch:stop()
             end
     end}.
