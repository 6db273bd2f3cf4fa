%% What every form promises: the same bytes come back, and nothing of it is left afterwards. In a
%% node of its own, started with the flags that the nodes among the forms need.
-module(echo_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1]).

%% In that node.
-export([echoes/1, many/1, os_pids/1, hold/1, refused/0, no_cookie/0]).

-define(SIZES, [0, 1, 63, 64, 65, 1024, 32767, 32768, 32769, 65535, 65536, 65537, 98304, 300001]).

every_form_sends_back_the_same_bytes_test_() ->
    each(fun(Peer, Form) -> ?assertEqual(ok, in_peer(Peer, echoes, [Form])) end).

a_thousand_echoes_of_any_size_come_back_in_order_test_() ->
    each(fun(Peer, Form) -> ?assertEqual(ok, in_peer(Peer, many, [Form])) end).

nothing_of_a_form_that_was_closed_is_left_test_() ->
    each(fun(Peer, Form) -> [gone(Pid) || Pid <- in_peer(Peer, os_pids, [Form])] end).

nothing_of_any_form_is_left_when_its_node_is_killed_test_() ->
    {timeout, 600,
     fun() ->
             Peer = start(),
             Pids = lists:append([in_peer(Peer, hold, [Form]) || #{form := Form} <- echo:forms()]),
             ?assertEqual(3, length(Pids)),
             [?assert(is_alive(Pid)) || Pid <- Pids],
             _ = os:cmd("kill -9 " ++ in_peer(Peer, os, getpid, [])),
             [gone(Pid) || Pid <- Pids],
             stop(Peer)
     end}.

the_forms_that_are_programs_tell_their_processes_test_() ->
    each([port, c_node, erlang_node],
         fun(Peer, Form) -> ?assertMatch([_], in_peer(Peer, os_pids, [Form])) end).

no_cookie_is_in_a_command_line_test_() ->
    with_peer(fun(Peer) -> ?assertEqual(ok, in_peer(Peer, no_cookie, [])) end).

what_is_no_binary_is_badarg_test_() ->
    with_peer(fun(Peer) -> ?assertEqual(ok, in_peer(Peer, refused, [])) end).

nodes_say_which_flags_are_missing_test_() ->
    {timeout, 600, fun() ->
        ?assertError({flags_missing, ["-start_epmd" | _]}, echo_dist:open_c())
    end}.

%% ---- in the peer ----

echoes(Form) ->
    with(Form, fun(Echo, _) ->
                       [begin
                            Bin = rand:bytes(Size),
                            {Size, true} = {Size, Echo(Bin) =:= Bin}
                        end || Size <- ?SIZES],
                       ok
               end).

many(Form) ->
    with(Form, fun(Echo, _) ->
                       [begin
                            Bin = rand:bytes(rand:uniform(3000) - 1),
                            true = Echo(Bin) =:= Bin
                        end || _ <- lists:seq(1, 1000)],
                       {messages, []} = process_info(self(), messages),
                       ok
               end).

%% The form stays open.
hold(Form) ->
    Me = self(),
    spawn(fun() ->
                  with(Form, fun(_, Pids) ->
                                     Me ! {pids, Pids},
                                     timer:sleep(infinity)
                             end)
          end),
    receive {pids, Pids} -> Pids end.

os_pids(Form) ->
    with(Form, fun(_, Pids) -> Pids end).

no_cookie() ->
    [ok = with(Form, fun(_, [Pid]) ->
                             {ok, Line} = file:read_file(lists:concat(["/proc/", Pid, "/cmdline"])),
                             Cookie = atom_to_binary(erlang:get_cookie()),
                             nomatch = binary:match(Line, Cookie),
                             ok
                     end) || Form <- [c_node, erlang_node]],
    ok.

%% Fun with an echo through a form that is open meanwhile, and the numbers of its processes.
with(Name, Fun) ->
    [#{open := Open, echo := Echo, close := Close}] = [F || #{form := N} = F <- echo:forms(),
                                                            N =:= Name],
    {ok, State, OsPids} = Open(),
    try Fun(fun(Bin) -> Echo(State, Bin) end, OsPids)
    after Close(State)
    end.

refused() ->
    [begin
         {F, badarg} = {F, try F(not_binary) catch error:E -> E end}
     end || F <- [fun echo:nif/1, fun echo:dirty_cpu/1, fun echo:fair_auto/1,
                  fun echo:fair_threaded/1]],
    ok.

%% ---- helpers ----

each(Test) ->
    each([Form || #{form := Form} <- echo:forms()], Test).

each(Forms, Test) ->
    {setup, fun start/0, fun stop/1,
     fun(Peer) ->
             [{atom_to_list(Form), {timeout, 600, fun() -> Test(Peer, Form) end}} || Form <- Forms]
     end}.

with_peer(Test) ->
    {setup, fun start/0, fun stop/1,
     fun(Peer) -> {timeout, 600, fun() -> Test(Peer) end} end}.

in_peer(Peer, Function, Args) ->
    in_peer(Peer, ?MODULE, Function, Args).

in_peer(Peer, Module, Function, Args) ->
    peer:call(Peer, Module, Function, Args, 100000).

%% Not linked: EUnit sets up in a process of its own.
start() ->
    {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => 30000,
                                 peer_down => continue,
                                 exec => filename:join([code:root_dir(), "bin", "erl"]),
                                 args => echo:flags() ++ ["-pa" | code:get_path()]}),
    Peer.

%% It may have been killed.
stop(Peer) ->
    try peer:stop(Peer) catch exit:_ -> ok end.

gone(OsPid) ->
    eventually(fun() -> not is_alive(OsPid) end).

%% One that has ended may wait for its parent to hear of it.
is_alive(OsPid) ->
    case file:read_file("/proc/" ++ integer_to_list(OsPid) ++ "/stat") of
        {ok, Stat} -> re:run(Stat, "\\) Z ") =:= nomatch;
        {error, _} -> false
    end.
