-module(fairnif_check_machine_tests).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_check_machine).
-define(KERNEL, {"/proc/meminfo",
                 <<"MemTotal: 24684092 kB\nMemAvailable:   1000 kB\n">>}).

available(Files) ->
    ?M:memory_available(fun(Name) ->
                                case lists:keyfind(Name, 1, Files) of
                                    {_, Text} -> {ok, Text};
                                    false -> {error, enoent}
                                end
                        end).

the_kernel_says_how_much_memory_there_is_test() ->
    ?assertEqual(1024000, available([?KERNEL])).

a_control_group_that_leaves_less_counts_test_() ->
    V2 = fun(Limit) -> [?KERNEL, {"/sys/fs/cgroup/memory.max", Limit},
                        {"/sys/fs/cgroup/memory.current", <<"1000\n">>}] end,
    [?_assertEqual(4000, available(V2(<<"5000\n">>))),
     ?_assertEqual(0, available(V2(<<"500\n">>))),
     ?_assertEqual(1024000, available(V2(<<"max\n">>))),
     ?_assertEqual(7, available(
       [?KERNEL, {"/sys/fs/cgroup/memory/memory.limit_in_bytes", <<"9\n">>},
        {"/sys/fs/cgroup/memory/memory.usage_in_bytes", <<"2\n">>}]))].

who_is_apart_gives_a_value_or_its_end_test_() ->
    [?_assertEqual({high, 1000},
                   ?M:apart([{priority, high}, {min_heap_size, 1000}],
                            fun() ->
                                    {priority, P} = process_info(self(), priority),
                                    {_, Info} = process_info(self(), garbage_collection),
                                    {P, min(1000, proplists:get_value(min_heap_size, Info))}
                            end)),
     ?_assertExit(oops, ?M:apart([], fun() -> exit(oops) end)),
     ?_assertExit(normal, ?M:apart([], fun() -> exit(normal) end)),
     ?_assertEqual({value, x}, ?M:apart([], fun() -> {value, x} end))].

without_proc_it_is_unknown_test() ->
    ?assertEqual(unknown, available([])).

clock(Busy, Own, Seconds) ->
    Stat = io_lib:format("cpu  ~b 1 2 1000 50 3 4 5 0 0~ncpu0 1 1 1~n", [Busy]),
    Self = io_lib:format("7 (beam ) smp) S 1 1 1 0 -1 4 5 0 0 0 ~b 30 0 0",
                         [Own]),
    ?M:cpu_clock(fun("/proc/stat") -> {ok, iolist_to_binary(Stat)};
                    ("/proc/self/stat") -> {ok, iolist_to_binary(Self)}
                 end, round(Seconds * 1.0e9)).

what_others_computed_is_the_machines_work_less_our_own_test() ->
    %% 3 s of processor time in 2 s, 1 s of it our own.
    ?assertEqual(1.0, ?M:others(clock(1000, 10, 5), clock(1300, 110, 7))),
    ?assertEqual(0.0, ?M:others(clock(1000, 10, 5), clock(1100, 120, 7))).

a_program_that_belongs_to_the_measurement_is_none_of_the_others_test_() ->
    {timeout, 30, fun() ->
        Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "while :; do :; done"]}]),
        {os_pid, Pid} = erlang:port_info(Port, os_pid),
        {Before, BeforeOwn} = {?M:cpu_clock(), ?M:cpu_clock([Pid])},
        timer:sleep(1500),
        {After, AfterOwn} = {?M:cpu_clock(), ?M:cpu_clock([Pid])},
        _ = os:cmd("kill -9 " ++ integer_to_list(Pid)),
        ?assert(?M:others(BeforeOwn, AfterOwn) < ?M:others(Before, After))
    end}.

what_others_did_in_a_moment_is_unknown_test() ->
    ?assertEqual(undefined, ?M:others(clock(0, 0, 5), clock(10, 0, 5.4))),
    Unknown = ?M:cpu_clock(fun(_) -> {error, enoent} end, 0),
    ?assertEqual(undefined, ?M:others(Unknown, Unknown)).

the_clocks_of_this_machine_can_be_compared_test() ->
    Before = ?M:cpu_clock(),
    timer:sleep(600),
    ?assert(?M:others(Before, ?M:cpu_clock()) >= 0).

the_context_can_be_written_as_json_test() ->
    Context = ?M:context(),
    ?assertMatch(#{otp := _, processor := _, date := <<_:19/binary, "Z">>},
                 Context),
    ?assert(iolist_size(fairnif_check_json:encode(Context)) > 50).
