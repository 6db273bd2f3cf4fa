%% @doc A terminal as straight-line C on fairnif: lines, secrets, the window's size.
%%
%% Who waits for a line is suspended in the middle of a C function, and holds
%% neither a scheduler nor a thread. A terminal that was opened belongs to the
%% caller, and is closed when he dies.
-module(tty).

-export([open/0, open/1, read_line/1, read_line/2, read_secret/1, read_secret/2]).
-export([write/2, write/3, size/1, close/1]).

-export_type([tty/0, reason/0]).

-nifs([nif_open/1, nif_read_line/2, nif_read_secret/2, nif_write/3, size/1,
       close/1]).

-on_load(init/0).

-compile({no_auto_import, [size/1]}).

-opaque tty() :: reference().
-type reason() :: closed | timeout | enotty | file:posix() | atom().

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @equiv open("/dev/tty")
-spec open() -> {ok, tty()} | {error, reason()}.
open() ->
    open("/dev/tty").

%% @doc Opens a terminal by its name. A file that is none is `{error, enotty}'. Takes
%% a dirty I/O scheduler for a moment.
-spec open(file:name_all()) -> {ok, tty()} | {error, reason()}.
open(Path) ->
    nif_open(<<(iolist_to_binary(filename:absname(Path)))/binary, 0>>).

%% @equiv read_line(Tty, infinity)
-spec read_line(tty()) -> {ok, binary()} | eof | {error, reason()}.
read_line(Tty) ->
    read_line(Tty, infinity).

%% @doc The next line, with its newline, when Enter has been pressed: until then
%% the user may edit it. `eof' for Ctrl-D. After `{error, timeout}' what was typed
%% belongs to the next call. One process at a time: a second gets
%% `{error, ebusy}'.
-spec read_line(tty(), timeout()) -> {ok, binary()} | eof | {error, reason()}.
read_line(Tty, Timeout) ->
    fairnif:await(nif_read_line(Tty, ms(Timeout))).

%% @equiv read_secret(Tty, infinity)
-spec read_secret(tty()) -> {ok, binary()} | eof | {error, reason()}.
read_secret(Tty) ->
    read_secret(Tty, infinity).

%% @doc The same, and nothing of it is shown. The terminal shows again what is typed
%% when the call is over, also when its caller is killed.
-spec read_secret(tty(), timeout()) -> {ok, binary()} | eof | {error, reason()}.
read_secret(Tty, Timeout) ->
    fairnif:await(nif_read_secret(Tty, ms(Timeout))).

%% @equiv write(Tty, Data, infinity)
-spec write(tty(), iodata()) -> ok | {error, reason()}.
write(Tty, Data) ->
    write(Tty, Data, infinity).

%% @doc Writes all of it; waits while the terminal takes no more, which it may do
%% for good after Ctrl-S. `Timeout' is that of each such wait.
-spec write(tty(), iodata(), timeout()) -> ok | {error, reason()}.
write(Tty, Data, Timeout) ->
    fairnif:await(nif_write(Tty, Data, ms(Timeout))).

%% @doc The window's size now, in characters; zeros where the terminal does not
%% know it. Ask again after each change: the signal that tells of one is the VM's.
-spec size(tty()) -> {ok, {Columns :: non_neg_integer(), Rows :: non_neg_integer()}}
              | {error, reason()}.
size(_Tty) -> erlang:nif_error(not_loaded).

%% @doc Closes it; who waits for it gets `{error, closed}'.
-spec close(tty()) -> ok.
close(_Tty) -> erlang:nif_error(not_loaded).

nif_open(_Path) -> erlang:nif_error(not_loaded).
nif_read_line(_Tty, _Ms) -> erlang:nif_error(not_loaded).
nif_read_secret(_Tty, _Ms) -> erlang:nif_error(not_loaded).
nif_write(_Tty, _Data, _Ms) -> erlang:nif_error(not_loaded).

ms(infinity) -> -1;
ms(Ms) when is_integer(Ms), Ms >= 0 -> Ms.
