%% What the commands share: how texts of the command line become values, and where text goes.
-module(fairnif_check_cli_text).

-export([option/1, bytes/1, sizes/1, duration/1, count/1, words/1]).
-export([note/3, writable/1, write/2, complain/1, usage/2]).

%% @doc An option that several commands have.
-spec option(string()) -> fairnif_check_cli:option().
option("--size") ->
    {"--size", size, fun bytes/1, "BYTES",
     "bytes of the input; may end in k, m or g (powers of 1024)"};
option("--json") ->
    {"--json", json, fun(File) -> File end, "FILE",
     "write figures and raw samples; `-' is standard output"};
option("--html") ->
    {"--html", html, fun html/1, "FILE", "write the same as a page to look at"}.

%% @doc 1000, 64k, 512m, 2g: the suffixes are powers of 1024.
-spec bytes(string()) -> pos_integer().
bytes(Text) ->
    Units = #{$k => 1024, $m => 1048576, $g => 1073741824},
    case re:run(Text, "^([0-9]{1,15})([kmg]?)\\z",
                [caseless, {capture, all_but_first, list}]) of
        {match, [Digits, Unit]} ->
            Factor = case string:lowercase(Unit) of
                         [U] -> maps:get(U, Units);
                         [] -> 1
                     end,
            case list_to_integer(Digits) * Factor of
                0 -> usage("a size must be at least 1", []);
                Size -> Size
            end;
        nomatch ->
            usage("`~ts' is not a size: give bytes, or a number with k, m or g",
                  [Text])
    end.

%% @doc Sizes with commas between.
-spec sizes(string()) -> [pos_integer()].
sizes(Text) ->
    lists:uniq([bytes(T) || T <- string:split(Text, ",", all)]).

%% @doc 250us, 1ms, 2s, in nanoseconds.
-spec duration(string()) -> pos_integer().
duration(Text) ->
    Units = #{"us" => 1000, "ms" => 1000000, "s" => 1000000000},
    case re:run(Text, "^([0-9]{1,9}(?:\\.[0-9]{1,3})?)(us|ms|s)\\z",
                [{capture, all_but_first, list}]) of
        {match, [Number, Unit]} ->
            {Value, _} = string:to_float(case lists:member($., Number) of
                                             true -> Number;
                                             false -> Number ++ ".0"
                                         end),
            case round(Value * maps:get(Unit, Units)) of
                0 -> usage("a time must be longer than `~ts'", [Text]);
                Ns -> Ns
            end;
        nomatch ->
            usage("`~ts' is not a time: give a number with us, ms or s", [Text])
    end.

%% @doc A whole number from 1 on.
-spec count(string()) -> pos_integer().
count(Text) ->
    try list_to_integer(Text) of
        N when N > 0 -> N;
        _ -> usage("`~ts' must be at least 1", [Text])
    catch
        error:badarg -> usage("`~ts' is not a whole number", [Text])
    end.

%% @doc What stands between blanks.
-spec words(string()) -> [string()].
words(Text) ->
    string:lexemes(Text, " ").

%% The name of a file for the report page.
html("-") -> usage("`--html' needs the name of a file", []);
html(File) -> File.

%% @doc Text for people; with `--json -' standard output is for the JSON alone.
-spec note(map(), io:format(), [term()]) -> ok.
note(#{json := "-"}, Format, Args) ->
    io:format(standard_error, Format, Args);
note(_, Format, Args) ->
    io:format(Format, Args).

%% @doc A usage error when a file that the options name cannot be written, or the page not made.
-spec writable(map()) -> ok.
writable(Opts) ->
    Files = [File || {Key, File} <- maps:to_list(Opts),
                     lists:member(Key, [json, junit, html]), File =/= "-"],
    lists:foreach(fun can_be_written/1, Files),
    case is_map_key(html, Opts) andalso fairnif_check_page:template() of
        {error, Text} -> usage("~ts", [Text]);
        _ -> ok
    end.

%% Tried, and nothing is left of it: what follows may fail.
can_be_written(File) ->
    New = not filelib:is_file(File),
    case file:open(File, [append]) of
        {ok, Device} ->
            ok = file:close(Device),
            _ = New andalso file:delete(File),
            ok;
        {error, Reason} -> usage("cannot write ~ts: ~ts", [File, file:format_error(Reason)])
    end.

%% @doc Writes the value to where `--json' says, and the page made from the same text to where
%% `--html' does.
-spec write(map(), fairnif_check_json:value()) -> ok.
write(Opts, Value) when is_map_key(json, Opts); is_map_key(html, Opts) ->
    Json = fairnif_check_json:encode(Value),
    case Opts of
        #{json := "-"} -> io:put_chars([Json, $\n]);
        #{json := File} -> ok = file:write_file(File, [Json, $\n]);
        _ -> ok
    end,
    case Opts of
        #{html := Page} -> ok = fairnif_check_page:write(Page, [{"", Json}]);
        _ -> ok
    end;
write(_, _) ->
    ok.

%% @doc A line on standard error.
-spec complain(unicode:chardata()) -> ok.
complain(Text) ->
    io:format(standard_error, "fairnif: ~ts~n", [Text]).

%% @doc Ends the command with exit code 2 and this text.
-spec usage(io:format(), [term()]) -> no_return().
usage(Format, Args) ->
    throw({usage, io_lib:format(Format, Args)}).
