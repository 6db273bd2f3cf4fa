%% Writes JSON: the terms that the checker's reports are made of. It never reads JSON.
-module(fairnif_check_json).

-export([encode/1]).

-export_type([value/0]).

-include("fairnif_json.hrl").

%% `{[{Key, Value}]}' is an object that keeps its order; a map is one whose
%% keys are sorted, so that equal results make equal files.
-type value() :: null | undefined | boolean() | atom() | number() | binary()
               | [value()] | #{key() => value()} | {[{key(), value()}]}.
-type key() :: atom() | binary().

%% @doc The JSON text of a value, UTF-8, without a final newline. Binaries are strings (bytes that
%% are no UTF-8 are read as Latin-1), atoms are their names, but `undefined' is null; lists are
%% arrays, so a text must be a binary.  Error `{not_json, Term}' for anything else.
-spec encode(value()) -> iodata().
encode(undefined) -> <<"null">>;
encode(Atom) when Atom =:= null; Atom =:= true; Atom =:= false ->
    atom_to_binary(Atom);
encode(Atom) when is_atom(Atom) -> string(atom_to_binary(Atom));
encode(Int) when is_integer(Int) -> integer_to_binary(Int);
encode(Float) when is_float(Float) -> float_to_binary(Float, [short]);
encode(Text) when is_binary(Text) -> string(Text);
encode(List) when is_list(List) -> array([encode(V) || V <- List]);
encode(Map) when is_map(Map) ->
    object(lists:keysort(1, [{key(K), encode(V)} || {K, V} <- maps:to_list(Map)]));
encode({Pairs}) when is_list(Pairs) -> object([{key(K), encode(V)} || {K, V} <- Pairs]);
encode(Other) -> error({not_json, Other}).

key(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
key(Text) when is_binary(Text) -> Text;
key(Other) -> error({not_json, Other}).
