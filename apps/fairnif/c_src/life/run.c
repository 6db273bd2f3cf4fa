/*
 * run.c - one slice of a task, on a scheduler or on a thread of the pool.
 */
#include "life/run.h"

#include "base/config.h"
#include "life/end.h"
#include "task/call.h"
#include "task/cancel.h"
#include "task/debug.h"
#include "task/slice.h"
#include "task/switch.h"

enum fair__state fair__queued_as(enum fair__where where)
{
    return where == W_NORMAL ? T_SUSPENDED
        : where == W_THREAD ? T_PARKS : T_QUEUED;
}

/* The body has returned, and what it sent last is here still.  Its roots are not
 * needed any more.  The caller may die while it sends that. */
static void send_last(struct fair__task *t)
{
    struct fair__escape here = {0};

    if (!t->result || enif_has_pending_exception(t->pub.env, NULL))
        return;
    fair__term_in(t, t->result);
    t->roots[0] = t->result;
    t->roots_used = 1;
    t->escape = &here;
    if (FAIR__SETJMP(here.out) == 0) {
        fair__hand_out(t);
        t->result = fair__term_out(t, t->roots[0]);
    }
    t->escape = NULL;
}

void fair__run_body(struct fair__task *t)
{
    t->result = t->nif->body(&t->pub);
    if (fair_unlikely(t->ring != NULL))
        fair__alarm(&t->pub, NULL, NULL);   /* what it rang is not there any more */
    if (fair_unlikely(t->outbox != 0))
        send_last(t);
}

/* One slice; t->exit says how it ended. */
void fair__run_slice(struct fair__task *t, struct fair__thread *th,
                     uint64_t since)
{
    bool dirty_cpu = t->where == W_DIRTY_CPU;

    if (dirty_cpu)
        atomic_fetch_add(&fair__config.dirty_running, 1);
    th->current = t;
    fair__slot_enter(th, t->func, since, t->pub.yields, t->owner.pid);
    fair__switch_to(t);
    th->current = NULL;
    if (t->exit == X_DONE) {
        if (fair_unlikely(t->pub.cancelled))
            fair__cleaned_up(t);
        else
            fair__term_in(t, t->result);
    }
    if (t->exit == X_PAUSE || t->exit == X_WAIT) {
        /* Seen as suspended before it is no longer seen as running. */
        fair__become(t, t->exit == X_WAIT ? T_PARKS
                     : fair__queued_as(t->hop ? W_NORMAL : GET(t->target)));
        if (!t->listed)
            fair__enlist(t);
    }
    fair__slot_leave(th);
    if (dirty_cpu)
        atomic_fetch_sub(&fair__config.dirty_running, 1);
    fair__slice_end(t);
}

/* On a thread of the pool, for a task with an environment of its own. */
void fair__thread_slice(struct fair__task *t, struct fair__thread *th)
{
    t->where = W_THREAD;
    SET(t->target, W_THREAD);
    t->pub.env = t->own_env;
    t->pub.argv = t->own_argv;
    t->foreign = true;
    fair__next_slice(t);
    fair__run_slice(t, th, GET(t->since_ns));
}
