%% Writes findings and views as JSON: what the watch needs and no more. Never reads JSON, and never
%% fails on a term that it does not know: a report must not be lost to its form.
-module(fairnif_watch_json).

-export([encode/1]).

%% @doc The JSON text of a view, a finding or a part of one, UTF-8. Keys are sorted. `none' and
%% `undefined' are null, pids are `"<0.1.2>"', `{M, F, A}' is "m:f/1", a subject is an object with
%% `kind' and its number, a term that JSON has nothing for is its Erlang text. Strings that are not
%% UTF-8 are read as Latin-1.
-spec encode(term()) -> iodata().
encode(none) -> <<"null">>;
encode(undefined) -> <<"null">>;
encode(Atom) when Atom =:= null; Atom =:= true; Atom =:= false -> atom_to_binary(Atom);
encode(Atom) when is_atom(Atom) -> string(atom_to_binary(Atom));
encode(Int) when is_integer(Int) -> integer_to_binary(Int);
encode(Float) when is_float(Float) -> float_to_binary(Float, [{decimals, 6}, compact]);
encode(Text) when is_binary(Text) -> string(Text);
encode(Pid) when is_pid(Pid) -> string(list_to_binary(pid_to_list(Pid)));
encode([_ | _] = List) ->
    case proper(List) of
        true -> [$[, lists:join($,, [encode(V) || V <- List]), $]];
        false -> term(List)
    end;
encode([]) -> <<"[]">>;
encode(#{} = Map) ->
    [${, lists:join($,, [[string(key(K)), $:, encode(V)]
                         || {K, V} <- lists:keysort(1, maps:to_list(Map))]), $}];
encode({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    string(fairnif_watch_culprit:mfa(M, F, A));
encode({Kind, Number}) when is_atom(Kind), is_integer(Number) ->
    encode(#{kind => Kind, number => Number});
encode({process, Pid}) when is_pid(Pid) ->
    encode(#{kind => process, pid => Pid});
encode({Library, Offset}) when is_binary(Library), is_integer(Offset) ->
    string(<<Library/binary, "+0x", (integer_to_binary(Offset, 16))/binary>>);
encode({Library, Symbol}) when is_binary(Library), is_binary(Symbol) ->
    string(<<Library/binary, ":", Symbol/binary>>);
encode({Module}) when is_atom(Module) ->
    encode(Module);
encode(Term) ->
    term(Term).

%% Bounded: a term from elsewhere may be large.
term(Term) -> string(unicode:characters_to_binary(io_lib:format("~0tP", [Term, 30]))).

proper(List) -> try length(List) >= 0 catch error:badarg -> false end.

key(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
key(Text) when is_binary(Text) -> Text;
key(Other) -> unicode:characters_to_binary(io_lib:format("~0tP", [Other, 30])).

string(Text) ->
    Chars = case unicode:characters_to_list(Text) of
                Ok when is_list(Ok) -> Ok;
                _ -> binary_to_list(Text)
            end,
    [$", unicode:characters_to_binary([escape(C) || C <- Chars]), $"].

escape($") -> "\\\"";
escape($\\) -> "\\\\";
escape($\n) -> "\\n";
escape($\r) -> "\\r";
escape($\t) -> "\\t";
escape(C) when C < 32 -> io_lib:format("\\u~4.16.0b", [C]);
escape(C) -> C.
