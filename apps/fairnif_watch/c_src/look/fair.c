/*
 * fair.c - what fairnif's runtime says each thread runs: exactly, and without a
 * stack.
 *
 * The node may have no fairnif, or load it later.  Its runtime is never
 * unmapped, so what it once gave is good for as long as the node lives.  The
 * structs are fairnif_abi.h's (struct fair__visitor, fair__running, the first of
 * fair__ops, of interface 3), written again here because this application needs nothing
 * of fairnif's to be built; test/test_fair.c holds one against the other.
 */
#include <string.h>

#include "look/fair.h"
#include "look/state.h"

const struct fair_ops *watch__fair_bind(ErlNifEnv *env, ERL_NIF_TERM runtime)
{
    struct fair_visitor visitor = {
        .size = sizeof visitor, .kind = FAIR_VISITS, .abi_major = 3
    };

    if (enif_dynamic_resource_call(env, enif_make_atom(env, "fairnif"),
                                   enif_make_atom(env, "fairnif_runtime"),
                                   runtime, &visitor) != 0
        || !visitor.table || visitor.table->size < sizeof *visitor.table)
        return NULL;
    return visitor.table;
}

enum { WHERE_POOL = 3 };       /* of struct fair_running */

/* What others may read.  Missed this time, it is there the next. */
static void show_running(struct watch *w, unsigned n)
{
    if (!watch__try_lock(w))
        return;
    for (unsigned i = 0; i < w->count; i++)
        if (w->threads[i].fair)
            w->shown_fair[i] = *w->threads[i].fair;
        else
            w->shown_fair[i].tid = 0;
    w->shown_pools = 0;
    for (unsigned k = 0; k < n && w->shown_pools < WATCH__POOL; k++)
        if (w->running[k].where == WHERE_POOL)
            w->shown_pool[w->shown_pools++] = w->running[k];
    watch__unlock(w);
}

void watch__fair_look(struct watch *w)
{
    const struct fair_ops *ops =
        atomic_load_explicit(&w->fair, memory_order_acquire);
    unsigned n;

    if (!ops)
        return;
    n = ops->running(w->running, sizeof *w->running, WATCH__RUNNING);
    for (unsigned i = 0; i < w->count; i++)
        w->threads[i].fair = NULL;
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < w->count; i++)
            if (w->threads[i].tid == w->running[k].tid)
                w->threads[i].fair = &w->running[k];
    if (n || w->fair_was_shown)
        show_running(w, n);
    w->fair_was_shown = n > 0;
}
