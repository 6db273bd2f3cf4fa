/*
 * lock.c - locks that suspend tasks, not schedulers.
 *
 * The lock lies in the author's memory; who has it and who waits for it, in
 * their order, is under the waiting lock.  A task that ends passes on what it
 * holds, so a caller's death leaves no lock taken.
 */
#include "wait/lock.h"

#include "base/os.h"
#include "task/debug.h"
#include "task/slice.h"
#include "task/env.h"
#include "task/switch.h"

static void hold(struct fair__task *t, fair_mutex *m)
{
    m->holder = t;
    m->next = t->holds;
    t->holds = m;
}

static void begin_waiting_for(struct fair__task *t, fair_mutex *m)
{
    struct fair__task *first = m->first, *last = m->last;

    fair__list_append(t, &first, &last);
    m->first = first;
    m->last = last;
}

void fair__lock_begin(struct fair__task *t, struct fair__wake *w)
{
    fair_mutex *m = t->wants;

    if (!m->holder) {
        hold(t, m);
        fair__make_ready(t, w);
    } else {
        begin_waiting_for(t, m);
    }
}

void fair__lock_end(struct fair__task *t)
{
    struct fair__task *first = t->wants->first, *last = t->wants->last;

    fair__list_take_off(t, &first, &last);
    t->wants->first = first;
    t->wants->last = last;
}

/* The next one that waits gets it; locked. */
static void pass_on(fair_mutex *m, struct fair__wake *w)
{
    struct fair__task *next = m->first;

    m->holder = NULL;
    if (!next)
        return;
    fair__lock_end(next);
    hold(next, m);
    fair__make_ready(next, w);
}

/* Where a body cannot be suspended its thread waits, and looks again and again;
 * does not return when the caller died. */
static void lock_in_place(struct fair__task *t, fair_mutex *m)
{
    while (!fair__lock(&t->pub, m, 0)) {
        if (!t->away && !fair__alive(t))
            fair__leave(t, X_DROP);
        fair__nap();
    }
}

int fair__lock(fair_task *pub, fair_mutex *m, int wait)
{
    struct fair__task *t = fair__of(pub);
    bool got, own;

    if (wait)
        fair__used_away(t);         /* only to say so */
    fair__wait_lock();
    own = m->holder == t;
    got = !m->holder;
    if (got)
        hold(t, m);
    fair__wait_unlock();
    if (got || !wait)
        return got;
    t->wants = NULL;
    if (own && t->away)
        return 1;
    if (own)
        fair__fail(t, "deadlock");
    if (!FAIR__TASKS || t->away) {
        lock_in_place(t, m);
        return 1;
    }
    fair__sends(t);
    t->wants = m;
    fair__wait_for(t, T_LOCK);
    t->wants = NULL;
    return 1;
}

static void let_loose(struct fair__task *t, fair_mutex *m)
{
    fair_mutex *before = t->holds;

    if (before == m) {
        t->holds = m->next;
        return;
    }
    while (before->next != m)
        before = before->next;
    before->next = m->next;
}

int fair__unlock(fair_task *pub, fair_mutex *m)
{
    struct fair__task *t = fair__of(pub);
    struct fair__wake w = {0};
    bool held;

    fair__wait_lock();
    held = m->holder == t;
    if (held) {
        let_loose(t, m);
        pass_on(m, &w);
    }
    fair__wait_unlock();
    fair__wake_send(fair__vm_env(t), &w);
    return held;
}

/* The task ends. */
void fair__locks_release(struct fair__task *t)
{
    while (t->holds)
        fair__unlock(&t->pub, t->holds);
}

