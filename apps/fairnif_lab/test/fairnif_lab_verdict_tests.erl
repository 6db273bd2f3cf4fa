-module(fairnif_lab_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

-define(V, fairnif_lab_verdict).
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
    ?assertMatch(#{hold := {1000000, true}, share := {0.2, false}, kill := {10000000, false},
                   delay := {10000000, true}, first := {1000000, false},
                   garbage := {1000000, true}, charge := {1000, true}, leak := {undefined, true},
                   returns := {undefined, true}}, Limits(#{})),
    ?assertMatch(#{hold := {5000, true}, share := {0.2, true}, kill := {_, true}},
                 Limits(#{limit_ns => 5000, strict => true})).

%% ---- figures to status: {What it is, figures, options, expected of which property} ----

from_figures_to_a_status_test_() ->
    [{What, ?_assertEqual({Property, Status}, {Property, status(Property, Figures, Opts)})}
     || {Property, Rows} <- [{returns, returns()}, {hold, hold()}, {charge, charge()},
                             {share, share()}, {delay, delay()}, {kill, kill()}, {leak, leak()},
                             {first, first()}, {garbage, garbage()}],
        {What, Figures, Opts, Status} <- Rows].

returns() ->
    [{"was timed", #{time => time(1000)}, #{}, pass},
     {"an error", #{error => <<"raises error:x">>}, #{}, fail},
     {"an error beside figures", #{error => <<"x">>, time => time(1000)}, #{}, fail},
     {"nothing known", #{}, #{}, cannot_say}].

hold() ->
    [{"no stretch over the limit", holds(#{}), #{}, pass},
     {"no call seen", holds(#{calls => 0}), #{}, cannot_say},
     {"not measured", #{}, #{}, cannot_say},
     {"not measured, since the call fails", #{error => <<"x">>}, #{}, cannot_say},
     {"all calls over", holds(#{over => 10, over_part => 0.9, repeated => 20 * ?MS}), #{}, fail},
     {"one long call, which is over", holds(#{calls => 1, over => 1, over_part => 0.9}), #{}, fail},
     {"one long call, over for a part of it that the machine could have made",
      holds(#{calls => 1, over => 1, over_part => 0.3}), #{}, cannot_say},
     {"one of many is the machine's", holds(#{over => 1, over_part => 0.9}), #{}, pass},
     {"one of few may be the function's", holds(#{calls => 9, over => 1, over_part => 0.9}), #{},
      cannot_say},
     {"a twentieth of the time, in every call",
      holds(#{over => 10, over_part => 0.05}), #{}, fail},
     {"just over it", holds(#{over => 10, over_part => 0.051}), #{}, fail},
     {"however rare, in every call", holds(#{over => 10, over_part => 0.0001}), #{}, fail},
     {"in nine of ten", holds(#{over => 9, over_part => 0.01}), #{}, fail},
     {"in half of the calls, more than the machine makes that was not seen to make any",
      holds(#{over => 6, over_part => 0.01}), #{}, fail},
     {"in half of the calls, which the machine could have made",
      holds(#{over => 5, over_part => 0.01}), #{}, pass},
     {"in every call, but so the machine does in as much time",
      holds(#{over => 9, over_part => 0.01}, #{over => 2}), #{}, cannot_say},
     {"in every call, and the machine seldom does",
      holds(#{over => 9, over_part => 0.01}, #{over => 1}), #{}, fail},
     {"three calls, each of them", holds(#{calls => 3, over => 3, over_part => 0.01}), #{}, fail},
     {"two calls, each of them", holds(#{calls => 2, over => 2, over_part => 0.01}), #{},
      cannot_say},
     {"one call, with a rare one", holds(#{calls => 1, over => 1, over_part => 0.01}), #{},
      cannot_say},
     {"a rare one in every call that is close to the limit",
      holds(#{close => 10, close_part => 0.01}), #{}, cannot_say},
     {"in half of the calls", holds(#{close => 5, close_part => 0.01}), #{}, pass},
     {"few, and less than half of the time: noise could do that",
      holds(#{over => 2, over_part => 0.5}), #{}, cannot_say},
     {"few, but more than half of the time", holds(#{over => 2, over_part => 0.51}), #{}, fail},
     {"one more than a few", holds(#{over => 3, over_part => 0.3}), #{}, fail},
     {"ordinary Erlang a quarter as much",
      holds(#{over => 10, over_part => 0.8}, #{over_part => 0.2, over => 1}), #{}, cannot_say},
     {"ordinary Erlang less than a quarter",
      holds(#{over => 10, over_part => 0.8}, #{over_part => 0.19, over => 1}), #{}, fail},
     {"as often as the machine makes it, by time spent",
      holds(#{over => 6, over_part => 0.4}, #{over_part => 0.05, over => 1}), #{}, cannot_say},
     {"oftener", holds(#{over => 7, over_part => 0.4}, #{over_part => 0.05, over => 1}), #{},
      fail},
     {"between the limit and what is surely over", holds(#{close_part => 0.06}), #{}, cannot_say},
     {"a twentieth of the time close to it", holds(#{close_part => 0.05}), #{}, pass},
     {"waived", holds(#{over => 10, over_part => 0.9}), #{waive => #{hold => "why"}}, waived},
     {"waived, but good", holds(#{}), #{waive => #{hold => "why"}}, pass}].

first() ->
    [{"short", firsts(100000, 1), #{}, pass},
     {"at what is within the limit", firsts(1250000, 1), #{}, pass},
     {"close to it", firsts(1500000, 1), #{}, cannot_say},
     {"over it, in one node", firsts(1500001, 1), #{}, cannot_say},
     {"over it, in several", firsts(1500001, 3), #{}, warn},
     {"over it, where that decides", firsts(1500001, 3), #{strict => true}, fail},
     {"over a limit that was given", firsts(100000, 3), #{limit_ns => 25000}, warn},
     {"as long as later ones", firsts(20 * ?MS, 3, 10 * ?MS), #{}, pass},
     {"longer than later long ones", firsts(20 * ?MS + 1, 3, 10 * ?MS), #{}, warn},
     {"not traced", holds(#{}), #{}, cannot_say},
     {"not measured", #{}, #{}, cannot_say}].

garbage() ->
    [{"short", left([1000], [2000], []), #{}, pass},
     {"at what is within the limit", left([1000], [1250000], []), #{}, pass},
     {"close to it", left([1500000], [1000], []), #{}, cannot_say},
     {"over it at a collection", left([1500001], [1000], []), #{}, fail},
     {"over it at a kill", left([1000], [1500001], [1000]), #{}, fail},
     {"over a limit that was given", left([100000], [1000], []), #{limit_ns => 25000}, fail},
     {"in one of three rounds", left([1000, 90 * ?MS, 1000], [1000, 1000, 1000], []), #{}, pass},
     {"in two of three", left([1000, 90 * ?MS, 90 * ?MS], [1000, 1000, 1000], []), #{}, fail},
     {"twice what Erlang's takes", left([1000], [20 * ?MS], [10 * ?MS]), #{}, pass},
     {"more than that", left([1000], [20 * ?MS + 1], [10 * ?MS]), #{}, fail},
     {"waived", left([9 * ?MS], [1], []), #{waive => #{garbage => "known"}}, waived},
     {"could not be measured", #{unmeasured => #{garbage => <<"x">>}}, #{}, cannot_say},
     {"not measured", #{}, #{}, cannot_say}].

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
     {"not measured", #{}, #{}, cannot_say}].

share() ->
    [{"at the limit", #{share => shares(0.2)}, #{}, pass},
     {"below it", #{share => shares(0.199)}, #{}, warn},
     {"below it, where that decides", #{share => shares(0.199)}, #{strict => true}, fail},
     {"waived", #{share => shares(0.1)}, #{strict => true, waive => #{share => <<"w">>}}, waived},
     {"not measured", #{}, #{}, cannot_say}].

delay() ->
    Slow = [30 * ?MS, 31 * ?MS, 32 * ?MS, 33 * ?MS],
    Dirty = #{slices => traced(0, 1)},
    [{"as idle", delays([?MS, ?MS, ?MS, ?MS]), #{}, pass},
     {"always over", delays(Slow), #{}, fail},
     {"always over, on dirty schedulers", maps:merge(delays(Slow), Dirty), #{}, warn},
     {"the same, strict", maps:merge(delays(Slow), Dirty), #{strict => true}, fail},
     {"at the limit beside Erlang's 2 ms", delays([12 * ?MS || _ <- Slow]), #{}, pass},
     {"just over it", delays([12 * ?MS + 1 || _ <- Slow]), #{}, fail},
     {"but for one window", delays([11 * ?MS | tl(Slow)]), #{}, cannot_say},
     {"but for one window, on dirty schedulers",
      maps:merge(delays([11 * ?MS | tl(Slow)]), Dirty), #{}, warn},
     {"in one window", delays([11 * ?MS, 11 * ?MS, 11 * ?MS, 90 * ?MS]), #{}, pass},
     {"one window beside Erlang was as late",
      delays(Slow, [2 * ?MS, 2 * ?MS, 2 * ?MS, 30 * ?MS]), #{}, cannot_say},
     {"as beside Erlang that builds terms as large", sized(Slow, [23 * ?MS || _ <- Slow]), #{},
      pass},
     {"more than that", sized(Slow, [21 * ?MS || _ <- Slow]), #{}, cannot_say},
     {"more than twice as much", sized(Slow, [10 * ?MS || _ <- Slow]), #{}, fail},
     {"in all but one window, but so is Erlang",
      sized([11 * ?MS | tl(Slow)], [23 * ?MS || _ <- Slow]), #{}, pass},
     {"nobody ran", #{delay => #{beside => unanswered}}, #{}, fail},
     {"could not be measured", #{unmeasured => #{delay => <<"x">>}}, #{}, cannot_say},
     {"not measured", #{}, #{}, cannot_say}].

kill() ->
    At = fun(Stops) -> kills(#{stop_samples => Stops}) end,
    Beside = fun(Stop, Control) -> kills(#{stop_samples => [Stop], control_samples => Control}) end,
    [{"at once", At([1000, 1000, 1000, 1000]), #{}, pass},
     {"a quarter of them late", At([0, 0, 0, 50 * ?MS]), #{}, pass},
     {"more than a quarter", At([0, 0, 50 * ?MS, 50 * ?MS]), #{}, warn},
     {"at the limit", At([10 * ?MS]), #{}, pass},
     {"a little over it", At([10 * ?MS + 1]), #{strict => true}, cannot_say},
     {"over it, where that decides", At([15 * ?MS + 2001]), #{strict => true}, fail},
     {"late, as ordinary Erlang is", Beside(20 * ?MS, [0, 20 * ?MS]), #{}, cannot_say},
     {"late, and one kill of ordinary Erlang was", Beside(20 * ?MS, [0, 0, 0, 3 * ?MS]), #{},
      cannot_say},
     {"late by twice as much, and the limit", Beside(55 * ?MS, [20 * ?MS]), #{}, cannot_say},
     {"by more than that", Beside(55 * ?MS + 1, [0, 20 * ?MS]), #{}, warn},
     {"late, and so is Erlang that builds as much",
      large(Beside(20 * ?MS, [20 * ?MS])), #{}, cannot_say},
     {"in time, and Erlang was not", Beside(1000, [500 * ?MS]), #{}, pass},
     {"never stopped, and Erlang late", kills(#{unstopped => 1, control_samples => [500 * ?MS]}),
      #{}, warn},
     {"never stopped", kills(#{unstopped => 1}), #{}, warn},
     {"never stopped, any of them", kills(#{unstopped => 2, stop_samples => []}), #{strict => true},
      fail},
     {"threads at the limit", kills(#{threads_cpu => 20 * ?MS}), #{}, pass},
     {"threads over it", kills(#{threads_cpu => 20 * ?MS + 1}), #{}, warn},
     {"not measured", #{}, #{}, cannot_say}].

leak() ->
    [{"none", lost(0.0, 1000.0), #{}, pass},
     {"what could not be seen", lost(1000.0, 1000.0), #{}, pass},
     {"more than that", lost(1001.0, 1000.0), #{}, fail},
     {"killed too seldom", lost(undefined, 1000.0), #{}, cannot_say},
     {"waived", lost(1001.0, 1000.0), #{waive => #{leak => "known"}}, waived},
     {"not measured", #{}, #{}, cannot_say}].

%% ---- what is said ----

sentences_name_the_figures_test_() ->
    [?_assertEqual(Sentence, maps:get(sentence, verdict(Property, Figures, Opts)))
     || {Property, Figures, Opts, Sentence} <-
            [{hold, holds(#{over => 10, over_part => 0.9, repeated => 20 * ?MS}), #{},
              <<"blocks its scheduler for 20.0 ms without yielding (limit 1.00 ms), in 10 of 10 "
                "calls">>},
             {first, firsts(2 * ?MS, 3), #{},
              <<"the first call in a node blocks its scheduler for 2.00 ms (limit 1.00 ms), in "
                "each of 3 nodes; later ones for 1.00 us">>},
             {garbage, left([20 * ?MS], [1000], []), #{},
              <<"what a call leaves blocks a scheduler for 20.0 ms when it is collected (limit "
                "1.00 ms; median of 1)">>},
             {garbage, left([1000], [20 * ?MS], [15 * ?MS]), #{},
              <<"what a call leaves blocks a scheduler for 20.0 ms when it is freed as its "
                "owner dies; so does a term of 1.00 kB made in Erlang (15.0 ms)">>},
             {charge, charged(5, 2 * ?MS), #{},
              <<"charged 5 reductions for 2.00 ms, 1/24000 of what ordinary Erlang is charged">>},
             {charge, charged(0, 2 * ?MS), #{},
              <<"charged 0 reductions for 2.00 ms, nothing of what ordinary Erlang is charged">>},
             {charge, charged(1, 100 * ?MS, #{normal => 0.009, dirty => 0}), #{},
              <<"charged 1 reductions for 900 us on a scheduler: it waits for most of its 100 "
                "ms">>},
             {share, #{share => shares(0.1)}, #{},
              <<"leaves a busy Erlang process 10 % of the scheduler (an Erlang process leaves "
                "50 %)">>},
             {leak, lost(2.0e6, 1000.0), #{},
              <<"10 kills left 2.00 MB that was never freed, 200 kB a kill">>},
             {returns, #{error => <<"raises error:oops"/utf8>>}, #{}, <<"raises error:oops">>},
             {hold, #{error => <<"x">>}, #{}, <<"not measured: the call fails">>}]].

a_verdict_has_its_size_and_its_evidence_test() ->
    #{size := 77, evidence := Evidence} = verdict(charge, charged(5, 2 * ?MS), #{}),
    ?assertMatch(#{reductions_per_call := 5, call_ns := 2000000, reductions_per_ms := 2.5,
                   erlang_per_ms := 60000}, Evidence).

every_property_has_one_verdict_on_every_size_test() ->
    Properties = [P || #{property := P} <- ?V:properties()],
    ?assertEqual(Properties, [P || #{property := P} <- ?V:judge(#{size => 1}, #{})]).

%% ---- several sizes ----

the_worst_size_is_the_verdict_test() ->
    Order = [fail, cannot_say, warn, waived, pass],
    [?assertMatch([#{status := A}], ?V:worst([said(hold, B, 1), said(hold, A, 2)]))
     || {A, Bs} <- [{A, lists:dropwhile(fun(S) -> S =/= A end, Order)} || A <- Order], B <- Bs],
    ?assertMatch([#{property := hold, size := 2}, #{property := leak, size := 1}],
                 ?V:worst([said(leak, fail, 1), said(hold, pass, 1), said(leak, pass, 2),
                           said(hold, fail, 2)])),
    ?assertEqual([], ?V:worst([])).

%% ---- the exit code ----

the_exit_code_is_the_worst_that_decides_test_() ->
    [?_assertEqual({Verdicts, Opts, Code},
                   {Verdicts, Opts, ?V:exit_code([said(P, S, 1) || {P, S} <- Verdicts], Opts)})
     || {Verdicts, Opts, Code} <-
            [{[], #{}, 0},
             {[{hold, pass}, {share, warn}, {leak, waived}], #{}, 0},
             {[{hold, pass}, {leak, fail}], #{}, 1},
             {[{hold, cannot_say}], #{}, 3},
             {[{hold, cannot_say}, {leak, fail}], #{}, 1},
             {[{share, cannot_say}], #{}, 0},
             {[{kill, cannot_say}], #{}, 0},
             {[{kill, cannot_say}], #{strict => true}, 3},
             {[{share, fail}], #{strict => true}, 1}]].

%% ---- figures as they come from a check ----

status(Property, Figures, Opts) ->
    maps:get(status, verdict(Property, Figures, Opts)).

verdict(Property, Figures, Opts) ->
    hd([V || #{property := P} = V <- ?V:judge(Figures#{size => 77}, Opts), P =:= Property]).

said(Property, Status, Size) ->
    #{property => Property, status => Status, size => Size, sentence => <<>>, evidence => #{}}.

time(Ns) ->
    #{count => 1, median => Ns, spread => 0.0, shortest => Ns, samples => [Ns]}.

holds(Hold) ->
    holds(Hold, #{}).

%% Ten calls that took a second, beside a control that took as long.
holds(Hold, Control) ->
    Calls = #{calls => 10, over => 0, close => 0, over_part => 0.0, close_part => 0.0,
              longest => ?MS div 2, repeated => ?MS div 2, taken => 0, elapsed => 1000 * ?MS},
    #{slices => #{hold => maps:merge(Calls, Hold),
                  control => maps:merge(Calls, Control)}}.

firsts(Hold, Nodes) ->
    firsts(Hold, Nodes, 1000).

firsts(Hold, Nodes, Later) ->
    (holds(#{repeated => Later}))#{first => #{hold => Hold, elapsed => 2 * Hold, nodes => Nodes}}.

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
    #{normal => #{total => Normal}, dirty => #{total => Dirty}, hold => #{calls => 10}}.

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
                memory => []}}.
