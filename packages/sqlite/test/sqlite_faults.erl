%% A node whose files in one folder lie on a disk that fails, is full or is slow when asked to
%% (sqlite_faults.c, before libc). The tests' functions run there, by call/3.
-module(sqlite_faults).

-export([start/0, start/1, start/2, stop/1, dir/1, call/3]).
-export([set/2, failed/1, left/1, kill/1, ended/1]).

-record(disk, {peer, node_pid, dir, control}).

%% As in sqlite_faults.c.
-define(KINDS, #{read => 1, write => 2, sync => 4, truncate => 8, open => 16, unlink => 32,
                 lock => 64, map => 128, stat => 256, wal => 512,
                 journal => 1024}).
-define(ERRORS, #{eio => 5, enospc => 28, short => -1, die => -2}).
-define(LEFT, 0).
-define(FAILED, 32).

start() ->
    start([]).

%% With more arguments of the emulator.
start(Args) ->
    start(Args, none).

%% With that folder on the disk, and not one of its own.
start(Args, Files) ->
    Dir = filename:absname("_build/disk." ++ os:getpid()) ++ "/" ++ unique(),
    ok = filelib:ensure_dir(Dir ++ "/files/x"),
    Control = Dir ++ "/control",
    ok = file:write_file(Control, <<0:36/unit:8>>),
    Library = Dir ++ "/faults.so",
    compile(Library),
    {ok, Peer, _} =
        peer:start(#{connection => standard_io, wait_boot => 60000,
                     env => [{"LD_PRELOAD", preload(Library)}, {"FAULTS_CONTROL", Control},
                             {"FAULTS_DIR", on_disk(Dir, Files)}],
                     args => ["-pa" | code:get_path()] ++ Args}),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [fairnif]),
    #disk{peer = Peer, node_pid = peer:call(Peer, os, getpid, []), dir = Dir, control = Control}.

%% After what the tests themselves run under: a sanitizer's comes first.
preload(Library) ->
    case os:getenv("LD_PRELOAD") of
        false -> Library;
        Others -> Others ++ ":" ++ Library
    end.

on_disk(Dir, none) -> Dir ++ "/files/";
on_disk(_, Files) -> Files ++ "/db".

unique() ->
    integer_to_list(erlang:unique_integer([positive])).

compile(Library) ->
    "" = os:cmd("cc -O1 -Wall -Wextra -Werror -shared -fPIC -o " ++ Library
                ++ " test/sqlite_faults.c").

stop(#disk{peer = Peer, dir = Dir}) ->
    try peer:stop(Peer) catch exit:_ -> ok end,     % it may have been killed
    ok = file:del_dir_r(Dir).

%% At once, whatever it is doing.
kill(#disk{peer = Peer, node_pid = Pid}) ->
    Ref = monitor(process, Peer),
    unlink(Peer),
    "" = os:cmd("kill -KILL " ++ Pid),
    receive {'DOWN', Ref, process, Peer, _} -> ok end.

%% Of the files on the disk, with a slash.
dir(#disk{dir = Dir}) ->
    Dir ++ "/files/".

call(#disk{peer = Peer}, Fun, Args) ->
    {module, Module} = erlang:fun_info(Fun, module),
    {name, Name} = erlang:fun_info(Fun, name),
    peer:call(Peer, Module, Name, Args, 120000).

%% What the disk does from now on. nth: which of the calls of `kinds' fails with `error', and with
%% `lasting' all that follow too. slow: calls of these kinds take that many microseconds more. cold:
%% nothing is in the page cache. lazy: syncing is no work.
set(#disk{control = Control}, What) ->
    Get = fun(Key, Default) -> maps:get(Key, What, Default) end,
    {SlowKinds, SlowUs} = Get(slow, {[], 0}),
    Fields = [Get(nth, 0), kinds(Get(kinds, [])), maps:get(Get(error, eio), ?ERRORS),
              bool(Get(lasting, false)), kinds(SlowKinds), SlowUs, bool(Get(cold, false)),
              bool(Get(lazy, true)), 0],
    %% Not armed before all is there.
    [_ | Rest] = Binaries = [<<F:32/native>> || F <- Fields],
    write(Control, ?LEFT, <<0:32>>),
    write(Control, 4, Rest),
    write(Control, ?LEFT, hd(Binaries)).

bool(true) -> 1;
bool(false) -> 0.

kinds(Names) ->
    lists:sum([maps:get(Name, ?KINDS) || Name <- Names]).

write(Control, At, Data) ->
    {ok, File} = file:open(Control, [raw, read, write, binary]),
    ok = file:pwrite(File, At, Data),
    ok = file:close(File).

%% It was asked to die.
ended(#disk{peer = Peer}) ->
    Ref = monitor(process, Peer),
    receive {'DOWN', Ref, process, Peer, _} -> ok after 60000 -> error(alive) end.

%% How many calls are still to come before one fails.
left(#disk{control = Control}) ->
    {ok, <<Left:32/native, _/binary>>} = file:read_file(Control),
    Left.

%% How many calls have failed since set/2.
failed(#disk{control = Control}) ->
    {ok, <<_:?FAILED/binary, Failed:32/native, _/binary>>} = file:read_file(Control),
    Failed.
