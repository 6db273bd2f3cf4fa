/*
 * drivers.h - port drivers, as module fairnif sees them.
 */
#ifndef FAIR_DRIVERS_H
#define FAIR_DRIVERS_H

#include "base/base.h"

struct fair__driver_nifs {
    ERL_NIF_TERM (*bind)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*known)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*request)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*deferred)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*abandon)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*counts)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
};
extern FAIR_HIDDEN const struct fair__driver_nifs fair__driver_nifs;
FAIR_HIDDEN bool fair__drivers_open(ErlNifEnv *env);
FAIR_HIDDEN ERL_NIF_TERM fair__driver_bind(ErlNifEnv *env, int argc,
                                           const ERL_NIF_TERM argv[]);

#endif
