%% What the live page shows, as data: of each node its last view, its findings, its last minutes.
%%
%% Takes the messages of a source (the own node, or a cluster) and says what changed, as events for
%% readers of the page. The same message twice changes nothing, so that a source may send
%% views only, or findings as well, or the whole cluster again and again. All of it is bounded:
%% nodes, findings of a node, seconds of history. Pure: no process, no clock but the views' own.
-module(fairnif_watch_web_state).

-export([new/0, update/2, full/1, views/1]).

-export_type([state/0, event/0, message/0]).

-type status() :: up | hanging | down | gone | replaced | refused | unknown.
-type message() :: {node(), {view, fairnif_watch:view()}
                          | {finding, fairnif_watch:finding()}
                          | {node, #{status := status(), since => integer(), reason => term()}}}
                 | {cluster, #{nodes := [map()]}}.
%% The name and the data of a server-sent event.
-type event() :: {state | node | status | view | finding | gone, map()}.
-type entry() :: #{node := node(), status := status(), since := integer() | none,
                   reason := term(), view := map() | none,
                   findings := #{pos_integer() => fairnif_watch:finding()},
                   %% Newest first: when, and a byte of each scheduler: percent busy, or ?NOT_KNOWN.
                   history := [{At :: integer(), binary()}]}.
-opaque state() :: #{node() => entry()}.

%% A column of the heat strips is a second: three minutes.
-define(COLUMNS, 180).
%% As many as a view holds.
-define(FINDINGS, 100).
%% Nodes beyond these are not shown. A cluster of this size has other means.
-define(NODES, 256).
-define(NOT_KNOWN, 255).
-define(KEY(Scheduler), {maps:get(kind, Scheduler), maps:get(number, Scheduler)}).

%% @doc Nothing known of any node.
-spec new() -> state().
new() -> #{}.

%% @doc The state after a message, and what to tell those who know the state before it, in order.
%% Cost: that of comparing the findings of the message with those known.
-spec update(message(), state()) -> {[event()], state()}.
update({cluster, #{nodes := Entries}}, State) ->
    Names = [Node || #{node := Node} <- Entries],
    Gone = maps:keys(maps:without(Names, State)),
    lists:foldl(fun cluster_entry/2, {[{gone, #{node => Node}} || Node <- Gone],
                                      maps:with(Names, State)}, Entries);
update({Node, Message}, State) ->
    case State of
        #{Node := Entry} -> again(Message, Entry, State);
        #{} when map_size(State) < ?NODES -> first(Message, entry(Node), State);
        #{} -> {[], State}
    end.

cluster_entry(#{node := Node} = Entry, {Events, State}) ->
    Messages = [{node, maps:with([status, since, reason], Entry)}
                | [{view, View} || #{view := #{} = View} <- [Entry]]],
    lists:foldl(fun(Message, {Before, S}) ->
                        {More, After} = update({Node, Message}, S),
                        {Before ++ More, After}
                end, {Events, State}, Messages).

entry(Node) ->
    #{node => Node, status => unknown, since => none, reason => none, view => none,
      findings => #{}, history => []}.

%% A reader that has not heard of the node is sent all of it.
first(Message, Entry, State) ->
    {_, #{node := Node} = After} = change(Message, Entry),
    {[{node, whole(After)}], State#{Node => After}}.

again(Message, #{node := Node} = Entry, State) ->
    case change(Message, Entry) of
        {_, Entry} -> {[], State};
        {replaced, After} -> {[{node, whole(After)}], State#{Node => After}};
        {Events, After} -> {Events, State#{Node => After}}
    end.

change({node, Changes}, #{node := Node} = Entry) ->
    After = maps:merge(Entry, maps:with([status, since, reason], Changes)),
    {[{status, maps:with([node, status, since, reason], After#{node => Node})}], After};
change({finding, #{id := Id} = Finding}, #{node := Node, findings := Findings} = Entry) ->
    {[{finding, #{node => Node, finding => Finding}}],
     Entry#{findings => newest(Findings#{Id => Finding})}};
%% Sent again, as a cluster's view of a node that does not answer is.
change({view, #{at := At}}, #{view := #{at := At}} = Entry) ->
    {[], Entry};
change({view, #{} = View}, Entry) ->
    case same_run(View, Entry) of
        true -> next_view(View, Entry);
        %% Another run of a node of this name, or other schedulers: nothing from before fits.
        false -> {_, After} = next_view(View, Entry#{findings => #{}, history => []}),
                 {replaced, After}
    end;
%% From a node whose watch is of another version.
change(_, Entry) ->
    {[], Entry}.

same_run(View, #{view := Last}) when is_map(Last) ->
    maps:get(started, View, none) =:= maps:get(started, Last, none)
        andalso scheduler_keys(View) =:= scheduler_keys(Last);
same_run(_, _) ->
    true.

scheduler_keys(View) -> [?KEY(S) || S <- maps:get(schedulers, View, [])].

%% The view's list is all there is; without one, what came by itself stays.
next_view(View, #{node := Node, findings := Known, history := History, status := Status} = Entry) ->
    Findings = case View of
                   #{findings := List} ->
                       newest(maps:from_list([{Id, F} || #{id := Id} = F <- List]));
                   #{} -> Known
               end,
    Changed = [F || {Id, F} <- lists:sort(maps:to_list(Findings)), maps:get(Id, Known, none) =/= F],
    Slim = maps:remove(findings, View),
    {[{finding, #{node => Node, finding => F}} || F <- Changed]
     ++ [{view, #{node => Node, view => Slim}}],
     Entry#{view => Slim, findings => Findings,
            %% A source that never tells a status shows its own node: it is up while it talks.
            status => case Status of unknown -> up; _ -> Status end,
            history => lists:sublist([column(View) | History], ?COLUMNS)}}.

column(View) ->
    {maps:get(at, View, 0), << <<(percent(S))>> || S <- maps:get(schedulers, View, []) >>}.

percent(#{state := State}) when State =:= offline; State =:= unknown -> ?NOT_KNOWN;
percent(#{busy := Busy}) when is_number(Busy) -> max(0, min(100, round(Busy * 100)));
percent(_) -> ?NOT_KNOWN.

newest(Findings) when map_size(Findings) =< ?FINDINGS -> Findings;
newest(Findings) ->
    Ids = lists:sort(fun erlang:'>='/2, maps:keys(Findings)),
    maps:with(lists:sublist(Ids, ?FINDINGS), Findings).

%% @doc Everything of every node, for a new reader.
-spec full(state()) -> map().
full(State) ->
    #{nodes => [whole(Entry) || {_, Entry} <- lists:sort(maps:to_list(State))]}.

%% @doc The last view of every node with its findings, newest first, without the history.
-spec views(state()) -> map().
views(State) ->
    #{nodes => [(maps:with([node, status, since, reason], Entry))#{view => with_findings(Entry)}
                || {_, Entry} <- lists:sort(maps:to_list(State))]}.

with_findings(#{view := none}) -> none;
with_findings(#{view := View} = Entry) -> View#{findings => list(Entry)}.

whole(#{view := View, history := History} = Entry) ->
    Columns = lists:reverse(History),
    Rows = [#{kind => K, number => N} || View =/= none, {K, N} <- scheduler_keys(View)],
    Entry#{findings => list(Entry),
           history => #{schedulers => Rows, at => [At || {At, _} <- Columns],
                        busy => [[known(B) || <<B>> <= Bytes] || {_, Bytes} <- Columns]}}.

known(?NOT_KNOWN) -> null;
known(Percent) -> Percent.

list(#{findings := Findings}) ->
    [F || {_, F} <- lists:reverse(lists:sort(maps:to_list(Findings)))].
