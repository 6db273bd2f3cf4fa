%% Compression by libzstd (RFC 8878).
%%
%% compress/1,2 and decompress/1,2 yield, whatever the level and however long the data. The other
%% forms are one call of the library, as a plain and as a dirty NIF, to be measured against.
%%
%% Errors: badarg when the data is no iodata, the level no level of libzstd's; enomem.
-module(zstandard).

-export([compress/1, compress/2, decompress/1, decompress/2]).
-export([plain_compress/2, plain_decompress/1, dirty_compress/2, dirty_decompress/1]).

-export_type([level/0]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-type level() :: -131072..22.
%% Below 0 fast, 3 the library's default, from 15 on well under 10 MB a second, from 20 on with
%% hundreds of MB of memory.

init() -> ?FAIRNIF_LOAD.

%% One frame, which says how long the data is.
-spec compress(iodata()) -> binary().
compress(Data) ->
    compress(Data, 3).

-spec compress(iodata(), level()) -> binary().
compress(_Data, _Level) ->
    erlang:nif_error(not_loaded).

%% What any number of frames hold. At most a gigabyte: a few bytes may stand for more.
-spec decompress(iodata()) -> binary() | {error, Why :: binary()}.
decompress(Data) ->
    decompress(Data, 1 bsl 30).

-spec decompress(iodata(), Most :: non_neg_integer()) -> binary() | {error, Why :: binary()}.
decompress(_Data, _Most) ->
    erlang:nif_error(not_loaded).

%% Plain NIFs: they hold their scheduler to the end.
-spec plain_compress(iodata(), level()) -> binary().
plain_compress(_Data, _Level) ->
    erlang:nif_error(not_loaded).

%% Of one frame that says how long it is.
-spec plain_decompress(iodata()) -> binary() | {error, binary()}.
plain_decompress(_Data) ->
    erlang:nif_error(not_loaded).

%% The same on dirty CPU schedulers.
-spec dirty_compress(iodata(), level()) -> binary().
dirty_compress(_Data, _Level) ->
    erlang:nif_error(not_loaded).

-spec dirty_decompress(iodata()) -> binary() | {error, binary()}.
dirty_decompress(_Data) ->
    erlang:nif_error(not_loaded).
