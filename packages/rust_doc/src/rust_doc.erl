%% A text that many edit at once (a CRDT of the Yjs family), by the crate yrs. Documents that have
%% taken the same updates, in whatever order, hold the same text.
%%
%% Each is one call into the crate, which cannot tick: it runs at once where that is short, else on
%% a dirty scheduler or a thread of fairnif's. plain_ and dirty_ are the same code in forms to
%% measure against.
-module(rust_doc).

-export([new/0, insert/3, text/1, apply/2, encode/1]).
-export([plain_apply/2, dirty_apply/2, plain_encode/1, dirty_encode/1]).
%% Called through fairnif:await/1.
-export([insert_nif/3, text_nif/1, apply_nif/2, encode_nif/1]).

-export_type([doc/0]).

-compile({no_auto_import, [apply/2]}).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-opaque doc() :: reference().
%% A document. Any number of processes may use it; they wait for one another, without a thread.

init() -> ?FAIRNIF_LOAD.

%% An empty one.
-spec new() -> doc().
new() ->
    erlang:nif_error(not_loaded).

%% Puts text into the document's, behind that many bytes of it; badarg where there are fewer, or
%% where a character would be torn.
-spec insert(doc(), At :: non_neg_integer(), unicode:unicode_binary()) -> ok.
insert(Doc, At, Text) ->
    fairnif:await(insert_nif(Doc, At, Text)).

-spec text(doc()) -> unicode:unicode_binary().
text(Doc) ->
    fairnif:await(text_nif(Doc)).

%% Takes what encode/1 of another document answered; what is known already changes nothing.
-spec apply(doc(), Update :: binary()) -> ok | {error, Why :: binary()}.
apply(Doc, Update) ->
    fairnif:await(apply_nif(Doc, Update)).

%% All that the document has taken, as one update.
-spec encode(doc()) -> Update :: binary().
encode(Doc) ->
    fairnif:await(encode_nif(Doc)).

%% Plain functions of rustler's: they hold their scheduler to the end.
-spec plain_apply(doc(), binary()) -> ok | {error, binary()}.
plain_apply(_Doc, _Update) ->
    erlang:nif_error(not_loaded).

-spec plain_encode(doc()) -> binary().
plain_encode(_Doc) ->
    erlang:nif_error(not_loaded).

%% The same on dirty CPU schedulers.
-spec dirty_apply(doc(), binary()) -> ok | {error, binary()}.
dirty_apply(_Doc, _Update) ->
    erlang:nif_error(not_loaded).

-spec dirty_encode(doc()) -> binary().
dirty_encode(_Doc) ->
    erlang:nif_error(not_loaded).

%% @private
insert_nif(_Doc, _At, _Text) ->
    erlang:nif_error(not_loaded).

%% @private
text_nif(_Doc) ->
    erlang:nif_error(not_loaded).

%% @private
apply_nif(_Doc, _Update) ->
    erlang:nif_error(not_loaded).

%% @private
encode_nif(_Doc) ->
    erlang:nif_error(not_loaded).
