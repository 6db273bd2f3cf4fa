-module(fairnif_check_manners_tests).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_check_manners).
-define(R, fairnif_check_test_results).

each_size_is_a_line_of_the_table_test() ->
    Lines = lines(page([{row(), {ok, ?R:bad()}}])),
    ?assertEqual(2, length([L || L <- Lines, string:prefix(L, "| `m:f(Bin)` |") =/= nomatch])).

a_bad_verdict_stands_in_the_table_and_in_words_test() ->
    Text = page([{row(), {ok, ?R:bad()}}]),
    shown(Text, "blocks the scheduler |"),
    shown(Text, "**`m:f(Bin)`**. *OTP 25*: At 1 MiB: It blocked a normal scheduler for 23.4 ms").

each_release_has_a_column_and_what_it_was_not_asked_is_a_dash_test() ->
    On = fun(Otp, Entries) -> ?M:release((?R:context())#{otp := Otp}, Entries) end,
    Text = unicode:characters_to_list(
             ?M:page([row()], [On(<<"27">>, [{row(), {ok, ?R:bad()}}]), On(<<"25">>, [])])),
    shown(Text, "| function | size | OTP 25 | OTP 27 |\n|---|---|---|---|\n"),
    shown(Text, "| `m:f(Bin)` | 1,024 bytes | - | "),
    shown(Text, "**`m:f(Bin)`**. *OTP 27*: At 1 MiB: It blocked").

what_is_kept_comes_back_test() ->
    Release = ?M:release(?R:context(), [{row(), {ok, ?R:bad()}}]),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(io_lib:format("~0tp.", [Release]))),
    ?assertEqual({ok, Release}, erl_parse:parse_term(Tokens)).

what_is_not_installed_is_named_with_the_reason_test() ->
    Text = page([{row(), {skipped, "the module jiffy is not installed"}}]),
    shown(Text, "Not checked: the module jiffy is not installed."),
    shown(Text, "| `m:f(Bin)` | 1 MiB | - |").

a_bar_in_an_expression_does_not_end_its_cell_test() ->
    Row = (row())#{expression := "[1 | Bin]"},
    shown(page([{Row, {ok, ?R:good()}}]), "| `[1 \\| Bin]` |").

every_row_of_the_table_is_an_expression_that_compiles_test_() ->
    [{E, ?_assertMatch({ok, _}, fairnif_check_subject:new(E, case I of
                                                               undefined -> #{};
                                                               _ -> #{init => I}
                                                           end))}
     || #{expression := E, init := I} <- fairnif_check_otp_table:rows()].

row() ->
    #{expression => "m:f(Bin)", init => undefined, sizes => [1024, 1048576], unit => bytes,
      needs => undefined}.

page(Entries) ->
    unicode:characters_to_list(?M:page([R || {R, _} <- Entries],
                                       [?M:release(?R:context(), Entries)])).

lines(Text) ->
    string:split(Text, "\n", all).

shown(Text, Part) ->
    ?assertNotEqual({Part, nomatch, Text}, {Part, string:find(Text, Part), Text}).
