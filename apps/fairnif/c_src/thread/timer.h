/*
 * timer.h - a signal to a thread from a timer of its own.
 */
#ifndef FAIR_TIMER_H
#define FAIR_TIMER_H

#include "thread/thread.h"

/* All by the thread itself, whose record may be lacking. */

/* Whether it has one, or can get one. */
FAIR_HIDDEN bool fair__timer_get(struct fair__thread *th);
/* ring(arg) in a signal handler of this thread's: in `ns`, which is not 0, and
 * from then on every 10 ms.  Where it can get no timer: once, at once. */
FAIR_HIDDEN void fair__timer_set(struct fair__thread *th, uint64_t ns,
                                 void (*ring)(void *), void *arg);
/* It does not ring any more when this returns. */
FAIR_HIDDEN void fair__timer_stop(struct fair__thread *th);
/* Which signal it is was looked for; to do so takes a lock. */
FAIR_HIDDEN bool fair__timer_has_signal(void);
FAIR_HIDDEN void fair__timer_take_signal(void *unused);
/* The thread ends. */
FAIR_HIDDEN void fair__timer_forget(struct fair__thread *th);

#endif
