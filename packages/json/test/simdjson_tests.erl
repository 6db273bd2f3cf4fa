%% What simdjson promises: JSON as RFC 8259 has it and nothing else, errors that say
%% what is wrong and where, the same values as other libraries, and a VM that stays usable
%% meanwhile.
-module(simdjson_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(simdjson, [decode/1, encode/1]).
-import(example_test, [eventually/1, holds/2, beside/1, kill_task_after/2, on_one_scheduler/1,
                       with_pauses/1]).

%% Bytes that simdjson looks at in one go (c_src/window.hpp): what lies across
%% its end is taken apart differently.
-define(WINDOW, 16384).

%% ------------------------------------------------------------------
%% What is JSON
%% ------------------------------------------------------------------

%% After the cases that JSONTestSuite says must be accepted.
accepted() ->
    [%% the values, alone and with blanks
     {"[]", []}, {"{}", #{}}, {"\"\"", <<>>}, {"0", 0}, {"42", 42}, {"-0.1", -0.1},
     {"true", true}, {"false", false}, {"null", null}, {"\"asd\"", <<"asd">>},
     {" [] ", []}, {"\t\r\n 4 \n", 4}, {"[ ]", []}, {"{ }", #{}}, {"[true]\n", [true]},
     {"[[]   ]", [[]]}, {"[\"\"]", [<<>>]}, {"[ 4]", [4]}, {"[2] ", [2]},
     {"[null, 1, \"1\", {}]", [null, 1, <<"1">>, #{}]}, {"[1,null,null,null,2]",
                                                        [1, null, null, null, 2]},
     {"[1\n]", [1]}, {"[[[[]]]]", [[[[]]]]},
     %% integers
     {"-0", 0}, {"-1", -1}, {"-123", -123}, {"123456789012345678", 123456789012345678},
     {"1234567890123456789", 1234567890123456789},
     {"9223372036854775807", (1 bsl 63) - 1}, {"-9223372036854775808", -(1 bsl 63)},
     {"9223372036854775808", 1 bsl 63}, {"-9223372036854775809", -(1 bsl 63) - 1},
     {"18446744073709551615", (1 bsl 64) - 1}, {"18446744073709551616", 1 bsl 64},
     {"-123123123123123123123123123123", -123123123123123123123123123123},
     %% other numbers are floats
     {"-0.0", -0.0}, {"1.0", 1.0}, {"123.456789", 123.456789}, {"0e1", 0.0}, {"0e+1", 0.0},
     {"20e1", 200.0}, {"1E22", 1.0e22}, {"1E-2", 0.01}, {"1E+2", 100.0}, {"123e45", 123.0e45},
     {"123.456e78", 123.456e78}, {"1e-2", 0.01}, {"1e+2", 100.0},
     {"-0.000000000000000000000000000000000000000000000000000000000000000000000000000001",
      -1.0e-78},
     {"0.1000000000000000055511151231257827", 0.1}, {"1.7976931348623157e308",
                                                     1.7976931348623157e308},
     {"5e-324", 5.0e-324}, {"2.2250738585072011e-308", 2.2250738585072011e-308},
     {"123456789012345678901234567890.5", 123456789012345678901234567890.5},
     %% what is too small for a float is zero
     {"123.456e-789", 0.0}, {"-1e-400", -0.0}, {"1e-99999999999999999999", 0.0},
     {["0.", lists:duplicate(400, $0), "1"], 0.0},
     %% objects
     {"{\"a\":[]}", #{<<"a">> => []}}, {"{\"\":0}", #{<<>> => 0}},
     {"{\"asd\":\"sdf\", \"dfg\":\"fgh\"}", #{<<"asd">> => <<"sdf">>, <<"dfg">> => <<"fgh">>}},
     {"{\"a\":\"b\",\"a\":\"c\"}", #{<<"a">> => <<"c">>}},
     {"{\"a\":\"b\",\"a\":\"b\"}", #{<<"a">> => <<"b">>}},
     {"{\"fo\\u0000o\": 42}", #{<<"fo", 0, "o">> => 42}},
     {"{\n\"a\": \"b\"\n}", #{<<"a">> => <<"b">>}},
     {"{ \"min\": -1.0e+28, \"max\": 1.0e+28 }", #{<<"min">> => -1.0e28, <<"max">> => 1.0e28}},
     {"{\"x\":[{\"id\": \"y\"}], \"id\": \"z\"}",
      #{<<"x">> => [#{<<"id">> => <<"y">>}], <<"id">> => <<"z">>}},
     %% escapes
     {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", <<"\"\\/\b\f\n\r\t">>},
     {"\"\\u0060\\u012a\\u12AB\"", <<16#60/utf8, 16#12A/utf8, 16#12AB/utf8>>},
     {"\"\\uD801\\udc37\"", <<16#10437/utf8>>},
     {"\"\\ud83d\\ude39\\ud83d\\udc8d\"", <<16#1F639/utf8, 16#1F48D/utf8>>},
     {"\"\\uDBFF\\uDFFF\"", <<16#10FFFF/utf8>>}, {"\"\\u0000\"", <<0>>},
     {"\"\\\\u0000\"", <<"\\u0000">>}, {"\"\\\\a\"", <<"\\a">>}, {"\"\\\\n\"", <<"\\n">>},
     {"\"\\u0012\"", <<16#12>>}, {"\"\\uFFFF\"", <<16#FFFF/utf8>>},
     {"\"\\uFDD0\"", <<16#FDD0/utf8>>}, {"\"new\\u000Aline\"", <<"new\nline">>},
     {"\"\\u005C\"", <<"\\">>}, {"\"\\u0022\"", <<"\"">>}, {"\"\\u2064\"", <<16#2064/utf8>>},
     {"\"\\uA66D\"", <<16#A66D/utf8>>}, {"\"a/*b*/c/*d//e\"", <<"a/*b*/c/*d//e">>},
     %% characters as they are
     {<<"\"", 16#7F, "\"">>, <<16#7F>>}, {<<"\"€𝄞\""/utf8>>, <<"€𝄞"/utf8>>},
     {<<"\"", 16#10FFFF/utf8, 16#FFFF/utf8, "\"">>, <<16#10FFFF/utf8, 16#FFFF/utf8>>},
     {<<"\"", 16#2028/utf8, 16#2029/utf8, "\"">>, <<16#2028/utf8, 16#2029/utf8>>},
     {<<"{\"", "ключ"/utf8, "\":\"ü\"}"/utf8>>, #{<<"ключ"/utf8>> => <<"ü"/utf8>>}}].

%% After those that must be refused, and some that each may decide about.
refused() ->
    Byte = fun(C) -> {invalid_byte, C} end,
    Sequence = fun(Bytes) -> {unexpected_sequence, Bytes} end,
    [%% where more is missing
     {J, unexpected_end, iolist_size(J)}
     || J <- ["", " ", "[", "{", "\"", "-", "[1", "[1,", "[\"", "[\"asd", "[\"a\"", "[{", "[{}",
              "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"a", "[1.", "[1e", "[1e+",
              "[-", "tru", "[fals", "n", "\"\\", "[\"\\u", "\"\\u00", "[\"\",\n4\n,1,"]]
        ++
    [%% commas and colons
     {"[1 true]", Byte($t), 3}, {"[\"\": 1]", Byte($:), 3},
     {"[,1]", Byte($,), 1}, {"[1,,2]", Byte($,), 3}, {"[\"x\",,]", Byte($,), 5},
     {"[\"\",]", Byte($]), 4}, {"[3[4]]", Byte($[), 2},
     {"[,]", Byte($,), 1}, {"[   , \"\"]", Byte($,), 4}, {"[1:2]", Byte($:), 2},
     {"[1,]", Byte($]), 3}, {"[1,,]", Byte($,), 3}, {"[1;2]", Byte($;), 2},
     {"{\"x\", null}", Byte($,), 4}, {"{\"x\"::\"b\"}", Byte($:), 5},
     {"{\"a\":\"a\" 123}", Byte($1), 9}, {"{\"a\" \"b\"}", Byte($"), 5}, {"{:\"b\"}", Byte($:), 1},
     {"{\"a\":}", Byte($}), 5}, {"{\"a\"}", Byte($}), 4}, {"{\"id\":0,}", Byte($}), 8},
     {"{\"a\":\"b\",,\"c\":\"d\"}", Byte($,), 9}, {"{\"id\":0,,,,,}", Byte($,), 8},
     {"{1:1}", Byte($1), 1}, {"{null:null,null:null}", Byte($n), 1}, {"{[: \"x\"}", Byte($[), 1},
     {"{'a':0}", Byte($'), 1}, {"{a: \"b\"}", Byte($a), 1}, {"{,", Byte($,), 1},
     {"[}", Byte($}), 1},
     {"{]", Byte($]), 1}, {"[1}", Byte($}), 2}, {"{\"a\":1]", Byte($]), 6},
     %% words
     {"[True]", Byte($T), 1}, {"[nul]", Byte($]), 4}, {"[truer]", Byte($r), 5},
     {"nullx", Byte($x), 4},
     {"[tru\"]", Byte($"), 4}, {"*", Byte($*), 0}, {"<null>", Byte($<), 0}, {"[a", Byte($a), 1},
     {"aå", Byte($a), 0}, {"[\\u000A\"\"]", Byte($\\), 1},
     %% numbers
     {"[01]", Byte($1), 2}, {"-01", Byte($1), 2}, {"[123\x00]", Byte(0), 4}, {"[+1]", Byte($+), 1},
     {"[++12]", Byte($+), 1}, {"[+Inf]", Byte($+), 1}, {"[-NaN]", Byte($N), 2},
     {"[NaN]", Byte($N), 1},
     {"[-Infinity]", Byte($I), 2}, {"[.123]", Byte($.), 1}, {"[-.1]", Byte($.), 2},
     {"[-1.0.]", Byte($.), 5},
     {"[1.]", Byte($]), 3}, {"[1.e3]", Byte($e), 3}, {"[0.1.2]", Byte($.), 4},
     {"[0.3e]", Byte($]), 5},
     {"[0e]", Byte($]), 3}, {"[0E+]", Byte($]), 4}, {"[1.0e-]", Byte($]), 6},
     {"[1eE2]", Byte($E), 3},
     {"[1 000.0]", Byte($0), 3}, {"[1+2]", Byte($+), 2}, {"[0x1]", Byte($x), 2},
     {"[- 1]", Byte($\s), 2},
     {"[-foo]", Byte($f), 2}, {"[1.8011670033376514H-308]", Byte($H), 19}, {"[1ea]", Byte($a), 3},
     {"[-1x]", Byte($x), 3}, {"[--1]", Byte($-), 2},
     {"1e400", Sequence(<<"1e400">>), 0}, {"[-1E+999]", Sequence(<<"-1E+999">>), 1},
     {"0.4e00669999999999", Sequence(<<"0.4e00669999999999">>), 0},
     {["[1", lists:duplicate(400, $0), ".0]"],
      Sequence(iolist_to_binary(["1", lists:duplicate(400, $0), ".0"])), 1},
     %% escapes
     {"\"\\x00\"", Byte($x), 2}, {"[\"\\a\"]", Byte($a), 3}, {"[\"\\U1234\"]", Byte($U), 3},
     {"[\"\\\t\"]", Byte($\t), 3}, {"[\"\\\\\\\"]", unexpected_end, 7},
     {"[\"\\u00A\"]", Sequence(<<"\\u00A\"">>), 2}, {"[\"\\uqqqq\"]", Sequence(<<"\\uqqqq">>), 2},
     {"[\"\\u+123\"]", Sequence(<<"\\u+123">>), 2},
     {"[\"\\uD834\\uDd\"]", Sequence(<<"\\uD834">>), 2},
     {"[\"\\uD800\\u1x\"]", Sequence(<<"\\uD800">>), 2},
     {"[\"\\uD800\\n\"]", Sequence(<<"\\uD800">>), 2},
     {"[\"\\uDFAA\"]", Sequence(<<"\\uDFAA">>), 2},
     {"[\"\\uD800abc\"]", Sequence(<<"\\uD800">>), 2},
     {"{\"\\uDFAA\":0}", Sequence(<<"\\uDFAA">>), 2},
     %% strings that are none
     {"['single quote']", Byte($'), 1}, {"[\"a", unexpected_end, 3}, {"\"a\nb\"", Byte($\n), 2},
     {"[\"\t\"]", Byte($\t), 2}, {"[\"a\x00a\"]", Byte(0), 3}, {"[\"new\nline\"]", Byte($\n), 5},
     {"\"\x1F\"", Byte(16#1F), 1}, {"[\"a\",\n4\n,\"\v\"]", Byte($\v), 10},
     {"[\v]", Byte($\v), 1}, {"[\f]", Byte($\f), 1}, {<<"[", 16#2060/utf8, "]">>, Byte(16#E2), 1},
     {<<"é"/utf8>>, Byte(16#C3), 0}, {<<"[1, é]"/utf8>>, Byte(16#C3), 4},
     %% what is not UTF-8
     {<<"\"", 16#FF, "\"">>, Byte(16#FF), 1}, {<<"[\"", 16#E9, "\"]">>, Byte(16#E9), 2},
     {<<"[\"", 16#81, "\"]">>, Byte(16#81), 2}, {<<"\"", 16#C0, 16#AF, "\"">>, Byte(16#C0), 1},
     {<<"\"a", 16#E0, 16#FF, "\"">>, Byte(16#E0), 2}, {<<"\"", 16#ED, 16#A0,
     16#80, "\"">>, Byte(16#ED), 1},
     {<<"\"", 16#F4, 16#BF, 16#BF, 16#BF, "\"">>, Byte(16#F4), 1},
     {<<"\"", 16#FC, 16#83, 16#BF, 16#BF, 16#BF, 16#BF, "\"">>, Byte(16#FC), 1},
     {<<"[\"a", 16#E5, "\"]">>, Byte(16#E5), 3}, {<<"[\"\\", 16#E5, "\"]">>, Byte(16#E5), 3},
     {<<"[1e1", 16#E5, "]">>, Byte(16#E5), 4}, {<<16#EF, 16#BB, 16#BF, "{}">>, Byte(16#EF), 0},
     {<<16#FF, 16#FE, "[\0\"\0">>, Byte(16#FF), 0}, {<<"[", 16#FF, "]">>, Byte(16#FF), 1},
     {<<"{\"", 16#B9, "\":\"0\",}">>, Byte(16#B9), 2}].

%% What follows a value: within another it would be right, or wrong elsewhere.
refused_after_the_end() ->
    [{"[\"\"],", {invalid_byte, $,}, 4}, {"[\"x\"]]", {invalid_byte, $]}, 5},
    {"]", {invalid_byte, $]}, 0},
     {"1]", {invalid_byte, $]}, 1}, {"[][]", {invalid_byte, $[}, 2}, {"{}}", {invalid_byte, $}}, 2},
     {"[1]x", {invalid_byte, $x}, 3}, {"{\"a\": true} \"x\"", {invalid_byte, $"}, 12},
     {"{\"a\":\"b\"}#", {invalid_byte, $#}, 9}, {"{\"a\":\"b\"}/**/", {invalid_byte, $/}, 9},
     {"2@", {invalid_byte, $@}, 1}, {"\"\"x", {invalid_byte, $x}, 2}].

what_is_json_is_accepted_test_() ->
    [{title(Json), ?_assertEqual(Value, decode(Json))}
     || {Json, Value} <- accepted()].

what_is_not_is_refused_with_the_reason_and_where_test_() ->
    [{title(Json), ?_assertEqual({Reason, Position}, refusal(Json))}
     || {Json, Reason, Position} <- refused() ++ refused_after_the_end()].

%% Not only as a document of their own, where each ends with the text.
they_are_the_same_inside_of_others_test_() ->
    [[{title(Json), ?_assertEqual([1, #{<<"a">> => Value}], decode(["[1,{\"a\":", Json, "}]"]))}
      || {Json, Value} <- accepted()],
     [{title(Json), ?_assertEqual({Reason, Position + 8}, refusal(["[1,{\"a\":", Json]))}
      || {Json, Reason, Position} <- refused(), Json =/= "", Json =/= " "]].

zero_keeps_its_sign_where_it_is_a_float_test() ->
    [?assertEqual(<<(-0.0)/float>>, <<(decode(Json))/float>>)
     || Json <- ["-0.0", "-0e7", "-1e-400"]],
    ?assertEqual(<<"-0.0">>, encode(-0.0)).

%% ------------------------------------------------------------------
%% Windows
%% ------------------------------------------------------------------

%% Blanks before it move each of its tokens across the end of the first window.
a_document_is_the_same_wherever_its_windows_end_test_() ->
    {timeout, 600,
     fun() ->
         Value = [V || {_, V} <- accepted()] ++ [lists:duplicate(40, <<"a\\\"é"/utf8>>)],
         Json = iolist_to_binary(encode(Value)),
         [?assertEqual(Value, decode([blanks(?WINDOW - N), Json]))
          || N <- lists:seq(0, byte_size(Json))]
     end}.

an_error_is_the_same_wherever_its_window_ends_test_() ->
    {timeout, 600,
     fun() ->
         [?assertEqual({title(Json), Reason, Position + ?WINDOW - N},
                       case refusal([blanks(?WINDOW - N), Json]) of
                           {R, P} -> {title(Json), R, P}
                       end)
          || {Json, Reason, Position} <- refused(), N <- lists:seq(0, iolist_size(Json) + 1)]
     end}.

strings_of_any_length_are_whole_test_() ->
    [{lists:flatten(io_lib:format("~b times ~p", [Size, Part])),
      {timeout, 600,
       fun() ->
           S = binary:copy(Part, Size),
           Json = iolist_to_binary(encode(S)),
           ?assertEqual(S, decode(Json)),
           ?assertEqual(S, simdjson:decode(Json, #{strings => copy})),
           ?assertEqual([S, #{S => S}], decode(encode([S, #{S => S}]))),
           ?assertEqual({unexpected_end, byte_size(Json) - 1},
                        refusal(binary:part(Json, 0, byte_size(Json) - 1)))
       end}}
     || Part <- [<<"a">>, <<"é"/utf8>>, <<"\n">>, <<"x\"y">>, <<"𝄞"/utf8>>],
        Size <- [0, 1, 63, 64, 65, 500, 1024, 4095, 4096, 4097, ?WINDOW - 1, ?WINDOW, ?WINDOW + 1,
                 100003]].

what_is_wrong_in_a_long_string_is_found_test_() ->
    [{lists:flatten(io_lib:format("~p after ~b bytes", [Bad, Size])),
      ?_assertEqual({Reason, Size + Offset + 1},
                    refusal([$", binary:copy(<<"a">>, Size), Bad, binary:copy(<<"b">>, 20000),
                             $"]))}
     || {Bad, Reason, Offset} <- [{<<16#FF>>, {invalid_byte, 16#FF}, 0},
                                  {<<1>>, {invalid_byte, 1}, 0},
                                  {<<"\\x">>, {invalid_byte, $x}, 1},
                                  {<<"\\ud800">>, {unexpected_sequence, <<"\\ud800">>}, 0},
                                  {<<16#E2, 16#82>>, {invalid_byte, 16#E2}, 0}],
        Size <- [0, 4094, 4095, 4096, 20000]].

%% ------------------------------------------------------------------
%% Large values
%% ------------------------------------------------------------------

nesting_may_be_as_deep_as_memory_allows_test_() ->
    [{atom_to_list(Kind),
      {timeout, 600,
       fun() ->
           {Begin, End} = case Kind of
                              array -> {<<"[1,">>, <<",2]">>};
                              object -> {<<"{\"a\":">>, <<"}">>}
                          end,
           Depth = 100000,
           Json = <<(binary:copy(Begin, Depth))/binary, "[]", (binary:copy(End, Depth))/binary>>,
           ?assertEqual(Json, iolist_to_binary(encode(decode(Json)))),
           ?assertEqual({unexpected_end, byte_size(Json) - 1},
                        refusal(binary:part(Json, 0, byte_size(Json) - 1)))
       end}}
     || Kind <- [array, object]].

objects_of_any_size_are_maps_test_() ->
    [{integer_to_list(Size),
      {timeout, 600,
       fun() ->
           Map = maps:from_list([{integer_to_binary(I * 7919), [I]} || I <- lists:seq(1, Size)]),
           Json = encode(Map),
           ?assertEqual(Map, decode(Json)),
           ?assertEqual([Map, #{<<"a">> => Map}], decode(encode([Map, #{<<"a">> => Map}])))
       end}}
     || Size <- [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 100000]].

of_a_key_that_comes_again_the_last_value_stays_test_() ->
    [{integer_to_list(Size),
      fun() ->
          Pairs = [{integer_to_binary(I rem 40), I} || I <- lists:seq(1, Size)],
          Members = [[$", K, $", $:, integer_to_binary(V)] || {K, V} <- Pairs],
          Json = [${, lists:join($,, Members), $}],
          ?assertEqual(maps:from_list(Pairs), decode(Json))
      end}
     || Size <- [2, 41, 64, 100, 200, 1000, 5000]].

integers_of_any_size_are_exact_test_() ->
    {timeout, 600,
     fun() ->
         [begin
              Json = integer_to_binary(I),
              ?assertEqual(I, decode(Json)),
              ?assertEqual(Json, iolist_to_binary(encode(I)))
          end
          || Bits <- lists:seq(57, 65) ++ [127, 128, 129, 1000, 2047 * 8, 2048 * 8, 2500 * 8,
          200000],
             Sign <- [1, -1], Around <- [-1, 0, 1, 12345678901],
             I <- [Sign * ((1 bsl Bits) + Around)]],
         [?assertEqual(binary_to_integer(Json), decode(Json))
          || N <- [18, 19, 20, 37, 38, 39, 400, 5000],
             Json <- [binary:copy(<<"9">>, N), <<"1", (binary:copy(<<"0">>, N))/binary>>]]
     end}.

%% ------------------------------------------------------------------
%% To JSON
%% ------------------------------------------------------------------

json_of_a_term_is_that_of_others_test_() ->
    [{title(Json), ?_assertEqual(Json, iolist_to_binary(encode(Term)))}
     || {Term, Json} <-
            [{[], <<"[]">>}, {#{}, <<"{}">>}, {<<>>, <<"\"\"">>}, {true, <<"true">>},
             {false, <<"false">>}, {null, <<"null">>}, {undefined, <<"\"undefined\"">>},
             {'', <<"\"\"">>}, {'é', <<"\"é\""/utf8>>}, {'ж', <<"\"ж\""/utf8>>}, {'a"b',
             <<"\"a\\\"b\"">>},
             {0, <<"0">>}, {-1, <<"-1">>}, {1.0, <<"1.0">>}, {0.1, <<"0.1">>}, {1.0e100,
             <<"1e+100">>},
             {1.0e22, <<"1e+22">>}, {123456.75, <<"123456.75">>},
             {[1, [2, []], #{}], <<"[1,[2,[]],{}]">>}, {#{a => 1}, <<"{\"a\":1}">>},
             {#{1 => <<"b">>}, <<"{\"1\":\"b\"}">>}, {#{<<"k">> => #{true => []}},
             <<"{\"k\":{\"true\":[]}}">>},
             {"ab", <<"[97,98]">>}, {<<"\"\\\b\f\n\r\t/">>, <<"\"\\\"\\\\\\b\\f\\n\\r\\t/\"">>},
             {<<0, 1, 16#1F, 16#7F>>, <<"\"\\u0000\\u0001\\u001f", 16#7F, "\"">>},
             {<<"é€𝄞"/utf8>>, <<"\"é€𝄞\""/utf8>>}]].

every_atom_is_its_name_test() ->
    Long = list_to_atom(lists:duplicate(255, $ж)),
    [?assertEqual(atom_to_binary(A), decode(encode(A)))
     || A <- [a, 'a b', Long, list_to_atom(lists:duplicate(255, $a)),
              list_to_atom(lists:duplicate(255, 255))]].

what_has_no_json_is_refused_test_() ->
    [{lists:flatten(io_lib:format("~p", [Term])), ?_assertError(Reason, encode(Term))}
     || {Term, Reason} <-
            [{{a}, {unsupported_type, {a}}}, {[1 | 2], {unsupported_type, 2}},
             {[1, [2 | <<>>]], {unsupported_type, <<>>}}, {self(), {unsupported_type, self()}},
             {#{a => {}}, {unsupported_type, {}}}, {#{{} => a}, {unsupported_type, {}}},
             {#{1.5 => a}, {unsupported_type, 1.5}}, {<<1:3>>, {unsupported_type, <<1:3>>}},
             {<<16#FF>>, {invalid_byte, 16#FF}}, {<<"a", 16#E2, 16#82>>, {invalid_byte, 16#E2}},
             {#{<<16#C0, 16#80>> => 1}, {invalid_byte, 16#C0}},
             {<<(binary:copy(<<"a">>, 9000))/binary, 16#FE>>, {invalid_byte, 16#FE}}]].

other_options_than_there_are_are_badarg_test_() ->
    [?_assertError(badarg, simdjson:decode(<<"1">>, Options))
     || Options <- [#{strings => no}, #{string => copy}, []]]
        ++ [?_assertError(badarg, decode(Json)) || Json <- [a, 1, [a], [<<1:7>>], #{}]].

%% A long string keeps the document, unless it is to be copied.
strings_refer_to_the_document_unless_the_options_forbid_it_test() ->
    Json = iolist_to_binary([$[, $", binary:copy(<<"a">>, 100), $", blanks(100000), $]]),
    [Refers] = decode(Json),
    [Copied] = simdjson:decode(Json, #{strings => copy}),
    ?assertEqual(Refers, Copied),
    ?assert(binary:referenced_byte_size(Refers) > 100000),
    ?assertEqual(100, binary:referenced_byte_size(Copied)).

%% ------------------------------------------------------------------
%% Round trips
%% ------------------------------------------------------------------

what_is_encoded_is_decoded_test_() ->
    {timeout, 600, fun() -> holds(300, ?FORALL(V, value(), decode(encode(V)) =:= V)) end}.

with_a_pause_at_every_tick_the_answers_are_the_same_test_() ->
    with_pauses(
     {timeout, 600,
      fun() ->
          Value = sample(3000),
          Json = iolist_to_binary(encode(Value)),
          ?assertEqual(Value, decode(Json)),
          ?assertEqual(Value, simdjson:decode(Json, #{strings => copy})),
          [?assertEqual(V, decode(J)) || {J, V} <- accepted()],
          [?assertEqual({R, P}, refusal(J)) || {J, R, P} <- refused()],
          holds(100, ?FORALL(V, value(), decode(encode(V)) =:= V)),
          %% A term that is kept is counted thousands of times; a new one that happens to lie
          %% where an old one was before a collection, once in a while.
          [?assert(maps:get(rule_violations, fairnif:info({simdjson, F, A})) < 200)
           || {F, A} <- [{nif_decode, 2}, {nif_encode, 1}]]
      end}).

%% Where another library is at hand.
jiffy_says_the_same_test_() ->
    case code:ensure_loaded(jiffy) of
        {module, _} ->
            Decode = fun(J) -> jiffy:decode(J, [return_maps]) end,
            [{"jiffy", {timeout, 600, fun() -> agrees(Decode, fun jiffy:encode/1) end}},
             {"jiffy, of damaged text", {timeout, 600, fun() -> agrees_about_damaged(Decode) end}}];
        {error, _} ->
            io:format(user, "simdjson_tests: no jiffy (Debian: erlang-jiffy): not compared~n", []),
            []
    end.

otp_says_the_same_test_() ->
    case code:ensure_loaded(json) of
        {module, _} ->
            [{"json", {timeout, 600, fun() -> agrees(fun json:decode/1, fun json:encode/1) end}},
             [{title(Json), ?_assertError(_, json:decode(iolist_to_binary(Json)))}
              || {Json, _, _} <- refused() ++ refused_after_the_end()]];
        {error, _} ->
            io:format(user, "simdjson_tests: this Erlang has no module json: not compared~n", []),
            []
    end.

agrees(Decode, Encode) ->
    holds(200, ?FORALL(V, value(),
                       begin
                           V = Decode(iolist_to_binary(encode(V))),
                           V =:= decode(Encode(V))
                       end)),
    Value = sample(2000),
    ?assertEqual(Value, Decode(iolist_to_binary(encode(Value)))),
    ?assertEqual(Value, decode(Encode(Value))).

%% Text in which a byte or two are wrong, with its window's end at any place.
agrees_about_damaged(Decode) ->
    Text = iolist_to_binary(encode(sample(300))),
    holds(3000, ?FORALL({Blanks, Damages}, {range(0, ?WINDOW), list(damage(byte_size(Text)))},
                        begin
                            Damaged = <<(blanks(Blanks))/binary,
                                        (lists:foldl(fun damaged/2, Text, Damages))/binary>>,
                            value_of(fun simdjson:decode/1, Damaged) =:= value_of(Decode, Damaged)
                        end)).

damage(Size) ->
    {oneof([change, insert, delete, cut]), range(0, Size - 1),
     oneof([byte(), oneof("\"\\[]{},:tn0-.e")])}.

damaged({_, At, _}, Text) when At >= byte_size(Text) -> Text;
damaged({Kind, At, Byte}, Text) ->
    <<Before:At/binary, _, After/binary>> = Text,
    case Kind of
        change -> <<Before/binary, Byte, After/binary>>;
        insert -> <<Before/binary, Byte, (binary:part(Text, At, byte_size(Text) - At))/binary>>;
        delete -> <<Before/binary, After/binary>>;
        cut -> Before
    end.

value_of(Decode, Text) ->
    try {ok, Decode(Text)} catch _:_ -> refused end.

%% ------------------------------------------------------------------
%% The rest of the VM
%% ------------------------------------------------------------------

a_killed_caller_leaves_nothing_behind_test_() ->
    [{atom_to_list(Function),
      {timeout, 600,
       fun() ->
           Value = sample(100000),
           Arg = case Function of
                     decode -> iolist_to_binary(encode(Value));
                     encode -> Value
                 end,
           Before = settled(binary),
           [kill_task_after(Ms, fun() -> simdjson:Function(Arg) end) || Ms <- [0, 1, 2, 5, 10]],
           eventually(fun() -> settled(binary) =< Before + 1000000 end)
       end}}
     || Function <- [decode, encode]].

%% On a single scheduler, how long an Erlang process beside the calls has to
%% wait.  The call takes much longer than that, or nothing would be shown.
the_neighbour_of_a_long_call_keeps_running_test_() ->
    on_one_scheduler(
     [{atom_to_list(Function),
       {timeout, 600, fun() -> ?assert(eventually_runs_beside(Function, Arg(), 5)) end}}
      || {Function, Arg} <- [{decode, fun numbers/0}, {encode, fun() -> decode(numbers()) end}]]).

%% The heap of a neighbour is collected too: a tenth of the call is room enough.
eventually_runs_beside(Function, Arg, Attempts) ->
    {Elapsed, Gap} = beside(fun() -> simdjson:Function(Arg) end),
    if
        Gap < Elapsed div 10 -> true;
        Attempts > 1 -> eventually_runs_beside(Function, Arg, Attempts - 1);
        true -> {Elapsed, Gap}
    end.

%% ------------------------------------------------------------------
%% Helpers
%% ------------------------------------------------------------------

title(Json) ->
    lists:flatten(io_lib:format("~999P", [Json, 40])).

refusal(Json) ->
    try decode(Json) of
        Value -> {accepted, Value}
    catch
        error:Reason:Stack ->
            {_, _, _, Info} = hd(Stack),
            #{cause := #{position := Position}} = proplists:get_value(error_info, Info),
            {Reason, Position}
    end.

blanks(N) -> binary:copy(<<" ">>, N).

%% Lists in lists: of some elements each.
value() ->
    ?SIZED(Size, resize(min(Size, 12), value(min(Size, 12)))).

value(0) ->
    scalar();
value(Size) ->
    frequency([{2, scalar()},
               {2, ?LAZY(list(value(Size div 3)))},
               {2, ?LAZY(?LET(Pairs, list({utf8(), value(Size div 3)}), maps:from_list(Pairs)))}]).

scalar() ->
    oneof([true, false, null, integer(), large_int(), float(), utf8(),
           ?LET(S, utf8(), binary:copy(S, 20))]).

large_int() ->
    ?LET({I, Bits}, {integer(), range(0, 300)}, I bsl Bits).

%% A list that has about that many elements, of all kinds.
sample(Count) ->
    [#{<<"id">> => I * 1000003,
       <<"text">> => <<"number ", (integer_to_binary(I))/binary, " \"é\"\n"/utf8>>,
       <<"real">> => I / 7, <<"tags">> => [null, true, [], #{}, [I, -I]],
       <<"long">> => binary:copy(<<"long ">>, I rem 50)}
     || I <- lists:seq(1, Count div 10)].

numbers() ->
    Numbers = [integer_to_binary(I * 7919) || I <- lists:seq(1, 1000000)],
    iolist_to_binary([$[, lists:join($,, Numbers), $]]).

%% Bytes, after everybody's garbage is collected.
settled(Kind) ->
    _ = [erlang:garbage_collect(P) || P <- processes()],
    erlang:memory(Kind).

%% The room of one call is not the next one's need: the heap would grow by it each time.
who_calls_again_and_again_does_not_grow_test_() ->
    {timeout, 600, fun who_calls_again_and_again_does_not_grow/0}.

who_calls_again_and_again_does_not_grow() ->
    Json = iolist_to_binary([$[, lists:join($,, lists:duplicate(15000, "{\"a\":1.5}")), $]]),
    Call = fun() -> simdjson:decode(Json) end,
    ?assert(example_test:most_heap(100, Call) < 20 * byte_size(Json)).
