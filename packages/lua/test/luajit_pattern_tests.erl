%% string.find, match, gmatch and gsub answer what LuaJIT's own do, errors too.
-module(luajit_pattern_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [holds/2]).

patterns_test_() ->
    Texts = ["hello world", "", "a", "aaa", "key = value", "[[x]]", "a.b.c", "(a(b)c)",
             "THE (quick) fox", "x\\0y", "  trim me  ", "1234-56-78", "%d", "a-b^c$", "f(a,b)g(c)"],
    Patterns = ["", "l+", "o", "^h", "d$", "(%w+) = (%w+)", "%b()", "%f[%w]%w+", "()a()", "(a)(b)?",
                "a-", ".-", "(.-)%s*$", "[^%s]+", "[a-c]", "[%a-]", "[]x]", "[^]x]", "%d+", "%D+",
                "%p", "%x+", "%S", "(%a)%1", "%.", "%%", "a*", "$", "^$", "^(.-)%s*=%s*(.-)$",
                "%u%l*", "[%-^]", "(())", "%z", "%", "[a", "(a", "a)", "%1", "%b", "%f", "[%",
                "(()", "%g+", "%c", "((a)b)", "a*()%1", "%bll", "%baab?"],
    Script = script(),
    {ok, State} = luajit:new(),
    [?_test([?assertEqual({Text, Pattern, lines(plain(Script, Text, Pattern))},
                          {Text, Pattern, lines(fair(State, Script, Text, Pattern))})
             || Text <- Texts])
     || Pattern <- Patterns].

any_pattern_test_() ->
    Script = script(),
    {ok, State} = luajit:new(),
    {timeout, 600, fun() -> holds(1000, any_pattern(State, Script)) end}.

any_pattern(State, Script) ->
    ?FORALL({Text, Pattern}, {list(oneof("ab(c)1 ")), list(oneof("ab(c)%[]^$*+-?.1dwf "))},
            lines(plain(Script, Text, Pattern)) =:= lines(fair(State, Script, Text, Pattern))).

script() ->
    File = filename:join(code:lib_dir(luajit), "test/scripts/patterns.lua"),
    {ok, Script} = file:read_file(File),
    Script.

lines(Text) ->
    string:split(Text, "\n", all).

fair(State, Script, Text, Pattern) ->
    {ok, [Answers]} = luajit:eval(State, Script, [list_to_binary(Text), list_to_binary(Pattern)]),
    Answers.

%% In LuaJIT with its own libraries.
plain(Script, Text, Pattern) ->
    Call = ["return (function(...) ", Script, "\nend)(", quoted(Text), ", ", quoted(Pattern), ")"],
    {ok, Answers} = luajit:plain_eval(iolist_to_binary(Call)),
    Answers.

quoted(Text) ->
    [$", [io_lib:format("\\~3..0b", [C]) || C <- Text], $"].
