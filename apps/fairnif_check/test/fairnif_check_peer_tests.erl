-module(fairnif_check_peer_tests).

-include_lib("eunit/include/eunit.hrl").

-export([block/0, start_a_blocked_one/0, eat/1, linked_to_one_that_exits/0, print/0, says/1]).

-define(P, fairnif_check_peer).

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

a_call_that_another_process_ends_is_an_error_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({error, {raised, exit, badarg, []}},
                     ?P:run([], {?MODULE, linked_to_one_that_exits, []}, 10000))
    end}.

linked_to_one_that_exits() ->
    spawn_link(fun() -> exit(badarg) end),
    receive after infinity -> ok end.

a_node_that_ends_during_a_call_is_an_error_that_tells_how_test_() ->
    [{timeout, 60, fun() ->
          ?assertMatch({error, {down, {exit_status, 3}}},
                       ?P:run([], {erlang, halt, [3]}, 10000)) end},
     {timeout, 60, fun() ->
          {ok, Peer} = ?P:start([]),
          {ok, OsPid} = ?P:call(Peer, {os, getpid, []}, 10000),
          Kill = "kill -KILL " ++ OsPid ++ "; sleep 60",
          Answer = ?P:call(Peer, {os, cmd, [Kill]}, 300000),
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
             {{down, unknown}, "the peer node went down"},
             {{raised, error, badarg, []}, "error:badarg"}]].

%% ---- options ----

a_limit_of_memory_is_the_node_s_and_its_end_says_so_test_() ->
    {timeout, 60, fun() ->
        Limit = #{memory => 600000000, quiet => true},
        ?P:with([], Limit, fun(Peer) ->
            ?assertEqual({ok, ok}, ?P:call(Peer, {?MODULE, eat, [100000000]}, 300000)) end),
        {error, {down, {exit_status, _}, Words} = Reason} =
            ?P:with([], Limit, fun(Peer) ->
                ?P:call(Peer, {?MODULE, eat, [1000000000]}, 300000) end),
        ?assertMatch({match, _}, re:run(Words, "annot allocate [0-9]+ bytes")),
        ?assertNotEqual(nomatch, string:find(?P:format_error(Reason), Words)),
        %% As much again, where nothing limits it.
        ?assertEqual({ok, ok}, ?P:run([], {?MODULE, eat, [700000000]}, 300000))
    end}.

the_slogan_of_a_crash_is_its_last_words_test_() ->
    {timeout, 60, fun() ->
        ?assertMatch({error, {down, {exit_status, 1}, <<"my slogan", _/binary>>}},
                     ?P:with([], #{quiet => true}, fun(Peer) ->
                         ?P:call(Peer, {erlang, halt, ["my slogan"]}, 10000) end))
    end}.

%% A handler of another library that passes faults on knows more than the checker's.
of_a_fault_the_runtime_s_words_count_test_() ->
    Fault = "fairnif_check_fault 11 1 1\t" ++ lists:duplicate(300, $x) ++ "+0\n",
    [{timeout, 60, fun() ->
          {error, {down, _, Words}} =
              ?P:with([], #{quiet => true}, fun(Peer) ->
                  ?P:call(Peer, {?MODULE, says, [Lines]}, 10000) end),
          ?assertEqual(Counts, <<Words/binary, "\n">>)
      end} || {Lines, Counts} <- [{["fairnif: oh\n", Fault], <<"fairnif: oh\n">>},
                                  {["others: oh\n", Fault], list_to_binary(Fault)}]].

says(Lines) ->
    io:put_chars(standard_error, Lines),
    erlang:halt(3).

a_wrong_flag_is_named_test_() ->
    {timeout, 60, fun() ->
        {error, {boot, Words} = Reason} = ?P:start(["+S", "many"], #{quiet => true}),
        ?assertMatch({match, _}, re:run(Words, "many$")),
        ?assertMatch(["the peer node did not start: " | _], ?P:format_error(Reason))
    end}.

%% The control process of a node that dies while it prints dies too. Its crash report is not logged
%% here: it holds all that was printed.
a_node_that_prints_as_it_ends_does_not_end_who_asked_test_() ->
    #{level := Level} = logger:get_primary_config(),
    {setup,
     fun() -> logger:set_primary_config(level, none) end,
     fun(_) -> logger:set_primary_config(level, Level) end,
     {timeout, 120, fun() ->
        [begin
             {ok, Peer} = ?P:start([]),
             {ok, _} = ?P:call(Peer, {erlang, spawn, [?MODULE, print, []]}, 10000),
             timer:sleep(20),
             _ = [?assert(lists:member(?P:call(Peer, {erlang, halt, [3]}, 10000),
                                       [{error, {down, {exit_status, 3}}},
                                        {error, {down, unknown}}]))
                  || End =:= halt],
             ?assertEqual(ok, ?P:stop(Peer))
         end || End <- [halt, stop], _ <- lists:seq(1, 10)]
     end}}.

print() ->
    spawn(fun() -> io:put_chars(user, "") end),
    print().

no_file_of_last_words_is_left_behind_test_() ->
    {timeout, 60, fun() ->
        with_directory("it's here", fun(Dir) ->
            {ok, 1} = ?P:with([], #{quiet => true}, fun(Peer) ->
                ?assertMatch([_], filelib:wildcard(filename:join(Dir, "*"))),
                ?P:call(Peer, {erlang, abs, [-1]}, 10000) end),
            {error, {down, _}} = ?P:with([], #{quiet => true}, fun(Peer) ->
                ?P:call(Peer, {erlang, halt, [3]}, 10000) end),
            {error, {boot, _}} = ?P:start(["+S", "many"], #{quiet => true}),
            ?assertEqual([], filelib:wildcard(filename:join(Dir, "*")))
        end)
    end}.

one_that_died_between_two_calls_is_an_error_value_test_() ->
    {timeout, 60, fun() ->
        ?P:with([], fun(Peer) ->
            %% It halts when no process waits for it.
            ?assertMatch({ok, {ok, _}}, ?P:call(Peer, {timer, apply_after,
                                                       [50, erlang, halt, [7]]}, 10000)),
            timer:sleep(2000),
            ?assertEqual({error, {down, {exit_status, 7}}},
                         ?P:call(Peer, {erlang, node, []}, 10000))
        end)
    end}.

more_of_the_code_path_is_found_first_test_() ->
    {timeout, 60, fun() ->
        with_directory("more", fun(Dir) ->
            Module = a_module(Dir, mine),
            ?assertMatch({error, {raised, error, undef, _}}, ?P:run([], {Module, f, []}, 10000)),
            ?assertEqual({ok, mine}, ?P:with([], #{paths => [Dir]}, fun(Peer) ->
                ?P:call(Peer, {Module, f, []}, 10000) end))
        end)
    end}.

%% Of two modules of a name, that of the directory which is named first.
a_peer_looks_in_the_order_of_the_code_path_test_() ->
    {timeout, 60, fun() ->
        with_directory("order", fun(Dir) ->
            [First, Second] = [filename:join(Dir, Name) || Name <- ["first", "second"]],
            [ok = file:make_dir(D) || D <- [First, Second]],
            Module = a_module(First, first),
            Module = a_module(Second, second),
            ?assertEqual({ok, first}, ?P:with([], #{paths => [First, Second]}, fun(Peer) ->
                ?P:call(Peer, {Module, f, []}, 10000) end))
        end)
    end}.

%% Its function f answers this.
a_module(Dir, Answer) ->
    Source = lists:concat(["-module(fairnif_check_of_mine). -export([f/0]). f() -> ", Answer,
                           ". "]),
    ok = file:write_file(filename:join(Dir, "fairnif_check_of_mine.beam"),
                         fairnif_check_stand_in:compiled(Source)),
    fairnif_check_of_mine.

%% Also as the directory of temporary files.
with_directory(Name, Fun) ->
    fairnif_check_stand_in:in_folder(fun(Base) ->
        Dir = filename:join(Base, Name),
        ok = file:make_dir(Dir),
        Before = os:getenv("TMPDIR", "/tmp"),
        os:putenv("TMPDIR", Dir),
        try Fun(Dir) after os:putenv("TMPDIR", Before) end
    end).

%% All of it at once.
eat(Bytes) ->
    Eaten = binary:copy(<<1>>, Bytes),
    Bytes = byte_size(Eaten),
    ok.

%% Nothing else runs on this scheduler again.
block() ->
    process_flag(priority, max),
    forever().

forever() ->
    forever().
