/*
 * big_lists.h - the NIFs, and what they share.
 */
#ifndef FAIR_LISTS_H
#define FAIR_LISTS_H

#include <fairnif.h>

/* Elements between two ticks, where one takes 5 to 20 ns. */
enum { BLOCK = 256 };

static inline size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

ERL_NIF_TERM sum(fair_task *t);
ERL_NIF_TERM range(fair_task *t);
ERL_NIF_TERM sort(fair_task *t);
ERL_NIF_TERM to_maps(fair_task *t);

ERL_NIF_TERM unfair_sum(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM unfair_range(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM unfair_sort(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM unfair_to_map(ErlNifEnv *env, int argc,
                           const ERL_NIF_TERM argv[]);

#endif
