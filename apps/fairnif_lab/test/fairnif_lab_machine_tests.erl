-module(fairnif_lab_machine_tests).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_lab_machine).
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

without_proc_nobody_knows_test() ->
    ?assertEqual(unknown, available([])).

the_context_can_be_written_as_json_test() ->
    Context = ?M:context(),
    ?assertMatch(#{otp := _, processor := _, date := <<_:19/binary, "Z">>},
                 Context),
    ?assert(iolist_size(fairnif_lab_json:encode(Context)) > 50).
