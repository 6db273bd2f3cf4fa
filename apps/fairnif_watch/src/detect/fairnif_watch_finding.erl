%% What a finding is, and the words of one. Pure.
-module(fairnif_watch_finding).

-export([new/3, update/3, worded/1, blocked/1, finish/2, ms/1, line/1]).

-export_type([finding/0, issue/0, culprit/0, holder/0, subject/0, severity/0]).

-type severity() :: warning | error | unconfirmed.
-type subject() :: {scheduler | dirty_cpu | dirty_io, pos_integer()} | node | {process, pid()}.
-type culprit() :: #{kind := fairnif | nif | load | destructor | driver | bif | gc | exit
                             | emulator | os | none,
                     name := binary(),
                     mfa := none | mfa(),
                     pid := none | pid(),
                     registered := none | atom(),
                     current_function := none | mfa(),
                     library := none | binary(),
                     symbol := none | binary(),
                     offset := none | non_neg_integer(),
                     module := none | module(),
                     syscall := none | atom()}.
%% `name' is what to show; `module' loaded the library, where that is certain.

-type holder() :: #{mfa := mfa(), threads := [{dirty_cpu | dirty_io, pos_integer()}],
                    pids := [pid()]}.
%% What runs in the library that a block sleeps in, and so may hold its lock.

-type issue() :: #{key := term(), severity := severity(), subject := subject(),
                   sentence := binary(), since := integer(), ongoing := boolean(),
                   duration_ms => float() | none, culprit => culprit(), stack => [map()],
                   remedy => binary() | none, evidence => map()}.
%% What a detector says holds now: `key' tells one from the next of the same detector; `since' is in
%% us of the system's time.

-type finding() :: #{schema_version := 1, id := pos_integer(), node := node(), detector := atom(),
                     severity := severity(), at := integer(), since := integer(),
                     duration_ms := float() | none, ongoing := boolean(), subject := subject(),
                     sentence := binary(), culprit := culprit(), stack := [map()],
                     remedy := binary() | none, evidence := map()}.
%% Times are us of the system's time (since 1970).

%% @doc The finding that an issue becomes when it is first seen.
-spec new(pos_integer(), atom(), issue()) -> finding().
new(Id, Detector, Issue) ->
    update(#{schema_version => 1, id => Id, node => node(), detector => Detector,
             duration_ms => none, culprit => fairnif_watch_culprit:none(), stack => [],
             remedy => none, evidence => #{}},
           Issue, erlang:system_time(microsecond)).

%% @doc The finding, with what is now known. Severity never falls while it lasts, and it began when
%% it was first seen to.
-spec update(map(), issue(), Now :: integer()) -> finding().
update(Finding, Issue, Now) ->
    Severity = worse(maps:get(severity, Finding, none), maps:get(severity, Issue)),
    #{since := Since} = Issue,
    Merged = maps:merge(maps:merge(Finding, maps:remove(key, Issue)), seen(Finding, Issue)),
    worded(Merged#{severity => Severity, evidence => kept(Finding, Merged), at => Now,
                   since => min(maps:get(since, Finding, Since), Since)}).

%% The rest is reported again each time.
kept(#{evidence := Before}, #{evidence := Evidence}) ->
    maps:merge(maps:with([beside], Before), Evidence).

%% A block is one with one culprit, of which a later stack may show less: then what was seen before
%% stands, with its stack. What was learned of it since is kept while it is the same.
seen(#{culprit := Old}, Issue) when not is_map_key(culprit, Issue) ->
    #{culprit => Old};
seen(#{detector := Detector}, #{culprit := New}) when Detector =/= scheduler_blocked ->
    #{culprit => New};                  % what lasts may be another's now
seen(#{culprit := Old, stack := Before} = Finding, #{culprit := New} = Issue) ->
    Stack = maps:get(stack, Issue, []),
    case {is_same(Old, New), rank(Old, Before) > rank(New, Stack)} of
        {true, _} -> #{culprit => Old#{syscall := maps:get(syscall, New)}, stack => Stack};
        {false, true} -> #{culprit => Old, stack => Before, evidence => evidence(Finding, Issue)};
        {false, false} -> #{culprit => New, stack => Stack}
    end.

%% What goes with the stack; nothing of it is the later one's.
evidence(#{evidence := Before}, Issue) ->
    OfStack = [stack_note, cause, process],
    maps:merge(maps:without(OfStack, maps:get(evidence, Issue, #{})),
               maps:with(OfStack, Before)).

%% What was learned of it may stand before its name. Two functions without a symbol are two.
is_same(#{library := Library, symbol := Symbol, mfa := Mfa} = Old,
        #{library := Library, symbol := Symbol, mfa := Mfa} = New) when Library =/= none ->
    #{name := Was, kind := Kind} = Old,
    #{name := Is} = New,
    Before = byte_size(Was) - byte_size(Is),
    {Symbol, Mfa} =/= {none, none} orelse Kind =:= gc
        orelse (Before >= 0 andalso binary:part(Was, Before, byte_size(Is)) =:= Is);
is_same(_, _) ->
    false.

%% The frame of a library that the emulator called beats one whose callers were not seen: that one
%% may be anything that was called.
rank(#{kind := none}, _) -> 0;
rank(#{kind := emulator}, _) -> 1;
rank(#{kind := Kind}, _) when Kind =:= gc; Kind =:= exit -> 2;
rank(#{kind := bif}, _) -> 2;
rank(#{kind := Kind}, _) when Kind =:= destructor; Kind =:= driver; Kind =:= load -> 5;
rank(#{mfa := none}, Stack) ->
    case fairnif_watch_culprit:is_called(Stack) of
        true -> 4;
        false -> 3
    end;
rank(_, _) -> 5.

%% @doc The finding, said in words: of the culprit that is kept, which need not be the one that came
%% last, nor have the name that it had when it came.
-spec worded(finding()) -> finding().
worded(#{detector := scheduler_blocked} = Finding) ->
    maps:merge(Finding, blocked(Finding));
worded(Finding) ->
    Finding.

%% @doc The sentence and the remedy of a blocked scheduler, an issue or a finding, from the rest of
%% it.
-spec blocked(map()) -> #{sentence => binary(), remedy => binary()}.
blocked(#{subject := {scheduler, N}, duration_ms := Ms, ongoing := Ongoing,
       culprit := #{kind := Kind} = Culprit} = About) ->
    Blocked = case Ongoing of true -> " has been blocked for "; false -> " was blocked for " end,
    #{sentence => iolist_to_binary(["Scheduler ", integer_to_binary(N), Blocked,
                                    ms(round(Ms * 1.0e6)), by(Culprit),
                                    how(maps:get(evidence, About, #{}), Culprit), "."]),
      remedy => fairnif_watch_culprit:remedy(Kind)};
blocked(_) ->
    #{}.

by(#{name := <<"unknown">>}) -> " by an unknown call";
by(#{kind := exit, name := Name, pid := Pid}) when is_pid(Pid) ->
    [" by ", Name, ", ", pid_to_list(Pid)];
by(#{name := Name}) -> [" by ", Name].

how(#{state := State} = Evidence, #{syscall := Call}) when State =:= sleeping; State =:= disk ->
    [", asleep", [[" in the system call ", atom_to_binary(Call)] || Call =/= none],
     beside(maps:get(beside, Evidence, []))];
how(_, _) ->
    [].

beside([]) ->
    [];
beside(Holders) ->
    ["; of the same library runs ", lists:join(", and ", [holder(H) || H <- Holders]),
     ", which may hold the lock"].

holder(#{mfa := {M, F, A}, threads := Threads, pids := Pids}) ->
    [fairnif_watch_culprit:mfa(M, F, A),
     [[" on ", lists:join(" and ", [[kind(Kind), " ", integer_to_binary(N)]
                                    || {Kind, N} <- Threads])] || Threads =/= []],
     [[", ", pid_to_list(Pid)] || Pid <- Pids]].

kind(dirty_cpu) -> "dirty CPU";
kind(dirty_io) -> "dirty I/O".

%% @doc The finding, over: for findings whose detector does not see them any more.
-spec finish(finding(), Now :: integer()) -> finding().
finish(#{duration_ms := none, since := Since} = Finding, Now) ->
    finish(Finding#{duration_ms := max(0, Now - Since) / 1000}, Now);
finish(Finding, Now) ->
    worded(Finding#{ongoing := false, at := Now}).

worse(error, _) -> error;
worse(warning, unconfirmed) -> warning;
worse(_, New) -> New.

%% @doc Nanoseconds as a person reads them: "312 ms", "1.5 s".
-spec ms(Ns :: integer()) -> binary().
ms(Ns) when Ns < 10000000 -> iolist_to_binary(io_lib:format("~.1f ms", [Ns / 1.0e6]));
ms(Ns) when Ns < 1000000000 -> iolist_to_binary(io_lib:format("~b ms", [round(Ns / 1.0e6)]));
ms(Ns) -> iolist_to_binary(io_lib:format("~.1f s", [Ns / 1.0e9])).

%% @doc The finding in one line of text, without a final newline.
-spec line(finding()) -> iodata().
line(#{detector := Detector, severity := Severity, sentence := Sentence, remedy := Remedy}) ->
    [atom_to_binary(Severity), ": ", atom_to_binary(Detector), ": ", Sentence,
     case Remedy of none -> []; _ -> [" Remedy: ", Remedy] end].
