%% What rust_markdown promises: the same HTML in all three forms, badarg for what is no UTF-8, and,
%% in the fair form, a VM that stays usable meanwhile.
-module(rust_markdown_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(rust_markdown, [to_html/1, plain_to_html/1, dirty_to_html/1]).
-import(example_test, [eventually/1, holds/2, kill_task_after/2, with_pauses/1]).

-define(PART, <<"# Heading\n\nA *paragraph* with [a link](http://example.org/x) and `code`,\n"
                "and **more** of it.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
                "```\nlet x = 1;\n```\n\n">>).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

known_test_() ->
    [{Markdown, [?_assertEqual(Html, to_html(Text)), ?_assertEqual(Html, plain_to_html(Text)),
                 ?_assertEqual(Html, dirty_to_html(Text))]}
     || {Markdown, Html} <- [{"", <<>>},
                             {"a", <<"<p>a</p>\n">>},
                             {"# a", <<"<h1>a</h1>\n">>},
                             {"*a* **b** ~~c~~ `d`", <<"<p><em>a</em> <strong>b</strong> "
                                                       "<del>c</del> <code>d</code></p>\n">>},
                             {"- a\n- b", <<"<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n">>},
                             {"[a][1]\n\n[1]: /b", <<"<p><a href=\"/b\">a</a></p>\n">>},
                             {"a < b & \"c\"", <<"<p>a &lt; b &amp; \"c\"</p>\n">>},
                             {"|a|\n|-|\n|b|", <<"<table><thead><tr><th>a</th></tr></thead>"
                                                 "<tbody>\n<tr><td>b</td></tr>\n"
                                                 "</tbody></table>\n">>}],
        Text <- [list_to_binary(Markdown)]].

characters_test() ->
    ?assertEqual(<<"<p>é€𝄞</p>\n"/utf8>>, to_html(<<"é€𝄞"/utf8>>)).

badarg_test_() ->
    [?_assertError(badarg, rust_markdown:F(Arg))
     || F <- [to_html, plain_to_html, dirty_to_html],
        Arg <- [a, 1, "list", <<1:3>>, <<255>>, <<(document(100000))/binary, 128>>]].

same_html_test_() ->
    {timeout, 600, fun() -> holds(500, agrees()) end}.

%% At every tick, with more than one block of everything.
same_html_with_pauses_test_() ->
    with_pauses({timeout, 600, fun() -> holds(100, agrees()) end}).

agrees() ->
    ?FORALL(Text, text(), to_html(Text) =:= plain_to_html(Text)).

text() ->
    ?LET(Parts, list(oneof(["# ", "* ", "1. ", "> ", "*", "**", "_", "`", "```\n", "[", "]", "(/u)",
                            "[1]: /u\n", "|", "\n|-|-|\n", "~~", "<b>", "<!--", "&amp;", "\\", "a",
                            "word ", "é", "\n", "\n\n", "    ", "---\n"])),
         unicode:characters_to_binary(Parts)).

sizes_test_() ->
    [{integer_to_list(Size), {timeout, 600, fun() -> sizes(Size) end}}
     || Size <- [1000, 10000, 100000, 1000000, 10000000]].

sizes(Size) ->
    Text = document(Size),
    Html = to_html(Text),
    ?assert(byte_size(Html) > Size),
    ?assertEqual(Html, plain_to_html(Text)),
    ?assertEqual(Html, dirty_to_html(Text)).

%% ------------------------------------------------------------------
%% The VM meanwhile
%% ------------------------------------------------------------------

%% The crate takes a paragraph apart in one go: what has a long one goes to a dirty scheduler.
long_paragraphs_are_no_hold_test_() ->
    Refs = "[r]: /u\n\n",
    Uses = fun(N) -> lists:duplicate(N, "[r] ") end,
    [{lists:flatten(io_lib:format("~P", [Text, 8])),
      {timeout, 600, ?_assertEqual({IsLong, Text}, {is_long(iolist_to_binary(Text)), Text})}}
     || {IsLong, Texts} <- [{true, [[Refs, Uses(200000)], [Uses(200)], lists:duplicate(30000, $a),
                                    ["- ", Uses(200)], ["a\n\n", Uses(200), "\n\nb"],
                                    %% What ends no paragraph: an empty item, one that is indented.
                                    lists:duplicate(10, [Uses(20), "\n* \n"]),
                                    lists:duplicate(10, [Uses(20), "\n* \r\n"]),
                                    lists:duplicate(10, [Uses(20), "\n    - a"]),
                                    lists:duplicate(10, [Uses(20), "\n*a"])]},
                            {false, [[], [Uses(20)], lists:duplicate(10000, $a),
                                     lists:duplicate(1000, ["- ", Uses(5), $\n]),
                                     lists:duplicate(1000, [Uses(20), "\n \r\n"]),
                                     document(100000)]}],
        Text <- Texts].

is_long(Text) ->
    Before = long_calls(),
    ?assertEqual(plain_to_html(Text), to_html(Text)),
    long_calls() > Before.

long_calls() ->
    #{functions := Functions} = fairnif:info(),
    lists:sum([N || #{function := {rust_markdown, nif_to_html_long, 1}, calls := N} <- Functions]).

%% While it writes, and while it looks for blocks.
a_dead_caller_leaves_nothing_test_() ->
    {timeout, 600, fun a_dead_caller_leaves_nothing/0}.

a_dead_caller_leaves_nothing() ->
    Text = document(10000000),
    _ = to_html(Text),
    erlang:garbage_collect(),
    Before = erlang:memory(binary),
    [kill_task_after(Ms, fun() -> to_html(Text) end) || Ms <- [0, 1, 20, 100, 150]],
    eventually(fun() -> erlang:memory(binary) =< Before + 1000000 end).

document(Size) ->
    binary:copy(?PART, Size div byte_size(?PART) + 1).
