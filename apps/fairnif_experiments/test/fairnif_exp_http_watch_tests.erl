-module(fairnif_exp_http_watch_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(W, fairnif_exp_http_watch).

threads_are_known_by_their_names_of_every_otp_test() ->
    ?assertEqual({scheduler, 1}, ?W:kind(<<"1_scheduler\n">>)),
    ?assertEqual({scheduler, 12}, ?W:kind(<<"erts_sched_12\n">>)),
    ?assertEqual({dirty_cpu, 2}, ?W:kind(<<"2_dirty_cpu_sch\n">>)),
    ?assertEqual({dirty_cpu, 3}, ?W:kind(<<"erts_dcpus_3\n">>)),
    ?assertEqual(dirty_io, ?W:kind(<<"7_dirty_io_sche\n">>)),
    ?assertEqual(dirty_io, ?W:kind(<<"erts_dios_10\n">>)),
    ?assertEqual(other, ?W:kind(<<"async_1\n">>)),
    ?assertEqual(other, ?W:kind(<<>>)).

use_is_cpu_time_by_time_test() ->
    Samples = [sample(0, 0, 0), sample(250, 100, 0), sample(500, 350, 50)],
    ?assertEqual(#{{scheduler, 1} => 0.4, {scheduler, 2} => 0.0},
                 ?W:use(Samples, {us(0), us(250)})),
    ?assertEqual(#{{scheduler, 1} => 0.7, {scheduler, 2} => 0.1},
                 ?W:use(Samples, {us(10), us(510)})).

without_two_samples_nothing_is_said_test() ->
    ?assertEqual(undefined, ?W:use([], {us(0), us(250)})),
    ?assertEqual(undefined, ?W:use([sample(0, 0, 0)], {us(0), us(250)})),
    ?assertEqual(undefined, ?W:others([sample(0, 0, 0)], {us(0), us(250)})).

%% The kernel's figure for each thread, added up, is the VM's own for all of them.
what_is_seen_from_outside_is_what_the_vm_used_test_() ->
    {timeout, 60, fun() ->
        fairnif_lab_repeat:until_it_holds(fun compare/0)
    end}.

compare() ->
    {Before, _} = statistics(runtime),
    Watch = ?W:start(#{os_pid => os:getpid(), load => []}, 50),
    busy(erlang:monotonic_time(millisecond) + 600),
    timer:sleep(100),
    {After, _} = statistics(runtime),
    Samples = [{From, First, _, _} | _] = ?W:stop(Watch),
    {To, Last, _, _} = lists:last(Samples),
    Seen = (lists:sum(maps:values(Last)) - lists:sum(maps:values(First))) / 1.0e6,
    Own = After - Before,
    ?assertMatch({_, _, true}, {Seen, Own, Seen > 0.5 * Own andalso Seen < 1.3 * Own + 50}),
    Use = ?W:use(Samples, {From, To}),
    ?assert(lists:max([U || {{scheduler, _}, U} <- maps:to_list(Use)]) > 0.0).

a_vm_that_has_gone_is_no_crash_test_() ->
    {timeout, 60, fun() ->
        ?assert(lists:all(fun({_, Threads, Load, _}) -> Threads =:= #{} andalso Load =:= 0 end,
                          of_a_vm_that_has_gone(50)))
    end}.

%% At least two samples: a busy machine takes longer for them.
of_a_vm_that_has_gone(Ms) ->
    Watch = ?W:start(#{os_pid => "999999999", load => [999999999, undefined]}, 10),
    timer:sleep(Ms),
    case ?W:stop(Watch) of
        [_, _ | _] = Samples -> Samples;
        _ when Ms < 10000 -> of_a_vm_that_has_gone(2 * Ms)
    end.

busy(Until) ->
    case erlang:monotonic_time(millisecond) < Until of
        true -> busy(Until);
        false -> ok
    end.

sample(Ms, One, Two) ->
    {us(Ms), #{{scheduler, 1} => One * 1000000, {scheduler, 2} => Two * 1000000}, 0, unknown}.

us(Ms) ->
    1795305160000000 + Ms * 1000.
