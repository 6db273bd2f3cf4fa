%% The page about the manners of OTP's own functions: checks those of fairnif_lab_otp_table and
%% writes what was found as Markdown. `make manners'.
%%
%% The text is made of the figures and the verdicts' own sentences; nothing is added by hand.
-module(fairnif_lab_manners).

-export([main/1, run/2, page/2]).

-export_type([entry/0]).

-type entry() :: {fairnif_lab_otp_table:row(),
                  {ok, fairnif_lab_check:result()} | {error, {atom(), unicode:chardata()}}
                | {skipped, unicode:chardata()}}.

%% @doc Checks all functions and writes the page; ends the node, with 1 if it cannot be written.
%% Takes about ten minutes.
-spec main(file:filename()) -> no_return().
main(File) ->
    Rows = fairnif_lab_otp_table:rows(),
    Progress = fairnif_lab_progress:start(length(Rows)),
    Entries = run(Rows, #{before => fun(#{expression := E}) ->
                                            fairnif_lab_progress:step(Progress, E)
                                    end}),
    fairnif_lab_progress:stop(Progress),
    Text = unicode:characters_to_binary(page(fairnif_lab_machine:context(), Entries)),
    case file:write_file(File, Text) of
        ok ->
            halt(0);
        {error, Why} ->
            io:put_chars(standard_error, [File, ": ", file:format_error(Why), $\n]),
            halt(1)
    end.

%% @doc Checks the functions of these rows. `before' is called with each row; other options are
%% those of fairnif_lab_check:run/2.
-spec run([fairnif_lab_otp_table:row()],
          #{before => fun((fairnif_lab_otp_table:row()) -> term()), atom() => term()}) -> [entry()].
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
    fairnif_lab_check:run(Expression, maps:merge(Inits#{sizes => Sizes}, Opts)).

%% ---- the page; pure ----

%% @doc The page as Markdown. The context is that of fairnif_lab_machine:context/0.
-spec page(#{atom() => term()}, [entry()]) -> unicode:chardata().
page(Context, Entries) ->
    ["# The manners of OTP's own functions\n\n"
     "What `bin/fairnif check` says of functions that many nodes call with large input. Written by "
     "`make manners`;\nnothing here is edited by hand. What the figures and the verdicts mean: "
     "[check](manual/check.md).\n\n",
     measured_on(Context), "\n",
     table(Entries), "\n",
     "Time, hold and kill are medians or what repeats show; CPU left is that of a busy Erlang "
     "process on the same\nscheduler, of which another Erlang process leaves 50 %.\n\n"
     "## In words\n\n",
     [in_words(Entry) || Entry <- Entries]].

measured_on(#{processor := Processor, logical_processors := Count, otp := Otp, erts := Erts,
              os := Os, date := Date}) ->
    io_lib:format("Measured on ~ts, ~b logical processors, ~ts, Erlang/OTP ~ts (ERTS ~ts), ~ts.~n",
                  [known(Processor), Count, Os, Otp, Erts, Date]).

known(undefined) -> "an unnamed processor";
known(Name) -> Name.

%% One line for each size.
table(Entries) ->
    ["| function | size | time | longest hold | where | CPU left | kill to stop | verdicts |\n"
     "|---|---|---|---|---|---|---|---|\n",
     [line([code(Expression) | cells(Unit, Figures)])
      || {#{expression := Expression, unit := Unit}, {ok, Result}} <- Entries,
         Figures <- maps:get(sizes, subject(Result))]].

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

cells(Unit, #{size := Size, verdicts := Verdicts} = Figures) ->
    [size(Unit, Size) | [cell(F, Figures) || F <- figures()]] ++ [verdicts(Verdicts)].

size(bytes, Size) when Size rem 1048576 =:= 0 -> io_lib:format("~b MiB", [Size div 1048576]);
size(Unit, Size) -> [fairnif_lab_table:count(Size), $\s, atom_to_list(Unit)].

%% What was not measured is a dash.
cell(Figure, Figures) ->
    try Figure(Figures)
    catch error:function_clause -> "-"
    end.

figures() ->
    [fun(#{time := #{median := Ns}}) -> fairnif_lab_table:duration(Ns) end,
     fun(#{slices := #{hold := #{repeated := Ns}}}) -> fairnif_lab_table:duration(Ns) end,
     fun(#{slices := Slices}) -> where(Slices) end,
     fun(#{share := #{median := Share}}) -> fairnif_lab_table:percent(Share) end,
     fun(#{kill := #{stop := #{median := Ns}}}) -> fairnif_lab_table:duration(Ns) end].

%% By the time spent there, in slices a call.
where(#{normal := #{count := N, total := Normal}, dirty := #{count := D, total := Dirty},
        hold := #{calls := Calls}}) when Calls > 0 ->
    Kinds = [{"normal", N, Normal} || Normal > Dirty / 20]
        ++ [{"dirty", D, Dirty} || Dirty > Normal / 20],
    lists:join("; ", [[Name, " (", slices(Count / Calls), ")"] || {Name, Count, _} <- Kinds]).

slices(PerCall) when PerCall < 1.5 -> "1 slice";
slices(PerCall) -> [fairnif_lab_table:count(round(PerCall)), " slices"].

verdicts(Verdicts) ->
    case [[title(V), severity(V)] || V <- Verdicts, bad(V) orelse unsure(V)] of
        [] -> "well-behaved";
        Titles -> lists:join(", ", Titles)
    end.

title(#{property := Property}) ->
    fairnif_lab_verdict:title(Property).

severity(#{status := warn}) -> " (warn)";
severity(#{status := cannot_say}) -> "?";
severity(_) -> "".

bad(#{status := Status}) -> Status =:= fail orelse Status =:= warn.

unsure(#{status := Status}) -> Status =:= cannot_say.

%% ---- one paragraph for each function ----

in_words({#{expression := Expression} = Row, Outcome}) ->
    ["**", code(Expression), "**", init(Row), ". ", said(Row, Outcome), "\n\n"].

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
             end, [[": ", Sentence] || #{sentence := Sentence} <- last(hold, pass, Sizes)], "."];
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
