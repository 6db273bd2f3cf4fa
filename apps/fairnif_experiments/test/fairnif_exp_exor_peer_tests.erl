%% With a stand-in for the example `bitwise', whose manners are known.
-module(fairnif_exp_exor_peer_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(X, fairnif_exp_exor_peer).
%% More than one of the input's blocks, and no whole number of them.
-define(SIZE, 2500000).

a_result_is_compared_to_its_last_byte_test_() ->
    with_stand_in([
        {"a right one is right", ?_assertEqual(ok, ?X:check(right))},
        {"a wrong first byte", ?_assertMatch({wrong, _}, ?X:check(first))},
        {"a wrong last byte", ?_assertMatch({wrong, _}, ?X:check(last))},
        {"a byte missing", ?_assertMatch({wrong, _}, ?X:check(short))},
        {"no count of yields", ?_assertMatch({wrong, _}, ?X:check(yieldless))},
        {"no pair", ?_assertMatch({wrong, _}, ?X:check(no_pair))},
        {"a crash", ?_assertMatch({error, {exit, {oops, _}}}, ?X:check(crash))}
    ]).

a_timed_run_gives_time_yields_and_the_reductions_between_test_() ->
    with_stand_in([?_assertEqual({5, 7, 90}, ?X:timed(right))]).

a_traced_run_gives_the_length_of_each_slice_test_() ->
    with_stand_in([fun() ->
        #{normal := #{count := Count}, slices_normal := Lengths} =
            ?X:sliced(right),
        ?assertEqual(Count, length(Lengths)),
        ?assertEqual({error, {error, oops}}, ?X:sliced(crash))
    end]).

the_whole_experiment_goes_on_when_one_form_fails_test_() ->
    {timeout, 300, fun() ->
        Dir = filename:join(filename:basedir(user_cache, "fairnif_lab_test"),
                            os:getpid()),
        File = filename:join(Dir, "bitwise.beam"),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, stand_in()),
        true = code:add_patha(Dir),
        try
            {ok, #{ok := Ok, rows := Rows} = Result} =
                fairnif_exp_exor:run(#{size => ?SIZE}),
            ?assertNot(Ok),
            ?assertEqual([exor_dirty], [F || #{form := F, error := _} <- Rows]),
            [?assertMatch(#{elapsed_us := 5, yields := 7, reductions := 90,
                            hold_longest := _, share := [_, _, _]}, R)
             || #{form := F} = R <- Rows, F =/= exor_dirty],
            ?assert(iolist_size(fairnif_lab_json:encode(Result)) > 1000)
        after
            code:del_path(Dir),
            file:delete(File),
            file:del_dir(Dir)
        end
    end}.

with_stand_in(Tests) ->
    {setup,
     fun() ->
             {module, _} = code:load_binary(bitwise, "stand-in", stand_in()),
             ?X:prepare(?SIZE)
     end,
     fun(_) -> code:purge(bitwise), code:delete(bitwise), code:purge(bitwise) end,
     Tests}.

stand_in() ->
    Forms = [right, exor_bad, exor_chunks, exor_yield, exor_dirty_yield,
             exor_flip, exor_threaded, exor],
    Source = ["-module(bitwise). -compile([export_all]). ",
              [[atom_to_list(F), "(B, K) -> {xor_(B, K), 7}. "] || F <- Forms],
              "xor_(B, K) -> << <<(C bxor K)>> || <<C>> <= B >>. ",
              "exor_dirty(_, _) -> error(oops). ",
              "first(B, K) -> <<C, R/binary>> = xor_(B, K), {<<(C+1), R/binary>>, 0}. ",
              "last(B, K) -> S = byte_size(B) - 1, <<R:S/binary, C>> = xor_(B, K), ",
              "{<<R/binary, (C+1)>>, 0}. ",
              "short(<<_, B/binary>>, K) -> {xor_(B, K), 0}. ",
              "yieldless(B, K) -> {xor_(B, K), none}. ",
              "no_pair(B, K) -> xor_(B, K). ",
              "crash(_, _) -> error(oops). ",
              "reds(B, K, Fun) -> {_, Y} = Fun(B, K), ",
              "{5, Y, {reductions, 10}, {reductions, 100}}. "],
    fairnif_lab_stand_in:compiled(lists:flatten(Source)).
