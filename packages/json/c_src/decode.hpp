/*
 * decode.hpp - the functions that library.cpp registers.
 */
#ifndef DECODE_HPP
#define DECODE_HPP

#include <fairnif.hpp>

/* nif_decode(Json, CopyStrings) -> Term | {error, Reason, Offset} */
fair::term decode(fair::task &t, const fair::iodata &json, bool copy_strings);

void decode_load(ErlNifEnv *env);

#endif
