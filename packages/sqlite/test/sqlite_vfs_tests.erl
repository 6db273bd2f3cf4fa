%% What the VFS "fair" promises: files that SQLite's own "unix" VFS and other programs understand,
%% with their locks; no thread for what is in memory; no scheduler for what is not.
-module(sqlite_vfs_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, with_pauses/1, fds/0]).

-compile([nowarn_export_all, export_all]).

-define(MODES, ["delete", "truncate", "persist", "memory", "wal"]).

files_test_() ->
    [named(Name) || Name <- cases()].

%% The same with a pause at every tick.
paused_test_() ->
    with_pauses([named(Name) || Name <- cases()]).

named(Name) ->
    {atom_to_list(Name), {timeout, 600, fun() -> in_folder(fun ?MODULE:Name/1) end}}.

cases() ->
    [every_journal_mode_writes_what_others_read, a_transaction_over_two_files_is_one,
     a_large_sort_leaves_no_file, a_sort_has_no_threads_of_its_own, temporary_tables_are_as_others,
     locks_stand_when_another_connection_is_closed, another_programs_lock_is_respected,
     our_lock_is_respected_by_another_program, what_was_rolled_back_is_never_written,
     a_rollback_after_pages_went_to_the_file, a_commit_is_in_the_files,
     a_wal_grows_is_emptied_and_grows, readers_and_a_writer_of_one_node,
     a_crashed_programs_journal_is_rolled_back, a_file_is_never_mapped, descriptors_are_closed,
     a_folder_is_no_database, a_plain_nif_may_use_the_connection, the_module_is_loaded_again].

%% ------------------------------------------------------------------
%% Files
%% ------------------------------------------------------------------

every_journal_mode_writes_what_others_read(Dir) ->
    [begin
         Path = Dir ++ Mode,
         C = open(Path, Mode),
         ok = sqlite:execute(C, ["create table t(a integer primary key, b);", rows("t", 2000),
                                 "delete from t where a % 3 = 0; vacuum;",
                                 "begin; delete from t; rollback;"
                                 "begin; insert into t values(3000, 'x'); savepoint s;",
                                 "delete from t; rollback to s; commit"]),
         Sum = query(C, "select count(*), sum(a), max(length(b)) from t"),
         ?assertMatch([[1335, _, _]], Sum),
         ?assertEqual([[<<"ok">>]], query(C, "pragma integrity_check")),
         [[N, S, L]] = Sum,
         ?assertEqual(lists:flatten(io_lib:format("~p|~p|~p\nok\n", [N, S, L])),
                      shell(Path, "select count(*), sum(a), max(length(b)) from t;"
                                  "pragma integrity_check")),
         "" = shell(Path, "pragma busy_timeout=0; insert into t values(4000, 'y')") -- "0\n",
         ?assertEqual([[1]], query(C, "select count(*) from t where a = 4000")),
         ok = sqlite:close(C)
     end || Mode <- ?MODES].

a_transaction_over_two_files_is_one(Dir) ->
    [begin
         C = open(Dir ++ "one." ++ Mode, Mode),
         ok = sqlite:execute(C, ["attach '", Dir, "two.", Mode, "' as two; create table t(a);"
                                 "create table two.u(a);"]),
         ok = sqlite:execute(C, "begin; insert into t values(1); insert into u values(1); commit"),
         ok = sqlite:execute(C, "begin; insert into t values(2); insert into u values(2);"
                                "rollback"),
         ?assertEqual([[1, 1]], query(C, "select (select sum(a) from t), (select sum(a) from u)")),
         ok = sqlite:close(C),
         ?assertEqual("1\n", shell(Dir ++ "two." ++ Mode, "select sum(a) from u")),
         ?assertEqual([], filelib:wildcard(Dir ++ "*-mj*"))
     end || Mode <- ["delete", "persist", "wal"]].

a_sort_has_no_threads_of_its_own(Dir) ->
    C = open(Dir ++ "db", "wal"),
    [[_]] = query(C, "pragma threads = 4"),
    ?assertEqual([[0]], query(C, "pragma threads")).

a_large_sort_leaves_no_file(Dir) ->
    C = open(Dir ++ "db", "wal"),
    ok = sqlite:execute(C, "pragma temp_store=file; pragma cache_size=20; create table t(a, b)"),
    ok = sqlite:execute(C, rows("t", 20000)),
    Before = fds(),
    Rows = query(C, "select b from t order by b"),
    ?assertEqual(lists:sort(Rows), Rows),
    ?assertEqual(20000, length(Rows)),
    ?assertEqual([[20000]], query(C, "select count(*) from (select distinct b from t)")),
    ?assertEqual(Before, fds()),
    ok = sqlite:close(C).

temporary_tables_are_as_others(Dir) ->
    C = open(Dir ++ "db", "delete"),
    ok = sqlite:execute(C, ["pragma temp_store=file; pragma cache_size=10;"
                            "create temp table t(a, b); pragma temp.cache_size=5;",
                            rows("t", 3000), "create index temp.t_b on t(b);",
                            "begin; update t set b = a; rollback; delete from t where a % 2 = 0"]),
    ?assertEqual([[1500, 2250000]], query(C, "select count(*), sum(a) from t")),
    ?assertEqual([[<<"ok">>]], query(C, "pragma temp.integrity_check")),
    ok = sqlite:close(C).

a_wal_grows_is_emptied_and_grows(Dir) ->
    C = open(Dir ++ "db", "wal"),
    ok = sqlite:execute(C, "create table t(a, b)"),
    [begin
         ok = sqlite:execute(C, ["begin;", rows("t", 1000), "commit"]),
         ok = sqlite:execute(C, io_lib:format("pragma wal_checkpoint(~s)", [How]))
     end || How <- ["passive", "restart", "truncate", "full", "truncate", "restart"]],
    ok = sqlite:execute(C, "insert into t values(0, 0)"),
    ?assertEqual("6001\nok\n",
                 shell(Dir ++ "db", "select count(*) from t; pragma integrity_check")),
    ok = sqlite:execute(C, "pragma locking_mode=exclusive; begin; delete from t; commit;"
                           "insert into t values(0, 0);"
                           "pragma locking_mode=normal; select count(*) from t"),
    ?assertEqual([[1]], query(C, "select count(*) from t")),
    ?assertEqual("1\nok\n", shell(Dir ++ "db", "select count(*) from t; pragma integrity_check")),
    ok = sqlite:close(C).

%% The WAL's frames were held, and not written, when the transaction ended.
what_was_rolled_back_is_never_written(Dir) ->
    [A, B] = [open(Dir ++ "db", "wal"), open(Dir ++ "db", "wal")],
    ok = sqlite:execute(A, ["pragma cache_size=1; pragma wal_autocheckpoint=0;"
                            "create table t(a integer primary key, b);", rows("t", 1000)]),
    [begin
         ok = sqlite:execute(A, "pragma wal_checkpoint(truncate)"),
         ok = sqlite:execute(A, io_lib:format("begin; update t set b = 'A' || b where a < ~p;"
                                              "rollback", [N * 25])),
         ok = sqlite:execute(B, io_lib:format("update t set b = 'B~p' || a where a % 3 = 0", [N])),
         Sum = io_lib:format("select count(*), sum(b like 'B~p%'), sum(b like 'A%') from t", [N]),
         ?assertEqual([[1000, 333, 0]], query(A, Sum)),
         ?assertEqual([[1000, 333, 0]], query(B, Sum)),
         ok = sqlite:execute(A, io_lib:format("begin; update t set b = b || 'x' where a < 30;"
                                              "savepoint s; update t set b = 'A' where a < ~p;"
                                              "rollback to s; update t set b = b where a > 900;"
                                              "rollback", [N * 25])),
         ?assertEqual([[<<"ok">>]], query(A, "pragma integrity_check")),
         ?assertEqual([[<<"ok">>]], query(B, "pragma integrity_check"))
     end || N <- lists:seq(1, 40)],
    ?assertEqual("1000\nok\n",
                 shell(Dir ++ "db", "select count(*) from t; pragma integrity_check")),
    [ok = sqlite:close(C) || C <- [A, B]].

%% Parts of it are frames that are written a second time, and get new checksums.
a_rollback_after_pages_went_to_the_file(Dir) ->
    [begin
         C = open(Dir ++ Mode, Mode),
         ok = sqlite:execute(C, ["pragma cache_size=3; create table t(a integer primary key, b);",
                                 rows("t", 500)]),
         Before = query(C, "select sum(a), sum(length(b)) from t"),
         ok = sqlite:execute(C, ["begin; update t set b = b || 'longer';", rows("t", 300),
                                 "update t set b = 'short' where a % 7 = 0; rollback"]),
         ?assertEqual(Before, query(C, "select sum(a), sum(length(b)) from t")),
         ok = sqlite:execute(C, ["begin; update t set b = b || 'longer';", rows("t", 300),
                                 "update t set b = 'short' where a % 7 = 0;"
                                 "update t set b = 'two'; commit"]),
         ?assertEqual("800|2400\nok\n",
                      shell(Dir ++ Mode, "select count(*), sum(length(b)) from t;"
                                         "pragma integrity_check")),
         ok = sqlite:close(C)
     end || Mode <- ["delete", "truncate", "persist", "wal"]].

%% What a crash right after a commit would leave: a copy of the files. With psow=0 the WAL is padded
%% with a second frame that commits, and synced in the middle of it.
a_commit_is_in_the_files(Dir) ->
    [begin
         Path = Dir ++ Sync ++ Psow,
         C = open("file:" ++ Path ++ "?psow=" ++ Psow, "wal"),
         ok = sqlite:execute(C, ["pragma synchronous=", Sync, "; pragma cache_size=4;"
                                 "create table t(a integer primary key, b);"]),
         [begin
              ok = sqlite:execute(C, ["begin;", rows("t", 50),
                                      "update t set b = b || 'x'; commit"]),
              [{ok, _} = file:copy(Path ++ End, Dir ++ "copy" ++ End) || End <- ["", "-wal"]],
              ?assertEqual(integer_to_list(50 * N) ++ "\nok\n",
                           shell(Dir ++ "copy", "select count(*) from t; pragma integrity_check")),
              [file:delete(Name) || Name <- filelib:wildcard(Dir ++ "copy*")]
          end || N <- lists:seq(1, 8)],
         ok = sqlite:close(C)
     end || Sync <- ["off", "normal", "full"], Psow <- ["0", "1"]].

%% Killed in the middle of a transaction whose pages are in the file.
a_crashed_programs_journal_is_rolled_back(Dir) ->
    [begin
         Path = Dir ++ Mode,
         C = open(Path, Mode),
         ok = sqlite:execute(C, ["create table t(a, b);", rows("t", 500)]),
         {Port, Pid} = program(Path),
         tell(Port, "pragma cache_size=2; begin; update t set b = 'lost';"),
         "" = os:cmd("kill -KILL " ++ Pid),
         receive {Port, {exit_status, _}} -> ok after 10000 -> error(alive) end,
         ?assertEqual([[500, 0]], query(C, "select count(*), sum(b = 'lost') from t")),
         ?assertEqual([[<<"ok">>]], query(C, "pragma integrity_check")),
         ok = sqlite:execute(C, "delete from t"),
         ok = sqlite:close(C)
     end || Mode <- ["delete", "persist", "wal"]].

a_file_is_never_mapped(Dir) ->
    C = open(Dir ++ "db", "delete"),
    ok = sqlite:execute(C, "pragma mmap_size=10000000; create table t(a)"),
    ?assertEqual([[0]], query(C, "pragma mmap_size=10000000")),
    ?assertEqual(nomatch, binary:match(maps(), list_to_binary(Dir ++ "db"))),
    ok = sqlite:close(C).

maps() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    Maps.

descriptors_are_closed(Dir) ->
    Before = fds(),
    [begin
         Cs = [open(Dir ++ "db", Mode) || _ <- lists:seq(1, 5)],
         [ok = sqlite:execute(C, "create table if not exists t(a); insert into t values(1)")
          || C <- Cs],
         [ok = sqlite:close(C) || C <- Cs]
     end || Mode <- ["wal", "delete", "persist"]],
    ?assertEqual(Before, fds()),
    ?assertEqual([], filelib:wildcard(Dir ++ "db-{wal,shm}")).

a_folder_is_no_database(Dir) ->
    ?assertMatch({error, _}, sqlite:open(Dir)),
    ?assertMatch({error, _}, sqlite:open(Dir ++ "none/db")),
    ok = file:write_file(Dir ++ "text", binary:copy(<<"no database">>, 1000)),
    {ok, C} = sqlite:open(Dir ++ "text"),
    ?assertEqual({error, <<"file is not a database">>}, sqlite:execute(C, "select * from t")),
    ok = sqlite:close(C).

%% ------------------------------------------------------------------
%% Locks
%% ------------------------------------------------------------------

%% A process that closes any descriptor of a file loses its POSIX locks on it.
locks_stand_when_another_connection_is_closed(Dir) ->
    [begin
         Path = Dir ++ Mode,
         A = open(Path, Mode),
         ok = sqlite:execute(A, "create table t(a); begin immediate; insert into t values(1)"),
         [begin
              B = open(Path, Mode),
              _ = query(B, "select count(*) from t"),
              ok = sqlite:close(B)
          end || _ <- [1, 2, 3]],
         ?assertMatch("Error" ++ _, shell(Path, "insert into t values(2)")),
         ok = sqlite:execute(A, "commit"),
         ?assertEqual("", shell(Path, "insert into t values(2)")),
         ?assertEqual([[2]], query(A, "select count(*) from t")),
         ok = sqlite:close(A)
     end || Mode <- ["delete", "wal"]].

another_programs_lock_is_respected(Dir) ->
    [begin
         Path = Dir ++ Mode,
         C = open(Path, Mode),
         ok = sqlite:execute(C, "create table t(a)"),
         {Port, _} = program(Path),
         tell(Port, "begin immediate; insert into t values(1);"),
         ok = sqlite:execute(C, "pragma busy_timeout=0"),
         ?assertEqual({error, <<"database is locked">>},
                      sqlite:execute(C, "insert into t values(2)")),
         tell(Port, "commit;"),
         ok = sqlite:execute(C, "insert into t values(2)"),
         ?assertEqual([[2]], query(C, "select count(*) from t")),
         leave(Port),
         ok = sqlite:close(C)
     end || Mode <- ["delete", "wal"]].

our_lock_is_respected_by_another_program(Dir) ->
    [begin
         Path = Dir ++ Mode,
         C = open(Path, Mode),
         ok = sqlite:execute(C, "create table t(a); begin exclusive; insert into t values(1)"),
         ?assertMatch("Error" ++ _, shell(Path, "insert into t values(2)")),
         ok = sqlite:execute(C, "rollback"),
         ?assertEqual("", shell(Path, "insert into t values(2)")),
         ?assertEqual([[1]], query(C, "select count(*) from t")),
         ok = sqlite:close(C)
     end || Mode <- ["delete", "wal"]].

%% Each sees only whole transactions.
readers_and_a_writer_of_one_node(Dir) ->
    [begin
         Path = Dir ++ Mode,
         C = open(Path, Mode),
         ok = sqlite:execute(C, ["create table t(a, b);", rows("t", 100)]),
         Readers = [spawn_monitor(fun() -> reads(Path, 40) end) || _ <- [1, 2, 3]],
         [ok = sqlite:execute(C, "begin immediate; update t set a = a + 1; update t set a = a - 2;"
                                 "commit") || _ <- lists:seq(1, 20)],
         [receive {'DOWN', Ref, process, _, Why} -> ?assertEqual(normal, Why) end
          || {_, Ref} <- Readers],
         ok = sqlite:close(C)
     end || Mode <- ["delete", "wal"]].

reads(Path, Times) ->
    {ok, C} = sqlite:open(Path, [{busy_timeout, 20000}]),
    [[[0]] = query(C, "select (5050 - sum(a)) % 100 from t") || _ <- lists:seq(1, Times)],
    ok = sqlite:close(C).

%% ------------------------------------------------------------------
%% A thread without a task; the module
%% ------------------------------------------------------------------

a_plain_nif_may_use_the_connection(Dir) ->
    C = open(Dir ++ "db", "wal"),
    ok = sqlite:execute(C, ["create table t(a, b);", rows("t", 1000)]),
    {ok, S} = sqlite:prepare(C, "select a from t order by a"),
    ?assertEqual({ok, [[A] || A <- lists:seq(1, 1000)]}, sqlite:plain_fetch_all(C, S)),
    {ok, W} = sqlite:prepare(C, "update t set a = a + 1"),
    ?assertEqual({ok, []}, sqlite:plain_fetch_all(C, W)),
    ?assertEqual("501500\n", shell(Dir ++ "db", "select sum(a) from t")),
    ok = sqlite:close(C).

the_module_is_loaded_again(Dir) ->
    C = open(Dir ++ "db", "delete"),
    ok = sqlite:execute(C, "create table t(a)"),
    [begin
         %% What calls have left on the heap keeps the old library.
         true = erlang:garbage_collect(),
         _ = code:purge(sqlite),
         {module, sqlite} = code:load_file(sqlite),
         ok = sqlite:execute(C, "insert into t values(1)"),
         D = open(Dir ++ "db", "delete"),
         ?assertEqual([[N]], query(D, "select count(*) from t")),
         ok = sqlite:close(D)
     end || N <- [1, 2, 3]],
    ok = sqlite:close(C).

%% ------------------------------------------------------------------
%% Threads of the pool
%% ------------------------------------------------------------------

%% A look at a page in memory asks no thread, in no mode whose readers find no journal.
cached_pages_need_no_thread_test_() ->
    [{Mode, {timeout, 600, fun() -> in_folder(fun(Dir) -> cached(Dir, Mode) end) end}}
     || Mode <- ["delete", "truncate", "wal"]].

cached(Dir, Mode) ->
    C = open(Dir ++ "db", Mode),
    ok = sqlite:execute(C, ["create table t(a integer primary key, b);", rows("t", 20000),
                            "pragma cache_size=2; select sum(length(b)) from t"]),
    {ok, S} = sqlite:prepare(C, "select b from t where a = ?"),
    looks(C, S, 10),
    %% What others have left to the pool (destructors) counts too, when it ends.
    ?assertEqual(0, lists:min([jobs_of(fun() -> looks(C, S, 1000) end) || _ <- [1, 2, 3]])),
    Sum = fun() -> query(C, "select sum(length(b)) from t") end,
    ?assertEqual(0, lists:min([jobs_of(Sum) || _ <- [1, 2, 3]])),
    ?assert(jobs_of(fun() -> ok = sqlite:execute(C, "insert into t values(null, 1)") end) > 0),
    ok = sqlite:close(C).

looks(C, S, Times) ->
    [begin
         ok = sqlite:bind(S, [rand:uniform(20000)]),
         {row, [_]} = sqlite:step(C, S),
         ok = sqlite:reset(S)
     end || _ <- lists:seq(1, Times)].

%% A job is counted soon after its caller continues.
jobs_of(Fun) ->
    Before = jobs(),
    Fun(),
    timer:sleep(20),
    jobs() - Before.

jobs() ->
    timer:sleep(20),
    maps:get(jobs_done, fairnif:info()).

%% ------------------------------------------------------------------
%% A slow disk
%% ------------------------------------------------------------------

%% With one scheduler, beside a process that wakes up each millisecond. Reads, writes and syncs take
%% 250 ms each; a plain NIF blocks the scheduler for that long, and longer.
a_slow_disk_blocks_no_scheduler_test_() ->
    [{Mode ++ ", " ++ What,
      {timeout, 600, fun() -> on_slow_disk(fun(Disk) -> slow(Disk, Mode, What) end) end}}
     || Mode <- ["delete", "wal"], What <- ["select", "insert", "plain select"]].

on_slow_disk(Fun) ->
    Disk = sqlite_faults:start(["+S", "1", "+SDio", "2"]),
    try Fun(Disk) after sqlite_faults:stop(Disk) end.

slow(Disk, Mode, What) ->
    Path = sqlite_faults:dir(Disk) ++ "db",
    ok = sqlite_faults:call(Disk, fun ?MODULE:slow_fill/2, [Path, Mode]),
    sqlite_faults:set(Disk, #{cold => true, slow => {[read, write, sync], 250000}, lazy => false}),
    Lates = slow_few(Disk, What, 5),
    sqlite_faults:set(Disk, #{}),
    case What of
        "plain select" -> ?assert(lists:min(Lates) >= 245);
        _ -> ?assert(lists:min(Lates) < 150)
    end.

%% Other programs make the sleeper late as well: up to that many times, or until it was not.
slow_few(_, _, 0) ->
    [];
slow_few(Disk, What, Times) ->
    {Took, Late} = sqlite_faults:call(Disk, fun ?MODULE:slow_work/1, [What]),
    ?assert(Took >= 500),
    [Late | [L || Late >= 150, L <- slow_few(Disk, What, Times - 1)]].

slow_fill(Path, Mode) ->
    C = open(Path, Mode),
    ok = sqlite:execute(C, ["create table t(a integer primary key, b);", rows("t", 2000),
                            "pragma cache_size=2; pragma wal_checkpoint(truncate);"
                            "pragma synchronous=full"]),
    {ok, S} = sqlite:prepare(C, "select b from t where a in (500, 1000, 1500)"),
    {ok, [_, _, _]} = sqlite:fetch_all(C, S),
    Self = self(),
    [unregister(slow) || whereis(slow) =/= undefined],
    spawn(fun() -> register(slow, self()), Self ! ready, keep({C, S}) end),
    receive ready -> ok end.

keep(What) ->
    receive {take, From} -> From ! What, keep(What) end.

slow_work(What) ->
    slow ! {take, self()},
    {C, S} = receive Taken -> Taken end,
    Work = case What of
               "select" -> fun() -> {ok, [_, _, _]} = sqlite:fetch_all(C, S) end;
               "plain select" -> fun() -> {ok, [_, _, _]} = sqlite:plain_fetch_all(C, S) end;
               "insert" -> fun() -> ok = sqlite:execute(C, "insert into t values(null, 1)") end
           end,
    Self = self(),
    Sleeper = spawn_link(fun() -> Self ! awake, sleeper(now_ms(), 0) end),
    receive awake -> timer:sleep(5) end,
    {Us, _} = timer:tc(Work),
    Sleeper ! {stop, self()},
    receive {late, Late} -> {Us div 1000, Late} end.

sleeper(Last, Latest) ->
    receive
        {stop, From} -> From ! {late, max(Latest, now_ms() - Last - 1)}
    after 1 ->
        Now = now_ms(),
        sleeper(Now, max(Latest, Now - Last - 1))
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% A caller dies while the disk works for it: the connection is as good as before.
a_caller_may_die_while_the_disk_works_test_() ->
    [{Mode, {timeout, 600, fun() -> on_slow_disk(fun(Disk) -> dies(Disk, Mode) end) end}}
     || Mode <- ["delete", "wal"]].

dies(Disk, Mode) ->
    Path = sqlite_faults:dir(Disk) ++ "db",
    sqlite_faults:set(Disk, #{cold => true, slow => {[read, write, sync, open, unlink], 1000}}),
    ok = sqlite_faults:call(Disk, fun ?MODULE:killed_callers/3, [Path, Mode, 60]).

killed_callers(Path, Mode, Times) ->
    C = open(Path, Mode),
    ok = sqlite:execute(C, ["pragma cache_size=3; create table t(a, b); create table n(n);"
                            "insert into n values(0);", rows("t", 200)]),
    rand:seed(exsss, {3, 4, 5}),
    [killed_caller(C) || _ <- lists:seq(1, Times)],
    eventually(fun() -> fairnif:tasks() =:= [] end),
    ok = sqlite:execute(C, "update n set n = n + 1"),
    [[<<"ok">>]] = query(C, "pragma integrity_check"),
    [[0]] = query(C, "select (select sum(a) from t) - 20100 - (select n - 1 from n) * 200"),
    ok = sqlite:close(C),
    "ok\n" = shell(Path, "update n set n = 0; pragma integrity_check"),
    ok.

killed_caller(C) ->
    {Pid, Ref} = spawn_monitor(
                   fun() ->
                       sqlite:execute(C, "begin; update t set a = a + 1; update n set n = n + 1;"
                                         "commit")
                   end),
    timer:sleep(rand:uniform(60)),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

%% One thread, which another connection's slow reads have: a caller that waits longer than
%% overload_ms is refused, and its connection is as good as before.
a_refused_call_breaks_no_connection_test_() ->
    {timeout, 600, fun() ->
        Disk = sqlite_faults:start(["-fairnif", "threads", "1"]),
        try refused(Disk) after sqlite_faults:stop(Disk) end
    end}.

refused(Disk) ->
    Path = sqlite_faults:dir(Disk) ++ "db",
    [ok = sqlite_faults:call(Disk, fun ?MODULE:slow_fill/2, [Path ++ N, "wal"]) || N <- ["1", "2"]],
    sqlite_faults:set(Disk, #{cold => true, slow => {[read], 400000}}),
    ok = sqlite_faults:call(Disk, fun ?MODULE:refused_calls/1, [Path]),
    sqlite_faults:set(Disk, #{}),
    ok = sqlite_faults:call(Disk, fun ?MODULE:as_before/1, [Path]).

refused_calls(Path) ->
    Cs = [open_no_pragma(Path ++ N) || N <- ["1", "2", "1", "2"]],
    Sql = ["begin; insert into t values(null, 'x'); select sum(length(b)) from t; commit"],
    ok = application:set_env(fairnif, overload_ms, 100),
    ok = fairnif:configure(),
    Calls = [spawn_monitor(fun() -> exit(catch sqlite:execute(C, Sql)) end) || C <- Cs],
    Answers = [receive {'DOWN', Ref, process, Pid, Why} -> Why end || {Pid, Ref} <- Calls],
    ok = application:unset_env(fairnif, overload_ms),
    ok = fairnif:configure(),
    true = lists:any(fun({'EXIT', {overloaded, _}}) -> true; (_) -> false end, Answers),
    Self = self(),
    spawn(fun() -> register(refused, self()), Self ! ready, keep(Cs) end),
    receive ready -> ok end.

open_no_pragma(Path) ->
    {ok, C} = sqlite:open(Path, [{busy_timeout, 0}]),
    C.

as_before(Path) ->
    refused ! {take, self()},
    Cs = receive Taken -> Taken end,
    [begin
         ok = sqlite:execute(C, "begin immediate; insert into t values(null, 'y'); commit"),
         [[<<"ok">>]] = query(C, "pragma integrity_check"),
         ok = sqlite:close(C)
     end || C <- Cs],
    ["ok\n" = shell(Path ++ N, "insert into t values(null, 1); pragma integrity_check")
     || N <- ["1", "2"]],
    ok.

%% ------------------------------------------------------------------
%% Help
%% ------------------------------------------------------------------

in_folder(Fun) ->
    Dir = filename:absname("_build/vfs." ++ os:getpid()) ++ "/"
        ++ integer_to_list(erlang:unique_integer([positive])) ++ "/",
    ok = filelib:ensure_dir(Dir),
    try Fun(Dir) after file:del_dir_r(Dir) end.

open(Path, Mode) ->
    {ok, C} = sqlite:open(Path, [{busy_timeout, 10000}]),
    ok = sqlite:execute(C, ["pragma journal_mode=", Mode, "; pragma synchronous=off"]),
    C.

%% N rows that differ.
rows(Table, N) ->
    io_lib:format("insert into ~s(a, b) with recursive c(i) as (select 1 union all select i + 1 "
                  "from c limit ~p) select case when '~s' = 't' and exists (select 1 from ~s) "
                  "then (select max(a) from ~s) + i else i end, "
                  "hex(i * 7919 % 10007) || printf('%.*c', i % 90, 'r') || i from c;",
                  [Table, N, Table, Table, Table]).

query(C, Sql) ->
    {ok, S} = sqlite:prepare(C, Sql),
    {ok, Rows} = sqlite:fetch_all(C, S),
    ok = sqlite:release(C, S),
    Rows.

%% Another program.
shell(Path, Sql) ->
    os:cmd("sqlite3 " ++ Path ++ " \"" ++ Sql ++ "\" 2>&1").

program(Path) ->
    Port = open_port({spawn_executable, os:find_executable("sqlite3")},
                     [{args, ["-batch", Path]}, {line, 1000}, exit_status, stderr_to_stdout]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    {Port, integer_to_list(Pid)}.

%% Returns when it has done it.
tell(Port, Sql) ->
    port_command(Port, Sql ++ "\n.print told\n"),
    receive {Port, {data, {eol, "told"}}} -> ok after 10000 -> error({no_answer, Sql}) end.

leave(Port) ->
    port_command(Port, ".quit\n"),
    receive {Port, {exit_status, 0}} -> ok after 10000 -> error(no_end) end.
