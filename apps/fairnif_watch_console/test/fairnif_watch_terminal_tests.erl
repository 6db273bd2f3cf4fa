%% Which lines are written of what comes, where there is no screen: one for each thing that a reader
%% has to know, whatever a node says twice.
-module(fairnif_watch_terminal_tests).

-include_lib("eunit/include/eunit.hrl").

-import(fairnif_watch_screen_tests, [entry/2, view/1, finding/2]).

-define(NODE, 'app@host').

a_short_finding_is_reported_when_it_is_over_test() ->
    Short = finding(20, #{ongoing => true}),
    ?assertEqual({["app@host up", "Scheduler 2 was blocked."], [error]},
                 lines([up(view(#{})), {finding, Short}, {finding, Short#{ongoing := false}},
                        {finding, Short#{ongoing := false}}])).

a_long_one_is_reported_while_it_lasts_and_when_it_is_over_test() ->
    #{since := Since} = Long = finding(20, #{ongoing => true}),
    Later = Long#{at := Since + 1500000},
    ?assertEqual({["app@host up", "Scheduler 2 was blocked. (goes on)", "Scheduler 2 was blocked."],
                  [error]},
                 lines([up(view(#{})), {finding, Long}, {finding, Later}, {finding, Later},
                        {view, view(#{findings => [Later#{ongoing := false}]})}])).

what_was_over_before_is_not_reported_test() ->
    ?assertEqual({["app@host up"], []}, lines([up(view(#{findings => [finding(1, #{})]}))])).

what_is_in_no_view_any_more_is_forgotten_and_counts_all_the_same_test() ->
    One = finding(20, #{severity => warning}),
    Other = finding(21, #{}),
    Views = [{view, view(#{findings => [F]})} || F <- [One, Other, Other]],
    ?assertEqual({["app@host up", "Scheduler 2 was blocked.", "Scheduler 2 was blocked."],
                  [error, warning]}, lines([up(view(#{})) | Views])).

a_new_watch_of_the_node_numbers_from_one_test() ->
    #{since := At} = First = finding(20, #{}),
    Second = First#{since := At + 60000000, at := At + 60000000},
    ?assertMatch({[_, "Scheduler 2 was blocked.", "Scheduler 2 was blocked."], _},
                 lines([up(view(#{})), {finding, First}, {finding, Second}, {finding, Second}])).

a_status_is_reported_once_test() ->
    Down = {node, #{status => down, since => 0, reason => <<"the connection was lost">>}},
    ?assertEqual({["app@host up", "app@host down: the connection was lost"], []},
                 lines([up(view(#{})), Down, Down])).

what_is_seen_from_outside_is_reported_once_while_it_hangs_test() ->
    Hangs = {node, #{status => hanging, since => 0, reason => <<"it says nothing">>,
                     outside => []}},
    Seen = fun(Text) -> setelement(2, Hangs, (element(2, Hangs))#{outside => [Text]}) end,
    ?assertEqual({["app@host hanging: it says nothing", "  1 s\n"], []},
                 lines([Hangs, Seen(<<"1 s">>), Seen(<<"6 s">>)])).

%% ---- what is written ----

up(View) -> {all, #{nodes => [entry(up, View)]}}.

%% The lines, without what differs from one machine to the next, and the severities; of messages as
%% a cluster sends them.
lines(Messages) ->
    Self = self(),
    Cluster = spawn_link(fun() -> cluster() end),
    Reader = spawn_link(fun() ->
                                group_leader(Self, self()),
                                Found = fairnif_watch_terminal:lines(Cluster, #{}),
                                Self ! {found, lists:sort([S || #{severity := S} <- Found])}
                        end),
    [Reader ! message(Message) || Message <- Messages],
    Reader ! {fairnif_watch_terminal, done},
    written([]).

message({all, Views}) -> {fairnif_watch_cluster, Views};
message(Message) -> {fairnif_watch, ?NODE, Message}.

written(Lines) ->
    receive
        {io_request, From, Ref, {put_chars, unicode, Text}} ->
            From ! {io_reply, Ref, ok},
            Line = unicode:characters_to_list(Text),
            Short = re:replace(Line, "^\\S+ (app@host error scheduler_blocked: |"
                               "app@host warning scheduler_blocked: )?(.*)\n$", "\\2",
                               [{return, list}]),
            written([Short | Lines]);
        {found, Severities} ->
            {lists:reverse(Lines), Severities}
    after 240000 -> error(timeout)
    end.

%% Takes subscribers, and tells them nothing.
cluster() ->
    receive
        {'$gen_call', From, {subscribe, _}} -> gen_server:reply(From, {ok, make_ref()}), cluster();
        {'$gen_call', From, {unsubscribe, _}} -> gen_server:reply(From, ok)
    end.
