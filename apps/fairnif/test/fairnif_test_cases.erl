%% What each body of fairnif_test_nif answers: {Body, Arguments, Expected}, where Expected is a
%% value, {raises, Reason}, or a fun of mode and answer. The same in every mode, with and without a
%% pause at every tick.
-module(fairnif_test_cases).

-export([all/0, check/2, wrong/1, kinds_of/1]).

%% @doc ok, or what came instead.
check({Body, Args, Expected}, Mode) ->
    Got = try {value, fairnif_test_nif:run(Body, Mode, Args)}
          catch error:Reason -> {raises, Reason}
          end,
    Right = case Expected of
                {raises, _} -> Got =:= Expected;
                Fun when is_function(Fun, 2) -> Got =/= {raises, badarg} andalso
                                                    Fun(Mode, element(2, Got));
                Value -> Got =:= {value, Value}
            end,
    case Right of
        true -> ok;
        false -> {Body, Mode, {args, Args}, {got, Got}}
    end.

%% @doc The cases that are not ok in one of these modes, with or without pauses. In this node: some
%% arguments are objects of its own.
wrong(Modes) ->
    lists:append([begin
                      ok = fairnif:debug(#{pause_every_tick => Pause}),
                      [Result || Case <- all(), Mode <- Modes,
                                 Result <- [check(Case, Mode)], Result =/= ok]
                  end || Pause <- [true, false]]).

all() ->
    lists:append([terms(), lists_and_bytes(), elsewhere(), memory()]).

terms() ->
    Terms = some_terms(),
    [{echo, [Term], Term} || Term <- Terms]
        ++ [{fail, [Term], {raises, Term}} || Term <- Terms]
        ++ [{kinds, [Term], kinds_of(Term)} || Term <- Terms].

some_terms() ->
    [0, -1, 1 bsl 31, -(1 bsl 31), 1 bsl 32 - 1, 1 bsl 59, 1 bsl 63 - 1, 1 bsl 63, -(1 bsl 63),
     1 bsl 64 - 1, 1 bsl 64, 1 bsl 1000, 0.0, -1.5e300, atom, '', list_to_atom([255]),
     list_to_atom([8364]), list_to_atom(lists:duplicate(255, $x)), self(), make_ref(),
     fun lists:append/1, hd(erlang:ports()), {}, {a, {b}}, #{}, #{a => 1, [] => {}}, [], "text",
     [a | b], lists:seq(1, 1000), <<>>, <<1>>, binary:copy(<<2>>, 64), binary:copy(<<3>>, 65),
     <<5:3>>, <<1:1, (binary:copy(<<4>>, 100))/binary>>].

lists_and_bytes() ->
    Many = lists:seq(1, 100000),
    Long = binary:copy(<<1, 2, 3, 254>>, 50000),
    <<_:1, Shifted:70000/binary, _/bitstring>> = Long,
    Deep = lists:foldl(fun(N, Inner) -> [N rem 256, [Inner], <<N>> | <<"tail">>] end, [],
                       lists:seq(1, 3000)),
    Iolists = [[], <<>>, "text", <<"x">>, Long, Shifted, [Long, [Shifted | Long] | <<7>>], Deep,
               [[[[]]]], [<<>> | <<>>]],
    NoIolists = [atom, [a], [256], [-1], [1 | 2], [Long, {}], <<1:3>>, [<<1:3>>], 17, [<<>>, 1.0],
                 Many],
    [{walk, [[]], {0, 0}}, {walk, [Many], {100000, 5000050000}}, {walk, [[a, b, 3]], {3, 3}},
     {walk, [[1, 2 | 3]], {raises, badarg}}, {walk, [atom], {raises, badarg}},
     {build, [0], []}, {build, [1], [1]}, {build, [100000], Many}, {build, [-1], {raises, badarg}},
     {roots, [10001, x], {raises, badarg}},
     {reverse, [[]], []}, {reverse, [Many], lists:reverse(Many)},
     {reverse, [[1 | 2]], {raises, badarg}}, {reverse, [atom], {raises, badarg}},
     {text, [""], <<0>>}, {text, ["text"], <<"text", 0>>}, {text, [[256]], <<256/utf8, 0>>},
     {text, [[16#10FFFF]], <<16#10FFFF/utf8, 0>>}, {text, [[16#D800]], {raises, badarg}},
     {text, [[16#110000]], {raises, badarg}},
     {text, [["nested"]], {raises, badarg}}, {text, [[$a | $b]], {raises, badarg}},
     {text, [<<"binary">>], {raises, badarg}},
     {text, [binary_to_list(Long)], <<(unicode:characters_to_binary(Long, latin1))/binary, 0>>},
     {flip, [<<>>], <<>>}, {flip, [<<0>>], <<255>>}, {flip, [Long], flipped(Long)},
     {flip, [Shifted], flipped(Shifted)}, {flip, [<<1:3>>], {raises, badarg}}]
        %% As arguments of their own, and from the twelfth on in a tuple.
        ++ [{roots, [N, Long], [{I, Long} || I <- lists:seq(1, N)]} || N <- [0, 1, 12, 13, 1000]]
        ++ [{bytes, [Iolist], iolist_to_binary(Iolist)} || Iolist <- Iolists]
        ++ [{bytes, [Term], {raises, badarg}} || Term <- NoIolists].

flipped(Binary) ->
    << <<(bnot Byte)>> || <<Byte>> <= Binary >>.

elsewhere() ->
    Round = [normal, normal, dirty_io, dirty_cpu, dirty_io, normal, dirty_cpu],
    Moved = fun(Term) ->
                    fun(threaded, Answer) -> Answer =:= {Term, lists:duplicate(7, thread)};
                       (_, Answer) -> Answer =:= {Term, Round}
                    end
            end,
    Elsewhere = fun(threaded, Where) -> Where =:= 0;
                   (_, Where) -> Where =:= 3
                end,
    [{move, [1, {a}], Moved({a})}, {move, [20, "text"], Moved("text")},
     {blocking, [0], Elsewhere}, {blocking, [100], Elsewhere},
     {call, [0, 1], fun in_place_or_dirty/2}, {call, [20, 0], fun in_place_or_dirty/2},
     {call, [2000, 1 bsl 31], fun in_place_or_dirty/2},
     {ticks, [0, 1000], ok}, {ticks, [1, 1000], ok}, {ticks, [-1, 1000], ok},
     {ticks, [-(1 bsl 63), 1000], ok}, {ticks, [1 bsl 63 - 1, 1000], ok},
     {ticks, [1 bsl 32, 1000], ok},
     {never_tick, [2000], ok}].

%% Thread types of erl_nif.h: 0 none of the VM's, 1 normal, 2 dirty CPU, 3 dirty I/O.
in_place_or_dirty(normal, Where) -> Where =:= 1;
in_place_or_dirty(dirty_io, Where) -> Where =:= 3;
in_place_or_dirty(threaded, Where) -> Where =:= 0;
in_place_or_dirty(Mode, Where) when Mode =:= dirty_cpu; Mode =:= yielding_dirty -> Where =:= 2;
in_place_or_dirty(_, Where) -> Where =:= 1 orelse Where =:= 2.

memory() ->
    [{garbage, [1000, 100], ok},
     {object, [fairnif_test_nif:new_object(42), 500], 42}, {object, [a, 1], {raises, badarg}}].

%% @doc What kinds(Term) answers: a model of the getters.
kinds_of(Term) ->
    Int = fun(Least, Most) -> is_integer(Term) andalso Term >= Least andalso Term =< Most end,
    Int64 = Int(-(1 bsl 63), 1 bsl 63 - 1),
    Uint64 = Int(0, 1 bsl 64 - 1),
    lists:reverse(
      [{int, Term} || Int(-(1 bsl 31), 1 bsl 31 - 1)]
      ++ [{uint, Term} || Int(0, 1 bsl 32 - 1)]
      ++ [{long, Term} || Int64] ++ [{ulong, Term} || Uint64]
      ++ [{int64, Term} || Int64] ++ [{uint64, Term} || Uint64]
      ++ [{double, Term} || is_float(Term)]
      ++ [{pid, Term} || is_pid(Term), node(Term) =:= node()]
      ++ [{atom, c_string(Term)} || is_atom(Term)]
      ++ [{length, length(Term)} || is_proper(Term)]).

%% As C sees it: up to the first zero.
c_string(Atom) ->
    lists:takewhile(fun(Byte) -> Byte =/= 0 end, binary_to_list(atom_to_binary(Atom))).

is_proper(Term) ->
    is_list(Term) andalso try is_integer(length(Term)) catch error:badarg -> false end.
