/*
 * held.h - many terms that outlive a pause, each to be had by its number.
 *
 * A term in a C variable, or in an array, is lost at a pause: the collector
 * moves what it points to, and only what the task's roots reach.  So the
 * elements of a list are put into tuples of WIDTH, these into tuples of
 * WIDTH, and these into one, which stands in a root.  An element is three
 * steps away, at any length up to MAX_HELD.  (One tuple for all would have to
 * be made in one go.)
 */
#ifndef HELD_H
#define HELD_H

#include <fairnif.h>

enum {
    WIDTH_BITS = 10,
    WIDTH = 1 << WIDTH_BITS
};
/* Numbers are of 32 bits, so that an array of them is half the terms' size. */
#define MAX_HELD UINT32_MAX

struct held {
    size_t count;
    unsigned root;
    const ERL_NIF_TERM *top;    /* valid until the next pause */
};

/* Takes over the elements of a list; one root stays in use.  0 when it is no
 * proper list or too long.  Pauses. */
int held_list(fair_task *t, ERL_NIF_TERM list, struct held *h);

/* To be called after each pause, before held_get. */
void held_again(fair_task *t, struct held *h);

/* Element `i`; the term is valid until the next pause. */
static inline ERL_NIF_TERM held_get(const struct held *h, ErlNifEnv *env,
                                    uint32_t i)
{
    const ERL_NIF_TERM *mid, *leaf;
    int arity;

    enif_get_tuple(env, h->top[i >> 2 * WIDTH_BITS], &arity, &mid);
    enif_get_tuple(env, mid[i >> WIDTH_BITS & (WIDTH - 1)], &arity, &leaf);
    return leaf[i & (WIDTH - 1)];
}

#endif
