%% Writes findings and views as JSON. Never reads JSON, and never fails on a term that it does not
%% know: a report must not be lost to its form.
-module(fairnif_watch_json).

-export([encode/1]).

-include("fairnif_json.hrl").

%% @doc The JSON text of a view, a finding or a part of one, UTF-8. Keys are sorted, but those of
%% `{[{Key, Value}]}'. `none' and `undefined' are null, pids are `"<0.1.2>"', `{M, F, A}' is
%% "m:f/1", a subject is an object with `kind' and its number, a term that JSON has nothing for is
%% its Erlang text. Strings that are not UTF-8 are read as Latin-1.
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
        true -> array([encode(V) || V <- List]);
        false -> term(List)
    end;
encode([]) -> <<"[]">>;
encode(#{} = Map) ->
    object([{key(K), encode(V)} || {K, V} <- lists:keysort(1, maps:to_list(Map))]);
encode({Pairs}) when is_list(Pairs) ->
    object([{key(K), encode(V)} || {K, V} <- Pairs]);
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
