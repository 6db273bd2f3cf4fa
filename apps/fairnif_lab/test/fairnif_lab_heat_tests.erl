-module(fairnif_lab_heat_tests).

-include_lib("eunit/include/eunit.hrl").

-define(H, fairnif_lab_heat).

what_is_no_terminal_gets_plain_text_test_() ->
    [?_assertEqual(plain, kind([], unicode)),
     ?_assertEqual(plain, kind([{"TERM", "xterm-256color"}], unicode)),
     ?_assertEqual(plain, kind([{"FAIRNIF_STDOUT", "file"}, {"TERM", "xterm"}],
                               unicode))].

a_terminal_gets_colours_unless_it_or_its_user_has_none_test_() ->
    T = {"FAIRNIF_STDOUT", "terminal"},
    [?_assertEqual(colour, kind([T, {"TERM", "xterm"}], ascii)),
     ?_assertEqual(shade, kind([T, {"TERM", "xterm"}, {"NO_COLOR", "1"}], unicode)),
     ?_assertEqual(plain, kind([T, {"TERM", "xterm"}, {"NO_COLOR", "1"}], ascii)),
     ?_assertEqual(shade, kind([T, {"TERM", "dumb"}], unicode)),
     ?_assertEqual(plain, kind([T, {"TERM", "dumb"}], ascii)),
     ?_assertEqual(plain, kind([T], ascii))].

each_factor_of_ten_from_10_ms_on_is_a_level_test() ->
    ?assertEqual([0, 0, 0, 1, 1, 2, 3, 4, 4],
                 [?H:level(Ns) || Ns <- [-5000000000, 0, 9999999, 10000000, 99999999,
                                         100000000, 1000000000, 10000000000,
                                         960000000000]]).

the_number_stands_there_in_every_kind_test() ->
    [?assertNotEqual({Kind, nomatch},
                     {Kind, string:find(table(Kind, [1, 3]), "1.02 s")})
     || Kind <- [plain, shade, colour]].

plain_tables_are_left_as_they_are_test() ->
    Table = fairnif_lab_table:render([{"a", left}], [["1"]], ascii),
    ?assertEqual(Table, ?H:paint(plain, Table, [[4]])),
    ?assertEqual("x", ?H:mark(plain, 4, "x")).

shades_stand_before_hot_figures_only_test() ->
    ?assertEqual([$█, $\s, "x"], ?H:mark(shade, 4, "x")),
    ?assertEqual("x", ?H:mark(shade, 0, "x")),
    ?assertEqual("x", ?H:mark(shade, undefined, "x")).

only_the_cells_with_a_level_are_coloured_test() ->
    Table = fairnif_lab_table:render([{"mode", left}, {"1x", right}, {"10x", right}],
                                     [["m", "1 s", "2 ms"], ["n", "3 ms", "4 s"]],
                                     ascii),
    Text = unicode:characters_to_list(
             ?H:paint(colour, Table, [[undefined, 3, 0], [undefined, undefined, 4]])),
    [Top, Head, Middle, One, Two, Bottom, ""] = string:split(Text, "\n", all),
    ?assertEqual("| m    |\e[30;41m  1 s \e[0m| 2 ms |", One),
    ?assertEqual("| n    | 3 ms |\e[30;45m  4 s \e[0m|", Two),
    [?assertEqual(nomatch, string:find(L, "\e")) || L <- [Top, Head, Middle, Bottom]].

without_its_colours_a_table_is_what_it_was_test() ->
    ?assertEqual(table(plain, [1, 3]),
                 re:replace(table(colour, [1, 3]), "\e\\[[0-9;]+m", "",
                            [global, unicode, {return, list}])).

table(Kind, Levels) ->
    Cells = [?H:mark(Kind, L, "1.02 s") || L <- Levels],
    unicode:characters_to_list(
      ?H:paint(Kind, fairnif_lab_table:render([{"a", right}, {"b", right}], [Cells],
                                              unicode),
               [Levels])).

kind(Variables, Style) ->
    ?H:kind(fun(Name) -> proplists:get_value(Name, Variables, "") end, Style).
