-module(fairnif_experiment_tests).

-include_lib("eunit/include/eunit.hrl").

-define(E, fairnif_experiment).

every_experiment_is_found_by_its_name_test() ->
    ?assert(lists:member(fairnif_exp_exor, ?E:all())),
    [?assertEqual({ok, M}, ?E:find(atom_to_list(Name)))
     || M <- ?E:all(), #{name := Name} <- [?E:about(M)]],
    ?assertEqual(error, ?E:find("no such thing")).

every_experiment_describes_itself_in_one_line_test() ->
    [begin
         #{description := Description} = ?E:about(M),
         Line = unicode:characters_to_list(Description),
         ?assert(length(Line) > 10),
         ?assertNot(lists:member($\n, Line))
     end || M <- ?E:all()].

every_experiment_knows_its_steps_at_each_scale_test() ->
    [?assertMatch(N when is_integer(N) andalso N > 0, ?E:steps(M, #{scale => Scale}))
     || M <- ?E:all(), Scale <- [quick, normal, full]].

%% None is in the code path of these tests; that of latency may have been loaded by its own.
without_its_example_each_says_what_to_build_test_() ->
    [{atom_to_list(Module),
      fun() ->
              {error, {failed, Text}} = ?E:run(Module, #{scale => quick}),
              ?assertMatch({match, _}, re:run(Text, "[a-z]+ is not built: run `make"))
      end} || Module <- ?E:all() -- [fairnif_exp_latency]].

a_report_begins_with_the_schema_version_and_ends_with_what_the_terminal_showed_test() ->
    Json = iolist_to_binary(fairnif_check_json:encode(
               ?E:report(fairnif_exp_exor, #{ok => true}, [$2, 8364], #{otp => <<"25">>}))),
    Begin = <<"{\"schema_version\":1,\"experiment\":\"exor\",\"context\":{\"otp\":\"25\"},"
              "\"result\":{\"ok\":true},">>,
    ?assertEqual(Begin, binary:part(Json, 0, byte_size(Begin))),
    ?assertMatch({_, _}, binary:match(Json, <<"\"text\":\"2\x{20ac}\"}"/utf8>>)).

a_report_is_taken_by_the_page_as_it_is_test() ->
    Report = ?E:report(fairnif_exp_exor, #{ok => true}, "shown", #{}),
    Json = iolist_to_binary([fairnif_check_json:encode(Report), $\n]),
    fairnif_check_stand_in:in_folder(fun(Dir) ->
        File = filename:join(Dir, "report"),
        ok = file:write_file(File, Json),
        ?assertEqual({ok, Json}, fairnif_check_page:read(File))
    end).
