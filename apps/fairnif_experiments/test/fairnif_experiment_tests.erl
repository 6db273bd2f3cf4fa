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

%% None is in the code path of these tests; that of latency may have been loaded by its own.
without_its_example_each_says_what_to_build_test_() ->
    [{atom_to_list(Module),
      fun() ->
              {error, {failed, Text}} = Module:run(#{scale => quick}),
              ?assertMatch({match, _}, re:run(Text, "examples/[a-z]+ is not built: run `make"))
      end} || Module <- ?E:all() -- [fairnif_exp_latency]].

a_report_begins_with_the_schema_version_test() ->
    Json = iolist_to_binary(fairnif_lab_json:encode(
               ?E:report(fairnif_exp_exor, #{ok => true}, "", #{otp => <<"25">>}))),
    Begin = <<"{\"schema_version\":1,\"experiment\":\"exor\",">>,
    ?assertEqual(Begin, binary:part(Json, 0, byte_size(Begin))),
    ?assertMatch({_, _}, binary:match(Json, <<"\"context\":{\"otp\":\"25\"}">>)),
    ?assertMatch({_, _}, binary:match(Json, <<"\"result\":{\"ok\":true}">>)).

a_report_has_what_the_terminal_showed_without_its_colours_test() ->
    {Pairs} = ?E:report(fairnif_exp_exor, #{ok => true}, ["\e[48;5;9m", $2, 8364, "\e[0m late"],
                        #{}),
    ?assertEqual(<<"2\x{20ac} late"/utf8>>, proplists:get_value(text, Pairs)).

a_report_is_taken_by_the_page_as_it_is_test() ->
    Report = ?E:report(fairnif_exp_exor, #{ok => true}, "shown", #{}),
    Json = iolist_to_binary([fairnif_lab_json:encode(Report), $\n]),
    File = lists:concat(["/tmp/fairnif-report-", os:getpid(), "-",
                         erlang:unique_integer([positive])]),
    ok = file:write_file(File, Json),
    try ?assertEqual({ok, Json}, fairnif_lab_page:read(File)) after file:delete(File) end.
