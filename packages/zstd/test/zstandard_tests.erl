%% What zstandard promises: what was compressed comes back, by whatever form or program; an error
%% for what is damaged, cut short or too large; and, in the fair forms, a VM that stays usable
%% meanwhile.
-module(zstandard_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(zstandard, [compress/1, compress/2, decompress/1, decompress/2, plain_compress/2,
                    plain_decompress/1, dirty_compress/2, dirty_decompress/1]).
-import(example_test, [eventually/1, holds/2, in_fresh_process/1, beside/1, least_gap/1,
                       begun/1, kill_task_after/2, on_one_scheduler/1, with_pauses/1]).

%% Around the steps, and around the size from which a binary is no part of the heap.
-define(EDGES, [0, 1, 63, 64, 65, 32767, 32768, 32769, 65535, 65536, 65537, 131072, 131073,
                1000000]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

sizes_test_() ->
    {timeout, 600,
     [?_test(comes_back(Data, Level)) || Size <- ?EDGES,
                                         Data <- [text(Size), rand:bytes(Size), <<0:Size/unit:8>>],
                                         Level <- [-5, 1, 3, 4, 9]]}.

comes_back(Data, Level) ->
    Frame = compress(Data, Level),
    ?assertEqual(Data, decompress(Frame)),
    ?assertEqual(Data, plain_decompress(Frame)),
    ?assertEqual(Data, dirty_decompress(Frame)),
    ?assertEqual(Data, decompress(plain_compress(Data, Level))),
    ?assertEqual(Data, decompress(dirty_compress(Data, Level))).

%% Smaller blocks than the library's cost little.
size_test_() ->
    [?_test(begin
                Data = text(1000000),
                Fair = byte_size(compress(Data, Level)),
                ?assert(Fair =< 1.06 * byte_size(plain_compress(Data, Level)))
            end) || Level <- [1, 3, 9]].

every_level_test_() ->
    {timeout, 600, [?_test(comes_back(text(50000), Level)) || Level <- lists:seq(-7, 22)]}.

iodata_test() ->
    ?assertEqual(<<"abcdef">>, decompress(compress(["a", <<"bc">>, [$d | <<"ef">>]]))),
    <<Head:5/binary, Rest/binary>> = compress(text(100000)),
    ?assertEqual(text(100000), decompress([Head, [Rest]])).

frames_test() ->
    Data = text(20000),
    ?assertEqual(<<Data/binary, Data/binary>>, decompress([compress(Data), compress(Data, 9)])).

%% Of a stream, which does not say how long it is.
unknown_size_test_() ->
    case os:find_executable("zstd") of
        false ->
            ?debugMsg("skipped: there is no program zstd"),
            [];
        Zstd ->
            {timeout, 600, fun() -> unknown_size(Zstd) end}
    end.

unknown_size(Zstd) ->
    Data = text(3000000),
    File = "/tmp/zstandard_tests." ++ os:getpid(),
    ok = file:write_file(File, Data),
    Command = ["cat ", File, " | ", Zstd, " -c >", File, ".zst"],
    "" = os:cmd(lists:flatten(Command)),
    {ok, Frame} = file:read_file(File ++ ".zst"),
    [ok = file:delete(Name) || Name <- [File, File ++ ".zst"]],
    ?assertMatch({error, _}, plain_decompress(Frame)),
    ?assertEqual(Data, decompress(Frame)).

badarg_test_() ->
    [?_assertError(badarg, Fun())
     || Fun <- [fun() -> compress(a) end, fun() -> compress([a]) end,
                fun() -> compress(<<1:3>>) end, fun() -> compress(<<>>, 23) end,
                fun() -> compress(<<>>, -131073) end, fun() -> compress(<<>>, a) end,
                fun() -> decompress(a) end, fun() -> decompress(<<>>, -1) end,
                fun() -> decompress(<<>>, 1 bsl 64) end]].

damaged_test_() ->
    Frame = compress(text(100000)),
    [?_assertMatch({error, <<_, _/binary>>}, decompress(Damaged))
     || Damaged <- [<<>>, <<"no frame">>, binary:part(Frame, 0, byte_size(Frame) - 1),
                    binary:part(Frame, 0, 9), [Frame, <<"more">>], [Frame, Frame, <<40>>]]].

%% Some change nothing that the format protects; none breaks anything.
any_byte_changed_test_() ->
    {timeout, 600, fun() -> holds(1000, any_byte_changed()) end}.

any_byte_changed() ->
    Frame = compress(text(40000)),
    ?FORALL({At, Byte}, {integer(0, byte_size(Frame) - 1), byte()},
            begin
                <<Before:At/binary, _, After/binary>> = Frame,
                case decompress(<<Before/binary, Byte, After/binary>>, 1000000) of
                    {error, Why} -> is_binary(Why);
                    Data -> is_binary(Data)
                end
            end).

too_large_test_() ->
    Data = <<0:10000000/unit:8>>,
    Frame = compress(Data),
    [?_assertEqual({error, <<"the result is too large">>}, decompress(Frame, 9999999)),
     ?_assertEqual({error, <<"the result is too large">>}, decompress(Frame, 0)),
     ?_assertEqual(Data, decompress(Frame, 10000000)),
     ?_assertEqual(<<>>, decompress(compress(<<>>), 0))].

%% A header that promises 2^60 bytes, of which none comes, costs no memory.
a_promise_test() ->
    Promise = <<16#FD2FB528:32/little, 16#C0, 16#58, (1 bsl 60):64/little, 1, 0, 0>>,
    ?assertEqual(<<>>, decompress(Promise, 1 bsl 61)).

%% It says five bytes, and has none.
a_lie_test() ->
    ?assertMatch({error, _}, decompress(<<16#FD2FB528:32/little, 16#20, 5, 1, 0, 0>>)).

anything_test_() ->
    {timeout, 600, fun() -> holds(300, anything()) end}.

anything_with_pauses_test_() ->
    with_pauses({timeout, 600, fun() -> holds(100, anything()) end}).

anything() ->
    ?FORALL({Data, Times, Level}, {binary(), integer(1, 3000), integer(-5, 8)},
            begin
                Long = binary:copy(Data, Times),
                decompress(compress(Long, Level)) =:= Long
            end).

%% ------------------------------------------------------------------
%% The VM meanwhile
%% ------------------------------------------------------------------

%% The plain ones hold the only scheduler for all of their time.
a_neighbour_runs_test_() ->
    Data = text(20000000),
    Frame = compress(Data),
    [on_one_scheduler({timeout, 600, fun() -> a_neighbour_runs(Fair, Plain) end})
     || {Fair, Plain} <- [{fun() -> compress(Data) end, fun() -> plain_compress(Data, 3) end},
                          {fun() -> decompress(Frame) end, fun() -> plain_decompress(Frame) end}]].

a_neighbour_runs(Fair, Plain) ->
    {Elapsed, Gap} = least_gap(fun() -> beside(Fair) end),
    ?assert(Gap < Elapsed / 5),
    {PlainElapsed, PlainGap} = least_gap(fun() -> beside(Plain) end),
    ?assert(PlainGap > PlainElapsed / 2).

%% At work on a normal scheduler, and at a level whose steps are on a dirty one.
a_dead_caller_leaves_nothing_test_() ->
    {timeout, 600, fun a_dead_caller_leaves_nothing/0}.

a_dead_caller_leaves_nothing() ->
    Data = text(20000000),
    Frame = compress(Data),
    erlang:garbage_collect(),
    Before = erlang:memory(binary),
    [kill_task_after(Ms, Fun) || Ms <- [0, 1, 10],
                                 Fun <- [fun() -> compress(Data, 1) end,
                                         fun() -> compress(Data, 19) end,
                                         fun() -> decompress(Frame) end]],
    eventually(fun() -> erlang:memory(binary) =< Before + 1000000 end),
    %% What was kept of it is as new.
    [comes_back(text(Size), Level) || Size <- [10, 100000], Level <- [1, 3]].

%% Whatever it was used for before.
a_kept_context_is_as_new_test() ->
    Data = text(100000),
    Frame = compress(Data),
    Fresh = [compress(Data, Level) || Level <- lists:seq(-2, 6)],
    [begin
         {error, _} = decompress(binary:part(Frame, 0, Size)),
         ?assertEqual(Data, decompress(Frame)),
         _ = compress(rand:bytes(Size), Size rem 4),
         ?assertEqual(Fresh, [compress(Data, Level) || Level <- lists:seq(-2, 6)])
     end || Size <- [1, 5, 100, 20000]].

%% The kept ones, of a megabyte each, go with the library.
kept_contexts_are_freed_test_() ->
    {timeout, 600,
     fun() ->
         Data = text(1000000),
         Load = fun() ->
                    _ = code:purge(zstandard),
                    _ = code:delete(zstandard),
                    _ = code:purge(zstandard),
                    {module, zstandard} = code:load_file(zstandard),
                    %% It holds the library until it ends.
                    in_fresh_process(fun() -> Data = decompress(compress(Data)) end)
                end,
         [Load() || _ <- lists:seq(1, 10)],
         Before = resident(),
         [Load() || _ <- lists:seq(1, 40)],
         ?assertMatch({Grown, _} when Grown < 20000000, {resident() - Before, Before})
     end}.

%% Bytes of this node's.
resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:split(Text, " ", all),
    4096 * binary_to_integer(Pages).

%% A call continues in the old code while the module is loaded again; to purge that ends it.
reloaded_test_() ->
    {timeout, 600, fun reloaded/0}.

reloaded() ->
    Data = text(2000000),
    Call = fun(Of, Level) -> begun(fun() -> exit({frame, compress(Of, Level)}) end) end,
    {Pid, Monitor} = Call(Data, 15),
    {module, zstandard} = code:load_file(zstandard),
    ?assertEqual(Data, decompress(compress(Data))),
    receive
        {'DOWN', Monitor, process, Pid, {frame, Frame}} -> ?assertEqual(Data, decompress(Frame))
    end,
    {Doomed, Purged} = Call(text(10000000), 22),        % takes seconds
    _ = code:purge(zstandard),
    {module, zstandard} = code:load_file(zstandard),
    _ = code:purge(zstandard),
    receive {'DOWN', Purged, process, Doomed, Why} -> ?assertEqual(killed, Why) end,
    eventually(fun() -> fairnif:tasks() =:= [] end),
    ?assertEqual(Data, decompress(compress(Data))).

%% Words in no order, as a text has them.
text(Size) ->
    Words = [<<"the ">>, <<"scheduler ">>, <<"gives ">>, <<"way ">>, <<"to ">>, <<"a ">>,
             <<"process ">>, <<"that ">>, <<"waits\n">>, <<"{ok, Pid} = ">>, <<"link(Pid), ">>],
    State = rand:seed_s(exsss, {1, 2, 3}),
    binary:part(iolist_to_binary(words(Size, list_to_tuple(Words), State)), 0, Size).

words(Size, _, _) when Size =< 0 ->
    [<<>>];
words(Size, Words, State) ->
    {N, Next} = rand:uniform_s(tuple_size(Words), State),
    {M, Last} = rand:uniform_s(1000, Next),
    Word = [element(N, Words), integer_to_binary(M), " "],
    [Word | words(Size - iolist_size(Word), Words, Last)].
