-module(fairnif_lab_zoo_scores_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, fairnif_zoo_score).

each_expected_property_gives_one_finding_of_its_kind_test_() ->
    [?_assertEqual(Kind, kind(Expected, Observed))
     || {Expected, Observed, Kind} <- [{pass, pass, right}, {warn, warn, right},
                                       {fail, fail, right}, {pass, fail, false_alarm},
                                       {pass, warn, false_alarm}, {fail, pass, missed},
                                       {warn, pass, missed}, {fail, warn, severity},
                                       {warn, fail, severity}, {pass, cannot_say, undecided},
                                       {fail, cannot_say, undecided}, {fail, waived, missed}]].

a_verdict_that_is_not_there_is_wrong_test() ->
    [Finding] = [F || #{property := hold} = F <- ?S:judge(row(#{hold => pass}), 1, #{})],
    ?assertMatch(#{observed := missing, kind := false_alarm}, Finding).

where_both_verdicts_are_right_nothing_is_counted_test() ->
    Findings = ?S:judge(row(#{hold => {any, "reasons"}}), 1, #{}),
    ?assertEqual([], [F || #{property := hold} = F <- Findings]).

precision_counts_alarms_and_recall_counts_what_is_bad_test() ->
    %% Three bad ones: found, missed, undecided. Two good ones: passed, alarmed.
    Findings = lists:append([findings(E, O) || {E, O} <- [{fail, fail}, {fail, pass},
                                                          {fail, cannot_say}, {pass, pass},
                                                          {pass, fail}]]),
    [Score] = [S || #{property := hold} = S <- ?S:score(Findings)],
    ?assertMatch(#{count := 5, bad := 3, wrong := 2, undecided := 1}, Score),
    ?assertEqual(0.5, maps:get(precision, Score)),
    ?assertEqual(1 / 3, maps:get(recall, Score)).

without_alarms_there_is_no_precision_test() ->
    [Score] = [S || #{property := hold} = S <- ?S:score(findings(pass, pass))],
    ?assertMatch(#{precision := undefined, recall := undefined}, Score).

a_check_that_failed_is_a_missing_verdict_with_its_reason_test() ->
    Observed = ?S:observed({error, {failed, ["no", " peer"]}}),
    ?assertMatch(#{hold := #{status := missing, sentence := <<"failed: no peer">>}}, Observed).

only_the_verdicts_on_the_subject_count_test() ->
    Result = #{subjects => [#{role => against, verdicts => [verdict(hold, fail)]},
                            #{role => subject, verdicts => [verdict(hold, pass)]}]},
    ?assertMatch(#{hold := #{status := pass}}, ?S:observed({ok, Result})).

a_wrong_verdict_is_listed_with_its_sentence_and_evidence_test() ->
    Text = unicode:characters_to_list(?S:format(findings(pass, fail))),
    fairnif_lab_said:contains(Text,
      ["animal, run 1, hold: fail, should be pass (false_alarm)", "the sentence",
       "longest_ns", "Undecided: none"]).

every_row_expects_something_of_every_property_test_() ->
    Properties = fairnif_zoo_table:properties(),
    [{atom_to_list(Name),
      ?_assert(lists:all(fun(P) -> expectation(maps:get(P, Expected)) end, Properties)
               andalso maps:size(Expected) =:= length(Properties))}
     || #{name := Name, expected := Expected} <- fairnif_zoo_table:rows()].

the_zoo_has_bad_and_good_ones_in_every_property_and_no_name_twice_test() ->
    Rows = fairnif_zoo_table:rows(),
    Names = [Name || #{name := Name} <- Rows],
    ?assert(length(Names) >= 24),
    ?assertEqual(length(Names), length(lists:usort(Names))),
    [begin
         Statuses = lists:usort([maps:get(P, E) || #{expected := E} <- Rows,
                                                   is_atom(maps:get(P, E))]),
         ?assertMatch({P, true, 2}, {P, lists:member(pass, Statuses), length(Statuses)})
     end || P <- fairnif_zoo_table:properties()].

expectation({any, Why}) -> is_list(Why) andalso Why =/= "";
expectation(Status) -> lists:member(Status, [pass, warn, fail]).

kind(Expected, Observed) ->
    [#{kind := Kind}] = findings(Expected, Observed),
    Kind.

findings(Expected, Observed) ->
    [F || #{property := hold} = F <- ?S:judge(row(#{hold => Expected}), 1,
                                              #{hold => verdict(hold, Observed)})].

verdict(Property, Status) ->
    #{property => Property, status => Status, sentence => <<"the sentence">>,
      evidence => #{longest_ns => 1}}.

row(Expected) ->
    #{name => animal, expression => "ok", sizes => [1], init => undefined, options => #{},
      is => "an animal",
      expected => maps:merge(maps:from_list([{P, {any, "not asked"}}
                                             || P <- fairnif_zoo_table:properties()]), Expected)}.
