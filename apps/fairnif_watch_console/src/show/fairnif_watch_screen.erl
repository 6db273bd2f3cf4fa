%% What the terminal shows, as lines: of one node its schedulers, queues, pools and findings; of
%% several a line for each, and all their findings; of a chosen finding everything.
%%
%% Pure, and total: it never fails on a view that lacks something, and a text from a node can not
%% reach the terminal as a command of it.
-module(fairnif_watch_screen).

-export([lines/2, report/1, ansi/2, plain/2, findings/1, choose/3, clock/1, text/1]).

-export_type([options/0, line/0, chosen/0]).

%% `chosen': the finding that the cursor is on; `newest' whichever is the first. `detail': show all
%% of it, from this line on. `now': us of the system's time. `keys': are there any? `note': of the
%% last line.
-type chosen() :: newest | {node(), Id :: pos_integer()}.
-type options() :: #{rows := pos_integer(), columns := pos_integer(), style := unicode | ascii,
                     now := integer(), chosen => chosen(), keys => boolean(),
                     detail => none | non_neg_integer(), note => binary() | none}.
-type mark() :: title | bold | dim | good | warn | bad | chosen | none.
-type line() :: [{mark(), unicode:chardata()}].

-define(COLOURS, #{title => "1;36", bold => "1", dim => "2", good => "32", warn => "33",
                   bad => "1;31", chosen => "7"}).
-define(SHADES, #{unicode => " ▁▂▃▄▅▆▇█", ascii => " .:-=+*%#"}).
-define(KINDS, #{scheduler => "scheduler", dirty_cpu => "dirty CPU", dirty_io => "dirty I/O"}).
%% How wide a full scheduler is, and how many are shown of what has no end, where there is room.
-define(BAR, 28).
-define(CELLS, 16).
-define(FEW, 3).
-define(ROOMY, 15).
%% Lines and columns of a report.
-define(REPORTED, 200).

%% @doc The lines, at most `rows', of text of any width: see `ansi/2' and `plain/2'.
-spec lines(fairnif_watch_cluster:views(), options()) -> [line()].
lines(#{nodes := Nodes} = Views, #{rows := Rows} = Options) ->
    Room = max(1, Rows - 2),
    Body = lists:sublist(body(Nodes, findings(Views), Room, Options), Room),
    lists:sublist([header(Nodes, Options) | Body] ++ lists:duplicate(Room - length(Body), [])
                  ++ [footer(Options)], Rows).

%% @doc One node's view as a text of lines: all of the screen but what only keys are for, and of the
%% newest findings what helps.
-spec report(map()) -> unicode:chardata().
report(#{node := Node, at := At} = View) ->
    Options = #{rows => ?REPORTED, columns => ?REPORTED, style => ascii, now => At, keys => false},
    Entry = #{node => Node, status => up, since => At, reason => none, view => View,
              from => none, outside => []},
    Shown = lists:droplast(lines(#{nodes => [Entry]}, Options)),
    Newest = lists:sublist(findings(#{nodes => [Entry]}), ?FEW),
    [[plain(Line, Options), $\n] || [_ | _] = Line <- Shown]
        ++ [[clock(Since), " ", text(fairnif_watch_finding:line(F)), $\n]
            || #{since := Since} = F <- Newest].

%% @doc The findings of all nodes, newest first.
-spec findings(fairnif_watch_cluster:views()) -> [map()].
findings(#{nodes := Nodes}) ->
    All = lists:append([maps:get(findings, View, []) || #{view := #{} = View} <- Nodes]),
    Newness = fun(F) -> [maps:get(Key, F, 0) || Key <- [ongoing, since, id]] end,
    lists:sort(fun(A, B) -> Newness(A) >= Newness(B) end, All).

%% @doc The choice that many findings further on. Before the first one it is `newest', which stays
%% with whatever comes.
-spec choose(integer(), chosen(), [map()]) -> chosen().
choose(_, _, []) ->
    newest;
choose(Steps, Chosen, Findings) ->
    case place(Chosen, Findings) + Steps of
        Place when Place =< 0 -> newest;
        Place -> key(lists:nth(min(Place + 1, length(Findings)), Findings))
    end.

key(Finding) ->
    {maps:get(node, Finding, none), maps:get(id, Finding, 0)}.

%% A finding that is kept no more was among the oldest.
place(newest, _) -> 0;
place(_, []) -> 0;
place(Chosen, Findings) ->
    length(lists:takewhile(fun(F) -> key(F) =/= Chosen end, lists:droplast(Findings))).

%% ---- first and last line ----

header([#{node := Node, since := Since} = Entry], #{now := Now}) ->
    About = case Entry of
                #{status := up, view := #{otp := Otp}} -> ["Erlang/OTP ", text(Otp)];
                _ -> ["since ", clock(Since)]
            end,
    [{title, ["fairnif watch  ", text(Node)]}, {none, "  "}, status(Entry),
     {none, ["  ", About, "  ", clock(Now)]}];
header(Nodes, #{now := Now}) ->
    Up = length([up || #{status := up} <- Nodes]),
    [{title, "fairnif watch"}, {none, "  "},
     {case length(Nodes) of Up -> good; _ -> bad end,
      [integer(Up), " of ", integer(length(Nodes)), " nodes up"]}, {none, ["  ", clock(Now)]}].

status(#{status := Status}) ->
    {maps:get(Status, #{up => good, replaced => warn}, bad), word(Status)}.

word(hanging) -> "hanging, trying again";
word(Status) -> atom_to_list(Status).

footer(#{note := Note}) when Note =/= none -> [{warn, text(Note)}];
footer(#{keys := true, detail := From}) when is_integer(From) ->
    [{dim, "enter: back   up, down: scroll   q: quit"}];
footer(#{keys := true}) -> [{dim, "up, down: choose a finding   enter: its stack   q: quit"}];
footer(_) -> [{dim, "Ctrl-C: quit"}].

%% ---- the body: findings have what the rest leaves ----

body(_, [_ | _] = Findings, Room, #{detail := From} = Options) when is_integer(From) ->
    Lines = detail(lists:nth(1 + place(maps:get(chosen, Options, newest), Findings), Findings),
                   Options),
    lists:nthtail(min(From, max(0, length(Lines) - Room)), Lines);
body([#{status := Status, view := none, reason := Why} = Entry], _, _, Options) ->
    [[], [{bad, word(Status)}, {none, [": ", text(Why)]}] | outside(Entry, Options)];
body([#{view := View} = Entry], Findings, Room, Options) ->
    Above = trouble(Entry) ++ outside(Entry, Options) ++ crowded([Entry], false)
        ++ schedulers(View, max(4, Room div 2), Options) ++ pools(View) ++ jobs(View)
        ++ detectors(View),
    body(Above, Findings, top([Entry], Room) ++ blind(View), Room, false, Options);
body(Nodes, Findings, Room, Options) ->
    Above = crowded(Nodes, true) ++ nodes(Nodes, max(3, Room div 2), Options),
    body(Above, Findings, top(Nodes, Room), Room, true, Options).

body(Above, Findings, Below, Room, Several, Options) ->
    Left = Room - length(Above) - length(Below) - 2,
    Above ++ [[] | findings(Findings, Left, Several, Options)] ++ Below.

trouble(#{reason := none}) -> [];
trouble(#{status := up, reason := Why}) -> [[{warn, text(Why)}]];
trouble(#{since := Since, reason := Why}) ->
    [[{bad, [text(Why), "; what follows is as of ", clock(Since)]}]].

outside(Entry, #{columns := Columns}) ->
    lists:append([wrapped(warn, Seen, Columns) || Seen <- maps:get(outside, Entry, [])]).

%% Whose processors others take.
crowded(Nodes, Several) ->
    Lines = [[{warn, [[[text(Node), ": "] || Several], text(Why)]}]
             || #{node := Node, status := up, view := #{crowded := Why}} <- Nodes, Why =/= none],
    lists:sublist(Lines, ?FEW).

%% A line each, or where there is no room for that a character each, `!' for one that is blocked.
schedulers(View, Room, #{columns := Columns} = Options) ->
    Normal = [S || #{kind := normal} = S <- maps:get(schedulers, View, [])],
    case length(Normal) =< Room of
        true -> [bar(S, Options) || S <- Normal];
        false -> strip(Normal, max(10, Columns - 12), Options)
    end.

bar(Scheduler, #{style := Style}) ->
    {Full, Percent} = case Scheduler of
                          #{busy := Busy} when is_number(Busy) ->
                              {max(0, min(?BAR, round(Busy * ?BAR))), integer(round(Busy * 100))};
                          _ -> {0, "?"}
                      end,
    Queue = [["queue ", integer(N)] || #{run_queue := N} <- [Scheduler], is_integer(N), N > 0],
    [{none, io_lib:format("~3b [", [maps:get(number, Scheduler, 0)])},
     {load(Scheduler), lists:duplicate(Full, lists:last(maps:get(Style, ?SHADES)))},
     {none, [lists:duplicate(?BAR - Full, $\s), io_lib:format("]~4s % ", [Percent]),
             string:pad(Queue, 10)]} | running(Scheduler)].

load(#{blocked_ms := Blocked}) when is_number(Blocked), Blocked > 0 -> bad;
load(#{busy := Busy}) when is_number(Busy), Busy > 0.9 -> warn;
load(_) -> good.

running(Scheduler) ->
    [{bad, ["blocked ", ms(Ms)]} || #{blocked_ms := Ms} <- [Scheduler], is_number(Ms), Ms > 0]
        ++ [{dim, "offline"} || #{state := offline} <- [Scheduler]]
        ++ [{warn, ["waits ", integer(round(100 * Part)), " % for a processor"]}
            || #{waiting := Part} <- [Scheduler], is_number(Part), Part >= 0.1]
        ++ [{none, ["  ", text(What)]} || #{running := What} <- [Scheduler], is_binary(What)].

strip([], _, _) ->
    [];
strip([#{number := First} | _] = Normal, Width, Options) ->
    {Part, Rest} = lists:split(min(Width, length(Normal)), Normal),
    [[{none, io_lib:format("~3b.. ", [First])} | cells(Part, Options)]
     | strip(Rest, Width, Options)].

cells(Schedulers, #{style := Style}) ->
    [{load(S), [case S of
                    #{blocked_ms := Blocked} when is_number(Blocked), Blocked > 0 -> $!;
                    #{busy := Busy} when is_number(Busy) ->
                        lists:nth(1 + max(0, min(8, round(Busy * 8))), maps:get(Style, ?SHADES));
                    _ -> $?
                end]} || S <- Schedulers].

pools(#{pools := Pools, queues := Queues}) ->
    [[{none, ["run queues ", integer(maps:get(normal, Queues, none))]}
      | lists:append([[{none, "  "}, pool(kind(Kind), Pool)]
                      || Kind <- [dirty_cpu, dirty_io],
                         #{Kind := #{size := _, busy := _} = Pool} <- [Pools]])]];
pools(_) ->
    [].

pool(Name, #{size := Size, busy := Busy} = Pool) ->
    {if Busy >= Size -> bad; true -> none end,
     [io_lib:format("~s ~b/~b busy", [Name, Busy, Size]),
      [[", ", integer(N), " waiting"] || #{queue := N} <- [Pool], N > 0],
      [[" ", ms(Ms)] || #{wait_ms := Ms} <- [Pool], is_number(Ms)]]}.

%% What is known of dirty jobs.
jobs(View) ->
    Jobs = [[{none, [kind(Kind), " ", integer(N), ": ", text(What)]}]
            || #{kind := Kind, number := N, running := What} <- maps:get(schedulers, View, []),
               Kind =/= normal, is_binary(What)],
    lists:sublist(Jobs, ?FEW).

%% Those that are content need no line.
detectors(View) ->
    [[{case Verdict of unconfirmed -> warn; _ -> bad end, [text(Name), ": "]}, {none,
                                                                                text(Sentence)}]
     || #{name := Name, verdict := Verdict, sentence := Sentence} <- maps:get(detectors, View, []),
        Verdict =/= ok].

blind(View) ->
    [[{dim, ["not seen: ", text(Sentence)]}]
     || Sentence <- lists:sublist(maps:get(blind, View, []), ?FEW)].

%% Those that do not answer first, then those with something that lasts.
nodes(Nodes, Room, Options) ->
    Width = lists:max([0 | [string:length(text(Node)) || #{node := Node} <- Nodes]]),
    Sorted = lists:keysort(1, [{rank(Entry), Entry} || Entry <- Nodes]),
    Whole = [[[{bold, string:pad(text(Node), Width)}, {none, " "} | node(Entry, Options)]
              | [[{warn, ["  ", text(Seen)]}] || Seen <- maps:get(outside, Entry, [])]]
             || {_, #{node := Node} = Entry} <- Sorted],
    Lines = [Line || [Line | _] <- Whole],
    case length(Lines) - Room of
        More when More > 0 ->
            lists:sublist(Lines, Room - 1) ++ [[{dim, ["and ", integer(More + 1), " more"]}]];
        _ ->
            hd([All || All <- [lists:append(Whole)], length(All) =< Room] ++ [Lines])
    end.

rank(#{status := Status}) when Status =/= up -> 0;
rank(#{view := View}) -> case ongoing(View) of 0 -> 2; _ -> 1 end.

node(#{status := up, view := #{} = View, reason := Why}, Options) ->
    Normal = [S || #{kind := normal} = S <- maps:get(schedulers, View, [])],
    [{good, "up       "}, {none, "["}] ++ cells(lists:sublist(Normal, ?CELLS), Options)
        ++ [{none, ["] queue ", [integer(N) || #{queues := #{normal := N}} <- [View]], "  "]},
            counted(length(maps:get(findings, View, [])), ongoing(View)),
            {dim, [["  ", text(Why)] || Why =/= none]}];
node(#{since := Since, reason := Why} = Entry, _) ->
    {Mark, Status} = status(Entry),
    [{Mark, string:pad(Status, 8)}, {none, [" since ", clock(Since), "  ", text(Why)]}].

counted(0, _) -> {dim, "no findings"};
counted(N, 0) -> {none, ["findings: ", integer(N)]};
counted(N, On) -> {bad, ["findings: ", integer(N), ", going on: ", integer(On)]}.

ongoing(View) -> length([on || #{findings := Findings} <- [View], #{ongoing := true} <- Findings]).

%% ---- findings and functions ----

findings(_, Room, _, _) when Room =< 0 ->
    [];
findings([], _, _, _) ->
    [[{good, "no findings"}]];
findings(Findings, Room, Several, Options) ->
    Chosen = place(maps:get(chosen, Options, newest), Findings),
    %% The cursor stays in view.
    From = max(0, Chosen - max(0, Room - 2)),
    Shown = lists:enumerate(From, lists:sublist(lists:nthtail(From, Findings), Room - 1)),
    Keys = maps:get(keys, Options, false),
    [[{bold, ["findings: ", integer(length(Findings))]}]
     | [finding(F, Keys andalso I =:= Chosen, Several) || {I, F} <- Shown]].

finding(#{since := Since, severity := Severity, detector := Detector} = Finding, Chosen, Several) ->
    {Mark, Cursor} = case Chosen of true -> {chosen, "> "}; false -> {none, "  "} end,
    %% The subject says whose.
    Name = case text(Detector) of "scheduler_" ++ Short -> Short; Long -> Long end,
    What = case Finding of
               #{culprit := #{kind := Kind, name := Culprit}} when Kind =/= none -> Culprit;
               #{detector := scheduler_blocked} -> "unknown";
               #{} -> maps:get(sentence, Finding, "")
           end,
    [{Mark, Cursor}, {none, [clock(Since), " "]},
     {case Severity of error -> bad; _ -> warn end, string:pad(text(Severity), 8)},
     {none, [[[text(maps:get(node, Finding, '')), " "] || Several], Name, " ",
             subject(maps:get(subject, Finding, node)), " "]},
     {bold, lasted(Finding)}, {none, " "}, {Mark, text(What)}].

lasted(Finding) ->
    [[ms(Ms) || #{duration_ms := Ms} <- [Finding], is_number(Ms)],
     [" going on" || #{ongoing := true} <- [Finding]]].

subject({Kind, N}) when is_integer(N) -> [kind(Kind), " ", integer(N)];
subject({Kind, Whose}) -> [kind(Kind), " ", text(Whose)];
subject(Other) -> text(Other).

kind(Kind) -> maps:get(Kind, ?KINDS, text(Kind)).

top(Nodes, Room) ->
    All = [{-maps:get(ns_per_s, Top, 0), Node, Top} || #{node := Node, view := #{} = View} <- Nodes,
                                                       Top <- maps:get(top, View, [])],
    Lines = [[{none, [io_lib:format("~5.1f %  ", [100.0 * maps:get(share, Top, 0.0)]),
                      [[text(Node), " "] || length(Nodes) > 1], text(maps:get(label, Top, "?"))]}]
             || {_, Node, Top} <- lists:keysort(1, All)],
    [[{bold, "native functions, share of the samples"}] || Lines =/= [], Room >= ?ROOMY]
        ++ [L || L <- lists:sublist(Lines, ?FEW), Room >= ?ROOMY].

%% ---- one finding, all of it ----

detail(Finding, #{columns := Columns}) ->
    #{detector := Detector, severity := Severity, since := Since, sentence := Sentence} = Finding,
    Names = lists:join(", ", [text(T) || T <- [Detector, Severity, maps:get(node, Finding, '')]]),
    [[{bold, Names}, {none, ["  since ", clock(Since), "  ", lasted(Finding)]}], []]
        ++ wrapped(none, Sentence, Columns)
        ++ [Line || #{remedy := Remedy} <- [Finding], Remedy =/= none,
                    Line <- wrapped(good, ["remedy: ", text(Remedy)], Columns)]
        ++ [[] | table(maps:get(culprit, Finding, #{}))]
        ++ [Line || #{stack := [_ | _] = Frames} <- [Finding],
                    Line <- [[], [{bold, "native stack, innermost first"}]
                             | [[{none, ["  ", frame(F)]}] || F <- Frames]]]
        ++ [[] | table(maps:get(evidence, Finding, #{}))].

table(Map) ->
    [[{dim, string:pad([Name, ":"], 18)}, {none, Shown}]
     || {Key, Value} <- maps:to_list(Map), Value =/= none,
        {Name, Shown} <- [readable(text(Key), Value)]].

%% A time is shown as one.
readable(Key, Value) when is_number(Value) ->
    case string:split(Key, "_", trailing) of
        [Name, "ns"] -> {Name, fairnif_watch_finding:ms(round(Value))};
        [Name, "ms"] -> {Name, ms(Value)};
        _ -> {Key, text(Value)}
    end;
readable(Key, Value) ->
    {Key, text(Value)}.

frame(Frame) ->
    [[[text(Nif), "  "] || #{nif := {_, _, _} = Nif} <- [Frame]],
     text(fairnif_watch_culprit:label(Frame))].

wrapped(Mark, Text, Columns) ->
    Lines = lists:foldl(fun(Word, [Line | Done]) when length(Line) + length(Word) < Columns ->
                                [Line ++ " " ++ Word | Done];
                           (Word, Done) -> [Word | Done]
                        end, [], string:lexemes(text(Text), " ")),
    [[{Mark, Line}] || Line <- lists:reverse(Lines)].

%% ---- texts ----

%% @doc The time of day of a time in us since 1970, on this machine's clock.
-spec clock(integer()) -> string().
clock(Us) ->
    {_, {H, M, S}} = calendar:system_time_to_local_time(Us, microsecond),
    lists:flatten(io_lib:format("~2..0b:~2..0b:~2..0b", [H, M, S])).

ms(Ms) -> fairnif_watch_finding:ms(round(Ms * 1.0e6)).

integer(N) when is_integer(N) -> integer_to_list(N);
integer(_) -> "?".

%% @doc A term from a node, for the terminal: nothing of it is a command, since no control
%% character, of either set, is left.
-spec text(term()) -> string().
text(Atom) when is_atom(Atom) -> text(atom_to_binary(Atom));
text({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    text(fairnif_watch_culprit:mfa(M, F, A));
text(Term) ->
    Chars = try unicode:characters_to_list(Term) of
                Ok when is_list(Ok) -> Ok;
                {_, _, _} -> [$? || _ <- binary_to_list(iolist_to_binary(Term))]
            catch
                error:_ -> lists:flatten(io_lib:format("~0tP", [Term, 40]))
            end,
    [if C < 32; C >= 127, C < 160 -> $?; true -> C end || C <- Chars].

%% ---- to characters ----

%% @doc A line of up to that many columns, without marks; what is not ASCII is `?' in that style.
-spec plain(line(), options()) -> string().
plain(Line, Options) ->
    lists:flatten([Text || {_, Text} <- cut(Line, Options)]).

%% @doc The same, in colours.
-spec ansi(line(), options()) -> string().
ansi(Line, Options) ->
    lists:flatten([case ?COLOURS of
                       #{Mark := Colour} -> ["\e[", Colour, $m, Text, "\e[m"];
                       #{} -> Text
                   end || {Mark, Text} <- cut(Line, Options)]).

cut([{Mark, Data} | Rest], #{columns := Left, style := Style} = Options) when Left > 0 ->
    Text = [if C >= 128, Style =:= ascii -> $?; true -> C end
            || C <- unicode:characters_to_list(Data)],
    Kept = string:slice(Text, 0, Left),
    [{Mark, Kept} | cut(Rest, Options#{columns := Left - string:length(Kept)})];
cut(_, _) ->
    [].
