-module(fairnif_watch_keyboard_tests).

-include_lib("eunit/include/eunit.hrl").

keys_are_what_terminals_send_test_() ->
    [{lists:flatten(io_lib:format("~tp", [Bytes])),
      ?_assertEqual({Input, <<>>}, fairnif_watch_keyboard:parse(Bytes))}
     || {Bytes, Input} <-
            [{<<"jk">>, [down, up]}, {<<"\e[A\e[B">>, [up, down]}, {<<"\eOA\eOB">>, [up, down]},
             {<<"\r">>, [enter]}, {<<"\n">>, [enter]}, {<<"q">>, [quit]}, {<<3>>, [quit]},
             {<<"\e">>, [back]}, {<<"\e[5~x">>, []}, {<<"\e[1;5A">>, [up]}, {<<"äöü"/utf8>>, []},
             {<<30, "24 80\n">>, [{size, 24, 80}]}, {<<30, "0 0\n">>, []}, {<<30, "\n">>, []},
             {<<"j", 30, "24 80\nq">>, [down, {size, 24, 80}, quit]}]].

a_size_may_come_in_pieces_test() ->
    {[down], Rest} = fairnif_watch_keyboard:parse(<<"j", 30, "24">>),
    ?assertEqual({[{size, 24, 80}, up], <<>>},
                 fairnif_watch_keyboard:parse(<<Rest/binary, " 80\nk">>)).

what_is_no_terminal_is_recognised_test() ->
    Port = fairnif_watch_keyboard:open("/dev/null"),
    receive {Port, {exit_status, Status}} -> ?assertEqual(1, Status)
    after 240000 -> error(timeout)
    end.
