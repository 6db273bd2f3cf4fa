%% Tables and numbers for people: aligned columns, human units.
%%
%% Nothing here measures or prints; it returns text.
-module(fairnif_check_table).

-export([render/2, render/3, style/0]).
-export([duration/1, count/1, percent/1, bytes/1]).

-export_type([column/0, style/0]).

-type column() :: {Title :: unicode:chardata(), left | right}.
-type style() :: unicode | ascii.

%% @doc A table in the style that the terminal can show; see `render/3'.
-spec render([column()], [[unicode:chardata()]]) -> unicode:chardata().
render(Columns, Rows) ->
    render(Columns, Rows, style()).

%% @doc A table with a frame; a title may have several lines.  Every row has as
%% many cells as there are columns.
-spec render([column()], [[unicode:chardata()]], style()) ->
          unicode:chardata().
render(Columns, Rows, Style) ->
    Titles = [string:split(text(T), "\n", all) || {T, _} <- Columns],
    Height = lists:max([length(T) || T <- Titles]),
    Heads = [[line_of(N, Height, T) || T <- Titles]
             || N <- lists:seq(1, Height)],
    Cells = [[text(C) || C <- Row] || Row <- Rows],
    Widths = widths(Heads ++ Cells),
    Aligns = [A || {_, A} <- Columns],
    [rule(top, Widths, Style),
     [row(H, Widths, Aligns, Style) || H <- Heads],
     rule(middle, Widths, Style),
     [row(R, Widths, Aligns, Style) || R <- Cells],
     rule(bottom, Widths, Style)].

%% @doc `unicode' when the locale of the environment is a UTF-8 one.
-spec style() -> style().
style() ->
    %% The order in which setlocale(3) looks at them; an empty one counts as not set.
    Set = [V || Name <- ["LC_ALL", "LC_CTYPE", "LANG"],
                V <- [os:getenv(Name, "")], V =/= ""],
    case Set of
        [Locale | _] ->
            Upper = string:uppercase(Locale),
            case string:find(Upper, "UTF-8") =/= nomatch
                orelse string:find(Upper, "UTF8") =/= nomatch of
                true -> unicode;
                false -> ascii
            end;
        [] ->
            ascii
    end.

%% @doc Nanoseconds as three significant digits with their unit; `undefined' is a dash.
-spec duration(number() | undefined) -> string().
duration(undefined) -> "-";
duration(Ns) when Ns < 0 -> [$- | duration(-Ns)];
duration(Ns) when Ns < 999.5 -> three(Ns) ++ " ns";
duration(Ns) when Ns < 999.5e3 -> three(Ns / 1.0e3) ++ " us";
duration(Ns) when Ns < 999.5e6 -> three(Ns / 1.0e6) ++ " ms";
duration(Ns) -> three(Ns / 1.0e9) ++ " s".

%% @doc A whole number with thousands separators; `undefined' is a dash.
-spec count(integer() | undefined) -> string().
count(undefined) -> "-";
count(N) when N < 0 -> [$- | count(-N)];
count(N) ->
    lists:reverse(lists:flatten(lists:join($,, threes(lists:reverse(
        integer_to_list(N)))))).

%% @doc A fraction (1.0 is the whole) as per cent; small ones keep a digit behind the point.
-spec percent(number() | undefined) -> string().
percent(undefined) -> "-";
percent(F) when F == 0 -> "0 %";
percent(F) when abs(F) < 0.0995 -> float_to_list(F * 100.0, [{decimals, 1}])
                                       ++ " %";
percent(F) -> integer_to_list(round(F * 100)) ++ " %".

%% @doc Bytes in decimal units, as the talk's "2 GB".
-spec bytes(non_neg_integer()) -> string().
bytes(1) -> "1 byte";
bytes(N) when N < 1000 -> integer_to_list(N) ++ " bytes";
bytes(N) when N < 999500 -> three(N / 1.0e3) ++ " kB";
bytes(N) when N < 999500000 -> three(N / 1.0e6) ++ " MB";
bytes(N) -> three(N / 1.0e9) ++ " GB".

three(X) when X >= 99.95 -> integer_to_list(round(X));
three(X) when X >= 9.995 -> float_to_list(float(X), [{decimals, 1}]);
three(X) when is_integer(X) -> integer_to_list(X);
three(X) -> float_to_list(X, [{decimals, 2}]).

threes([A, B, C, D | Rest]) -> [[A, B, C] | threes([D | Rest])];
threes(Rest) -> [Rest].

text(Data) ->
    unicode:characters_to_list(Data).

%% Titles with fewer lines than the highest stand at the bottom, on the rule.
line_of(N, Height, Lines) ->
    case N - (Height - length(Lines)) of
        I when I < 1 -> "";
        I -> lists:nth(I, Lines)
    end.

widths(Rows) ->
    lists:foldl(fun(Row, Acc) ->
                        lists:zipwith(fun(C, W) -> max(string:length(C), W)
                                      end, Row, Acc)
                end, [0 || _ <- hd(Rows)], Rows).

row(Cells, Widths, Aligns, Style) ->
    {_, _, _, _, Bar} = lines(middle, Style),
    Padded = [[$\s, pad(C, W, A), $\s]
              || {C, W, A} <- lists:zip3(Cells, Widths, Aligns)],
    [Bar, lists:join(Bar, Padded), Bar, $\n].

pad(Cell, Width, left) -> string:pad(Cell, Width, trailing);
pad(Cell, Width, right) -> string:pad(Cell, Width, leading).

rule(Where, Widths, Style) ->
    {Left, Cross, Right, Dash, _} = lines(Where, Style),
    [Left, lists:join(Cross, [lists:duplicate(W + 2, Dash) || W <- Widths]),
     Right, $\n].

%% {left end, crossing, right end, dash, bar between cells}
lines(top, unicode) -> {$┌, $┬, $┐, $─, $│};
lines(middle, unicode) -> {$├, $┼, $┤, $─, $│};
lines(bottom, unicode) -> {$└, $┴, $┘, $─, $│};
lines(_, ascii) -> {$+, $+, $+, $-, $|}.
