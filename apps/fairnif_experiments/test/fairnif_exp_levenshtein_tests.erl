%% With figures made up: what the tables say of them.
-module(fairnif_exp_levenshtein_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(X, fairnif_exp_levenshtein).
-define(FORMS, [erlang_levenshtein, unfair_levenshtein, yielding_levenshtein,
                dirty_levenshtein, threaded_levenshtein, levenshtein]).

the_rates_stand_beside_what_was_published_test() ->
    Text = format([rates(10, 2000000), rates(1000, 0.5)], []),
    fairnif_lab_said:contains(Text, ["2,000,000", "0.50", "149,318", "209,975", "0.71"]).

the_length_that_was_not_published_is_read_off_the_plain_nif_test() ->
    %% A cost that grows with the square: four times at double the length.
    Text = format([rates(10, 4 * 209975), rates(40, 209975 / 4)], []),
    ?assertNotEqual(nomatch, string:find(Text, "with about 20 bytes.")),
    %% Not beyond what was measured.
    ?assertEqual(nomatch, string:find(format([rates(10, 100)], []), "with about")).

a_length_that_failed_says_why_test() ->
    Text = format([#{length => 36, error => <<"the reason">>, timed_out => false}], []),
    ?assertNotEqual(nomatch, string:find(Text, "Failed: 36 bytes: the reason")).

a_node_without_an_answer_is_a_row_and_no_failure_test() ->
    Text = format([], [jitter(unfair_levenshtein, <<"plain NIF">>,
                              #{error => <<"no answer within 10 s">>, timed_out => true,
                                may_time_out => true}),
                       jitter(yielding_levenshtein, <<"yielding">>,
                              #{count => 5, least => 2100000, p50 => 2500000, p99 => 3400000,
                                max => 3500000})]),
    fairnif_lab_said:contains(Text,
                              ["no answer within 10 s", "the shell is dead", "2.10 ms", "3.50 ms",
                               "2.1 to 3.5 ms"]),
    ?assertEqual(nomatch, string:find(Text, "Failed")).

what_is_to_be_seen_is_written_from_the_figures_test() ->
    Late = fun(Form, P50) ->
                   jitter(Form, <<"t">>, #{count => 5, least => P50, p50 => P50, p99 => P50,
                                           max => P50})
           end,
    Text = format([], [Late(idle, 1000000), Late(unfair_levenshtein, 7000000),
                       Late(levenshtein, 1200000)]),
    ?assertNotEqual(nomatch, string:find(Text, "beside nothing the sleeper is 1.00 ms late")),
    ?assertNotEqual(nomatch, string:find(Text, "auto 1.20 ms, beside\nthe plain NIF: 7.00 ms.")),
    ?assertEqual(nomatch, string:find(format([], [Late(idle, 1000000)]), "What to see")).

another_failure_of_the_plain_nif_is_one_test() ->
    Text = format([], [jitter(unfair_levenshtein, <<"plain NIF">>,
                              #{error => <<"killed by signal 11">>, timed_out => false,
                                may_time_out => true})]),
    ?assertNotEqual(nomatch, string:find(Text, "Failed: plain NIF at 1000 ms: killed by")).

forms_that_differ_are_an_error_and_no_rate_test_() ->
    {setup,
     fun() -> {module, _} = code:load_binary(levenshtein, "stand-in", stand_in()) end,
     fun(_) -> code:purge(levenshtein), code:delete(levenshtein), code:purge(levenshtein) end,
     [{timeout, 60, fun() ->
              ?assertMatch([{same, [A, B]}, {slow, [C]}]
                             when A > 0 andalso B > 0 andalso C > 0 andalso C < 1,
                           fairnif_exp_levenshtein_peer:rates([same, slow], 10, {1, 2}))
      end},
      ?_assertError({differ, _},
                    fairnif_exp_levenshtein_peer:rates([same, other], 10, {1, 2}))]}.

%% `slow' needs more than half of the time that one length may take: one round.
stand_in() ->
    Forms = ["-module(levenshtein).", "-export([same/2, other/2, slow/2]).",
             "same(_, _) -> 1.", "other(_, _) -> 2.", "slow(_, _) -> timer:sleep(2100), 1."],
    {ok, levenshtein, Beam} =
        compile:forms([begin
                           {ok, Tokens, _} = erl_scan:string(Form),
                           {ok, Parsed} = erl_parse:parse_form(Tokens),
                           Parsed
                       end || Form <- Forms]),
    Beam.

format(Rates, Jitter) ->
    unicode:characters_to_list(?X:format(#{ok => true, rates => Rates, jitter => Jitter,
                                           jitter_bytes => 10000})).

rates(Length, Rate) ->
    #{length => Length, others => 0.0,
      forms => maps:from_list([{F, #{per_second => Rate, spread => 0.0, samples => [Rate]}}
                               || F <- ?FORMS])}.

jitter(Form, Title, More) ->
    More#{form => Form, title => Title, sleep_ms => 1000, others => 0.0}.
