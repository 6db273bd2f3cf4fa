%% h2load against nothing, and its end with the node that started it.
-module(fairnif_exp_http_load_tests).

-include_lib("eunit/include/eunit.hrl").

-export([kept/1]).

-define(L, fairnif_exp_http_load).

its_version_is_known_test() ->
    ?assertMatch({match, _}, re:run(?L:version(), "^[0-9]+\\.[0-9]+")).

without_a_server_it_ends_and_its_log_is_empty_test_() ->
    {timeout, 60, fun() ->
        {Took, {Log, How}} = timer:tc(fun() -> ?L:wait(start(500), now_ms() + 20000) end),
        ?assertEqual(<<>>, Log),
        ?assertNotEqual(killed, How),
        ?assert(Took < 20000000)
    end}.

what_does_not_end_in_time_is_killed_and_its_log_removed_test_() ->
    {timeout, 60, fun() ->
        %% A socket that listens and never answers.
        {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
        {ok, Port} = inet:port(Socket),
        Load = ?L:start(spec(Port, 60000)),
        OsPid = ?L:os_pid(Load),
        ?assertMatch({_, killed}, ?L:wait(Load, now_ms() + 500)),
        ?assertNot(lives(OsPid)),
        ?assertEqual([], filelib:wildcard("/tmp/fairnif-http-" ++ os:getpid() ++ "-*")),
        receive Message -> ?assertEqual(none, Message) after 0 -> ok end,
        gen_tcp:close(Socket)
    end}.

it_dies_with_the_node_that_started_it_test_() ->
    {timeout, 60, fun() ->
        {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
        {ok, Port} = inet:port(Socket),
        {ok, Peer} = fairnif_check_peer:start([]),
        {ok, {OsPid, Log}} =
            fairnif_check_peer:call(Peer, {?MODULE, kept, [spec(Port, 60000)]}, 30000),
        %% Before that it has not yet asked the kernel to be ended.
        fairnif_check_repeat:until_it_holds(
          fun() ->
                  timer:sleep(300),
                  ?assertEqual({ok, <<"h2load\n">>},
                               file:read_file(io_lib:format("/proc/~b/comm", [OsPid])))
          end),
        fairnif_check_peer:stop(Peer),
        fairnif_check_repeat:until_it_holds(fun() ->
                                                  timer:sleep(300),
                                                  ?assertNot(lives(OsPid))
                                          end),
        _ = file:delete(Log),
        gen_tcp:close(Socket)
    end}.

%% In the peer, by a process that stays.
kept(Spec) ->
    Me = self(),
    spawn(fun() ->
                  #{log := Log} = Load = ?L:start(Spec),
                  Me ! {?L:os_pid(Load), Log},
                  receive stop -> ok end
          end),
    receive {_, _} = Started -> Started end.

%% A zombie has ended.
lives(OsPid) ->
    case file:read_file("/proc/" ++ integer_to_list(OsPid) ++ "/stat") of
        {ok, Stat} -> re:run(Stat, "\\) [ZX] ") =:= nomatch;
        {error, _} -> false
    end.

start(Ms) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    ?L:start(spec(Port, Ms)).

spec(Port, Ms) ->
    #{url => io_lib:format("http://127.0.0.1:~b/", [Port]), streams => 25, per_s => 100, ms => Ms}.

now_ms() ->
    erlang:monotonic_time(millisecond).
