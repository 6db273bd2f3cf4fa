%% zstandard beside ezstd and OTP's own zstd, and its plain and dirty forms: CPU time of the node
%% for one call, the forms in turns.
%%
%%   make bench
-module(zstandard_bench).

-export([main/0]).

-define(ROUNDS, 9).
-define(ROUND_US, 60000).

main() ->
    Forms = [Form || Form <- [ezstd, zstd], code:ensure_loaded(Form) =/= {error, nofile}]
        ++ [plain, fair, dirty],
    io:format("CPU time, median of ~b; the others against the first~n", [?ROUNDS]),
    All = data(),
    [row(Function, Level, binary:part(All, 0, Size), Forms)
     || {Function, Levels} <- [{compress, [1, 2, 3, 4, 9]}, {decompress, [3]}],
        Level <- Levels,
        Size <- [1000, 10000, 100000, 1000000, 20000000],
        Level < 9 orelse Size < 20000000],
    halt().

%% An executable's code and data.
data() ->
    {ok, Code} = file:read_file(filename:join([code:root_dir(), "erts-" ++
                                               erlang:system_info(version), "bin", "beam.smp"])),
    iolist_to_binary(lists:duplicate(20000000 div byte_size(Code) + 1, Code)).

row(Function, Level, Data, Forms) ->
    Argument = case Function of
                   compress -> Data;
                   decompress -> zstandard:plain_compress(Data, Level)
               end,
    Call = fun(Form) -> call(Form, Function, Argument, Level) end,
    Calls = [{Form, calls(Form, Call, 1)} || Form <- Forms],
    Rounds = [[{Form, cpu_us(Form, Call, Count)} || {Form, Count} <- Calls]
              || _ <- lists:seq(1, ?ROUNDS)],
    [First | Others] = [{Form, median([proplists:get_value(Form, Round) || Round <- Rounds])}
                        || Form <- Forms],
    io:format("~-10s level ~b ~8b bytes  ~s ~9.1f us ~s~n",
              [Function, Level, byte_size(Data), element(1, First), element(2, First),
               [io_lib:format("  ~s ~.2f x", [Form, Us / element(2, First)])
                || {Form, Us} <- Others]]).

%% As many as take a round's time.
calls(Form, Call, Count) ->
    case cpu_us(Form, Call, Count) * Count of
        Us when Us < ?ROUND_US / 4 -> calls(Form, Call, 4 * Count);
        Us -> max(1, round(Count * ?ROUND_US / Us))
    end.

cpu_us(Form, Call, Count) ->
    erlang:garbage_collect(),
    {_, Monitor} = spawn_monitor(fun() ->
                                         Begin = cpu_ms(),
                                         repeat(Count, Form, Call),
                                         exit({took, (cpu_ms() - Begin) * 1000 / Count})
                                 end),
    receive {'DOWN', Monitor, process, _, {took, Us}} -> Us end.

%% Of all threads, so also of a dirty one.
cpu_ms() ->
    {Ms, _} = erlang:statistics(runtime),
    Ms.

repeat(0, _, _) ->
    ok;
repeat(N, Form, Call) ->
    true = is_binary(iolist_to_binary(Call(Form))),
    repeat(N - 1, Form, Call).

call(fair, compress, Data, Level) -> zstandard:compress(Data, Level);
call(plain, compress, Data, Level) -> zstandard:plain_compress(Data, Level);
call(dirty, compress, Data, Level) -> zstandard:dirty_compress(Data, Level);
call(ezstd, compress, Data, Level) -> ezstd:compress(Data, Level);
call(zstd, compress, Data, Level) -> apply(zstd, compress, [Data, #{compressionLevel => Level}]);
call(fair, decompress, Frame, _) -> zstandard:decompress(Frame);
call(plain, decompress, Frame, _) -> zstandard:plain_decompress(Frame);
call(dirty, decompress, Frame, _) -> zstandard:dirty_decompress(Frame);
call(ezstd, decompress, Frame, _) -> ezstd:decompress(Frame);
call(zstd, decompress, Frame, _) -> apply(zstd, decompress, [Frame]).

median(List) ->
    lists:nth((length(List) + 1) div 2, lists:sort(List)).
