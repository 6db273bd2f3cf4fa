%% expat beside fast_xml, and its own plain and dirty forms: CPU time of the node for one call, the
%% forms in turns.
%%
%%   make bench
-module(expat_bench).

-export([main/0]).

-define(ROUNDS, 9).
-define(ROUND_US, 60000).

main() ->
    Forms = [fast_xml || code:ensure_loaded(fxml) =/= {error, nofile}] ++ [plain, fair, dirty],
    [{module, fast_xml} = code:ensure_loaded(fast_xml) || fast_xml <- Forms],
    io:format("CPU time, median of ~b; the others against the first~n", [?ROUNDS]),
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
    Calls = [{Form, calls(Form, Function, Argument)} || Form <- Forms],
    Rounds = [[{Form, cpu_us(Form, Function, Argument, Count)} || {Form, Count} <- Calls]
              || _ <- lists:seq(1, ?ROUNDS)],
    [First | Others] = [{Form, median([proplists:get_value(Form, Round) || Round <- Rounds])}
                        || Form <- Forms],
    io:format("~-10s ~-5s ~8b bytes  ~s ~9.1f us ~s~n",
              [Function, Name, byte_size(Document), element(1, First), element(2, First),
               [io_lib:format("  ~s ~.2f x", [Form, Us / element(2, First)])
                || {Form, Us} <- Others]]).

%% As many as take a round's time.
calls(Form, Function, Argument) ->
    calls(Form, Function, Argument, 1).

calls(Form, Function, Argument, Count) ->
    case cpu_us(Form, Function, Argument, Count) * Count of
        Us when Us < ?ROUND_US / 4 -> calls(Form, Function, Argument, 4 * Count);
        Us -> max(1, round(Count * ?ROUND_US / Us))
    end.

cpu_us(Form, Function, Argument, Count) ->
    erlang:garbage_collect(),
    {_, Monitor} = spawn_monitor(fun() ->
                                         Begin = cpu_ms(),
                                         repeat(Count, Form, Function, Argument),
                                         exit({took, (cpu_ms() - Begin) * 1000 / Count})
                                 end),
    receive {'DOWN', Monitor, process, _, {took, Us}} -> Us end.

%% Of all threads, so also of a dirty one.
cpu_ms() ->
    {Ms, _} = erlang:statistics(runtime),
    Ms.

repeat(0, _, _, _) -> ok;
repeat(N, Form, Function, Argument) ->
    _ = call(Form, Function, Argument),
    repeat(N - 1, Form, Function, Argument).

call(fast_xml, parse, Document) -> fxml_stream:parse_element(Document);
call(fast_xml, to_binary, Element) -> fxml:element_to_binary(Element);
call(plain, parse, Document) -> expat:plain_parse(Document);
call(plain, to_binary, Element) -> expat:plain_to_binary(Element);
call(fair, parse, Document) -> expat:parse(Document);
call(fair, to_binary, Element) -> expat:to_binary(Element);
call(dirty, parse, Document) -> expat:dirty_parse(Document);
call(dirty, to_binary, Element) -> expat:dirty_to_binary(Element).

median(L) -> lists:nth((length(L) + 1) div 2, lists:sort(L)).
