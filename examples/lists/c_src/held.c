/*
 * held.c - terms in a tree of tuples, see held.h.
 */
#include "held.h"

/* The tree begins as lists, newest first. */
struct growing {
    unsigned rest, leaves, mids;    /* roots */
};

/* So many are enough for MAX_HELD elements. */
enum { MIDS_MOST = 1 << (32 - 2 * WIDTH_BITS) };

/* All `n` elements of the list in the root `from` as a tuple, in the order in
 * which they were pushed; the list is then empty. */
static ERL_NIF_TERM wrap(fair_task *t, unsigned from, unsigned n)
{
    ERL_NIF_TERM elements[MIDS_MOST], list = fair_kept(t, from);
    ErlNifEnv *env = fair_env(t);

    for (unsigned i = n; i-- > 0;)
        enif_get_list_cell(env, list, &elements[i], &list);
    fair_keep(t, from, list);
    return enif_make_tuple_from_array(env, elements, n);
}

/* The next elements of what is left as a tuple; how many. */
static unsigned take_leaf(fair_task *t, const struct growing *g)
{
    ERL_NIF_TERM elements[WIDTH], list = fair_kept(t, g->rest);
    ErlNifEnv *env = fair_env(t);
    unsigned n = 0;

    while (n < WIDTH && enif_get_list_cell(env, list, &elements[n], &list))
        n++;
    if (n > 0)
        fair_list_push(t, g->leaves,
                       enif_make_tuple_from_array(env, elements, n));
    fair_keep(t, g->rest, list);
    return n;
}

int held_list(fair_task *t, ERL_NIF_TERM list, struct held *h)
{
    ERL_NIF_TERM none = enif_make_list(fair_env(t), 0);
    struct growing g;
    unsigned leaves = 0, mids = 0, n;

    h->count = 0;
    h->root = g.rest = fair_root(t, list);
    g.leaves = fair_root(t, none);
    g.mids = fair_root(t, none);
    while ((n = take_leaf(t, &g)) > 0) {
        h->count += n;
        if (h->count > MAX_HELD)
            return 0;
        if (++leaves == WIDTH) {
            fair_list_push(t, g.mids, wrap(t, g.leaves, leaves));
            leaves = 0;
            mids++;
        }
        fair_tick(t, n);
    }
    if (!enif_is_empty_list(fair_env(t), fair_kept(t, g.rest)))
        return 0;
    if (leaves > 0) {
        fair_list_push(t, g.mids, wrap(t, g.leaves, leaves));
        mids++;
    }
    fair_keep(t, h->root, wrap(t, g.mids, mids));
    fair_unroot(t, g.leaves);       /* and g.mids */
    fair_tick(t, leaves + mids);
    return 1;
}

void held_again(fair_task *t, struct held *h)
{
    int arity;

    enif_get_tuple(fair_env(t), fair_kept(t, h->root), &arity, &h->top);
}
