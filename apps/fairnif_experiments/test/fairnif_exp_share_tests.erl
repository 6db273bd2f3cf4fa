%% With figures made up: what the table says of them.
-module(fairnif_exp_share_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(X, fairnif_exp_share).

shares_and_delays_stand_beside_what_was_published_test() ->
    Text = format([row(plain, <<"plain NIF">>, #{share => share([0.0, 0.0])}),
                   row(by_hand, <<"sliced by hand">>,
                       #{slice_us => 1000.0, published => <<"3 to 7 %">>,
                         share => share([0.031, 0.052])}),
                   row(auto, <<"fair, auto">>, #{slice_us => 42.6,
                                                 share => share([0.41, 0.55, 0.5])})]),
    fairnif_lab_said:contains(Text,
      ["3 to 7 %", "3.1 % to 5.2 %", "41 % to 55 %", "1.00 ms", "42.6 us", "1.10 ms",
       "leaves a neighbour 0 % of the scheduler", "a fair one 41 % to 55 %"]).

a_node_that_gives_no_answer_is_a_row_and_no_failure_test() ->
    Text = format([row(plain, <<"plain NIF">>,
                       #{delay => #{error => <<"no answer within 5 s">>, timed_out => true,
                                    may_time_out => true}})]),
    ?assertNotEqual(nomatch, string:find(Text, "no answer within 5 s")),
    ?assertEqual(nomatch, string:find(Text, "Failed")).

what_failed_is_named_with_its_length_test() ->
    Text = format([row(by_hand, <<"sliced by hand">>,
                       #{slice_us => 25.0, share => #{error => <<"the reason">>,
                                                      timed_out => false}})]),
    ?assertNotEqual(nomatch,
                    string:find(Text, "Failed: sliced by hand, 25.0 us (share): the reason")),
    ?assertEqual(nomatch, string:find(Text, "What to see")).

the_quick_form_is_a_part_of_the_normal_one_test() ->
    ?assert(?X:steps(#{scale => quick}) < ?X:steps(#{})),
    ?assertEqual(?X:steps(#{}), ?X:steps(#{scale => full})).

format(Rows) ->
    unicode:characters_to_list(?X:format(#{ok => true, rows => Rows})).

row(Mode, Title, More) ->
    maps:merge(#{mode => Mode, title => Title, slice_us => undefined, published => undefined,
                 share => share([0.5]),
                 delay => #{p50 => 1000000, p99 => 1100000, max => 1200000, others => 0.0}},
               More).

share(Shares) ->
    #{neighbours => [#{share => S} || S <- Shares], others => 0.0}.
