/*
 * cancel.c - a body that has to clean up: see nif/ops.c.
 */
#include "task/cancel.h"

#include "base/os.h"

fair__u64 fair__cancelled_now;

void fair__cancel(struct fair__task *t)
{
    if (t->pub.cancelled)
        return;
    t->pub.cancelled = 1;
    t->pub.ops = &fair__cancelled_ops;
    t->ask.outbox = 0;
    t->ask.raised = 0;
    t->slice.refill -= t->pub.budget;   /* every tick comes to us */
    t->pub.budget = 0;
    t->slice.now = fair__now();         /* so long was its slice */
    SET(t->cancel.since_ns, t->slice.now);
    atomic_fetch_add(&fair__cancelled_now, 1);
}

void fair__cancel_over(struct fair__task *t)
{
    ADD(t->stat->cleanups, 1);
    RAISE_TO(t->stat->longest_cleanup_ns,
             fair__now() - GET(t->cancel.since_ns));
    SET(t->cancel.since_ns, 0);
    atomic_fetch_sub(&fair__cancelled_now, 1);
}

void fair__escape(struct fair__task *t)
{
    FAIR__LONGJMP(t->cancel.escape->out);
}
