%% The page about the manners of OTP's own functions: checks those of fairnif_check_otp_table and
%% writes what was found as Markdown, with a column for each release of OTP. `make survey-otp'.
%%
%% The text is made of the figures and the verdicts' own sentences; nothing is added by hand. What
%% was found on a release is kept beside the page, as terms: the page is made of all of them.
-module(fairnif_check_manners).

-export([main/1, run/2, release/2, page/2]).

-export_type([entry/0, release/0]).

-type entry() :: {fairnif_check_otp_table:row(),
                  {ok, fairnif_check_run:result()} | {error, {atom(), unicode:chardata()}}
                | {skipped, unicode:chardata()}}.
%% What the page says of one function on one release: a cell for each size, and in words.
-type words() :: #{sizes := #{pos_integer() => binary()}, words := binary()}.
-type release() :: #{context := #{atom() => term()},
                     rows := #{Expression :: string() => words()}}.

%% @doc Checks all functions, or those whose expression has one of the words of the variable ROWS in
%% it (with commas between), and writes the page; ends the node, with 1 if it cannot be written.
%% Takes about fifteen minutes, with TIME_MS for each measurement (1000).
-spec main(file:filename()) -> no_return().
main(File) ->
    TimeMs = list_to_integer(os:getenv("TIME_MS", "1000")),
    #{otp := Otp} = Context = (fairnif_check_machine:context())#{time_ms => TimeMs},
    Kept = filename:join(filename:rootname(File), binary_to_list(Otp) ++ ".eterm"),
    Rows = wanted(string:lexemes(os:getenv("ROWS", ""), ",")),
    Progress = fairnif_check_progress:start(length(Rows)),
    Entries = run(Rows, #{time_ms => TimeMs,
                          before => fun(#{expression := E}) ->
                                            fairnif_check_progress:step(Progress, E)
                                    end}),
    fairnif_check_progress:stop(Progress),
    #{rows := New} = Release = release(Context, Entries),
    Before = case file:consult(Kept) of
                 {ok, [#{rows := Old}]} -> Old;
                 {error, _} -> #{}
             end,
    ok = filelib:ensure_dir(Kept),
    written(Kept, io_lib:format("%% What `make survey-otp' found.~n~0tp.~n",
                                [Release#{rows := maps:merge(Before, New)}])),
    All = filelib:wildcard(filename:join(filename:dirname(Kept), "*.eterm")),
    written(File, page(fairnif_check_otp_table:rows(),
                       [begin {ok, [R]} = file:consult(F), R end || F <- All])),
    halt(0).

wanted([]) ->
    fairnif_check_otp_table:rows();
wanted(Words) ->
    [Row || #{expression := E} = Row <- fairnif_check_otp_table:rows(),
            lists:any(fun(Word) -> string:find(E, Word) =/= nomatch end, Words)].

written(File, Text) ->
    case file:write_file(File, unicode:characters_to_binary(Text)) of
        ok ->
            ok;
        {error, Why} ->
            io:put_chars(standard_error, [File, ": ", file:format_error(Why), $\n]),
            halt(1)
    end.

%% @doc Checks the functions of these rows. `before' is called with each row; other options are
%% those of fairnif_check_run:run/2.
-spec run([fairnif_check_otp_table:row()],
          #{before => fun((fairnif_check_otp_table:row()) -> term()), atom() => term()}) ->
              [entry()].
run(Rows, Opts) ->
    Before = maps:get(before, Opts, fun(_) -> ok end),
    [begin
         _ = Before(Row),
         {Row, check(Row, maps:remove(before, Opts))}
     end || Row <- Rows].

check(#{needs := Module} = Row, Opts) ->
    case Module =:= undefined orelse code:which(Module) =/= non_existing of
        true -> checked(Row, Opts);
        false -> {skipped, io_lib:format("the module ~s is not installed", [Module])}
    end.

checked(#{expression := Expression, sizes := Sizes, init := Init}, Opts) ->
    Inits = case Init of undefined -> #{}; _ -> #{init => Init} end,
    fairnif_check_run:run(Expression, maps:merge(Inits#{sizes => Sizes}, Opts)).

%% ---- the page; pure ----

%% @doc What is kept of a release. The context is that of fairnif_check_machine:context/0.
-spec release(#{atom() => term()}, [entry()]) -> release().
release(Context, Entries) ->
    #{context => maps:with([otp, erts, os, processor, logical_processors, date,
                              time_ms], Context),
      rows => maps:from_list([{Expression, words(Entry)}
                              || {#{expression := Expression}, _} = Entry <- Entries])}.

words({Row, Outcome}) ->
    Sizes = case Outcome of
                {ok, Result} -> maps:get(sizes, subject(Result));
                _ -> []
            end,
    #{sizes => maps:from_list([{Size, unicode:characters_to_binary(cell(Figures))}
                               || #{size := Size} = Figures <- Sizes]),
      words => unicode:characters_to_binary(said(Row, Outcome))}.

%% @doc The page as Markdown.
-spec page([fairnif_check_otp_table:row()], [release()]) -> unicode:chardata().
page(Rows, Releases) ->
    Sorted = lists:sort(fun(#{context := #{otp := A}}, #{context := #{otp := B}}) ->
                                binary_to_integer(A) =< binary_to_integer(B)
                        end, Releases),
    ["# The manners of OTP's own functions\n\n"
     "What `bin/fairnif check` says of functions that many nodes call with large input, release by "
     "release. Written by\n`make survey-otp`; nothing here is edited by hand. What the figures and "
     "the verdicts mean: [check](../docs/reference/check.md).\n\n",
     [measured_on(Context) || #{context := Context} <- Sorted], "\n",
     table(Rows, Sorted), "\n",
     "In a cell: the time of a call; the longest block that repeats, and where, in how many "
     "slices; "
     "the verdicts (`warn`\nmarks what only warns, `?` what could not be said). A dash: not "
     "measured.\nWhere measurements are short, or other programs run, doubt the figures rather "
     "than the verdicts.\n\n"
     "## In words\n\n",
     [in_words(Row, Sorted) || Row <- Rows]].

measured_on(#{processor := Processor, logical_processors := Count, otp := Otp, erts := Erts,
              os := Os, date := Date} = Context) ->
    io_lib:format("- Erlang/OTP ~ts (ERTS ~ts): ~ts, ~b logical processors, ~ts, ~b ms a "
                  "measurement; ~ts.~n", [Otp, Erts, known(Processor), Count, Os,
                             maps:get(time_ms, Context, 1000), Date]).

known(undefined) -> "an unnamed processor";
known(Name) -> Name.

%% One line for each size.
table(Rows, Releases) ->
    [line(["function", "size" | [["OTP ", Otp] || #{context := #{otp := Otp}} <- Releases]]),
     lists:duplicate(length(Releases) + 2, "|---"), "|\n",
     [line([code(Expression), size(Unit, Size)
            | [of_release(Expression, Size, Release) || Release <- Releases]])
      || #{expression := Expression, unit := Unit, sizes := Sizes} <- Rows, Size <- Sizes]].

of_release(Expression, Size, #{rows := Rows}) ->
    case Rows of
        #{Expression := #{sizes := #{Size := Cell}}} -> Cell;
        _ -> "-"
    end.

line(Cells) ->
    ["| ", lists:join(" | ", [escaped(C) || C <- Cells]), " |\n"].

%% Text within a table's cell.
escaped(Text) ->
    string:replace(unicode:characters_to_binary(Text), "|", "\\|", all).

code(Text) ->
    ["`", Text, "`"].

subject(#{subjects := Subjects}) ->
    [Subject] = [S || #{role := subject} = S <- Subjects],
    Subject.

size(bytes, Size) when Size rem 1048576 =:= 0 -> io_lib:format("~b MiB", [Size div 1048576]);
size(Unit, Size) -> [fairnif_check_table:count(Size), $\s, atom_to_list(Unit)].

%% What was not measured is left out.
cell(#{verdicts := Verdicts} = Figures) ->
    [[[Text, ", "] || Figure <- figures(), Text <- figure(Figure, Figures)], verdicts(Verdicts)].

figure(Figure, Figures) ->
    try [Figure(Figures)]
    catch error:function_clause -> []
    end.

figures() ->
    [fun(#{time := #{median := Ns}}) -> fairnif_check_table:duration(Ns) end,
     fun(#{slices := #{block := #{repeated := Ns}}}) ->
             ["blocked ", fairnif_check_table:duration(Ns)]
     end,
     fun(#{slices := Slices}) -> where(Slices) end].

%% By the time spent there, in slices a call.
where(#{normal := #{count := N, total := Normal}, dirty := #{count := D, total := Dirty},
        block := #{calls := Calls}}) when Calls > 0, Normal + Dirty > 0 ->
    Kinds = [{"normal", N, Normal} || Normal > Dirty / 20]
        ++ [{"dirty", D, Dirty} || Dirty > Normal / 20],
    lists:join("; ", [[Name, " (", slices(Count / Calls), ")"] || {Name, Count, _} <- Kinds]).

slices(PerCall) when PerCall < 1.5 -> "1 slice";
slices(PerCall) -> [fairnif_check_table:count(round(PerCall)), " slices"].

verdicts(Verdicts) ->
    case [[title(V), severity(V)] || V <- Verdicts, bad(V) orelse unsure(V)] of
        [] -> "well-behaved";
        Titles -> lists:join(", ", Titles)
    end.

title(#{property := Property}) ->
    fairnif_check_verdict:title(Property).

severity(#{status := warn}) -> " (warn)";
severity(#{status := unsure}) -> "?";
severity(_) -> "".

bad(#{status := Status}) -> Status =:= fail orelse Status =:= warn.

unsure(#{status := Status}) -> Status =:= unsure.

%% ---- one paragraph for each function ----

in_words(#{expression := Expression} = Row, Releases) ->
    ["**", code(Expression), "**", init(Row), ".",
     [[" *OTP ", Otp, "*: ", Words]
      || #{context := #{otp := Otp}, rows := #{Expression := #{words := Words}}} <- Releases],
     "\n\n"].

init(#{init := undefined}) -> "";
init(#{init := Init}) -> [", where Init is ", code(Init)].

said(_, {skipped, Why}) ->
    ["Not checked: ", Why, "."];
said(_, {error, {_, Text}}) ->
    ["Not checked: ", Text, "."];
said(Row, {ok, Result}) ->
    #{sizes := Sizes, verdicts := Verdicts} = subject(Result),
    case lists:filter(fun bad/1, Verdicts) of
        [] ->
            [case lists:filter(fun unsure/1, Verdicts) of
                 [] -> "Well-behaved";
                 _ -> "Nothing bad was seen"
             end, [[": ", Sentence] || #{sentence := Sentence} <- last(block, pass, Sizes)], "."];
        Bad ->
            lists:join(" ", at_sizes(Row, lists:append([last(P, S, Sizes)
                                                        || #{property := P, status := S} <- Bad])))
    end.

%% The verdict on the largest size that has this status.
last(Property, Status, Sizes) ->
    case [V || #{verdicts := Vs} <- Sizes, #{property := P, status := S} = V <- Vs,
               P =:= Property, S =:= Status] of
        [] -> [];
        Found -> [lists:last(Found)]
    end.

%% What there is to say of each size: the verdicts' own sentences.
at_sizes(#{unit := Unit}, Verdicts) ->
    [["At ", size(Unit, Size), ": ",
      lists:join("; ", [S || #{size := At, sentence := S} <- Verdicts, At =:= Size]), "."]
     || Size <- lists:usort([At || #{size := At} <- Verdicts, is_integer(At)])].
