%% What the six forms of levenshtein promise: one answer, badarg for anything
%% that is no binary, and, in the fair forms, a VM that stays usable meanwhile.
-module(levenshtein_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, holds/2, in_fresh_process/1, beside/1, kill_task_after/2,
                       on_one_scheduler/1, retry/2, with_pauses/1]).

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
    {timeout, 60,
     fun() -> holds(500, ?FORALL({A, B}, pair(), agree(A, B))) end}.

%% Erlang is asked without the padding, which changes nothing about the answer.
a_common_beginning_and_end_change_nothing_test_() ->
    {timeout, 60,
     fun() ->
         holds(200, ?FORALL({{A, B}, N, M}, {pair(), padding(), padding()},
                            agree(padded(N, A, M), padded(N, B, M),
                                  levenshtein:erlang_levenshtein(A, B))))
     end}.

every_form_agrees_at_the_edges_of_its_blocks_test_() ->
    [{lists:flatten(io_lib:format("~b and ~b bytes", [N, M])),
      {timeout, 60,
       fun() ->
           rand:seed(exsss, {N, M, 25}),
           ?assert(agree(letters(N), letters(M)))
       end}}
     || N <- ?EDGES, M <- [1, 36, 300, 2100]].

%% A gap longer than a step: the way through the table runs along one row and
%% over the border between two steps, and every way around it is longer.
a_gap_across_two_steps_is_followed_test_() ->
    {timeout, 60,
     fun() ->
         [X, Y, Z] = [seven_bits(rand:bytes(N)) || N <- [500, 2000, 1200]],
         Gap = binary:copy(<<255>>, 1100),
         ?assert(agree(<<0, X/binary, Gap/binary, Y/binary, 0>>,
                       <<1, X/binary, Y/binary, Z/binary, 1>>))
     end}.

a_binary_that_starts_inside_a_byte_is_read_right_test_() ->
    {timeout, 60,
     fun() ->
         holds(200, ?FORALL({{A, B}, Skip}, {pair(), range(1, 7)},
                            agree(shifted(A, Skip), B)
                            andalso agree(A, shifted(B, 8 - Skip))))
     end}.

long_inputs_have_the_plain_nifs_answer_test_() ->
    {timeout, 60,
     fun() ->
         {A, B} = {rand:bytes(12000), letters(15000)},
         D = levenshtein:unfair_levenshtein(A, B),
         [?assertEqual(D, levenshtein:Form(A, B)) || Form <- ?FAIR]
     end}.

a_huge_input_costs_only_where_it_differs_test_() ->
    {timeout, 60,
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
     [{timeout, 60,
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
      ?_assertEqual([0, 0, 0, 0], counters(misuses))]).

%% ------------------------------------------------------------------
%% Bad input
%% ------------------------------------------------------------------

anything_but_two_binaries_is_badarg_test_() ->
    {timeout, 60,
     fun() ->
         holds(500, ?FORALL({A, B}, bad_pair(),
                            lists:all(fun(Form) -> is_badarg(Form, A, B) end,
                                      ?ALL)))
     end}.

%% ------------------------------------------------------------------
%% The rest of the VM
%% ------------------------------------------------------------------

a_long_call_is_charged_in_reductions_test_() ->
    [{atom_to_list(Form),
      {timeout, 60,
       fun() ->
           {A, B} = {rand:bytes(12000), rand:bytes(12000)},
           ?assert(reductions(Form, A, B) > Least)
       end}}
     %% 144 million cells, 50 ms at the very least.  On a dirty scheduler it is
     %% the VM that charges, 4000 a millisecond.
     || {Form, Least} <- [{dirty_levenshtein, 25 * 4000}
                          | [{Form, 500 * 4000} || Form <- ?ON_NORMAL]]].

comparing_equal_bytes_gives_way_too_test_() ->
    [{atom_to_list(Form),
      fun() ->
          A = binary:copy(<<"0123456789abcdef">>, 4 bsl 20),
          ?assert(reductions(Form, A, binary:copy(A)) > 5 * 4000)
      end}
     || Form <- ?ON_NORMAL].

%% On a single scheduler, how long an Erlang process beside the call has to
%% wait.  The plain NIF shows that this test can fail.
the_neighbour_of_a_fair_call_keeps_running_test_() ->
    on_one_scheduler(
     [{atom_to_list(Form),
       {timeout, 60,
        ?_test(retry(5, fun() ->
                            {Elapsed, Gap} = beside(Form, 22000),
                            (Gap > Elapsed div 2) =:= Waits orelse {Form, Elapsed, Gap}
                        end))}}
      || {Form, Waits} <- [{unfair_levenshtein, true}
                           | [{Form, false} || Form <- ?FAIR]]]).

a_killed_call_leaves_no_task_behind_test_() ->
    [{atom_to_list(Form),
      {timeout, 60,
       fun() ->
           %% uninterrupted, one such call takes half a minute
           {A, B} = {rand:bytes(200000), rand:bytes(200000)},
           [kill_task_after(Ms, fun() -> levenshtein:Form(A, B) end)
            || Ms <- [0, 0, 0, 1, 2, 5, 10, 50]],
           eventually(fun() -> fairnif:tasks() =:= [] end)
       end}}
     || Form <- ?FAIR].

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
    oneof([any(), binary(), bitstring(), iolist(),
           ?LET(Bytes, binary(), <<Bytes/binary, 0:3>>),
           integer(), float(), list(),
           ?LET(Pairs, list({any(), any()}), maps:from_list(Pairs)),
           oneof([self(), make_ref(), fun() -> ok end, 1 bsl 100, undefined])]).

iolist() ->
    list(oneof([binary(), byte()])).

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

%% The same bytes, not on a byte boundary.
shifted(Bytes, Skip) ->
    <<_:Skip, Shifted/binary>> = <<0:Skip, Bytes/binary>>,
    Shifted.

counters(Name) ->
    [maps:get(Name, fairnif:info({levenshtein, nif(Form), 2})) || Form <- ?FAIR].

nif(threaded_levenshtein) -> nif_threaded_levenshtein;
nif(Form) -> Form.

reductions(Form, A, B) ->
    in_fresh_process(
      fun() ->
          {reductions, R0} = process_info(self(), reductions),
          _ = levenshtein:Form(A, B),
          {reductions, R1} = process_info(self(), reductions),
          R1 - R0
      end).

%% Microseconds the call took, and the longest that a busy process waited.
beside(Form, Size) ->
    {A, B} = {rand:bytes(Size), rand:bytes(Size)},
    beside(fun() -> levenshtein:Form(A, B) end).

