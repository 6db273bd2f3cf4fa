/*
 * decode.hpp - the functions that fair_json.cpp registers.
 */
#ifndef DECODE_HPP
#define DECODE_HPP

#include <fairnif.h>

/* nif_decode(Bytes, CopyStrings) -> Term | {error, Reason, Offset} */
ERL_NIF_TERM decode(fair_task *t);

void decode_load(ErlNifEnv *env);

#endif
