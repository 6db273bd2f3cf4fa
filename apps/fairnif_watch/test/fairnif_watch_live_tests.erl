%% The watch on this node: what it sees, what it leaves alone, and what it leaves behind.
-module(fairnif_watch_live_tests).

-include_lib("eunit/include/eunit.hrl").

-import(fairnif_watch_test, [with_watch/2, wait_finding/2]).
-import(fairnif_test, [eventually/1]).

live(Seconds, Fun) -> {timeout, Seconds, Fun}.

a_report_shows_every_scheduler_and_every_detector_test_() ->
    live(30, fun() -> with_watch(#{}, fun report/0) end).

report() ->
    #{schema_version := 1, schedulers := Schedulers, detectors := Detectors, pools := Pools} =
        fairnif_watch:view(),
    Normal = [N || #{kind := normal, number := N} <- Schedulers],
    ?assertEqual(lists:seq(1, erlang:system_info(schedulers)), lists:sort(Normal)),
    ?assertEqual([Name || #{name := Name} <- fairnif_watch_detector:all()],
                 [Name || #{name := Name} <- Detectors]),
    #{dirty_cpu := #{size := Size}} = Pools,
    ?assertEqual(erlang:system_info(dirty_cpu_schedulers_online), Size).

a_subscriber_gets_a_view_each_second_until_it_ends_test_() ->
    live(30, fun() -> with_watch(#{}, fun subscriber/0) end).

subscriber() ->
    {ok, Ref} = fairnif_watch:subscribe(self()),
    Node = node(),
    Time = fun() ->
                   receive {fairnif_watch, Node, {view, #{at := At}}} -> At after 5000 -> none end
           end,
    [First, Second] = [Time(), Time()],
    ?assert(is_integer(First) andalso is_integer(Second) andalso Second - First > 100000),
    ok = fairnif_watch:unsubscribe(Ref),
    receive {fairnif_watch, _, {view, _}} -> ok after 0 -> ok end,
    ?assertEqual(none, receive {fairnif_watch, _, _} = M -> M after 2200 -> none end),
    %% One that dies is forgotten.
    {Pid, Down} = spawn_monitor(fun() -> receive go -> ok end end),
    {ok, _} = fairnif_watch:subscribe(Pid),
    ?assertMatch(#{counters := #{subscribers := 1}}, fairnif_watch:view()),
    Pid ! go,
    receive {'DOWN', Down, _, _, _} -> ok end,
    eventually(fun() -> #{counters := #{subscribers := N}} = fairnif_watch:view(), N =:= 0 end).

there_is_an_end_to_subscribers_test_() ->
    live(30, fun() -> with_watch(#{}, fun() ->
        Answers = [fairnif_watch:subscribe(self()) || _ <- lists:seq(1, 65)],
        ?assertMatch([{error, too_many}], [A || {error, _} = A <- Answers])
    end) end).

a_node_is_watched_once_test_() ->
    live(30, fun() -> with_watch(#{}, fun() ->
        ?assertMatch({error, {already_started, _}}, fairnif_watch:start(#{}))
    end) end).

bad_settings_start_nothing_test() ->
    ?assertMatch({error, {bad_config, [{warn_ms, 0, _}]}}, fairnif_watch:start(#{warn_ms => 0})),
    ?assertEqual(undefined, whereis(fairnif_watch_sup)),
    ?assertExit({noproc, _}, fairnif_watch:view()).

the_watch_ends_with_its_owner_test_() ->
    live(30, fun() ->
        {Owner, _} = spawn_monitor(fun() -> receive go -> ok end end),
        {ok, Keeper} = fairnif_watch:start(#{owner => Owner, log => false}),
        Down = erlang:monitor(process, Keeper),
        Owner ! go,
        ?assertEqual(gone, receive {'DOWN', Down, _, _, _} -> gone after 15000 -> still end),
        ?assertEqual(undefined, whereis(fairnif_watch_sup))
    end).

%% Dirty pools, with a foreign NIF.

%% Whose lock it waits for cannot be seen; what else runs of its library is seen.
a_block_asleep_in_a_lock_is_reported_with_what_runs_of_its_library_test_() ->
    live(120, fun() -> with_watch(#{}, fun asleep_in_a_lock/0) end).

asleep_in_a_lock() ->
    ok = fairnif_watch_test:build(),
    {module, _} = code:ensure_loaded(fairnif_watch_block_nif),
    Dirty = spawn(fun() -> fairnif_watch_block_nif:spin_dirty_cpu(9000) end),
    timer:sleep(500),
    _ = spawn(fun() -> fairnif_watch_block_nif:lock(6000) end),
    #{sentence := Sentence, evidence := #{beside := [#{threads := [{dirty_cpu, N}]}]}} =
        wait_finding(fun(#{evidence := #{beside := [#{mfa := {_, spin_dirty_cpu, 1}, threads := [_],
                                                      pids := [Pid]}]}}) -> Pid =:= Dirty;
                        (_) -> false
                     end, 20000),
    Says = io_lib:format("asleep in the system call futex; of the same library runs fairnif_watch_"
                         "block_nif:spin_dirty_cpu/1 on dirty CPU ~b, ~p, which may hold the lock.",
                         [N, Dirty]),
    ?assertNotEqual(nomatch, string:find(Sentence, Says)),
    %% It is looked for no longer than that block lasts.
    eventually(fun() -> wait_over(fairnif_watch:view()) end).

wait_over(#{findings := Findings, counters := #{dirty_asked := Asked}}) ->
    timer:sleep(2500),
    #{counters := #{dirty_asked := Later}} = fairnif_watch:view(),
    Later =:= Asked andalso not lists:any(fun(#{ongoing := Ongoing}) -> Ongoing end, Findings).

%% What a test before this one killed may still run.
no_dirty_job() ->
    lists:nthtail(erlang:system_info(schedulers), statistics(active_tasks_all)) =:= [0, 0].

code_that_outlives_its_killed_process_is_found_test_() ->
    live(120, fun() -> with_watch(#{}, fun unkillable/0) end).

unkillable() ->
    Jobs = full(),
    [exit(Job, kill) || Job <- Jobs],
    Threads = erlang:system_info(dirty_cpu_schedulers_online),
    Is = fun(#{detector := Detector, severity := Severity}) ->
                 Detector =:= unkillable andalso Severity =:= warning
         end,
    Found = wait_finding(Is, 15000),
    ?assertMatch(#{culprit := #{mfa := {fairnif_watch_block_nif, sleep_dirty_cpu, 1}},
                   evidence := #{count := Threads, candidates := [_ | _]}}, Found),
    #{evidence := #{candidates := Candidates}} = Found,
    ?assertEqual([], Candidates -- Jobs).

%% A body that takes long to clean up, and one that does not tick, on threads of fairnif's pool.
code_that_outlives_its_process_on_fairnifs_own_threads_is_found_test_() ->
    live(120, fun() -> with_watch(#{}, fun on_own_threads/0) end).

on_own_threads() ->
    [begin
         Pid = spawn(fun() -> fairnif:await(fairnif_watch_block_fair:F(6000)) end),
         eventually(fun() -> lists:any(fun(#{owner := Owner}) -> Owner =:= Pid end, fairnif:tasks())
                    end),
         timer:sleep(50),
         exit(Pid, kill),
         Found = wait_finding(fun(#{detector := Detector, culprit := #{mfa := {_, Name, _}}}) ->
                                      Detector =:= unkillable andalso Name =:= F;
                                 (_) ->
                                      false
                              end, 15000),
         ?assertMatch(#{subject := {process, Pid},
                        culprit := #{mfa := {fairnif_watch_block_fair, F, 1}}}, Found),
         #{sentence := Sentence} = Found,
         ?assertMatch({match, _}, re:run(Sentence, "still runs on a thread of fairnif's pool"))
     end || F <- [unwinds, sleep_threaded]].

%% As many run as there are threads, one more waits. The watch knows all that say they run: up to
%% OTP 26 one that waits for a dirty scheduler does, too.
full() ->
    eventually(fun no_dirty_job/0),
    Jobs = fairnif_watch_test:dirty_cpu(erlang:system_info(dirty_cpu_schedulers_online) + 1, 12000),
    ?assertMatch(#{}, wait_finding(fun(#{detector := dirty_cpu_saturated,
                                         evidence := #{jobs := Seen}}) ->
                                           length(Seen) =:= length(lists:filter(fun runs/1, Jobs));
                                      (_) -> false
                                   end, 10000)),
    Jobs.

%% As the watch asks: of several things at once.
runs(Pid) ->
    [{status, Status} | _] = process_info(Pid, [status, current_function]),
    Status =:= running.

one_that_is_killed_while_it_waits_is_never_said_to_run_test_() ->
    live(120, fun() -> with_watch(#{}, fun killed_in_queue/0) end).

killed_in_queue() ->
    Jobs = full(),
    exit(lists:last(Jobs), kill),
    %% What the test before this one killed may still run, on a thread of fairnif's pool.
    Is = fun(#{detector := unkillable, severity := Severity, culprit := #{kind := Kind}}) ->
                 Severity =/= unconfirmed andalso Kind =/= fairnif;
            (_) ->
                 false
         end,
    Found = wait_finding(Is, 4000),
    [exit(Job, kill) || Job <- Jobs],
    ?assertMatch({none, _}, Found).

%% A flood.

a_flood_of_reports_is_dropped_and_counted_test_() ->
    live(60, fun() -> fairnif_test:retry(3, fun() -> with_watch(#{}, fun flood/0) end) end).

flood() ->
    Collector = whereis(fairnif_watch_collector),
    Event = #{event => blocked, kind => normal, number => 1, since => 0, blocked_ns => 20000000,
              cpu_ns => 20000000, delay_ns => 0, state => running, syscall => none,
              fairnif => none, process => none, cause => native, stack => [], stack_note => <<>>},
    Longest = lists:max(
                [begin
                     [Collector ! {fairnif_watch, Event#{id => Second * 100000 + N * 100 + K}}
                      || K <- lists:seq(1, 100)],
                     timer:sleep(9),
                     {message_queue_len, Length} = process_info(Collector, message_queue_len),
                     Length
                 end || Second <- lists:seq(1, 3), N <- lists:seq(1, 100)]),
    #{findings := Findings, counters := #{reports := Events, reports_dropped := Dropped}} =
        fairnif_watch:view(),
    ?assert(Events + Dropped >= 30000),
    %% Those that came through are kept in bounds: those that last, and 100 that have ended.
    ?assert(length(Findings) < 200 * 10),
    {message_queue_len, After} = process_info(Collector, message_queue_len),
    ?assert(After < 100),
    %% On a busy machine the collector may get no processor for that long.
    case Longest < 5000 andalso Dropped > 25000 of
        true -> ok;
        false -> {{longest, Longest}, {dropped, Dropped}}
    end.

%% The system monitor.

a_free_monitor_is_taken_and_given_back_test_() ->
    live(30, fun() ->
        Before = erlang:system_monitor(undefined),
        try
            with_watch(#{}, fun() ->
                eventually(fun() -> case erlang:system_monitor() of
                                        {_, [{long_gc, 10}]} -> true;
                                        Other -> Other
                                    end
                           end)
            end),
            eventually(fun() -> erlang:system_monitor() =:= undefined end)
        after
            restore(Before)
        end
    end).

another_process_s_monitor_is_left_alone_test_() ->
    live(30, fun() ->
        Before = erlang:system_monitor(self(), [{long_gc, 777}]),
        try
            with_watch(#{}, fun() ->
                ?assertEqual({self(), [{long_gc, 777}]}, erlang:system_monitor())
            end),
            ?assertEqual({self(), [{long_gc, 777}]}, erlang:system_monitor())
        after
            restore(Before)
        end
    end).

a_monitor_that_another_process_takes_is_given_up_test_() ->
    live(30, fun() ->
        Before = erlang:system_monitor(undefined),
        try
            with_watch(#{}, fun() ->
                _ = erlang:system_monitor(self(), [{long_gc, 777}]),
                timer:sleep(6000)
            end),
            ?assertEqual({self(), [{long_gc, 777}]}, erlang:system_monitor())
        after
            restore(Before)
        end
    end).

restore(undefined) -> erlang:system_monitor(undefined);
restore({Pid, Options}) -> erlang:system_monitor(Pid, Options).

%% Telemetry: this application is not packaged for where the tests run, so one of its name stands in
%% for it, with the one function that is called.

events_are_emitted_where_telemetry_runs_test_() ->
    live(30, fun() ->
        {module, telemetry} = stand_in(),
        telemetry_handler_table = ets:new(telemetry_handler_table, [named_table, public]),
        true = ets:insert(telemetry_handler_table, {to, self()}),
        try
            with_watch(#{telemetry => true}, fun() ->
                Event = #{event => blocked, id => 1, kind => normal, number => 1, since => 0,
                          blocked_ns => 20000000, cpu_ns => 20000000, delay_ns => 0,
                          state => running, syscall => none, fairnif => none, process => none,
                          cause => native, stack => []},
                fairnif_watch_collector ! {fairnif_watch, Event},
                ?assertMatch({[fairnif_watch, finding], #{count := 1, duration_ms := 20.0},
                              #{change := new, finding := #{detector := scheduler_blocked}}},
                             receive {telemetry, E} -> E after 5000 -> none end)
            end)
        after
            ets:delete(telemetry_handler_table),
            code:purge(telemetry), code:delete(telemetry), code:purge(telemetry)
        end
    end).

without_telemetry_nothing_is_emitted_test() ->
    ?assertEqual(undefined, ets:whereis(telemetry_handler_table)),
    ?assertNot(fairnif_watch_telemetry:finding(new, #{duration_ms => none})).

stand_in() ->
    Forms = [merl:quote(Text)
             || Text <- ["-module(telemetry).", "-export([execute/3]).",
                         "execute(Event, Measured, About) ->"
                         "    [{to, Pid}] = ets:lookup(telemetry_handler_table, to),"
                         "    Pid ! {telemetry, {Event, Measured, About}}, ok."]],
    {ok, telemetry, Binary} = compile:forms(Forms),
    code:load_binary(telemetry, "telemetry.erl", Binary).
