-module(fairnif_exp_exor_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(X, fairnif_exp_exor).

a_binary_that_memory_cannot_hold_is_refused_before_anything_starts_test() ->
    {Us, Answer} = timer:tc(fun() -> ?X:run(#{size => 1 bsl 60}) end),
    ?assertMatch({error, {cannot_say, _}}, Answer),
    {error, {_, Text}} = Answer,
    ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Text),
                                    "memory.*available")),
    ?assert(Us < 1000000).

the_default_size_needs_less_than_4_gib_test() ->
    ?assert(?X:memory_needed(?X:default_size()) < 4 bsl 30).

the_table_shows_each_figure_and_the_talk_beside_it_test() ->
    Text = format([row(exor_bad, #{}), row(exor, #{talk => undefined})]),
    fairnif_lab_said:contains(Text,
                              ["exor_bad", "28.1 ms", "2,047", "8,188,005", "202 us",
                               "45 to 60 %", "5.86 s, 3,906, 7,815,912",
                               "536,870,912 bytes", "What to see", "leaves 45 to 60 %"]).

a_form_that_failed_says_why_and_the_others_stay_test() ->
    Text = format([#{form => exor_bad, error => <<"the reason">>},
                   row(exor_yield, #{})]),
    ?assertNotEqual(nomatch, string:find(Text, "Failed: exor_bad: the reason")),
    ?assertNotEqual(nomatch, string:find(Text, "exor_yield")),
    %% Nothing is concluded from figures that are not there.
    ?assertEqual(nomatch, string:find(Text, "What to see")).

a_busy_machine_is_named_as_a_doubt_test() ->
    ?assertNotEqual(nomatch, string:find(
        format([row(exor_dirty, #{others => [0.0, 0.9]})]),
        "doubt exor_dirty.")),
    [?assertEqual(nomatch, string:find(
        format([row(exor_dirty, #{others => Others})]), "doubt"))
     || Others <- [[0.01, 0.1], [undefined, undefined]]].

format(Rows) ->
    unicode:characters_to_list(?X:format(#{ok => true, size => 536870912,
                                           rows => Rows})).

row(Form, More) ->
    maps:merge(#{form => Form, elapsed_us => 28123, yields => 2047,
                 reductions => 8188005, hold_p99 => 22000,
                 hold_longest => 202000, share => [0.45, 0.6, 0.5],
                 others => [0.0, 0.0],
                 talk => #{seconds => 5.86, yields => 3906,
                           reductions => 7815912}}, More).
