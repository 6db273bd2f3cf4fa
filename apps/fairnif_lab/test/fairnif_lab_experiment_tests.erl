-module(fairnif_lab_experiment_tests).

-include_lib("eunit/include/eunit.hrl").

-define(E, fairnif_lab_experiment).

every_experiment_is_found_by_its_name_test() ->
    ?assert(lists:member(fairnif_lab_exor, ?E:all())),
    [?assertEqual({ok, M}, ?E:find(atom_to_list(M:name()))) || M <- ?E:all()],
    ?assertEqual(error, ?E:find("no such thing")).

every_experiment_describes_itself_in_one_line_test() ->
    [begin
         Line = unicode:characters_to_list(M:description()),
         ?assert(length(Line) > 10),
         ?assertNot(lists:member($\n, Line))
     end || M <- ?E:all()].

a_report_begins_with_the_schema_version_test() ->
    Json = iolist_to_binary(fairnif_lab_json:encode(
               ?E:report(fairnif_lab_exor, #{ok => true}, #{otp => <<"25">>}))),
    ?assertEqual(<<"{\"schema_version\":1,\"experiment\":\"exor\","
                   "\"context\":{\"otp\":\"25\"},\"result\":{\"ok\":true}}">>,
                 Json).
