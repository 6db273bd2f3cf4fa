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

/* Never counts one too many, not even for a moment: who looks then would take a
 * free place for none, and wait for the end of a call that was refused. */
static bool count_in(_Atomic int64_t *active, int64_t most)
{
    int64_t now = atomic_load(active);

    do {
        if (most && now >= most)
            return false;
    } while (!atomic_compare_exchange_weak(active, &now, now + 1));
    return true;
}

static bool admit(struct fair__func *f, int64_t own, int64_t all)
{
    if (!count_in(&f->active, own))
        return false;
    if (count_in(&fair__config.active, all))
        return true;
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

static void append_limited(struct fair__func *f)
{
    struct fair__func **at = &limited;

    while (*at)
        at = &(*at)->turns.next;
    *at = f;
    f->turns.next = NULL;
}

static void remove_limited(struct fair__func *f)
{
    struct fair__func **at = &limited;

    while (*at != f)
        at = &(*at)->turns.next;
    *at = f->turns.next;
}

void fair__turn_end(struct fair__task *t)
{
    struct fair__func *f = t->func;

    fair__list_take_off(t, &f->turns.first, &f->turns.last);
    atomic_fetch_sub(&turns_waiting, 1);
    if (!f->turns.first)
        remove_limited(f);
}

/* One that waits is let in, if it may; locked.  The functions take turns too:
 * under the limit of all calls one of them would else keep the others out. */
static bool grant_turn(struct fair__wake *w)
{
    for (struct fair__func *f = limited; f; f = f->turns.next) {
        struct fair__task *t = f->turns.first;

        if (!admit(f, t->nif->max_tasks,
                   (int64_t)GET(fair__config.max_tasks)))
            continue;
        t->counted = true;
        fair__turn_end(t);
        if (f->turns.first) {
            remove_limited(f);
            append_limited(f);
        }
        fair__make_ready(t, w);
        return true;
    }
    return false;
}

/* One may have ended meanwhile. */
void fair__turn_begin(struct fair__task *t, struct fair__wake *w)
{
    struct fair__func *f = t->func;

    if (!f->turns.first)
        append_limited(f);
    fair__list_append(t, &f->turns.first, &f->turns.last);
    atomic_fetch_add(&turns_waiting, 1);
    grant_turn(w);
}

/* A counted call is over. */
void fair__dismiss(struct fair__func *f, ErlNifEnv *env)
{
    struct fair__wake w[2] = {{0}};

    atomic_fetch_sub(&f->active, 1);
    atomic_fetch_sub(&fair__config.active, 1);
    /* Whoever begins to wait looks at the counters after he is counted here. */
    if (fair_likely(atomic_load(&turns_waiting) == 0))
        return;
    fair__wait_lock();
    /* Two, so that a limit that was raised is made use of. */
    if (grant_turn(&w[0]))
        grant_turn(&w[1]);
    fair__wait_unlock();
    fair__wake_send(env, &w[0]);
    fair__wake_send(env, &w[1]);
}
