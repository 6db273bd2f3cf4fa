/*
 * turn.c - the limit on how many calls are under way at once.
 *
 * Counted only where a limit is set.  A call of a function whose caller awaits
 * it waits its turn, in the order of the calls of that function; any other one
 * is refused.  A call that ends gives its place on.
 */
#include "wait.h"

static struct fair__func *limited;      /* functions with calls that wait */
static _Atomic size_t turns_waiting;

static bool admit(struct fair__func *f, int64_t own, int64_t all)
{
    if (atomic_fetch_add(&f->active, 1) >= own && own)
        goto refused;
    if (atomic_fetch_add(&fair__config.active, 1) >= all && all) {
        atomic_fetch_sub(&fair__config.active, 1);
        goto refused;
    }
    return true;
refused:
    atomic_fetch_sub(&f->active, 1);
    return false;
}

/* Counts only where a limit is set: the counters are shared by all threads. */
bool fair__admit(const struct fair__nif *nif, bool *counted)
{
    int64_t own = nif->max_tasks, all = (int64_t)GET(fair__config.max_tasks);

    *counted = own || all;
    if (fair_likely(!*counted))
        return true;
    *counted = admit(nif->func, own, all);
    return *counted;
}

void fair__turn_end(struct fair__task *t)
{
    struct fair__func *f = t->func, **at = &limited;

    fair__list_take_off(t, &f->turns.first, &f->turns.last);
    atomic_fetch_sub(&turns_waiting, 1);
    if (f->turns.first)
        return;
    while (*at != f)
        at = &(*at)->turns.next;
    *at = f->turns.next;
}

/* One that waits is let in, if it may; locked. */
static bool grant_turn(struct fair__wake *w)
{
    for (struct fair__func *f = limited; f; f = f->turns.next) {
        struct fair__task *t = f->turns.first;

        if (!admit(f, t->nif->max_tasks,
                   (int64_t)GET(fair__config.max_tasks)))
            continue;
        t->counted = true;
        fair__turn_end(t);
        fair__make_ready(t, w);
        return true;
    }
    return false;
}

/* One may have ended meanwhile. */
void fair__turn_begin(struct fair__task *t, struct fair__wake *w)
{
    struct fair__func *f = t->func;

    if (!f->turns.first) {
        f->turns.next = limited;
        limited = f;
    }
    fair__list_append(t, &f->turns.first, &f->turns.last);
    atomic_fetch_add(&turns_waiting, 1);
    grant_turn(w);
}

/* A counted call is over. */
void fair__dismiss(struct fair__task *t)
{
    struct fair__wake w[2] = {{0}};

    t->counted = false;
    atomic_fetch_sub(&t->func->active, 1);
    atomic_fetch_sub(&fair__config.active, 1);
    /* Whoever begins to wait looks at the counters after he is counted here. */
    if (fair_likely(atomic_load(&turns_waiting) == 0))
        return;
    fair__wait_lock();
    /* Two, so that a limit that was raised is made use of. */
    if (grant_turn(&w[0]))
        grant_turn(&w[1]);
    fair__wait_unlock();
    fair__wake_send(&w[0]);
    fair__wake_send(&w[1]);
}
