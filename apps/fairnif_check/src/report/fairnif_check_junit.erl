%% Writes JUnit XML, which build servers read: what a check found, and no more.
%%
%% A suite is an expression; a test case is a property at a size. The size is part of the class
%% name and not of the sentence alone: a build server follows a case from build to build by these
%% names, so they depend on what was asked for and never on what was found.
%%
%% A suite fails just when the check does: what `--against' names is measured for comparison, and
%% its findings are skipped cases, never failures.
-module(fairnif_check_junit).

-export([xml/2, xml/3]).

-type counts() :: #{tests | failures | errors | skipped | passed => non_neg_integer()}.

%% @doc The result of a check and its context (fairnif_check_machine:context/0) as a JUnit document,
%% UTF-8. fail is `failure', unsure and waived are `skipped', warn passes with its sentence as
%% `system-out'. `time' (s) stands where it is known: with `returns', the median of one call.
%% Characters that XML 1.0 cannot hold become their pictures (U+2400 and on) or U+FFFD.
-spec xml(fairnif_check_run:result(), #{atom() => term()}) -> iodata().
xml(Result, Context) ->
    xml(Result, Context, undefined).

%% @doc The same with what has changed since a baseline as one more suite: a case for each figure
%% and size. worse is `failure', unsure `skipped', improved passes and is said.
-spec xml(fairnif_check_run:result(), #{atom() => term()},
          fairnif_check_baseline:comparison() | undefined) -> iodata().
xml(#{subjects := Subjects, options := Options, expression := Expression}, Context, Comparison) ->
    Waived = maps:get(waive, Options, #{}),
    Suites = [suite(S#{waived => Waived}, Context) || S <- Subjects]
        ++ [changes(Expression, Rows, Context) || #{rows := Rows} <- [Comparison]],
    Total = lists:foldl(fun({Counts, _}, Sum) -> add(Counts, Sum) end, #{}, Suites),
    [<<"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n">>,
     element(testsuites, [{name, <<"fairnif check">>}
                          | counts([tests, failures, errors], Total)],
             [Element || {_, Element} <- Suites]),
     $\n].

suite(#{role := Role, expression := Expression, sizes := Sizes} = Subject, Context) ->
    Cases = lists:append([size_cases(Size, Subject) || Size <- Sizes]) ++ other_cases(Subject),
    Name = case Role of
               subject -> Expression;
               _ -> [Expression, " (", atom_to_binary(Role), ")"]
           end,
    suite_of(Name, Cases, Context).

changes(Expression, Rows, Context) ->
    suite_of([Expression, " since the baseline"],
             [change(Row, Expression) || #{role := subject} = Row <- Rows], Context).

change(#{size := Size, figure := Figure, verdict := Verdict, why := Why, before := Before,
         now := Now}, Expression) ->
    {Kind, Inner} = case Verdict of
                        worse -> {failure, {failure, ["worse: ", Why]}};
                        unsure -> {skipped, {skipped, Why}};
                        improved -> {passed, {'system-out', ["improved: ", Why]}};
                        within_noise -> {passed, none}
                    end,
    Name = [fairnif_check_compare:title(Figure), " since the baseline"],
    {Kind, element(testcase, [{classname, class(Size, #{expression => Expression})}, {name, Name}],
                   message(Inner, [["baseline: ", text(Before), "\nnow: ", text(Now), "\n"]]))}.

suite_of(Name, Cases, Context) ->
    Counts = lists:foldl(fun add/2, #{}, [#{tests => 1, kind(Kind) => 1} || {Kind, _} <- Cases]),
    Attributes = [{name, Name} | counts([tests, failures, errors, skipped], Counts)]
        ++ timestamp(Context),
    {Counts, ["\n", element(testsuite, Attributes,
                            [properties(Context), [["\n", C] || {_, C} <- Cases], "\n"])]}.

timestamp(#{date := Date}) -> [{timestamp, Date}];
timestamp(_) -> [].

properties(Context) ->
    Known = [{K, V} || {K, V} <- lists:sort(maps:to_list(Context)), V =/= undefined],
    ["\n", element(properties, [],
                   [element(property, [{name, atom_to_binary(K)}, {value, text(V)}], [])
                    || {K, V} <- Known])].

%% ---- cases ----

%% A size that was not measured and has no verdict is an error of its own: it must not vanish.
size_cases(#{verdicts := [], error := Error, size := Size}, Subject) when is_binary(Error) ->
    Attributes = [{classname, class(Size, Subject)}, {name, <<"measured">>}],
    {Kind, Inner} = case Subject of
                        #{role := subject} -> {error, {error, Error}};
                        _ -> {skipped, {skipped, Error}}
                    end,
    [{Kind, element(testcase, Attributes, message(Inner, []))}];
size_cases(#{verdicts := Verdicts, size := Size} = Result, Subject) ->
    Asked = maps:get(asked, Result, Size),
    [testcase(V, class(Asked, Subject), time(V, Result), [evidence(V), error_of(Result)], Subject)
     || V <- Verdicts].

%% What the verdicts of all sizes together say and none of a size does: one about growth, say.
other_cases(#{sizes := Sizes, verdicts := Verdicts, expression := Expression} = Subject) ->
    Said = [{P, S} || #{verdicts := Vs} <- Sizes, #{property := P, status := S} <- Vs],
    [testcase(V, Expression, [], [evidence(V)], Subject)
     || #{property := P, status := S} = V <- Verdicts, not lists:member({P, S}, Said)].

testcase(#{property := Property} = Verdict, Class, Time, Text, Subject) ->
    {Kind, Inner} = outcome(Verdict, Subject),
    Name = fairnif_check_verdict:title(Property),
    {Kind, element(testcase, [{classname, Class}, {name, Name} | Time], message(Inner, Text))}.

outcome(#{status := fail, sentence := Sentence}, #{role := subject}) ->
    {failure, {failure, Sentence}};
outcome(#{status := fail, sentence := Sentence}, _) ->
    {skipped, {skipped, ["for comparison: ", Sentence]}};
outcome(#{status := waived, property := Property, sentence := Sentence}, #{waived := Waived}) ->
    {skipped, {skipped, ["waived (", maps:get(Property, Waived, "?"), "): ", Sentence]}};
outcome(#{status := unsure, sentence := Sentence}, _) ->
    {skipped, {skipped, Sentence}};
outcome(#{status := warn, sentence := Sentence}, _) ->
    {passed, {'system-out', Sentence}};
outcome(#{status := pass}, _) ->
    {passed, none}.

message(none, _) ->
    [];
message({'system-out', Sentence}, Text) ->
    element('system-out', [], escape([Sentence, "\n", Text], text));
message({Tag, Sentence}, Text) ->
    Type = case Tag of
               skipped -> [];
               _ -> [{type, <<"fairnif">>}]
           end,
    element(Tag, [{message, Sentence} | Type], escape(Text, text)).

class(Size, #{expression := Expression}) ->
    [Expression, " at ", fairnif_check_table:count(Size), " bytes"].

time(#{property := crash}, #{time := #{median := Ns}}) when is_number(Ns) ->
    [{time, float_to_binary(Ns / 1.0e9, [{decimals, 9}, compact])}];
time(_, _) ->
    [].

evidence(#{evidence := Evidence}) ->
    [[atom_to_binary(K), ": ", text(V), "\n"]
     || {K, V} <- lists:sort(maps:to_list(Evidence)), V =/= undefined].

error_of(#{error := Error}) when is_binary(Error) -> [Error, "\n"];
error_of(_) -> [].

%% ---- counts ----

-spec add(counts(), counts()) -> counts().
add(A, B) ->
    maps:fold(fun(K, N, Sum) -> maps:update_with(K, fun(M) -> M + N end, N, Sum) end, B, A).

kind(failure) -> failures;
kind(error) -> errors;
kind(Kind) -> Kind.

counts(Keys, Counts) ->
    [{K, integer_to_binary(maps:get(K, Counts, 0))} || K <- Keys].

%% ---- XML ----

%% Children are markup already; attributes are text still.
element(Tag, Attributes, Children) ->
    Name = atom_to_binary(Tag),
    Start = [$<, Name, [[$\s, atom_to_binary(K), "=\"", escape(V, attribute), $"]
                        || {K, V} <- Attributes]],
    case iolist_size(Children) of
        0 -> [Start, "/>"];
        _ -> [Start, $>, Children, "</", Name, $>]
    end.

text(Text) when is_binary(Text) -> Text;
text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Int) when is_integer(Int) -> integer_to_binary(Int);
text(Float) when is_float(Float) -> float_to_binary(Float, [short]);
text(Other) -> unicode:characters_to_binary(io_lib:format("~0tp", [Other])).

%% Each binary by itself: one that is no UTF-8 is read as Latin-1, as in the JSON reports.
escape(Text, Where) ->
    unicode:characters_to_binary([escape_char(C, Where) || C <- characters(Text)]).

characters(C) when is_integer(C) -> [C];
characters(List) when is_list(List) -> lists:append([characters(E) || E <- List]);
characters(Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) -> Chars;
        _ -> binary_to_list(Text)
    end.

escape_char($&, _) -> "&amp;";
escape_char($<, _) -> "&lt;";
escape_char($>, _) -> "&gt;";          % for ]]>, which text must not hold
escape_char($", attribute) -> "&quot;";
%% In an attribute a parser makes blanks of these, unless they are written so.
escape_char(C, attribute) when C =:= $\n; C =:= $\t -> ["&#", integer_to_list(C), $;];
escape_char(C, text) when C =:= $\n; C =:= $\t -> C;
%% \r among them: parsers disagree on whether it is a line end.
escape_char(C, _) when C < 16#20 -> 16#2400 + C;
escape_char(16#7F, _) -> 16#2421;
escape_char(C, _) when C >= 16#80, C =< 16#9F; C =:= 16#FFFE; C =:= 16#FFFF -> 16#FFFD;
escape_char(C, _) -> C.
