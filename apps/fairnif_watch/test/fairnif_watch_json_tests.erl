%% The JSON of views and findings.
-module(fairnif_watch_json_tests).

-include_lib("eunit/include/eunit.hrl").

json(Term) -> iolist_to_binary(fairnif_watch_json:encode(Term)).

what_is_not_there_is_null_test() ->
    ?assertEqual(<<"[null,null,null]">>, json([none, undefined, null])).

functions_and_pids_are_texts_test() ->
    ?assertEqual(<<"\"lists:map/2\"">>, json({lists, map, 2})),
    ?assertEqual(<<"\"<0.1.0>\"">>, json(list_to_pid("<0.1.0>"))).

a_subject_is_an_object_test() ->
    ?assertEqual(<<"{\"kind\":\"scheduler\",\"number\":2}">>, json({scheduler, 2})),
    ?assertEqual(<<"{\"kind\":\"process\",\"pid\":\"<0.1.0>\"}">>,
                 json({process, list_to_pid("<0.1.0>")})),
    ?assertEqual(<<"\"node\"">>, json(node)).

a_place_in_a_library_is_a_text_test() ->
    ?assertEqual(<<"\"libz.so+0x1A\"">>, json({<<"libz.so">>, 26})),
    ?assertEqual(<<"\"libz.so:inflate\"">>, json({<<"libz.so">>, <<"inflate">>})).

no_term_makes_it_fail_and_none_makes_it_long_test() ->
    [begin
         Text = json(Term),
         ?assert(byte_size(Text) < 1000),
         ?assertMatch(<<$", _/binary>>, Text)
     end || Term <- [fun() -> ok end, make_ref(), {1, 2, 3, 4}, [a | b],
                     erlang:make_tuple(100000, x), <<1:3>>]].

text_is_escaped_and_made_utf8_test() ->
    ?assertEqual(<<"\"a\\\"\\\\\\n\\u0001\"">>, json(<<"a\"\\\n", 1>>)),
    ?assertEqual(<<"\"", 16#c3, 16#a4, "\"">>, json(<<16#e4>>)).

an_object_keeps_its_order_where_that_is_asked_for_test() ->
    ?assertEqual(<<"{\"z\":1,\"a\":{\"b\":null}}">>, json({[{z, 1}, {a, #{b => none}}]})).

a_view_is_one_that_a_parser_reads_test_() ->
    {timeout, 60,
     fun() ->
             {ok, _} = fairnif_watch:start(#{log => false}),
             try
                 View = fairnif_watch:view(),
                 File = "/tmp/fairnif_watch_view." ++ os:getpid() ++ ".json",
                 ok = file:write_file(File, fairnif_watch:json(View)),
                 Command = "/usr/bin/env python3 -c 'import json; v=json.load(open(\"" ++ File
                     ++ "\")); print(v[\"schema_version\"], len(v[\"detectors\"]), v[\"node\"])'",
                 Wanted = lists:flatten(io_lib:format("1 ~b ~s\n",
                                                      [length(fairnif_watch_detector:all()),
                                                       node()])),
                 ?assertEqual(Wanted, os:cmd(Command)),
                 ok = file:delete(File)
             after
                 fairnif_watch:stop()
             end
     end}.
