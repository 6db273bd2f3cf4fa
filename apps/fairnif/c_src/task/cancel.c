/*
 * cancel.c - a body that has to clean up: see life/unwind.c.
 */
#include "task/cancel.h"

#include "base/os.h"

struct fair__ops fair__unwinding_ops, fair__cancelled_ops;

void fair__cancel(struct fair__task *t)
{
    if (t->pub.cancelled)
        return;
    t->pub.cancelled = 1;
    t->pub.ops = &fair__cancelled_ops;
    t->refill -= t->pub.budget;     /* every tick comes to us */
    t->pub.budget = 0;
    SET(t->cancelled_ns, fair__now());
}

void fair__escape(struct fair__task *t)
{
    FAIR__LONGJMP(t->escape->out);
}
