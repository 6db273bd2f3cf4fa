%% A look at nodes for scripts: watches for some seconds, and says as a value what was seen.
-module(fairnif_watch_once).

-export([settled/3, from/1, look/2, exit_code/1, json/1, self_test/3]).

-export_type([result/0]).

%% `findings': those that last, or began or ended, while it was watched.
-type result() :: #{at := integer(), seconds := pos_integer(),
                    nodes := [fairnif_watch_cluster:entry()], findings := [map()]}.

-define(LOOK_MS, 50).

%% @doc Waits until every node is either seen or known not to be, for up to that many milliseconds,
%% and answers what is known then. `hanging' may pass: it is waited for where all shall be seen, and
%% is enough for a screen, which shows what becomes of it.
-spec settled(pid(), seen | shown, non_neg_integer()) -> fairnif_watch_cluster:views().
settled(Cluster, For, Timeout) ->
    until(Cluster, For, now_ms() + Timeout).

until(Cluster, For, Limit) ->
    #{nodes := Nodes} = Views = fairnif_watch_cluster:views(Cluster),
    case lists:all(fun(Entry) -> is_settled(For, Entry) end, Nodes) orelse now_ms() >= Limit of
        true -> Views;
        false -> timer:sleep(?LOOK_MS), until(Cluster, For, Limit)
    end.

is_settled(_, #{status := up, view := View}) -> View =/= none;
is_settled(_, #{status := down, reason := Why}) ->
    not lists:member(Why, [<<"not reached yet">>, <<"the connection was lost">>]);
is_settled(For, #{status := hanging}) -> For =:= shown;
is_settled(_, #{status := Status}) -> lists:member(Status, [gone, refused]).

%% @doc From when on, by the node's clock, what ends there is of this look: since it is attached to.
%% What was over before is not.
-spec from(fairnif_watch_cluster:entry() | map()) -> integer().
from(#{from := From}) when is_integer(From) -> From;
from(#{view := #{at := At}}) -> At;
from(_) -> 0.

%% @doc Watches for that many seconds more, from `Views' on, and says what was seen since then.
-spec look(pid(), #{views := fairnif_watch_cluster:views(), seconds := pos_integer()}) -> result().
look(Cluster, #{views := #{nodes := First}, seconds := Seconds}) ->
    Since = maps:from_list([{Node, from(Entry)} || #{node := Node} = Entry <- First]),
    timer:sleep(Seconds * 1000),
    #{nodes := Nodes} = Views = fairnif_watch_cluster:views(Cluster),
    #{at => erlang:system_time(microsecond), seconds => Seconds, nodes => Nodes,
      findings => [F || #{node := Node, at := At, ongoing := Ongoing} = F
                            <- fairnif_watch_screen:findings(Views),
                        Ongoing orelse At >= maps:get(Node, Since, 0)]}.

%% @doc 0: all nodes were seen, and nothing was found; 1: something was; 3: not all were seen. What
%% is to be looked at again (`unconfirmed') is no finding.
-spec exit_code(result()) -> 0 | 1 | 3.
exit_code(#{nodes := Nodes, findings := Findings}) ->
    Found = lists:any(fun(#{severity := S}) -> S =/= unconfirmed end, Findings),
    Seen = lists:all(fun(#{status := S, view := V}) -> S =:= up andalso V =/= none end, Nodes),
    if
        Found -> 1;
        Seen -> 0;
        true -> 3
    end.

%% @doc The result as JSON text: priv/watch-1.schema.json describes it.
-spec json(result()) -> iodata().
json(#{at := At, seconds := Seconds, nodes := Nodes, findings := Findings} = Result) ->
    fairnif_watch_json:encode(
      {[{schema_version, 1}, {version, version()}, {at, At}, {seconds, Seconds},
        {exit_code, exit_code(Result)}, {nodes, Nodes}, {findings, Findings}]}).

version() ->
    _ = application:load(fairnif_watch),
    {ok, Version} = application:get_key(fairnif_watch, vsn),
    list_to_binary(Version).

%% @doc Attaches, has the node test its watch (it blocks a scheduler for 300 ms), and leaves.
-spec self_test(node(), atom(), shortnames | longnames) ->
          {ok, term()} | {failed, term()} | {error, unicode:chardata()}.
self_test(Node, Cookie, Form) ->
    case fairnif_watch_connect:connect(Node, Cookie) of
        connected ->
            case fairnif_watch_attach:attach(Node, #{}) of
                {ok, Attached} ->
                    Result = tested(Node),
                    ok = fairnif_watch_attach:detach(Attached, 10000),
                    Result;
                {error, {_, Why}} ->
                    {error, Why}
            end;
        Ended ->
            {_, Why} = fairnif_watch_connect:why_unreachable(Node, Form, Ended),
            {error, Why}
    end.

tested(Node) ->
    try erpc:call(Node, fairnif_watch, self_test, [], 20000) of
        {ok, Said} -> {ok, Said};
        {error, Why} -> {failed, Why}
    catch
        Class:Why -> {error, io_lib:format("the self-test did not end: ~p ~0tP", [Class, Why, 12])}
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
