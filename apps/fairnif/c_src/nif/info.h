/*
 * info.h - settings, and what fairnif:info/0 and fairnif:tasks/0 show.
 */
#ifndef FAIR_INFO_H
#define FAIR_INFO_H

#include "thread/func.h"

#ifndef FAIRNIF_VERSION
#define FAIRNIF_VERSION "0.0.0"
#endif

FAIR_HIDDEN fair__nif_function fair__set, fair__info, fair__tasks,
    fair__outlived, fair__start_pool;

/* Into a map with atoms as keys; used by both. */
FAIR_HIDDEN void fair__put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                           ERL_NIF_TERM value);
FAIR_HIDDEN void fair__put_number(ErlNifEnv *env, ERL_NIF_TERM *map,
                                  const char *key, uint64_t value);
FAIR_HIDDEN ERL_NIF_TERM fair__function_name(ErlNifEnv *env,
                                             const struct fair__func *f);

#endif
