%% tcp against gen_tcp, on either end: the same errors, broken peers, a thousand
%% connections at once, and what a killed owner leaves.
-module(tcp_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, async/1, fds/0]).

-define(LOCAL, {127, 0, 0, 1}).
-define(OPTIONS, [binary, {active, false}, {exit_on_close, false}]).

all_test_() ->
    {timeout, 600, [{atom_to_list(Name), {timeout, 600, fun() -> Test(), ok end}}
                    || {Name, Test} <- tests()]}.

tests() ->
    [{bytes_arrive_whole_in_both_directions, fun bytes/0},
     {what_is_received_is_what_was_asked_for, fun sizes/0},
     {iodata_of_any_shape_is_sent, fun shapes/0},
     {no_listener, fun refused/0},
     {each_call_that_waits_has_its_time_out, fun timeouts/0},
     {a_time_out_in_the_middle_keeps_what_came, fun partial/0},
     {a_reset_connection_is_closed, fun reset/0},
     {who_waits_gets_closed_when_another_process_closes, fun closed/0},
     {a_second_process_that_waits_gets_ebusy, fun busy/0},
     {a_connection_is_closed_when_its_owner_dies, fun owner/0},
     {killed_callers_leave_no_descriptor, fun killed/0},
     {a_thousand_connections_at_once, fun thousand/0}].

%% -- both ends, in each combination --------------------------------------------

pairs() ->
    [{tcp, gen_tcp}, {gen_tcp, tcp}, {tcp, tcp}].

%% {Server, Client}: connected sockets of these modules; the caller owns both.
connected({Server, Client}) ->
    {Listening, Port} = listening(Server),
    {ok, C} = connect(Client, Port),
    {ok, S} = Server:accept(Listening, 5000),
    ok = Server:close(Listening),
    {S, C}.

listening(tcp) ->
    {ok, Listening} = tcp:listen(?LOCAL, 0),
    {ok, Port} = tcp:port(Listening),
    {Listening, Port};
listening(gen_tcp) ->
    {ok, Listening} = gen_tcp:listen(0, [{ip, ?LOCAL}, {backlog, 1024} | ?OPTIONS]),
    {ok, Port} = inet:port(Listening),
    {Listening, Port}.

connect(tcp, Port) -> tcp:connect(?LOCAL, Port, 5000);
connect(gen_tcp, Port) -> gen_tcp:connect(?LOCAL, Port, ?OPTIONS, 5000).

in_each_combination(Test) ->
    [begin
         {S, C} = connected(Pair),
         Test(Pair, S, C),
         close(Pair, S, C)
     end || Pair <- pairs()].

close({Server, Client}, S, C) ->
    ok = Server:close(S),
    ok = Client:close(C).

bytes() ->
    in_each_combination(
      fun({Server, Client}, S, C) ->
              ok = Server:send(S, <<"to the client">>),
              ?assertEqual({ok, <<"to the client">>}, Client:recv(C, 13, 5000)),
              ok = Client:send(C, <<"to the server">>),
              ?assertEqual({ok, <<"to the server">>}, Server:recv(S, 0, 5000)),
              Large = crypto:strong_rand_bytes(5000000),
              _ = spawn_link(fun() -> ok = Server:send(S, Large) end),
              ?assertEqual({ok, Large}, Client:recv(C, byte_size(Large), 20000)),
              _ = spawn_link(fun() -> ok = Client:send(C, Large) end),
              ?assertEqual({ok, Large}, Server:recv(S, byte_size(Large), 20000))
      end).

sizes() ->
    {S, C} = connected({tcp, gen_tcp}),
    ok = gen_tcp:send(C, <<"0123456789">>),
    ?assertEqual({ok, <<"012">>}, tcp:recv(S, 3, 5000)),
    ?assertEqual({ok, <<"3456789">>}, tcp:recv(S, 0, 5000)),
    ?assertError(badarg, tcp:recv(S, -1, 5000)),
    ?assertError(badarg, tcp:recv(S, a, 5000)),
    ?assertEqual({error, closed}, tcp:recv(make_ref(), 1, 0)),
    close({tcp, gen_tcp}, S, C).

shapes() ->
    {S, C} = connected({tcp, gen_tcp}),
    Shapes = [[], <<>>, "abc", [<<"a">>, [$b, [[<<"c">>]] | <<"d">>]],
              [binary:copy(<<I>>, 1 + I * 37 rem 300) || I <- lists:seq(0, 255)],
              [binary:copy(<<I>>, 100) || I <- lists:seq(0, 255), _ <- lists:seq(1, 80)],
              binary:part(binary:copy(<<"xyz">>, 100000), 1, 250000)],
    [begin
         Bytes = iolist_to_binary(Shape),
         _ = spawn_link(fun() -> ok = tcp:send(S, Shape) end),
         Bytes =:= <<>> orelse ?assertEqual({ok, Bytes}, gen_tcp:recv(C, byte_size(Bytes), 20000))
     end || Shape <- Shapes],
    ?assertError(badarg, tcp:send(S, [an_atom])),
    close({tcp, gen_tcp}, S, C).

refused() ->
    {Listening, Port} = listening(gen_tcp),
    ok = gen_tcp:close(Listening),
    ?assertEqual({error, econnrefused}, tcp:connect(?LOCAL, Port)),
    ?assertEqual({error, econnrefused}, gen_tcp:connect(?LOCAL, Port, [])),
    ?assertEqual({error, econnrefused}, tcp:connect("localhost", Port, 1000)),
    {L2, Port2} = listening(gen_tcp),
    ?assertEqual({error, eaddrinuse}, tcp:listen(?LOCAL, Port2)),
    ok = gen_tcp:close(L2).

timeouts() ->
    {S, C} = connected({tcp, gen_tcp}),
    ?assertEqual({error, timeout}, in_time(50, fun() -> tcp:recv(S, 0, 50) end)),
    ?assertEqual({error, timeout}, in_time(50, fun() -> tcp:recv(S, 10, 50) end)),
    ?assertEqual({error, timeout}, in_time(0, fun() -> tcp:recv(S, 0, 0) end)),
    %% The peer reads nothing.
    ?assertEqual({error, timeout},
                 in_time(100, fun() -> tcp:send(S, binary:copy(<<0>>, 50000000), 100) end)),
    close({tcp, gen_tcp}, S, C),
    {Listening, _} = listening(tcp),
    ?assertEqual({error, timeout}, in_time(50, fun() -> tcp:accept(Listening, 50) end)),
    ok = tcp:close(Listening).

in_time(Ms, Fun) ->
    {Us, Result} = timer:tc(Fun),
    ?assert(Us >= Ms * 1000),
    ?assert(Us < Ms * 1000 + 5000000),
    Result.

partial() ->
    {S, C} = connected({tcp, gen_tcp}),
    ok = gen_tcp:send(C, <<"half">>),
    ?assertEqual({error, {timeout, <<"half">>}}, tcp:recv(S, 8, 100)),
    ok = gen_tcp:send(C, <<"rest">>),
    ?assertEqual({ok, <<"rest">>}, tcp:recv(S, 4, 5000)),
    close({tcp, gen_tcp}, S, C).

%% -- peers that are slow or broken -------------------------------------------------

reset() ->
    {S, C} = connected({tcp, gen_tcp}),
    Waiting = async(fun() -> tcp:recv(S, 0) end),
    ok = inet:setopts(C, [{linger, {true, 0}}]),
    ok = gen_tcp:close(C),
    ?assertEqual({error, closed}, result(Waiting)),
    ?assertEqual({error, closed}, tcp:send(S, <<"into the void">>)),
    ok = tcp:close(S),
    %% In the middle of a large send.
    {S2, C2} = connected({tcp, gen_tcp}),
    Sending = async(fun() -> tcp:send(S2, binary:copy(<<0>>, 50000000)) end),
    ok = inet:setopts(C2, [{linger, {true, 0}}]),
    ok = gen_tcp:close(C2),
    ?assertEqual({error, closed}, result(Sending)),
    ok = tcp:close(S2).

closed() ->
    {S, C} = connected({tcp, gen_tcp}),
    {Listening, _} = listening(tcp),
    Receiving = async(fun() -> tcp:recv(S, 0) end),
    Sending = async(fun() -> tcp:send(S, binary:copy(<<0>>, 50000000)) end),
    Accepting = async(fun() -> tcp:accept(Listening) end),
    ok = tcp:close(S),
    ok = tcp:close(Listening),
    [?assertEqual({error, closed}, result(A)) || A <- [Receiving, Sending, Accepting]],
    ?assertEqual({error, closed}, tcp:recv(S, 0)),
    ?assertEqual({error, closed}, tcp:send(S, <<"x">>)),
    ?assertEqual({error, closed}, tcp:accept(Listening)),
    ?assertEqual({error, closed}, tcp:port(S)),
    ok = tcp:close(S),
    _ = gen_tcp:recv(C, 0, 5000),
    ok = gen_tcp:close(C).

busy() ->
    {S, C} = connected({tcp, gen_tcp}),
    Receiving = async(fun() -> tcp:recv(S, 0) end),
    ?assertEqual({error, ebusy}, tcp:recv(S, 0)),
    ok = tcp:send(S, <<"sending is another matter">>),
    ok = gen_tcp:send(C, <<"x">>),
    ?assertEqual({ok, <<"x">>}, result(Receiving)),
    close({tcp, gen_tcp}, S, C).

owner() ->
    {Listening, Port} = listening(gen_tcp),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           {ok, S} = tcp:connect(?LOCAL, Port, 5000),
                                           tcp:recv(S, 0)
                                   end),
    {ok, C} = gen_tcp:accept(Listening, 5000),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, _, killed} -> ok end,
    ?assertEqual({error, closed}, gen_tcp:recv(C, 0, 5000)),
    ok = gen_tcp:close(C),
    ok = gen_tcp:close(Listening).

killed() ->
    {Listening, Port} = listening(tcp),
    Fds = fds(),
    [begin
         {Pid, Monitor} = spawn_monitor(
                            fun() ->
                                    {ok, C} = tcp:connect(?LOCAL, Port, 5000),
                                    {ok, S} = tcp:accept(Listening, 5000),
                                    _ = spawn_link(fun() -> tcp:recv(C, 5) end),
                                    tcp:send(S, binary:copy(<<0>>, 5000000))
                            end),
         I rem 3 > 0 andalso timer:sleep(I rem 7),
         exit(Pid, kill),
         receive {'DOWN', Monitor, process, _, _} -> ok end
     end || I <- lists:seq(1, 200)],
    %% Connections that were not accepted any more.
    (fun Rest() ->
             case tcp:accept(Listening, 0) of
                 {ok, S} -> ok = tcp:close(S), Rest();
                 {error, timeout} -> ok
             end
     end)(),
    eventually(fun() -> fds() =< Fds end),
    ok = tcp:close(Listening).

%% -- many, and fast ------------------------------------------------------------------

thousand() ->
    [thousand(Pair) || Pair <- pairs()].

%% All of them are there before the first byte is sent; each has its own bytes.
thousand({Server, Client}) ->
    N = 1000,
    {Listening, Port} = listening(Server),
    Self = self(),
    Clients = [spawn_link(fun() -> client(Client, Port, I, Self) end) || I <- lists:seq(1, N)],
    Accepted = [begin
                    {ok, S} = Server:accept(Listening, 20000),
                    spawn_link(fun() -> echo(Server, S, Self) end)
                end || _ <- lists:seq(1, N)],
    [receive {connected, Pid} -> ok end || Pid <- Clients],
    [Pid ! go || Pid <- Clients ++ Accepted],
    Answers = [receive {answer, Pid, Answer} -> Answer end || Pid <- Clients],
    ?assertEqual(N, length([ok || ok <- Answers])),
    [receive {echoed, Pid} -> ok end || Pid <- Accepted],
    Server:close(Listening).

client(Module, Port, I, Parent) ->
    {ok, C} = connect(Module, Port),
    Parent ! {connected, self()},
    receive go -> ok end,
    Data = crypto:hash(sha256, <<I:32>>),
    Answer = case {Module:send(C, Data), Module:recv(C, 32, 60000)} of
                 {ok, {ok, Data}} -> ok;
                 Other -> Other
             end,
    ok = Module:close(C),
    Parent ! {answer, self(), Answer}.

%% The acceptor owns it: a socket of another process is used as well as one's own.
echo(Module, S, Parent) ->
    receive go -> ok end,
    {ok, Data} = Module:recv(S, 32, 60000),
    ok = Module:send(S, Data),
    {error, closed} = Module:recv(S, 0, 60000),
    ok = Module:close(S),
    Parent ! {echoed, self()}.

%% -- helpers -----------------------------------------------------------------------------

result({_Pid, Monitor}) ->
    receive {'DOWN', Monitor, process, _, {result, Result}} -> Result
    after 240000 -> no_answer
    end.
