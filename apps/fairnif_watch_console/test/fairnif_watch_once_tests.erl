-module(fairnif_watch_once_tests).

-include_lib("eunit/include/eunit.hrl").

-import(fairnif_watch_screen_tests, [entry/2, view/1, finding/2]).

the_exit_code_says_what_was_seen_test_() ->
    Up = entry(up, view(#{})),
    [?_assertEqual(Code, fairnif_watch_once:exit_code(#{at => 1, seconds => 1, nodes => Nodes,
                                                        findings => Findings}))
     || {Code, Nodes, Findings} <-
            [{0, [Up], []},
             {0, [Up], [finding(1, #{severity => unconfirmed})]},
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

what_was_over_before_it_was_attached_to_is_not_of_this_look_test() ->
    #{at := At} = View = view(#{}),
    Entry = entry(up, View),
    ?assertEqual([At - 1500000, At, 0],
                 [fairnif_watch_once:from(E) || E <- [Entry#{from => At - 1500000},
                                                      Entry#{from => none}, entry(down, none)]]),
    Over = [finding(1, #{at => At - 2000000}), finding(2, #{at => At - 1000000}),
            finding(3, #{at => At - 3000000, ongoing => true})],
    Cluster = spawn_link(fun() ->
        receive {'$gen_call', From, views} ->
            gen_server:reply(From, #{nodes => [Entry#{view => view(#{findings => Over})}]})
        end
    end),
    Views = #{nodes => [Entry#{from => At - 1500000}]},
    #{findings := Seen} = fairnif_watch_once:look(Cluster, #{views => Views, seconds => 0}),
    ?assertEqual([2, 3], lists:sort([Id || #{id := Id} <- Seen])).
