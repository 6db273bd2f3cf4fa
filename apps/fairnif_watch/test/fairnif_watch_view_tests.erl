%% What everybody is shown of what was found.
-module(fairnif_watch_view_tests).

-include_lib("eunit/include/eunit.hrl").

detector(Findings) ->
    Look = #{queues => [0], dirty_cpu => {0, 0}, dirty_io => {0, 0}},
    Sample = #{threads => [], looks => [Look], native => #{}, at => 1, blind => [],
               online => #{normal => 1, dirty_cpu => 1, dirty_io => 1}, waits => #{}, top => []},
    #{detectors := [Detector | _]} =
        fairnif_watch_view:make(#{sample => Sample, started => 0, findings => Findings,
                                  counters => #{}, subscribers => 0}),
    Detector.

finding(Id, Ongoing, Sentence) ->
    #{id => Id, detector => scheduler_blocked, ongoing => Ongoing, severity => error,
      sentence => Sentence, remedy => <<"Yield.">>}.

nothing_is_found_where_nothing_was_test() ->
    ?assertMatch(#{verdict := ok, found := 0, sentence := <<"Nothing found.">>}, detector([])),
    Other = (finding(1, false, <<"S.">>))#{detector := schedulers_asleep},
    ?assertMatch(#{found := 0, sentence := <<"Nothing found.">>}, detector([Other])).

a_detector_that_has_found_says_what_test() ->
    ?assertMatch(#{verdict := ok, found := 2, remedy := none,
                   sentence := <<"Nothing now; found 2 times. The last: B.">>},
                 detector([finding(2, false, <<"B.">>), finding(1, false, <<"A.">>)])).

what_lasts_is_shown_as_in_its_finding_test() ->
    ?assertMatch(#{verdict := error, found := 3, sentence := <<"By m:f/1. (and 1 more)">>,
                   remedy := <<"Yield.">>},
                 detector([finding(3, true, <<"By m:f/1.">>), finding(2, true, <<"B.">>),
                           finding(1, false, <<"A.">>)])).

%% A finding does not become less grave, nor does its detector then.
a_detector_is_as_grave_as_the_gravest_of_its_ongoing_findings_test_() ->
    [?_assertMatch(#{verdict := Verdict},
                   detector([(finding(Id, Ongoing, <<"S.">>))#{severity := Severity}
                             || {Id, {Severity, Ongoing}} <- lists:enumerate(Findings)]))
     || {Verdict, Findings} <-
            [{error, [{warning, true}, {error, true}, {unconfirmed, true}]},
             {warn, [{unconfirmed, true}, {warning, true}, {error, false}]},
             {unconfirmed, [{unconfirmed, true}, {error, false}]}, {ok, [{error, false}]}]].
