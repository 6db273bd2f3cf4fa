/*
 * lock.c - locks that suspend tasks, not schedulers.
 *
 * The lock lies in the author's memory; its owner and those that wait for it,
 * in their order, is under the waiting lock.  A task that ends passes on what
 * it holds, so a caller's death leaves no lock taken.
 */
#include "wait/lock.h"

#include "base/os.h"
#include "task/debug.h"
#include "task/slice.h"
#include "task/env.h"
#include "task/switch.h"
#include "thread/low.h"

enum { LOCK_WEIGHT = 4, LOOK_AT = 1000 };

/* By the task, or for one that waits; locked. */
static void hold(struct fair__task *t, fair_mutex *m)
{
    t->hold.weight += LOCK_WEIGHT;
    m->holder = t;
    m->next = t->hold.mutexes;
    t->hold.mutexes = m;
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
    fair_mutex *m = t->wait.mutex;

    if (!m->holder) {
        hold(t, m);
        fair__make_ready(t, w);
    } else {
        begin_waiting_for(t, m);
        if (t->wait.pending && t->wait.pending->armed)
            fair__lock_awaited(t, w);
    }
}

void fair__lock_end(struct fair__task *t)
{
    fair_mutex *m = t->wait.mutex;
    struct fair__task *first = m->first, *last = m->last;

    fair__list_take_off(t, &first, &last);
    m->first = first;
    m->last = last;
}

/* Does a call that only this task's caller can continue have it? */
static bool is_callers_own(const struct fair__task *t)
{
    const struct fair__task *holder = t->wait.mutex->holder;

    return holder && t->kind->has_caller && holder->owner.pid == t->owner.pid
        && (!fair__is_threaded(holder) || GET(holder->state) == T_WAIT_CALLER);
}

void fair__lock_awaited(struct fair__task *t, struct fair__wake *w)
{
    if (GET(t->state) != T_WAIT_LOCK || !is_callers_own(t))
        return;
    fair__lock_end(t);
    t->wait.mutex = NULL;            /* fair__lock sees it */
    fair__make_ready(t, w);
}

/* The new holder's caller may await another of its calls, which waits behind it.
 * Not all are looked at where very many wait: this is to find a mistake. */
static void look_for_deadlock(fair_mutex *m, struct fair__wake *w)
{
    struct fair__task *t = m->first;

    for (int i = 0; t && i < LOOK_AT && !w->env; i++) {
        struct fair__task *next = t->wait.next;

        if (t->wait.pending && t->wait.pending->armed)
            fair__lock_awaited(t, w);
        t = next;
    }
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
    /* Where it is awaited itself `w` has its message by now. */
    if (GET(next->state) == T_READY && !w->env)
        look_for_deadlock(m, w);
}

/* Without tasks a body's thread waits, and looks again and again; does not return
 * when the caller died. */
static void lock_in_place(struct fair__task *t, fair_mutex *m)
{
    while (!fair__lock(&t->pub, m, 0)) {
        if (!fair__alive(t))
            fair__leave(t, X_DROP);
        fair__nap();
    }
}

struct attempt {
    struct fair__task *t;
    fair_mutex *m;
    bool got, own;
};

static void try(void *arg)
{
    struct attempt *a = arg;

    fair__wait_lock();
    a->own = a->m->holder == a->t;
    a->got = !a->m->holder;
    if (a->got)
        hold(a->t, a->m);
    fair__wait_unlock();
}

static void look_at_holder(void *arg)
{
    struct attempt *a = arg;

    fair__wait_lock();
    a->own = a->m->holder == a->t;
    fair__wait_unlock();
}

bool fair__lock_is_own(struct fair__task *t, fair_mutex *m)
{
    struct attempt a = {.t = t, .m = m};

    fair__at_par(look_at_holder, &a);
    return a.own;
}

/* The holder of a lock has the schedulers' priority: a body leaves the low thread
 * before it takes one, if it may pause.  If not, only its function's next calls
 * begin on the pool's own thread. */
static void leave_low_thread(struct fair__task *t, bool may_pause)
{
    if (fair_likely(!fair__at_low()))
        return;
    if (may_pause && !t->away && !t->thread->locks && !fair__has_raised(t))
        fair__leave(t, X_PAR);
    else
        SET(t->func->locks, true);
    if (may_pause && !t->away && t->thread->locks > 0)
        fair__misuse(t, RULE_LOCK);
}

/* A function given to fair_offload or fair_defer does not wait: the owner of
 * the lock may need this very thread to continue. */
int fair__lock(fair_task *pub, fair_mutex *m, int wait)
{
    struct fair__task *t = fair__of(pub);
    struct attempt a = {.t = t, .m = m};

    if (wait)
        fair__used_away(t);         /* only to say so */
    leave_low_thread(t, wait);
    fair__at_par(try, &a);
    if (a.got || !wait)
        return a.got;
    if (t->away) {
        if (!a.own)
            fair__misuse(t, RULE_NOT_LOCKED);
        return a.own ? 1 : -EDEADLK;
    }
    t->wait.mutex = NULL;
    if (a.own)
        fair__fail(t, "deadlock");
    if (!FAIR__TASKS) {
        lock_in_place(t, m);
        return 1;
    }
    fair__sends(t);
    t->wait.mutex = m;
    fair__wait_for(t, T_WAIT_LOCK);
    if (!t->wait.mutex)
        fair__fail(t, "deadlock");
    t->wait.mutex = NULL;
    return 1;
}

static void let_loose(struct fair__task *t, fair_mutex *m)
{
    fair_mutex *before = t->hold.mutexes;

    t->hold.weight -= LOCK_WEIGHT;
    if (before == m) {
        t->hold.mutexes = m->next;
        return;
    }
    while (before->next != m)
        before = before->next;
    before->next = m->next;
}

static void unlock(void *arg)
{
    struct attempt *a = arg;
    struct fair__wake w = {0};

    fair__wait_lock();
    a->own = a->m->holder == a->t;
    if (a->own) {
        let_loose(a->t, a->m);
        pass_on(a->m, &w);
    }
    fair__wait_unlock();
    fair__wake_send(a->t->vm_env, &w);
}

int fair__unlock(fair_task *pub, fair_mutex *m)
{
    struct attempt a = {.t = fair__of(pub), .m = m};

    fair__at_par(unlock, &a);
    return a.own;
}

/* The task ends. */
unsigned fair__locks_release(struct fair__task *t, unsigned most)
{
    while (t->hold.mutexes && most > 0) {
        fair__unlock(&t->pub, t->hold.mutexes);
        most -= most < LOCK_WEIGHT ? most : LOCK_WEIGHT;
    }
    return most;
}

