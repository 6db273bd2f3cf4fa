-module(fairnif_lab_manners_tests).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_lab_manners).
-define(R, fairnif_lab_test_results).

each_size_is_a_line_of_the_table_test() ->
    Lines = lines(page([{row(), {ok, ?R:bad()}}])),
    ?assertEqual(2, length([L || L <- Lines, string:prefix(L, "| `m:f(Bin)` |") =/= nomatch])).

a_line_says_where_the_time_was_spent_and_in_how_many_slices_test() ->
    Text = measured(#{count => 40, total => 100}, #{count => 10, total => 1000}),
    shown(Text, "normal (4 slices); dirty (1 slice)").

what_is_short_on_the_other_kind_of_scheduler_is_left_out_test() ->
    Text = measured(#{count => 10, total => 9000}, #{count => 10, total => 9}),
    shown(Text, "held 1 ns, normal (1 slice), "),
    ?assertEqual(nomatch, string:find(Text, "dirty")).

%% A call of which nothing is left but collections of garbage.
what_was_seen_nowhere_leaves_no_gap_test() ->
    Text = measured(#{count => 1, total => 0}, #{count => 0, total => 0}),
    shown(Text, "held 1 ns, well-behaved |").

a_bad_verdict_stands_in_the_table_and_in_words_test() ->
    Text = page([{row(), {ok, ?R:bad()}}]),
    shown(Text, "blocks the scheduler |"),
    shown(Text, "**`m:f(Bin)`**. *OTP 25*: At 1 MiB: It held a normal scheduler for 23.4 ms").

of_several_bad_sizes_the_largest_is_told_test() ->
    Verdict = fun(Size) -> ?R:verdict(hold, fail, Size, <<"keeps it">>) end,
    Result = #{subjects => [#{role => subject, verdicts => [Verdict(1024)],
                              sizes => [#{size => S, verdicts => [Verdict(S)]}
                                        || S <- [1024, 1048576]]}]},
    shown(page([{row(), {ok, Result}}]), "**`m:f(Bin)`**. *OTP 25*: At 1 MiB: keeps it.\n").

what_warns_and_what_cannot_be_said_is_marked_test() ->
    Text = page([{row(), {ok, ?R:every_status()}}]),
    shown(Text, "unfair to neighbours (warn)"),
    shown(Text, "under-charged?").

a_good_function_is_called_well_behaved_test() ->
    Text = page([{row(), {ok, ?R:good()}}]),
    shown(Text, ", well-behaved |"),
    shown(Text, "**`m:f(Bin)`**. *OTP 25*: Well-behaved").

of_a_size_that_crashed_there_are_no_figures_test() ->
    shown(page([{row(), {ok, ?R:crashed()}}]), "| `m:f(Bin)` | 1 MiB | crashes").

each_release_has_a_column_and_what_it_was_not_asked_is_a_dash_test() ->
    On = fun(Otp, Entries) -> ?M:told((?R:context())#{otp := Otp}, Entries) end,
    Text = unicode:characters_to_list(
             ?M:page([row()], [On(<<"27">>, [{row(), {ok, ?R:bad()}}]), On(<<"25">>, [])])),
    shown(Text, "| function | size | OTP 25 | OTP 27 |\n|---|---|---|---|\n"),
    shown(Text, "| `m:f(Bin)` | 1,024 bytes | - | "),
    shown(Text, "**`m:f(Bin)`**. *OTP 27*: At 1 MiB: It held").

what_is_kept_comes_back_test() ->
    Release = ?M:told(?R:context(), [{row(), {ok, ?R:bad()}}]),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(io_lib:format("~0tp.", [Release]))),
    ?assertEqual({ok, Release}, erl_parse:parse_term(Tokens)).

what_is_not_installed_is_named_with_the_reason_test() ->
    Text = page([{row(), {skipped, "the module jiffy is not installed"}}]),
    shown(Text, "Not checked: the module jiffy is not installed."),
    shown(Text, "| `m:f(Bin)` | 1 MiB | - |").

the_page_names_the_machine_and_the_release_test() ->
    [shown(page([]), Part) || Part <- ["A processor @ 2.40GHz", "Erlang/OTP 25", "2026-11-21"]].

a_bar_in_an_expression_does_not_end_its_cell_test() ->
    Row = (row())#{expression := "[1 | Bin]"},
    shown(page([{Row, {ok, ?R:good()}}]), "| `[1 \\| Bin]` |").

a_function_whose_module_is_missing_is_skipped_test() ->
    Row = (row())#{needs := no_such_module_here},
    ?assertMatch([{Row, {skipped, _}}], ?M:run([Row], #{})).

every_row_of_the_table_is_an_expression_that_compiles_test_() ->
    [{E, ?_assertMatch({ok, _}, fairnif_lab_subject:new(E, case I of
                                                               undefined -> #{};
                                                               _ -> #{init => I}
                                                           end))}
     || #{expression := E, init := I} <- fairnif_lab_otp_table:rows()].

row() ->
    #{expression => "m:f(Bin)", init => undefined, sizes => [1024, 1048576], unit => bytes,
      needs => undefined}.

page(Entries) ->
    unicode:characters_to_list(?M:page([R || {R, _} <- Entries],
                                       [?M:told(?R:context(), Entries)])).

lines(Text) ->
    string:split(Text, "\n", all).

shown(Text, Part) ->
    ?assertNotEqual({Part, nomatch, Text}, {Part, string:find(Text, Part), Text}).

%% The page of a function with these slices in ten calls.
measured(Normal, Dirty) ->
    Slices = #{normal => Normal, dirty => Dirty, hold => #{calls => 10, repeated => 1}},
    page([{row(), {ok, ?R:put_size(slices, Slices, ?R:good())}}]).
