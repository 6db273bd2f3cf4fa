%% What expat promises: fast_xml's answers, but where a table here says otherwise; what was written
%% is read again; documents that are attacks are refused; and, in the fair forms, a VM that stays
%% usable meanwhile.
-module(expat_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(expat, [parse/1, parse/2, to_binary/1, plain_parse/1, plain_to_binary/1, dirty_parse/1,
                dirty_to_binary/1]).
-import(example_test, [eventually/1, holds/2, beside/1, least_gap/1, begun/1, kill_task_after/2,
                       on_one_scheduler/1, with_pauses/1]).

%% ------------------------------------------------------------------
%% Documents
%% ------------------------------------------------------------------

%% Read alike by all forms, and by fast_xml.
accepted() ->
    [<<"<a/>">>, <<"<a x='1' y=\"2\">t<b/>u</a>">>, <<"<a  >  </a>">>, <<"<a>\t\n</a>">>,
     %% Namespaces: prefixes stay, declarations come first.
     <<"<a xmlns='n'><b xmlns='n'/></a>">>, <<"<a xmlns:p='n' p:x='1'><p:b/></a>">>,
     <<"<a b='1' xmlns='n' c='2' xmlns:p='q'/>">>, <<"<a xmlns=''/>">>,
     <<"<a xmlns='n'><b xmlns=''/></a>">>, <<"<a xml:lang='de'/>">>,
     <<"<a xmlns:p='n'><p:b xmlns:p='m' p:c=''/></a>">>,
     <<"<s:s xmlns:s='s' xmlns='c'><m/></s:s>">>, <<"<a xmlns:p='x\ny' p:c='1'/>">>,
     %% What is not text.
     <<"<a/> \n<!-- c --><?pi x?>">>, <<"<a><!-- c -->t<!-- d -->u</a>">>, <<"<a>t<?pi x?>u</a>">>,
     <<"<?xml version='1.0'?><a/>">>,
     %% Entities, CDATA, ends of lines.
     <<"<a>&amp;&lt;&gt;&quot;&apos;&#65;&#x20ac;</a>">>, <<"<a b='&lt;&#10;'/>">>,
     <<"<a><![CDATA[x<y]]>z</a>">>, <<"<a><![CDATA[]]></a>">>, <<"<a>\r\nx\ry</a>">>,
     <<"<a x='1\n2\t3'/>">>,
     %% Encodings.
     <<16#ef, 16#bb, 16#bf, "<a/>">>, <<16#ff, 16#fe, "<", 0, "a", 0, "/", 0, ">", 0>>,
     <<16#fe, 16#ff, 0, "<", 0, "a", 0, "/", 0, ">">>, <<"<é>ß</é>"/utf8>>,
     <<"<?xml version='1.0' encoding='iso-8859-1'?><a>ß</a>"/utf8>>].

%% Refused by all, with the same of expat's codes.
refused() ->
    [{3, <<>>}, {3, <<" ">>}, {2, <<"x">>}, {3, <<"<a>">>}, {7, <<"<a></b>">>}, {9, <<"<a/><b/>">>},
     {9, <<"<a/>x">>}, {8, <<"<a x='1' x='2'/>">>}, {4, <<"<a>]]></a>">>}, {4, <<"<a:b:c/>">>},
     {11, <<"<a>&foo;</a>">>}, {14, <<"<a>&#0;</a>">>},
     %% Namespaces.
     {27, <<"<p:a/>">>}, {27, <<"<a p:x='1'/>">>}, {27, <<"<xmlns:a/>">>},
     {28, <<"<a xmlns:p=''/>">>},
     {8, <<"<a xmlns:p='n' xmlns:q='n' p:x='1' q:x='2'/>">>}, {39, <<"<a xmlns:xmlns='x'/>">>},
     {2, <<"<a xmlns='x&#10;y'/>">>},
     %% No UTF-8, no characters.
     {4, <<"<a>", 233, "</a>">>}, {4, <<"<a>", 16#c0, 16#80, "</a>">>}, {4, <<"<a>", 0, "</a>">>},
     {4, <<"<a>", 1, "</a>">>},
     {4, <<"<?xml version='1.0' encoding='iso-8859-1'?><a>", 233, "</a>">>},
     {4, <<"<a>", 16#ed, 16#a0, 16#80, "</a>">>}].

%% Refused with code 35, whatever they say: no entities, nothing fetched.
doctypes() ->
    [<<"<!DOCTYPE a><a/>">>, <<"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>">>,
     <<"<!DOCTYPE a [<!ELEMENT a ANY>]><a/>">>, <<"<!DOCTYPE a [<!ATTLIST a b CDATA 'd'>]><a/>">>,
     <<"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>">>, <<"<!DOCTYPE a SYSTEM 'b'><a>&x;</a>">>,
     <<"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>">>,
     <<"<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://127.0.0.1:1/x'> %p;]><a/>">>, billion_laughs()].

billion_laughs() ->
    Entities = [["<!ENTITY l", $0 + I, " '", lists:duplicate(10, ["&l", $0 + I - 1, $;]), "'>"]
                || I <- lists:seq(1, 9)],
    iolist_to_binary(["<!DOCTYPE a [<!ENTITY l0 'ha'>", Entities, "]><a>&l9;</a>"]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

accepted_documents_are_read_as_fast_xml_reads_them_test_() ->
    [?_test(begin
                {xmlel, _, _, _} = Element = parse(Document),
                same_in_all_forms(Element, Document)
            end) || Document <- accepted()].

a_pause_at_every_tick_changes_no_answer_test_() ->
    with_pauses([?_test(same_in_all_forms(parse(Document), Document)) || Document <- accepted()]).

refused_documents_have_fast_xmls_codes_test_() ->
    [?_test(begin
                {error, {Code, <<_, _/binary>>}} = Error = parse(Document),
                same_in_all_forms(Error, Document)
            end) || {Code, Document} <- refused()].

document_types_are_refused_test_() ->
    [?_test(begin
                Error = {error, {35, <<"document type declarations are refused">>}},
                [?assertEqual(Error, Form(Document))
                 || Form <- [fun expat:parse/1, fun expat:plain_parse/1, fun expat:dirty_parse/1]],
                [?assertMatch({error, {35, _}}, fxml_stream:parse_element(Document))
                 || fast_xml()]
            end) || Document <- doctypes()].

same_in_all_forms(Answer, Document) ->
    [?assertEqual(Answer, Form(Document))
     || Form <- [fun expat:plain_parse/1, fun expat:dirty_parse/1]],
    [?assertEqual(Answer, fxml_stream:parse_element(Document)) || fast_xml()].

fast_xml() ->
    {ok, _} = application:ensure_all_started(expat),
    case application:ensure_all_started(fast_xml) of
        {ok, _} -> true;
        {error, _} -> ?debugMsg("skipped: fast_xml is not installed"), false
    end.

depth_is_limited_test() ->
    Nested = fun(N) -> [lists:duplicate(N, "<a>"), lists:duplicate(N, "</a>")] end,
    ?assertMatch({xmlel, <<"a">>, [], [_]}, parse(Nested(1000))),
    ?assertEqual({error, {limit, depth}}, parse(Nested(1001))),
    ?assertEqual({error, {limit, depth}}, parse(<<"<a/>">>, #{depth => 0})),
    Deep = parse(Nested(100000), #{depth => 100000}),
    ?assertEqual(Deep, parse(to_binary(Deep), #{depth => 100000})).

attributes_are_limited_test_() ->
    {timeout, 600, fun attributes_are_limited/0}.

attributes_are_limited() ->
    Many = fun(N, Name) ->
               ["<a", [[" ", Name, integer_to_list(I), "='x'"] || I <- lists:seq(1, N)], "/>"]
           end,
    [begin
         {xmlel, <<"a">>, List, []} = parse(Many(1000, Name)),
         ?assertEqual(1000, length(List)),
         ?assertEqual({error, {limit, attributes}}, parse(Many(1001, Name))),
         Document = iolist_to_binary(Many(20000, Name)),
         Element = parse(Document, #{attributes => 20000}),
         ?assertEqual(plain_parse(Document), Element)
     end || Name <- ["b", "xmlns:b"]].

%% Over 4096 bytes it is gathered in blocks; a comment or a tag is one token, however long.
long_parts_are_read_test_() ->
    [{timeout, 600, ?_test(begin
                Long = binary:copy(<<"0123456789">>, N),
                Document = <<"<a b='", Long/binary, "'>", Long/binary, "<!--", Long/binary, "-->",
                             Long/binary, "<c/></a>">>,
                Tree = parse(Document),
                ?assertEqual({xmlel, <<"a">>, [{<<"b">>, Long}],
                              [{xmlcdata, <<Long/binary, Long/binary>>},
                               {xmlel, <<"c">>, [], []}]}, Tree),
                same_in_all_forms(Tree, Document),
                ?assertEqual(plain_to_binary(Tree), to_binary(Tree))
            end)} || N <- [1, 409, 410, 819, 820, 3000, 300000]].

many_children_and_names_are_read_test_() ->
    [?_test(begin
                Child = fun(Name) -> ["<b", Name, " c='1'>x</b", Name, ">y"] end,
                Document = iolist_to_binary(["<a>", [Child(integer_to_list(I rem Names))
                                                     || I <- lists:seq(1, N)], "</a>"]),
                same_in_all_forms(parse(Document), Document)
            end) || N <- [1, 63, 64, 127, 128, 129, 256, 257, 20000], Names <- [1, 1000]].

iodata_test() ->
    ?assertEqual({xmlel, <<"a">>, [], [{xmlcdata, <<"b">>}]}, parse(["<a", [$>, <<"b</">>], "a>"])).

badarg_test_() ->
    [?_assertError(badarg, Fun())
     || Fun <- [fun() -> parse(a) end, fun() -> parse(<<1:3>>) end,
                fun() -> parse(["<a/>" | b]) end,
                fun() -> parse(<<"<a/>">>, #{depth => -1}) end,
                fun() -> parse(<<"<a/>">>, #{attributes => x}) end,
                fun() -> parse(<<"<a/>">>, #{deep => 1}) end] ++
               [fun() -> to_binary(Term) end
                || Term <- [a, {xmlel, a, [], []}, {xmlel, <<"a">>, [{x, <<"1">>}], []},
                            {xmlel, <<"a">>, [{<<"x">>, 1}], []}, {xmlel, <<"a">>, [], [a]},
                            {xmlel, <<"a">>, [], a}, {xmlel, <<"a">>, a, []}, {xmlcdata, a},
                            {xmlel, <<"a">>, [], [{xmlcdata, <<"x">>} | a]}, [],
                            {xmlcdata, [<<1:3>>]}, {xmlel, <<"a">>, [], [<<"x">>]}]]].

%% ------------------------------------------------------------------
%% Writing
%% ------------------------------------------------------------------

written_as_fast_xml_writes_test_() ->
    [?_test(begin
                Binary = to_binary(Term),
                ?assertEqual(Binary, plain_to_binary(Term)),
                ?assertEqual(Binary, dirty_to_binary(Term)),
                [?assertEqual(fxml:element_to_binary(Term), Binary) || fast_xml()]
            end) || Term <- [{xmlel, <<"a">>, [], []}, {xmlel, <<"a">>, [], [{xmlcdata, <<>>}]},
                             {xmlel, "a", [{"x", ["1", <<"<>&'\"\n\t\r">>]}], []},
                             {xmlcdata, <<"x&">>},
                             {xmlel, <<"a">>, [], [{xmlcdata, ["<>&'\"\n\t", <<"]]>">>]}]},
                             {xmlcdata, lists:duplicate(10000, <<"a&">>)},
                             {xmlel, binary:copy(<<"a">>, 10000), [], [{xmlcdata, <<"b">>}]}]].

%% fast_xml writes it as it is, and a parser makes a \n of it.
a_carriage_return_survives_test() ->
    Term = {xmlel, <<"a">>, [], [{xmlcdata, <<"x\r\ny\r">>}]},
    ?assertEqual(Term, parse(to_binary(Term))).

any_tree_comes_back_test_() ->
    {timeout, 600, fun() -> holds(500, any_tree()) end}.

any_tree_comes_back_with_pauses_test_() ->
    with_pauses({timeout, 600, fun() -> holds(100, any_tree()) end}).

any_tree() ->
    ?FORALL(Tree, element(),
            begin
                Document = to_binary(Tree),
                Document =:= plain_to_binary(Tree) andalso parse(Document) =:= Tree
                    andalso plain_parse(Document) =:= Tree
            end).

element() ->
    ?SIZED(Size, element(Size)).

element(Size) ->
    ?LET({Name, Attributes, Children},
         {name(), list({name(), text()}), children(Size)},
         {xmlel, Name, lists:ukeysort(1, Attributes), Children}).

%% No text beside text: what is read has it in one piece.
children(0) -> [];
children(Size) ->
    ?LET({Count, Text}, {integer(0, 6), non_empty_text()},
         ?LET(Elements, vector(Count, element(Size div (Count + 1))),
              oneof([Elements, lists:join({xmlcdata, Text}, Elements), [{xmlcdata, Text}]]))).

name() ->
    ?LET({First, Rest}, {oneof("abcXYZ_"), list(oneof("abz09-._"))},
         list_to_binary([First | Rest])).

text() ->
    ?LET(Characters, list(oneof([$a, $<, $>, $&, $', $", $], $\n, $\t, $\r, 16#e9, 16#20ac,
                                 16#1f600, integer(32, 126)])),
         unicode:characters_to_binary(Characters)).

non_empty_text() ->
    ?LET(Text, text(), <<"x", Text/binary>>).

%% Documents of parts that fit together, or do not.
any_document_is_read_as_fast_xml_reads_it_test_() ->
    case fast_xml() of
        true -> {timeout, 600, fun() -> holds(2000, any_document()) end};
        false -> []
    end.

any_document() ->
    ?FORALL(Parts, list(part()),
            begin
                Document = iolist_to_binary(["<a>", Parts, "</a>"]),
                parse(Document) =:= fxml_stream:parse_element(Document)
            end).

part() ->
    frequency([{8, oneof(["<b/>", "<b x='1'>", "</b>", "text", "\n", "&amp;", "<!-- c -->",
                          "<?p i?>"])},
               {4, ?LET(Parts, list(oneof(["t", "<c/>", "&lt;", "\r\n", "<![CDATA[&]]>"])),
                        ["<d xmlns='n'>", Parts, "</d>"])},
               {1, oneof(["<p:b/>", "<b xmlns:p='q' p:x=''/>", "&x;", "]]>", <<255>>, "<", "é"])}]).

%% ------------------------------------------------------------------
%% The VM meanwhile
%% ------------------------------------------------------------------

%% The plain ones hold the only scheduler to their end.
a_neighbour_runs_test_() ->
    Document = document(100000),
    Tree = parse(Document),
    [on_one_scheduler({timeout, 600, fun() -> a_neighbour_runs(Fair, Plain) end})
     || {Fair, Plain} <- [{fun() -> parse(Document) end, fun() -> plain_parse(Document) end},
                          {fun() -> to_binary(Tree) end, fun() -> plain_to_binary(Tree) end}]].

a_neighbour_runs(Fair, Plain) ->
    {Elapsed, Gap} = least_gap(fun() -> beside(Fair) end),
    ?assert(Gap < Elapsed / 3),
    %% After the plain one its caller collects, in another turn.
    {_, PlainGap} = least_gap(fun() -> beside(Plain) end),
    ?assert(PlainGap > 3 * Gap).

%% expat has the names in tables, and rebuilds a full one in one go: on a dirty scheduler.
a_document_of_many_names_is_no_hold_test_() ->
    {timeout, 600, fun a_document_of_many_names_is_no_hold/0}.

a_document_of_many_names_is_no_hold() ->
    Parts = [fun(I) -> ["<e", I, "/>"] end, fun(I) -> ["<e a", I, "=''/>"] end,
             fun(I) -> ["<p", I, ":e xmlns:p", I, "='n'/>"] end],
    Document = fun(Part, Names) ->
                   iolist_to_binary(["<d>", [Part(integer_to_list(I rem Names))
                                             || I <- lists:seq(1, 20000)], "</d>"])
               end,
    [begin
         {Few, Many} = {Document(Part, 200), Document(Part, 20000)},
         ?assertEqual(0, dirty_ns(Few)),
         ?assert(dirty_ns(Many) > 0),
         ?assertEqual(plain_parse(Many), parse(Many))
     end || Part <- Parts].

dirty_ns(Document) ->
    Before = dirty_ns(),
    {xmlel, _, _, _} = parse(Document),
    dirty_ns() - Before.

dirty_ns() ->
    #{functions := Functions} = fairnif:info(),
    lists:sum([Ns || #{function := {expat, nif_parse, _}, dirty_ns := Ns} <- Functions]).

%% Within a callback of expat's, and while a long token is read on a dirty scheduler.
a_dead_caller_leaves_nothing_test_() ->
    {timeout, 600, fun a_dead_caller_leaves_nothing/0}.

a_dead_caller_leaves_nothing() ->
    Document = document(200000),
    Tree = parse(Document),
    Comment = ["<a><!--", binary:copy(<<"x">>, 100000000), "--></a>"],
    erlang:garbage_collect(),
    Before = erlang:memory(system),
    [kill_task_after(Ms, Fun) || Ms <- [0, 1, 10, 20], Fun <- [fun() -> parse(Document) end,
                                                               fun() -> to_binary(Tree) end,
                                                               fun() -> parse(Comment) end]],
    eventually(fun() -> erlang:memory(system) =< Before + 2000000 end).

%% A call continues in the old code while the module is loaded again; to purge that ends it.
reloaded_test_() ->
    {timeout, 600, fun reloaded/0}.

reloaded() ->
    Document = document(200000),
    Size = byte_size(Document),
    {Pid, Monitor} = begun(fun() -> exit({size, byte_size(to_binary(parse(Document)))}) end),
    {module, expat} = code:load_file(expat),
    ?assertEqual({xmlel, <<"a">>, [], []}, parse(<<"<a/>">>)),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual({size, Size}, Why) end,
    _ = code:purge(expat),
    eventually(fun() -> fairnif:tasks() =:= [] end).

document(N) ->
    Item = fun(I) -> ["<item id='", integer_to_list(I), "'><name>a &amp; b</name></item>"] end,
    iolist_to_binary(["<list>", [Item(I) || I <- lists:seq(1, N)], "</list>"]).

%% The room of one call is not the next one's need: the heap would grow by it each time.
who_calls_again_and_again_does_not_grow_test_() ->
    {timeout, 600, fun who_calls_again_and_again_does_not_grow/0}.

who_calls_again_and_again_does_not_grow() ->
    Document = iolist_to_binary(["<d>", lists:duplicate(5000, "<p>The quick fox</p>"), "</d>"]),
    Call = fun() -> expat:parse(Document) end,
    ?assert(example_test:most_heap(100, Call) < 12 * byte_size(Document)).
