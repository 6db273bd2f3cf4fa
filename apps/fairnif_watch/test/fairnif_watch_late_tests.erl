%% Late wake-ups and quotas: seconds as they were measured, and one real measurement each, which
%% says so where the machine is too busy for it.
-module(fairnif_watch_late_tests).

-include_lib("eunit/include/eunit.hrl").

-export([beside_dirty_jobs/0, in_a_group/1]).

-define(MS, 1000000).

config() -> {ok, Config} = fairnif_watch_config:check(#{}), Config.

%% The issues after the last of these observations.
found(Module, Observations) ->
    #{observe := Observe, init := Init} = Detector = Module:detector(),
    Limits = fairnif_watch_detector:limits(Detector, config()),
    {Said, _} = lists:mapfoldl(fun(O, State) -> Observe(O, Limits, State) end, Init, Observations),
    lists:last(Said).

late(Observations) -> found(fairnif_watch_detect_late, Observations).

%% By figures of 2 processors with OTP's default flags: a process that sleeps for 1 ms at a time
%% beside 8 dirty calls wakes 133 ms late, and its scheduler works for 0.2 % of the time.
measured() ->
    #{at => 0, interval_ms => 1000, busy_waiting => on, cpu_ns => 2 * ?MS,
      threads => [thread(normal, 1), thread(dirty_cpu, 1)], pool => [],
      delays => [delay(1, 2, 930, [{10, 0}, {100, 7}]), delay(2, 0, 0, [{10, 0}, {100, 0}])],
      taken => taken(#{native => 1.96, others => 0.02}),
      top => [#{function => {my, job, 1}, label => <<"my:job/1">>, ns_per_s => 1900 * ?MS},
              #{function => {my, small, 1}, label => <<"my:small/1">>, ns_per_s => 1 * ?MS},
              #{function => other, label => <<"other">>, ns_per_s => 500 * ?MS}]}.

thread(Kind, N) -> #{kind => Kind, number => N, blocked_ns => 0, fairnif => none}.

delay(N, Worked, Waited, Long) ->
    #{kind => normal, number => N, cpu_ns => Worked * ?MS, waited_ns => Waited * ?MS, long => Long,
      long_ns => Waited * ?MS}.

taken(Changes) ->
    maps:merge(#{all => 2, usable => 2, native => 0.0, ports => 0.0, others => 0.0,
                 hypervisor => 0.0, quota => 0.0, periods => 0, throttled => 0,
                 throttled_ns => 0}, Changes).

seconds(Count, Changes) ->
    [{sample, maps:merge((measured())#{at := N * 1000000}, Changes)} || N <- lists:seq(1, Count)].

after_seconds(Changes) -> hd(late(seconds(6, Changes))).

own_native_code_is_named_with_the_remedy_word_for_word_test() ->
    #{sentence := Said, remedy := Remedy, culprit := Culprit, severity := warning} =
        after_seconds(#{}),
    ?assertEqual(<<"Scheduler 1 was ready and given next to no processor time 42 times for 10 ms "
                   "or longer (the longest: 100 ms or more), for 5.6 s of the last 10.0 s: native "
                   "code of this node took 98 % of the processors (my:job/1), and busy waiting is "
                   "on.">>, Said),
    ?assertMatch(<<"+sbwt none +sbwtdcpu none +sbwtdio none in vm.args. ", _/binary>>, Remedy),
    ?assertMatch(#{kind := nif, mfa := {my, job, 1}, name := <<"my:job/1">>}, Culprit).

%% What runs on threads of fairnif's pool is known from fairnif; and what is seen on some scheduler
%% may be on a normal one, where those work.
only_what_cannot_be_on_a_normal_scheduler_is_named_test() ->
    Pool = [#{kind => thread, number => 1, fairnif => #{function => {my, body, 2}}}],
    #{culprit := #{name := Name}} = after_seconds(#{pool => Pool, cpu_ns => 1950 * ?MS}),
    ?assertEqual(<<"my:body/2">>, Name).

%% Who is said to have had the processors, and whether the remedy is to switch busy waiting off.
whose_fault_test_() ->
    Rows = [{native, #{native => 1.5, others => 0.5}, on, true},
            {native, #{native => 1.96}, unknown, true},
            {native, #{native => 1.96}, off, false},
            {others, #{others => 1.96}, on, false},
            {others, #{native => 0.4, others => 1.6}, on, false},
            {several, #{native => 1.0, others => 1.0}, on, false},
            {several, #{native => 1.2, ports => 0.8}, on, false},
            {ports, #{ports => 1.9, others => 0.1}, on, false},
            {hypervisor, #{hypervisor => 1.5}, on, false},
            {unknown, #{native => 0.3, others => 0.3}, on, false},
            {quota, #{periods => 10, throttled => 5, throttled_ns => 250 * ?MS, native => 2.0}, on,
             true},
            %% Of 8 processors this node may use 2: where the others are is not known.
            {native, #{all => 8, native => 1.9, others => 2.0}, on, true},
            {unknown, #{all => 8, native => 1.0, others => 1.0}, on, false},
            {unknown, #{all => 8, native => 1.9, others => 6.5}, on, false},
            {others, #{all => 8, native => 0.2, others => 7.0}, on, false}],
    [{lists:concat([Who, " ", Spins]),
      fun() ->
              Taken = taken(Figures),
              ?assertEqual(Who, fairnif_watch_taken:who(Taken)),
              #{remedy := Remedy, culprit := #{kind := Kind}} =
                  after_seconds(#{taken => Taken, busy_waiting => Spins}),
              ?assertEqual(Flags, Remedy =/= none
                                  andalso string:find(Remedy, "+sbwt none") =/= nomatch),
              ?assertEqual(Who =:= native, Kind =:= nif)
      end} || {Who, Figures, Spins, Flags} <- Rows].

without_figures_there_is_no_culprit_test() ->
    ?assertMatch(#{severity := unconfirmed, remedy := none, culprit := #{kind := none}},
                 after_seconds(#{taken => none})).

others_are_distinct_from_port_programs_test() ->
    #{sentence := Said} = after_seconds(#{taken => taken(#{ports => 1.0, others => 0.94,
                                                           native => 0.06})}),
    ?assertNotEqual(nomatch, string:find(Said, "of the processors programs that this node started "
                                         "took 50 % and other programs took 47 %.")).

%% None of these is a finding.
it_is_no_late_wakeup_test_() ->
    Busy = [delay(1, 300, 700, [{10, 50}])],
    Blocked = [(thread(normal, 2))#{blocked_ns := 20 * ?MS}],
    [{Why, ?_assertEqual([], late(seconds(20, Changes)))}
     || {Why, Changes} <-
            [{"nothing waits", #{delays => []}},
             {"waits of under 10 ms", #{delays => [(delay(1, 2, 900, [{10, 0}]))#{long_ns := 0}]}},
             {"a tenth is not reached", #{delays => [delay(1, 1, 99, [{10, 5}])]}},
             {"one that works gets its share", #{delays => Busy}},
             {"a dirty one", #{delays => [(delay(1, 2, 930, [{10, 9}]))#{kind := dirty_cpu}]}},
             {"a scheduler is blocked", #{threads => Blocked}}]].

a_second_with_a_block_says_nothing_test() ->
    Block = [{event, #{event => Event}, 0} || Event <- [blocked, unblocked]],
    Two = lists:append([[E, S] || {E, S} <- lists:zip(Block, seconds(2, #{}))]),
    Upto = fun(N) -> late(Two ++ lists:nthtail(2, seconds(N, #{}))) end,
    ?assertEqual([], Upto(7)),
    ?assertMatch([_], Upto(8)).

%% The first figures have port programs among the others.
whose_programs_they_are_is_waited_for_test() ->
    First = seconds(4, #{taken => taken(#{others => 2.0})}),
    Then = lists:nthtail(4, seconds(6, #{taken => taken(#{ports => 2.0})})),
    ?assertMatch([#{culprit := #{name := <<"programs that this node started">>}}],
                 late(First ++ Then)).

%% What starvation reports is not reported twice: events of schedulers that run late are not its.
it_is_not_called_starved_as_well_test() ->
    Events = [{event, #{event => no_cpu_time, kind => normal, number => 1, delay_ns => 900 * ?MS},
               N * 1000000 - 500000} || N <- [1, 2, 3]],
    All = fun(Delays) -> found(fairnif_watch_detect_no_cpu,
                               lists:append([[E, S] || {E, S} <- lists:zip(Events,
                                                                           seconds(3, Delays))]))
          end,
    ?assertEqual([], All(#{})),
    [#{sentence := Said}] = All(#{delays => [delay(1, 300, 700, [{10, 50}])]}),
    ?assertNotEqual(nomatch, string:find(Said, "native code of this node took 98 %")).

busy_waiting_is_read_from_the_command_line_test_() ->
    [?_assertEqual(Is, fairnif_watch_taken:busy_waiting(
                         iolist_to_binary(lists:join(0, string:split(Line, " ", all)))))
     || {Is, Line} <-
            [{unknown, ""}, {on, "beam.smp -- -root /usr/lib/erlang"},
             {off, "beam.smp -sbwt none -sbwtdcpu none -sbwtdio none -- -root x"},
             {off, "beam.smp -sbwtnone -sbwtdcpunone -sbwtdionone -- x"},
             {on, "beam.smp -sbwt none -- x"},
             {on, "beam.smp -sbwt none -sbwtdcpu none -sbwtdio very_short -- x"},
             {on, "beam.smp -sbwt none -sbwtdcpu none -sbwtdio none -sbwt long -- x"},
             {on, "beam.smp -- -sbwt none -sbwtdcpu none -sbwtdio none"}]].

%% The quota. Figures of 15 s with +S 32:32, without busy waiting, and with +S 2:2.
quota_test_() ->
    Said = fun(Throttled, EachMs, Spins, Count) ->
                   %% Read every two seconds.
                   All = [{sample, #{at => N * 1000000, busy_waiting => Spins,
                                     taken => taken(#{quota => 0.6, periods => Periods,
                                                      throttled => round(Periods * Throttled),
                                                      throttled_ns =>
                                                          round(Periods * Throttled) * EachMs
                                                          * ?MS})}}
                          || N <- lists:seq(1, Count),
                             Periods <- [case N rem 2 of 0 -> 20; 1 -> 0 end]],
                   found(fairnif_watch_detect_quota, All)
           end,
    [?_assertEqual([], Said(2 / 195, 27, on, 15)), ?_assertEqual([], Said(1 / 195, 27, on, 15)),
     ?_assertEqual([], Said(0.5, 1, on, 15)),
     ?_assertMatch([#{sentence := <<"The control group's quota of 0.60 processors stopped it in 36 "
                                    "of 80 periods, for 27 ms each on all its processors ",
                                    _/binary>>,
                      remedy := <<"+sbwt none +sbwtdcpu none +sbwtdio none in vm.args. Or only as "
                                  "many schedulers", _/binary>>}], Said(93 / 196, 27, on, 15)),
     ?_assertMatch([#{remedy := <<"Start only as many", _/binary>>}],
                   Said(93 / 196, 27, off, 15)),
     {"within 10 s", ?_assertMatch([_], Said(93 / 196, 27, on, 5))}].

%% -- real ones --------------------------------------------------------------------------

in_peer(Flags, Function, Args) ->
    fairnif_watch_test:in_peer(Flags, ?MODULE, Function, Args).

sleeper() -> receive after 1 -> sleeper() end.

sorter(List) ->
    _ = lists:sort(List),
    receive after 0 -> sorter(List) end.

%% Whether they wake late depends on the kernel and differs by the run: what is said must be true.
real_late_wakeups_test_() ->
    {timeout, 90,
     fun() ->
             ok = fairnif_watch_test:build(),
             case in_peer([], beside_dirty_jobs, []) of
                 [] ->
                     ?debugMsg("nothing late here: can't say");
                 [#{evidence := #{taken := #{native := Native, others := Others} = Taken},
                    culprit := #{kind := Kind}, sentence := Said}] ->
                     ?debugFmt("~ts", [Said]),
                     ?assertEqual(fairnif_watch_taken:who(Taken) =:= native, Kind =:= nif),
                     ?assert(Kind =/= nif orelse Native >= 2 * Others)
             end
     end}.

%% @private
beside_dirty_jobs() ->
    {ok, _} = fairnif_watch:start(#{log => false}),
    _ = [spawn(fun Loop() -> fairnif_watch_block_nif:spin_dirty_cpu(300), Loop() end)
         || _ <- lists:seq(1, 8)],
    _ = spawn(fun sleeper/0),
    timer:sleep(12000),
    [F || #{detector := late_wakeups} = F <- maps:get(findings, fairnif_watch:view())].

%% Of so little that it is too little on a busy machine as well.
real_quota_test_() ->
    {timeout, 90,
     fun() ->
             Group = "/sys/fs/cgroup/cpu/fairnif_watch_" ++ os:getpid(),
             case file:make_dir(Group) of
                 ok ->
                     try in_peer(["+S", "8:8"], in_a_group, [Group]) of
                         Answer -> judge(Answer)
                     after file:del_dir(Group)
                     end;
                 {error, Why} ->
                     ?debugFmt("no control group can be made here (~p): skipped", [Why])
             end
     end}.

judge({Throttled, Periods, _}) when 3 * Throttled < Periods ->
    ?debugFmt("~b of ~b periods: the machine left too little to exceed a quota: can't say",
              [Throttled, Periods]);
judge({_, _, Finding}) ->
    ?assertMatch(#{culprit := #{kind := os},
                   evidence := #{quota := 0.05, busy_waiting := on}}, Finding).

%% @private
in_a_group(Group) ->
    Write = fun(Name, Text) -> ok = file:write_file(filename:join(Group, Name), Text) end,
    Write("cpu.cfs_period_us", "100000"),
    Write("cpu.cfs_quota_us", "5000"),
    Write("cgroup.procs", os:getpid()),
    {ok, _} = fairnif_watch:start(#{log => false}),
    List = [erlang:phash2(N) || N <- lists:seq(1, 500)],
    _ = [spawn(fun() -> sorter(List) end) || _ <- lists:seq(1, 6)],
    Finding = fairnif_watch_test:wait_finding(fun(#{detector := D}) -> D =:= quota end, 10000),
    {ok, Stat} = file:read_file(filename:join(Group, "cpu.stat")),
    {match, [Periods, Throttled]} =
        re:run(Stat, "nr_periods (\\d+)\nnr_throttled (\\d+)", [{capture, all_but_first, list}]),
    Write("cpu.cfs_quota_us", "-1"),
    Write("../cgroup.procs", os:getpid()),
    {list_to_integer(Throttled), list_to_integer(Periods), Finding}.
