%% expat beside fast_xml, and its own plain and dirty forms: CPU time of the node for one call, the
%% forms in turns.
%%
%%   make bench
-module(expat_bench).

-export([main/0]).

main() ->
    Forms = [fast_xml || code:ensure_loaded(fxml) =/= {error, nofile}] ++ [plain, fair, dirty],
    [{module, fast_xml} = code:ensure_loaded(fast_xml) || fast_xml <- Forms],
    example_bench:heading(),
    [row(Function, Name, Document, Forms)
     || Function <- [parse, to_binary],
        {Name, Make} <- documents(),
        Size <- [1000, 10000, 100000, 1000000],
        Document <- [iolist_to_binary(Make(Size))]],
    halt().

%% Short messages with namespaces; small elements, one a line; paragraphs.
documents() ->
    [{xmpp, fun(Size) ->
                    ["<stream>", [message(I) || I <- lists:seq(1, Size div 220)], "</stream>"]
            end},
     {feed, fun(Size) ->
                    ["<feed>\n", [item(I) || I <- lists:seq(1, Size div 130)], "</feed>"]
            end},
     {text, fun(Size) ->
                    ["<doc>", lists:duplicate(Size div 830, ["<p>", lists:duplicate(18, line()),
                                                             "</p>"]), "</doc>"]
            end}].

message(I) ->
    N = integer_to_list(I),
    ["<message xmlns='jabber:client' from='user", N, "@example.org/home' to='other@example.org' "
     "id='", N, "' type='chat'><body>Hello &amp; goodbye, number ", N, "</body>"
     "<active xmlns='http://jabber.org/protocol/chatstates'/></message>"].

item(I) ->
    N = integer_to_list(I),
    ["  <item id='", N, "'>\n    <title>Title ", N, "</title>\n    <link href='http://example.org/",
     N, "'/>\n    <n>", N, "</n>\n  </item>\n"].

line() ->
    "The quick brown fox jumps over the lazy dog &lt;\n".

row(Function, Name, Document, Forms) ->
    Argument = case Function of
                   parse -> Document;
                   to_binary -> expat:parse(Document)
               end,
    example_bench:compare(io_lib:format("~-10s ~-5s ~8b bytes",
                                        [Function, Name, byte_size(Document)]),
                          Forms, fun(Form) -> call(Form, Function, Argument) end).

call(fast_xml, parse, Document) -> fxml_stream:parse_element(Document);
call(fast_xml, to_binary, Element) -> fxml:element_to_binary(Element);
call(plain, parse, Document) -> expat:plain_parse(Document);
call(plain, to_binary, Element) -> expat:plain_to_binary(Element);
call(fair, parse, Document) -> expat:parse(Document);
call(fair, to_binary, Element) -> expat:to_binary(Element);
call(dirty, parse, Document) -> expat:dirty_parse(Document);
call(dirty, to_binary, Element) -> expat:dirty_to_binary(Element).
