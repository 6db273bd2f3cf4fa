%% What the six forms of levenshtein promise: one answer, badarg for anything
%% that is no binary. fairnif_check_examples_SUITE judges how they treat the VM.
-module(levenshtein_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [holds/2, with_pauses/1]).

%% Native code that keeps the rules; with the plain NIF; with Erlang.
-define(ON_NORMAL, [levenshtein, yielding_levenshtein]).
-define(FAIR, [dirty_levenshtein, threaded_levenshtein | ?ON_NORMAL]).
-define(NATIVE, [unfair_levenshtein | ?FAIR]).
-define(ALL, [erlang_levenshtein | ?NATIVE]).

%% Sizes the C code treats specially: the row leaves the stack after 256, a step
%% is 1024 cells, a comparison of beginnings and ends 4096 bytes.
-define(EDGES, [1, 255, 256, 257, 1023, 1024, 1025, 2049, 4097]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

every_form_knows_these_distances_test_() ->
    Known = [{<<>>, <<>>, 0},
             {<<>>, <<"abc">>, 3},
             {<<"a">>, <<"a">>, 0},
             {<<"a">>, <<"b">>, 1},
             {<<0>>, <<255>>, 1},
             {<<"kitten">>, <<"sitting">>, 3},
             {<<"saturday">>, <<"sunday">>, 3},
             {<<"intention">>, <<"execution">>, 5},
             {<<"flaw">>, <<"lawn">>, 2},
             {<<"abcdef">>, <<"fedcba">>, 6},
             {<<"aaaa">>, <<"aa">>, 2},
             {<<"abab">>, <<"baba">>, 2},
             {<<"the same beginning, then x">>, <<"the same beginning, y">>, 6},
             %% bytes, not characters
             {<<"naïve"/utf8>>, <<"naive">>, 2}],
    [{lists:flatten(io_lib:format("~s ~p ~p", [Form, A, B])),
      ?_assertEqual({D, D},
                    {levenshtein:Form(A, B), levenshtein:Form(B, A)})}
     || {A, B, D} <- Known, Form <- ?ALL].

every_form_agrees_with_erlang_test_() ->
    {timeout, 600,
     fun() -> holds(500, ?FORALL({A, B}, pair(), agree(A, B))) end}.

%% Erlang is asked without the padding, which changes nothing about the answer.
a_common_beginning_and_end_change_nothing_test_() ->
    {timeout, 600,
     fun() ->
         holds(200, ?FORALL({{A, B}, N, M}, {pair(), padding(), padding()},
                            agree(padded(N, A, M), padded(N, B, M),
                                  levenshtein:erlang_levenshtein(A, B))))
     end}.

every_form_agrees_at_the_edges_of_its_blocks_test_() ->
    [{lists:flatten(io_lib:format("~b and ~b bytes", [N, M])),
      {timeout, 600,
       fun() ->
           rand:seed(exsss, {N, M, 25}),
           ?assert(agree(letters(N), letters(M)))
       end}}
     || N <- ?EDGES, M <- [1, 36, 300, 2100]].

%% A gap longer than a step: the way through the table runs along one row and
%% over the border between two steps, and every way around it is longer.
a_gap_across_two_steps_is_followed_test_() ->
    {timeout, 600,
     fun() ->
         [X, Y, Z] = [seven_bits(rand:bytes(N)) || N <- [500, 2000, 1200]],
         Gap = binary:copy(<<255>>, 1100),
         ?assert(agree(<<0, X/binary, Gap/binary, Y/binary, 0>>,
                       <<1, X/binary, Y/binary, Z/binary, 1>>))
     end}.

a_huge_input_costs_only_where_it_differs_test_() ->
    {timeout, 600,
     fun() ->
         Half = binary:copy(<<"0123456789abcdef">>, 2 bsl 20),
         Same = <<Half/binary, Half/binary>>,
         More = <<Half/binary, "in between", Half/binary>>,
         [begin
              ?assertEqual(0, levenshtein:Form(Same, <<Same/binary>>)),
              ?assertEqual(10, levenshtein:Form(Same, More)),
              ?assertEqual(byte_size(Half), levenshtein:Form(Same, Half)),
              ?assertEqual(byte_size(Same), levenshtein:Form(Same, <<>>)),
              ?assertEqual(byte_size(Same), levenshtein:Form(<<"x">>, Same))
          end || Form <- ?NATIVE]
     end}.

with_a_pause_at_every_tick_the_answers_are_the_same_test_() ->
    with_pauses(
     [{timeout, 600,
       fun() ->
           Before = counters(yields),
           holds(300, ?FORALL({{A, B}, N, M}, {pair(), padding(), padding()},
                              agree(padded(N, A, M), padded(N, B, M),
                                    levenshtein:erlang_levenshtein(A, B)))),
           ?assert(agree(letters(2049), letters(3000))),
           Paused = [After - Y || {After, Y} <- lists:zip(counters(yields),
                                                          Before)],
           %% the last pair alone makes twice about 6000 steps
           ?assertMatch([_, _, _], [Y || Y <- Paused, Y >= 6000])
       end},
      ?_assertEqual([0, 0, 0, 0], counters(rule_violations))]).

%% ------------------------------------------------------------------
%% Bad input
%% ------------------------------------------------------------------

anything_but_two_binaries_is_badarg_test_() ->
    {timeout, 600,
     fun() ->
         holds(500, ?FORALL({A, B}, bad_pair(),
                            lists:all(fun(Form) -> is_badarg(Form, A, B) end,
                                      ?ALL)))
     end}.

%% ------------------------------------------------------------------
%% Generators
%% ------------------------------------------------------------------

%% Two binaries, independent or one made from the other by a few edits, over
%% few letters or all.
pair() ->
    ?LET(A, text(), {A, oneof([text(), edited(A)])}).

text() ->
    oneof([binary(),
           ?LET(Letters, list(oneof("acgt")), list_to_binary(Letters))]).

padding() ->
    oneof([0, range(1, 10), range(1, 10000)]).

edited(Bytes) ->
    ?LET(Edits, list({range(0, byte_size(Bytes)), oneof([<<>>, binary(1)])}),
         lists:foldl(fun edit/2, Bytes, Edits)).

edit({At, New}, Bytes) when At < byte_size(Bytes) ->
    <<Before:At/binary, _, After/binary>> = Bytes,
    <<Before/binary, New/binary, After/binary>>;
edit({_At, New}, Bytes) ->
    <<Bytes/binary, New/binary>>.

bad_pair() ->
    ?SUCHTHAT({A, B}, {argument(), argument()},
              not (is_binary(A) andalso is_binary(B))).

argument() ->
    oneof([any(), binary(), bitstring(), list(byte()),
           ?LET(Bytes, binary(), <<Bytes/binary, 0:3>>),
           integer(), float(), list(),
           ?LET(Pairs, list({any(), any()}), maps:from_list(Pairs)),
           oneof([self(), make_ref(), fun() -> ok end, 1 bsl 100, undefined])]).

%% ------------------------------------------------------------------
%% Helpers
%% ------------------------------------------------------------------

agree(A, B) ->
    agree(A, B, levenshtein:erlang_levenshtein(A, B)).

agree(A, B, D) ->
    lists:all(fun(Form) ->
                  levenshtein:Form(A, B) =:= D
                      andalso levenshtein:Form(B, A) =:= D
              end, ?NATIVE).

is_badarg(Form, A, B) ->
    try levenshtein:Form(A, B) of
        _ -> false
    catch
        error:badarg -> true
    end.

%% Few letters: many cells match.
letters(Size) ->
    << <<(Byte rem 4)>> || <<Byte>> <= rand:bytes(Size) >>.

seven_bits(Bytes) ->
    << <<(Byte band 127)>> || <<Byte>> <= Bytes >>.

padded(Before, Bytes, After) ->
    <<(binary:copy(<<7>>, Before))/binary, Bytes/binary,
      (binary:copy(<<7>>, After))/binary>>.

counters(Name) ->
    [maps:get(Name, fairnif:info({levenshtein, nif(Form), 2})) || Form <- ?FAIR].

nif(threaded_levenshtein) -> nif_threaded_levenshtein;
nif(Form) -> Form.
