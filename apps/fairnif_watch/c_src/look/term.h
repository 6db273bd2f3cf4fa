/*
 * term.h - terms that more than one file makes.
 */
#ifndef WATCH_TERM_H
#define WATCH_TERM_H

#include <string.h>

#include "look/fair.h"
#include "look/state.h"

static inline ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

static inline void put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                       ERL_NIF_TERM value)
{
    enif_make_map_put(env, *map, atom(env, key), value, map);
}

static inline void put_number(ErlNifEnv *env, ERL_NIF_TERM *map,
                              const char *key, uint64_t value)
{
    put(env, map, key, enif_make_uint64(env, value));
}

static inline ERL_NIF_TERM binary(ErlNifEnv *env, const char *text)
{
    size_t size = strlen(text);
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, size, &term), text, size);
    return term;
}

static inline ERL_NIF_TERM mfa(ErlNifEnv *env, const char *module,
                               const char *name, unsigned arity)
{
    return enif_make_tuple3(env, atom(env, module), atom(env, name),
                            enif_make_uint(env, arity));
}

/* CLOCK_MONOTONIC -> erlang:monotonic_time(nanosecond) */
static inline ERL_NIF_TERM time_term(ErlNifEnv *env, const struct watch *w,
                                     uint64_t at)
{
    return enif_make_int64(env, (int64_t)at + GET(w->offset));
}

/* `none` where a thread runs no function of fairnif's. */
static inline ERL_NIF_TERM fairnif_term(ErlNifEnv *env, const struct watch *w,
                                        const struct fair_running *fair)
{
    ERL_NIF_TERM map;

    if (!fair || !fair->tid)
        return atom(env, "none");
    map = enif_make_new_map(env);
    put(env, &map, "function",
        mfa(env, fair->module, fair->name, fair->arity));
    put(env, &map, "owner", enif_make_pid(env, &fair->owner));
    put(env, &map, "since", time_term(env, w, fair->since_ns));
    put_number(env, &map, "yields", fair->yields);
    return map;
}

#endif
