%% What every form promises: the same bytes come back, and nothing of it is left afterwards. In a
%% node of its own, started with the flags that the nodes among the forms need.
-module(echo_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/2]).

%% In that node.
-export([echoes/1, many/1, os_pids/1, hold/1, killed_callers/1, refused/0, files/0]).

-define(SIZES, [0, 1, 63, 64, 65, 1024, 32767, 32768, 32769, 65535, 65536, 65537, 98304, 300001]).
-define(GONE_MS, 10000).

every_form_sends_back_the_same_bytes_test_() ->
    each(fun(Peer, Form) -> ?assertEqual(ok, in_peer(Peer, echoes, [Form])) end).

a_thousand_echoes_of_any_size_come_back_in_order_test_() ->
    each(fun(Peer, Form) -> ?assertEqual(ok, in_peer(Peer, many, [Form])) end).

nothing_of_a_form_that_was_closed_is_left_test_() ->
    each(fun(Peer, Form) -> [gone(Pid) || Pid <- in_peer(Peer, os_pids, [Form])] end).

nothing_of_any_form_is_left_when_its_node_is_killed_test_() ->
    {timeout, 200,
     fun() ->
             Peer = start(),
             Pids = lists:append([in_peer(Peer, hold, [Form]) || #{form := Form} <- echo:forms()]),
             ?assert(length(Pids) >= 5),
             [?assert(is_alive(Pid)) || Pid <- Pids],
             _ = os:cmd("kill -9 " ++ in_peer(Peer, os, getpid, [])),
             [gone(Pid) || Pid <- Pids],
             stop(Peer)
     end}.

the_forms_that_are_programs_tell_their_processes_test_() ->
    each([port, c_node, tcp, udp, erlang_node],
         fun(Peer, Form) -> ?assertMatch([_], in_peer(Peer, os_pids, [Form])) end).

no_cookie_is_left_in_a_file_test_() ->
    with_peer(fun(Peer) -> ?assertEqual({ok, []}, in_peer(Peer, files, [])) end).

what_is_no_binary_is_badarg_test_() ->
    with_peer(fun(Peer) -> ?assertEqual(ok, in_peer(Peer, refused, [])) end).

%% Its thread is joined by the destructor then.
a_caller_that_is_killed_leaves_no_thread_test_() ->
    with_peer(fun(Peer) -> ?assertEqual(ok, in_peer(Peer, killed_callers, [300])) end).

nodes_say_which_flags_are_missing_test_() ->
    {timeout, 60, fun() ->
        ?assertError({flags_missing, ["-setcookie" | _]}, echo_dist:open_c())
    end}.

java_is_measured_or_left_out_with_a_reason_test() ->
    case echo_dist:java() of
        {ok, Java, ClassPath} -> ?assert(filelib:is_file(Java) andalso is_list(ClassPath));
        {left_out, Why} -> ?assert(length(Why) > 5)
    end.

where_there_is_no_java_that_form_is_left_out_test() ->
    Path = os:getenv("PATH"),
    true = os:putenv("PATH", "/nonexistent"),
    try ?assertEqual({left_out, "no java"}, echo:with(jinterface, fun(_, _) -> wrong end))
    after os:putenv("PATH", Path)
    end.

%% ---- in the peer ----

echoes(Form) ->
    done(echo:with(Form, fun(Echo, _) ->
                                 [begin
                                      Bin = rand:bytes(Size),
                                      {Size, true} = {Size, Echo(Bin) =:= Bin}
                                  end || Size <- ?SIZES],
                                 ok
                         end)).

many(Form) ->
    done(echo:with(Form, fun(Echo, _) ->
                                 [begin
                                      Bin = rand:bytes(rand:uniform(3000) - 1),
                                      true = Echo(Bin) =:= Bin
                                  end || _ <- lists:seq(1, 1000)],
                                 {messages, []} = process_info(self(), messages),
                                 ok
                         end)).

done({left_out, _}) -> ok;
done(ok) -> ok.

%% The form stays open.
hold(Form) ->
    Me = self(),
    spawn(fun() ->
                  Me ! {pids, echo:with(Form, fun(_, Pids) ->
                                                      Me ! {pids, Pids},
                                                      timer:sleep(infinity)
                                              end)}
          end),
    receive
        {pids, {left_out, _}} -> [];
        {pids, Pids} -> Pids
    end.

os_pids(Form) ->
    case echo:with(Form, fun(_, Pids) -> Pids end) of
        {left_out, _} -> [];
        Pids -> Pids
    end.

files() ->
    ok = echo:with(erlang_node, fun(_, _) -> ok end),
    Mine = "fairnif-echo-" ++ os:getpid(),
    {ok, [F || F <- filelib:wildcard("*", os:getenv("TMPDIR", "/tmp")), lists:prefix(Mine, F)]}.

refused() ->
    [begin
         {F, badarg} = {F, try F(not_binary) catch error:E -> E end}
     end || F <- [fun echo_nif:nif/1, fun echo_nif:rescheduled/1, fun echo_nif:dirty_cpu/1,
                  fun echo_nif:dirty_io/1, fun echo_fair:fair_auto/1,
                  fun echo_fair:fair_threaded/1, fun echo_thread:echo/1]],
    ok.

killed_callers(N) ->
    Bin = rand:bytes(1000),
    Bin = echo_thread:echo(Bin),
    Before = threads(),
    [begin
         Pid = spawn(fun Loop() -> echo_thread:echo(Bin), Loop() end),
         timer:sleep(rand:uniform(2)),
         exit(Pid, kill)
     end || _ <- lists:seq(1, N)],
    eventually(fun() -> threads() =< Before end, ?GONE_MS).

threads() ->
    {ok, Threads} = file:list_dir("/proc/self/task"),
    length(Threads).

%% ---- helpers ----

each(Test) ->
    each([Form || #{form := Form} <- echo:forms()], Test).

each(Forms, Test) ->
    {setup, fun start/0, fun stop/1,
     fun(Peer) ->
             [{atom_to_list(Form), {timeout, 120, fun() -> Test(Peer, Form) end}} || Form <- Forms]
     end}.

with_peer(Test) ->
    {setup, fun start/0, fun stop/1,
     fun(Peer) -> {timeout, 120, fun() -> Test(Peer) end} end}.

in_peer(Peer, Function, Args) ->
    in_peer(Peer, ?MODULE, Function, Args).

in_peer(Peer, Module, Function, Args) ->
    peer:call(Peer, Module, Function, Args, 100000).

%% Not linked: EUnit sets up in a process of its own.
start() ->
    {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => 30000,
                                 peer_down => continue, exec => echo_dist:erl(),
                                 args => echo_dist:flags() ++ ["-pa" | code:get_path()]}),
    Peer.

%% It may have been killed.
stop(Peer) ->
    try peer:stop(Peer) catch exit:_ -> ok end.

gone(OsPid) ->
    eventually(fun() -> not is_alive(OsPid) end, ?GONE_MS).

%% One that has ended may wait for its parent to hear of it.
is_alive(OsPid) ->
    case file:read_file("/proc/" ++ integer_to_list(OsPid) ++ "/stat") of
        {ok, Stat} -> re:run(Stat, "\\) Z ") =:= nomatch;
        {error, _} -> false
    end.
