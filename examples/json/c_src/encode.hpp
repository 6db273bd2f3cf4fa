/*
 * encode.hpp - the functions that fair_json.cpp registers.
 */
#ifndef ENCODE_HPP
#define ENCODE_HPP

#include <fairnif.h>

/* nif_encode(Term) -> iodata() | {error, Reason} */
ERL_NIF_TERM encode(fair_task *t);

void encode_load(ErlNifEnv *env);

#endif
