/*
 * low.h - authors' code at a lower priority than the schedulers'.
 *
 * A process without privileges can lower a thread's priority and not raise it
 * again.  So a thread of the pool has a second one, its low thread, which runs
 * nothing but what authors wrote, while the first waits for it.  What must not
 * wait behind others meanwhile, our locks above all, the low thread passes
 * back: fair__at_par.
 */
#ifndef FAIR_LOW_H
#define FAIR_LOW_H

#include "base/os.h"
#include "thread/thread.h"

/* On a thread of the pool: its low thread, idle now, or NULL: there is none, for
 * want of memory, of a system that has priorities by thread, or by `pool_nice`. */
FAIR_HIDDEN struct fair__low *fair__low_get(struct fair__thread *th);
FAIR_HIDDEN void fair__low_leave(const struct fair__thread *th);
FAIR_HIDDEN struct fair__thread *fair__low_record(struct fair__low *low);
/* fn(arg) on the one that was got, which is free again then. */
FAIR_HIDDEN void fair__low_run(struct fair__low *low, void (*fn)(void *),
                               void *arg);
/* What that took, once it has returned. */
FAIR_HIDDEN struct fair__used fair__low_used(const struct fair__low *low);
/* The kernel's id of the thread that is at work for this one of the pool; -1:
 * one that is about to start. */
FAIR_HIDDEN int fair__low_id(const struct fair__thread *th, int os_id);

/* Is this thread one? */
FAIR_HIDDEN bool fair__at_low(void);
/* On any thread: fn(arg), at the priority of a scheduler.  For all that takes a
 * lock which a scheduler may wait for. */
FAIR_HIDDEN void fair__at_par(void (*fn)(void *), void *arg);
/* A destructor, at that priority. */
FAIR_HIDDEN void fair__dtor_at_par(void (*dtor)(ErlNifEnv *env, void *obj),
                                   ErlNifEnv *env, void *obj);

#endif
