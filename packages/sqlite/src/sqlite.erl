%% @doc SQLite. Queries run in slices on the caller's scheduler, however long they are; what waits
%% for another connection's lock or for a file is suspended; a query whose caller dies ends within a
%% slice.
%%
%% Names and answers are those of exqlite's `Exqlite.Sqlite3'. A connection may be shared by
%% processes: its calls come one after the other, in their order. A connection is closed by close/1,
%% or when no process can reach it nor a statement of its any more.
%%
%% Errors of SQLite's are `{error, Message}', a binary; error/1 has the code. Others are atoms:
%% `invalid_connection', `invalid_statement' (released, too), `connection_closed', `out_of_memory';
%% `connection_lost' after memory was out while a call was to be cancelled. What is no value for an
%% argument raises `badarg'.
-module(sqlite).

-export([open/1, open/2, close/1, close/2]).
-export([execute/2, prepare/2, release/2, reset/1, columns/2]).
-export([bind/2, bind_parameter_count/1, bind_parameter_index/2]).
-export([bind_text/3, bind_blob/3, bind_integer/3, bind_float/3, bind_null/2]).
-export([step/2, multi_step/2, multi_step/3, fetch_all/2, fetch_all/3]).
-export([changes/1, last_insert_rowid/1, transaction_status/1, error/1, errmsg/1, errstr/1]).
-export([interrupt/1, cancel/1, set_busy_timeout/2, set_progress_handler_steps/2]).
-export([set_authorizer/2, set_update_hook/2, set_log_hook/1]).
-export([enable_load_extension/2, shrink_memory/1]).
-export([serialize/1, serialize/2, deserialize/2, deserialize/3]).
-export([plain_fetch_all/2, dirty_fetch_all/2]).

-export_type([connection/0, statement/0, value/0, row/0, reason/0, option/0, mode/0]).

-nifs([nif_open/4, nif_close/2, nif_execute/2, nif_prepare/2, nif_step/2, nif_multi_step/3,
       nif_fetch_all/2, nif_bind/2, nif_bind_named/2, nif_bind_one/3, nif_parameter_count/1,
       nif_parameter_index/2, nif_columns/2, nif_reset/1, nif_release/2, nif_changes/1,
       nif_last_insert_rowid/1, nif_transaction_status/1, nif_error/1, nif_set/3, nif_serialize/2,
       nif_deserialize/3, nif_interrupt/2, nif_errstr/1, set_log_hook/1, plain_fetch_all/2,
       dirty_fetch_all/2]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-opaque connection() :: reference().
-opaque statement() :: reference().
-type value() :: integer() | float() | iodata() | {blob, iodata()} | nil | undefined | atom().
%% Text is a binary or a list. An atom but `nil' and `undefined' is its name.
-type row() :: [integer() | float() | binary() | nil].
-type reason() :: binary() | atom().
-type mode() :: readwrite | readonly | create | nomutex.
-type option() :: {mode, mode() | [mode()]}
                | {busy_timeout, Ms :: non_neg_integer()}
                | {killed, rollback | keep}.
%% mode: [readwrite, create] if not given; nomutex is the case anyway.
%% busy_timeout: how long a call waits for a lock of the database's; 2000.
%% killed: what becomes of an open transaction when a caller is killed in a call; rollback.

-define(READONLY, 1).
-define(READWRITE, 2).
-define(CREATE, 4).

init() -> ?FAIRNIF_LOAD.

%% @equiv open(Path, [])
-spec open(unicode:chardata()) -> {ok, connection()} | {error, reason()}.
open(Path) ->
    open(Path, []).

%% @doc Opens a database: a file, or `":memory:"'. A file is opened on a thread of the runtime's.
-spec open(unicode:chardata(), [option()]) -> {ok, connection()} | {error, reason()}.
open(Path, Options) ->
    Flags = flags(proplists:get_value(mode, Options, [readwrite, create])),
    Busy = proplists:get_value(busy_timeout, Options, 2000),
    Rollback = case proplists:get_value(killed, Options, rollback) of
                   rollback -> 1;
                   keep -> 0;
                   _ -> erlang:error(badarg, [Path, Options])
               end,
    case unicode:characters_to_binary(Path) of
        Name when is_binary(Name) -> fairnif:await(nif_open(Name, Flags, Busy, Rollback));
        _ -> {error, invalid_filename}
    end.

flags(nomutex) -> erlang:error(badarg);
flags(Mode) when is_atom(Mode) -> flags([Mode]);
flags([_ | _] = Modes) -> lists:foldl(fun(Mode, Flags) -> flag(Mode) bor Flags end, 0, Modes);
flags(_) -> erlang:error(badarg).

flag(readonly) -> ?READONLY;
flag(readwrite) -> ?READWRITE;
flag(create) -> ?CREATE;
flag(nomutex) -> 0;
flag(_) -> erlang:error(badarg).

%% @equiv close(Connection, [])
-spec close(connection() | nil | undefined) -> ok | {error, reason()}.
close(Connection) ->
    close(Connection, []).

%% @doc Rolls back what is open, releases all statements, closes the files. Again: `ok'.
%%
%% `{statements, keep}', as exqlite: statements can still be bound and run. The files are closed
%% with the last one, when it is released or no process can reach it.
-spec close(connection() | nil | undefined, [{statements, release | keep}]) ->
          ok | {error, reason()}.
close(None, _) when None =:= nil; None =:= undefined -> ok;
close(Connection, Options) ->
    Keep = case proplists:get_value(statements, Options, release) of
               release -> 0;
               keep -> 1;
               _ -> erlang:error(badarg, [Connection, Options])
           end,
    fairnif:await(nif_close(Connection, Keep)).

%% @doc Runs all statements of a script; their rows are dropped.
-spec execute(connection(), iodata()) -> ok | {error, reason()}.
execute(Connection, Sql) ->
    fairnif:await(nif_execute(Connection, Sql)).

%% @doc The first statement of Sql, compiled. Other processes may use it, too, in turns.
-spec prepare(connection(), iodata()) -> {ok, statement()} | {error, reason()}.
prepare(Connection, Sql) ->
    fairnif:await(nif_prepare(Connection, Sql)).

%% @doc Releases a statement at once, and the binaries bound to it. Again: `ok'.
-spec release(connection(), statement() | nil | undefined) -> ok | {error, reason()}.
release(_, None) when None =:= nil; None =:= undefined -> ok;
release(Connection, Statement) -> fairnif:await(nif_release(Connection, Statement)).

%% @doc The next step begins again. What is bound stays.
-spec reset(statement()) -> ok | {error, reason()}.
reset(Statement) ->
    fairnif:await(nif_reset(Statement)).

%% @doc Names of the columns.
-spec columns(connection(), statement()) -> {ok, [binary()]} | {error, reason()}.
columns(Connection, Statement) ->
    fairnif:await(nif_columns(Connection, Statement)).

%% @doc Binds values to all parameters: a list in their order, or a map by their names with their
%% `:', `@' or `$'. Binaries over 4 kB are not copied; the statement keeps them.
%%
%% Raises `{arguments, Wanted, Given}' when there are too few or too many, `{unknown, Name}',
%% `{unsupported, Values}'. A statement that is between two rows is to be reset first: else
%% `{error, Message}'.
-spec bind(statement(), [value()] | #{unicode:chardata() | atom() => value()} | nil) ->
          ok | {error, reason()}.
bind(Statement, nil) ->
    bind(Statement, []);
bind(Statement, Values) when is_list(Values) ->
    case fairnif:await(nif_bind(Statement, [converted(V) || V <- Values])) of
        {arguments, Wanted} -> erlang:error({arguments, Wanted, length(Values)});
        unsupported -> erlang:error({unsupported, Values});
        Answer -> Answer
    end;
bind(Statement, Values) when is_map(Values) ->
    case bind_parameter_count(Statement) of
        Count when Count =:= map_size(Values) -> bind_named(Statement, Values);
        {error, _} = Error -> Error;
        Count -> erlang:error({arguments, Count, map_size(Values)})
    end.

bind_named(Statement, Values) ->
    Named = [{name(Name), converted(V)} || {Name, V} <- maps:to_list(Values)],
    case fairnif:await(nif_bind_named(Statement, Named)) of
        {unknown, Name} -> erlang:error({unknown, Name});
        unsupported -> erlang:error({unsupported, Values});
        Answer -> Answer
    end.

name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) -> unicode:characters_to_binary(Name).

%% What the NIF takes.
converted(Nil) when Nil =:= nil; Nil =:= undefined -> nil;
converted(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
converted(List) when is_list(List) -> unicode_or_bytes(List);
converted({blob, List}) when is_list(List) -> {blob, iolist_to_binary(List)};
converted(Value) -> Value.

unicode_or_bytes(List) ->
    try iolist_to_binary(List)
    catch error:badarg -> unicode:characters_to_binary(List)
    end.

-spec bind_parameter_count(statement()) -> non_neg_integer() | {error, reason()}.
bind_parameter_count(Statement) ->
    fairnif:await(nif_parameter_count(Statement)).

%% @doc From 1; 0 for a name that is none.
-spec bind_parameter_index(statement(), iodata()) -> non_neg_integer() | {error, reason()}.
bind_parameter_index(Statement, Name) ->
    fairnif:await(nif_parameter_index(Statement, iolist_to_binary(Name))).

%% @doc Binds one value: its index is counted from 1.
-spec bind_text(statement(), pos_integer(), binary()) -> ok | {error, reason()}.
bind_text(Statement, Index, Text) when is_binary(Text) -> bind_one(Statement, Index, Text).

-spec bind_blob(statement(), pos_integer(), binary()) -> ok | {error, reason()}.
bind_blob(Statement, Index, Blob) when is_binary(Blob) -> bind_one(Statement, Index, {blob, Blob}).

-spec bind_integer(statement(), pos_integer(), integer()) -> ok | {error, reason()}.
bind_integer(Statement, Index, Value) when is_integer(Value) -> bind_one(Statement, Index, Value).

-spec bind_float(statement(), pos_integer(), float()) -> ok | {error, reason()}.
bind_float(Statement, Index, Value) when is_float(Value) -> bind_one(Statement, Index, Value).

-spec bind_null(statement(), pos_integer()) -> ok | {error, reason()}.
bind_null(Statement, Index) -> bind_one(Statement, Index, nil).

bind_one(Statement, Index, Value) ->
    case fairnif:await(nif_bind_one(Statement, Index, Value)) of
        unsupported -> erlang:error({unsupported, Value});
        Answer -> Answer
    end.

%% @doc The next row. `busy': another connection had the lock for longer than busy_timeout.
-spec step(connection(), statement()) -> {row, row()} | done | busy | {error, reason()}.
step(Connection, Statement) ->
    fairnif:await(nif_step(Connection, Statement)).

%% @equiv multi_step(Connection, Statement, 50)
-spec multi_step(connection(), statement()) ->
          {rows | done, [row()]} | busy | {error, reason()}.
multi_step(Connection, Statement) ->
    multi_step(Connection, Statement, 50).

%% @doc The next Most rows, with `rows'; or the last ones, with `done'.
-spec multi_step(connection(), statement(), Most :: pos_integer()) ->
          {rows | done, [row()]} | busy | {error, reason()}.
multi_step(Connection, Statement, Most) ->
    fairnif:await(nif_multi_step(Connection, Statement, Most)).

%% @doc All rows that are left. The connection is this call's until they are there.
-spec fetch_all(connection(), statement()) -> {ok, [row()]} | {error, reason()}.
fetch_all(Connection, Statement) ->
    case fairnif:await(nif_fetch_all(Connection, Statement)) of
        busy -> {error, <<"Database busy">>};
        Answer -> Answer
    end.

%% @doc The same, with exqlite's argument: rows are not fetched in chunks here.
-spec fetch_all(connection(), statement(), pos_integer()) -> {ok, [row()]} | {error, reason()}.
fetch_all(Connection, Statement, _Chunk) ->
    fetch_all(Connection, Statement).

%% @doc Rows that the latest INSERT, UPDATE or DELETE changed.
-spec changes(connection()) -> {ok, non_neg_integer()} | {error, reason()}.
changes(Connection) ->
    fairnif:await(nif_changes(Connection)).

-spec last_insert_rowid(connection()) -> {ok, integer()} | {error, reason()}.
last_insert_rowid(Connection) ->
    fairnif:await(nif_last_insert_rowid(Connection)).

%% @doc `error' when the connection is closed.
-spec transaction_status(connection()) -> {ok, idle | transaction | error} | {error, reason()}.
transaction_status(Connection) ->
    fairnif:await(nif_transaction_status(Connection)).

%% @doc SQLite's extended result code, and its message, of the connection's latest call.
-spec error(connection() | statement()) -> {Code :: integer(), binary()} | {error, reason()}.
error(Connection) ->
    fairnif:await(nif_error(Connection)).

%% @doc Its message; `nil' of a statement that was released.
-spec errmsg(connection() | statement()) -> binary() | nil | {error, reason()}.
errmsg(Connection) ->
    case ?MODULE:error(Connection) of
        {error, invalid_statement} -> nil;
        {error, _} = Error -> Error;
        {_, Message} -> Message
    end.

%% @doc What a result code means.
-spec errstr(integer()) -> binary().
errstr(Code) ->
    nif_errstr(Code).

%% @doc Ends the query that runs on a connection, with `{error, <<"interrupted">>}'. Does not wait,
%% and does not end a wait for a lock: cancel/1 does.
-spec interrupt(connection() | nil | undefined) -> ok | {error, reason()}.
interrupt(None) when None =:= nil; None =:= undefined -> ok;
interrupt(Connection) -> nif_interrupt(Connection, 0).

%% @doc The same, and the wait for a lock: within 50 ms. The connection can be used again.
-spec cancel(connection() | nil | undefined) -> ok | {error, reason()}.
cancel(None) when None =:= nil; None =:= undefined -> ok;
cancel(Connection) -> nif_interrupt(Connection, 1).

-spec set_busy_timeout(connection(), Ms :: integer()) -> ok | {error, reason()}.
set_busy_timeout(Connection, Ms) ->
    fairnif:await(nif_set(Connection, busy_timeout, Ms)).

%% @doc For exqlite's sake; changes nothing: queries always tick.
-spec set_progress_handler_steps(connection(), integer()) -> ok | {error, reason()}.
set_progress_handler_steps(Connection, Steps) when is_integer(Steps) ->
    case transaction_status(Connection) of
        {ok, error} -> {error, connection_closed};
        {ok, _} -> ok;
        Error -> Error
    end.

%% @doc What statements that are prepared from now on must not do: `[attach, pragma, ...]', SQLite's
%% names of actions in small letters. `[]' allows everything.
-spec set_authorizer(connection(), Denied :: [atom()]) -> ok | {error, reason()}.
set_authorizer(Connection, Denied) ->
    fairnif:await(nif_set(Connection, authorizer, Denied)).

%% @doc From now on Pid gets `{insert | update | delete, Database, Table, RowId}' for each row that
%% this connection changes.
-spec set_update_hook(connection(), pid()) -> ok | {error, reason()}.
set_update_hook(Connection, Pid) ->
    fairnif:await(nif_set(Connection, update_hook, Pid)).

%% @doc From now on Pid gets `{log, ResultCode, Message}' for what SQLite writes to its error log,
%% of every connection in the node: it is a setting of the whole library. The latest Pid gets it;
%% `nil': no process. `{error, library_in_use}': something else in the node used the library before
%% it was loaded here, and it is of a version that takes no log any more then.
-spec set_log_hook(pid() | nil | undefined) -> ok | {error, library_in_use}.
set_log_hook(_Pid) -> erlang:nif_error(not_loaded).

%% @doc Whether SQL may load extensions: code that does not tick.
-spec enable_load_extension(connection(), boolean()) -> ok | {error, reason()}.
enable_load_extension(Connection, true) -> fairnif:await(nif_set(Connection, load_extension, 1));
enable_load_extension(Connection, false) -> fairnif:await(nif_set(Connection, load_extension, 0)).

-spec shrink_memory(connection()) -> ok | {error, reason()}.
shrink_memory(Connection) ->
    execute(Connection, <<"PRAGMA shrink_memory">>).

%% @equiv serialize(Connection, <<"main">>)
-spec serialize(connection()) -> {ok, binary()} | {error, reason()}.
serialize(Connection) ->
    serialize(Connection, <<"main">>).

%% @doc A whole database as a binary, on a thread of the runtime's. Of one that nothing was written
%% to its first page is made.
-spec serialize(connection(), iodata()) -> {ok, binary()} | {error, reason()}.
serialize(Connection, Database) ->
    fairnif:await(nif_serialize(Connection, Database)).

%% @equiv deserialize(Connection, <<"main">>, Serialized)
-spec deserialize(connection(), binary()) -> ok | {error, reason()}.
deserialize(Connection, Serialized) ->
    deserialize(Connection, <<"main">>, Serialized).

%% @doc The database is from now on what serialize/2 made, in memory, and copied.
-spec deserialize(connection(), iodata(), binary()) -> ok | {error, reason()}.
deserialize(Connection, Database, Serialized) ->
    fairnif:await(nif_deserialize(Connection, Database, Serialized)).

%% @doc fetch_all/2 as a plain NIF, in one go. `busy': another process uses the connection.
-spec plain_fetch_all(connection(), statement()) -> {ok, [row()]} | busy | {error, reason()}.
plain_fetch_all(_Connection, _Statement) -> erlang:nif_error(not_loaded).

%% @doc The same on a dirty I/O scheduler.
-spec dirty_fetch_all(connection(), statement()) -> {ok, [row()]} | busy | {error, reason()}.
dirty_fetch_all(_Connection, _Statement) -> erlang:nif_error(not_loaded).

nif_open(_Path, _Flags, _Busy, _Rollback) -> erlang:nif_error(not_loaded).
nif_close(_Connection, _Keep) -> erlang:nif_error(not_loaded).
nif_execute(_Connection, _Sql) -> erlang:nif_error(not_loaded).
nif_prepare(_Connection, _Sql) -> erlang:nif_error(not_loaded).
nif_step(_Connection, _Statement) -> erlang:nif_error(not_loaded).
nif_multi_step(_Connection, _Statement, _Most) -> erlang:nif_error(not_loaded).
nif_fetch_all(_Connection, _Statement) -> erlang:nif_error(not_loaded).
nif_bind(_Statement, _Values) -> erlang:nif_error(not_loaded).
nif_bind_named(_Statement, _Values) -> erlang:nif_error(not_loaded).
nif_bind_one(_Statement, _Index, _Value) -> erlang:nif_error(not_loaded).
nif_parameter_count(_Statement) -> erlang:nif_error(not_loaded).
nif_parameter_index(_Statement, _Name) -> erlang:nif_error(not_loaded).
nif_columns(_Connection, _Statement) -> erlang:nif_error(not_loaded).
nif_reset(_Statement) -> erlang:nif_error(not_loaded).
nif_release(_Connection, _Statement) -> erlang:nif_error(not_loaded).
nif_changes(_Connection) -> erlang:nif_error(not_loaded).
nif_last_insert_rowid(_Connection) -> erlang:nif_error(not_loaded).
nif_transaction_status(_Connection) -> erlang:nif_error(not_loaded).
nif_error(_Connection) -> erlang:nif_error(not_loaded).
nif_set(_Connection, _What, _Value) -> erlang:nif_error(not_loaded).
nif_serialize(_Connection, _Database) -> erlang:nif_error(not_loaded).
nif_deserialize(_Connection, _Database, _Serialized) -> erlang:nif_error(not_loaded).
nif_interrupt(_Connection, _Cancel) -> erlang:nif_error(not_loaded).
nif_errstr(_Code) -> erlang:nif_error(not_loaded).
