/*
 * held.c - terms in a tree of tuples, see held.h.
 */
#include "held.h"

/* The roots while the tree grows: it begins as lists, newest first. */
enum { REST, LEAVES, MIDS };

/* So many are enough for MAX_HELD elements. */
enum { MIDS_MOST = 1 << (32 - 2 * WIDTH_BITS) };

/* All `n` elements of the list in slot `from` as a tuple, in the order in which
 * they were pushed; the slot is then empty. */
static ERL_NIF_TERM wrap(fair_task *t, unsigned from, unsigned n)
{
    ERL_NIF_TERM elements[MIDS_MOST], list = fair_kept(t, from);
    ErlNifEnv *env = fair_env(t);

    for (unsigned i = n; i-- > 0;)
        enif_get_list_cell(env, list, &elements[i], &list);
    fair_keep(t, from, list);
    return enif_make_tuple_from_array(env, elements, n);
}

/* The next elements of the list in slot REST as a tuple; how many. */
static unsigned take_leaf(fair_task *t, unsigned slot)
{
    ERL_NIF_TERM elements[WIDTH], list = fair_kept(t, slot + REST);
    ErlNifEnv *env = fair_env(t);
    unsigned n = 0;

    while (n < WIDTH && enif_get_list_cell(env, list, &elements[n], &list))
        n++;
    if (n > 0)
        fair_list_push(t, slot + LEAVES,
                       enif_make_tuple_from_array(env, elements, n));
    fair_keep(t, slot + REST, list);
    return n;
}

int held_list(fair_task *t, unsigned arg, unsigned slot, struct held *h)
{
    unsigned leaves = 0, mids = 0, n;

    fair_keep(t, slot + REST, fair_arg(t, arg));
    h->count = 0;
    h->slot = slot;
    while ((n = take_leaf(t, slot)) > 0) {
        h->count += n;
        if (h->count > MAX_HELD)
            return 0;
        if (++leaves == WIDTH) {
            fair_list_push(t, slot + MIDS, wrap(t, slot + LEAVES, leaves));
            leaves = 0;
            mids++;
        }
        fair_tick(t, n);
    }
    if (!enif_is_empty_list(fair_env(t), fair_kept(t, slot + REST)))
        return 0;
    if (leaves > 0) {
        fair_list_push(t, slot + MIDS, wrap(t, slot + LEAVES, leaves));
        mids++;
    }
    fair_keep(t, slot, wrap(t, slot + MIDS, mids));
    fair_tick(t, leaves + mids);
    return 1;
}

void held_again(fair_task *t, struct held *h)
{
    int arity;

    enif_get_tuple(fair_env(t), fair_kept(t, h->slot), &arity, &h->top);
}
