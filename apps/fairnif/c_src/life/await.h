/*
 * await.h - the NIFs of fairnif:await/1.
 */
#ifndef FAIR_AWAIT_H
#define FAIR_AWAIT_H

#include "base/base.h"

FAIR_HIDDEN ERL_NIF_TERM fair__await(ErlNifEnv *env, int argc,
                                     const ERL_NIF_TERM argv[]);
FAIR_HIDDEN ERL_NIF_TERM fair__expire(ErlNifEnv *env, int argc,
                                      const ERL_NIF_TERM argv[]);
FAIR_HIDDEN ERL_NIF_TERM fair__settle(ErlNifEnv *env, int argc,
                                      const ERL_NIF_TERM argv[]);

#endif
