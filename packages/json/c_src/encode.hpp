/*
 * encode.hpp - the functions that library.cpp registers.
 */
#ifndef ENCODE_HPP
#define ENCODE_HPP

#include <fairnif.hpp>

/* nif_encode(Term) -> iodata() | {error, Reason} */
fair::term encode(fair::task &t, fair::root &term);

void encode_load(ErlNifEnv *env);

#endif
