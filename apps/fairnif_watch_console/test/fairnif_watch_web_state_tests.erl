%% What the live page's server keeps, and what it tells, without sockets.
-module(fairnif_watch_web_state_tests).

-include_lib("eunit/include/eunit.hrl").

view(At) -> view(At, []).

view(At, Findings) ->
    #{at => At, started => 1, findings => Findings,
      schedulers => [#{kind => normal, number => 1, state => busy, busy => 0.256},
                     #{kind => normal, number => 2, state => offline, busy => none}]}.

finding(Id) -> #{id => Id, sentence => <<"s">>}.

play(Messages) -> play(Messages, fairnif_watch_web_state:new()).

play(Messages, State) ->
    lists:foldl(fun(Message, {_, S}) -> fairnif_watch_web_state:update(Message, S) end,
                {[], State}, Messages).

names({Events, _}) -> [Name || {Name, _} <- Events].

the({_, State}) ->
    #{nodes := [Node]} = fairnif_watch_web_state:full(State),
    Node.

the_same_message_twice_changes_nothing_test() ->
    Messages = [{a, {view, view(1, [finding(1)])}}, {a, {finding, finding(1)}},
                {a, {node, #{status => up, since => 1, reason => none}}},
                {cluster, #{nodes => [#{node => a, status => up, since => 1, reason => none,
                                        view => view(1, [finding(1)])}]}}],
    {_, State} = play(Messages),
    [?assertEqual([], names(play([Message], State))) || Message <- Messages].

only_what_has_changed_is_sent_test() ->
    {_, State} = play([{a, {view, view(1, [finding(2), finding(1)])}}]),
    Longer = (finding(2))#{sentence => <<"longer">>},
    {Events, _} = play([{a, {view, view(2, [Longer, finding(1)])}}], State),
    ?assertMatch([{finding, #{finding := Longer}}, {view, #{view := #{at := 2}}}], Events),
    [{view, #{view := View}}] = lists:nthtail(1, Events),
    ?assertNot(maps:is_key(findings, View)).

history_is_a_percentage_a_second_of_each_scheduler_test() ->
    #{history := History} = the(play([{a, {view, view(1)}}, {a, {view, view(2)}}])),
    ?assertEqual(#{schedulers => [#{kind => normal, number => 1}, #{kind => normal, number => 2}],
                   at => [1, 2], busy => [[26, null], [26, null]]}, History).

what_is_kept_has_an_end_test() ->
    Many = [{a, {view, view(At)}} || At <- lists:seq(1, 500)]
        ++ [{a, {finding, finding(Id)}} || Id <- lists:seq(1, 500)],
    #{history := #{at := At}, findings := Findings} = the(play(Many)),
    ?assertEqual(lists:seq(321, 500), At),
    ?assertEqual(lists:seq(500, 401, -1), [Id || #{id := Id} <- Findings]),
    {_, State} = play([{list_to_atom("n" ++ integer_to_list(N)), {view, view(1)}}
                       || N <- lists:seq(1, 300)]),
    ?assertEqual(256, length(maps:get(nodes, fairnif_watch_web_state:full(State)))).

another_run_of_a_node_starts_empty_test() ->
    Before = play([{a, {view, view(1, [finding(1)])}}]),
    ?assertMatch(#{findings := [_]}, the(Before)),
    After = play([{a, {view, (view(2))#{started => 2}}}], element(2, Before)),
    ?assertEqual([node], names(After)),
    ?assertMatch(#{findings := [], history := #{at := [2]}}, the(After)).

other_schedulers_start_a_new_history_test() ->
    {_, Before} = play([{a, {view, view(1)}}]),
    One = maps:update_with(schedulers, fun(L) -> [hd(L)] end, view(2)),
    After = play([{a, {view, One}}], Before),
    ?assertEqual([node], names(After)),
    ?assertMatch(#{history := #{at := [2], busy := [[26]]}}, the(After)).

nodes_that_a_cluster_no_longer_has_are_gone_test() ->
    Entry = fun(Node) ->
                    #{node => Node, status => up, since => 1, reason => none, view => none}
            end,
    {_, State} = play([{cluster, #{nodes => [Entry(a), Entry(b)]}}]),
    {Events, _} = play([{cluster, #{nodes => [Entry(b), Entry(c)]}}], State),
    ?assertEqual([{gone, #{node => a}}], [E || {gone, _} = E <- Events]),
    ?assertEqual([gone, node], names({Events, none})).

a_node_that_is_down_keeps_its_last_view_test() ->
    Down = {node, #{status => down, since => 7, reason => <<"nodedown">>}},
    ?assertMatch(#{status := down, view := #{at := 1}},
                 the(play([{a, {view, view(1)}}, {a, Down}]))).

what_is_not_understood_changes_nothing_test() ->
    {_, State} = play([{a, {view, view(1, [finding(1)])}}]),
    [?assertEqual({[], State}, fairnif_watch_web_state:update({a, Odd}, State))
     || Odd <- [tomorrow, {tomorrow, 1}, {finding, #{}}, {finding, none}, {view, none}]].
