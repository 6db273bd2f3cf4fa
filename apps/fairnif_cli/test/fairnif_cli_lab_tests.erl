%% The cheapest experiment through the command line, small, and as large as
%% anybody runs it. All of them, small, run in `make test-page', which looks at
%% what each has written.
-module(fairnif_cli_lab_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

one_experiment_runs_quick_and_in_its_normal_form_test_() ->
    fairnif_exp_examples:with([{timeout, 600, fun() -> runs(fairnif_exp_reductions, Flags) end}
                               || Flags <- [["--quick"], []]]).

every_experiment_knows_its_steps_at_each_scale_test_() ->
    [?_assert(is_integer(M:steps(#{scale => Scale})) andalso M:steps(#{scale => Scale}) > 0)
     || M <- fairnif_experiment:all(), Scale <- [quick, normal, full]].

runs(Module, Flags) ->
    #{name := Experiment} = fairnif_experiment:about(Module),
    Name = atom_to_list(Experiment),
    File = filename:join(dir(), Name ++ ".json"),
    ok = filelib:ensure_dir(File),
    Code = fairnif_cli:run(["lab", Name, "--json", File | Flags]),
    {ok, Json} = file:read_file(File),
    ok = file:delete(File),
    ok = file:del_dir(dir()),
    ?assertEqual(0, Code),
    %% One object, and the result is in it, well.
    Begin = iolist_to_binary(["{\"schema_version\":1,\"experiment\":\"", Name,
                              "\",\"context\":{"]),
    ?assertEqual(Begin, binary:part(Json, 0, byte_size(Begin))),
    ?assertNotEqual(nomatch, binary:match(Json, <<"},\"result\":{">>)),
    ?assertNotEqual(nomatch, binary:match(Json, <<"\"ok\":true">>)),
    ?assertEqual(0, depth(Json)).

%% How many brackets are open at the end of a text, those in strings apart.
depth(Json) ->
    Bare = re:replace(Json, "\"([^\"\\\\]|\\\\.)*+\"", "", [global, {return, list}]),
    Open = length([C || C <- Bare, C =:= ${ orelse C =:= $[]),
    Closed = length([C || C <- Bare, C =:= $} orelse C =:= $]]),
    Open - Closed.

dir() ->
    filename:join(filename:basedir(user_cache, "fairnif_cli_lab_test"), os:getpid()).
