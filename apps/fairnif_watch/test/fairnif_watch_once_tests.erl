-module(fairnif_watch_once_tests).

-include_lib("eunit/include/eunit.hrl").

-import(fairnif_watch_screen_tests, [entry/2, view/1, finding/2]).

the_exit_code_says_what_was_seen_test_() ->
    Up = entry(up, view(#{})),
    [?_assertEqual(Code, fairnif_watch_once:exit_code(#{at => 1, seconds => 1, nodes => Nodes,
                                                        findings => Findings}))
     || {Code, Nodes, Findings} <-
            [{0, [Up], []},
             {0, [Up], [finding(1, #{severity => recheck})]},
             {1, [Up], [finding(1, #{severity => warning})]},
             {3, [Up, entry(gone, none)], []},
             {3, [entry(up, none)], []},
             {3, [entry(hanging, view(#{}))], []},
             {1, [entry(hanging, view(#{}))], [finding(1, #{})]}]].

a_finding_is_a_line_test() ->
    Line = unicode:characters_to_list(
             fairnif_watch_terminal:finding_line(finding(1, #{sentence => <<"It\nwas.">>}))),
    {match, _} = re:run(Line, "^20[0-9T:.+-]+ app@host error scheduler_blocked: It\\?was\\.\\z").

what_comes_from_another_node_is_shown_without_control_characters_test() ->
    Odd = 'x\e[31m',
    Line = fairnif_watch_terminal:finding_line(finding(1, #{severity => Odd, detector => Odd})),
    ?assertEqual(nomatch, string:find(unicode:characters_to_list(Line), "\e")).

a_status_is_a_line_with_its_reason_test() ->
    Line = unicode:characters_to_list(
             fairnif_watch_terminal:status_line((entry(gone, none))#{reason := <<"left">>})),
    {match, _} = re:run(Line, "^20[0-9T:.+-]+ app@host gone: left\\z").
