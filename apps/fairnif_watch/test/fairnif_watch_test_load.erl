%% Heavy ordinary load, in a peer node: what programs do, and nothing that blocks a scheduler.
%%
%% Each load is a process that does one unit of work after the other, checks what came of it, and
%% counts; one that crashes takes run/2 with it. What OTP itself does in one go is not in here: that
%% is a true finding (term_to_binary/2 with `compressed' was one: 15 ms of deflate without a pause).
-module(fairnif_watch_test_load).

-export([run/2, start/2, stop/1, hold/2, loads/0, echo/0]).

-define(FAIR, fairnif_watch_block_fair).
-define(NIF, fairnif_watch_block_nif).

%% @doc All loads for that many ms beside each other; units done of each. Echo: a connected node, or
%% none.
run(Ms, Echo) ->
    Loads = start(loads(), Echo),
    timer:sleep(Ms),
    stop(Loads).

%% @doc These loads until the node ends, in a process of their own.
hold(Names, Echo) ->
    spawn(fun() ->
                  _ = start(Names, Echo),
                  timer:sleep(infinity)
          end).

start(Names, Echo) ->
    [{Name, spawn_link(fun() -> loop(Name, Echo, 0) end)} || Name <- Names].

%% @doc Units done of each, by name. Each load ends after the unit that it is in.
stop(Loads) ->
    [Pid ! {self(), stop} || {_, Pid} <- Loads],
    maps:from_list([receive {Pid, Done} -> {Name, Done} end || {Name, Pid} <- Loads]).

loop(Name, Echo, Done) ->
    receive
        {From, stop} -> unlink(From), From ! {self(), Done}
    after 0 ->
            case {Name, Echo} of
                {distribution, none} -> timer:sleep(20);
                _ -> unit(Name, Echo)
            end,
            loop(Name, Echo, Done + 1)
    end.

loads() ->
    [ring, spawns, heap, garbage, ets, binaries, external, timers, ports, files, sockets, code,
     distribution, online, yielding, auto, yielding_dirty, dirty_cpu, dirty_io].

%% Messages around a ring of 100.
unit(ring, _) ->
    Last = lists:foldl(fun(_, To) -> spawn_link(fun() -> pass(To) end) end, self(),
                       lists:seq(1, 100)),
    [Last ! {token, N} || N <- lists:seq(1, 50)],
    [receive {token, N} -> ok end || N <- lists:seq(1, 50)],
    Last ! stop,
    receive stop -> ok end;
unit(spawns, _) ->
    Monitors = [element(2, spawn_monitor(fun() -> exit(N) end)) || N <- lists:seq(1, 500)],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors];
%% A heap of some 30 MB, sorted and dropped.
unit(heap, _) ->
    in_fresh_process(fun() ->
                             Numbers = [erlang:phash2(N) || N <- lists:seq(1, 300000)],
                             Map = maps:from_list([{N, [N]} || N <- lists:sublist(Numbers, 20000)]),
                             Sorted = lists:usort(Numbers),
                             true = erlang:garbage_collect(),
                             true = is_map_key(hd(Numbers), Map),
                             length(Sorted)
                     end);
%% Collections of a heap that lives.
unit(garbage, _) ->
    in_fresh_process(fun() ->
                             Kept = [{N, integer_to_binary(N)} || N <- lists:seq(1, 100000)],
                             _ = [[{I} || I <- lists:seq(1, 10000)] || _ <- lists:seq(1, 30)],
                             length(Kept)
                     end);
unit(ets, _) ->
    Table = ets:new(load, [ordered_set, public, {write_concurrency, true}]),
    [ets:insert(Table, {N, N * N}) || N <- lists:seq(1, 20000)],
    [{N, _} = hd(ets:lookup(Table, N)) || N <- lists:seq(1, 20000, 7)],
    10000 = length(ets:select(Table, [{{'$1', '_'}, [{'>', '$1', 10000}], ['$1']}])),
    5000 = ets:select_delete(Table, [{{'$1', '_'}, [{'=<', '$1', 5000}], [true]}]),
    15000 = length(ets:tab2list(Table)),
    ets:delete(Table);
unit(binaries, _) ->
    Binary = lists:foldl(fun(N, B) -> <<B/binary, N:64>> end, <<>>, lists:seq(1, 50000)),
    Parts = binary:split(Binary, <<0, 0, 1>>, [global]),
    Joined = iolist_to_binary(lists:join(<<0, 0, 1>>, Parts)),
    true = erlang:crc32(Joined) =:= erlang:crc32(Binary),
    16 = byte_size(erlang:md5(binary:copy(Binary, 4))),
    Text = base64:encode(Binary),
    Binary = base64:decode(Text),
    {match, _} = re:run(Text, <<"A[A-F]+B">>, [global]);
unit(external, _) ->
    Term = [{N, {list_to_atom("a" ++ integer_to_list(N rem 50)), <<N:32>>, float(N)}}
            || N <- lists:seq(1, 30000)],
    Term = binary_to_term(term_to_binary(Term));
unit(timers, _) ->
    Refs = [erlang:start_timer(10000 + N, self(), unwanted) || N <- lists:seq(1, 5000)],
    [true = is_integer(erlang:cancel_timer(Ref)) || Ref <- Refs],
    [erlang:send_after(N rem 20, self(), {late, N}) || N <- lists:seq(1, 1000)],
    [receive {late, N} -> ok end || N <- lists:seq(1, 1000)];
unit(ports, _) ->
    "here\n" = os:cmd("echo here"),
    Port = open_port({spawn_executable, os:find_executable("cat")}, [binary, stream]),
    Data = binary:copy(<<"0123456789">>, 10000),
    true = port_command(Port, Data),
    ok = port_bytes(Port, byte_size(Data)),
    port_close(Port);
unit(files, _) ->
    Name = filename:join(os:getenv("TMPDIR", "/tmp"),
                         "fairnif-load-" ++ os:getpid() ++ pid_to_list(self())),
    Data = binary:copy(<<"0123456789">>, 50000),
    ok = file:write_file(Name, Data),
    {ok, Data} = file:read_file(Name),
    ok = file:delete(Name);
unit(sockets, _) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listen),
    Data = binary:copy(<<"0123456789">>, 50000),
    Client = spawn_link(fun() ->
                                {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number,
                                                               [binary, {active, false}]),
                                ok = gen_tcp:send(Socket, Data),
                                {ok, Data} = gen_tcp:recv(Socket, byte_size(Data)),
                                ok = gen_tcp:close(Socket)
                        end),
    Monitor = monitor(process, Client),
    {ok, Socket} = gen_tcp:accept(Listen),
    {ok, Data} = gen_tcp:recv(Socket, byte_size(Data)),
    ok = gen_tcp:send(Socket, Data),
    receive {'DOWN', Monitor, process, _, normal} -> ok end,
    [ok = gen_tcp:close(S) || S <- [Socket, Listen]];
%% Not as often as it can: each leaves 592 bytes of the C library's in the emulator of OTP 25 (seen
%% without the watch), by which the memory of an hour would not stay as it is.
unit(code, _) ->
    Name = fairnif_watch_loaded,
    Version = erlang:unique_integer(),
    {ok, Name, Code} = compile:forms([{attribute, 1, module, Name},
                                      {attribute, 1, export, [{f, 0}]},
                                      {function, 1, f, 0,
                                       [{clause, 1, [], [], [erl_parse:abstract(Version)]}]}]),
    {module, Name} = code:load_binary(Name, "loaded", Code),
    Version = Name:f(),
    true = code:delete(Name),
    _ = code:purge(Name),
    timer:sleep(500);
unit(distribution, Echo) ->
    Data = binary:copy(<<"0123456789">>, 20000),
    Terms = lists:seq(1, 5000),
    {echo, Echo} ! {self(), Data, Terms},
    receive {echoed, Data, Terms} -> ok end,
    Echo = erpc:call(Echo, erlang, node, []);
%% Schedulers go away and come back, one way and the other.
unit(online, _) ->
    N = erlang:system_info(schedulers),
    _ = erlang:system_flag(multi_scheduling, block),
    timer:sleep(15),
    _ = erlang:system_flag(multi_scheduling, unblock),
    timer:sleep(15),
    N = erlang:system_flag(schedulers_online, 1),
    timer:sleep(15),
    1 = erlang:system_flag(schedulers_online, N),
    timer:sleep(55);
unit(yielding, _) ->
    {_, _, 0} = ?FAIR:fair_yielding(20);
unit(auto, _) ->
    {_, _, 0} = ?FAIR:fair_auto(20);
unit(yielding_dirty, _) ->
    {_, _, 0} = ?FAIR:fair_yielding_dirty(20),
    timer:sleep(30);
%% What dirty schedulers are for, and less than they can take.
unit(dirty_cpu, _) ->
    {_, _, 0} = ?NIF:spin_dirty_cpu(30),
    timer:sleep(70);
unit(dirty_io, _) ->
    {_, _, 0} = ?NIF:sleep_dirty_io(30),
    timer:sleep(10).

pass(To) ->
    receive
        stop -> To ! stop;
        Message -> To ! Message, pass(To)
    end.

port_bytes(_, 0) -> ok;
port_bytes(Port, N) -> receive {Port, {data, Data}} -> port_bytes(Port, N - byte_size(Data)) end.

in_fresh_process(Fun) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({done, Fun()}) end),
    receive {'DOWN', Monitor, process, _, Reason} -> {done, _} = Reason end.

%% @doc In the other node: starts what answers the load `distribution'.
echo() ->
    Pid = spawn(fun Loop() ->
                        receive {From, Data, Terms} -> From ! {echoed, Data, Terms} end,
                        Loop()
                end),
    true = register(echo, Pid),
    node().
