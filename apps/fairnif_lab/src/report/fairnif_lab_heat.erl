%% Tables as heat maps: how bad a figure is, seen before it is read.
%%
%% The number always stands there; the heat is added to it, and only where the
%% terminal shows it.  Nothing here measures or prints.
-module(fairnif_lab_heat).

-export([kind/0, kind/2, level/1, mark/3, paint/3]).

-export_type([kind/0, level/0]).

%% Colour behind the figure; a block of growing darkness before it; the figure.
-type kind() :: colour | shade | plain.
-type level() :: 0..4.

%% {level from this many nanoseconds on, background of ANSI, shade}
levels() ->
    [{4, 10000000000, "\e[30;45m", $█},
     {3, 1000000000, "\e[30;41m", $▓},
     {2, 100000000, "\e[30;43m", $▒},
     {1, 10000000, "\e[30;46m", $░}].

%% @doc What standard output can show.  bin/fairnif sets FAIRNIF_STDOUT=terminal
%% when it is one: the VM cannot tell without a shell.
-spec kind() -> kind().
kind() ->
    kind(fun(Name) -> os:getenv(Name, "") end, fairnif_lab_table:style()).

%% @private The same with the reader of environment variables given.  NO_COLOR
%% is the agreement of no-color.org: set to anything, it forbids colours.
-spec kind(fun((string()) -> string()), fairnif_lab_table:style()) -> kind().
kind(Env, Style) ->
    case {Env("FAIRNIF_STDOUT"), Env("NO_COLOR"), Env("TERM")} of
        {"terminal", "", Term} when Term =/= "", Term =/= "dumb" -> colour;
        {"terminal", _, _} when Style =:= unicode -> shade;
        _ -> plain
    end.

%% @doc How hot a time is, in nanoseconds: 0 below 10 ms, then one more for each
%% factor of ten, up to 4.
-spec level(number()) -> level().
level(Ns) ->
    case [L || {L, From, _, _} <- levels(), Ns >= From] of
        [Level | _] -> Level;
        [] -> 0
    end.

%% @doc The text of a cell: with its shade before it, where that is the kind.
-spec mark(kind(), level() | undefined, unicode:chardata()) ->
          unicode:chardata().
mark(shade, Level, Text) when is_integer(Level), Level > 0 ->
    {_, _, _, Shade} = lists:keyfind(Level, 1, levels()),
    [Shade, $\s, Text];
mark(_, _, Text) ->
    Text.

%% @doc Colours the cells of a table that `fairnif_lab_table:render/2' made: a
%% list of levels for each row, one for each column, `undefined' where a cell is
%% no figure.  Afterwards and not in the cells, whose widths count characters.
-spec paint(kind(), unicode:chardata(), [[level() | undefined]]) ->
          unicode:chardata().
paint(colour, Table, Rows) ->
    Lines = string:split(unicode:characters_to_list(Table), "\n", all),
    %% The body is what stands before the last frame line and the empty rest.
    {Head, Tail} = lists:split(length(Lines) - 2 - length(Rows), Lines),
    {Body, Foot} = lists:split(length(Rows), Tail),
    lists:join($\n, Head ++ lists:zipwith(fun paint_line/2, Body, Rows) ++ Foot);
paint(_, Table, _) ->
    Table.

%% The first character of a line is the bar that stands between its cells.
paint_line([Bar | Rest], Levels) ->
    Fields = string:split(Rest, [Bar], all),
    %% After the last bar comes nothing.
    Painted = lists:zipwith(fun paint_field/2, lists:droplast(Fields), Levels),
    [Bar, [[F, Bar] || F <- Painted]].

paint_field(Field, Level) when is_integer(Level), Level > 0 ->
    {_, _, Colour, _} = lists:keyfind(Level, 1, levels()),
    [Colour, Field, "\e[0m"];
paint_field(Field, _) ->
    Field.
