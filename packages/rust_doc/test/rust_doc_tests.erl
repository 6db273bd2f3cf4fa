%% What rust_doc promises: documents that took the same updates are the same, in all forms, errors
%% for what is no update, and, in the fair form, a VM that stays usable meanwhile.
-module(rust_doc_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(rust_doc, [new/0, insert/3, text/1, encode/1]).
-import(example_test, [eventually/1, holds/2, beside/1, least_gap/1, on_one_scheduler/1,
                       with_pauses/1]).

-define(APPLIES, [fun rust_doc:apply/2, fun rust_doc:plain_apply/2, fun rust_doc:dirty_apply/2]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

a_text_test() ->
    Doc = new(),
    ?assertEqual(<<>>, text(Doc)),
    ok = insert(Doc, 0, <<"one three">>),
    ok = insert(Doc, 4, <<"two ">>),
    ?assertEqual(<<"one two three">>, text(Doc)),
    ok = insert(Doc, 13, <<" é€𝄞"/utf8>>),
    ok = insert(Doc, 16, <<"x">>),
    ?assertEqual(<<"one two three éx€𝄞"/utf8>>, text(Doc)).

badarg_test_() ->
    Doc = new(),
    ok = insert(Doc, 0, <<"é"/utf8>>),
    [?_assertError(badarg, insert(Doc, 3, <<"a">>)),
     ?_assertError(badarg, insert(Doc, 1, <<"a">>)),
     ?_assertError(badarg, insert(Doc, 0, <<255>>)),
     ?_assertError(badarg, insert(Doc, -1, <<"a">>)),
     ?_assertError(badarg, insert(make_ref(), 0, <<"a">>)),
     ?_assertError(badarg, text(make_ref())),
     ?_assertError(badarg, rust_doc:apply(Doc, a)),
     ?_assertError(badarg, rust_doc:plain_apply(Doc, a))].

%% As a caller that sends one by mistake would.
no_update_test_() ->
    [?_test(begin
                Doc = document(100),
                Text = text(Doc),
                {error, Why} = Apply(Doc, Update),
                ?assert(is_binary(Why)),
                ?assertEqual(Text, text(Doc))
            end)
     || Apply <- ?APPLIES,
        Update <- [<<>>, <<255>>, <<"no update at all">>,
                   binary:part(encode(document(100)), 0, 50)]].

%% Deeper than any stack: as who wants the node to end would.
too_deep_test_() ->
    {timeout, 600,
     [?_test(begin
                 Doc = document(10),
                 {error, Why} = Apply(Doc, Update),
                 ?assertNotEqual(nomatch, binary:match(Why, [<<"too deep">>, <<"recursion limit">>,
                                                             <<"no text">>])),
                 ?assertEqual(10, byte_size(text(Doc)))
             end)
      || Apply <- ?APPLIES,
         Update <- [values(binary:copy(<<117, 1>>, 200000)),
                    values(binary:copy(<<118, 1, 1, "k">>, 200000)),
                    values(binary:copy(<<117, 1>>, 129)),
                    json(binary:copy(<<"[">>, 200000)), types(200000)]]}.

as_deep_as_may_be_test() ->
    [ok = rust_doc:apply(new(), Update)
     || Update <- [values(binary:copy(<<117, 1>>, 128)),
                   values(<<117, 2, 118, 2, 1, "a", 125, 5, 1, "b", 117, 2, 120, 119, 1, "c">>),
                   json([binary:copy(<<"[">>, 127), binary:copy(<<"]">>, 127)])]].

%% One block of a client, in the text: of values, or of one that is JSON.
values(Value) ->
    block([8, 1, 4, "text", 1, Value, 126]).

json(Text) ->
    block([5, 1, 4, "text", leb128(iolist_size(Text)), Text]).

block(Block) ->
    iolist_to_binary([1, 1, 1, 0, Block, 0]).

%% Arrays, each in the one before, and the first one deleted.
types(Depth) ->
    iolist_to_binary([1, leb128(Depth), 1, 0, [7, 1, 4, "text", 0],
                      [[7, 0, 1, leb128(I), 0] || I <- lists:seq(0, Depth - 2)],
                      [1, 1, 1, 0, 1]]).

leb128(N) when N < 128 -> [N];
leb128(N) -> [N rem 128 + 128 | leb128(N div 128)].

every_form_test_() ->
    {timeout, 600, fun every_form/0}.

every_form() ->
    Doc = document(1000),
    Update = encode(Doc),
    ?assertEqual(Update, rust_doc:plain_encode(Doc)),
    ?assertEqual(Update, rust_doc:dirty_encode(Doc)),
    [begin
         Copy = new(),
         ok = Apply(Copy, Update),
         ?assertEqual(text(Doc), text(Copy)),
         %% What is known changes nothing.
         ok = Apply(Copy, Update),
         ?assertEqual(Update, encode(Copy))
     end || Apply <- ?APPLIES].

they_agree_test_() ->
    {timeout, 600, fun() -> holds(300, agree()) end}.

they_agree_with_pauses_test_() ->
    with_pauses({timeout, 600, fun() -> holds(100, agree()) end}).

%% Each edits its own, all send to all, in another order each.
agree() ->
    ?FORALL(Edits, [list({nat(), letter()}) || _ <- [1, 2, 3]],
            begin
                Docs = [edited(E) || E <- Edits],
                Updates = [encode(Doc) || Doc <- Docs],
                [rust_doc:apply(Doc, Update)
                 || {Doc, N} <- lists:zip(Docs, [1, 2, 3]),
                    Update <- lists:nthtail(N, Updates ++ Updates)],
                [One, One, One] = [text(Doc) || Doc <- Docs],
                length(unicode:characters_to_list(One)) =:= length(lists:append(Edits))
            end).

letter() -> oneof([<<"a">>, <<"b">>, <<"é"/utf8>>, <<"𝄞"/utf8>>]).

%% In front or at the end: between two bytes of a character nothing can be put.
edited(Edits) ->
    Doc = new(),
    [insert(Doc, case N rem 2 of 0 -> 0; 1 -> byte_size(text(Doc)) end, Char)
     || {N, Char} <- Edits],
    Doc.

%% Many at one document: each waits for its turn.
together_test_() ->
    {timeout, 600, fun together/0}.

together() ->
    Doc = new(),
    Writers = [spawn_monitor(fun() -> [ok = insert(Doc, 0, <<"x">>) || _ <- lists:seq(1, 200)] end)
               || _ <- lists:seq(1, 20)],
    [receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end
     || {Pid, Monitor} <- Writers],
    ?assertEqual(4000, byte_size(text(Doc))).

%% ------------------------------------------------------------------
%% The VM meanwhile
%% ------------------------------------------------------------------

%% The plain one holds the only scheduler for all of its time.
a_neighbour_runs_test_() ->
    on_one_scheduler({timeout, 600, fun a_neighbour_runs/0}).

a_neighbour_runs() ->
    {Elapsed, Gap} = gap_beside(fun rust_doc:apply/2),
    ?assert(Gap < Elapsed / 3),
    {PlainElapsed, PlainGap} = gap_beside(fun rust_doc:plain_apply/2),
    ?assert(PlainGap > PlainElapsed / 2).

gap_beside(Apply) ->
    least_gap(fun() ->
                  {Doc, Update} = apart(1500),
                  beside(fun() -> ok = Apply(Doc, Update) end)
              end).

%% What has begun ends; a caller that waits for the document and is killed is in no one's way.
a_dead_caller_leaves_the_document_test_() ->
    {timeout, 600, fun a_dead_caller_leaves_the_document/0}.

a_dead_caller_leaves_the_document() ->
    {Doc, Update} = apart(4000),            % a second of work
    {Holder, Holding} = spawn_monitor(fun() -> rust_doc:apply(Doc, Update) end),
    eventually(fun() -> fairnif:tasks() =/= [] end),
    {Waiter, Waiting} = spawn_monitor(fun() -> rust_doc:apply(Doc, Update) end),
    eventually(fun() -> [] =/= [1 || #{owner := P} <- fairnif:tasks(), P =:= Waiter] end),
    exit(Waiter, kill),
    exit(Holder, kill),
    [receive {'DOWN', Monitor, process, _, Why} -> ?assertEqual(killed, Why) end
     || Monitor <- [Holding, Waiting]],
    ?assertEqual(8000, byte_size(text(Doc))),
    eventually(fun() -> fairnif:tasks() =:= [] end).

%% What frees a large document is a thread in the library's code, which may be purged
%% meanwhile.
purged_while_documents_go_test_() ->
    {timeout, 600, fun purged_while_documents_go/0}.

purged_while_documents_go() ->
    Update = encode(document(100000)),
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> ok = rust_doc:apply(new(), Update) end),
         receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end,
         true = code:delete(rust_doc),
         _ = code:purge(rust_doc),
         {module, rust_doc} = code:load_file(rust_doc)
     end || _ <- lists:seq(1, 20)],
    ?assertEqual(<<>>, text(new())).

%% A document, and an update of another one: that many characters were typed into each, from the
%% end. To join such takes time in the square of that, in one of the two directions.
apart(Size) ->
    [A, B] = [encode(document(Size)) || _ <- [1, 2]],
    Took = fun(Doc, Update) ->
                   {Us, ok} = timer:tc(fun() -> rust_doc:apply(Doc, Update) end),
                   Us
           end,
    case Took(restored(A), B) > Took(restored(B), A) of
        true -> {restored(A), B};
        false -> {restored(B), A}
    end.

restored(Update) ->
    Doc = new(),
    ok = rust_doc:apply(Doc, Update),
    Doc.

%% Typed from the end: yrs cannot join the characters.
document(Size) ->
    Doc = new(),
    [ok = insert(Doc, 0, <<($a + N rem 26)>>) || N <- lists:seq(1, Size)],
    Doc.
