%% What module fairnif says of itself and takes as settings.
-module(fairnif_api_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MFA, {fairnif_test_nif, echo_auto, 1}).

api_test_() ->
    ok = fairnif_test:build(),
    {setup,
     fun() ->
             {module, _} = code:ensure_loaded(fairnif_test_nif),
             fairnif:calibrate()
     end,
     [{"path/1 names the module in the priv directory of its application", fun path/0},
      {"load_info/1 carries the author's own", fun load_info/0},
      {"include_dir/0 holds the header", fun include_dir/0},
      {"with_heap/2 gives back what Fun comes to, and the setting", fun room/0},
      {"with_heap/2 does not kill a caller whose heap is limited", fun room_of_limited/0},
      {"with_heap/2 again and again does not grow the heap", fun room_again/0},
      {"info/0 has every setting and every function", fun info/0},
      {"info/1 has every counter that is declared, and counts", fun counters/0},
      {"info/1 of something else is an error", fun no_function/0},
      {"tasks/0 tells function, state, owner, age, yields, place", fun tasks/0},
      {"debug/1 refuses what is no switch", fun switches/0},
      {"debug/1 switches are seen in info/0", fun switched/0},
      {"a value out of bounds in the environment is named", fun bad_env/0},
      {"the environment is read by configure/0", fun env/0},
      {"calibrate/0 gives a slice between 10 us and some hundred", fun calibrate/0},
      {"load_nif with something else than load_info/0 is error 4701", fun no_load_info/0},
      {"load_nif with a runtime that is none is error 4702", fun no_runtime/0}]}.

path() ->
    ?assertEqual("fairnif", filename:basename(fairnif:path(fairnif))),
    Dir = filename:dirname(fairnif:path(fairnif)),
    ?assertEqual("priv", filename:basename(Dir)),
    ?assert(filelib:is_file(fairnif:path(fairnif) ++ ".so")),
    ?assertEqual("no_such_module", filename:basename(fairnif:path(no_such_module))),
    ?assertEqual(fairnif:path(fairnif), fairnif:path(fairnif, fairnif)),
    ?assertEqual(filename:join([Dir, "native", "other"]), fairnif:path(fairnif, "native/other")),
    ?assertEqual("/elsewhere/other", fairnif:path(fairnif, "/elsewhere/other")).

load_info() ->
    ?assertMatch({fairnif, _, Ref, undefined} when is_reference(Ref), fairnif:load_info()),
    ?assertMatch({fairnif, _, _, [mine]}, fairnif:load_info([mine])).

include_dir() ->
    ?assert(filelib:is_file(filename:join(fairnif:include_dir(), "fairnif.h"))).

room() ->
    Setting = fun() ->
                      {_, Settings} = process_info(self(), garbage_collection),
                      proplists:get_value(min_heap_size, Settings)
              end,
    Before = Setting(),
    ?assert(fairnif:with_heap(1000000, Setting) >= 1000000),
    ?assertEqual(Before, Setting()),
    ?assertError(oops, fairnif:with_heap(1000000, fun() -> error(oops) end)),
    ?assertEqual(Before, Setting()).

room_of_limited() ->
    ?assertEqual(100000,
                 fairnif_test:apply_in_fresh_process(
                   fun() ->
                           process_flag(max_heap_size, 1000000),
                           length(fairnif:with_heap(10000000, fun() -> lists:seq(1, 100000) end))
                   end)).

room_again() ->
    Words = 200000,
    Heap = fun() ->
                   fairnif:with_heap(Words, fun() -> lists:seq(1, Words div 2),
                                     garbage_collect() end),
                   element(2, process_info(self(), total_heap_size))
           end,
    Heaps = fairnif_test:apply_in_fresh_process(fun() -> [Heap() || _ <- lists:seq(1, 20)] end),
    ?assert(lists:max(Heaps) < 10 * Words).

info() ->
    #{functions := Functions, version := Version, interface := {3, _}} = Info = fairnif:info(),
    _ = application:load(fairnif),
    ?assertEqual({ok, Version}, application:get_key(fairnif, vsn)),
    [?assertMatch(#{Key := _}, Info)
     || Key <- [slice_ns, turn_ns, dirty_slice_ns, dirty_round_trip_ns, auto_gap_ns, max_tasks,
                calibration, stacks_mapped, stacks_idle, stacks_limit, stack_guard,
                overflow_handler, threads, max_queued, overload_ns, threads_started, threads_busy,
                threads_failed, jobs_queued, jobs_waiting_for_room, jobs_without_room, jobs_done,
                jobs_wait_ns, jobs_longest_wait_ns, cleaning_up, resources]],
    Ours = [F || #{function := {fairnif_test_nif, F, _}} <- Functions],
    ?assertEqual(9 + 2 + 6 * 18, length(Ours)),
    ?assertEqual(lists:usort(Ours), lists:sort(Ours)),
    ?assertEqual([{echo_auto, auto, []},
                  {echo_dirty_cpu, dirty_cpu, [no_yield]},
                  {echo_dirty_io, dirty_io, [no_yield]},
                  {echo_normal, normal, [no_yield]},
                  {echo_yielding, normal, []},
                  {echo_yielding_dirty, dirty_cpu, []}],
                 lists:sort([{Name, Mode, Flags}
                             || #{function := {fairnif_test_nif, Name, 1}, mode := Mode,
                                  flags := Flags} <- Functions,
                                lists:prefix("echo_", atom_to_list(Name))])),
    {module, _} = code:ensure_loaded(fairnif_test_waits),
    ?assertMatch(#{mode := threaded, flags := [may_wait]},
                 fairnif:info({fairnif_test_waits, offload_threaded_nif, 3})).

%% counters.def is the one list of them.
counters() ->
    File = filename:join([fairnif:include_dir(), "..", "c_src", "thread", "counters.def"]),
    {ok, Text} = file:read_file(File),
    {match, Names} = re:run(Text, "^COUNTER\\((\\w+),", [global, multiline,
                                                         {capture, [1], list}]),
    Before = fairnif:info(?MFA),
    [fairnif_test_nif:echo_auto(N) || N <- lists:seq(1, 1000)],
    After = fairnif:info(?MFA),
    ?assert(length(Names) >= 12),
    [begin
         Counter = list_to_atom(Name),
         #{Counter := Old} = Before,
         #{Counter := New} = After,
         ?assert(is_integer(Old) andalso Old >= 0 andalso New >= Old andalso New < 1 bsl 50)
     end || [Name] <- Names],
    Delta = fun(Key) -> maps:get(Key, After) - maps:get(Key, Before) end,
    ?assertEqual(1000, Delta(calls)),
    ?assertEqual(1000 + Delta(yields), Delta(slices)),
    ?assertEqual(0, Delta(cancels)),
    ?assertEqual(0, Delta(rule_violations)),
    ?assert(Delta(normal_ns) > 0),
    Timed = lists:sum([N || {_, N} <- maps:get(slice_histogram, After)]),
    ?assert(Timed > 0 andalso Timed =< maps:get(slices, After)).

no_function() ->
    ?assertError({fairnif, {no_function, {a, b, 3}}}, fairnif:info({a, b, 3})).

tasks() ->
    ?assertEqual([], fairnif:tasks()),
    Slot = fairnif_test_probe:new_slot(),
    {Pid, Monitor} = spawn_monitor(fun() -> fairnif_test_nif:spin_yielding(Slot, 0, x) end),
    timer:sleep(50),
    fairnif_test:eventually(fun() -> put(tasks, fairnif:tasks()), length(get(tasks)) =:= 1 end),
    [#{function := Function, state := State, owner := Owner, age_ns := Age, yields := Yields,
       where := Where}] = erase(tasks),
    ?assertEqual({fairnif_test_nif, spin_yielding, 3}, Function),
    ?assert(lists:member(State, [running, suspended])),
    ?assertEqual(Pid, Owner),
    ?assert(Age > 40000000 andalso Age < 5000000000),
    ?assert(Yields > 0),
    ?assert(case State of
                running -> element(1, Where) =:= normal andalso element(2, Where) >= 1;
                suspended -> Where =:= normal
            end),
    fairnif_test_probe:finish(Slot),
    normal = fairnif_test:down(Monitor),
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end).

switches() ->
    ?assertError({fairnif, {bad_switch, {no_switch, true}}}, fairnif:debug(#{no_switch => true})),
    ?assertError({fairnif, {bad_switch, {check_terms, 1}}}, fairnif:debug(#{check_terms => 1})).

switched() ->
    [begin
         ok = fairnif:debug(#{Switch => true}),
         ?assertMatch(#{Switch := true}, fairnif:info()),
         ok = fairnif:debug(#{Switch => false}),
         ?assertMatch(#{Switch := false}, fairnif:info())
     end || Switch <- [pause_every_tick, check_terms, measure_cpu]].

bad_env() ->
    Bad = [{slice_us, 0}, {slice_us, -1}, {slice_us, 1000001}, {slice_us, a}, {slice_us, 1.5},
           {slice_us, 1 bsl 100}, {dirty_slice_us, 0}, {dirty_slice_us, "1"}, {auto_gap_us, 1},
           {max_tasks, -1}, {max_tasks, infinity}, {max_tasks, 1 bsl 40},
           {threads, 0}, {threads, 1025}, {threads, many}, {pool_nice, -1}, {pool_nice, 20},
           {scheduler_slice_us, -1}, {scheduler_slice_us, 100001}, {max_queued, -1},
           {max_queued, 1 bsl 70}, {overload_ms, -1}, {overload_ms, 0}, {overload_ms, 0.5}],
    _ = application:load(fairnif),
    [begin
         application:set_env(fairnif, Key, Value),
         try ?assertError({fairnif, {bad_env, {Key, Value}}}, fairnif:configure())
         after application:unset_env(fairnif, Key)
         end
     end || {Key, Value} <- Bad],
    ?assertEqual(ok, fairnif:configure()).

env() ->
    _ = application:load(fairnif),
    Settings = [{slice_us, slice_ns, 500, 500000}, {dirty_slice_us, dirty_slice_ns, 300, 300000},
                {auto_gap_us, auto_gap_ns, 2000, 2000000}, {max_tasks, max_tasks, 7, 7},
                {threads, threads, 3, 3}, {pool_nice, pool_nice, 5, 5},
                {scheduler_slice_us, scheduler_slice_ns, 500, 500000},
                {max_queued, max_queued, 5, 5}, {overload_ms, overload_ns, 20, 20000000}],
    Before = fairnif:info(),
    [begin
         application:set_env(fairnif, Key, Value),
         ok = fairnif:configure(),
         ?assertEqual(Expected, maps:get(Setting, fairnif:info())),
         application:unset_env(fairnif, Key),
         ok = fairnif:configure(),
         ?assertEqual(maps:get(Setting, Before), maps:get(Setting, fairnif:info()))
     end || {Key, Setting, Value, Expected} <- Settings].

calibrate() ->
    #{measured := true, turn_ns := Fair, slice_ns := Slice, reschedule_ns := Reschedule,
      dirty_round_trip_ns := Trip, mix := Mix} = Result = fairnif:calibrate(),
    ?assert(Fair >= 10000 andalso Fair =< 100000),
    ?assert(Slice >= Fair andalso Slice >= 100 * Reschedule),
    ?assert(Trip > Reschedule),
    ?assertEqual([Name || {Name, _} <- fairnif_calibration:mix()], [Name || {Name, _} <- Mix]),
    ?assertEqual(Result, maps:get(calibration, fairnif:info())).

no_load_info() ->
    ?assertEqual({error, {load, "why"}}, fairnif:loaded({error, {load, "why"}})),
    [?assertMatch({error, {load, _}}, load(good, Info))
     || Info <- [0, undefined, {fairnif, 1, x}, {other, 1, make_ref(), x}]],
    {error, {load, Text}} = load(good, 0),
    ?assertNotEqual(nomatch, string:find(Text, "4701")).

no_runtime() ->
    {error, {load, Text}} = load(good, {fairnif, 1, make_ref(), x}),
    ?assertNotEqual(nomatch, string:find(Text, "4702")).

load(Case, Info) ->
    fairnif_test_refused:load(Case, Info).
