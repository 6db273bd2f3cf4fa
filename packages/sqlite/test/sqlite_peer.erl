%% exqlite's NIF, built from its source against the same library as ours, to be measured beside it;
%% and what Exqlite.Sqlite3 does with it.
%%
%% FAIRNIF_EXQLITE names the folder of its source.
-module(sqlite_peer).

-export([load/0, open/1, execute/2, prepare/2, lookup/3, insert/3, fetch_all/2, changes/1,
         close/1]).

-define(NIF, 'Elixir.Exqlite.Sqlite3NIF').

-define(FUNCTIONS,
        [{open, 2}, {close, 1}, {execute, 2}, {changes, 1}, {prepare, 2}, {reset, 1},
         {bind_parameter_count, 1}, {bind_parameter_index, 2}, {bind_text, 3}, {bind_blob, 3},
         {bind_integer, 3}, {bind_float, 3}, {bind_null, 2}, {step, 2}, {multi_step, 3},
         {columns, 2}, {last_insert_rowid, 1}, {transaction_status, 1}, {serialize, 2},
         {deserialize, 3}, {release, 2}, {enable_load_extension, 2}, {set_update_hook, 2},
         {set_authorizer, 2}, {set_log_hook, 1}, {interrupt, 1}, {set_busy_timeout, 2},
         {set_progress_handler_steps, 2}, {cancel, 1}, {errmsg, 1}, {errstr, 1}]).

%% @doc Builds and loads it: `{error, Why}' where there is none.
-spec load() -> ok | {error, string()}.
load() ->
    case os:getenv("FAIRNIF_EXQLITE") of
        false -> {error, "exqlite is not compared: FAIRNIF_EXQLITE does not name its source"};
        Folder -> built(filename:join(Folder, "c_src/sqlite3_nif.c"))
    end.

built(Source) ->
    Library = filename:absname("_build/sqlite3_nif"),
    Include = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "include"]),
    Command = ["cc -O2 -fPIC -shared -w -I", Include, " -o ", Library, ".so ", Source,
               " -lsqlite3 2>&1 && echo built"],
    case string:find(os:cmd(lists:flatten(Command)), "built") of
        nomatch -> {error, "exqlite does not build: " ++ Source};
        _ -> loaded(Library)
    end.

loaded(Library) ->
    Head = io_lib:format("-module(~p). -compile([export_all, nowarn_export_all]). "
                         "-on_load(init/0). init() -> erlang:load_nif(~p, 0). ", [?NIF, Library]),
    Stubs = [Head | [io_lib:format("~p(~s) -> erlang:nif_error(not_loaded). ",
                                   [F, lists:join($,, lists:duplicate(A, "_"))])
                     || {F, A} <- ?FUNCTIONS]],
    {ok, ?NIF, Code} = compile:forms(forms(lists:flatten(Stubs))),
    {module, ?NIF} = code:load_binary(?NIF, "stubs", Code),
    ok.

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    parsed(Tokens, []).

parsed([], Forms) ->
    lists:reverse(Forms);
parsed(Tokens, Forms) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(T) -> element(1, T) =/= dot end, Tokens),
    {ok, Parsed} = erl_parse:parse_form(Form ++ [Dot]),
    parsed(Rest, [Parsed | Forms]).

open(Path) -> ?NIF:open(Path, 16#2 bor 16#4).
execute(Connection, Sql) -> ?NIF:execute(Connection, Sql).
prepare(Connection, Sql) -> ?NIF:prepare(Connection, Sql).
changes(Connection) -> ?NIF:changes(Connection).
close(Connection) -> ?NIF:close(Connection).

%% bind/2 asks for the count and binds one by one; multi_step/3 resets at the end.
lookup(Connection, Statement, Key) ->
    1 = ?NIF:bind_parameter_count(Statement),
    0 = ?NIF:bind_integer(Statement, 1, Key),
    {done, Rows} = ?NIF:multi_step(Connection, Statement, 50),
    lists:reverse(Rows).

insert(Connection, Statement, {Key, Text}) ->
    2 = ?NIF:bind_parameter_count(Statement),
    0 = ?NIF:bind_integer(Statement, 1, Key),
    0 = ?NIF:bind_text(Statement, 2, Text),
    done = ?NIF:step(Connection, Statement),
    ok.

fetch_all(Connection, Statement) ->
    case ?NIF:multi_step(Connection, Statement, 50) of
        {done, Rows} -> lists:reverse(Rows);
        {rows, Rows} -> lists:reverse(Rows) ++ fetch_all(Connection, Statement);
        Other -> Other
    end.
