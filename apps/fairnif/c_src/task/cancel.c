/*
 * cancel.c - a body that has to clean up: see life/unwind.c.
 */
#include "task/cancel.h"

#include "base/os.h"

struct fair__ops fair__unwinding_ops, fair__cancelled_ops;
fair__u64 fair__cancelled_now;

void fair__cancel(struct fair__task *t)
{
    if (t->pub.cancelled)
        return;
    t->pub.cancelled = 1;
    t->pub.ops = &fair__cancelled_ops;
    t->outbox = 0;
    t->refill -= t->pub.budget;     /* every tick comes to us */
    t->pub.budget = 0;
    t->now = fair__now();           /* so long was its slice */
    SET(t->cancelled_ns, t->now);
    atomic_fetch_add(&fair__cancelled_now, 1);
}

void fair__cancel_over(struct fair__task *t)
{
    ADD(t->stat->unwinds, 1);
    RAISE_TO(t->stat->longest_unwind_ns, fair__now() - GET(t->cancelled_ns));
    SET(t->cancelled_ns, 0);
    atomic_fetch_sub(&fair__cancelled_now, 1);
}

void fair__escape(struct fair__task *t)
{
    FAIR__LONGJMP(t->escape->out);
}
