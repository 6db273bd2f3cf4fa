%% The findings: which are open, which are kept, and what they come to in total. Pure.
-module(fairnif_watch_store).

-export([new/1, issues/3, learned/4, unlearned/1, findings/1, totals/1]).

-export_type([store/0, change/0]).

-record(store, {kept :: pos_integer(),
                named :: non_neg_integer(),
                next = 1 :: pos_integer(),
                open = #{} :: #{{atom(), term()} => pos_integer()},
                findings = #{} :: #{pos_integer() => map()},
                ended = queue:new() :: queue:queue(pos_integer()),
                blocked = #{} :: #{binary() => {Count :: integer(), Ns :: integer()}},
                made = #{} :: #{{atom(), atom()} => pos_integer()}}).

-opaque store() :: #store{}.
-type change() :: {new | worse | changed | ended, fairnif_watch_finding:finding()}.

%% @doc An empty store; `findings_kept' and `metrics_functions' of the settings bound it.
-spec new(map()) -> store().
new(#{findings_kept := Kept, metrics_functions := Named}) ->
    #store{kept = Kept, named = Named}.

%% @doc Takes the issues that a detector says hold now: those that were not there become findings,
%% findings that no issue speaks of any more end.
-spec issues(atom(), [fairnif_watch_finding:issue()], store()) -> {[change()], store()}.
issues(Detector, Issues, Store) ->
    {Changes, After} = lists:mapfoldl(fun(Issue, S) -> issue(Detector, Issue, S) end,
                                      Store, Issues),
    Named = [Key || #{key := Key} <- Issues],
    Gone = [{Key, Id} || {{D, Key}, Id} <- maps:to_list(After#store.open),
                         D =:= Detector, not lists:member(Key, Named)],
    Now = erlang:system_time(microsecond),
    {Ends, Last} = lists:mapfoldl(
                     fun({Key, Id}, S) ->
                             Finding = fairnif_watch_finding:finish(maps:get(Id, S#store.findings),
                                                                    Now),
                             {{ended, Finding}, close(Detector, Key, Finding, S)}
                     end, After, Gone),
    {lists:append(Changes) ++ Ends, Last}.

issue(Detector, #{key := Key, ongoing := Ongoing} = Issue, #store{open = Open} = Store) ->
    case Open of
        #{{Detector, Key} := Id} ->
            Old = maps:get(Id, Store#store.findings),
            New = fairnif_watch_finding:update(Old, Issue, erlang:system_time(microsecond)),
            case {change(Old, New), Ongoing} of
                %% A reader of errors only must not hear of the end alone.
                {worse, false} ->
                    {[{worse, New}, {ended, New}], close(Detector, Key, New, Store)};
                {_, false} -> {[{ended, New}], close(Detector, Key, New, Store)};
                {same, true} -> {[], keep(New, Store)};
                {Change, true} -> {[{Change, New}], keep(New, Store)}
            end;
        #{} ->
            made(Detector, Issue, Store)
    end.

made(Detector, #{key := Key, ongoing := Ongoing} = Issue,
     #store{next = Id, open = Open, made = Made} = Store) ->
    #{severity := Severity} = Finding = fairnif_watch_finding:new(Id, Detector, Issue),
    Counted = maps:update_with({Detector, Severity}, fun(N) -> N + 1 end, 1, Made),
    Next = keep(Finding, Store#store{next = Id + 1, made = Counted,
                                    open = Open#{{Detector, Key} => Id}}),
    case Ongoing of
        true -> {[{new, Finding}], Next};
        false -> {[{new, Finding}, {ended, Finding}], close(Detector, Key, Finding, Next)}
    end.

change(#{severity := S} = Old, #{severity := S} = New) ->
    What = [sentence, culprit, stack, duration_ms],
    case maps:with(What, Old) =:= maps:with(What, New) of
        true -> same;
        false -> changed
    end;
change(_, _) ->
    worse.

keep(#{id := Id} = Finding, #store{findings = Findings} = Store) ->
    Store#store{findings = Findings#{Id => Finding}}.

%% An ended finding is kept until `kept' newer ones have ended.
close(Detector, Key, #{id := Id} = Finding, #store{open = Open, ended = Ended} = Store) ->
    Closed = (keep(Finding, Store))#store{open = maps:remove({Detector, Key}, Open),
                                         ended = queue:in(Id, Ended)},
    drop(total(Finding, Closed)).

drop(#store{kept = Kept, ended = Ended, findings = Findings} = Store) ->
    case queue:len(Ended) > Kept of
        true ->
            {{value, Oldest}, Rest} = queue:out(Ended),
            Store#store{ended = Rest, findings = maps:remove(Oldest, Findings)};
        false ->
            Store
    end.

%% Time for which normal schedulers were blocked, by culprit: by what the stack says, since what is
%% learned later (the module before a colon) may come or not. A culprit that comes when there are
%% `named' already is "other" from then on: totals must never fall.
total(#{detector := scheduler_blocked, culprit := Culprit, duration_ms := Ms},
      #store{blocked = Blocked, named = Named} = Store) when is_float(Ms) ->
    Name = fairnif_watch_culprit:total(Culprit),
    Who = case is_map_key(Name, Blocked) orelse map_size(Blocked) < Named of
              true -> Name;
              false -> <<"other">>
          end,
    {Count, Ns} = maps:get(Who, Blocked, {0, 0}),
    Store#store{blocked = Blocked#{Who => {Count + 1, Ns + round(Ms * 1.0e6)}}};
total(_, Store) ->
    Store.

%% @doc What was learned of a finding's culprit; `timeout' if it did not answer. `Collections': long
%% ones, `{At, Pid, Ms}', `At' being us of the system's time at their end.
-spec learned(pos_integer(), map() | timeout, [tuple()], store()) -> {[change()], store()}.
learned(_, timeout, _, Store) ->
    {[], Store};
learned(Id, Facts, Collections, #store{findings = Findings} = Store) ->
    case Findings of
        #{Id := #{culprit := Old, evidence := Evidence} = Finding} ->
            All = Facts#{gc => collected(Finding, Collections)},
            More = maps:with([current_stacktrace, initial_call, candidates, beside],
                             together(Facts, Evidence)),
            New = fairnif_watch_finding:worded(
                    Finding#{culprit := fairnif_watch_culprit:complete(Old, All),
                             evidence := maps:merge(Evidence, More)}),
            case New of
                Finding -> {[], Store};
                _ -> {[{changed, New}], keep(New, Store)}
            end;
        #{} ->
            {[], Store}
    end.

%% What ran beside it was seen by halves: where, and for whom.
together(#{beside := New} = Facts, Evidence) ->
    All = maps:get(beside, Evidence, []) ++ New,
    Facts#{beside := joined([#{mfa => Mfa, threads => every(threads, Mfa, All),
                               pids => every(pids, Mfa, All)}
                             || Mfa <- lists:usort([Mfa || #{mfa := Mfa} <- All])])};
together(Facts, _) ->
    Facts.

every(Key, Mfa, All) ->
    lists:usort(lists:append([maps:get(Key, Of) || #{mfa := F} = Of <- All, F =:= Mfa])).

%% A C function may stand in its table under several names, of which a stack shows the first.
joined(Rows) ->
    Whole = [Row || #{threads := [_ | _], pids := [_ | _]} = Row <- Rows],
    Known = lists:append([Threads || #{threads := Threads} <- Whole]),
    Seen = [Row || #{threads := Threads, pids := []} = Row <- Rows, Threads -- Known =/= []],
    case {Seen, [Row || #{threads := []} = Row <- Rows]} of
        {[#{threads := Threads}], [Asked]} -> [Asked#{threads := Threads} | Whole];
        {_, Asked} -> Whole ++ Seen ++ Asked
    end.

%% @doc The findings of which it may be learned yet that they were collections: those are reported
%% when they are over, which may come later than all else.
-spec unlearned(store()) -> [pos_integer()].
unlearned(#store{findings = Findings}) ->
    [Id || {Id, #{detector := scheduler_blocked, culprit := #{kind := Kind, mfa := none}}}
               <- maps:to_list(Findings), Kind =:= emulator orelse Kind =:= bif].

%% Was that a collection? One of that process, that lies within the block and took most of it.
collected(#{detector := scheduler_blocked, since := Since, at := At, duration_ms := Blocked,
            culprit := #{pid := Pid}}, Collections) when is_float(Blocked), is_pid(Pid) ->
    lists:any(fun({End, Who, Ms}) ->
                      Who =:= Pid andalso Ms >= Blocked / 2
                          andalso End - Ms * 1000 >= Since - 10000 andalso End =< At + 1000000
              end, Collections);
collected(_, _) ->
    false.

%% @doc All findings kept, newest first: those that last, and of the ended ones the newest.
-spec findings(store()) -> [fairnif_watch_finding:finding()].
findings(#store{findings = Findings}) ->
    [F || {_, F} <- lists:reverse(lists:keysort(1, maps:to_list(Findings)))].

%% @doc Since the start: findings by detector and severity, and blocked time by culprit.
-spec totals(store()) -> #{findings := map(), blocked := map()}.
totals(#store{made = Made, blocked = Blocked}) ->
    #{findings => Made, blocked => Blocked}.
