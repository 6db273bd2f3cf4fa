%% What sodium promises: the boxes of NaCl, the same from every form; badarg for
%% what does not fit; and, in the fair forms, a VM that stays usable meanwhile.
-module(sodium_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, holds/2, beside/1, kill_after/2, on_one_scheduler/1,
                       retry/2, with_pauses/1]).

%% Bytes that a box is longer than its message.
-define(MAC, 16).
%% Around the sizes that a binary, or a key stream of libsodium, changes at.
-define(EDGES, [0, 1, 16, 31, 32, 33, 47, 48, 49, 63, 64, 65, 255, 256, 257, 4096, 65537,
                1048577]).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

%% The vector of NaCl's own tests: its Alice and Bob, their first key and what
%% it makes of a message of 131 bytes.
-define(ALICE_PK, bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")).
-define(ALICE_SK, bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")).
-define(BOB_PK, bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")).
-define(BOB_SK, bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")).
-define(FIRST_KEY, bytes("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389")).
-define(NONCE, bytes("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")).
-define(MESSAGE,
        bytes("be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffc"
              "e5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb31"
              "0e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde"
              "048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f93776384864"
              "5e0705")).
-define(BOX,
        bytes("f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce"
              "48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c972"
              "71d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae"
              "90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b3"
              "7973f622a43d14a6599b1f654cb45a74e355a5")).

every_form_makes_the_boxes_of_nacl_test_() ->
    [[?_assertEqual(?BOX, sodium:Form(?MESSAGE, ?NONCE, ?FIRST_KEY))
      || Form <- forms(crypto_secretbox)],
     [?_assertEqual(?BOX, sodium:Form(?MESSAGE, ?NONCE, Pk, Sk))
      || Form <- forms(crypto_box),
         {Pk, Sk} <- [{?BOB_PK, ?ALICE_SK}, {?ALICE_PK, ?BOB_SK}]],
     ?_assertEqual({ok, ?MESSAGE}, sodium:crypto_secretbox_open(?BOX, ?NONCE, ?FIRST_KEY)),
     ?_assertEqual({ok, ?MESSAGE},
                   sodium:crypto_box_open(?BOX, ?NONCE, ?ALICE_PK, ?BOB_SK))].

what_is_sealed_can_be_opened_test_() ->
    {timeout, 600,
     fun() ->
         Keys = {sodium:crypto_box_keypair(), sodium:crypto_box_keypair()},
         holds(200, ?FORALL({M, Nonce, Key}, {message(), binary(24), binary(32)},
                            round_trips(M, Nonce, Key, Keys)))
     end}.

every_form_agrees_at_the_edges_of_sizes_test_() ->
    [{integer_to_list(Size),
      {timeout, 600,
       fun() ->
           Keys = {sodium:crypto_box_keypair(), sodium:crypto_box_keypair()},
           [?assert(round_trips(rand:bytes(Size), rand:bytes(24), rand:bytes(32), Keys))
            || _ <- lists:seq(1, 5)]
       end}}
     || Size <- ?EDGES].

a_message_that_starts_inside_a_byte_is_read_right_test() ->
    {Nonce, Key} = {rand:bytes(24), rand:bytes(32)},
    [begin
         M = rand:bytes(Size),
         Shifted = fun(Bytes) -> <<_:3, S/binary>> = <<0:3, Bytes/binary>>, S end,
         Box = sodium:crypto_secretbox_b(M, Nonce, Key),
         [?assertEqual(Box, sodium:Form(Shifted(M), Shifted(Nonce), Shifted(Key)))
          || Form <- forms(crypto_secretbox)]
     end || Size <- [10, 100, 100000]].

with_a_pause_at_every_tick_the_answers_are_the_same_test_() ->
    with_pauses(
     {timeout, 600,
      fun() ->
          Keys = {sodium:crypto_box_keypair(), sodium:crypto_box_keypair()},
          [?assert(round_trips(rand:bytes(Size), rand:bytes(24), rand:bytes(32), Keys))
           || Size <- ?EDGES],
          ?assertEqual(0, counter(rule_violations, {sodium, crypto_secretbox, 3}))
      end}).

random_bytes_are_as_many_as_asked_for_and_differ_test_() ->
    [{atom_to_list(Form),
      fun() ->
          [?assertEqual(Size, byte_size(sodium:Form(Size))) || Size <- ?EDGES],
          [?assertNotEqual(sodium:Form(Size), sodium:Form(Size)) || Size <- [16, 64, 65, 100000]],
          %% All of it is written: a run of zeros this long has a chance of 2^-512.
          ?assertEqual(nomatch, binary:match(sodium:Form(1000000), <<0:512>>))
      end}
     || Form <- forms(randombytes)].

a_key_pair_is_one_test() ->
    {Pk, Sk} = sodium:crypto_box_keypair(),
    ?assertEqual({32, 32}, {byte_size(Pk), byte_size(Sk)}),
    ?assertNotEqual({Pk, Sk}, sodium:crypto_box_keypair()),
    {Pk2, Sk2} = sodium:crypto_box_keypair(),
    Box = sodium:crypto_box(<<"to">>, <<0:192>>, Pk2, Sk),
    ?assertEqual({ok, <<"to">>}, sodium:crypto_box_open(Box, <<0:192>>, Pk, Sk2)).

%% ------------------------------------------------------------------
%% Bad input
%% ------------------------------------------------------------------

a_box_that_was_changed_is_not_opened_test() ->
    {Nonce, Key} = {rand:bytes(24), rand:bytes(32)},
    [begin
         Box = sodium:crypto_secretbox(rand:bytes(Size), Nonce, Key),
         At = rand:uniform(byte_size(Box)) - 1,
         <<A:At/binary, Byte, B/binary>> = Box,
         [?assertEqual({error, failed_verification},
                       sodium:crypto_secretbox_open(Bad, Nonce, Key))
          || Bad <- [<<A/binary, (Byte bxor 4), B/binary>>, <<Box/binary, 0>>, A]]
     end || Size <- [0, 1, 100, 100000]].

what_does_not_fit_is_badarg_test_() ->
    [{lists:flatten(io_lib:format("~s ~P", [Form, Args, 8])),
      ?_assertError(badarg, apply(sodium, Form, Args))}
     || {Forms, Good} <-
            [{[crypto_secretbox_open | forms(crypto_secretbox)],
              [<<"message">>, <<0:192>>, <<1:256>>]},
             {[crypto_box_open | forms(crypto_box)],
              [<<"message">>, <<0:192>>, ?BOB_PK, ?ALICE_SK]}],
        Form <- Forms,
        N <- lists:seq(1, length(Good)),
        Bad <- [atom, 1, "text", <<1:7>>] ++ [B || N > 1, B <- [<<>>, <<0:184>>, <<0:264>>]],
        Args <- [lists:sublist(Good, N - 1) ++ [Bad | lists:nthtail(N, Good)]]]
        ++ [?_assertError(badarg, sodium:Form(Bad))
            || Form <- forms(randombytes), Bad <- [-1, 1.0, a, <<1>>, 1 bsl 64]].

a_public_key_of_low_order_is_refused_test_() ->
    [?_assertError(badarg, sodium:Form(M, <<0:192>>, <<0:256>>, ?ALICE_SK))
     || Form <- forms(crypto_box), M <- [<<"short">>, <<0:10000>>]]
        ++ [?_assertEqual({error, failed_verification},
                          sodium:crypto_box_open(?BOX, ?NONCE, <<0:256>>, ?BOB_SK))].

more_than_there_is_memory_for_is_enomem_test_() ->
    [?_assertError(enomem, sodium:Form(N))
     || Form <- forms(randombytes), N <- [1 bsl 60, (1 bsl 64) - 1]].

%% ------------------------------------------------------------------
%% The rest of the VM
%% ------------------------------------------------------------------

%% A call of 16 MB holds a thread for more than 10 ms, hundreds of times what
%% one may cost in place; one of 16 bytes is a hundredth of it.  The first calls
%% are still guesses.  One that lost its processor is taken for a long one, until the
%% next: so that all short ones run in place must be seen once in a few attempts.
long_calls_run_dirty_and_short_ones_in_place_test_() ->
    {timeout, 600,
     fun() ->
         {Nonce, Key} = {rand:bytes(24), rand:bytes(32)},
         {Short, Long} = {rand:bytes(16), rand:bytes(16777216)},
         Call = fun(M) -> sodium:crypto_secretbox(M, Nonce, Key) end,
         _ = [Call(M) || _ <- [1, 2, 3], M <- [Short, Long]],
         InPlace = fun(_) ->
                       {N, Away} = ran(fun() -> [Call(Short) || _ <- seq(100)] end),
                       N >= 95 andalso Away =:= 0
                   end,
         ?assert(lists:any(InPlace, seq(3))),
         ?assertEqual({0, 5}, ran(fun() -> [Call(Long) || _ <- seq(5)] end)),
         %% one does not change the other's place
         {Inline, Dirty} = ran(fun() -> [Call(M) || _ <- seq(10), M <- [Short, Long]] end),
         ?assertEqual(20, Inline + Dirty),
         ?assert(Inline >= 8 andalso Inline =< 10),
         #{offload_cutoff_units := Cutoff} = fairnif:info({sodium, crypto_secretbox, 3}),
         ?assert(Cutoff > 16 andalso Cutoff < 16777216)
     end}.

%% On a single scheduler, how long an Erlang process beside the calls has to
%% wait.  The plain NIF shows that this test can fail.
the_neighbour_of_a_fair_call_keeps_running_test_() ->
    on_one_scheduler(
     [{atom_to_list(Form),
       {timeout, 600, fun() -> retry(5, fun() -> waits(Form, Waits) end) end}}
      || {Form, Waits} <- [{crypto_secretbox_b, true}, {crypto_secretbox, false}]]).

a_killed_caller_leaves_no_task_behind_test_() ->
    [{lists:flatten(io_lib:format("~s, ~b bytes", [Form, Size])),
      {timeout, 600,
       fun() ->
           Args = [rand:bytes(Size), rand:bytes(24) | Keys],
           [kill_after(Ms, fun() -> apply(sodium, Form, Args) end) || Ms <- [0, 0, 0, 0, 1, 2, 5]],
           eventually(fun() -> fairnif:tasks() =:= [] end)
       end}}
     || {Form, Keys} <- [{crypto_secretbox, [<<1:256>>]}, {crypto_box, [?BOB_PK, ?ALICE_SK]}],
        Size <- [16, 16777216]].

%% ------------------------------------------------------------------
%% Helpers
%% ------------------------------------------------------------------

%% The fair form, the plain one, the plain one on a dirty scheduler.
forms(Name) ->
    [list_to_atom(atom_to_list(Name) ++ Suffix) || Suffix <- ["", "_b", "_dirty"]].

message() ->
    oneof([binary(), ?LET(Size, range(0, 100000), binary(Size))]).

round_trips(M, Nonce, Key, {{Pk1, Sk1}, {Pk2, Sk2}}) ->
    [Box, Box, Box] = [sodium:Form(M, Nonce, Key) || Form <- forms(crypto_secretbox)],
    [Box2, Box2, Box2] = [sodium:Form(M, Nonce, Pk2, Sk1) || Form <- forms(crypto_box)],
    byte_size(Box) =:= byte_size(M) + ?MAC
        andalso {ok, M} =:= sodium:crypto_secretbox_open(Box, Nonce, Key)
        andalso {ok, M} =:= sodium:crypto_box_open(Box2, Nonce, Pk1, Sk2).

bytes(Hex) ->
    << <<(list_to_integer([A, B], 16))>> || <<A, B>> <= list_to_binary(Hex) >>.

seq(N) -> lists:seq(1, N).

counter(Name, Function) ->
    maps:get(Name, fairnif:info(Function)).

%% How many fair_calls of crypto_secretbox/3 ran in place and how many dirty.
ran(Fun) ->
    Counts = fun() -> [counter(C, {sodium, crypto_secretbox, 3})
                       || C <- [inline_offloads, dirty_offloads]] end,
    [I0, D0] = Counts(),
    _ = Fun(),
    [I1, D1] = Counts(),
    {I1 - I0, D1 - D0}.

%% Whether a busy process waits, beside a call of 64 MB, for more than half its time.
waits(Form, Waits) ->
    {Elapsed, Gap} = beside(fun() -> sodium:Form(<<0:536870912>>, <<0:192>>, <<1:256>>) end),
    (Gap > Elapsed div 2) =:= Waits orelse {Form, Elapsed, Gap}.
