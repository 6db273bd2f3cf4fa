-module(bitwise_tests).
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [retry/2]).

forms() ->
    [exor, exor_bad, exor_chunks, exor_yield, exor_dirty, exor_dirty_yield,
     exor_flip, exor_threaded].

model(Binary, Byte) ->
    << <<(B bxor Byte)>> || <<B>> <= Binary >>.

sizes() ->
    [0, 1, 15, 64, 65, 4095, 32768, 32769, 100000].

every_form_gives_what_erlang_gives_test() ->
    [begin
         Binary = rand:bytes(Size),
         Byte = rand:uniform(256) - 1,
         ?assertEqual({Form, Size, model(Binary, Byte)},
                      {Form, Size, element(1, bitwise:Form(Binary, Byte))})
     end || Form <- forms(), Size <- sizes()].

with_a_pause_at_every_tick_every_form_gives_the_same_test() ->
    Binary = rand:bytes(300000),
    ok = fairnif:debug(#{pause_every_tick => true, check_terms => true}),
    try
        [?assertEqual({Form, model(Binary, 77)},
                      {Form, element(1, bitwise:Form(Binary, 77))})
         || Form <- forms()]
    after
        fairnif:debug(#{pause_every_tick => false, check_terms => false})
    end.

anything_but_a_binary_and_a_byte_is_badarg_test() ->
    Large = binary:copy(<<0>>, 5 * 1024 * 1024),
    [?assertError(badarg, bitwise:Form(Binary, Byte))
     || Form <- forms(),
        {Binary, Byte} <- [{<<"a">>, -1}, {<<"a">>, 256}, {<<"a">>, 1.0},
                           {<<"a">>, a}, {Large, 256}, {Large, x}]],
    [?assertError(_, bitwise:Form(NoBinary, 1))
     || Form <- forms(), NoBinary <- [a, 1, [], "abc", <<1:7>>, {}, self()]].

a_long_call_yields_and_a_plain_one_does_not_test() ->
    Binary = binary:copy(<<"0123456789abcdef">>, 2 * 1024 * 1024),
    {Expected, 0} = bitwise:exor_bad(Binary, 255),
    {Out, Yields} = bitwise:exor(Binary, 255),
    ?assert(Out =:= Expected),
    ?assert(Yields > 20),
    {_, Chunks} = bitwise:exor_chunks(Binary, 255),
    ?assertEqual(7, Chunks).

the_flip_leaves_and_comes_back_test() ->
    {Out, Yields} = bitwise:exor_flip(<<"abcdef">>, 1),
    ?assertEqual(model(<<"abcdef">>, 1), Out),
    ?assertEqual(0, Yields),
    {_, Moves} = bitwise:exor_flip(binary:copy(<<1>>, 200000), 1),
    ?assert(Moves >= 2).

%% By the clock, so with what the operating system gave to others meanwhile.
a_threaded_call_holds_no_scheduler_test() ->
    Binary = binary:copy(<<0>>, 64 * 1024 * 1024),
    Flipped = binary:copy(<<255>>, byte_size(Binary)),
    Times = fun() -> fairnif:info({bitwise, nif_exor_threaded, 2}) end,
    retry(5, fun() ->
                 #{thread_ns := Thread0, normal_ns := Normal0} = Times(),
                 {Out, _} = bitwise:exor_threaded(Binary, 255),
                 #{thread_ns := Thread1, normal_ns := Normal1} = Times(),
                 ?assertEqual(Flipped, Out),
                 ?assert(Thread1 - Thread0 > 1000000),
                 Normal1 - Normal0 < (Thread1 - Thread0) div 2
                     orelse {Normal1 - Normal0, Thread1 - Thread0}
             end).

reds_tells_time_yields_and_reductions_test() ->
    Binary = binary:copy(<<0>>, 16 * 1024 * 1024),
    {Us, Yields, {reductions, R0}, {reductions, R1}} =
        bitwise:reds(Binary, 1, fun bitwise:exor_yield/2),
    ?assert(Us > 0),
    ?assert(Yields > 0),
    %% Each pause is charged about a whole turn of 4000.
    ?assert(R1 - R0 > 2000 * Yields).

a_crash_in_reds_is_raised_again_test() ->
    ?assertError(badarg, bitwise:reds(<<"a">>, 256, fun bitwise:exor/2)),
    ?assertThrow(oops, bitwise:reds(<<>>, 1, fun(_, _) -> throw(oops) end)),
    ?assertExit(gone, bitwise:reds(<<>>, 1, fun(_, _) -> exit(gone) end)),
    Dies = fun(_, _) ->
                   exit(self(), kill),
                   receive after infinity -> ok end
           end,
    ?assertExit(killed, bitwise:reds(<<>>, 1, Dies)).

%% Half a minute: where LARGE asks for it, as `make test-full' does.
a_binary_over_4_gib_works_test_() ->
    case os:getenv("LARGE") =/= false andalso large_memory() of
        true ->
            {timeout, 600,
             fun() ->
                     Size = 4 * 1024 * 1024 * 1024 + 5,
                     Binary = binary:copy(<<7>>, Size),
                     {Out, Yields} = bitwise:exor(Binary, 5),
                     ?assertEqual(Size, byte_size(Out)),
                     ?assertEqual(<<2, 2, 2, 2, 2>>, binary:part(Out, Size, -5)),
                     ?assert(Yields > 1000)
             end};
        false ->
            []
    end.

%% 8 GiB for the two binaries, and as much again to be safe.
large_memory() ->
    case file:read_file("/proc/meminfo") of
        {ok, Info} ->
            {match, [Kb]} = re:run(Info, "MemAvailable: *(\\d+)", [{capture, [1], list}]),
            list_to_integer(Kb) > 16 * 1024 * 1024;
        _ ->
            false
    end.
