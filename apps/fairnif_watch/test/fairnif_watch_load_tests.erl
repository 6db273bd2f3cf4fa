%% What reports a block gets to run while it lasts: nothing is loaded then, which would wait
%% for the blocked scheduler, and what waits in that one's queue is taken over.
-module(fairnif_watch_load_tests).

-include_lib("eunit/include/eunit.hrl").

-import(fairnif_check_repeat, [until_it_holds/1]).

-export([after_a_finding/1, no_library/0, heard_beside/3, heard_among/2, tested_beside_others/0]).

%% In a fresh VM, where nothing else has loaded anything.
a_finding_loads_no_module_test_() ->
    [{lists:concat(["started as ", How]),
      {timeout, 60, fun() -> ?assertEqual([], in_peer(after_a_finding, [How], [])) end}}
     || How <- [application, watch]].

in_peer(Function, Arguments, Flags) ->
    fairnif_watch_test:in_peer(Flags, ?MODULE, Function, Arguments).

without_its_library_it_runs_and_says_so_test_() ->
    {timeout, 60,
     fun() -> ?assertMatch(#{native := false, blind := [_ | _]}, in_peer(no_library, [], [])) end}.

%% @private
no_library() ->
    {ok, _} = fairnif_watch:start(#{native_library => false}),
    ok = fairnif_test:eventually(
           fun() -> map_get(blind, fairnif_watch:view()) =/= [] end),
    fairnif_watch:view().

%% On two schedulers. With little to do the VM keeps all on one of them, maybe on the blocked one,
%% and the other takes over nothing.
a_block_is_reported_while_it_lasts_beside_no_work_and_some_test_() ->
    {timeout, 300,
     fun() -> [until_it_holds(fun() -> is_heard_beside(Percent) end) || Percent <- [0, 40]] end}.

%% On a busy machine the watch itself may be late now and then.
is_heard_beside(Percent) ->
    [{_, Took}] = in_peer(heard_beside, [[Percent], 6, 1000], ["+S", "2:2"]),
    ?assertMatch([_, _, _, _ | _], [Ms || Ms <- Took, Ms < 700], Took).

%% Of many idle schedulers some are enough to take over what waits: not all are woken each time.
among_many_schedulers_few_are_roused_at_a_time_test_() ->
    {timeout, 300,
     fun() -> until_it_holds(fun() ->
             {Took, Activations} = in_peer(heard_among, [3, 1200], ["+S", "32:32"]),
             ?assertMatch([_ | _], [Ms || Ms <- Took, Ms < 700], Took),
             %% At 100, 600 and 1100 ms of each hold, and once more where that took longer.
             ?assert(Activations > 0 andalso Activations =< 3 * 4 * 8, Activations)
     end) end}.

%% @private
heard_among(Holds, Ms) ->
    [{0, Took}] = heard_beside([0], Holds, Ms),
    #{counters := #{activations := Activations}} = fairnif_watch:view(),
    {Took, Activations}.

%% @private After how many ms a reader hears of each block, beside work for that many percent of a
%% scheduler.
heard_beside(Percents, Holds, Ms) ->
    {ok, _} = application:ensure_all_started(fairnif_watch),
    {ok, _} = fairnif_watch:subscribe(self()),
    timer:sleep(2000),
    [begin
         Work = spawn_link(fun() -> Percent > 0 andalso work(Percent) end),
         timer:sleep(2000),
         Took = [heard(Ms) || _ <- lists:seq(1, Holds)],
         unlink(Work),
         exit(Work, kill),
         {Percent, Took}
     end || Percent <- Percents].

heard(Ms) ->
    Begin = erlang:monotonic_time(millisecond),
    {Blocked, Monitor} = spawn_monitor(fun() -> fairnif_watch_probe:block(Ms) end),
    Took = receive
               {fairnif_watch, _, {finding, #{detector := scheduler_blocked}}} ->
                   erlang:monotonic_time(millisecond) - Begin
           after 5 * Ms ->
                   never
           end,
    receive {'DOWN', Monitor, process, Blocked, _} -> ok end,
    receive {fairnif_watch, _, {finding, #{ongoing := false}}} -> ok after 500 -> ok end,
    flush(),
    Took.

work(Percent) ->
    work_until(erlang:monotonic_time(millisecond) + Percent),
    timer:sleep(100 - Percent),
    work(Percent).

work_until(End) ->
    _ = lists:seq(1, 500),
    case erlang:monotonic_time(millisecond) < End of
        true -> work_until(End);
        false -> ok
    end.

flush() ->
    receive {fairnif_watch, _, _} -> flush() after 0 -> ok end.

%% What else blocks a scheduler meanwhile is not what was asked for, nor for how long.
the_self_test_knows_its_own_block_test_() ->
    {timeout, 300,
     fun() ->
             ok = fairnif_watch_test:build(),
             until_it_holds(fun() ->
                     Results = in_peer(tested_beside_others, [], ["+S", "2:2"]),
                     ?assertMatch([_, _], [R || {ok, _} = R <- Results], Results)
             end)
     end}.

%% @private The caller's own messages stay his.
tested_beside_others() ->
    {ok, _} = fairnif_watch:start(#{log => false}),
    self() ! {fairnif_watch, node(), mine},
    Other = spawn(fun Loop() ->
                          fairnif_watch_block_nif:spin(25),
                          timer:sleep(75),
                          Loop()
                  end),
    Results = [fairnif_watch:self_test() || _ <- [1, 2]],
    true = exit(Other, kill),
    receive {fairnif_watch, _, mine} -> ok after 0 -> error(message_lost) end,
    Results.

where_no_watch_runs_the_self_test_says_so_test() ->
    ?assertEqual({error, not_running}, fairnif_watch:self_test()).

%% @private
after_a_finding(How) ->
    %% As on a node that has written nothing yet.
    lists:foreach(fun(Module) -> _ = code:delete(Module), code:purge(Module) end,
                  [calendar, epp, erl_ddll, erl_scan, io_lib_pretty, string, timer, unicode_util]),
    {ok, _} = case How of
                  application -> application:ensure_all_started(fairnif_watch);
                  watch -> fairnif_watch:start(#{})
              end,
    Reader = spawn(fun Read() -> receive _ -> Read() end end),
    {ok, _} = fairnif_watch:subscribe(Reader),
    timer:sleep(1500),
    Before = loaded(),
    {ok, _} = fairnif_watch:self_test(),
    _ = fairnif_watch:json(fairnif_watch:view()),
    _ = fairnif_watch:metrics(),
    timer:sleep(500),
    loaded() -- Before.

loaded() -> [Module || {Module, _} <- code:all_loaded()].
