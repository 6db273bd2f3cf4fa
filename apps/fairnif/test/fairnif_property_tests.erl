%% Whatever is given to whatever function in whatever mode: an answer or an error, and the node goes
%% on.
-module(fairnif_property_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([any_call/0, kinds/0, iolists/0]).

properties_test_() ->
    ok = fairnif_test:build(),
    {setup,
     fun() ->
             %% A spin that is asked for no time is endless unless its slot says: finish.
             [fairnif_test_probe:finish(Slot) || Slot <- lists:seq(0, 65535)]
     end,
     [{"any terms as arguments of any body in any mode: badarg or an answer",
       {timeout, 300, fun() -> holds(any_call(), 2000) end}},
      {"the getters take what the manual says, with its value",
       {timeout, 300, fun() -> holds(kinds(), 1000) end}},
      {"an iolist becomes the bytes that iolist_to_binary makes of it",
       {timeout, 300, fun() -> holds(iolists(), 500) end}}]}.

holds(Property, N) ->
    case proper:quickcheck(Property, [quiet, {numtests, N}, {max_size, 60}]) of
        true -> ok;
        Other -> error({counterexample, Other, proper:counterexample()})
    end.

any_call() ->
    ?FORALL({{Body, Arity}, Mode}, {elements(fairnif_test_nif:bodies()), mode()},
            ?FORALL(Args, vector(Arity, a_term()), is_harmless(Body, Mode, Args))).

is_harmless(Body, Mode, Args) ->
    try fairnif_test_nif:run(Body, Mode, Args) of
        _ -> true
    catch
        error:badarg -> true;
        error:Reason -> Body =:= fail andalso [Reason] =:= Args
    end.

kinds() ->
    ?FORALL({Term, Mode}, {a_term(), mode()},
            begin
                Kinds = fairnif_test_nif:run(kinds, Mode, [Term]),
                [Kind || Kind = {Name, _} <- Kinds, Name =/= object]
                    =:= fairnif_test_cases:kinds_of(Term)
            end).

iolists() ->
    ?FORALL({Term, Mode}, {oneof([iolist(), a_term()]), mode()},
            begin
                Native = try fairnif_test_nif:run(bytes, Mode, [Term]) catch error:E -> E end,
                Erlang = try iolist_to_binary(Term) catch error:E1 -> E1 end,
                Native =:= Erlang
            end).

mode() ->
    elements(fairnif_test_nif:all_modes()).

%% Beside PropEr's own terms those that it does not make.
a_term() ->
    frequency([{10, any()},
               {3, small_integer()},
               {2, edge()},
               {2, ?LET({N, Byte}, {range(0, 200000), byte()}, binary:copy(<<Byte>>, N))},
               {2, ?LET({Bits, Binary}, {range(1, 7), binary(200)},
                        begin <<_:Bits, Rest/bitstring>> = <<0, Binary/binary>>, Rest end)},
               {2, ?LET(N, range(0, 20000), lists:seq(1, N))},
               {1, ?LET({List, Tail}, {list(byte()), any()}, List ++ Tail)},
               {1, ?LET(N, range(0, 5000), nested(N))},
               {1, ?LAZY(oneof([self(), make_ref(), fun() -> ok end, hd(erlang:ports()),
                                fairnif_test_nif:new_object(1), element(3, fairnif:load_info())]))},
               {1, ?LET(Pairs, list({any(), any()}), maps:from_list(Pairs))}]).

nested(0) -> [];
nested(N) -> [nested(N - 1)].

small_integer() ->
    range(-2, 300).

%% Numbers at the bounds of C's types.
edge() ->
    ?LET({Power, Sign, Off}, {elements([7, 8, 15, 16, 31, 32, 59, 60, 63, 64, 128]),
                              elements([1, -1]), range(-1, 1)},
         Sign * (1 bsl Power) + Off).
