%% What the terminal shows, as lines: of one node its schedulers, queues, pools and findings; of
%% several a line for each, and all their findings; of a chosen finding everything.
%%
%% Pure, and total: it never fails on a view that lacks something, and a text from a node can not
%% reach the terminal as a command of it.
-module(fairnif_watch_screen).

-export([lines/2, ansi/2, plain/2, findings/1, choose/3, clock/1, text/1]).

-export_type([options/0, line/0, chosen/0]).

%% `chosen': the finding that the cursor is on; `newest' whichever is the first. `detail': show all
%% of it, from this line on. `now': us of the system's time. `keys': are there any? `note': of the
%% last line.
-type chosen() :: newest | {node(), Id :: pos_integer()}.
-type options() :: #{rows := pos_integer(), columns := pos_integer(), style := unicode | ascii,
                     now := integer(), chosen => chosen(),
                     detail => none | non_neg_integer(), keys => boolean(), note => binary()}.
-type mark() :: title | bold | dim | good | warn | bad | chosen | none.
-type line() :: [{mark(), unicode:chardata()}].

-define(TOP, 5).
-define(BLIND, 2).
-define(DIRTY, 3).

%% @doc The lines, at most `rows', of text of any width: see `ansi/2' and `plain/2'.
-spec lines(fairnif_watch_cluster:views(), options()) -> [line()].
lines(#{nodes := Nodes} = Views, #{rows := Rows} = Options) ->
    Room = max(1, Rows - 2),
    Body = case {Options, findings(Views)} of
               {#{detail := From}, [_ | _] = Findings} when is_integer(From) ->
                   detail(chosen(Findings, Options), From, Room, Options);
               {_, Findings} ->
                   body(Nodes, Findings, Room, Options)
           end,
    Shown = lists:sublist(Body, Room),
    lists:sublist([header(Nodes, Options)] ++ Shown ++ lists:duplicate(Room - length(Shown), [])
                  ++ [footer(Options)], Rows).

%% @doc The findings of all nodes, newest first.
-spec findings(fairnif_watch_cluster:views()) -> [map()].
findings(#{nodes := Nodes}) ->
    All = lists:append([maps:get(findings, View, []) || #{view := #{} = View} <- Nodes]),
    lists:sort(fun(A, B) -> newness(A) >= newness(B) end, All).

newness(Finding) ->
    {maps:get(ongoing, Finding, false), maps:get(since, Finding, 0), maps:get(id, Finding, 0)}.

%% @doc The choice so many findings further on. Before the first one it is `newest', which stays
%% with whatever comes.
-spec choose(integer(), chosen(), [map()]) -> chosen().
choose(_, _, []) ->
    newest;
choose(Steps, Chosen, Findings) ->
    case place(Chosen, Findings) + Steps of
        Place when Place =< 0 -> newest;
        Place -> key(lists:nth(1 + min(Place, length(Findings) - 1), Findings))
    end.

key(Finding) ->
    {maps:get(node, Finding, none), maps:get(id, Finding, 0)}.

%% A finding that is kept no more was among the oldest.
place(newest, _) -> 0;
place(_, []) -> 0;
place(Chosen, Findings) ->
    length(lists:takewhile(fun(F) -> key(F) =/= Chosen end, lists:droplast(Findings))).

chosen(Findings, Options) ->
    lists:nth(1 + place(maps:get(chosen, Options, newest), Findings), Findings).

%% ---- first and last line ----

header([#{node := Node} = Entry], #{now := Now}) ->
    [{title, ["fairnif watch  ", text(Node)]}, {none, "  "}, status(Entry),
     {none, [about(Entry), "  ", clock(Now)]}];
header(Nodes, #{now := Now}) ->
    Up = length([up || #{status := up} <- Nodes]),
    Mark = case length(Nodes) of Up -> good; _ -> bad end,
    [{title, "fairnif watch"}, {none, "  "},
     {Mark, io_lib:format("~b of ~b nodes up", [Up, length(Nodes)])},
     {none, ["  ", clock(Now)]}].

about(#{status := up, view := #{} = View}) ->
    io_lib:format("  Erlang/OTP ~ts~ts", [text(maps:get(otp, View, <<"?">>)),
                                          case View of
                                              #{native := true} -> "";
                                              _ -> ", Erlang only"
                                          end]);
about(#{since := Since}) ->
    ["  since ", clock(Since)].

status(#{status := Status}) ->
    {case Status of up -> good; replaced -> warn; _ -> bad end, atom_to_list(Status)}.

footer(#{note := Note}) ->
    [{warn, text(Note)}];
footer(#{keys := true, detail := From}) when is_integer(From) ->
    [{dim, "enter: back   up, down: scroll   q: quit"}];
footer(#{keys := true}) ->
    [{dim, "up, down: choose a finding   enter: its stack   q: quit"}];
footer(_) ->
    [{dim, "Ctrl-C: quit"}].

%% ---- the body: what has a fixed size, then findings and top share the rest ----

body([#{status := Status, view := none, reason := Why}], _, _, _) ->
    [[], [{bad, atom_to_list(Status)}, {none, [": ", text(Why)]}]];
body([#{view := View} = Entry], Findings, Room, Options) ->
    Fixed = trouble(Entry) ++ schedulers(View, Room div 3, Options) ++ pools(View) ++ dirty(View)
        ++ detectors(View),
    shared(Fixed, Findings, [Entry], blind(View) ++ cost(View), Room, Options);
body(Nodes, Findings, Room, Options) ->
    Lines = node_lines(Nodes, max(3, Room div 2), Options),
    shared(Lines, Findings, Nodes, [], Room, Options).

shared(Fixed, Findings, Nodes, Last, Room, Options) ->
    Left = Room - length(Fixed) - length(Last) - 2,
    Top = top(Nodes, min(?TOP, max(0, Left div 3))),
    Rest = max(0, Left - length(Top)),
    Fixed ++ [[] | finding_lines(Findings, Rest, length(Nodes) > 1, Options)] ++ Top ++ Last.

trouble(#{status := up, reason := none}) -> [];
trouble(#{status := up, reason := Why}) -> [[{warn, text(Why)}]];
trouble(#{since := Since, reason := Why}) ->
    [[{bad, [text(Why), "; what follows is as of ", clock(Since)]}]].

%% ---- schedulers ----

schedulers(View, Room, #{columns := Columns} = Options) ->
    Normal = [S || #{kind := normal} = S <- maps:get(schedulers, View, [])],
    Count = length(Normal),
    Most = max(4, Room),
    if
        Count =< Most -> [bar(S, 30, Options) || S <- Normal];
        Count =< 2 * Most, Columns >= 76 -> pairs(Normal, Options);
        true -> strip(Normal, Columns, Options)
    end.

bar(Scheduler, Width, Options) ->
    [{none, number(Scheduler)} | gauge(Scheduler, Width, Options)] ++ held(Scheduler).

pairs([A, B | Rest], Options) ->
    [short(A, Options) ++ [{none, "   "}] ++ short(B, Options) | pairs(Rest, Options)];
pairs([A], Options) -> [short(A, Options)];
pairs([], _) -> [].

short(#{} = Scheduler, Options) ->
    [{none, number(Scheduler)} | gauge(Scheduler, 12, Options)].

number(Scheduler) ->
    io_lib:format("~3b ", [maps:get(number, Scheduler, 0)]).

gauge(#{busy := Busy} = Scheduler, Width, Options) when is_number(Busy) ->
    Full = max(0, min(Width, round(Busy * Width))),
    [{none, "["}, {load(Scheduler), lists:duplicate(Full, full(Options))},
     {none, [lists:duplicate(Width - Full, $\s), "]",
             io_lib:format("~4b % ~ts", [round(Busy * 100), queue(Scheduler)])]}];
gauge(Scheduler, Width, _) ->
    [{dim, string:pad("[load not known]", Width + 8)}, {none, queue(Scheduler)}].

full(#{style := unicode}) -> 16#2588;
full(_) -> $#.

load(#{held_ms := Held}) when is_number(Held), Held > 0 -> bad;
load(#{busy := Busy}) when is_number(Busy), Busy > 0.9 -> warn;
load(_) -> good.

queue(#{run_queue := N}) when is_integer(N), N > 0 ->
    string:pad(["queue ", integer_to_list(N)], 10);
queue(_) -> string:pad("", 10).

held(#{held_ms := Held} = Scheduler) when is_number(Held), Held > 0 ->
    [{bad, ["held ", ms(Held)]}, {none, running(Scheduler)}];
held(#{state := offline}) -> [{dim, "offline"}];
held(Scheduler) -> [{none, running(Scheduler)}].

running(#{running := What}) when is_binary(What) -> ["  ", text(What)];
running(_) -> "".

%% One character each, `!' for one that is held.
strip(Normal, Columns, Options) ->
    Width = max(10, Columns - 12),
    [[{none, io_lib:format("~3b.. ", [maps:get(number, hd(Part), 0)])} | cells(Part, Options)]
     || Part <- parts(Normal, Width)].

parts([], _) -> [];
parts(List, Width) ->
    {Part, Rest} = lists:split(min(Width, length(List)), List),
    [Part | parts(Rest, Width)].

cells(Schedulers, Options) ->
    [{load(S), [cell(S, Options)]} || S <- Schedulers].

cell(#{held_ms := Held}, _) when is_number(Held), Held > 0 -> $!;
cell(#{busy := Busy}, #{style := Style}) when is_number(Busy) ->
    Shades = case Style of
                 unicode -> [$\s, 16#2581, 16#2582, 16#2583, 16#2584, 16#2585, 16#2586, 16#2587,
                             16#2588];
                 ascii -> " .:-=+*%#"
             end,
    lists:nth(1 + max(0, min(8, round(Busy * 8))), Shades);
cell(_, _) -> $?.

pools(#{pools := Pools, queues := Queues}) ->
    [[{none, ["run queues ", integer(maps:get(normal, Queues, none))]}
      | pool("dirty CPU", maps:get(dirty_cpu, Pools, #{}))
      ++ pool("dirty I/O", maps:get(dirty_io, Pools, #{}))]];
pools(_) ->
    [].

pool(Name, #{size := Size, busy := Busy} = Pool) ->
    Mark = if Busy >= Size -> bad; true -> none end,
    [{none, "  "}, {Mark, io_lib:format("~s ~b/~b busy", [Name, Busy, Size])},
     {none, [[", ", integer(N), " waiting"] || #{queue := N} <- [Pool], N > 0]},
     {none, [[" ", ms(Ms)] || #{wait_ms := Ms} <- [Pool], is_number(Ms)]}];
pool(_, _) ->
    [].

%% What is known of dirty jobs.
dirty(View) ->
    Jobs = [[{none, [kind(Kind), io_lib:format(" ~b: ", [N]), text(What)]}]
            || #{kind := Kind, number := N, running := What} <- maps:get(schedulers, View, []),
               Kind =/= normal, is_binary(What)],
    lists:sublist(Jobs, ?DIRTY).

%% Those that are content need no line.
detectors(View) ->
    [[{case Verdict of warn -> bad; _ -> warn end, io_lib:format("~ts: ", [text(Name)])},
      {none, text(Sentence)}]
     || #{name := Name, verdict := Verdict, sentence := Sentence} <- maps:get(detectors, View, []),
        Verdict =/= ok].

blind(View) ->
    [[{dim, ["not seen: ", text(Sentence)]}]
     || Sentence <- lists:sublist(maps:get(blind, View, []), ?BLIND)].

cost(#{counters := Counters} = View) ->
    Names = [{pokes, "pokes"}, {samples, "samples"}, {suppressed, "held back"}, {late, "late"}],
    Known = [[" ", integer(N), " ", Name] || {Key, Name} <- Names, #{Key := N} <- [Counters]],
    case {Counters, View} of
        {#{watch_cpu_ns := Ns}, #{at := At, started := Started}} when At > Started ->
            Percent = io_lib:format("~.2f", [Ns / 10 / (At - Started)]),
            [[{dim, ["the watch's thread: ", Percent, " % of a core", [[",", K] || K <- Known]]}]];
        _ ->
            []
    end;
cost(_) ->
    [].

%% ---- several nodes ----

%% Those that do not answer first, then those with something that goes on.
node_lines(Nodes, Room, Options) ->
    Sorted = [N || {_, _, N} <- lists:sort([{rank(N), I, N}
                                            || {I, N} <- lists:zip(lists:seq(1, length(Nodes)),
                                                                   Nodes)])],
    Width = lists:max([0 | [string:length(text(Node)) || #{node := Node} <- Nodes]]),
    case length(Sorted) > Room of
        true ->
            [node_line(N, Width, Options) || N <- lists:sublist(Sorted, Room - 1)]
                ++ [[{dim, io_lib:format("and ~b more", [length(Sorted) - Room + 1])}]];
        false ->
            [node_line(N, Width, Options) || N <- Sorted]
    end.

rank(#{status := Status}) when Status =/= up -> 0;
rank(#{view := View}) -> case ongoing(View) of 0 -> 2; _ -> 1 end.

node_line(#{node := Node, status := up, view := #{} = View} = Entry, Width, Options) ->
    Normal = [S || #{kind := normal} = S <- maps:get(schedulers, View, [])],
    #{normal := Queue} = maps:merge(#{normal => none}, maps:get(queues, View, #{})),
    [{bold, string:pad(text(Node), Width)}, {none, " "}, {good, "up       "}, {none, "["}]
        ++ cells(lists:sublist(Normal, 16), Options)
        ++ [{none, ["] queue ", integer(Queue)]}, {none, "  "}, counted(View),
            {dim, [["  ", text(Why)] || #{reason := Why} <- [Entry], Why =/= none]}];
node_line(#{node := Node, since := Since, reason := Why} = Entry, Width, _) ->
    {Mark, Status} = status(Entry),
    [{bold, string:pad(text(Node), Width)}, {none, " "}, {Mark, string:pad(Status, 9)},
     {none, ["since ", clock(Since), "  ", text(Why)]}].

counted(#{findings := Findings} = View) ->
    case {ongoing(View), length(Findings)} of
        {0, 0} -> {dim, "no findings"};
        {0, N} -> {none, io_lib:format("findings: ~b", [N])};
        {Now, N} -> {bad, io_lib:format("findings: ~b, going on: ~b", [N, Now])}
    end;
counted(_) ->
    {dim, ""}.

ongoing(#{findings := Findings}) -> length([on || #{ongoing := true} <- Findings]);
ongoing(_) -> 0.

%% ---- findings and functions ----

finding_lines([], Room, _, _) when Room > 0 ->
    [[{good, "no findings"}]];
finding_lines(_, Room, _, _) when Room =< 0 ->
    [];
finding_lines(Findings, Room, Several, Options) ->
    Chosen = place(maps:get(chosen, Options, newest), Findings),
    %% The cursor stays in view.
    From = max(0, Chosen - max(0, Room - 2)),
    Title = io_lib:format("findings: ~b", [length(Findings)]),
    Shown = lists:sublist(lists:nthtail(From, Findings), max(0, Room - 1)),
    Keys = maps:get(keys, Options, false),
    [[{bold, Title}]
     | [finding_line(F, Keys andalso From + I =:= Chosen, Several)
        || {I, F} <- lists:zip(lists:seq(0, length(Shown) - 1), Shown)]].

finding_line(Finding, Chosen, Several) ->
    #{since := Since, severity := Severity, detector := Detector} = Finding,
    Mark = case Severity of error -> bad; _ -> warn end,
    [{chosen_mark(Chosen), case Chosen of true -> "> "; false -> "  " end},
     {none, [clock(Since), " "]}, {Mark, string:pad(text(Severity), 8)},
     {none, [[text(maps:get(node, Finding, '')), " "] || Several]},
     {none, [short_name(Detector), " ", subject(maps:get(subject, Finding, node)), " "]},
     {bold, lasted(Finding)}, {none, " "}, {chosen_mark(Chosen), culprit(Finding)}].

chosen_mark(true) -> chosen;
chosen_mark(false) -> none.

lasted(#{duration_ms := Ms} = Finding) when is_number(Ms) -> [ms(Ms), goes_on(Finding)];
lasted(Finding) -> goes_on(Finding).

goes_on(#{ongoing := true}) -> " going on";
goes_on(_) -> "".

%% The subject says whose.
short_name(Detector) ->
    Name = text(Detector),
    case string:prefix(Name, "scheduler_") of
        nomatch -> Name;
        Short -> Short
    end.

culprit(#{culprit := #{kind := Kind, name := Name}}) when Kind =/= none -> text(Name);
culprit(#{detector := scheduler_blocked}) -> "unknown";
culprit(#{sentence := Sentence}) -> text(Sentence);
culprit(_) -> "".

subject({Kind, N}) when is_integer(N) -> io_lib:format("~ts ~b", [kind(Kind), N]);
subject(#{kind := Kind, pid := Pid}) -> [text(Kind), " ", text(Pid)];
subject(Other) -> text(Other).

kind(scheduler) -> "scheduler";
kind(dirty_cpu) -> "dirty CPU";
kind(dirty_io) -> "dirty I/O";
kind(Other) -> text(Other).

top(_, 0) ->
    [];
top(Nodes, Room) ->
    All = [{Node, Top} || #{node := Node, view := #{} = View} <- Nodes,
                          Top <- maps:get(top, View, [])],
    Time = fun({_, Top}) -> maps:get(ns_per_s, Top, 0) end,
    Sorted = lists:sort(fun(A, B) -> Time(A) >= Time(B) end, All),
    case lists:sublist(Sorted, max(0, Room - 1)) of
        [] -> [];
        Shown -> [[{bold, "native functions, share of the samples"}]
                  | [top_line(Node, Top, length(Nodes) > 1) || {Node, Top} <- Shown]]
    end.

top_line(Node, Top, Several) ->
    [{none, io_lib:format("~5.1f %  ", [100.0 * maps:get(share, Top, 0.0)])},
     {none, [[text(Node), " "] || Several]}, {none, text(maps:get(label, Top, <<"?">>))}].

%% ---- one finding, all of it ----

detail(Finding, From, Room, #{columns := Columns}) ->
    #{detector := Detector, severity := Severity, since := Since, sentence := Sentence} = Finding,
    Culprit = maps:get(culprit, Finding, #{}),
    Lines =
        [[{bold, io_lib:format("~ts, ~ts, ~ts", [text(Detector), text(Severity),
                                                 text(maps:get(node, Finding, ''))])},
          {none, ["  since ", clock(Since), "  ", lasted(Finding)]}],
         []]
        ++ wrapped(none, text(Sentence), Columns)
        ++ [Line || #{remedy := Remedy} <- [Finding], Remedy =/= none,
                    Line <- wrapped(good, ["remedy: ", text(Remedy)], Columns)]
        ++ [[]]
        ++ [[{dim, string:pad(io_lib:format("~ts:", [text(K)]), 18)}, {none, term(V)}]
            || {K, V} <- maps:to_list(Culprit), V =/= none]
        ++ stack(maps:get(stack, Finding, []))
        ++ [[] || maps:get(evidence, Finding, #{}) =/= #{}]
        ++ [[{dim, string:pad(io_lib:format("~ts:", [text(K)]), 18)}, {none, term(V)}]
            || {K, V} <- maps:to_list(maps:get(evidence, Finding, #{}))],
    Last = max(0, length(Lines) - Room),
    lists:nthtail(min(From, Last), Lines).

wrapped(Mark, Text, Columns) ->
    Words = string:lexemes(unicode:characters_to_list(Text), " "),
    [[{Mark, lists:join(" ", Line)}] || Line <- fill(Words, Columns)].

fill([], _) -> [];
fill([Word | Words], Columns) -> fill(Words, [Word], string:length(Word), Columns).

fill([Word | Words], Line, Length, Columns) ->
    case Length + 1 + string:length(Word) of
        Longer when Longer =< Columns -> fill(Words, [Word | Line], Longer, Columns);
        _ -> [lists:reverse(Line) | fill([Word | Words], Columns)]
    end;
fill([], Line, _, _) ->
    [lists:reverse(Line)].

stack([]) ->
    [];
stack(Frames) ->
    [[], [{bold, "native stack, innermost first"}] | [[{none, ["  ", frame(F)]}] || F <- Frames]].

frame(#{nif := {M, F, A}} = Frame) when is_integer(A) ->
    io_lib:format("~ts:~ts/~b  ~ts", [text(M), text(F), A, place(Frame)]);
frame(Frame) ->
    place(Frame).

place(#{symbol := Symbol} = Frame) when is_binary(Symbol) ->
    [text(Symbol), plus(maps:get(symbol_offset, Frame, none)), " in ", library(Frame)];
place(#{offset := Offset} = Frame) when is_integer(Offset) ->
    [library(Frame), plus(Offset)];
place(#{address := Address}) when is_integer(Address) ->
    io_lib:format("0x~.16b", [Address]);
place(Frame) ->
    library(Frame).

plus(N) when is_integer(N) -> io_lib:format("+0x~.16b", [N]);
plus(_) -> "".

library(#{in := jit}) -> "code of the JIT";
library(#{in := emulator}) -> "the emulator";
library(#{library := Library}) when is_binary(Library) -> filename:basename(text(Library));
library(_) -> "unknown code".

%% ---- texts ----

%% @doc The time of day of a time in us since 1970, on this machine's clock.
-spec clock(integer()) -> string().
clock(Us) ->
    {_, {H, M, S}} = calendar:system_time_to_local_time(Us, microsecond),
    lists:flatten(io_lib:format("~2..0b:~2..0b:~2..0b", [H, M, S])).

ms(Ms) when Ms < 9.95 -> io_lib:format("~.1f ms", [float(Ms)]);
ms(Ms) when Ms < 999.5 -> io_lib:format("~b ms", [round(Ms)]);
ms(Ms) -> io_lib:format("~.1f s", [Ms / 1000]).

integer(N) when is_integer(N) -> integer_to_list(N);
integer(_) -> "?".

term({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    io_lib:format("~tp:~tp/~b", [M, F, A]);
term(Binary) when is_binary(Binary) -> text(Binary);
term(Atom) when is_atom(Atom) -> text(Atom);
term(Term) -> text(unicode:characters_to_binary(io_lib:format("~0tP", [Term, 40]))).

%% @doc A text from a node, for the terminal: nothing of it is a command, since no control
%% character, of either set, is left.
-spec text(atom() | unicode:chardata()) -> string().
text(Atom) when is_atom(Atom) -> text(atom_to_binary(Atom));
text(Data) ->
    Chars = case unicode:characters_to_list(Data) of
                Ok when is_list(Ok) -> Ok;
                _ -> [$? || _ <- binary_to_list(iolist_to_binary(Data))]
            end,
    [if C < 32; C >= 127, C < 160 -> $?; true -> C end || C <- Chars].

%% ---- to characters ----

%% @doc A line of at most so many columns, without marks; what is not ASCII is `?' in that style.
-spec plain(line(), options()) -> string().
plain(Line, Options) ->
    lists:flatten([Text || {_, Text} <- cut(Line, Options)]).

%% @doc The same, in colours.
-spec ansi(line(), options()) -> string().
ansi(Line, Options) ->
    lists:flatten([[code(Mark), Text, reset(Mark)] || {Mark, Text} <- cut(Line, Options)]).

cut(Line, #{columns := Columns, style := Style}) ->
    cut(Line, Columns, Style).

cut([], _, _) ->
    [];
cut(_, Left, _) when Left =< 0 ->
    [];
cut([{Mark, Data} | Rest], Left, Style) ->
    Text = shown(unicode:characters_to_list(Data), Style),
    Kept = string:slice(Text, 0, Left),
    [{Mark, Kept} | cut(Rest, Left - string:length(Kept), Style)].

shown(Text, unicode) -> Text;
shown(Text, ascii) -> [if C < 128 -> C; true -> $? end || C <- Text].

code(none) -> "";
code(title) -> "\e[1;36m";
code(bold) -> "\e[1m";
code(dim) -> "\e[2m";
code(good) -> "\e[32m";
code(warn) -> "\e[33m";
code(bad) -> "\e[1;31m";
code(chosen) -> "\e[7m".

reset(none) -> "";
reset(_) -> "\e[m".
