%% The page's file: what is put into the template, and which files are taken for reports. That a
%% browser shows it is tested in page/test.
-module(fairnif_check_page_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, fairnif_check_page).

a_report_stands_in_the_page_as_the_json_that_it_is_test() ->
    Json = <<"{\"schema_version\":1,\"result\":{\"text\":\"a\"}}">>,
    Page = page([{"", Json}]),
    ?assertEqual(<<"<html><script type=\"application/json\" class=\"report\">"
                   "{\"name\":\"\",\"report\":", Json/binary, "}</script>\n</html>">>, Page).

no_text_of_a_report_ends_the_script_around_it_test() ->
    Text = <<"</script><!-- <script> ]]>">>,
    Json = iolist_to_binary(fairnif_check_json:encode(#{text => Text})),
    Page = page([{Text, Json}]),
    ?assertEqual(1, length(binary:matches(Page, <<"<script">>))),
    ?assertEqual(1, length(binary:matches(Page, <<"</script">>))),
    ?assertEqual(nomatch, binary:match(Page, <<"<!--">>)),
    ?assertMatch({_, _}, binary:match(Page, <<"\\u003c/script>\\u003c!-- \\u003cscript>">>)).

two_reports_have_their_names_test() ->
    Page = page([{"größe", <<"{}">>}, {"b", <<"{}">>}]),
    ?assertMatch({_, _}, binary:match(Page, <<"{\"name\":\"größe\",\"report\":{}}"/utf8>>)),
    ?assertMatch({_, _}, binary:match(Page, <<"{\"name\":\"b\",\"report\":{}}">>)).

a_page_that_is_not_built_says_how_it_is_test() ->
    {error, Text} = ?P:template("/nowhere/report.html"),
    ?assertNotEqual(nomatch, string:find(Text, "make page")),
    ?assertNotEqual(nomatch, string:find(Text, "/nowhere/report.html")).

a_page_without_its_one_place_for_reports_is_refused_test_() ->
    [fun() -> with_file(Content, fun(File) -> ?assertMatch({error, _}, ?P:template(File)) end) end
     || Content <- ["<html></html>", "<!--fairnif-reports--><!--fairnif-reports-->"]].

a_file_that_json_has_written_is_taken_as_it_is_test() ->
    Report = fairnif_check_report:report(fairnif_check_test_results:good(),
                                             fairnif_check_test_results:context(), undefined),
    Json = iolist_to_binary([fairnif_check_json:encode(Report), $\n]),
    with_file(Json, fun(File) -> ?assertEqual({ok, Json}, ?P:read(File)) end),
    %% As other tools write it.
    with_file("{\n  \"schema_version\": 1,\n  \"result\": {}\n}\n",
              fun(File) -> ?assertMatch({ok, _}, ?P:read(File)) end).

another_file_is_refused_and_said_why_test_() ->
    [{Part, fun() ->
         with_file(Content, fun(File) ->
             {error, Text} = ?P:read(File),
             ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Part)})
         end)
     end} || {Content, Part} <-
                 [{"", "is not a report"},
                  {"{\"schema_version\":1}", "is not a report"},
                  {"[1,2]", "is not a report"},
                  {<<0, 255, 254>>, "is not a report"},
                  {"{\"schema_version\":1,\"result\":{\"a\":[1,2", "is cut off"},
                  {"{\"schema_version\":2,\"result\":{}}", "has version 2"}]].

a_file_that_is_not_there_is_refused_test() ->
    {error, Text} = ?P:read("/nowhere/at/all.json"),
    ?assertNotEqual(nomatch, string:find(Text, "no such file")).

%% ---- ----

page(Reports) ->
    iolist_to_binary(?P:page({<<"<html>">>, <<"</html>">>}, Reports)).

with_file(Content, Fun) ->
    fairnif_check_stand_in:in_folder(fun(Dir) ->
        File = filename:join(Dir, "report"),
        ok = file:write_file(File, Content),
        Fun(File)
    end).
