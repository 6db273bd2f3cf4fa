%% JSON over simdjson, in C++ that yields: a document of 50 MB is decoded and
%% encoded in slices, and its caller can be killed meanwhile.
%%
%%     JSON                   Erlang
%%     array                  list
%%     object                 map, with binaries as keys
%%     string                 binary, UTF-8
%%     integer, of any size   integer
%%     other number           float
%%     true, false, null      the atoms of that name
-module(simdjson).

-export([decode/1, decode/2, encode/1]).
-export([format_error/2]).

-export_type([value/0, options/0]).

-nifs([nif_decode/2, nif_encode/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-type value() :: [value()] | #{binary() => value()} | binary() | number() | boolean() | null.
-type options() :: #{strings => reference | copy}.

%% A document of this many bytes gets a heap for what comes of it (room/2).
-define(LARGE, 100000).
%% What comes of a byte of JSON, in words, is about one by this many.
-define(BYTES_OF_WORD, 2).

init() -> ?FAIRNIF_LOAD.

%% @doc `decode(Json, #{})'.
-spec decode(iodata()) -> value().
decode(Json) ->
    decode(Json, #{}).

%% @doc The value of one JSON text.  Of a key that comes twice in an object the
%% last value.  A string of more than 64 bytes without escapes refers to the
%% document and keeps it alive, as with OTP's json and with jiffy; with
%% `strings => copy' none does.
%%
%% Errors are of the kinds of OTP's json: `unexpected_end'; `{invalid_byte, Byte}',
%% of what is not UTF-8 the first byte of the character; `{unexpected_sequence,
%% Bytes}', a bad \u escape or a number that is no double.  Where, is in the
%% exception's error_info, as the position of its cause.
%% `system_limit': an integer larger than the VM's can be.  `badarg': no iodata.
-spec decode(iodata(), options()) -> value().
decode(Json, Options) ->
    Copy = copies(Options),
    try room(size_of(Json), fun() -> nif_decode(Json, Copy) end) of
        {error, Reason, Position} ->
            erlang:error(Reason, [Json, Options],
                         [{error_info, #{cause => #{position => Position}}}]);
        Value ->
            Value
    catch
        error:{badarg, _} -> erlang:error(badarg, [Json, Options])
    end.

copies(#{strings := copy}) -> true;
copies(#{strings := reference}) -> false;
copies(Options) when map_size(Options) =:= 0 -> false;
copies(Options) -> erlang:error(badarg, [Options]).

%% Of an iolist it is not known: it is then the heap as it is.
size_of(Json) when is_binary(Json) -> byte_size(Json);
size_of(_) -> 0.

room(Bytes, Fun) when Bytes < ?LARGE -> Fun();
room(Bytes, Fun) -> fairnif:with_heap(Bytes div ?BYTES_OF_WORD, Fun).

%% @doc JSON of a term: lists, maps, binaries in UTF-8, numbers, atoms.  An atom
%% but true, false and null is a string.  A key is a binary, an atom or an
%% integer; that no two come out alike is up to the caller.
%%
%% Errors: `{invalid_byte, Byte}' for a binary that is not UTF-8,
%% `{unsupported_type, Term}' for what has no JSON, such as a tuple, a pid, the
%% tail of an improper list.
-spec encode(term()) -> iodata().
encode(Term) ->
    case nif_encode(Term) of
        {error, Reason} -> erlang:error(Reason, [Term]);
        Json -> Json
    end.

nif_decode(_Json, _Copy) ->
    erlang:nif_error(not_loaded).

nif_encode(_Term) ->
    erlang:nif_error(not_loaded).

%% @private The sentence behind `** exception error'.
-spec format_error(term(), [tuple()]) -> #{general := unicode:chardata()}.
format_error(_Reason, [{_, _, _, Info} | _]) ->
    case proplists:get_value(error_info, Info) of
        #{cause := #{position := Position}} ->
            #{general => io_lib:format("at byte ~b of the document", [Position])};
        _ ->
            #{}
    end.
