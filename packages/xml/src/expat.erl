%% XML by expat, in the terms of fast_xml: a document of any size is read and written in slices, and
%% its caller can be killed meanwhile.
%%
%%     <a x='1'>text<b/></a>    {xmlel, <<"a">>, [{<<"x">>, <<"1">>}],
%%                               [{xmlcdata, <<"text">>}, {xmlel, <<"b">>, [], []}]}
%%
%% Names have the prefix that they have in the document. Of an element xmlns attributes stand first.
%% Comments and processing instructions are left out; text around them is one piece.
-module(expat).

-export([parse/1, parse/2, to_binary/1]).
-export([plain_parse/1, plain_to_binary/1, dirty_parse/1, dirty_to_binary/1]).

-export_type([element/0, child/0, options/0, reason/0]).

-nifs([nif_parse/3, to_binary/1, plain_parse/1, plain_to_binary/1, dirty_parse/1,
       dirty_to_binary/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-type element() ::
    {xmlel, Name :: binary(), [{Name :: binary(), Value :: binary()}], [child()]}.
-type child() :: element() | {xmlcdata, binary()}.
-type options() :: #{depth => non_neg_integer(), attributes => non_neg_integer()}.
%% How deep elements may be within each other, and how many attributes one may have, declarations of
%% namespaces among them. Default: 1000 of each.
-type reason() ::
    {ExpatsCode :: pos_integer(), Sentence :: binary()} | {limit, depth | attributes}.

%% A document of this many bytes gets a heap for what comes of it (room/2).
-define(LARGE, 100000).

init() -> ?FAIRNIF_LOAD.

%% @doc `parse(Document, #{})'.
-spec parse(iodata()) -> element() | {error, reason()}.
parse(Document) ->
    parse(Document, #{}).

%% @doc The root element of a document in UTF-8, or in UTF-16 with a byte order mark; `encoding' in
%% its first line is not looked at.
%%
%% Refused, besides what is not well-formed with its namespaces: every document type declaration
%% (code 35), so there are no entities but XML's five, and nothing is ever fetched; what is over the
%% limits. `badarg': no iodata, or unknown options; `enomem'.
-spec parse(iodata(), options()) -> element() | {error, reason()}.
parse(Document, Options) ->
    Depth = maps:get(depth, Options, 1000),
    Attributes = maps:get(attributes, Options, 1000),
    [] =:= maps:keys(maps:without([depth, attributes], Options))
        orelse erlang:error(badarg, [Document, Options]),
    try
        room(size_of(Document), fun() -> nif_parse(Document, Depth, Attributes) end)
    catch
        error:badarg -> erlang:error(badarg, [Document, Options])
    end.

%% Of an iolist it is not known: it is then the heap as it is.
size_of(Document) when is_binary(Document) -> byte_size(Document);
size_of(_) -> 0.

%% At a word for four bytes.
room(Bytes, Fun) when Bytes < ?LARGE -> Fun();
room(Bytes, Fun) -> fairnif:with_heap(Bytes div 4, Fun).

nif_parse(_Document, _Depth, _Attributes) ->
    erlang:nif_error(not_loaded).

%% @doc An element, or text, as XML in UTF-8; names, values and text may be any iodata. Bytes are
%% written as they are, but for escapes: that names are names, and that no control characters are
%% in the text, is up to the caller.
%%
%% `badarg': any other term; `enomem'.
-spec to_binary({xmlel, iodata(), [{iodata(), iodata()}], list()} | {xmlcdata, iodata()}) ->
    binary().
to_binary(_Element) ->
    erlang:nif_error(not_loaded).

%% @doc Plain NIFs, one call of expat: they hold their scheduler to the end. No limits; a binary
%% only.
-spec plain_parse(binary()) -> element() | {error, reason()}.
plain_parse(_Document) ->
    erlang:nif_error(not_loaded).

-spec plain_to_binary(element() | {xmlcdata, binary()}) -> binary().
plain_to_binary(_Element) ->
    erlang:nif_error(not_loaded).

%% @doc The same on dirty CPU schedulers.
-spec dirty_parse(binary()) -> element() | {error, reason()}.
dirty_parse(_Document) ->
    erlang:nif_error(not_loaded).

-spec dirty_to_binary(element() | {xmlcdata, binary()}) -> binary().
dirty_to_binary(_Element) ->
    erlang:nif_error(not_loaded).
