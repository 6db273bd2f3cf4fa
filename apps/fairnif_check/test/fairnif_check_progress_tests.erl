-module(fairnif_check_progress_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, fairnif_check_progress).

a_terminal_gets_one_line_that_overwrites_itself_test() ->
    Line = unicode:characters_to_list(?P:line(terminal, 3, 14, "exor")),
    ?assertEqual("\r\e[K[ 3/14] exor", Line).

a_line_on_a_terminal_never_wraps_test() ->
    Long = lists:duplicate(200, $x),
    "\r\e[K" ++ Line = unicode:characters_to_list(?P:line(terminal, 1, 1, Long)),
    ?assertEqual(79, length(Line)).

elsewhere_each_step_is_a_line_test() ->
    ?assertEqual("[2/3] exor\n",
                 unicode:characters_to_list(?P:line(plain, 2, 3, "exor"))).

a_silent_progress_says_nothing_test() ->
    ?assertEqual(ok, ?P:note(?P:none(), "x")),
    ?assertEqual(ok, ?P:step(?P:none(), "x")),
    ?assertEqual(ok, ?P:stop(?P:none())).
