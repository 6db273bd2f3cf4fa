-module(fairnif_lab_peer_tests).

-include_lib("eunit/include/eunit.hrl").

-export([block/0, start_a_blocked_one/0]).

-define(P, fairnif_lab_peer).

a_call_answers_its_value_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, 3}, ?P:run([], {erlang, '+', [1, 2]}, 10000)) end}.

flags_reach_the_node_and_those_of_the_environment_do_not_test_() ->
    {timeout, 60, fun() ->
        os:putenv("ERL_AFLAGS", "+S 3:3"),
        try
            ?assertEqual({ok, 1}, ?P:run(["+S", "1:1"],
                                         {erlang, system_info, [schedulers]},
                                         10000))
        after
            os:unsetenv("ERL_AFLAGS")
        end
    end}.

a_peer_finds_the_code_of_this_node_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, [sort, maps, binaries]},
                     ?P:run([], {fairnif_lab_share, mixes, []}, 10000)) end}.

what_a_call_raises_is_a_value_test_() ->
    {timeout, 60, fun() ->
        ?P:with([], fun(Peer) ->
            ?assertMatch({error, {raised, error, badarg, _}},
                         ?P:call(Peer, {erlang, binary_to_atom, [1]}, 10000)),
            ?assertMatch({error, {raised, exit, gone, _}},
                         ?P:call(Peer, {erlang, exit, [gone]}, 10000)),
            %% And the node is as good as before.
            ?assertEqual({ok, ok}, ?P:call(Peer, {timer, sleep, [1]}, 10000))
        end)
    end}.

a_node_that_ends_during_a_call_is_an_error_that_tells_how_test_() ->
    [{timeout, 60, fun() ->
          ?assertMatch({error, {down, {exit_status, 3}}},
                       ?P:run([], {erlang, halt, [3]}, 10000)) end},
     {timeout, 60, fun() ->
          {ok, Peer} = ?P:start([]),
          {ok, OsPid} = ?P:call(Peer, {os, getpid, []}, 10000),
          Kill = "kill -KILL " ++ OsPid ++ "; sleep 60",
          Answer = ?P:call(Peer, {os, cmd, [Kill]}, 20000),
          ok = ?P:stop(Peer),
          ?assertEqual({error, {down, {exit_status, 128 + 9}}}, Answer)
     end}].

a_call_that_never_ends_is_a_timeout_test_() ->
    {timeout, 60, fun() ->
        {Us, Answer} = timer:tc(fun() ->
            ?P:with([], fun(Peer) ->
                ?P:call(Peer, {timer, sleep, [infinity]}, 300) end) end),
        ?assertEqual({error, {timeout, 300}}, Answer),
        ?assert(Us < 20000000)
    end}.

a_node_whose_schedulers_are_blocked_is_killed_all_the_same_test_() ->
    {timeout, 60, fun() ->
        {ok, Peer} = ?P:start(["+S", "1:1"]),
        {ok, OsPid} = ?P:call(Peer, {os, getpid, []}, 10000),
        ?assertEqual({error, {timeout, 300}},
                     ?P:call(Peer, {?MODULE, block, []}, 300)),
        ?assertEqual(ok, ?P:stop(Peer)),
        ?assertNot(filelib:is_dir("/proc/" ++ OsPid))
    end}.

a_blocked_node_ends_when_the_node_that_started_it_is_killed_test_() ->
    {timeout, 120, fun() ->
        {ok, Outer} = ?P:start([]),
        {ok, OuterPid} = ?P:call(Outer, {os, getpid, []}, 10000),
        {ok, InnerPid} = ?P:call(Outer, {?MODULE, start_a_blocked_one, []}, 60000),
        ?assert(filelib:is_dir("/proc/" ++ InnerPid)),
        "" = os:cmd("kill -KILL " ++ OuterPid),
        ?assert(gone(InnerPid, 100)),
        ok = ?P:stop(Outer)
    end}.

start_a_blocked_one() ->
    Me = self(),
    spawn(fun() ->
              {ok, Inner} = ?P:start(["+S", "1:1"]),
              {ok, OsPid} = ?P:call(Inner, {os, getpid, []}, 10000),
              {error, {timeout, _}} = ?P:call(Inner, {?MODULE, block, []}, 300),
              Me ! OsPid,
              receive after infinity -> ok end
          end),
    receive OsPid -> OsPid end.

gone(_, 0) -> false;
gone(OsPid, Times) ->
    case filelib:is_dir("/proc/" ++ OsPid) of
        true -> timer:sleep(100), gone(OsPid, Times - 1);
        false -> true
    end.

a_node_that_cannot_boot_is_an_error_test_() ->
    {timeout, 60, fun() ->
        ?assertMatch({error, {boot, _}}, ?P:start(["-s", "erlang", "halt"])) end}.

a_node_ends_however_the_fun_that_uses_it_ends_test_() ->
    {timeout, 60, fun() ->
        Me = self(),
        ?assertError(oops, ?P:with([], fun(Peer) ->
            Me ! ?P:call(Peer, {os, getpid, []}, 10000), error(oops) end)),
        receive {ok, OsPid} -> ok end,
        ?assertNot(filelib:is_dir("/proc/" ++ OsPid))
    end}.

a_reason_can_be_read_test_() ->
    [?_assertEqual(Text, unicode:characters_to_list(?P:format_error(Reason)))
     || {Reason, Text} <-
            [{{timeout, 60000}, "no answer within 60 s"},
             {{down, {exit_status, 139}},
              "the peer node was killed by signal 11"},
             {{down, {exit_status, 1}},
              "the peer node ended with exit status 1"},
             {{raised, error, badarg, []}, "error:badarg"}]].

%% Nothing else runs on this scheduler again.
block() ->
    process_flag(priority, max),
    forever().

forever() ->
    forever().
