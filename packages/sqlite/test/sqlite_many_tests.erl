%% Connections that many use, callers that die, locks of the database's.
-module(sqlite_many_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, beside/1, in_fresh_process/1, on_one_scheduler/1,
                       retry/2]).

%% Takes seconds, if it is not ended.
-define(LONG, "with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000000) "
              "select count(*) from c").

callers_take_turns_test() ->
    C = memory(),
    ok = sqlite:execute(C, "create table t(x)"),
    {ok, S} = sqlite:prepare(C, "insert into t values(?)"),
    Each = fun(_) ->
                   [begin
                        ok = sqlite:execute(C, "insert into t values(1)"),
                        {ok, Q} = sqlite:prepare(C, "select 1"),
                        {row, [1]} = sqlite:step(C, Q)
                    end || _ <- lists:seq(1, 200)]
           end,
    in_parallel(16, Each),
    {ok, Q} = sqlite:prepare(C, "select count(*) from t"),
    ?assertEqual({ok, [[3200]]}, sqlite:fetch_all(C, Q)),
    ok = sqlite:release(C, S),
    ok = sqlite:close(C).

statements_are_dropped_while_others_work_test() ->
    C = memory(),
    Dropper = fun(_) ->
                      [begin
                           {ok, S} = sqlite:prepare(C, "select ?"),
                           ok = sqlite:bind(S, [{blob, <<0:80000>>}]),
                           N rem 3 =:= 0 andalso erlang:garbage_collect()
                       end || N <- lists:seq(1, 300)]
              end,
    in_parallel(8, Dropper),
    eventually(fun() -> erlang:garbage_collect(), statements(C) =:= 1 end),
    ok = sqlite:close(C).

%% A query of seconds ends at once, and the next caller has the connection.
a_query_ends_with_its_caller_test_() ->
    {timeout, 600, fun a_query_ends_with_its_caller/0}.

a_query_ends_with_its_caller() ->
    C = memory(),
    {ok, S} = sqlite:prepare(C, ?LONG),
    Calls = [fun() -> sqlite:step(C, S) end, fun() -> sqlite:fetch_all(C, S) end,
             fun() -> sqlite:execute(C, ?LONG) end, fun() -> sqlite:multi_step(C, S, 7) end],
    [retry(5, fun() ->
                  P = spawn(Call),
                  eventually(fun() -> is_at_work(P) end),
                  exit(P, kill),
                  {Us, _} = timer:tc(fun() -> sqlite:changes(C) end),
                  Us < 500000 orelse Us
              end) || Call <- Calls, _ <- lists:seq(1, 20)],
    eventually(fun() -> fairnif:tasks() =:= [] end),
    ?assertEqual(ok, sqlite:close(C)).

an_autocommitted_statement_of_a_dead_caller_leaves_nothing_test() ->
    C = memory(),
    ok = sqlite:execute(C, "create table t(x)"),
    P = spawn(fun() -> sqlite:execute(C, "insert into t with recursive c(x) as (select 1 union all "
                                         "select x + 1 from c where x < 100000000) "
                                         "select x from c") end),
    eventually(fun() -> is_at_work(P) end),
    timer:sleep(20),
    exit(P, kill),
    ?assertEqual({row, [0]}, one(C, "select count(*) from t")),
    ?assertEqual({ok, idle}, sqlite:transaction_status(C)),
    ok = sqlite:close(C).

a_transaction_of_a_dead_caller_is_rolled_back_or_kept_as_asked_test() ->
    [begin
         {ok, C} = sqlite:open(":memory:", [{killed, Killed}]),
         ok = sqlite:execute(C, "create table t(x)"),
         Self = self(),
         P = spawn(fun() ->
                           ok = sqlite:execute(C, "begin; insert into t values(1)"),
                           Self ! inserted,
                           sqlite:execute(C, ?LONG)
                   end),
         receive inserted -> ok end,
         eventually(fun() -> is_at_work(P) end),
         exit(P, kill),
         ?assertEqual({row, [Rows]}, one(C, "select count(*) from t")),
         ?assertEqual({ok, Status}, sqlite:transaction_status(C)),
         ok = sqlite:close(C)
     end || {Killed, Rows, Status} <- [{rollback, 0, idle}, {keep, 1, transaction}]].

%% Whatever they are at.
callers_are_killed_at_random_test_() ->
    {timeout, 600, fun() -> killed_at_random(kills()) end}.

kills() ->
    list_to_integer(os:getenv("SQLITE_CALLERS", "2000")).

killed_at_random(Kills) ->
    {ok, C} = sqlite:open(":memory:", [{busy_timeout, 60000}]),
    ok = sqlite:execute(C, "create table t(x, y); create table total(n); insert into total "
                           "values(0)"),
    Blob = {blob, rand:bytes(100000)},
    Calls = {fun() ->
                     ok = sqlite:execute(C, "begin"),
                     ok = sqlite:execute(C, "insert into t values(1, 2)"),
                     ok = sqlite:execute(C, "commit")
             end,
             fun() -> sqlite:execute(C, ?LONG) end,
             fun() ->
                     {ok, S} = sqlite:prepare(C, "select x, ? from t"),
                     ok = sqlite:bind(S, [Blob]),
                     sqlite:fetch_all(C, S)
             end,
             fun() ->
                     {ok, S} = sqlite:prepare(C, ["select ", lists:duplicate(3000, $ ), ?LONG]),
                     sqlite:step(C, S)
             end,
             fun() -> sqlite:serialize(C) end},
    Memory = memory_used(),
    [begin
         Pids = [spawn(fun() -> catch (element(rand:uniform(5), Calls))() end)
                 || _ <- lists:seq(1, 4)],
         rand:uniform(3) =:= 1 orelse spin_us(rand:uniform(3000)),
         [exit(P, kill) || P <- Pids]
     end || _ <- lists:seq(1, Kills div 4)],
    eventually(fun() -> fairnif:tasks() =:= [] end),
    in_fresh_process(fun() -> sqlite:execute(C, "rollback") end),
    eventually(fun() -> erlang:garbage_collect(), statements(C) =:= 1 end),
    ?assertEqual({row, [<<"ok">>]}, one(C, "pragma integrity_check")),
    #{functions := Functions, cleaning_up := []} = fairnif:info(),
    ?assertEqual([], [F || #{rule_violations := N, function := F} <- Functions, N > 0]),
    ?assert(memory_used() - Memory < 50000000),
    ok = sqlite:close(C).

interrupt_ends_a_query_and_nothing_else_test() ->
    C = memory(),
    P = async(fun() -> sqlite:execute(C, ?LONG) end),
    eventually(fun() -> is_at_work(P) end),
    ok = sqlite:interrupt(C),
    ?assertEqual({error, <<"interrupted">>}, answer(P)),
    ?assertEqual({row, [1]}, one(C, "select 1")),
    Q = async(fun() -> sqlite:execute(C, ?LONG) end),
    eventually(fun() -> is_at_work(Q) end),
    ok = sqlite:cancel(C),
    ?assertEqual({error, <<"interrupted">>}, answer(Q)),
    ok = sqlite:interrupt(C),
    ?assertEqual({row, [1]}, one(C, "select 1")),
    ok = sqlite:close(C).

%% ---- locks of the database's ----

%% On one scheduler: it is free while the second connection waits.
a_lock_is_waited_for_without_a_scheduler_test_() ->
    on_one_scheduler({timeout, 600, fun() ->
        in_folder(fun(Path) ->
            {ok, A} = sqlite:open(Path),
            {ok, B} = sqlite:open(Path, [{busy_timeout, 10000}]),
            ok = sqlite:execute(A, "create table t(x); begin immediate; insert into t values(1)"),
            P = async(fun() -> sqlite:execute(B, "insert into t values(2)") end),
            eventually(fun() -> [] =/= [1 || #{where := time} <- fairnif:tasks()] end),
            ok = sqlite:execute(A, "commit"),
            ?assertEqual(ok, answer(P)),
            ?assertEqual({row, [2]}, one(A, "select count(*) from t")),
            [ok = sqlite:close(X) || X <- [A, B]]
        end)
    end}).

the_wait_for_a_lock_ends_when_asked_test() ->
    in_folder(fun(Path) ->
        {ok, A} = sqlite:open(Path),
        {ok, B} = sqlite:open(Path, [{busy_timeout, 100}]),
        ok = sqlite:execute(A, "create table t(x); begin immediate"),
        Insert = fun() -> sqlite:execute(B, "insert into t values(2)") end,
        {Us, Answer} = timer:tc(Insert),
        ?assertEqual({error, <<"database is locked">>}, Answer),
        ?assertEqual({5, <<"database is locked">>}, sqlite:error(B)),
        ?assert(Us >= 80000),
        {ok, S} = sqlite:prepare(B, "insert into t values(3)"),
        ok = sqlite:set_busy_timeout(B, 0),
        ?assertEqual(busy, sqlite:step(B, S)),
        ok = sqlite:execute(B, "pragma busy_timeout = 60000"),
        P = async(Insert),
        eventually(fun() -> is_at_work(P) end),
        ok = sqlite:cancel(B),
        ?assertEqual({error, <<"database is locked">>}, answer(P)),
        Q = async(Insert),
        eventually(fun() -> is_at_work(Q) end),
        exit(Q, kill),
        ok = sqlite:execute(A, "commit"),
        ?assertEqual(ok, sqlite:execute(B, "insert into t values(4)")),
        ?assertEqual({row, [1]}, one(A, "select count(*) from t")),
        [ok = sqlite:close(X) || X <- [A, B]]
    end).

%% ---- others continue ----

others_run_beside_a_query_test_() ->
    on_one_scheduler({timeout, 600, fun() ->
        C = memory(),
        {ok, S} = sqlite:prepare(C, "with recursive c(x) as (select 1 union all select x + 1 from "
                                    "c where x < 1000000) select count(*), max(x) from c"),
        {Us, Plain} = beside(fun() -> sqlite:plain_fetch_all(C, S) end),
        ?assert(Plain > Us div 2),
        retry(5, fun() ->
                     {_, Fair} = beside(fun() -> sqlite:fetch_all(C, S) end),
                     Fair < Plain div 10 orelse {Fair, Plain}
                 end),
        ok = sqlite:close(C)
    end}).

%% SQLite does not call back while it compiles: it does so elsewhere, unless that was short before.
a_short_text_that_is_long_to_compile_is_no_hold_test_() ->
    {timeout, 600, fun() ->
        [retry(5, fun() ->
                      C = memory(),
                      ok = sqlite:execute(C, Schema),
                      {Normal, Dirty} = spent(fun() -> {ok, _} = sqlite:prepare(C, Sql) end),
                      ok = sqlite:close(C),
                      Dirty > 5 * Normal orelse {Normal, Dirty}
                  end) || {Schema, Sql} <- [view_of_views(300), natural_join(14)]]
    end}.

view_of_views(N) ->
    Name = fun(I) -> ["v", integer_to_list(I)] end,
    {["create view v0 as select 1 as a;",
      [["create view ", Name(I), " as select * from ", Name(I - 1), ";"]
       || I <- lists:seq(1, N)]], ["select * from ", Name(N)]}.

natural_join(N) ->
    {"create table t(a, b, c, d, e, f); create index ta on t(a); create index tb on t(b, c)",
     ["select 1 from ", lists:join(" natural join ", [["t t", integer_to_list(I)]
                                                      || I <- lists:seq(1, N)])]}.

%% A statement of a new shape goes to a dirty scheduler; its numbers and strings are no shape.
a_shape_that_was_short_is_compiled_in_place_test() ->
    C = memory(),
    ok = sqlite:execute(C, "create table t(a, b)"),
    InPlace = fun(Values) ->
                      Sql = ["insert into t values(", Values, ")"],
                      {_, Dirty} = spent(fun() -> sqlite:execute(C, Sql) end),
                      Dirty =:= 0
              end,
    New = fun() -> integer_to_list(rand:uniform(1 bsl 30)) end,
    ?assertNot(InPlace("1, 'a;'")),
    %% Where the machine is busy it may have taken long, and goes there again.
    eventually(fun() -> InPlace([New(), ".5e1, 'it''s ;", New(), "'"]) end),
    ?assertNot(InPlace("1, a")),
    ok = sqlite:close(C).

%% Ns on normal schedulers, and on dirty ones.
spent(Fun) ->
    Before = spent(),
    _ = Fun(),
    After = spent(),
    {element(1, After) - element(1, Before), element(2, After) - element(2, Before)}.

spent() ->
    #{functions := Functions} = fairnif:info(),
    Ns = [{Normal, Dirty} || #{function := {sqlite, _, _}, normal_ns := Normal,
                               dirty_ns := Dirty} <- Functions],
    {Normals, Dirties} = lists:unzip(Ns),
    {lists:sum(Normals), lists:sum(Dirties)}.

%% ---- help ----

memory() ->
    {ok, C} = sqlite:open(":memory:"),
    C.

one(C, Sql) ->
    {ok, S} = sqlite:prepare(C, Sql),
    Answer = sqlite:step(C, S),
    ok = sqlite:release(C, S),
    Answer.

%% With the one that asks.
statements(C) ->
    {row, [N]} = one(C, "select count(*) from sqlite_stmt"),
    N.

is_at_work(Pid) ->
    lists:any(fun(#{owner := Owner}) -> Owner =:= Pid end, fairnif:tasks()).

async(Fun) ->
    spawn(fun() ->
                  Answer = Fun(),
                  receive {answer, To} -> To ! {self(), Answer} end
          end).

answer(P) ->
    Monitor = monitor(process, P),
    P ! {answer, self()},
    receive
        {P, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, P, Reason} -> error(Reason)
    after 10000 -> error(timeout)
    end.

in_parallel(N, Fun) ->
    Started = [spawn_monitor(fun() -> Fun(I) end) || I <- lists:seq(1, N)],
    [receive {'DOWN', Monitor, process, P, Reason} -> ?assertEqual(normal, Reason) end
     || {P, Monitor} <- Started].

spin_us(Us) ->
    spin_until(erlang:monotonic_time(microsecond) + Us).

spin_until(End) ->
    erlang:monotonic_time(microsecond) < End andalso begin erlang:yield(), spin_until(End) end.

memory_used() ->
    {ok, Status} = file:read_file("/proc/self/statm"),
    [_, Resident | _] = binary:split(Status, <<" ">>, [global]),
    binary_to_integer(Resident) * 4096.

in_folder(Fun) ->
    Folder = filename:join("_build", "sqlite_" ++ integer_to_list(erlang:unique_integer([positive]))
                           ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    try Fun(filename:join(Folder, "test.db")) after file:del_dir_r(Folder) end.
