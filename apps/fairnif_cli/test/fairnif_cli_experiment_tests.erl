%% The cheapest experiment through the command line, small, and as large as
%% anybody runs it. All of them, small, run in `make test-page', which looks at
%% what each has written.
-module(fairnif_cli_experiment_tests).

-include_lib("eunit/include/eunit.hrl").

one_experiment_runs_quick_and_in_its_normal_form_test_() ->
    fairnif_exp_examples:with([{timeout, 600, fun() -> runs(fairnif_exp_reductions, Flags) end}
                               || Flags <- [["--quick"], []]]).

every_experiment_knows_its_steps_at_each_scale_test_() ->
    [?_assertMatch(N when is_integer(N) andalso N > 0,
                   fairnif_experiment:steps(M, #{scale => Scale}))
     || M <- fairnif_experiment:all(), Scale <- [quick, normal, full]].

runs(Module, Flags) ->
    #{name := Experiment} = fairnif_experiment:about(Module),
    Name = atom_to_list(Experiment),
    {Code, {ok, Json}} =
        fairnif_check_stand_in:in_folder(fun(Dir) ->
            File = filename:join(Dir, "report.json"),
            {fairnif_cli:run(["experiment", Name, "--json", File | Flags]), file:read_file(File)}
        end),
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
