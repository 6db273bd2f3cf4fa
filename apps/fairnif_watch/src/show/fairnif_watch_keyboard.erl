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

%% @doc Takes the terminal of this path: alternate screen, no cursor, no echo. The caller gets
%% `{Port, {data, Bytes}}', which parse/1 understands, and `{Port, {exit_status, _}}' where it can't
%% be had. Puts everything back when the caller ends, or the emulator.
-spec open(file:filename()) -> keyboard().
open(Tty) ->
    open_port({spawn_executable, "/bin/sh"},
              [{args, ["-c", ?SHELL, "fairnif", Tty]}, binary, exit_status]).

%% @doc Asks for the size, which comes as input.
-spec look(keyboard()) -> ok.
look(Port) ->
    true = port_command(Port, <<"size\n">>),
    ok.

%% @doc Puts everything back, and answers when that is done (a second, at most).
-spec close(keyboard()) -> ok.
close(Port) ->
    _ = try port_command(Port, <<"end\n">>) catch error:badarg -> true end,
    closed(Port, erlang:monotonic_time(millisecond) + 1000).

closed(Port, Until) ->
    receive
        {Port, {exit_status, _}} -> ok;
        {Port, {data, _}} -> closed(Port, Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        ok
    end.

%% @doc What was pressed or said, and the bytes whose rest is still to come. Keys that mean nothing
%% are left out.
-spec parse(binary()) -> {[input()], Rest :: binary()}.
parse(Bytes) ->
    parse(Bytes, []).

parse(<<>>, Acc) ->
    {lists:reverse(Acc), <<>>};
parse(<<30, Said/binary>> = All, Acc) ->
    case binary:split(Said, <<"\n">>) of
        [Size, Rest] -> parse(Rest, dimensions(Size) ++ Acc);
        [_] -> {lists:reverse(Acc), All}
    end;
%% Cursor keys, as terminals send them in either of their modes.
parse(<<27, Kind, Rest/binary>>, Acc) when Kind =:= $[; Kind =:= $O ->
    {Key, Others} = sequence(Rest),
    parse(Others, Key ++ Acc);
parse(<<27, Rest/binary>>, Acc) ->
    parse(Rest, [back | Acc]);
parse(<<Key, Rest/binary>>, Acc) ->
    parse(Rest, key(Key) ++ Acc).

%% Numbers and marks, then a letter that says which key it was.
sequence(<<C, Rest/binary>>) when C < 64 -> sequence(Rest);
sequence(<<$A, Rest/binary>>) -> {[up], Rest};
sequence(<<$B, Rest/binary>>) -> {[down], Rest};
sequence(<<_, Rest/binary>>) -> {[], Rest};
sequence(<<>>) -> {[], <<>>}.

key($k) -> [up];
key($j) -> [down];
key($\r) -> [enter];
key($\n) -> [enter];
key($q) -> [quit];
%% Ctrl-C, Ctrl-D, Ctrl-\.
key(3) -> [quit];
key(4) -> [quit];
key(28) -> [quit];
key(127) -> [back];
key(_) -> [].

dimensions(Text) ->
    case string:lexemes(Text, " ") of
        [Rows, Columns] ->
            try {binary_to_integer(Rows), binary_to_integer(Columns)} of
                {R, C} when R > 0, C > 0 -> [{size, R, C}];
                %% A terminal that doesn't say, such as a serial line.
                _ -> []
            catch
                error:badarg -> []
            end;
        _ ->
            []
    end.
