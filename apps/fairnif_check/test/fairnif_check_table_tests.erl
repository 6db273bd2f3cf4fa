-module(fairnif_check_table_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T, fairnif_check_table).

durations_have_three_digits_and_the_unit_that_fits_test_() ->
    [?_assertEqual(Text, ?T:duration(Ns))
     || {Ns, Text} <- [{0, "0 ns"}, {7, "7 ns"}, {999, "999 ns"},
                       {1000, "1.00 us"}, {25340, "25.3 us"},
                       {999499, "999 us"}, {999600, "1.00 ms"},
                       {28228000, "28.2 ms"}, {5860000000, "5.86 s"},
                       {123.4, "123 ns"}, {7.25, "7.25 ns"},
                       {-1500, "-1.50 us"}, {undefined, "-"}]].

counts_have_thousands_separators_test_() ->
    [?_assertEqual(Text, ?T:count(N))
     || {N, Text} <- [{0, "0"}, {999, "999"}, {1000, "1,000"},
                      {7815912, "7,815,912"}, {-12345, "-12,345"},
                      {100, "100"}, {undefined, "-"}]].

small_fractions_keep_a_digit_behind_the_point_test_() ->
    [?_assertEqual(Text, ?T:percent(F))
     || {F, Text} <- [{0.0, "0 %"}, {0.0002, "0.0 %"}, {0.0123, "1.2 %"}, {0.0994, "9.9 %"},
                      {0.0996, "10 %"}, {0.5, "50 %"}, {1.0, "100 %"},
                      {1, "100 %"}, {undefined, "-"}]].

bytes_are_in_decimal_units_test_() ->
    [?_assertEqual(Text, ?T:bytes(N))
     || {N, Text} <- [{1, "1 byte"}, {999, "999 bytes"}, {12000, "12.0 kB"},
                      {536870912, "537 MB"}, {2000000000, "2.00 GB"}]].

cells_are_aligned_and_framed_test() ->
    Expected = "+------+-------+\n"
               "|      | how   |\n"
               "| name |  much |\n"
               "+------+-------+\n"
               "| a    |     1 |\n"
               "| bcd  | 1,000 |\n"
               "+------+-------+\n",
    ?assertEqual(Expected, flat(?T:render(
        [{"name", left}, {"how  \n much", right}],
        [["a", "1"], ["bcd", <<"1,000">>]], ascii))).

widths_count_characters_and_not_bytes_test() ->
    Lines = string:lexemes(flat(?T:render([{"größe", left}],
                                          [[<<"µs"/utf8>>]], unicode)), "\n"),
    ?assertEqual([9], lists:usort([string:length(L) || L <- Lines])).

a_table_without_rows_is_a_heading_test() ->
    ?assertEqual(4, length(string:lexemes(
                             flat(?T:render([{"a", left}], [], ascii)), "\n"))).

box_lines_are_for_utf8_locales_only_test_() ->
    Cases = [{[{"LC_ALL", "C.UTF-8"}], unicode},
             {[{"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}], ascii},
             {[{"LC_ALL", ""}, {"LC_CTYPE", "en_US.utf8"}], unicode},
             {[{"LANG", "POSIX"}], ascii},
             {[], ascii}],
    [?_assertEqual(Style, with_locale(Env, fun ?T:style/0))
     || {Env, Style} <- Cases].

with_locale(Env, Fun) ->
    Names = ["LC_ALL", "LC_CTYPE", "LANG"],
    Before = [{N, os:getenv(N)} || N <- Names],
    [os:unsetenv(N) || N <- Names],
    [os:putenv(N, V) || {N, V} <- Env],
    try Fun()
    after
        [os:unsetenv(N) || N <- Names],
        [os:putenv(N, V) || {N, V} <- Before, V =/= false]
    end.

flat(Text) ->
    unicode:characters_to_list(Text).
