%% Secret-key and public-key encryption and random bytes, by libsodium.
%%
%% Each of the three comes in three forms that run the same C.  The one without
%% a suffix is the one to use: it runs in place while that costs little, and on a
%% dirty scheduler otherwise, as learned (fair_offload).  The other two are here to
%% be measured against: `_b' holds its scheduler to the end, `_dirty' always goes
%% to a dirty one.
%%
%% Names and orders of arguments are NaCl's.  A box is the 16 bytes that
%% authenticate it and then the ciphertext, as in libsodium's _easy functions.
%%
%% Errors: badarg when a message is no binary, a nonce is not 24 bytes, a key
%% not 32, a number of bytes not between 0 and 2^64 - 1, or a public key is of
%% low order (one with which every box would have the same key); enomem.
%% Keys are as well hidden as any other Erlang term: they are not wiped.
-module(sodium).

-export([crypto_secretbox/3, crypto_secretbox_b/3, crypto_secretbox_dirty/3,
         crypto_secretbox_open/3,
         crypto_box/4, crypto_box_b/4, crypto_box_dirty/4,
         crypto_box_open/4, crypto_box_keypair/0,
         randombytes/1, randombytes_b/1, randombytes_dirty/1]).

-export_type([nonce/0, key/0, public_key/0, secret_key/0]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-type nonce() :: <<_:192>>.     % never used twice with the same key
-type key() :: <<_:256>>.
-type public_key() :: <<_:256>>.
-type secret_key() :: <<_:256>>.

init() -> ?FAIRNIF_LOAD.

%% The message, encrypted and authenticated: 16 bytes longer.
-spec crypto_secretbox(binary(), nonce(), key()) -> binary().
crypto_secretbox(_Message, _Nonce, _Key) ->
    erlang:nif_error(not_loaded).

-spec crypto_secretbox_b(binary(), nonce(), key()) -> binary().
crypto_secretbox_b(_Message, _Nonce, _Key) ->
    erlang:nif_error(not_loaded).

-spec crypto_secretbox_dirty(binary(), nonce(), key()) -> binary().
crypto_secretbox_dirty(_Message, _Nonce, _Key) ->
    erlang:nif_error(not_loaded).

-spec crypto_secretbox_open(binary(), nonce(), key()) ->
          {ok, binary()} | {error, failed_verification}.
crypto_secretbox_open(_Box, _Nonce, _Key) ->
    erlang:nif_error(not_loaded).

%% The message for the owner of PublicKey, from the owner of SecretKey.
-spec crypto_box(binary(), nonce(), public_key(), secret_key()) -> binary().
crypto_box(_Message, _Nonce, _PublicKey, _SecretKey) ->
    erlang:nif_error(not_loaded).

-spec crypto_box_b(binary(), nonce(), public_key(), secret_key()) -> binary().
crypto_box_b(_Message, _Nonce, _PublicKey, _SecretKey) ->
    erlang:nif_error(not_loaded).

-spec crypto_box_dirty(binary(), nonce(), public_key(), secret_key()) -> binary().
crypto_box_dirty(_Message, _Nonce, _PublicKey, _SecretKey) ->
    erlang:nif_error(not_loaded).

%% PublicKey is the sender's, SecretKey the receiver's.
-spec crypto_box_open(binary(), nonce(), public_key(), secret_key()) ->
          {ok, binary()} | {error, failed_verification}.
crypto_box_open(_Box, _Nonce, _PublicKey, _SecretKey) ->
    erlang:nif_error(not_loaded).

-spec crypto_box_keypair() -> {public_key(), secret_key()}.
crypto_box_keypair() ->
    erlang:nif_error(not_loaded).

%% That many bytes from the system's source of randomness.
-spec randombytes(non_neg_integer()) -> binary().
randombytes(_Size) ->
    erlang:nif_error(not_loaded).

-spec randombytes_b(non_neg_integer()) -> binary().
randombytes_b(_Size) ->
    erlang:nif_error(not_loaded).

-spec randombytes_dirty(non_neg_integer()) -> binary().
randombytes_dirty(_Size) ->
    erlang:nif_error(not_loaded).
