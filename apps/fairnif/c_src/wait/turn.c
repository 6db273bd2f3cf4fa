/*
 * turn.c - limits the number of calls in progress at once.
 *
 * Counted only where a limit is set.  A call of a function whose caller awaits
 * it waits its turn, in the order of the calls of that function; any other one
 * is refused.  A free place is for those that wait: the call that frees one, or
 * comes for one, lets them in first.
 */
#include "wait/turn.h"

#include "base/config.h"

static struct fair__func *limited;      /* functions with calls that wait */

/* Takes a place under both limits, if there is one; locked. */
static bool enter_turn(const struct fair__nif *nif)
{
    struct fair__func *f = nif->func;
    uint64_t most = GET(fair__config.max_tasks);

    if ((nif->max_tasks && f->active >= nif->max_tasks)
        || (most && fair__config.active >= most))
        return false;
    f->active++;
    fair__config.active++;
    return true;
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
    if (!f->turns.first)
        remove_limited(f);
}

/* One that waits is let in, if it may; locked.  The functions take turns too:
 * under the limit of all calls one of them would else keep the others out. */
static bool grant_turn(struct fair__wake *w)
{
    for (struct fair__func *f = limited; f; f = f->turns.next) {
        struct fair__task *t = f->turns.first;

        if (!enter_turn(t->nif))
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
    grant_turn(w);
}

/* The call that ended, if one did, gives up its place.  Free places go to those
 * that wait, and what is left to the newcomer, if there is one: is he in?  Two
 * at a time, so that a limit that was raised is made use of; for a newcomer all
 * of them. */
static bool let_in(ErlNifEnv *env, struct fair__func *ended,
                   const struct fair__nif *newcomer)
{
    enum { MOST = 2 };
    unsigned granted;
    bool in;

    do {
        struct fair__wake w[MOST] = {{0}};

        granted = 0;
        fair__wait_lock();
        if (ended) {
            ended->active--;
            fair__config.active--;
            ended = NULL;
        }
        while (granted < MOST && grant_turn(&w[granted]))
            granted++;
        in = newcomer && granted < MOST && !newcomer->func->turns.first
            && enter_turn(newcomer);
        fair__wait_unlock();
        for (unsigned i = 0; i < granted; i++)
            fair__wake_send(env, &w[i]);
    } while (newcomer && granted == MOST);
    return in;
}

/* Counts only where a limit is set: then each call takes the lock. */
bool fair__admit(const struct fair__nif *nif, ErlNifEnv *env, bool *counted)
{
    *counted = nif->max_tasks || GET(fair__config.max_tasks);
    if (fair_likely(!*counted))
        return true;
    *counted = let_in(env, NULL, nif);
    return *counted;
}

/* A counted call is over. */
void fair__dismiss(struct fair__func *f, ErlNifEnv *env)
{
    let_in(env, f, NULL);
}
