-module(fairnif_check_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

-define(V, fairnif_check_verdict).
-define(MS, 1000000).

%% ---- the table ----

every_property_has_a_title_and_says_where_its_limit_comes_from_test_() ->
    [fun() ->
             ?assert(byte_size(Title) > 0),
             ?assert(byte_size(Source) > 0),
             ?assertEqual(Title, ?V:title(P))
     end || #{property := P, title := Title, source := Source} <- ?V:properties()].

thresholds_show_the_limits_in_force_test() ->
    Limits = fun(Opts) -> maps:from_list([{P, {L, D}} || #{property := P, limit := L,
                                                           decides := D} <- ?V:thresholds(Opts)])
             end,
    ?assertMatch(#{crash := {undefined, true}, block := {1000000, true},
                   first_call := {1000000, false}, undercharge := {1000, true},
                   unfair := {0.2, false}, latency := {10000000, true},
                   destructor := {1000000, true}, unkillable := {10000000, false},
                   leak := {undefined, true}}, Limits(#{})),
    ?assertMatch(#{block := {5000, true}, unfair := {0.2, true}, unkillable := {_, true}},
                 Limits(#{limit_ns => 5000, strict => true})).

%% ---- figures to status: {What it is, figures, options, expected of which property} ----

from_figures_to_a_status_test_() ->
    [{What, ?_assertEqual({Property, Status}, {Property, status(Property, Figures, Opts)})}
     || {Property, Rows} <- [{crash, returns()}, {block, block()}, {undercharge, charge()},
                             {unfair, share()}, {latency, delay()}, {unkillable, kill()},
                             {leak, leak()},
                             {first_call, first()}, {destructor, garbage()}],
        {What, Figures, Opts, Status} <- Rows].

returns() ->
    [{"was timed", #{time => time(1000)}, #{}, pass},
     {"an error", #{error => <<"raises error:x">>}, #{}, fail},
     {"an error beside figures", #{error => <<"x">>, time => time(1000)}, #{}, fail},
     {"not back in time, and judged with less", #{late => <<"x">>, time => time(1000)}, #{},
      unsure},
     {"an error with that", #{late => <<"x">>, error => <<"y">>}, #{}, fail},
     {"nothing known", #{}, #{}, unsure}].

block() ->
    [{"no stretch over the limit", blocks(#{}), #{}, pass},
     {"no call seen", blocks(#{calls => 0}), #{}, unsure},
     {"not measured", #{}, #{}, unsure},
     {"not measured, since the call fails", #{error => <<"x">>}, #{}, unsure},
     {"all calls over", blocks(#{over => 10, over_part => 0.9, repeated => 20 * ?MS}), #{}, fail},
     {"one long call, which is over",
      blocks(#{calls => 1, over => 1, over_part => 0.9}), #{}, fail},
     {"one long call, over for a part of it that the machine could have made",
      blocks(#{calls => 1, over => 1, over_part => 0.3}), #{}, unsure},
     {"one call, far over the limit, as the first was", far(#{}, #{}, 89 * ?MS), #{}, fail},
     {"one call, far over the limit, the only one that was seen", far(#{}, #{}, undefined), #{},
      fail},
     {"one call, far over the limit, and the first was not", far(#{}, #{}, ?MS), #{}, unsure},
     {"one call, not so far over it", far(#{least => 10 * ?MS}, #{}, 89 * ?MS), #{}, unsure},
     {"one call, four times as far as ordinary Erlang",
      far(#{}, #{longest => 22 * ?MS, over => 1}, 89 * ?MS), #{}, fail},
     {"one call, and ordinary Erlang has had the like",
      far(#{}, #{longest => 23 * ?MS, over => 1}, 89 * ?MS), #{}, unsure},
     {"each of nine calls, but one is not so far over it",
      far(#{calls => 9, over => 9, least => 2 * ?MS}, #{over => 9}, 89 * ?MS), #{}, unsure},
     {"each of nine calls", far(#{calls => 9, over => 9}, #{over => 9}, 89 * ?MS), #{}, fail},
     {"one of many is the machine's", blocks(#{over => 1, over_part => 0.9}), #{}, pass},
     {"one of few may be the function's", blocks(#{calls => 9, over => 1, over_part => 0.9}), #{},
      unsure},
     {"a twentieth of the time, in every call",
      blocks(#{over => 10, over_part => 0.05}), #{}, fail},
     {"just over it", blocks(#{over => 10, over_part => 0.051}), #{}, fail},
     {"however rare, in every call", blocks(#{over => 10, over_part => 0.0001}), #{}, fail},
     {"in nine of ten", blocks(#{over => 9, over_part => 0.01}), #{}, fail},
     {"in half of the calls, more than the machine makes that was not seen to make any",
      blocks(#{over => 6, over_part => 0.01}), #{}, fail},
     {"in half of the calls, which the machine could have made",
      blocks(#{over => 5, over_part => 0.01}), #{}, pass},
     {"in every call, but so the machine does in as much time",
      blocks(#{over => 9, over_part => 0.01}, #{over => 2}), #{}, unsure},
     {"in every call, and the machine seldom does",
      blocks(#{over => 9, over_part => 0.01}, #{over => 1}), #{}, fail},
     {"three calls, each of them", blocks(#{calls => 3, over => 3, over_part => 0.01}), #{}, fail},
     {"two calls, each of them", blocks(#{calls => 2, over => 2, over_part => 0.01}), #{},
      unsure},
     {"one call, with a rare one", blocks(#{calls => 1, over => 1, over_part => 0.01}), #{},
      unsure},
     {"a rare one in every call that is close to the limit",
      blocks(#{close => 10, close_part => 0.01}), #{}, unsure},
     {"in half of the calls", blocks(#{close => 5, close_part => 0.01}), #{}, pass},
     {"few, and less than half of the time: noise could do that",
      blocks(#{over => 2, over_part => 0.5}), #{}, unsure},
     {"few, but more than half of the time", blocks(#{over => 2, over_part => 0.51}), #{}, fail},
     {"one more than a few", blocks(#{over => 3, over_part => 0.3}), #{}, fail},
     {"ordinary Erlang a quarter as much",
      blocks(#{over => 10, over_part => 0.8}, #{over_part => 0.2, over => 1}), #{}, unsure},
     {"ordinary Erlang less than a quarter",
      blocks(#{over => 10, over_part => 0.8}, #{over_part => 0.19, over => 1}), #{}, fail},
     {"as often as the machine makes it, by time spent",
      blocks(#{over => 6, over_part => 0.4}, #{over_part => 0.05, over => 1}), #{}, unsure},
     {"more often", blocks(#{over => 7, over_part => 0.4}, #{over_part => 0.05, over => 1}), #{},
      fail},
     {"between the limit and what is surely over", blocks(#{close_part => 0.06}), #{}, unsure},
     {"a twentieth of the time close to it", blocks(#{close_part => 0.05}), #{}, pass},
     {"waived", blocks(#{over => 10, over_part => 0.9}), #{waive => #{block => "why"}}, waived},
     {"waived, but good", blocks(#{}), #{waive => #{block => "why"}}, pass}].

first() ->
    [{"short", firsts(100000, 1), #{}, pass},
     {"at what is within the limit", firsts(1250000, 1), #{}, pass},
     {"close to it", firsts(1500000, 1), #{}, unsure},
     {"over it, in one node", firsts(1500001, 1), #{}, unsure},
     {"over it, in several", firsts(1500001, 3), #{}, warn},
     {"over it, where that decides", firsts(1500001, 3), #{strict => true}, fail},
     {"over a limit that was given", firsts(100000, 3), #{limit_ns => 25000}, warn},
     {"as long as later ones", firsts(20 * ?MS, 3, 10 * ?MS), #{}, pass},
     {"longer than later long ones", firsts(20 * ?MS + 1, 3, 10 * ?MS), #{}, warn},
     {"not traced", blocks(#{}), #{}, unsure},
     {"not measured", #{}, #{}, unsure}].

garbage() ->
    [{"short", left([1000], [2000], []), #{}, pass},
     {"at what is within the limit", left([1000], [1250000], []), #{}, pass},
     {"close to it", left([1500000], [1000], []), #{}, unsure},
     {"over it at a collection", left([1500001], [1000], []), #{}, fail},
     {"over it at a kill", left([1000], [1500001], [1000]), #{}, fail},
     {"over a limit that was given", left([100000], [1000], []), #{limit_ns => 25000}, fail},
     {"in one of three rounds", left([1000, 90 * ?MS, 1000], [1000, 1000, 1000], []), #{}, pass},
     {"in two of three", left([1000, 90 * ?MS, 90 * ?MS], [1000, 1000, 1000], []), #{}, fail},
     {"twice what Erlang's takes", left([1000], [20 * ?MS], [10 * ?MS]), #{}, pass},
     {"more than that", left([1000], [20 * ?MS + 1], [10 * ?MS]), #{}, fail},
     {"waived", left([9 * ?MS], [1], []), #{waive => #{destructor => "known"}}, waived},
     {"could not be measured", #{unmeasured => #{destructor => <<"x">>}}, #{}, unsure},
     {"not measured", #{}, #{}, unsure}].

charge() ->
    [{"as much as the documentation asks", charged(1000, ?MS), #{}, pass},
     {"a little less", charged(999, ?MS), #{}, fail},
     {"little, but short", charged(3, 99999), #{}, pass},
     {"little, and no longer short", charged(3, 100000), #{}, fail},
     {"nothing at all for a ms", charged(0, ?MS), #{}, fail},
     {"far more than Erlang", charged(10000000, ?MS), #{}, pass},
     {"on dirty schedulers", charged(1, 100 * ?MS, #{normal => 0.4, dirty => 0.6}), #{}, pass},
     {"half there", charged(1, 100 * ?MS, #{normal => 0.5, dirty => 0.5}), #{}, fail},
     {"waits, and uses no scheduler", charged(1, 100 * ?MS, #{normal => 0.009, dirty => 0}), #{},
      pass},
     {"waits, but works for a ms", charged(1, 100 * ?MS, #{normal => 0.01, dirty => 0}), #{}, fail},
     {"works for a short part of its time", charged(1, ?MS, #{normal => 0.09, dirty => 0}), #{},
      pass},
     {"sleeps on the scheduler", charged(10, 100 * ?MS, #{normal => 1, dirty => 0}), #{}, fail},
     {"not measured", #{}, #{}, unsure}].

share() ->
    [{"at the limit", #{share => shares(0.2)}, #{}, pass},
     {"below it", #{share => shares(0.199)}, #{}, warn},
     {"below it, where that decides", #{share => shares(0.199)}, #{strict => true}, fail},
     {"waived", #{share => shares(0.1)}, #{strict => true, waive => #{unfair => <<"w">>}}, waived},
     {"not measured", #{}, #{}, unsure}].

delay() ->
    Slow = [30 * ?MS, 31 * ?MS, 32 * ?MS, 33 * ?MS],
    Dirty = #{slices => traced(0, 1)},
    [{"as idle", delays([?MS, ?MS, ?MS, ?MS]), #{}, pass},
     {"always over", delays(Slow), #{}, fail},
     {"always over, on dirty schedulers", maps:merge(delays(Slow), Dirty), #{}, warn},
     {"the same, strict", maps:merge(delays(Slow), Dirty), #{strict => true}, fail},
     {"at the limit beside Erlang's 2 ms", delays([12 * ?MS || _ <- Slow]), #{}, pass},
     {"just over it", delays([12 * ?MS + 1 || _ <- Slow]), #{}, fail},
     {"but for one window", delays([11 * ?MS | tl(Slow)]), #{}, unsure},
     {"but for one window, on dirty schedulers",
      maps:merge(delays([11 * ?MS | tl(Slow)]), Dirty), #{}, warn},
     {"in one window", delays([11 * ?MS, 11 * ?MS, 11 * ?MS, 90 * ?MS]), #{}, pass},
     {"one window beside Erlang was as late",
      delays(Slow, [2 * ?MS, 2 * ?MS, 2 * ?MS, 30 * ?MS]), #{}, unsure},
     {"as beside Erlang that builds terms as large", sized(Slow, [23 * ?MS || _ <- Slow]), #{},
      pass},
     {"more than that", sized(Slow, [21 * ?MS || _ <- Slow]), #{}, unsure},
     {"more than twice as much", sized(Slow, [10 * ?MS || _ <- Slow]), #{}, fail},
     {"in all but one window, but so is Erlang",
      sized([11 * ?MS | tl(Slow)], [23 * ?MS || _ <- Slow]), #{}, pass},
     {"no process ran", #{delay => #{beside => unanswered}}, #{}, fail},
     {"could not be measured", #{unmeasured => #{latency => <<"x">>}}, #{}, unsure},
     {"not measured", #{}, #{}, unsure}].

kill() ->
    At = fun(Stops) -> kills(#{stop_samples => Stops}) end,
    Beside = fun(Stop, Control) -> kills(#{stop_samples => [Stop], control_samples => Control}) end,
    [{"at once", At([1000, 1000, 1000, 1000]), #{}, pass},
     {"a quarter of them late", At([0, 0, 0, 50 * ?MS]), #{}, pass},
     {"more than a quarter", At([0, 0, 50 * ?MS, 50 * ?MS]), #{}, warn},
     {"at the limit", At([10 * ?MS]), #{}, pass},
     {"a little over it", At([10 * ?MS + 1]), #{strict => true}, unsure},
     {"over it, where that decides", At([15 * ?MS + 2001]), #{strict => true}, fail},
     {"late, as ordinary Erlang is", Beside(20 * ?MS, [0, 20 * ?MS]), #{}, unsure},
     {"late, and one kill of ordinary Erlang was", Beside(20 * ?MS, [0, 0, 0, 3 * ?MS]), #{},
      unsure},
     {"late by twice as much, and the limit", Beside(55 * ?MS, [20 * ?MS]), #{}, unsure},
     {"by more than that", Beside(55 * ?MS + 1, [0, 20 * ?MS]), #{}, warn},
     {"late, and so is Erlang that builds as much",
      large(Beside(20 * ?MS, [20 * ?MS])), #{}, unsure},
     {"in time, and Erlang was not", Beside(1000, [500 * ?MS]), #{}, pass},
     {"never stopped, and Erlang late", kills(#{unstopped => 1, control_samples => [500 * ?MS]}),
      #{}, warn},
     {"never stopped", kills(#{unstopped => 1}), #{}, warn},
     {"never stopped, any of them", kills(#{unstopped => 2, stop_samples => []}), #{strict => true},
      fail},
     {"threads at the limit", kills(#{threads_cpu => 20 * ?MS}), #{}, pass},
     {"threads over it", kills(#{threads_cpu => 20 * ?MS + 1}), #{}, warn},
     {"not measured", #{}, #{}, unsure}].

leak() ->
    [{"none", lost(0.0, 1000.0), #{}, pass},
     {"in every call", alone(10, 1.0e6), #{}, fail},
     {"what could not be seen", lost(1000.0, 1000.0), #{}, pass},
     {"more than that", lost(1001.0, 1000.0), #{}, fail},
     {"killed too seldom", lost(undefined, 1000.0), #{}, unsure},
     {"waived", lost(1001.0, 1000.0), #{waive => #{leak => "known"}}, waived},
     {"not measured", #{}, #{}, unsure}].

%% ---- what is said ----

sentences_name_the_figures_test_() ->
    [?_assertEqual(Sentence, maps:get(sentence, verdict(Property, Figures, Opts)))
     || {Property, Figures, Opts, Sentence} <-
            [{block, blocks(#{over => 10, over_part => 0.9, repeated => 20 * ?MS}), #{},
              <<"blocks its scheduler for 20.0 ms without yielding (limit 1.00 ms), in 10 of 10 "
                "calls">>},
             {first_call, firsts(2 * ?MS, 3), #{},
              <<"the first call in a node blocks its scheduler for 2.00 ms (limit 1.00 ms), in "
                "each of 3 nodes; later ones for 1.00 us">>},
             {destructor, left([20 * ?MS], [1000], []), #{},
              <<"garbage of a call blocks a scheduler for 20.0 ms when it is collected (limit "
                "1.00 ms; median of 1)">>},
             {destructor, left([1000], [20 * ?MS], [15 * ?MS]), #{},
              <<"garbage of a call blocks a scheduler for 20.0 ms when it is freed as its "
                "owner dies; so does a term of 1.00 kB made in Erlang (15.0 ms)">>},
             {undercharge, charged(5, 2 * ?MS), #{},
              <<"charged 5 reductions for 2.00 ms, 1/24000 of what ordinary Erlang is charged">>},
             {undercharge, charged(0, 2 * ?MS), #{},
              <<"charged 0 reductions for 2.00 ms, nothing of what ordinary Erlang is charged">>},
             {undercharge, charged(1, 100 * ?MS, #{normal => 0.009, dirty => 0}), #{},
              <<"charged 1 reductions for 900 us on a scheduler: it waits for most of its 100 "
                "ms">>},
             {unfair, #{share => shares(0.1)}, #{},
              <<"leaves a busy Erlang process 10 % of the scheduler (an Erlang process leaves "
                "50 %)">>},
             {leak, lost(2.0e6, 1000.0), #{},
              <<"10 kills left 2.00 MB that were never freed, 200 kB a kill; it is not known "
                "whether calls that are not killed lose it too">>},
             %% Two calls have returned before each of ten kills, and a third has begun.
             {leak, alone(100, 0.0), #{},
              <<"10 kills left 3.00 MB that were never freed, 300 kB a kill; 100 calls that were "
                "not killed left nothing">>},
             {leak, alone(100, 1.0e7), #{},
              <<"loses 100 kB in every call: 100 that were not killed left 10.0 MB that were never "
                "freed">>},
             {leak, alone(100, 6.6e6), #{},
              <<"loses 66.0 kB in every call: 100 that were not killed left 6.60 MB; and more when "
                "killed: 10 kills left 3.00 MB that were never freed, 300 kB a kill">>},
             %% As much as was lost by kills would be 100 kB: it would not be seen.
             {leak, alone(1, 0.0), #{},
              <<"10 kills left 3.00 MB that were never freed, 300 kB a kill; it is not known "
                "whether calls that are not killed lose it too">>},
             {block, far(#{}, #{}, 89 * ?MS), #{},
              <<"blocks its scheduler for 90.0 ms without yielding (limit 1.00 ms), in 1 of 1 "
                "calls">>},
             {crash, #{error => <<"raises error:oops"/utf8>>}, #{}, <<"raises error:oops">>},
             {block, #{error => <<"x">>}, #{}, <<"not measured: the call fails">>}]].

a_verdict_has_its_size_and_its_evidence_test() ->
    #{size := 77, evidence := Evidence} = verdict(undercharge, charged(5, 2 * ?MS), #{}),
    ?assertMatch(#{reductions_per_call := 5, call_ns := 2000000, reductions_per_ms := 2.5,
                   erlang_per_ms := 60000}, Evidence).

every_property_has_one_verdict_on_every_size_test() ->
    Properties = [P || #{property := P} <- ?V:properties()],
    ?assertEqual(Properties, [P || #{property := P} <- ?V:judge(#{size => 1}, #{})]).

%% ---- several sizes ----

the_worst_size_is_the_verdict_test() ->
    Order = [fail, warn, unsure, waived, pass],
    [?assertMatch([#{status := A}], ?V:worst([said(unkillable, B, 1), said(unkillable, A, 2)], #{}))
     || {A, Bs} <- [{A, lists:dropwhile(fun(S) -> S =/= A end, Order)} || A <- Order], B <- Bs],
    ?assertMatch([#{property := block, size := 2}, #{property := leak, size := 1}],
                 ?V:worst([said(leak, fail, 1), said(block, pass, 1), said(leak, pass, 2),
                           said(block, fail, 2)], #{})),
    ?assertMatch([#{size := 2}], ?V:worst([said(unkillable, warn, 2), said(unkillable, warn, 1)],
                                          #{})),
    ?assertEqual([], ?V:worst([], #{})).

%% The exit code must have its reason among what is shown.
a_doubt_that_decides_is_shown_with_the_warning_of_another_size_test() ->
    Verdicts = [(said(latency, unsure, 1000))#{sentence := <<"who knows">>},
                (said(latency, warn, 2000))#{sentence := <<"late">>}],
    ?assertMatch([#{status := unsure, size := 1000,
                    sentence := <<"who knows; with 2.00 kB: late">>}], ?V:worst(Verdicts, #{})).

%% ---- the exit code ----

the_exit_code_is_the_worst_that_decides_test_() ->
    [?_assertEqual({Verdicts, Opts, Code},
                   {Verdicts, Opts, ?V:exit_code([said(P, S, 1) || {P, S} <- Verdicts], Opts)})
     || {Verdicts, Opts, Code} <-
            [{[], #{}, 0},
             {[{block, pass}, {unfair, warn}, {leak, waived}], #{}, 0},
             {[{block, pass}, {leak, fail}], #{}, 1},
             {[{block, unsure}], #{}, 3},
             {[{block, unsure}, {leak, fail}], #{}, 1},
             {[{unfair, unsure}], #{}, 0},
             {[{unkillable, unsure}], #{}, 0},
             {[{unkillable, unsure}], #{strict => true}, 3},
             {[{unfair, fail}], #{strict => true}, 1}]].

%% ---- figures as they come from a check ----

status(Property, Figures, Opts) ->
    maps:get(status, verdict(Property, Figures, Opts)).

verdict(Property, Figures, Opts) ->
    hd([V || #{property := P} = V <- ?V:judge(Figures#{size => 77}, Opts), P =:= Property]).

said(Property, Status, Size) ->
    #{property => Property, status => Status, size => Size, sentence => <<>>, evidence => #{}}.

time(Ns) ->
    #{count => 1, median => Ns, spread => 0.0, shortest => Ns, samples => [Ns]}.

blocks(Block) ->
    blocks(Block, #{}).

%% Ten calls that took a second, beside a control that took as long.
blocks(Block, Control) ->
    Calls = #{calls => 10, over => 0, close => 0, over_part => 0.0, close_part => 0.0,
              longest => ?MS div 2, repeated => ?MS div 2, least => 0, taken => 0,
              elapsed => 1000 * ?MS},
    #{slices => #{block => maps:merge(Calls, Block),
                  control => maps:merge(Calls, Control)}}.

%% One call that is fair for 0.4 s and then blocks for 90 ms; the first call's block.
far(Block, Control, First) ->
    Blocks = blocks(maps:merge(#{calls => 1, over => 1, over_part => 0.18, longest => 90 * ?MS,
                                repeated => 90 * ?MS, least => 90 * ?MS}, Block), Control),
    case First of
        undefined -> Blocks;
        _ -> Blocks#{first => #{block => First, elapsed => 490 * ?MS, nodes => 3}}
    end.

firsts(Block, Nodes) ->
    firsts(Block, Nodes, 1000).

firsts(Block, Nodes, Later) ->
    First = #{block => Block, elapsed => 2 * Block, nodes => Nodes},
    (blocks(#{repeated => Later}))#{first => First}.

left(Collected, Killed, Control) ->
    #{garbage => #{collected => Collected, killed => Killed, control => Control, bytes => 1000}}.

charged(Reductions, Ns) ->
    charged(Reductions, Ns, #{normal => 1, dirty => 0}).

%% Parts of the time on each kind of scheduler, of ten calls.
charged(Reductions, Ns, #{normal := Normal, dirty := Dirty}) ->
    Scheduled = Ns * (Normal + Dirty),
    #{charge => #{per_call => Reductions, ns => Scheduled,
                  per_ms => Reductions * 1.0e6 / Scheduled,
                  erlang => #{sort => 100000, maps => 60000, binaries => 400000}, ratio => 0.1},
      time => time(Ns),
      slices => traced(10 * Ns * Normal, 10 * Ns * Dirty)}.

traced(Normal, Dirty) ->
    #{normal => #{total => Normal}, dirty => #{total => Dirty}, block => #{calls => 10}}.

shares(Median) ->
    #{sort => Median, maps => Median, binaries => Median, median => Median}.

delays(Windows) ->
    delays(Windows, [2 * ?MS || _ <- Windows]).

delays(Windows, Erlang) ->
    #{delay => #{idle => delay_of([?MS]), erlang => delay_of(Erlang),
                 beside => delay_of(Windows)}}.

sized(Windows, Sized) ->
    #{delay := Delays} = delays(Windows),
    #{delay => Delays#{sized => delay_of(Sized), bytes => 128000000}}.

delay_of(Windows) ->
    #{count => 100, p50 => hd(Windows), p99 => lists:max(Windows), max => lists:max(Windows),
      windows => Windows}.

kills(More) ->
    #{kill => maps:merge(#{count => 4, unstopped => 0, stop_samples => [1000],
                           control_samples => [1000],
                           down => #{median => 500}, threads_cpu => 0}, More)}.

large(#{kill := Kill} = Figures) ->
    Figures#{kill := Kill#{control_bytes => 128000000}}.

lost(Total, Resolution) ->
    PerKill = case Total of undefined -> undefined; _ -> Total / 10 end,
    #{leak => #{kills => 10, per_kill => PerKill, total => Total, resolution => Resolution,
                memory => [#{kills => 10, calls => 20}]}}.

%% Kills that lost 3 MB, and as many calls that were not killed, with what they lost.
alone(Calls, Total) ->
    #{leak := Leak} = lost(3.0e6, 131072.0),
    #{leak => Leak#{alone => #{calls => Calls, per_call => Total / Calls, total => Total,
                               resolution => 131072.0}}}.
