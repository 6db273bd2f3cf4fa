%% Throughput of tcp beside gen_tcp in passive mode: one sender, one receiver, loopback. The two
%% take turns, so that what else the machine does meets both; the figure is the median of their
%% ratios. Half a minute, after `rebar3 as test compile':
%%
%%   erl -noinput -pa _build/test/lib/*/ebin _build/test/checkouts/*/ebin _build/test/lib/tcp/test \
%%       -eval 'tcp_bench:main()'
-module(tcp_bench).

-export([main/0]).

-define(LOCAL, {127, 0, 0, 1}).
-define(BYTES, 268435456).
-define(RUNS, 11).

main() ->
    io:format("~8s ~14s ~14s ~14s~n", ["bytes", "tcp, MB/s", "gen_tcp, MB/s", "gen_tcp takes"]),
    [begin
         Pairs = [once(Size, ?BYTES div Size) || _ <- lists:seq(1, ?RUNS)],
         {Ours, Theirs} = lists:unzip(Pairs),
         io:format("~8b ~14b ~14b ~13.2fx~n",
                   [Size, round(median(Ours)), round(median(Theirs)),
                    median([O / T || {O, T} <- Pairs])])
     end || Size <- [65536, 1048576]],
    halt().

%% {Tcp, GenTcp}: MB/s of N sends of Size bytes each.
once(Size, N) ->
    {rate(tcp, Size, N), rate(gen_tcp, Size, N)}.

rate(Module, Size, N) ->
    {Listening, Port} = listening(Module),
    Sender = spawn_link(fun() ->
                                {ok, C} = connect(Module, Port),
                                receive go -> ok end,
                                Data = binary:copy(<<"x">>, Size),
                                [ok = Module:send(C, Data) || _ <- lists:seq(1, N)],
                                receive go -> Module:close(C) end
                        end),
    {ok, S} = Module:accept(Listening, 5000),
    Begin = erlang:monotonic_time(microsecond),
    Sender ! go,
    receive_all(Module, S, Size * N),
    Us = erlang:monotonic_time(microsecond) - Begin,
    Sender ! go,
    ok = Module:close(S),
    ok = Module:close(Listening),
    Size * N / Us.

receive_all(_Module, _S, 0) ->
    ok;
receive_all(Module, S, Left) ->
    {ok, Bytes} = Module:recv(S, 0, 20000),
    receive_all(Module, S, Left - byte_size(Bytes)).

listening(tcp) ->
    {ok, Listening} = tcp:listen(?LOCAL, 0),
    {ok, Port} = tcp:port(Listening),
    {Listening, Port};
listening(gen_tcp) ->
    %% The buffer that a recv of any size fills: as large as what tcp takes at once.
    {ok, Listening} = gen_tcp:listen(0, [binary, {active, false}, {ip, ?LOCAL}, {buffer, 262144}]),
    {ok, Port} = inet:port(Listening),
    {Listening, Port}.

connect(tcp, Port) -> tcp:connect(?LOCAL, Port);
connect(gen_tcp, Port) -> gen_tcp:connect(?LOCAL, Port, [binary, {active, false}]).

median(Numbers) ->
    lists:nth((length(Numbers) + 1) div 2, lists:sort(Numbers)).
