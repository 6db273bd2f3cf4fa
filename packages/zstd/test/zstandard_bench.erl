%% zstandard beside ezstd and OTP's own zstd, and its plain and dirty forms: CPU time of the node
%% for one call, the forms in turns.
%%
%%   make bench
-module(zstandard_bench).

-export([main/0]).

main() ->
    Forms = [Form || Form <- [ezstd, zstd], code:ensure_loaded(Form) =/= {error, nofile}]
        ++ [plain, fair, dirty],
    example_bench:heading(),
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
    Title = io_lib:format("~-10s level ~b ~8b bytes", [Function, Level, byte_size(Data)]),
    example_bench:compare(Title, Forms,
                          fun(Form) ->
                              true = is_binary(iolist_to_binary(call(Form, Function, Argument,
                                                                     Level)))
                          end).

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
