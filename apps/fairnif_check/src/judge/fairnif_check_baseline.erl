%% Baselines: what a check measured, kept in a file that a later check is compared with.
%%
%% A file is Erlang terms that a person can read, its version first:
%%
%%     {fairnif_baseline, 1}.
%%     {context, #{...}}.      fairnif_check_machine:context/0
%%     {options, #{...}}.      of the check
%%     {figures, Role, Expression, Size, #{time => ..., samples => [...]}}.
%%     complete.
%%
%% Whatever stands in a file, reading it is an error with a text and never a crash, and never a
%% comparison with figures of another machine or of other options. A file is data that its user
%% trusts to some degree: as with any file:consult/1, the atoms in it are created, and there can be
%% as many as fit into ?MOST_BYTES; beyond that nothing here makes an atom from what it reads.
-module(fairnif_check_baseline).

-export([save/3, compare/3, format/1, path/1]).

-include_lib("kernel/include/file.hrl").

-export_type([comparison/0]).

-define(VERSION, 1).
%% Samples of a thousand sizes; more is no baseline.
-define(MOST_BYTES, 67108864).

%% fairnif_check_json encodes it as it is. `exit': 1 if the subject is worse in any figure, else 0
%% (what `--against' names is shown and does not count).
-type comparison() :: #{baseline := binary(), made := binary(), exit := 0 | 1,
                        rows := [fairnif_check_compare:row()],
                        bands := [#{atom() => atom() | number() | binary()}]}.
-type result() :: #{expression := binary(), options := #{atom() => term()},
                    subjects := [#{atom() => term()}], atom() => term()}.
-type context() :: #{atom() => term()}.

%% What must be the same before two measurements are compared. The date and the memory that happens
%% to be free are left out; of the kernel, what its third number changes is not measured here.
context_keys() ->
    [processor, logical_processors, architecture, os, otp, erts, emulator].

option_keys() ->
    [sizes, flags, time_ms, limit_ns, init, file, beside].

%% @doc Where the baseline of this name is: a name with a slash is a path, taken as it is, another
%% one is a file in the user's data directory (filename:basedir/2). Error for a name that is none.
-spec path(string()) -> {ok, file:filename()} | {error, unicode:chardata()}.
path(Name) ->
    case {Name, lists:member($/, Name), lists:any(fun(C) -> C < $\s end, Name)} of
        {"", _, _} -> {error, "a baseline needs a name"};
        {_, _, true} -> {error, "the name of a baseline holds no control characters"};
        {_, true, _} -> {ok, Name};
        {_, false, _} -> {ok, filename:join([filename:basedir(user_data, "fairnif"),
                                             "baselines", Name ++ ".baseline"])}
    end.

%% @doc Keeps what a check measured, with the context of the machine, under this name; returns the
%% file. It is there whole or not at all, and takes the place of one of the same name.
-spec save(string(), result(), context()) ->
          {ok, file:filename()} | {error, unicode:chardata()}.
save(Name, Result, Context) ->
    case path(Name) of
        {ok, Path} -> write(Path, content(Result, Context));
        {error, _} = Error -> Error
    end.

%% @doc What has changed since the baseline of this name. An error for a person when there is none,
%% when the file is not one that this version reads, and when it is from another context: then it
%% says which keys differ. Cost: one sort of the samples per size.
-spec compare(string(), result(), context()) ->
          {ok, comparison()} | {error, unicode:chardata()}.
compare(Name, Result, Context) ->
    try
        Path = ok(path(Name)),
        #{context := OldContext, options := OldOptions, figures := Before} = ok(read(Path)),
        Now = figures(Result, Context),
        _ = ok(same(Path, identity(OldContext, OldOptions, Before),
                identity(Context, maps:get(options, Result), Now))),
        Rows = lists:append([fairnif_check_compare:compare(Role, Size, B, N)
                             || {{Role, _, Size} = Key, N} <- Now,
                                {K, B} <- Before, K =:= Key]),
        {ok, #{baseline => unicode:characters_to_binary(Path),
               made => made(OldContext),
               exit => case [worse || #{role := subject, verdict := worse} <- Rows] of
                           [] -> 0;
                           _ -> 1
                       end,
               rows => Rows, bands => fairnif_check_compare:bands()}}
    catch
        throw:{refused, Text} -> {error, Text}
    end.

made(#{date := Date}) when is_binary(Date) -> text(Date);
made(_) -> <<"at an unknown time">>.

%% @doc The comparison for the terminal.
-spec format(comparison()) -> unicode:chardata().
format(#{baseline := Path, made := Made, rows := Rows}) ->
    ["Compared with ", Path, ", made ", Made, ":\n", fairnif_check_compare:table(Rows)].

%% ---- writing ----

content(#{options := Options} = Result, Context) ->
    ["%% -*- coding: utf-8 -*-\n"
     "%% A baseline of `fairnif check'; written by --save-baseline, read by --baseline.\n",
     io_lib:format("{fairnif_baseline, ~b}.~n", [?VERSION]),
     "{context, ", map(Context), "}.\n{options, ", map(maps:with(option_keys(), Options)), "}.\n",
     [[io_lib:format("{figures, ~tp, ~tp, ~b, ", [Role, Expression, Size]), map(Figures), "}.\n"]
      || {{Role, Expression, Size}, Figures} <- figures(Result, Context)],
     "complete.\n"].

%% A key to a line. Lists are numbers here: `~p' would take some of them for text.
map(Map) ->
    Line = fun(K, V) when is_list(V) -> io_lib:format("~n    ~tp => ~w", [K, V]);
              (K, V) -> io_lib:format("~n    ~tp => ~tp", [K, V])
           end,
    ["#{", lists:join($,, [Line(K, V) || {K, V} <- lists:sort(maps:to_list(Map))]), "}"].

figures(#{subjects := Subjects}, Context) ->
    Processors = case Context of
                     #{logical_processors := N} when is_integer(N), N > 0 -> N;
                     _ -> 1
                 end,
    [{{Role, Expression, maps:get(size, Size)}, fairnif_check_compare:figures(Size, Processors)}
     || #{role := Role, expression := Expression, sizes := Sizes} <- Subjects, Size <- Sizes].

%% A reader sees the old file or the new one: the rename is one step.
write(Path, Content) ->
    Temporary = io_lib:format("~ts.~s.~b.tmp", [Path, os:getpid(),
                                                erlang:unique_integer([positive])]),
    Steps = [fun() -> filelib:ensure_dir(Path) end,
             fun() -> file:write_file(Temporary, unicode:characters_to_binary(Content), [sync]) end,
             fun() -> file:rename(Temporary, Path) end],
    case first_error(Steps) of
        ok ->
            {ok, Path};
        {error, Reason} ->
            _ = file:delete(Temporary),
            {error, io_lib:format("cannot write the baseline ~ts: ~ts",
                                  [Path, file:format_error(Reason)])}
    end.

first_error([]) -> ok;
first_error([Step | Steps]) ->
    case Step() of
        ok -> first_error(Steps);
        {error, _} = Error -> Error
    end.

%% ---- reading ----

read(Path) ->
    case file:read_file_info(Path) of
        {ok, #file_info{type = Type}} when Type =/= regular ->
            {error, io_lib:format("the baseline ~ts is a ~s and no file", [Path, Type])};
        {ok, #file_info{size = Bytes}} when Bytes > ?MOST_BYTES ->
            broken(Path, "it is larger than 64 MiB");
        {ok, _} ->
            consult(Path);
        {error, enoent} ->
            {error, io_lib:format("there is no baseline ~ts; make it with --save-baseline",
                                  [Path])};
        {error, Reason} ->
            {error, io_lib:format("cannot read the baseline ~ts: ~ts",
                                  [Path, file:format_error(Reason)])}
    end.

consult(Path) ->
    case file:consult(Path) of
        {ok, [{fairnif_baseline, ?VERSION} | Terms]} ->
            parts(Path, Terms);
        {ok, [{fairnif_baseline, Version} | _]} when is_integer(Version), Version > ?VERSION ->
            {error, io_lib:format("the baseline ~ts has version ~b, and this fairnif reads ~b; use "
                                  "the newer one, or save it again",
                                  [Path, Version, ?VERSION])};
        {ok, _} ->
            {error, io_lib:format("~ts is not a baseline of fairnif; give another name", [Path])};
        {error, {_, _, _} = Reason} ->
            broken(Path, ["line ", file:format_error(Reason)]);
        {error, Reason} ->
            broken(Path, file:format_error(Reason))
    end.

parts(Path, [{context, Context}, {options, Options} | Rest])
  when is_map(Context), is_map(Options), Rest =/= [] ->
    %% Half of a file would silently compare fewer sizes.
    case lists:split(length(Rest) - 1, Rest) of
        {[_ | _] = Rows, [complete]} -> parts(Path, Context, Options, Rows);
        _ -> broken(Path, "its end is missing")
    end;
parts(Path, _) ->
    broken(Path, "a part is missing, or in another place").

parts(Path, Context, Options, Rows) ->
    Figures = [{{Role, Expression, Size}, F} || {figures, Role, Expression, Size, F} <- Rows],
    Wrong = [R || R <- Rows, not is_row(R)],
    Keys = [K || {K, _} <- Figures],
    Plain = lists:all(fun is_plain/1, maps:to_list(Context) ++ maps:to_list(Options)),
    case {Wrong, Plain, lists:sort(Keys) -- lists:usort(Keys)} of
        {[], true, []} -> {ok, #{context => Context, options => Options, figures => Figures}};
        {[Row | _], _, _} -> broken(Path, io_lib:format("what is this: ~0tP", [Row, 12]));
        {_, false, _} -> broken(Path, "its context or its options are none");
        {_, _, [Key | _]} -> broken(Path, io_lib:format("it has ~0tp twice", [Key]))
    end.

is_row({figures, Role, Expression, Size, #{samples := Samples} = Figures})
  when is_atom(Role), is_binary(Expression), is_integer(Size), Size > 0, is_list(Samples) ->
    Known = [samples | fairnif_check_compare:names()],
    lists:all(fun({samples, List}) -> is_numbers(List);
                 ({Name, Value}) -> is_figure(Value) andalso lists:member(Name, Known)
              end, maps:to_list(Figures));
is_row(_) ->
    false.

is_numbers([N | Rest]) -> is_figure(N) andalso is_numbers(Rest);
is_numbers(End) -> End =:= [].

%% Up to 30 years in ns: with larger integers floating-point arithmetic is an error.
is_figure(N) -> is_number(N) andalso abs(N) =< 1.0e18.

is_plain({Key, Value}) ->
    is_atom(Key) andalso (is_figure(Value) orelse is_atom(Value) orelse is_binary(Value)
                          orelse is_numbers(Value)).

broken(Path, Why) ->
    {error, io_lib:format("the baseline ~ts cannot be used: ~ts; save it again with "
                          "--save-baseline", [Path, Why])}.

%% ---- is it the same thing on the same machine? ----

identity(Context, Options, Figures) ->
    [{K, of_context(K, maps:get(K, Context, undefined))} || K <- context_keys()]
        ++ [{K, of_option(K, maps:get(K, Options, undefined))} || K <- option_keys()]
        ++ [{expression, E} || E <- lists:usort([E || {{subject, E, _}, _} <- Figures])].

of_context(os, Os) when is_binary(Os) ->
    case re:run(Os, "^\\S+ \\d+\\.\\d+", [{capture, first, binary}]) of
        {match, [Kernel]} -> Kernel;
        nomatch -> Os
    end;
of_context(_, Value) ->
    Value.

%% A checkout elsewhere has the same file.
of_option(file, File) when is_binary(File) -> filename:basename(File);
of_option(_, Value) -> Value.

same(_, Same, Same) ->
    {ok, same};
same(Path, Before, Now) ->
    Differ = [[$\n, "  ", atom_to_list(K), ": ", value(proplists:get_value(K, Before)), " there, ",
               value(proplists:get_value(K, Now)), " here"]
              || K <- lists:usort([K || {K, _} <- (Before -- Now) ++ (Now -- Before)])],
    {error, ["the baseline ", Path, " was measured in another context, which says nothing about "
             "this one:", Differ, "\nSave one here with --save-baseline, under another name."]}.

value(Value) when is_binary(Value) -> ["`", text(Value), "'"];
value(Value) -> io_lib:format("~0tp", [Value]).

%% A binary from a file need not be UTF-8.
text(Binary) ->
    case unicode:characters_to_binary(Binary) of
        Text when is_binary(Text) -> Text;
        _ -> unicode:characters_to_binary(Binary, latin1)
    end.

ok({ok, Value}) -> Value;
ok({error, Text}) -> throw({refused, Text}).
