%% The live view: on a terminal a screen that is drawn anew once a second and whenever something
%% happens; elsewhere lines, one when a finding is new and one when it ends.
%%
%% Asks no node anything: all it knows is what fairnif_watch_cluster has been told, so that nothing
%% that happens to a node can stop it.
-module(fairnif_watch_terminal).

-export([screen/2, lines/2, status_line/1, finding_line/1]).

-export_type([options/0]).

%% `seconds': how long; `style', `colour': of the screen; `note': for its last line.
-type options() :: #{tty => file:filename(), seconds => pos_integer() | infinity,
                     style => unicode | ascii, colour => boolean(), note => binary() | none}.

-define(TICK_MS, 1000).
%% Between two drawings: findings may come fast.
-define(APART_MS, 150).
%% Nodes and findings of which is remembered that they were written; more than views hold together.
-define(KNOWN, 60000).
-define(ANOTHER_US, 2000000).
-define(LONG_US, 1000000).

-record(screen, {cluster :: pid(),
                 keyboard :: fairnif_watch_keyboard:keyboard(),
                 view :: map(),
                 colour :: boolean(),
                 input = <<>> :: binary(),
                 %% Not before the keyboard has taken the terminal.
                 drawn = never :: never | integer(),
                 due = none :: none | reference()}).

%% @doc Shows the screen until a key or the time ends it; the terminal is then as it was. Error
%% `no_terminal' where the path is none that can be controlled.
-spec screen(pid(), options()) -> ok | {error, no_terminal}.
screen(Cluster, #{tty := Tty} = Options) ->
    Keyboard = fairnif_watch_keyboard:open(Tty),
    ok = fairnif_watch_keyboard:look(Keyboard),
    {ok, Ref} = fairnif_watch_cluster:subscribe(Cluster, self()),
    _ = ending(Options),
    View = #{rows => 24, columns => 80, style => maps:get(style, Options, ascii), now => 0,
             keys => true, chosen => newest, detail => none},
    Noted = maps:merge(View, maps:with([note], maps:filter(fun(_, V) -> V =/= none end, Options))),
    Result = screen(#screen{cluster = Cluster, keyboard = Keyboard, view = Noted,
                            colour = maps:get(colour, Options, false)}),
    ok = fairnif_watch_cluster:unsubscribe(Cluster, Ref),
    _ = Result =:= ok andalso fairnif_watch_keyboard:close(Keyboard),
    Result.

ending(#{seconds := Seconds}) when is_integer(Seconds) ->
    erlang:send_after(Seconds * 1000, self(), {?MODULE, done});
ending(_) ->
    none.

screen(#screen{keyboard = Keyboard} = S) ->
    receive
        {Keyboard, {data, _} = Data} when S#screen.drawn =:= never ->
            self() ! {Keyboard, Data},
            self() ! {?MODULE, tick},
            screen(S#screen{drawn = now_ms()});
        {Keyboard, {data, Bytes}} ->
            {Input, Rest} = fairnif_watch_keyboard:parse(<<(S#screen.input)/binary, Bytes/binary>>),
            case lists:member(quit, Input) of
                true -> ok;
                false -> screen(draw(typed(Input, S#screen{input = Rest})))
            end;
        {Keyboard, {exit_status, _}} ->
            {error, no_terminal};
        {?MODULE, tick} ->
            _ = erlang:send_after(?TICK_MS, self(), {?MODULE, tick}),
            ok = fairnif_watch_keyboard:look(Keyboard),
            screen(draw(S));
        {?MODULE, draw} ->
            screen(draw(S));
        {?MODULE, done} ->
            ok;
        {fairnif_watch, _, {view, _}} ->
            screen(S);
        {fairnif_watch, _, _} ->
            screen(soon(S));
        _ ->
            screen(S)
    end.

typed(Input, #screen{cluster = Cluster, view = View} = S) ->
    Findings = fairnif_watch_screen:findings(fairnif_watch_cluster:views(Cluster)),
    S#screen{view = lists:foldl(fun(Key, V) -> key(Key, V, Findings) end, View, Input)}.

key({size, Rows, Columns}, View, _) ->
    View#{rows := Rows, columns := Columns};
key(enter, #{detail := none} = View, [_ | _] = Findings) ->
    %% It stays on the one that is being read.
    View#{detail := 0, chosen := pinned(View, Findings)};
key(Key, View, _) when Key =:= enter; Key =:= back ->
    View#{detail := none};
key(Key, #{detail := none, chosen := Chosen} = View, Findings) ->
    View#{chosen := fairnif_watch_screen:choose(step(Key), Chosen, Findings)};
key(Key, #{detail := From} = View, _) ->
    View#{detail := max(0, From + step(Key))}.

step(up) -> -1;
step(down) -> 1.

pinned(#{chosen := newest}, [#{node := Node, id := Id} | _]) -> {Node, Id};
pinned(#{chosen := Chosen}, _) -> Chosen.

soon(#screen{due = none, drawn = Drawn} = S) when is_integer(Drawn) ->
    Wait = max(0, Drawn + ?APART_MS - now_ms()),
    S#screen{due = erlang:send_after(Wait, self(), {?MODULE, draw})};
soon(S) ->
    S.

draw(#screen{cluster = Cluster, view = View, due = Due} = S) ->
    _ = Due =/= none andalso erlang:cancel_timer(Due),
    Views = fairnif_watch_cluster:views(Cluster),
    Now = View#{now := erlang:system_time(microsecond)},
    Text = [case S#screen.colour of
                true -> fairnif_watch_screen:ansi(Line, Now);
                false -> fairnif_watch_screen:plain(Line, Now)
            end || Line <- fairnif_watch_screen:lines(Views, Now)],
    say(["\e[H", lists:join("\e[K\r\n", Text), "\e[K\e[J"]),
    S#screen{view = Now, drawn = now_ms(), due = none}.

%% When nobody reads any more (a pipe's other end) it is over.
say(Text) ->
    try io:put_chars(Text)
    catch error:_ -> self() ! {?MODULE, done}, ok
    end.

%% @doc Writes lines to standard output until the time ends it, or nobody reads them; answers the
%% findings written. What was over before the watch began is none of its business.
-spec lines(pid(), options()) -> [map()].
lines(Cluster, Options) ->
    {ok, Ref} = fairnif_watch_cluster:subscribe(Cluster, self()),
    Timer = ending(Options),
    Known = told(#{}),
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
    ok = fairnif_watch_cluster:unsubscribe(Cluster, Ref),
    [Finding || {{finding, _, _}, Finding} <- maps:to_list(Known)].

%% What was written last, of each node and of each finding.
told(Known) when map_size(Known) > ?KNOWN ->
    told(forget(Known));
told(Known) ->
    receive
        {?MODULE, done} ->
            Known;
        {fairnif_watch_cluster, #{nodes := Nodes}} ->
            told(lists:foldl(fun(#{view := #{} = View} = Entry, K) ->
                                     told_status(Entry, told_findings(View, K));
                                (Entry, K) -> told_status(Entry, K)
                             end, Known, Nodes));
        {fairnif_watch, Node, {node, Entry}} ->
            told(told_status(Entry#{node => Node}, Known));
        {fairnif_watch, _, {finding, Finding}} ->
            told(told_finding(Finding, Known));
        {fairnif_watch, _, {view, View}} ->
            told(told_findings(View, Known));
        _ ->
            told(Known)
    end.

%% The older half of the findings: no view holds them any more.
forget(Known) ->
    Sinces = lists:sort([Since || #{since := Since} <- maps:values(Known)]),
    Limit = lists:nth(length(Sinces) div 2, Sinces),
    maps:filter(fun(_, #{since := Since}) -> Since > Limit;
                   (_, _) -> true
                end, Known).

told_status(#{node := Node, status := Status} = Entry, Known) ->
    case Known of
        #{{node, Node} := Status} -> Known;
        #{} ->
            say([status_line(Entry), $\n]),
            Known#{{node, Node} => Status}
    end.

told_findings(#{node := Node} = View, Known) ->
    From = maps:get({from, Node}, Known, fairnif_watch_once:from(View)),
    lists:foldr(fun told_finding/2, Known#{{from, Node} => From}, maps:get(findings, View, [])).

told_finding(#{node := Node, id := Id, at := At, ongoing := Ongoing} = Finding, Known) ->
    Key = {finding, Node, Id},
    Ours = Ongoing orelse At >= maps:get({from, Node}, Known, 0),
    case Ours andalso is_news(Finding, maps:get(Key, Known, none)) of
        true ->
            say([finding_line(Finding), $\n]),
            Known#{Key => maps:with([node, ongoing, severity, since], Finding)};
        false ->
            Known
    end.

%% One that is soon over is told when it is, and any other at once. Ids begin anew with each watch,
%% and when a finding began is known better with time.
is_news(#{since := Since} = Finding, #{since := Before}) when abs(Since - Before) > ?ANOTHER_US ->
    is_news(Finding, none);
is_news(#{ongoing := true, at := At, since := Since}, none) -> At - Since >= ?LONG_US;
is_news(_, none) -> true;
is_news(#{ongoing := false}, #{ongoing := true}) -> true;
is_news(_, _) -> false.

%% @doc What became of a node, in one line without its end.
-spec status_line(map()) -> unicode:chardata().
status_line(#{node := Node, status := Status, since := Since} = Entry) ->
    [time(Since), " ", fairnif_watch_screen:text(Node), " ", atom_to_list(Status),
     [[": ", fairnif_watch_screen:text(Why)] || #{reason := Why} <- [Entry], Why =/= none]].

%% @doc A finding in one line without its end.
-spec finding_line(map()) -> unicode:chardata().
finding_line(#{node := Node, since := Since, severity := Severity, detector := Detector,
               sentence := Sentence, ongoing := Ongoing}) ->
    Text = fun fairnif_watch_screen:text/1,
    [time(Since), " ", Text(Node), " ", Text(Severity), " ", Text(Detector), ": ", Text(Sentence),
     case Ongoing of true -> " (goes on)"; false -> "" end].

time(Us) ->
    calendar:system_time_to_rfc3339(Us div 1000, [{unit, millisecond}]).

now_ms() ->
    erlang:monotonic_time(millisecond).
