-module(sqlite_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, with_pauses/1]).

-compile([nowarn_export_all, export_all]).

all_test_() ->
    [named(Name) || Name <- cases()].

%% The same with a pause at every tick.
paused_test_() ->
    with_pauses([named(Name) || Name <- cases()]).

%% The same with databases in files.
in_files_test_() ->
    {setup,
     fun() -> persistent_term:put(?MODULE, files) end,
     fun(_) -> persistent_term:erase(?MODULE) end,
     [[named(Name) || Name <- cases()], with_pauses([named(Name) || Name <- cases()])]}.

named(Name) ->
    {atom_to_list(Name), {timeout, 600, fun ?MODULE:Name/0}}.

cases() ->
    [values_of_all_types_come_back, parameters_have_names, wrong_parameters_are_refused,
     bad_input_gets_a_clear_error, rows_come_in_parts, large_blobs_come_and_go,
     a_wide_row_comes_whole, a_script_runs_to_its_first_error, errors_have_codes,
     a_released_statement_is_gone, a_closed_connection_is_gone, kept_statements_outlive_close,
     another_connections_statement_is_refused, statements_of_no_term_are_finalized,
     a_database_goes_into_a_binary_and_back, an_empty_database_goes_into_a_binary,
     a_file_is_opened_as_asked, changes_are_sent, errors_are_sent_to_one_process,
     what_is_denied_is_not_prepared, a_long_script_is_prepared,
     sql_that_nests_deep_is_prepared, an_iolist_is_sql].

values_of_all_types_come_back() ->
    C = memory(),
    Given = [0, -1, 16#7fffffffffffffff, -16#8000000000000000, 3.25, -1.0e300, <<>>, <<"text">>,
             <<"grüße"/utf8>>, {blob, <<>>}, {blob, <<0, 255, 0>>}, nil, undefined, atom, true,
             "list", [<<"io">>, "list"], {blob, ["a", 0]}],
    Back = [0, -1, 16#7fffffffffffffff, -16#8000000000000000, 3.25, -1.0e300, <<>>, <<"text">>,
            <<"grüße"/utf8>>, <<>>, <<0, 255, 0>>, nil, nil, <<"atom">>, <<"true">>,
            <<"list">>, <<"iolist">>, <<"a", 0>>],
    {ok, S} = sqlite:prepare(C, ["select ", lists:join($,, lists:duplicate(length(Given), $?))]),
    ok = sqlite:bind(S, Given),
    ?assertEqual({row, Back}, sqlite:step(C, S)),
    ?assertEqual(done, sqlite:step(C, S)),
    ?assertEqual([[<<"integer">>, <<"text">>, <<"blob">>, <<"null">>, <<"real">>]],
                 query(C, "select typeof(?), typeof(?), typeof(?), typeof(?), typeof(?)",
                       [1, <<"x">>, {blob, <<"x">>}, nil, 1.0])),
    ok = sqlite:close(C).

parameters_have_names() ->
    C = memory(),
    {ok, S} = sqlite:prepare(C, "select :a, @b, $c, :a"),
    ?assertEqual(3, sqlite:bind_parameter_count(S)),
    ?assertEqual(2, sqlite:bind_parameter_index(S, "@b")),
    ?assertEqual(0, sqlite:bind_parameter_index(S, ":b")),
    ok = sqlite:bind(S, #{":a" => 1, <<"@b">> => 2, '$c' => 3}),
    ?assertEqual({row, [1, 2, 3, 1]}, sqlite:step(C, S)),
    ok = sqlite:reset(S),
    ok = sqlite:bind_text(S, 1, <<"t">>),
    ok = sqlite:bind_blob(S, 2, <<"b">>),
    ok = sqlite:bind_null(S, 3),
    ?assertEqual({row, [<<"t">>, <<"b">>, nil, <<"t">>]}, sqlite:step(C, S)),
    ok = sqlite:reset(S),
    ok = sqlite:bind_integer(S, 1, 5),
    ok = sqlite:bind_float(S, 2, 0.5),
    ?assertEqual({row, [5, 0.5, nil, 5]}, sqlite:step(C, S)),
    ok = sqlite:reset(S),
    ?assertEqual({error, <<"column index out of range">>}, sqlite:bind_integer(S, 4, 1)),
    ok = sqlite:close(C).

wrong_parameters_are_refused() ->
    C = memory(),
    {ok, S} = sqlite:prepare(C, "select :a, :b"),
    ?assertError({arguments, 2, 1}, sqlite:bind(S, [1])),
    ?assertError({arguments, 2, 3}, sqlite:bind(S, [1, 2, 3])),
    ?assertError({arguments, 2, 1}, sqlite:bind(S, #{":a" => 1})),
    ?assertError({unknown, <<":c">>}, sqlite:bind(S, #{":a" => 1, ":c" => 1})),
    ?assertError({unsupported, _}, sqlite:bind(S, [self(), 1])),
    ?assertError({unsupported, _}, sqlite:bind(S, [1 bsl 64, 1])),
    ?assertError({unsupported, _}, sqlite:bind(S, [{blob, 1}, 1])),
    ?assertError({unsupported, _}, sqlite:bind(S, [<<1:7>>, 1])),
    ok = sqlite:bind(S, [1, 2]),
    {row, [1, 2]} = sqlite:step(C, S),
    ?assertMatch({error, _}, sqlite:bind(S, [1, 2])),
    ok = sqlite:reset(S),
    ?assertEqual(ok, sqlite:bind(S, [3, 4])),
    ok = sqlite:close(C).

bad_input_gets_a_clear_error() ->
    C = memory(),
    {ok, S} = sqlite:prepare(C, "select 1"),
    ?assertEqual({error, invalid_connection}, sqlite:execute(make_ref(), "select 1")),
    ?assertEqual({error, invalid_connection}, sqlite:step(S, S)),
    ?assertEqual({error, invalid_connection}, sqlite:interrupt(a)),
    ?assertEqual({error, invalid_statement}, sqlite:step(C, C)),
    ?assertEqual({error, invalid_statement}, sqlite:reset(make_ref())),
    ?assertEqual({error, sql_not_iolist}, sqlite:execute(C, sql)),
    ?assertEqual({error, sql_not_iolist}, sqlite:prepare(C, ["a" | b])),
    ?assertEqual({error, empty_statement}, sqlite:prepare(C, " -- nothing")),
    ?assertEqual({error, invalid_chunk_size}, sqlite:multi_step(C, S, 0)),
    ?assertEqual({error, <<"near \"a\": syntax error">>}, sqlite:execute(C, "create a thing")),
    ?assertEqual({error, invalid_filename}, sqlite:open(<<"a", 0, "b">>)),
    ?assertEqual({error, database_open_failed}, sqlite:open("/no/such/folder/x")),
    ?assertError(badarg, sqlite:open(":memory:", [{mode, [other]}])),
    ?assertError(badarg, sqlite:open(":memory:", [{mode, nomutex}])),
    ?assertError(badarg, sqlite:open(":memory:", [{busy_timeout, soon}])),
    ?assertError(badarg, sqlite:open(":memory:", [{killed, maybe}])),
    ?assertError(badarg, sqlite:set_authorizer(C, [fly])),
    ?assertError(badarg, sqlite:set_busy_timeout(C, x)),
    ?assertEqual({row, [1]}, sqlite:step(C, S)),
    ok = sqlite:close(C).

rows_come_in_parts() ->
    C = numbers(7),
    {ok, S} = sqlite:prepare(C, "select x from n order by x"),
    ?assertEqual({ok, [<<"x">>]}, sqlite:columns(C, S)),
    ?assertEqual({rows, [[1], [2], [3]]}, sqlite:multi_step(C, S, 3)),
    ?assertEqual({row, [4]}, sqlite:step(C, S)),
    ?assertEqual({ok, [[5], [6], [7]]}, sqlite:fetch_all(C, S)),
    ?assertEqual({done, [[X] || X <- lists:seq(1, 7)]}, sqlite:multi_step(C, S)),
    ?assertEqual({ok, [[X] || X <- lists:seq(1, 7)]}, sqlite:fetch_all(C, S, 2)),
    ?assertEqual({ok, [[X] || X <- lists:seq(1, 7)]}, sqlite:plain_fetch_all(C, S)),
    ?assertEqual({ok, [[X] || X <- lists:seq(1, 7)]}, sqlite:dirty_fetch_all(C, S)),
    ok = sqlite:close(C).

large_blobs_come_and_go() ->
    C = memory(),
    ok = sqlite:execute(C, "create table b(x)"),
    {ok, S} = sqlite:prepare(C, "insert into b values(?)"),
    Blobs = [rand:bytes(N) || N <- [4096, 4097, 32769, 1500000]],
    [begin
         ok = sqlite:bind(S, [{blob, B}]),
         erlang:garbage_collect(),
         done = sqlite:step(C, S)
     end || B <- Blobs],
    ?assertEqual([[B] || B <- Blobs], query(C, "select x from b order by rowid", [])),
    <<_, Part:70000/binary, _/binary>> = lists:last(Blobs),
    ?assertEqual([[Part, Part]], query(C, "select ?, ?1", [{blob, Part}])),
    ok = sqlite:close(C).

a_wide_row_comes_whole() ->
    C = memory(),
    Wide = lists:seq(1, 1500),
    ?assertEqual([Wide], query(C, ["select ", lists:join($,, [integer_to_list(X) || X <- Wide])],
                               [])),
    ok = sqlite:close(C).

a_script_runs_to_its_first_error() ->
    C = memory(),
    ok = sqlite:execute(C, "create table a(x); insert into a values(1), (2); -- and\n"
                        "select * from a; insert into a values(3);  "),
    ?assertEqual({ok, 1}, sqlite:changes(C)),
    ?assertEqual({ok, 3}, sqlite:last_insert_rowid(C)),
    ?assertMatch({error, <<"no such table: b">>},
                 sqlite:execute(C, "insert into a values(4); select * from b; delete from a")),
    ?assertEqual([[4]], query(C, "select count(*) from a", [])),
    ?assertEqual(ok, sqlite:execute(C, "")),
    ok = sqlite:close(C).

errors_have_codes() ->
    C = memory(),
    ok = sqlite:execute(C, "create table u(x unique); insert into u values(1)"),
    ?assertEqual({error, <<"UNIQUE constraint failed: u.x">>},
                 sqlite:execute(C, "insert into u values(1)")),
    ?assertEqual({2067, <<"UNIQUE constraint failed: u.x">>}, sqlite:error(C)),
    ?assertEqual(<<"UNIQUE constraint failed: u.x">>, sqlite:errmsg(C)),
    ?assertEqual(<<"constraint failed">>, sqlite:errstr(2067)),
    ok = sqlite:close(C).

a_released_statement_is_gone() ->
    C = memory(),
    {ok, S} = sqlite:prepare(C, "select ?"),
    ok = sqlite:release(C, S),
    ?assertEqual(ok, sqlite:release(C, S)),
    ?assertEqual(ok, sqlite:release(C, nil)),
    [?assertEqual({error, invalid_statement}, Call())
     || Call <- [fun() -> sqlite:step(C, S) end, fun() -> sqlite:multi_step(C, S, 5) end,
                 fun() -> sqlite:columns(C, S) end, fun() -> sqlite:reset(S) end,
                 fun() -> sqlite:bind(S, [1]) end, fun() -> sqlite:bind_parameter_count(S) end]],
    ?assertEqual(nil, sqlite:errmsg(S)),
    ok = sqlite:close(C).

a_closed_connection_is_gone() ->
    C = memory(),
    {ok, S} = sqlite:prepare(C, "select 1 union select 2"),
    {row, [1]} = sqlite:step(C, S),
    ok = sqlite:execute(C, "begin; create table x(y)"),
    ?assertEqual({ok, transaction}, sqlite:transaction_status(C)),
    ok = sqlite:close(C),
    ?assertEqual(ok, sqlite:close(C)),
    ?assertEqual({ok, error}, sqlite:transaction_status(C)),
    ?assertEqual(ok, sqlite:interrupt(C)),
    ?assertEqual(ok, sqlite:cancel(C)),
    ?assertEqual(ok, sqlite:release(C, S)),
    [?assertEqual({error, connection_closed}, Call())
     || Call <- [fun() -> sqlite:step(C, S) end, fun() -> sqlite:execute(C, "select 1") end,
                 fun() -> sqlite:prepare(C, "select 1") end, fun() -> sqlite:changes(C) end,
                 fun() -> sqlite:serialize(C) end, fun() -> sqlite:errmsg(C) end,
                 fun() -> sqlite:set_busy_timeout(C, 1) end,
                 fun() -> sqlite:set_update_hook(C, self()) end]].

%% The files are closed with the last one, whether it is released or forgotten.
kept_statements_outlive_close() ->
    ?assertError(badarg, sqlite:close(memory(), [{statements, both}])),
    LetGo = [fun sqlite:release/2, fun(C, _) -> sqlite:close(C) end, fun(_, _) -> ok end],
    [in_folder(fun(Path) ->
         {ok, C} = sqlite:open(Path),
         ok = sqlite:execute(C, "create table x(y)"),
         Insert = prepared(C, "insert into x values(?)"),
         Select = prepared(C, "select y from x"),
         ok = sqlite:release(C, prepared(C, "select 1")),
         ok = sqlite:execute(C, "begin; insert into x values(0)"),
         ok = sqlite:close(C, [{statements, keep}]),
         ?assertEqual(ok, sqlite:close(C, [{statements, keep}])),
         ?assertEqual({ok, error}, sqlite:transaction_status(C)),
         ?assertEqual({error, connection_closed}, sqlite:execute(C, "select 1")),
         ok = sqlite:bind(Insert, [1]),
         ?assertEqual(done, sqlite:step(C, Insert)),
         ?assertEqual({ok, [<<"y">>]}, sqlite:columns(C, Select)),
         ?assertEqual({ok, [[1]]}, sqlite:fetch_all(C, Select)),
         ok = sqlite:release(C, Insert),
         ?assertEqual({error, connection_closed}, sqlite:step(C, Insert)),
         ?assert(is_open(Path)),
         Let(C, Select),
         eventually(fun() -> erlang:garbage_collect(), not is_open(Path) end)
     end) || Let <- LetGo].

another_connections_statement_is_refused() ->
    {A, B} = {memory(), memory()},
    {ok, S} = sqlite:prepare(A, "select 1"),
    [?assertError(cross_connection_call, Call(B, S))
     || Call <- [fun sqlite:step/2, fun sqlite:columns/2, fun sqlite:fetch_all/2]],
    ok = sqlite:close(A),
    ok = sqlite:close(B).

%% SQLite lists the statements that there are.
statements_of_no_term_are_finalized() ->
    C = memory(),
    [{ok, _} = sqlite:prepare(C, "select 1") || _ <- lists:seq(1, 20)],
    eventually(fun() ->
                       erlang:garbage_collect(),
                       query(C, "select count(*) from sqlite_stmt where sql = 'select 1'", [])
                           =:= [[0]]
               end),
    ok = sqlite:close(C).

a_database_goes_into_a_binary_and_back() ->
    C = numbers(1000),
    {ok, Binary} = sqlite:serialize(C),
    ?assertEqual({error, serialization_failed}, sqlite:serialize(C, "other")),
    D = memory(),
    ok = sqlite:deserialize(D, Binary),
    ?assertEqual([[1000, 500500]], query(D, "select count(*), sum(x) from n", [])),
    ?assertMatch({error, _}, sqlite:deserialize(D, "other", Binary)),
    ?assertEqual({error, deserialization_failed}, sqlite:deserialize(D, <<>>)),
    ?assertEqual([[1000]], query(D, "select count(*) from n", [])),
    [ok = sqlite:close(X) || X <- [C, D]].

an_empty_database_goes_into_a_binary() ->
    C = memory(),
    ok = sqlite:execute(C, "begin"),
    ?assertEqual({error, serialization_failed}, sqlite:serialize(C)),
    ok = sqlite:execute(C, "commit"),
    {ok, <<"SQLite format 3", 0, _/binary>> = Binary} = sqlite:serialize(C),
    D = numbers(1),
    ok = sqlite:deserialize(D, Binary),
    ?assertEqual([[0]], query(D, "select count(*) from sqlite_schema", [])),
    ?assertEqual(ok, sqlite:execute(D, "create table t(x)")),
    [ok = sqlite:close(X) || X <- [C, D]].

a_file_is_opened_as_asked() ->
    in_folder(fun(Path) ->
        ?assertEqual({error, database_open_failed}, sqlite:open(Path, [{mode, readwrite}])),
        {ok, C} = sqlite:open(Path),
        ok = sqlite:execute(C, "create table x(y); insert into x values(1)"),
        {ok, R} = sqlite:open(Path, [{mode, [readonly, nomutex]}]),
        ?assertEqual([[1]], query(R, "select y from x", [])),
        ?assertEqual({error, <<"attempt to write a readonly database">>},
                     sqlite:execute(R, "insert into x values(2)")),
        [ok = sqlite:close(X) || X <- [C, R]]
    end).

changes_are_sent() ->
    C = memory(),
    ok = sqlite:execute(C, "create table x(y)"),
    ok = sqlite:set_update_hook(C, self()),
    ok = sqlite:execute(C, "insert into x values(1); update x set y = 2; delete from x where y=2"),
    [receive Message -> ok after 240000 -> error({missing, Message}) end
     || Message <- [{What, <<"main">>, <<"x">>, 1} || What <- [insert, update, delete]]],
    ok = sqlite:close(C).

errors_are_sent_to_one_process() ->
    [C, D] = [memory(), memory()],
    Wrong = fun(Connection) -> {error, _} = sqlite:prepare(Connection, "such nonsense") end,
    Sent = {log, 1, <<"near \"such\": syntax error in \"such nonsense\"">>},
    ok = sqlite:set_log_hook(self()),
    [begin Wrong(X), receive Sent -> ok after 240000 -> error(silent) end end || X <- [C, D]],
    {Other, Monitor} = spawn_monitor(fun() ->
                                             ok = sqlite:set_log_hook(self()),
                                             Wrong(C),
                                             receive Sent -> ok end
                                     end),
    receive {'DOWN', Monitor, process, Other, Why} -> ?assertEqual(normal, Why) end,
    Wrong(C),
    ok = sqlite:set_log_hook(self()),
    ok = sqlite:set_log_hook(nil),
    Wrong(C),
    receive Sent -> error(sent) after 50 -> ok end,
    ?assertError(badarg, sqlite:set_log_hook(someone)),
    [ok = sqlite:close(X) || X <- [C, D]].

what_is_denied_is_not_prepared() ->
    C = memory(),
    ok = sqlite:set_authorizer(C, [attach, pragma]),
    ?assertEqual({error, <<"not authorized">>}, sqlite:execute(C, "pragma page_size")),
    ?assertError(badarg, sqlite:set_authorizer(C, [delete, fly])),
    ?assertEqual({error, <<"not authorized">>}, sqlite:execute(C, "attach ':memory:' as m")),
    ok = sqlite:set_authorizer(C, []),
    ?assertEqual(ok, sqlite:execute(C, "pragma page_size")),
    ok = sqlite:close(C).

a_long_script_is_prepared() ->
    C = memory(),
    ok = sqlite:execute(C, "create table x(y)"),
    Rows = lists:join($,, [["(", integer_to_list(N), ")"] || N <- lists:seq(1, 20000)]),
    ok = sqlite:execute(C, ["insert into x values", Rows, "; select 1"]),
    ?assertEqual([[20000, 200010000]], query(C, "select count(*), sum(y) from x", [])),
    Deep = ["select 1", lists:duplicate(990, "+1")],
    ?assertEqual([[991]], query(C, Deep, [])),
    ?assertEqual([[9901]], query(C, ["select 1", lists:duplicate(990, "+10")], [])),
    ?assertMatch({error, <<"Expression tree is too large", _/binary>>},
                 sqlite:prepare(C, ["select 1", lists:duplicate(1100, "+1")])),
    ok = sqlite:close(C).

%% On a dirty scheduler, since it takes long, and there with the stack that prepare asks for.
sql_that_nests_deep_is_prepared() ->
    C = memory(),
    Tables = [io_lib:format(", c~b(a) as (select a from c~b)", [N, N - 1])
              || N <- lists:seq(1, 1000)],
    {ok, S} = sqlite:prepare(C, ["with c0(a) as (select 1)", Tables, " select * from c1000"]),
    ?assertEqual({row, [1]}, sqlite:step(C, S)),
    ok = sqlite:close(C).

an_iolist_is_sql() ->
    C = memory(),
    ?assertEqual([[<<"é"/utf8>>]], query(C, ["select ", <<"'é'"/utf8>>], [])),
    ok = sqlite:close(C).

%% ---- help ----

memory() ->
    memory(persistent_term:get(?MODULE, memory)).

memory(memory) ->
    {ok, C} = sqlite:open(":memory:"),
    C;
%% Its name is gone, and it is there until it is closed.
memory(files) ->
    in_folder(fun(Path) ->
                      {ok, C} = sqlite:open(Path),
                      ok = sqlite:execute(C, "pragma journal_mode = memory"),
                      C
              end).

numbers(N) ->
    C = memory(),
    ok = sqlite:execute(C, ["create table n(x); with recursive c(x) as (select 1 union all select "
                            "x + 1 from c where x < ", integer_to_list(N),
                            ") insert into n select x from c"]),
    C.

prepared(C, Sql) ->
    {ok, S} = sqlite:prepare(C, Sql),
    S.

%% Whether this node has the file open.
is_open(Path) ->
    {ok, Names} = file:list_dir("/proc/self/fd"),
    lists:any(fun(Name) -> file:read_link(filename:join("/proc/self/fd", Name))
                               =:= {ok, filename:absname(Path)} end, Names).

query(C, Sql, Values) ->
    {ok, S} = sqlite:prepare(C, Sql),
    ok = sqlite:bind(S, Values),
    {ok, Rows} = sqlite:fetch_all(C, S),
    ok = sqlite:release(C, S),
    Rows.

in_folder(Fun) ->
    Folder = filename:join("_build", "sqlite_" ++ integer_to_list(erlang:unique_integer([positive]))
                           ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    try Fun(filename:join(Folder, "test.db")) after file:del_dir_r(Folder) end.
