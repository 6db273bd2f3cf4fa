%% Every detector, with what it is shown: thresholds from both sides.
-module(fairnif_watch_detector_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, 1000000).

config() -> {ok, Config} = fairnif_watch_config:check(#{}), Config.

%% Shows a detector these observations; what it says to each: `same', or `{Verdict, Issues}'.
shown(Module, Observations) when is_atom(Module) ->
    shown(Module:detector(), Observations);
shown(#{observe := Observe, init := Init} = Detector, Observations) ->
    Limits = fairnif_watch_detector:limits(Detector, config()),
    {Said, _} = lists:mapfoldl(
                  fun(Observation, State) ->
                          case Observe(Observation, Limits, State) of
                              {same, Next} -> {same, Next};
                              {Issues, Next} ->
                                  {{fairnif_watch_detector:verdict(Issues), Issues}, Next}
                          end
                  end, Init, Observations),
    Said.

pool(Kind) -> fairnif_watch_detect_pool:detector(Kind).

verdicts(Module, Observations) ->
    [case Said of same -> same; {Verdict, _} -> Verdict end || Said <- shown(Module, Observations)].

last_issue(Module, Observations) ->
    {_, [Issue | _]} = lists:last(shown(Module, Observations)),
    Issue.

%% A second: of four online schedulers that are all in use, nothing waits, nothing is native.
second(N) -> second(N, #{}).

second(N, Changes) ->
    {sample, maps:merge(#{at => N * ?S, interval_ms => 1000, threads => threads([1, 1, 1, 1]),
                          online => #{normal => 4, dirty_cpu => 2, dirty_io => 10},
                          looks => looks(10, [0, 0, 0, 0]), reductions => 100000000,
                          cpu_ns => 4000000000, top => [], waits => #{},
                          dirty => #{jobs => [], dead => []}}, Changes)}.

threads(Busy) ->
    [#{kind => normal, number => N, busy => B * 1.0, state => busy, cpu_ns => 0, fairnif => none}
     || {N, B} <- lists:zip(lists:seq(1, length(Busy)), Busy)].

looks(Count, Queues) -> looks(Count, Queues, {0, 0}, {0, 0}).

looks(Count, Queues, Cpu, Io) ->
    lists:duplicate(Count, #{queues => Queues, dirty_cpu => Cpu, dirty_io => Io}).

seconds(Count, Changes) -> [second(N, Changes) || N <- lists:seq(1, Count)].

%% All of them.

every_detector_says_what_it_is_and_why_its_thresholds_are_test_() ->
    [{atom_to_list(Name),
      fun() ->
              ?assert(is_binary(LooksFor)),
              ?assert(is_binary(Remedy)),
              ?assertNotEqual([], Thresholds),
              [begin
                   ?assert(byte_size(Reason) > 20),
                   ?assert(is_number(Value) orelse element(1, Value) =:= config)
               end || {_, Value, _, Reason} <- Thresholds],
              ?assert(lists:all(fun is_number/1,
                                maps:values(fairnif_watch_detector:limits(Detector, config()))))
      end} || #{name := Name, looks_for := LooksFor, remedy := Remedy,
                thresholds := Thresholds} = Detector <- fairnif_watch_detector:all()].

no_detector_finds_anything_on_a_node_that_only_works_test_() ->
    [{atom_to_list(Name),
      ?_assertEqual([], [V || V <- verdicts(Detector, seconds(30, #{})), V =/= ok, V =/= same])}
     || #{name := Name} = Detector <- fairnif_watch_detector:all()].

every_detector_stands_a_sample_without_threads_test_() ->
    [{atom_to_list(Name),
      ?_assertEqual([], [V || V <- verdicts(Detector,
                                            seconds(10, #{threads => [], cpu_ns => none})),
                              V =/= ok])}
     || #{name := Name} = Detector <- fairnif_watch_detector:all()].

%% scheduler_blocked.

blocked(Id, Ms) -> blocked(Id, Ms, #{}).

blocked(Id, Ms, Changes) ->
    {event, maps:merge(#{event => blocked, id => Id, kind => normal, number => 1, since => 0,
                         blocked_ns => Ms * 1000000, cpu_ns => Ms * 1000000, delay_ns => 0,
                         state => running, syscall => none, fairnif => none, process => none,
                         cause => native, stack => []}, Changes), 100 * ?S}.

unblocked(Id, Ms) -> blocked(Id, Ms, #{event => unblocked}).

a_blocked_scheduler_is_a_warning_and_from_error_ms_on_an_error_test() ->
    Severity = fun(Ms) -> maps:get(severity, last_issue(fairnif_watch_detect_blocked,
                                                        [blocked(1, Ms)])) end,
    ?assertEqual([warning, warning, error, error], [Severity(Ms) || Ms <- [10, 99, 100, 5000]]).

a_block_ends_when_it_is_released_with_how_long_it_was_test() ->
    ?assertEqual([warn, ok],
                 verdicts(fairnif_watch_detect_blocked, [blocked(1, 10), unblocked(1, 42)])),
    ?assertMatch(#{ongoing := false, duration_ms := 42.0,
                   sentence := <<"Scheduler 1 was blocked for 42 ms by an unknown call.">>},
                 last_issue(fairnif_watch_detect_blocked, [blocked(1, 10), unblocked(1, 42)])).

two_blocks_are_two_findings_test() ->
    [_, {warn, Both}, {warn, Issues}] =
        shown(fairnif_watch_detect_blocked,
              [blocked(1, 10), blocked(2, 20, #{number => 2}), unblocked(1, 30)]),
    ?assertEqual(2, length(Both)),
    ?assertEqual([{1, false}, {2, true}],
                 lists:sort([{Key, Ongoing} || #{key := Key, ongoing := Ongoing} <- Issues])).

a_scheduler_is_blocked_by_one_call_at_a_time_test() ->
    [_, {warn, Issues}] = shown(fairnif_watch_detect_blocked, [blocked(1, 10), blocked(2, 10)]),
    ?assertMatch([#{key := 2}], Issues).

a_block_whose_end_was_lost_is_forgotten_test() ->
    Seen = verdicts(fairnif_watch_detect_blocked,
                    [blocked(1, 10)] ++ [second(N) || N <- [101, 104, 105, 106]]),
    ?assertEqual([warn, warn, warn, warn, ok], Seen).

a_dirty_job_is_never_a_blocked_scheduler_test() ->
    ?assertEqual([same], verdicts(fairnif_watch_detect_blocked,
                                  [blocked(1, 60000, #{kind => dirty_cpu})])).

one_that_sleeps_in_native_code_says_in_which_call_test() ->
    Issue = last_issue(fairnif_watch_detect_blocked,
                       [blocked(1, 500, #{state => sleeping, syscall => {35, nanosleep}})]),
    ?assertMatch(#{sentence := <<"Scheduler 1 has been blocked for 500 ms by an unknown call, "
                                 "asleep in the system call nanosleep.">>}, Issue).

what_a_thread_does_after_its_release_is_not_what_blocked_it_test() ->
    Frame = #{in => library, library => <<"/my.so">>, symbol => <<"f">>, offset => 1,
              nif => {my, f, 0}},
    Issue = last_issue(fairnif_watch_detect_blocked,
                       [blocked(1, 10, #{stack => [Frame]}),
                        blocked(1, 300, #{event => unblocked, state => sleeping,
                                       syscall => {202, futex}})]),
    ?assertMatch(#{sentence := <<"Scheduler 1 was blocked for 300 ms by my:f/0.">>,
                   culprit := #{mfa := {my, f, 0}, syscall := none}, stack := [Frame]}, Issue).

%% collapse.

collapsed(Busy, Queues, Looks) -> #{threads => threads(Busy), looks => looks(Looks, Queues)}.

sleeping_while_work_waits_is_a_collapse_after_three_seconds_test() ->
    Second = collapsed([1, 0, 0, 0], [9, 0, 0, 0], 10),
    ?assertEqual([ok, ok, error, error],
                 verdicts(fairnif_watch_detect_asleep, seconds(4, Second))),
    ?assertMatch(#{evidence := #{asleep := [2, 3, 4]}, severity := error,
                   sentence := <<"3 of 4 schedulers sleep while 9 processes wait.">>},
                 last_issue(fairnif_watch_detect_asleep, seconds(3, Second))).

collapse_thresholds_from_both_sides_test() ->
    Collapses = fun(Busy, Queues, Looks) ->
                        lists:last(verdicts(fairnif_watch_detect_asleep,
                                            seconds(3, collapsed(Busy, Queues, Looks))))
                end,
    ?assertEqual([error, ok], [Collapses([1, B, 1, 1], [9, 0, 0, 0], 10) || B <- [0.09, 0.1]]),
    ?assertEqual([error, ok], [Collapses([1, 0, 1, 1], [9, 0, 0, 0], L) || L <- [5, 4]]),
    ?assertEqual([error, ok], [Collapses([1, 0, 1, 1], [N, 0, 0, 0], 10) || N <- [4, 3]]),
    %% Its own queue is not empty: it is on its way.
    ?assertEqual(ok, Collapses([1, 0, 1, 1], [9, 1, 0, 0], 10)),
    ?assertEqual(ok, Collapses([1], [9], 10)).

a_scheduler_that_is_offline_is_not_asleep_test() ->
    Off = [case T of #{number := 2} -> T#{state := offline}; _ -> T end
           || T <- threads([1, 0, 1, 1])],
    Second = #{threads => Off, looks => looks(10, [9, 0, 0, 0])},
    ?assertEqual([ok, ok, ok], verdicts(fairnif_watch_detect_asleep, seconds(3, Second))).

one_second_in_which_all_work_restarts_the_count_test() ->
    Bad = collapsed([1, 0, 0, 0], [9, 0, 0, 0], 10),
    ?assertEqual([ok, ok, ok, ok, ok, error],
                 verdicts(fairnif_watch_detect_asleep,
                          [second(1, Bad), second(2, Bad), second(3), second(4, Bad),
                           second(5, Bad), second(6, Bad)])).

%% imbalance.

one_long_queue_is_an_imbalance_after_five_seconds_test() ->
    Second = #{looks => looks(10, [40, 2, 1, 3])},
    ?assertEqual([ok, ok, ok, ok, warn],
                 verdicts(fairnif_watch_detect_imbalance, seconds(5, Second))),
    ?assertMatch(#{subject := {scheduler, 1}, severity := warning},
                 last_issue(fairnif_watch_detect_imbalance, seconds(5, Second))).

of_an_odd_number_of_queues_the_middle_one_counts_test() ->
    Second = #{looks => looks(10, [1, 30, 40])},
    ?assertEqual([ok], lists:usort(verdicts(fairnif_watch_detect_imbalance, seconds(8, Second)))).

imbalance_thresholds_from_both_sides_test() ->
    Says = fun(Queues) -> lists:last(verdicts(fairnif_watch_detect_imbalance,
                                              seconds(5, #{looks => looks(10, Queues)}))) end,
    ?assertEqual([warn, ok], [Says([N, 0, 1, 0]) || N <- [10, 9]]),
    ?assertEqual([warn, ok], [Says([N, 5, 5, 5]) || N <- [20, 19]]),
    ?assertEqual(ok, Says([50])).

a_queue_that_moves_about_is_no_imbalance_test() ->
    Looks = looks(5, [40, 1, 1, 1]) ++ looks(5, [1, 40, 1, 1]),
    ?assertEqual(ok, lists:last(verdicts(fairnif_watch_detect_imbalance,
                                         seconds(9, #{looks => Looks})))).

with_an_idle_scheduler_it_is_for_collapse_to_say_test() ->
    Second = #{looks => looks(10, [40, 0, 0, 0]), threads => threads([1, 0.4, 1, 1])},
    ?assertEqual(ok, lists:last(verdicts(fairnif_watch_detect_imbalance, seconds(9, Second)))).

without_the_threads_an_imbalance_is_unconfirmed_test() ->
    Second = #{looks => looks(10, [40, 0, 0, 0]), threads => []},
    ?assertEqual(unconfirmed, lists:last(verdicts(fairnif_watch_detect_imbalance,
                                                  seconds(5, Second)))).

%% As without the native part: not 0, which would be asleep.
what_is_not_known_to_be_busy_is_not_asleep_test() ->
    Second = #{looks => looks(10, [40, 0, 0, 0]),
               threads => [T#{busy => none, cpu_ns => none} || T <- threads([1, 1, 1, 1])]},
    ?assertEqual(ok, lists:last(verdicts(fairnif_watch_detect_asleep, seconds(9, Second)))),
    ?assertEqual(unconfirmed, lists:last(verdicts(fairnif_watch_detect_imbalance,
                                                  seconds(5, Second)))).

%% The dirty pools.

full(dirty_cpu = Kind, Wait) ->
    #{looks => looks(10, [0], {3, 5}, {0, 0}), waits => waits(Kind, Wait)};
full(dirty_io = Kind, Wait) ->
    #{looks => looks(10, [0], {0, 0}, {3, 13}), waits => waits(Kind, Wait)}.

waits(_, none) -> #{};
waits(Kind, Wait) -> #{Kind => Wait}.

a_full_pool_is_a_finding_by_how_long_a_job_waits_test_() ->
    [{lists:flatten(io_lib:format("~p ~p", [Kind, Wait])),
      ?_assertEqual(Wanted, [fairnif_watch_detector:verdict(Issues)
                             || {_, Issues} <- [lists:last(shown(pool(Kind),
                                                                 seconds(2, full(Kind, Wait))))]])}
     || Kind <- [dirty_cpu, dirty_io],
        {Wait, Wanted} <- [{{measured, 9.9}, [ok]}, {{measured, 10.0}, [warn]},
                           {{measured, 1900.0}, [error]}, {{at_least, 9.9}, [unconfirmed]},
                           {{at_least, 10.0}, [warn]}, {none, [unconfirmed]}]].

a_pool_is_an_error_from_a_second_of_waiting_on_test() ->
    Severity = fun(Ms) -> maps:get(severity,
                                   last_issue(pool(dirty_cpu),
                                              seconds(2, full(dirty_cpu, {measured, Ms})))) end,
    ?assertEqual([warning, error], [Severity(Ms) || Ms <- [999.9, 1000.0]]).

busy_threads_without_a_queue_are_no_finding_test() ->
    Second = #{looks => looks(10, [0], {0, 2}, {0, 10})},
    [?assertEqual([ok, ok, ok, ok], verdicts(Module, seconds(4, Second)))
     || Module <- [pool(dirty_cpu), pool(dirty_io)]].

a_queue_that_is_empty_at_one_look_is_no_finding_test() ->
    Looks = looks(9, [0], {3, 5}, {0, 0}) ++ looks(1, [0], {0, 2}, {0, 0}),
    Second = #{looks => Looks, waits => #{dirty_cpu => {measured, 50.0}}},
    ?assertEqual(ok, lists:last(verdicts(pool(dirty_cpu), seconds(5, Second)))).

the_jobs_seen_in_the_pool_are_named_test() ->
    Job = fun(F, Pid) -> #{pool => dirty_cpu, kind => nif, mfa => {my, F, 0},
                           pid => list_to_pid(Pid),
                           name => fairnif_watch_culprit:mfa(my, F, 0)} end,
    Jobs = [Job(one, "<0.9.0>") | [Job(hash, "<0." ++ [N] ++ ".0>") || N <- "12345"]],
    Second = (full(dirty_cpu, {measured, 20.0}))#{dirty => #{jobs => Jobs, dead => []}},
    Issue = last_issue(pool(dirty_cpu), seconds(2, Second)),
    ?assertMatch(#{culprit := #{mfa := {my, hash, 0}},
                   sentence := <<"All 2 dirty CPU schedulers are busy and 3 jobs wait, each for "
                                 "20 ms; seen there: my:hash/0 for <0.1.0>, <0.2.0>, <0.3.0> and 2 "
                                 "more, my:one/0 for <0.9.0>.">>}, Issue).

%% undercharged.

top(Functions) -> [#{function => F, label => label(F), samples => 10, share => 0.5, ns_per_s => Ns}
                   || {F, Ns} <- Functions].

label({M, F, A}) -> fairnif_watch_culprit:mfa(M, F, A);
label({Library, _}) -> Library.

undercharged(Functions, ReductionsPerSecond) ->
    shown(fairnif_watch_detect_undercharged,
          seconds(3, #{top => top(Functions), reductions => ReductionsPerSecond})).

%% A second of native time is worth 4,000,000 reductions; a quarter of that is the limit.
one_function_that_all_reductions_would_not_pay_for_is_certain_test() ->
    Says = fun(Reductions) ->
                   {Verdict, _} = lists:last(undercharged([{{my, f, 1}, 1000000000}], Reductions)),
                   Verdict
           end,
    ?assertEqual([warn, ok], [Says(R) || R <- [999999, 1000000]]),
    {_, [Issue]} = lists:last(undercharged([{{my, f, 1}, 1000000000}], 40000)),
    ?assertMatch(#{culprit := #{mfa := {my, f, 1}, kind := nif},
                   sentence := <<"my:f/1 ran for 1000 ms of each second, while all reductions of "
                                 "the node account for 10 ms.">>}, Issue).

where_several_could_be_it_none_is_accused_test() ->
    Two = [{{my, f, 1}, 500000000}, {{<<"libx.so">>, 16}, 400000000}],
    {Verdict, [Issue]} = lists:last(undercharged(Two, 600000)),
    ?assertEqual(unconfirmed, Verdict),
    ?assertMatch(#{severity := unconfirmed, culprit := #{kind := none}}, Issue),
    ?assertNotEqual(nomatch, string:find(maps:get(sentence, Issue), "my:f/1, libx.so")).

little_native_time_does_no_harm_test() ->
    Says = fun(Ns) -> {V, _} = lists:last(undercharged([{{my, f, 1}, Ns}], 0)), V end,
    ?assertEqual([ok, warn], [Says(Ns) || Ns <- [199999999, 200000000]]).

time_that_may_have_been_on_dirty_schedulers_is_no_finding_test() ->
    Dirty = [#{kind => dirty_cpu, number => 1, busy => 0.9, state => busy, cpu_ns => 0}],
    Second = #{top => top([{{my, f, 1}, 1000000000}]), reductions => 0,
               threads => threads([1, 1, 1, 1]) ++ Dirty},
    {Verdict, _} = lists:last(shown(fairnif_watch_detect_undercharged, seconds(3, Second))),
    ?assertEqual(ok, Verdict).

the_emulator_is_not_accused_test() ->
    Only = fun(Row) ->
                   {V, _} = lists:last(shown(fairnif_watch_detect_undercharged,
                                             seconds(3, #{top => [Row], reductions => 0}))),
                   V
           end,
    [Plain] = top([{{my, f, 1}, 1000000000}]),
    ?assertEqual(warn, Only(Plain)),
    [?assertEqual(ok, Only(Plain#{function => F}))
     || F <- [{<<"/usr/lib/erlang/erts-13/bin/beam.smp">>, 1}, {<<"emulator">>, 1},
              {<<"/lib/libc.so.6">>, <<"memcpy">>}, other]].

%% unkillable.

dead(Changes) ->
    Job = maps:merge(#{key => self(), candidates => [self()], count => 1, pid => self(),
                       died => 10 * ?S, name => <<"my:job/0">>, certain => true, kind => nif,
                       pool => dirty_cpu, number => 2, mfa => {my, job, 0}}, Changes),
    #{dirty => #{jobs => [], dead => [Job]}}.

code_that_outlives_its_process_by_a_second_is_unkillable_test() ->
    Says = fun(At, Changes) ->
                   {V, _} = lists:last(shown(fairnif_watch_detect_unkillable,
                                             [second(At, dead(Changes))])),
                   V
           end,
    ?assertEqual([ok, warn], [Says(11, #{died => Died}) || Died <- [10 * ?S + 1, 10 * ?S]]),
    ?assertEqual(unconfirmed, Says(11, #{certain => false})),
    Severity = fun(At) -> maps:get(severity, last_issue(fairnif_watch_detect_unkillable,
                                                        [second(At, dead(#{}))])) end,
    ?assertEqual([warning, error], [Severity(At) || At <- [19, 20]]).

an_unkillable_job_is_named_by_where_it_runs_test() ->
    ?assertMatch(#{subject := {dirty_cpu, 2}},
                 last_issue(fairnif_watch_detect_unkillable, [second(12, dead(#{}))])),
    Two = [self(), list_to_pid("<0.1.0>")],
    ?assertMatch(#{subject := node,
                   sentence := <<"my:job/0 still runs on a dirty CPU scheduler, 2.0 s after the "
                                 "first of 2 processes that were in it died.">>},
                 last_issue(fairnif_watch_detect_unkillable,
                            [second(12, dead(#{number => none, pid => none, candidates => Two}))])),
    Self = self(),
    ?assertMatch(#{subject := {process, Self}},
                 last_issue(fairnif_watch_detect_unkillable,
                            [second(12, dead(#{number => none, pool => unknown}))])),
    Sentence = iolist_to_binary(["my:job/0 still runs on a thread of fairnif's pool, 2.0 s after "
                                 "its process ", pid_to_list(Self), " died."]),
    ?assertMatch(#{subject := {process, Self}, sentence := Sentence},
                 last_issue(fairnif_watch_detect_unkillable,
                            [second(12, dead(#{pool => thread}))])).

%% starved.

no_cpu_time(At, DelayMs, Changes) ->
    {event, maps:merge(#{event => no_cpu_time, kind => normal, number => 1,
                         delay_ns => DelayMs * 1000000, throttled_ns => 0, stolen_ns => 0,
                         blocked_ns => 0, cpu_ns => 0, since => 0}, Changes), At * ?S}.

a_second_lost_in_ten_is_starvation_test() ->
    Says = fun(Events) -> lists:last(verdicts(fairnif_watch_detect_no_cpu,
                                              Events ++ [second(10)])) end,
    ?assertEqual(ok, Says([no_cpu_time(9, 999, #{})])),
    ?assertEqual(warn, Says([no_cpu_time(9, 1000, #{})])),
    ?assertEqual(warn, Says([no_cpu_time(3, 500, #{}), no_cpu_time(9, 500, #{number => 2})])),
    ?assertEqual(ok, Says([no_cpu_time(-1, 5000, #{})])).

it_says_who_took_the_time_test() ->
    Who = fun(Changes) ->
                  #{culprit := #{kind := os, name := Name}} =
                      last_issue(fairnif_watch_detect_no_cpu,
                                 [no_cpu_time(9, 2000, Changes), second(10, Changes)]),
                  Name
          end,
    Others = #{all => 4, usable => 4, native => 0.0, ports => 0.0, others => 3.6,
               hypervisor => 0.0, quota => 0.0, periods => 0, throttled => 0,
               throttled_ns => 0},
    ?assertEqual([<<"who had the processors is not known">>,
                  <<"other programs took 90 % of the processors">>,
                  <<"the control group's quota is used up">>,
                  <<"the hypervisor gave it to others">>],
                 [Who(C) || C <- [#{}, #{taken => Others}, #{throttled_ns => 1000000000},
                                  #{stolen_ns => 1500000000}]]).

starvation_is_never_reported_as_a_block_test() ->
    ?assertEqual([same], verdicts(fairnif_watch_detect_blocked, [no_cpu_time(1, 5000, #{})])).
