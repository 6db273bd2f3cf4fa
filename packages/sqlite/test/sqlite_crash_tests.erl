%% What a database is after its disk failed, or its node was killed: whole, with every transaction
%% that was reported as committed, and without halves.
%%
%% SQLITE_KILLS says how many times the node is killed (24), SQLITE_FAULTS=all that each single call
%% fails once, and not every so manyth.
-module(sqlite_crash_tests).

-include_lib("eunit/include/eunit.hrl").

%% In the node with that disk.
-export([fill/1, work/3, look/2, write_for_good/3]).

-define(ROWS, 30).              % of a transaction

%% ------------------------------------------------------------------
%% One call fails
%% ------------------------------------------------------------------

a_call_that_fails_loses_nothing_test_() ->
    {setup, fun sqlite_faults:start/0, fun sqlite_faults:stop/1,
     fun(Disk) ->
         [{lists:flatten(io_lib:format("~s ~s ~p ~p ~p", [Mode, Sync, Kinds, Error, Lasting])),
           {timeout, 1200,
            fun() ->
                each_call_fails(Disk, {Mode, Sync},
                                #{kinds => Kinds, error => Error, lasting => Lasting})
            end}}
          || {Mode, Sync} <- [{"delete", "full"}, {"wal", "full"}, {"delete", "off"},
                              {"truncate", "off"}, {"persist", "off"}, {"wal", "off"}],
             {Kinds, Error, Lasting} <- faults(Sync, Mode)]
     end}.

faults("full", _) ->
    [{[write], enospc, true}, {[write, sync, truncate], eio, true}, {[read], eio, false},
     {[read], short, false}, {[sync], eio, false}, {[truncate], eio, false}, {[open], eio, false},
     {[open], eio, true}, {[unlink], eio, false}, {[lock], eio, false}, {[map], eio, false},
     {[stat], eio, false}];
faults("off", Mode) ->
    [{[Kind], Error, Lasting}
     || Kind <- [write, case Mode of "wal" -> wal; _ -> journal end],
        {Error, Lasting} <- [{enospc, true}, {eio, false}, {short, false}]].

%% Of many calls some are chosen.
each_call_fails(Disk, How, #{kinds := Kinds} = What) ->
    Many = 1000000,
    _ = worked(Disk, How, What#{nth => Many}),
    Calls = Many - sqlite_faults:left(Disk),
    ?assert(Calls > 0 orelse never_happens(element(1, How), Kinds)),
    Step = case os:getenv("SQLITE_FAULTS") of
               "all" -> 1;
               _ when Kinds =:= [wal] -> 1;
               _ -> max(1, Calls div 10)
           end,
    [one_call_fails(Disk, How, What#{nth => Nth}) || Nth <- lists:seq(1, Calls, Step)].

never_happens("wal", Kinds) -> Kinds =:= [truncate];
never_happens("delete", [truncate]) -> true;
never_happens("persist", [truncate]) -> true;
never_happens(_, [unlink]) -> true;
never_happens(_, [map]) -> true;
never_happens(_, _) -> false.

one_call_fails(Disk, How, What) ->
    Done = worked(Disk, How, What),
    ?assert(sqlite_faults:failed(Disk) > 0),
    looked_at(Disk, {How, What}, Done).

worked(Disk, {Mode, Sync}, What) ->
    Path = sqlite_faults:dir(Disk) ++ "db",
    sqlite_faults:set(Disk, #{}),
    ok = sqlite_faults:call(Disk, fun ?MODULE:fill/1, [Path]),
    sqlite_faults:set(Disk, What),
    sqlite_faults:call(Disk, fun ?MODULE:work/3, [Path, Mode, Sync]).

looked_at(Disk, How, Done) ->
    sqlite_faults:set(Disk, #{}),
    Path = sqlite_faults:dir(Disk) ++ "db",
    try
        ok = sqlite_faults:call(Disk, fun ?MODULE:look/2, [Path, Done])
    catch
        Class:Why:Stack ->
            erlang:raise(Class, {How, Done, Why}, Stack)
    end.

%% ------------------------------------------------------------------
%% There: a database, work with it, a look at it
%% ------------------------------------------------------------------

fill(Path) ->
    forget(),
    [file:delete(Name) || Name <- filelib:wildcard(Path ++ "*")],
    {ok, C} = sqlite:open(Path),
    ok = sqlite:execute(C, "create table t(k, i, b); create index t_k on t(k, i);"
                           "create table after(a);"),
    ok = sqlite:execute(C, rows(0)),
    ok = sqlite:close(C).

rows(K) ->
    io_lib:format("with recursive c(i) as (select 1 union all select i+1 from c limit ~p) "
                  "insert into t select ~p, i, randomblob(700) from c;", [?ROWS, K]).

%% With a cache so small that pages go to the file before the transaction ends. The connection stays
%% open; which transactions were committed, and what was reported as wrong.
work(Path, Mode, Sync) ->
    case sqlite:open(Path) of
        {ok, C} ->
            Setting = [sqlite:execute(C, S)
                       || S <- ["pragma journal_mode=" ++ Mode, "pragma synchronous=" ++ Sync,
                                "pragma cache_size=5", "pragma wal_autocheckpoint=30",
                                "pragma temp_store=file"]],
            Done = [transaction(C, K) || K <- [1, 2, 3]],
            Rest = [sqlite:execute(C, "pragma wal_checkpoint(truncate)"),
                    sqlite:execute(C, "select count(*) from (select * from t order by b, i)")],
            keep(C),
            {[K || {K, ok} <- Done], [Error || {error, Error} <- Setting ++ Rest]
                                     ++ [Error || {_, {error, Error}} <- Done]};
        {error, Why} ->
            keep(none),
            {[], [Why]}
    end.

transaction(C, K) ->
    Sql = ["begin;", rows(K), io_lib:format("update t set b = randomblob(650) where k = ~p;", [K]),
           "commit"],
    case sqlite:execute(C, Sql) of
        ok -> {K, ok};
        Error -> _ = sqlite:execute(C, "rollback"), {K, Error}
    end.

%% Calls come from other processes each: one process has to keep the connection.
keep(C) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
                                   register(sqlite_crash_keeper, self()),
                                   Self ! {self(), there},
                                   receive {take, From} -> From ! {self(), C} end
                               end),
    receive
        {Pid, there} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Pid, Why} -> error(Why)
    end.

%% The connection of a round whose work is not looked at.
forget() ->
    case whereis(sqlite_crash_keeper) of
        undefined -> ok;
        _ -> case kept() of none -> ok; C -> ok = sqlite:close(C) end
    end.

kept() ->
    Pid = whereis(sqlite_crash_keeper),
    Pid ! {take, self()},
    receive {Pid, C} -> C end.

look(Path, {Committed, Errors}) ->
    [true = is_binary(Error) andalso Error =/= <<"not an error">> orelse is_atom(Error)
     || Error <- Errors],
    case kept() of
        none -> ok;
        C -> usable_or_readonly(C, Committed, Errors)
    end,
    {ok, New} = sqlite:open(Path),
    usable(New, Committed),
    ok = sqlite:close(New),
    [] = open_files(Path),
    "ok\n" = os:cmd("sqlite3 " ++ Path ++ " 'insert into after values(1); pragma integrity_check'"),
    ok.

%% A file that could not be opened for writing is opened for reading.
usable_or_readonly(C, Committed, Errors) ->
    case lists:member(<<"attempt to write a readonly database">>, Errors) of
        true -> whole(C, Committed);
        false -> usable(C, Committed)
    end.

usable(C, Committed) ->
    ok = sqlite:execute(C, "insert into after values(1)"),
    whole(C, Committed).

whole(C, Committed) ->
    [[<<"ok">>]] = query(C, "pragma integrity_check"),
    Found = query(C, "select k, count(*) from t group by k order by k"),
    [?ROWS = N || [_, N] <- Found],
    [] = [0 | Committed] -- [K || [K, _] <- Found],
    ok = sqlite:close(C).

query(C, Sql) ->
    {ok, S} = sqlite:prepare(C, Sql),
    {ok, Rows} = sqlite:fetch_all(C, S),
    ok = sqlite:release(C, S),
    Rows.

open_files(Path) ->
    {ok, Fds} = file:list_dir("/proc/self/fd"),
    [Name || Fd <- Fds, {ok, Name} <- [file:read_link("/proc/self/fd/" ++ Fd)],
             lists:prefix(Path, Name)].

%% ------------------------------------------------------------------
%% The node is killed
%% ------------------------------------------------------------------

%% At any moment, and at its Nth write to one of the files.
a_killed_node_loses_no_transaction_test_() ->
    [{lists:flatten(io_lib:format("~s, ~p", [Mode, How])),
      {timeout, 7200, fun() -> killed(Mode, How, max(1, kills() div 4)) end}}
     || Mode <- ["delete", "wal"], How <- [any_moment, a_write]].

kills() ->
    list_to_integer(os:getenv("SQLITE_KILLS", "24")).

%% The same database for all of them: what one leaves the next one puts right.
killed(Mode, How, Times) ->
    Dir = filename:absname("_build/killed." ++ os:getpid()) ++ "/"
        ++ integer_to_list(erlang:unique_integer([positive])),
    ok = filelib:ensure_dir(Dir ++ "/x"),
    rand:seed(exsss, {1, 2, Times}),
    [kill_once(Dir ++ "/db", Mode, How) || _ <- lists:seq(1, Times)],
    ok = file:del_dir_r(Dir).

-define(WRITERS, [1, 2, 3]).

kill_once(Path, Mode, How) ->
    Disk = sqlite_faults:start([], filename:dirname(Path)),
    Sync = lists:nth(rand:uniform(3), ["off", "off", "full"]),
    ok = sqlite_faults:call(Disk, fun ?MODULE:write_for_good/3, [Path, Mode, Sync]),
    case How of
        any_moment ->
            timer:sleep(rand:uniform(400)),
            ok = sqlite_faults:kill(Disk);
        a_write ->
            sqlite_faults:set(Disk, #{kinds => [write], error => die, lazy => false,
                                      nth => rand:uniform(300)}),
            ok = sqlite_faults:ended(Disk)
    end,
    sqlite_faults:stop(Disk),
    {ok, C} = sqlite:open(Path),
    ?assertEqual([[<<"ok">>]], query(C, "pragma integrity_check")),
    [?assertEqual([], lost(C, Path, W)) || W <- ?WRITERS],
    ok = sqlite:close(C),
    ?assertEqual("ok\n", os:cmd("sqlite3 " ++ Path ++ " 'pragma integrity_check'")).

%% Transactions of a writer are numbered: all up to the last one reported are there, and none but
%% the one after it, each with all its rows in both tables.
lost(C, Path, Writer) ->
    Reported = reported(Path, Writer),
    Found = query(C, io_lib:format("select n, count(*), (select count(*) from b where b.w = a.w "
                                   "and b.n = a.n) from a where w = ~p group by n order by n",
                                   [Writer])),
    Whole = [N || [N, 4, 3] <- Found],
    [{halves, Found -- [[N, 4, 3] || N <- Whole]} || length(Whole) =/= length(Found)]
        ++ [{reported, Reported, missing, lists:seq(1, Reported) -- Whole}
            || lists:seq(1, Reported) -- Whole =/= []]
        ++ [{reported, Reported, found, lists:last(Whole)}
            || Whole =/= [], lists:last(Whole) > Reported + 1].

%% What a writer reports it appends to a file, which outlives the node as the database does.
report(Path, Writer) ->
    Path ++ ".reported." ++ integer_to_list(Writer).

reported(Path, Writer) ->
    case file:read_file(report(Path, Writer)) of
        {ok, Text} when Text =/= <<>> ->
            Lines = [L || L <- binary:split(Text, <<"\n">>, [global]), L =/= <<>>],
            binary_to_integer(lists:last(Lines));
        _ ->
            0
    end.

write_for_good(Path, Mode, Sync) ->
    {ok, C} = sqlite:open(Path, [{busy_timeout, 60000}]),
    ok = sqlite:execute(C, ["pragma journal_mode=", Mode, ";create table if not exists a(w, n, x);",
                            "create table if not exists b(w, n, x);"
                            "create index if not exists a_n on a(w, n);"
                            "create index if not exists b_n on b(w, n);"]),
    ok = sqlite:close(C),
    Numbers = [{W, number(Path, W)} || W <- ?WRITERS],
    [spawn(fun() -> writer(Path, Sync, W, N) end) || {W, N} <- Numbers],
    ok.

%% The last transaction may be there without that it was reported.
number(Path, Writer) ->
    {ok, C} = sqlite:open(Path),
    [[N]] = query(C, io_lib:format("select ifnull(max(n), 0) from a where w = ~p", [Writer])),
    ok = sqlite:close(C),
    ok = file:write_file(report(Path, Writer), integer_to_list(N) ++ "\n"),
    N.

writer(Path, Sync, W, N) ->
    {ok, C} = sqlite:open(Path, [{busy_timeout, 60000}]),
    [ok = sqlite:execute(C, S) || S <- ["pragma cache_size=8", "pragma wal_autocheckpoint=40",
                                         "pragma synchronous=" ++ Sync]],
    {ok, File} = file:open(report(Path, W), [raw, append]),
    writes(C, File, W, N + 1).

writes(C, File, W, N) ->
    Row = fun(Table) ->
              io_lib:format("insert into ~s values(~p, ~p, randomblob(~p));",
                            [Table, W, N, rand:uniform(3000)])
          end,
    Sql = ["begin immediate;", [Row("a") || _ <- lists:seq(1, 4)], [Row("b") || _ <- [1, 2, 3]],
           "commit"],
    ok = sqlite:execute(C, Sql),
    ok = file:write(File, [integer_to_list(N), "\n"]),
    writes(C, File, W, N + 1).
