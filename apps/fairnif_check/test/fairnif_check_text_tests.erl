-module(fairnif_check_text_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 1000000).

every_figure_stands_in_the_table_with_its_unit_test_() ->
    Text = format(result(#{})),
    [{Part, ?_assert(has(Part, Text))}
     || Part <- ["crypto:hash(md5, Bin)", "N = 1,024", "2.00 ms (5.0 %)", "20 a call",
                 "1.00 us, 3.00 us, 9.00 us", "700 us",                 % slices, block
                 "2.50 ms; 40.0 us",                                    % first call
                 "4,000", "2,000; 60,000 to 400,000",                   % reductions
                 "45 % (30 % to 60 %)",                                 % share
                 "1.00 ms, 4.00 ms, 5.00 ms", "samples", "777",   % delay
                 "1.50 us, 8.00 us; 500 ns",                            % thread progress
                 "2x, 7 ms", "m:f/1",                                   % long_schedule
                 "21.0 us, 33.0 us",                                    % garbage
                 "20.0 us, 90.0 us", "none seen",                       % kill, leak
                 "Time grows with N to the power of 1.25.",
                 "* Leave it."]].

a_line_is_no_wider_than_a_terminal_of_100_columns_test() ->
    Long = unicode:characters_to_binary(lists:join($\s, lists:duplicate(60, "words"))),
    Text = format(result(#{verdicts => [verdict(block, fail, Long)], advice => [Long]})),
    ?assertEqual([], [L || L <- string:split(Text, "\n", all), string:length(L) > 100]).

a_verdict_says_whether_it_has_the_property_test_() ->
    [fun() ->
             Text = format(result(#{verdicts => [verdict(block, Status, <<"because.">>)]})),
             ?assert(has("\n  " ++ Mark ++ "  block        because.\n", Text))
     end || {Status, Mark} <- [{pass, "ok    "}, {fail, "FAIL  "}, {warn, "warn  "},
                               {unsure, "unsure"}, {waived, "waived"}]].

a_leak_is_bytes_a_kill_and_unknown_is_no_leak_test() ->
    Leak = fun(Leak) -> format(result(#{sizes => [(size())#{leak => Leak}]})) end,
    ?assert(has("1.05 MB", Leak(#{total => 1.0e7, per_kill => 1048576.0, resolution => 1.0e5}))),
    Alone = Leak(#{total => 1.0e7, per_kill => 1048576.0, resolution => 1.0e5,
                   alone => #{total => 1.0e6, per_call => 2000.0, resolution => 1.0e5}}),
    ?assert(has("by a call that is not killed", Alone)),
    ?assert(has("2.00 kB", Alone)),
    Unknown = Leak(#{total => undefined, per_kill => undefined, resolution => 1.0e5}),
    ?assertNot(has("memory lost", Unknown)).

no_answer_is_shown_by_the_verdict_and_not_as_a_figure_test() ->
    Text = format(result(#{sizes => [(size())#{delay => #{beside => unanswered}}]})),
    ?assertNot(has("runs late", Text)).

the_last_line_is_the_conclusion_test_() ->
    [?_assertEqual(Line, lists:last(string:lexemes(format(Result), "\n")))
     || {Result, Line} <-
            [{result(#{}), "Well-behaved."},
             {(result(#{}))#{exit => 3}, "Unsure: this machine is too noisy, or too small."},
             {(result(#{verdicts => [verdict(block, fail, <<"x">>), verdict(unfair, warn, <<"y">>),
                                     verdict(leak, fail, <<"z">>)]}))#{exit => 1},
              "Not well-behaved: block, leak."}]].

two_expressions_stand_side_by_side_test() ->
    #{subjects := [First]} = Result = result(#{}),
    Timed = fun(Ns) -> (size())#{time := #{count => 8, median => Ns, spread => 0.0,
                                           samples => lists:duplicate(8, Ns)}} end,
    Text = format(Result#{subjects := [First#{sizes := [Timed(2 * ?MS)]},
                                       First#{role := against, expression := <<"other()">>,
                                              sizes := [Timed(?MS)]}]}),
    ?assert(has("beside other():", Text)),
    [Row] = [L || L <- string:split(Text, "\n", all), has("run time, median", L)],
    [?assert(has(Cell, Row), Cell) || Cell <- ["1.00 ms", "2.00 ms", "2.00", "worse"]].

%% ---- ----

has(Part, Text) -> string:find(Text, Part) =/= nomatch.

format(Result) ->
    unicode:characters_to_list(fairnif_check_text:format(Result)).

result(Subject) ->
    #{exit => 0, options => #{},
      subjects => [maps:merge(#{role => subject, expression => <<"crypto:hash(md5, Bin)">>,
                                sizes => [size()], verdicts => [], advice => [<<"Leave it.">>],
                                growth => 1.25}, Subject)]}.

verdict(Property, Status, Sentence) ->
    #{property => Property, status => Status, size => 1024, sentence => Sentence,
      evidence => #{}}.

size() ->
    Slices = #{count => 200, median => 1000, p99 => 3000, longest => 9000},
    Delay = #{count => 777, p50 => ?MS, p99 => 4 * ?MS, max => 5 * ?MS},
    #{size => 1024, error => undefined, verdicts => [],
      time => #{count => 3, median => 2 * ?MS, spread => 0.05},
      charge => #{per_call => 4000, per_ms => 2000.0,
                  erlang => #{sort => 60000, maps => 400000.0, binaries => 100000}},
      slices => #{normal => Slices, dirty => Slices#{count := 0},
                  block => #{calls => 10, repeated => 700000}},
      first => #{block => 40000, elapsed => 2500000, nodes => 1},
      garbage => #{collected => [20000, 21000, 90000], killed => [30000, 33000, 34000],
                   control => [], bytes => 1000},
      share => #{sort => 0.3, maps => 0.6, binaries => 0.45, median => 0.45},
      delay => #{idle => Delay, erlang => Delay, beside => Delay},
      thread_progress => #{idle => #{median => 500, longest => 600},
                           beside => #{median => 1500, longest => 8000}},
      long_schedule => #{count => 2, longest_ms => 7, named => [<<"m:f/1">>]},
      kill => #{stop => #{median => 20000, longest => 90000}, down => #{median => 10000}},
      leak => #{total => 0.0, per_kill => 0.0, resolution => 1.0e5}}.
