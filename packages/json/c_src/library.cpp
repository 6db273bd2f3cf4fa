/*
 * library.cpp - the library: what simdjson.erl finds in it.
 */
#include "decode.hpp"
#include "encode.hpp"

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    decode_load(env);
    encode_load(env);
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    FAIR_FN("nif_decode", decode, FAIR_AUTO),
    FAIR_FN("nif_encode", encode, FAIR_AUTO)
};

FAIR_NIF_INIT(simdjson, nifs, fair::load<load>, fair::upgrade<upgrade>,
              NULL)
