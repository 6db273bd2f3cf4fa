%% The terminal's other side: its keys, its size, and its state before and after.
%%
%% The emulator started with -noinput reads no keys, and could not put the terminal back when it is
%% killed. A shell does both: it lives as long as its standard input is open, which is as long as
%% the emulator lives, and its last act is to put everything back, however the emulator ended.
-module(fairnif_watch_keyboard).

-export([open/1, look/1, close/1, parse/1]).

-export_type([keyboard/0, input/0]).

-opaque keyboard() :: port().
-type input() :: up | down | enter | back | quit
               | {size, Rows :: pos_integer(), Columns :: pos_integer()}.

%% Keys come as they are pressed, the size when it is asked for, between a control character that is
%% no key and a line's end. Without isig Ctrl-C is a key, so that it ends us in good order.
-define(SHELL, "
exec 2>/dev/null
saved=$(stty -g <\"$1\") || exit 1
stty -icanon -echo -isig min 1 time 0 <\"$1\" || exit 1
printf '\\033[?1049h\\033[?25l\\033[?7l' >\"$1\"
cat <\"$1\" &
keys=$!
while read -r said && [ \"$said\" = size ]; do
    printf '\\036%s\\n' \"$(stty size <\"$1\")\"
done
kill \"$keys\"
printf '\\033[?7h\\033[?25h\\033[?1049l' >\"$1\"
stty \"$saved\" <\"$1\"
").

%% By the last byte of what a key sends. 3, 4, 28, 127: Ctrl-C, Ctrl-D, Ctrl-\, backspace.
-define(KEYS, #{$k => up, $j => down, $\r => enter, $\n => enter, $\e => back, 127 => back,
                $q => quit, 3 => quit, 4 => quit, 28 => quit}).
%% Cursor keys, as terminals send them in either of their modes, with or without shift.
-define(CURSOR, #{$A => up, $B => down}).
-define(TOKEN, "(\\x1e[^\\n]*\\n|\\e[[O][!-?]*[@-~]?|.)").

%% @doc Takes the terminal of this path: alternate screen, no cursor, no echo. The caller gets
%% `{Port, {data, Bytes}}' for parse/1, and `{Port, {exit_status, _}}' where it can't be had. All is
%% put back when the caller ends, or the emulator.
-spec open(file:filename()) -> keyboard().
open(Tty) ->
    open_port({spawn_executable, "/bin/sh"},
              [{args, ["-c", ?SHELL, "fairnif", Tty]}, binary, exit_status]).

%% @doc Asks for the size, which comes as input. Where it has gone, no more happens.
-spec look(keyboard()) -> ok.
look(Port) -> say(<<"size\n">>, Port).

%% @doc Puts everything back, and answers when that is done (a second, at most).
-spec close(keyboard()) -> ok.
close(Port) ->
    say(<<"end\n">>, Port),
    receive {Port, {exit_status, _}} -> ok after 1000 -> ok end.

say(Word, Port) ->
    _ = try port_command(Port, Word) catch error:badarg -> gone end,
    ok.

%% @doc What was pressed or said, and the bytes whose rest is still to come. Keys that mean nothing
%% are left out.
-spec parse(binary()) -> {[input()], Rest :: binary()}.
parse(Bytes) ->
    [Whole | Rest] = re:split(Bytes, "(?=\\x1e[^\\n]*\\z)"),
    Tokens = re:split(Whole, ?TOKEN, [dotall, trim]),
    {lists:append([input(Token) || Token <- Tokens, Token =/= <<>>]), iolist_to_binary(Rest)}.

%% A terminal that doesn't say, such as a serial line, has no rows.
input(<<30, Said/binary>>) ->
    case io_lib:fread("~d ~d", binary_to_list(Said)) of
        {ok, [Rows, Columns], _} when Rows > 0, Columns > 0 -> [{size, Rows, Columns}];
        _ -> []
    end;
input(<<Byte>>) -> maps:values(maps:with([Byte], ?KEYS));
input(Sequence) -> maps:values(maps:with([binary:last(Sequence)], ?CURSOR)).
