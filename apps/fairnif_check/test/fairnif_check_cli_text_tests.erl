-module(fairnif_check_cli_text_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_check_cli_text).

a_size_is_bytes_or_a_power_of_1024_test_() ->
    [?_assertEqual({Text, Bytes}, {Text, ?T:bytes(Text)})
     || {Text, Bytes} <- [{"1", 1}, {"1000", 1000}, {"64k", 65536}, {"64K", 65536},
                          {"512m", 536870912}, {"2G", 2147483648}]].

what_is_no_size_is_a_usage_error_that_quotes_it_test_() ->
    [refused(fun() -> ?T:bytes(Text) end, Part)
     || {Text, Part} <- [{"", "`' is not a size"}, {"12x", "`12x'"}, {"-5", "`-5'"},
                         {"1.5k", "`1.5k'"}, {" 1", "` 1'"}, {"1\n", "is not a size"}, {"k", "`k'"},
                         {"1234567890123456", "is not a size"},
                         {"0", "at least 1"}, {"0g", "at least 1"}]].

several_sizes_have_commas_between_and_none_stands_twice_test_() ->
    [?_assertEqual([1024], ?T:sizes("1k")),
     ?_assertEqual([1048576, 1024], ?T:sizes("1m,1k,1024,1m")),
     refused(fun() -> ?T:sizes("1k,,2k") end, "`' is not a size"),
     refused(fun() -> ?T:sizes("1k, 2k") end, "` 2k' is not a size")].

a_time_has_its_unit_and_may_have_a_point_test_() ->
    [?_assertEqual({Text, Ns}, {Text, ?T:duration(Text)})
     || {Text, Ns} <- [{"250us", 250000}, {"1ms", 1000000}, {"2s", 2000000000},
                       {"1.5ms", 1500000}, {"0.001us", 1}]].

what_is_no_time_is_a_usage_error_that_quotes_it_test_() ->
    [refused(fun() -> ?T:duration(Text) end, Part)
     || {Text, Part} <- [{"1", "`1' is not a time"}, {"ms", "`ms'"}, {"1 ms", "`1 ms'"},
                         {"-1ms", "`-1ms'"}, {".5ms", "`.5ms'"}, {"1.ms", "`1.ms'"},
                         {"1ms\n", "is not a time"}, {"1m", "`1m'"},
                         {"0ms", "longer than `0ms'"}, {"0.000us", "longer"}]].

a_count_is_a_whole_number_from_1_on_test_() ->
    [?_assertEqual(12, ?T:count("12")),
     refused(fun() -> ?T:count("0") end, "at least 1"),
     refused(fun() -> ?T:count("-1") end, "at least 1"),
     refused(fun() -> ?T:count("1.0") end, "`1.0' is not a whole number"),
     refused(fun() -> ?T:count("") end, "`' is not a whole number")].

words_stand_between_blanks_test_() ->
    [?_assertEqual(["+S", "4:4"], ?T:words("  +S 4:4 ")), ?_assertEqual([], ?T:words(" "))].

a_look_whether_a_file_can_be_written_leaves_it_as_it_was_test() ->
    fairnif_check_stand_in:in_folder(fun(Dir) ->
        File = filename:join(Dir, "report"),
        ok = ?T:writable(#{json => File}),
        ?assertNot(filelib:is_file(File)),
        ok = file:write_file(File, "kept"),
        ok = ?T:writable(#{json => File}),
        ?assertEqual({ok, <<"kept">>}, file:read_file(File))
    end).

refused(Fun, Part) ->
    fun() ->
            {usage, Text} = try Fun() catch throw:Thrown -> Thrown end,
            ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Part)})
    end.
