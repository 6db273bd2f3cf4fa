-module(fairnif_check_json_tests).

-include_lib("eunit/include/eunit.hrl").

encode(Value) ->
    iolist_to_binary(fairnif_check_json:encode(Value)).

numbers_are_written_in_full_and_read_back_exactly_test() ->
    ?assertEqual(<<"[0,-7,123456789012345678901234567890]">>,
                 encode([0, -7, 123456789012345678901234567890])),
    ?assertEqual(<<"0.1">>, encode(0.1)),
    [?assertEqual(F, binary_to_float(encode(F)))
     || F <- [1.5, -2.25e-9, 1.0e22, 0.1 + 0.2]].

undefined_is_null_and_atoms_are_their_names_test() ->
    ?assertEqual(<<"[null,null,true,false,\"normal\"]">>,
                 encode([undefined, null, true, false, normal])).

strings_are_escaped_and_stay_utf8_test() ->
    ?assertEqual(<<"\"a\\\"b\\\\c\\n\\t\\u0001\"">>,
                 encode(<<"a\"b\\c\n\t", 1>>)),
    ?assertEqual(<<"\"", "größe"/utf8, "\"">>, encode(<<"größe"/utf8>>)).

control_characters_are_written_as_otp_27_writes_them_test() ->
    ?assertEqual(<<"\"\\u0000\\b\\f\\u000B\\u001F", 127, "\"">>, encode(<<0, 8, 12, 11, 31, 127>>)).

bytes_that_are_no_utf8_are_read_as_latin1_test() ->
    ?assertEqual(<<"\"", "ÿ"/utf8, "\"">>, encode(<<255>>)).

maps_are_sorted_by_key_and_ordered_objects_keep_their_order_test() ->
    ?assertEqual(<<"{\"a\":1,\"b\":{\"c\":[]}}">>,
                 encode(#{b => #{<<"c">> => []}, a => 1})),
    ?assertEqual(<<"{\"z\":1,\"a\":2}">>, encode({[{z, 1}, {<<"a">>, 2}]})),
    ?assertEqual(<<"[{},{}]">>, encode([#{}, {[]}])).

what_json_does_not_know_is_an_error_test() ->
    ?assertError({not_json, {a, b}}, encode({a, b})),
    ?assertError({not_json, _}, encode(self())),
    ?assertError({not_json, 1}, encode(#{1 => 2})).
