%% The live view: on a terminal a screen that is redrawn once a second and whenever something
%% happens; elsewhere lines, one when a finding is new and one when it ends.
%%
%% Asks no node anything: all it knows is what fairnif_watch_cluster has been sent, so that nothing
%% that happens to a node can stop it.
-module(fairnif_watch_terminal).

-export([screen/2, lines/2, status_line/1, outside_lines/1, finding_line/1]).

-export_type([options/0]).

%% `seconds': how long; `style', `colour': of the screen; `note': for its last line.
-type options() :: #{tty => file:filename(), seconds => pos_integer() | infinity,
                     style => unicode | ascii, colour => boolean(), note => binary() | none}.

-define(TICK_MS, 1000).
%% From what happens to its drawing: findings may come fast.
-define(SOON_MS, 100).
-define(ANOTHER_US, 2000000).
-define(LONG_US, 1000000).

-record(screen, {cluster :: pid(),
                 keyboard :: fairnif_watch_keyboard:keyboard(),
                 view :: fairnif_watch_screen:options(),
                 colour :: boolean(),
                 %% Not drawn before the keyboard, which then says something, has the terminal.
                 taken = false :: boolean(),
                 input = <<>> :: binary(),
                 due = false :: boolean()}).

%% @doc Shows the screen until a key or the time ends it; the terminal is then as it was. Error
%% `no_terminal' where the path is none that can be controlled.
-spec screen(pid(), options()) -> ok | {error, no_terminal}.
screen(Cluster, #{tty := Tty} = Options) ->
    Keyboard = fairnif_watch_keyboard:open(Tty),
    {ok, Ref} = fairnif_watch_cluster:subscribe(Cluster, self()),
    _ = ending(Options),
    self() ! {?MODULE, tick},
    View = #{rows => 24, columns => 80, style => maps:get(style, Options, ascii), now => 0,
             keys => true, chosen => newest, detail => none, note => maps:get(note, Options, none)},
    Result = screen(#screen{cluster = Cluster, keyboard = Keyboard, view = View,
                            colour = maps:get(colour, Options, false)}),
    ok = fairnif_watch_cluster:unsubscribe(Cluster, Ref),
    _ = Result =:= ok andalso fairnif_watch_keyboard:close(Keyboard),
    Result.

ending(#{seconds := Seconds}) when is_integer(Seconds) ->
    erlang:send_after(Seconds * 1000, self(), {?MODULE, done});
ending(_) ->
    make_ref().

screen(#screen{keyboard = Keyboard, due = Due} = S) ->
    receive
        {Keyboard, {data, Bytes}} ->
            {Input, Rest} = fairnif_watch_keyboard:parse(<<(S#screen.input)/binary, Bytes/binary>>),
            case lists:member(quit, Input) of
                true -> ok;
                false -> screen(draw(typed(Input, S#screen{taken = true, input = Rest})))
            end;
        {Keyboard, {exit_status, _}} ->
            {error, no_terminal};
        {?MODULE, tick} ->
            _ = erlang:send_after(?TICK_MS, self(), {?MODULE, tick}),
            ok = fairnif_watch_keyboard:look(Keyboard),
            screen(draw(S));
        {?MODULE, draw} ->
            screen(draw(S#screen{due = false}));
        {?MODULE, done} ->
            ok;
        {fairnif_watch, _, {What, _}} when What =/= view, not Due ->
            _ = erlang:send_after(?SOON_MS, self(), {?MODULE, draw}),
            screen(S#screen{due = true});
        _ ->
            screen(S)
    end.

typed(Input, #screen{cluster = Cluster, view = View} = S) ->
    Findings = fairnif_watch_screen:findings(fairnif_watch_cluster:views(Cluster)),
    S#screen{view = lists:foldl(fun(Key, V) -> key(Key, V, Findings) end, View, Input)}.

key({size, Rows, Columns}, View, _) ->
    View#{rows := Rows, columns := Columns};
%% It stays on the one that is being read.
key(enter, #{detail := none, chosen := Chosen} = View, [#{node := Node, id := Id} | _]) ->
    View#{detail := 0, chosen := case Chosen of newest -> {Node, Id}; _ -> Chosen end};
key(Key, View, _) when Key =:= enter; Key =:= back ->
    View#{detail := none};
key(Key, #{detail := none, chosen := Chosen} = View, Findings) ->
    View#{chosen := fairnif_watch_screen:choose(step(Key), Chosen, Findings)};
key(Key, #{detail := From} = View, _) ->
    View#{detail := max(0, From + step(Key))}.

step(up) -> -1;
step(down) -> 1.

draw(#screen{taken = false} = S) ->
    S;
draw(#screen{cluster = Cluster, view = View, colour = Colour} = S) ->
    Now = View#{now := erlang:system_time(microsecond)},
    Text = case Colour of
               true -> fun fairnif_watch_screen:ansi/2;
               false -> fun fairnif_watch_screen:plain/2
           end,
    Lines = fairnif_watch_screen:lines(fairnif_watch_cluster:views(Cluster), Now),
    say(["\e[H", lists:join("\e[K\r\n", [Text(Line, Now) || Line <- Lines]), "\e[K\e[J"]),
    S.

%% When no process reads any more (a pipe's other end) it is over.
say(Text) ->
    try io:put_chars(Text)
    catch error:_ -> self() ! {?MODULE, done}, ok
    end.

%% @doc Writes lines to standard output until the time ends it, or no process reads them; answers of
%% what severities the findings written were. What was over before the watch began is left out.
-spec lines(pid(), options()) -> [#{severity := atom()}].
lines(Cluster, Options) ->
    {ok, Ref} = fairnif_watch_cluster:subscribe(Cluster, self()),
    Timer = ending(Options),
    Known = follow(#{}),
    _ = erlang:cancel_timer(Timer),
    ok = fairnif_watch_cluster:unsubscribe(Cluster, Ref),
    lists:append([Written || #{written := Written} <- maps:values(Known)]).

%% What was written of each node: its status, and those of its findings that it has still.
follow(Known) ->
    receive
        {?MODULE, done} -> Known;
        {fairnif_watch_cluster, #{nodes := All}} -> follow(lists:foldl(fun entry/2, Known, All));
        {fairnif_watch, Node, {node, Entry}} -> follow(entry(Entry#{node => Node}, Known));
        {fairnif_watch, Node, {view, View}} -> follow(view(Node, View, Known));
        {fairnif_watch, Node, {finding, Finding}} ->
            follow(Known#{Node => finding(Finding, of_node(Node, Known))});
        _ -> follow(Known)
    end.

of_node(Node, Known) ->
    maps:get(Node, Known, #{status => none, from => 0, shown => #{}, written => [],
                            outside => []}).

entry(#{node := Node, status := Status} = Entry, Known) ->
    #{status := Before, outside := Said} = Of = begun(Entry, of_node(Node, Known)),
    Next = Known#{Node => Of#{status := Status, outside := maps:get(outside, Entry, [])}},
    Shown = case Entry of
                #{view := #{} = View} -> view(Node, View, Next);
                #{} -> Next
            end,
    _ = Status =/= Before andalso say([status_line(Entry), $\n]),
    %% Once while it hangs: each look has another time in it.
    _ = [say([Line, $\n]) || Said =:= [], Line <- outside_lines(Entry)],
    Shown.

%% The first time counts.
begun(Entry, #{from := 0} = Of) -> Of#{from := fairnif_watch_once:from(Entry)};
begun(_, Of) -> Of.

view(Node, View, Known) ->
    #{shown := Shown} = Of = begun(#{view => View}, of_node(Node, Known)),
    Findings = maps:get(findings, View, []),
    Still = maps:with([Id || #{id := Id} <- Findings], Shown),
    Known#{Node => lists:foldr(fun finding/2, Of#{shown := Still}, Findings)}.

finding(#{id := Id, at := At, ongoing := Ongoing} = Finding,
        #{from := From, shown := Shown} = Of) ->
    case (Ongoing orelse At >= From) andalso is_news(Finding, maps:get(Id, Shown, none)) of
        true ->
            say([finding_line(Finding), $\n]),
            Of#{shown := Shown#{Id => maps:with([ongoing, since], Finding)},
                written := lists:usort([maps:with([severity], Finding) | maps:get(written, Of)])};
        false ->
            Of
    end.

%% One that is soon over is reported when it is, and any other at once. Ids begin again with each
%% watch, and when a finding began is known better with time.
is_news(#{since := Since} = Finding, #{since := Before}) when abs(Since - Before) > ?ANOTHER_US ->
    is_news(Finding, none);
is_news(#{ongoing := true, at := At, since := Since}, none) -> At - Since >= ?LONG_US;
is_news(_, none) -> true;
is_news(#{ongoing := Ongoing}, #{ongoing := Before}) -> Before > Ongoing.

%% @doc What became of a node, in one line without its end.
-spec status_line(map()) -> unicode:chardata().
status_line(#{node := Node, status := Status, since := Since} = Entry) ->
    [time(Since), " ", fairnif_watch_screen:text(Node), " ", atom_to_list(Status),
     [[": ", fairnif_watch_screen:text(Why)] || #{reason := Why} <- [Entry], Why =/= none]].

%% @doc What is seen of it from outside, as such lines.
-spec outside_lines(map()) -> [unicode:chardata()].
outside_lines(Entry) ->
    [["  ", fairnif_watch_screen:text(Seen)] || Seen <- maps:get(outside, Entry, [])].

%% @doc A finding in one line without its end. It begins with when that was so, not with when it
%% began to be: so lines come in the order of their times.
-spec finding_line(map()) -> unicode:chardata().
finding_line(#{node := Node, at := At, severity := Severity, detector := Detector,
               sentence := Sentence, ongoing := Ongoing}) ->
    Text = fun fairnif_watch_screen:text/1,
    [time(At), " ", Text(Node), " ", Text(Severity), " ", Text(Detector), ": ", Text(Sentence),
     [" (goes on)" || Ongoing]].

time(Us) ->
    calendar:system_time_to_rfc3339(Us div 1000, [{unit, millisecond}]).
