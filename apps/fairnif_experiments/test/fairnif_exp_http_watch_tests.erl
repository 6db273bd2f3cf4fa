-module(fairnif_exp_http_watch_tests).

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

a_vm_that_has_gone_is_no_crash_test_() ->
    {timeout, 60, fun() ->
        ?assert(lists:all(fun({_, Threads, _}) -> Threads =:= #{} end, of_a_vm_that_has_gone(50)))
    end}.

%% At least two samples: a busy machine takes longer for them.
of_a_vm_that_has_gone(Ms) ->
    Watch = ?W:start(#{os_pid => "999999999", load => [999999999, undefined]}, 10),
    timer:sleep(Ms),
    case ?W:stop(Watch) of
        [_, _ | _] = Samples -> Samples;
        _ when Ms < 10000 -> of_a_vm_that_has_gone(2 * Ms)
    end.

sample(Ms, One, Two) ->
    {us(Ms), #{{scheduler, 1} => One * 1000000, {scheduler, 2} => Two * 1000000}, unknown}.

us(Ms) ->
    1795305160000000 + Ms * 1000.
