%% What everybody is shown of what was found.
-module(fairnif_watch_view_tests).

-include_lib("eunit/include/eunit.hrl").

detector(Issues, Findings) ->
    Look = #{queues => [0], dirty_cpu => {0, 0}, dirty_io => {0, 0}},
    Sample = #{threads => [], looks => [Look], native => #{}, at => 1, blind => [],
               online => #{normal => 1, dirty_cpu => 1, dirty_io => 1}, waits => #{}, top => []},
    #{detectors := [Detector]} =
        fairnif_watch_view:make(#{sample => Sample, started => 0, findings => Findings,
                                  detectors => [{fairnif_watch_detect_blocked, Issues}],
                                  counters => #{}, subscribers => 0}),
    Detector.

finding(Id, Ongoing, Sentence) ->
    #{id => Id, detector => scheduler_blocked, ongoing => Ongoing, severity => error,
      sentence => Sentence, remedy => <<"Yield.">>}.

nothing_is_found_where_nothing_was_test() ->
    ?assertMatch(#{verdict := ok, found := 0, sentence := <<"Nothing found.">>}, detector([], [])),
    Other = (finding(1, false, <<"S.">>))#{detector := collapse},
    ?assertMatch(#{found := 0, sentence := <<"Nothing found.">>}, detector([], [Other])).

a_detector_that_has_found_says_what_test() ->
    ?assertMatch(#{verdict := ok, found := 2, remedy := none,
                   sentence := <<"Nothing now; found 2 times. The last: B.">>},
                 detector([], [finding(2, false, <<"B.">>), finding(1, false, <<"A.">>)])).

%% The finding may know better than the last report who it is.
what_goes_on_is_told_as_its_finding_tells_it_test() ->
    Issue = #{ongoing => true, severity => error, sentence => <<"By an unknown call.">>},
    ?assertMatch(#{verdict := warn, found := 3, sentence := <<"By m:f/1. (and 1 more)">>,
                   remedy := <<"Yield.">>},
                 detector([Issue, Issue],
                          [finding(3, true, <<"By m:f/1.">>), finding(2, true, <<"B.">>),
                           finding(1, false, <<"A.">>)])).
