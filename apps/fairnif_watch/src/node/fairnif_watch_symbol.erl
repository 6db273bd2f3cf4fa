%% What a symbol is called in its own language: C++ and Rust write a path with its types into one.
%%
%% A library's symbols may be anything: what cannot be read stays as it is. The work for one is
%% bounded, since it is done where the findings are made.
-module(fairnif_watch_symbol).

-export([in_event/1, readable/1]).

%% Bytes of a name; of a longer one less and less of what stands in brackets is shown.
-define(LONG, 160).
%% Bytes of a path while it is put together: a reference back to an earlier part repeats it.
-define(MOST, 4096).
%% References back in a C++ symbol: two of them may double its name.
-define(REFERENCES, 32).

%% @doc An event of the watch thread, with the symbols of its stack readable.
-spec in_event(map()) -> map().
in_event(#{stack := Stack} = Event) ->
    Event#{stack := [Frame#{symbol := of_frame(Symbol)} || #{symbol := Symbol} = Frame <- Stack]};
in_event(Event) ->
    Event.

of_frame(none) -> none;
of_frame(Symbol) -> readable(Symbol).

%% @doc The name as an author knows it, of at most 160 bytes: `markdown::render',
%% `smooth(fair::task&, double)'. Names of C are what they were. C++'s are read by the C++ library
%% of the emulator: one that has none, being without the JIT, leaves them as they are.
-spec readable(Symbol :: binary()) -> binary().
readable(<<"_ZN", Parts/binary>> = Symbol) ->
    case rust_parts(Parts, []) of
        none -> shortened(cpp(Symbol));
        Path -> shortened(iolist_to_binary(lists:join("::", [unescaped(Part) || Part <- Path])))
    end;
readable(<<"_Z", _/binary>> = Symbol) ->
    shortened(cpp(Symbol));
readable(<<"_R", Path/binary>> = Symbol) ->
    shortened(rust(Path, Symbol));
readable(Symbol) ->
    shortened(Symbol).

cpp(Symbol) ->
    case re:run(Symbol, "[ST][0-9A-Z]*_", [global]) of
        {match, References} when length(References) > ?REFERENCES ->
            Symbol;
        _ ->
            case fairnif_watch_native:demangle(Symbol) of
                none -> Symbol;
                Name -> Name
            end
    end.

%% Rust's first scheme, which looks like C++: _ZN, parts with their lengths, the last one a hash, E.

rust_parts(<<"E", _/binary>>, [<<"h", Hash:16/binary>> | Path]) ->
    case << <<C>> || <<C>> <= Hash, C >= $0, C =< $9 orelse C >= $a, C =< $f >> of
        Hash -> lists:reverse(Path);
        _ -> none
    end;
rust_parts(<<C, _/binary>> = In, Path) when C >= $0, C =< $9 ->
    case number(In) of
        {Size, Rest} when Size =< byte_size(Rest) ->
            <<Part:Size/binary, Next/binary>> = Rest,
            rust_parts(Next, [Part | Path]);
        _ ->
            none
    end;
rust_parts(_, _) ->
    none.

unescaped(<<"_$", Part/binary>>) -> unescape(<<"$", Part/binary>>);
unescaped(Part) -> unescape(Part).

unescape(<<"..", Rest/binary>>) ->
    ["::" | unescape(Rest)];
unescape(<<"$", Rest/binary>>) ->
    case binary:split(Rest, <<"$">>) of
        [Code, After] -> [escape(Code) | unescape(After)];
        [_] -> [$$ | unescape(Rest)]
    end;
unescape(<<C, Rest/binary>>) ->
    [C | unescape(Rest)];
unescape(<<>>) ->
    [].

escape(<<"SP">>) -> "@";
escape(<<"BP">>) -> "*";
escape(<<"RF">>) -> "&";
escape(<<"LT">>) -> "<";
escape(<<"GT">>) -> ">";
escape(<<"LP">>) -> "(";
escape(<<"RP">>) -> ")";
escape(<<"C">>) -> ",";
escape(<<"u", Hex/binary>> = Code) ->
    try <<(binary_to_integer(Hex, 16))/utf8>>
    catch error:badarg -> ["$", Code, "$"]
    end;
escape(Code) ->
    ["$", Code, "$"].

%% Rust's second scheme, "v0" (RFC 2603): a grammar, in which B refers back to where a path, type or
%% constant began. What was read there is kept in Seen, by the bytes that were left. Whatever does
%% not fit the grammar ends in an error.

rust(Path, Symbol) ->
    try path(version(Path), #{size => byte_size(Path)}) of
        {Name, _, _} -> Name
    catch
        error:_ -> Symbol
    end.

version(<<C, Rest/binary>>) when C >= $0, C =< $9 -> version(Rest);
version(Path) -> Path.

kept(Read, In, Before) ->
    {Text, Rest, Seen} = Read(In, Before),
    Name = iolist_to_binary(Text),
    true = byte_size(Name) =< ?MOST,
    {Name, Rest, Seen#{byte_size(In) => Name}}.

back(In, #{size := Size} = Seen) ->
    {At, Rest} = base62(In),
    {maps:get(Size - At, Seen), Rest, Seen}.

path(In, Seen) -> kept(fun path_of/2, In, Seen).

path_of(<<"B", In/binary>>, Seen) ->
    back(In, Seen);
path_of(<<"C", In/binary>>, Seen) ->
    {_, Crate, Rest} = identifier(In),
    {Crate, Rest, Seen};
path_of(<<"N", Space, In/binary>>, Seen0) ->
    {Parent, In1, Seen} = path(In, Seen0),
    {Number, Name, Rest} = identifier(In1),
    {[Parent | inside(Space, Name, Number)], Rest, Seen};
path_of(<<"M", In/binary>>, Seen0) ->
    {_, In1, Seen1} = implementation(In, Seen0),
    {Type, Rest, Seen} = type(In1, Seen1),
    {["<", Type, ">"], Rest, Seen};
path_of(<<"X", In/binary>>, Seen0) ->
    {_, In1, Seen} = implementation(In, Seen0),
    trait(In1, Seen);
path_of(<<"Y", In/binary>>, Seen) ->
    trait(In, Seen);
path_of(<<"I", In/binary>>, Seen0) ->
    {Generic, In1, Seen1} = path(In, Seen0),
    {Args, Rest, Seen} = until_e(fun argument/2, In1, Seen1),
    {[Generic | bracketed("<", [Arg || Arg <- Args, Arg =/= lifetime], ">")], Rest, Seen}.

inside($C, <<>>, Number) -> ["::{closure#", integer_to_binary(Number), "}"];
inside(Space, <<>>, Number) when Space >= $A, Space =< $Z ->
    ["::{", Space, $#, integer_to_binary(Number), "}"];
inside(_, <<>>, _) -> [];
inside(_, Name, _) -> ["::", Name].

implementation(<<"s", In/binary>>, Seen) ->
    {_, Rest} = base62(In),
    path(Rest, Seen);
implementation(In, Seen) ->
    path(In, Seen).

trait(In, Seen0) ->
    {Type, In1, Seen1} = type(In, Seen0),
    {Trait, Rest, Seen} = path(In1, Seen1),
    {["<", Type, " as ", Trait, ">"], Rest, Seen}.

bracketed(_, [], _) -> [];
bracketed(Open, Parts, Close) -> [Open, lists:join(", ", Parts), Close].

until_e(_, <<"E", Rest/binary>>, Seen) ->
    {[], Rest, Seen};
until_e(Read, In, Seen0) ->
    {Text, In1, Seen1} = Read(In, Seen0),
    {More, Rest, Seen} = until_e(Read, In1, Seen1),
    {[Text | More], Rest, Seen}.

argument(<<"L", In/binary>>, Seen) ->
    {_, Rest} = base62(In),
    {lifetime, Rest, Seen};
argument(<<"K", In/binary>>, Seen) ->
    constant(In, Seen);
argument(In, Seen) ->
    type(In, Seen).

type(In, Seen) -> kept(fun type_of/2, In, Seen).

type_of(<<"B", In/binary>>, Seen) -> back(In, Seen);
type_of(<<"R", In/binary>>, Seen) -> reference("&", In, Seen);
type_of(<<"Q", In/binary>>, Seen) -> reference("&mut ", In, Seen);
type_of(<<"P", In/binary>>, Seen) -> behind("*const ", In, "", Seen);
type_of(<<"O", In/binary>>, Seen) -> behind("*mut ", In, "", Seen);
type_of(<<"S", In/binary>>, Seen) -> behind("[", In, "]", Seen);
type_of(<<"A", In/binary>>, Seen0) ->
    {Type, In1, Seen1} = type(In, Seen0),
    {Size, Rest, Seen} = constant(In1, Seen1),
    {["[", Type, "; ", Size, "]"], Rest, Seen};
type_of(<<"T", In/binary>>, Seen0) ->
    case until_e(fun type/2, In, Seen0) of
        {[One], Rest, Seen} -> {["(", One, ",)"], Rest, Seen};
        {Types, Rest, Seen} -> {["(", lists:join(", ", Types), ")"], Rest, Seen}
    end;
type_of(<<"F", In/binary>>, Seen0) ->
    {Args, In1, Seen1} = until_e(fun type/2, abi(unsafe(binder(In))), Seen0),
    {Answer, Rest, Seen} = type(In1, Seen1),
    {["fn(", lists:join(", ", Args), ")" | [[" -> ", Answer] || Answer =/= <<"()">>]], Rest, Seen};
type_of(<<"D", In/binary>>, Seen0) ->
    {Traits, <<"L", In1/binary>>, Seen} = until_e(fun bound/2, binder(In), Seen0),
    {_, Rest} = base62(In1),
    {["dyn " | lists:join(" + ", Traits)], Rest, Seen};
type_of(<<C, Rest/binary>>, Seen) when C >= $a, C =< $z ->
    {basic(C), Rest, Seen};
type_of(In, Seen) ->
    path_of(In, Seen).

reference(Mark, <<"L", In/binary>>, Seen) ->
    {_, Rest} = base62(In),
    behind(Mark, Rest, "", Seen);
reference(Mark, In, Seen) ->
    behind(Mark, In, "", Seen).

behind(Before, In, After, Seen0) ->
    {Type, Rest, Seen} = type(In, Seen0),
    {[Before, Type, After], Rest, Seen}.

binder(<<"G", In/binary>>) -> element(2, base62(In));
binder(In) -> In.

unsafe(<<"U", In/binary>>) -> In;
unsafe(In) -> In.

abi(<<"KC", In/binary>>) -> In;
abi(<<"K", In/binary>>) -> element(3, identifier(In));
abi(In) -> In.

%% A trait, without what its associated types are bound to.
bound(In, Seen0) ->
    {Trait, Rest, Seen} = path(In, Seen0),
    associated(Trait, Rest, Seen).

associated(Trait, <<"p", In/binary>>, Seen0) ->
    {_, _, In1} = identifier(In),
    {_, Rest, Seen} = type(In1, Seen0),
    associated(Trait, Rest, Seen);
associated(Trait, Rest, Seen) ->
    {Trait, Rest, Seen}.

constant(In, Seen) -> kept(fun constant_of/2, In, Seen).

constant_of(<<"B", In/binary>>, Seen) -> back(In, Seen);
constant_of(<<"p", Rest/binary>>, Seen) -> {"_", Rest, Seen};
constant_of(<<Type, "n", In/binary>>, Seen) ->
    {Value, Rest, Seen} = constant_of(<<Type, In/binary>>, Seen),
    {["-", Value], Rest, Seen};
constant_of(<<Type, In/binary>>, Seen) ->
    [Hex, Rest] = binary:split(In, <<"_">>),
    {value(basic(Type), binary_to_integer(<<"0", Hex/binary>>, 16)), Rest, Seen}.

value("bool", 0) -> "false";
value("bool", 1) -> "true";
value("char", Char) -> ["'", <<Char/utf8>>, "'"];
value(_, Number) -> integer_to_binary(Number).

basic(C) ->
    maps:get(C, #{$a => "i8", $b => "bool", $c => "char", $d => "f64", $e => "str", $f => "f32",
                  $h => "u8", $i => "isize", $j => "usize", $l => "i32", $m => "u32", $n => "i128",
                  $o => "u128", $p => "_", $s => "i16", $t => "u16", $u => "()", $v => "...",
                  $x => "i64", $y => "u64", $z => "!"}).

%% With its number among those of the same name.
identifier(<<"s", In/binary>>) ->
    {Number, Rest} = base62(In),
    named(Number + 1, Rest);
identifier(In) ->
    named(0, In).

%% One with other letters than ASCII's stays in punycode.
named(Number, <<"u", In/binary>>) ->
    named(Number, In);
named(Number, In) ->
    {Size, Rest} = number(In),
    <<Name:Size/binary, After/binary>> = after_line(Rest),
    {Number, Name, After}.

after_line(<<"_", Rest/binary>>) -> Rest;
after_line(Rest) -> Rest.

number(<<"0", Rest/binary>>) -> {0, Rest};
number(In) -> number(In, 0).

number(<<C, Rest/binary>>, N) when C >= $0, C =< $9, N =< ?MOST -> number(Rest, N * 10 + C - $0);
number(Rest, N) -> {N, Rest}.

base62(<<"_", Rest/binary>>) -> {0, Rest};
base62(In) -> base62(In, 0).

base62(<<"_", Rest/binary>>, N) -> {N + 1, Rest};
base62(<<C, Rest/binary>>, N) when N < 1 bsl 64 -> base62(Rest, N * 62 + digit(C)).

digit(C) when C >= $0, C =< $9 -> C - $0;
digit(C) when C >= $a, C =< $z -> C - $a + 10;
digit(C) when C >= $A, C =< $Z -> C - $A + 36.

%% Of what is too long the inner brackets go first.

shortened(Name) -> shortened(Name, 2).

shortened(Name, _) when byte_size(Name) =< ?LONG ->
    Name;
shortened(Name, Level) when Level >= 0 ->
    Outline = iolist_to_binary(outline(Name, 0, Level)),
    case byte_size(Outline) =< ?LONG of
        true -> Outline;
        false -> shortened(Name, Level - 1)
    end;
shortened(Name, _) ->
    Outline = iolist_to_binary(outline(Name, 0, 0)),
    <<(binary:part(Outline, 0, min(byte_size(Outline), ?LONG - 3)))/binary, "...">>.

%% Brackets below that level are empty but for dots.
outline(<<"->", Rest/binary>>, Level, Most) ->
    [["->" || Level =< Most] | outline(Rest, Level, Most)];
outline(<<"operator", Rest/binary>>, Level, Most) ->
    {Mark, After} = operator(Rest),
    [["operator", Mark] || Level =< Most] ++ outline(After, Level, Most);
outline(<<C, Rest/binary>>, Level, Most) when C =:= $<; C =:= $(; C =:= $[; C =:= ${ ->
    [[C || Level =< Most], ["..." || Level =:= Most] | outline(Rest, Level + 1, Most)];
outline(<<C, Rest/binary>>, Level, Most) when C =:= $>; C =:= $); C =:= $]; C =:= $} ->
    [[C || Level - 1 =< Most] | outline(Rest, max(0, Level - 1), Most)];
outline(<<C, Rest/binary>>, Level, Most) ->
    [[C || Level =< Most] | outline(Rest, Level, Most)];
outline(<<>>, _, _) ->
    [].

operator(<<"()", Rest/binary>>) -> {"()", Rest};
operator(Rest) -> operator(Rest, []).

operator(<<C, Rest/binary>>, Mark) when C =:= $<; C =:= $>; C =:= $-; C =:= $= ->
    operator(Rest, [Mark, C]);
operator(Rest, Mark) ->
    {Mark, Rest}.
