/*
 * turn.c - the limit on how many calls are under way at once.
 *
 * Counted only where a limit is set.  A call of a function whose caller awaits
 * it waits its turn, in the order of the calls of that function; any other one
 * is refused.  A free place is for those who wait: whoever frees one, or comes
 * for one, lets them in first.
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

enum entry {E_FULL, E_IN, E_UNDONE};

static enum entry enter(const struct fair__nif *nif)
{
    struct fair__func *f = nif->func;

    if (!count_in(&f->active, nif->max_tasks))
        return E_FULL;
    if (count_in(&fair__config.active, (int64_t)GET(fair__config.max_tasks)))
        return E_IN;
    atomic_fetch_sub(&f->active, 1);
    return E_UNDONE;
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

        if (enter(t->nif) != E_IN)
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

/* Free places go to those who wait, and what is left to the newcomer, if there
 * is one (or NULL): is he in?  Two at a time, so that a limit that was raised is
 * made use of; for a newcomer all of them. */
static bool let_in(ErlNifEnv *env, const struct fair__nif *newcomer)
{
    enum { MOST = 2 };
    unsigned granted;
    bool in;

    do {
        struct fair__wake w[MOST] = {{0}};

        granted = 0;
        fair__wait_lock();
        while (granted < MOST && grant_turn(&w[granted]))
            granted++;
        in = newcomer && granted < MOST && !newcomer->func->turns.first
            && enter(newcomer) == E_IN;
        fair__wait_unlock();
        for (unsigned i = 0; i < granted; i++)
            fair__wake_send(env, &w[i]);
    } while (newcomer && granted == MOST);
    return in;
}

/* The counters were lowered: whoever begins to wait looks at them after he is
 * counted as waiting. */
static void pass_on(ErlNifEnv *env)
{
    if (fair_unlikely(atomic_load(&turns_waiting) != 0))
        let_in(env, NULL);
}

/* Counts only where a limit is set: the counters are shared by all threads.  A
 * call that finds nobody waiting needs no lock. */
bool fair__admit(const struct fair__nif *nif, ErlNifEnv *env, bool *counted)
{
    *counted = nif->max_tasks || GET(fair__config.max_tasks);
    if (fair_likely(!*counted))
        return true;
    if (atomic_load(&turns_waiting)) {
        *counted = let_in(env, nif);
    } else {
        enum entry entry = enter(nif);

        *counted = entry == E_IN;
        /* For a moment it had a place of the function's: who looked then took it
         * for full. */
        if (entry == E_UNDONE)
            pass_on(env);
    }
    return *counted;
}

/* A counted call is over. */
void fair__dismiss(struct fair__func *f, ErlNifEnv *env)
{
    atomic_fetch_sub(&f->active, 1);
    atomic_fetch_sub(&fair__config.active, 1);
    pass_on(env);
}
