%% Waiting without a scheduler: what takes the VM's own timing, code loading or thousands of
%% calls. The rest is in test_await.c, test_pool.c and test_lock.c, in the real emulator too. Each
%% in a node of its own (fairnif_test_await runs there). Times are ratios or bounds with room,
%% tried again with what was seen.
-module(fairnif_await_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-compile([export_all, nowarn_export_all]).

-define(T, fairnif_test_await).

suite() ->
    [{timetrap, {seconds, 900 + fairnif_test:env_number("FAIR_STORM", 10)}}].

all() ->
    [a_hundred_thousand_messages_do_not_matter,
     a_large_argument_is_not_copied_on_a_normal_scheduler,
     purging_the_library_spares_callers_that_have_left_it,
     stopping_the_application_disturbs_no_call,
     calls_begin_to_wait_while_the_module_fairnif_is_purged,
     others_are_not_late_beside_a_thousand_jobs_that_wait,
     idle_threads_leave,
     a_storm_of_waits_and_kills_leaves_nothing].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% With 100,000 messages queued a round trip takes at most twice as long as with none.
a_hundred_thousand_messages_do_not_matter(_) ->
    Peer = peer([]),
    Trips = fun(Call, Messages) ->
                    {Name, Args} = Call,
                    fairnif_test:call(Peer, ?T, round_trips, [Name, Args, 300, Messages])
            end,
    Seen = [begin
                fairnif_test:retry(5, fun() ->
                                              Few = lists:min([Trips(Call, 0) || _ <- [1, 2, 3]]),
                                              Many = lists:min([Trips(Call, 100000)
                                                                || _ <- [1, 2, 3]]),
                                              put(seen, {Call, Few, Many}),
                                              case Many =< 2 * Few of
                                                  true -> ok;
                                                  false -> {Call, Few, Many}
                                              end
                                      end),
                get(seen)
            end || Call <- [{echo_threaded, [x]}, {echo_threaded, [[x]]}, {offload_often, [1]},
                            {sleep, [1]}]],
    fairnif_test:stop(Peer),
    {comment, io_lib:format("us for 300, without and with: ~0p", [Seen])}.

%% A copy of a million cells takes milliseconds; other work on the machine is tried again.
a_large_argument_is_not_copied_on_a_normal_scheduler(_) ->
    Peer = peer([]),
    fairnif_test:retry(5, fun() ->
                                  case fairnif_test:call(Peer, ?T, large_argument, [1000000]) of
                                      Us when Us < 1000 -> ok;
                                      Us -> {held_us, Us}
                                  end
                          end),
    fairnif_test:stop(Peer).

purging_the_library_spares_callers_that_have_left_it(_) ->
    Spared = in_peer([], purge, [false]),
    [{ok, 8}, {{x}, 12}] = Spared,
    [{killed, 20}] = in_peer([], purge, [true]).

stopping_the_application_disturbs_no_call(_) ->
    fairnif_test:retry(3, fun() ->
                                  Ms = in_peer([], stop_application, []),
                                  put(ms, Ms),
                                  case Ms < 1000 of true -> ok; false -> {stopped_in_ms, Ms} end
                          end),
    {comment, io_lib:format("stopped in ~b ms", [erase(ms)])}.

calls_begin_to_wait_while_the_module_fairnif_is_purged(_) ->
    ok = in_peer([], reloaded, []).

%% Loosely, for a busy machine; `make bench' has the figure.
others_are_not_late_beside_a_thousand_jobs_that_wait(_) ->
    fairnif_test:retry(5, fun() ->
                                  {Alone, Beside} = Seen = in_peer([], late, [1000]),
                                  put(seen, Seen),
                                  case Beside =< 3 * Alone + 2000 of
                                      true -> ok;
                                      false -> Seen
                                  end
                          end),
    {comment, io_lib:format("p99, us, alone and beside: ~0p", [erase(seen)])}.

idle_threads_leave(_) ->
    in_peer(["-fairnif", "threads", "8"], threads_leave, []).

a_storm_of_waits_and_kills_leaves_nothing(_) ->
    Ends = in_peer(["-fairnif", "threads", "4", "max_queued", "50"], storm,
                   [fairnif_test:env_number("FAIR_STORM", 10)]),
    {comment, io_lib:format("~0p", [Ends])}.

%% -- -------------------------------------------------------------------------------------

peer(Args) ->
    Peer = fairnif_test:peer(["+S", "2:2" | Args], [fairnif_test_waits]),
    ok = fairnif_test:call(Peer, application, start, [fairnif]),
    Peer.

in_peer(Args, Function, FunctionArgs) ->
    Peer = peer(Args),
    Result = fairnif_test:call(Peer, ?T, Function, FunctionArgs),
    fairnif_test:stop(Peer),
    Result.
