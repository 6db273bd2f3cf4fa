/*
 * pool.h - the pool of threads.
 *
 * What says "locked" is called with the waiting lock held.  struct fair__job is
 * fairnif_private.h's; all of it is under that lock.
 */
#ifndef FAIR_POOL_H
#define FAIR_POOL_H

#include "base/locks.h"
#include "fairnif_private.h"
#include "thread/thread.h"

struct fair__pool_counts {
    uint64_t threads, idle, busy, queued, overflowing;  /* now; idle: asleep */
    uint64_t done, overflows, failed_starts;        /* so far */
    uint64_t wait_ns, longest_wait_ns;              /* for a thread, by the
                                                       coarse clock */
};

FAIR_HIDDEN void fair__pool_put(struct fair__job *job);         /* locked */
FAIR_HIDDEN void fair__pool_put_back(struct fair__job *job);    /* locked */
FAIR_HIDDEN void fair__pool_put_first(struct fair__job *job);   /* locked */
FAIR_HIDDEN void fair__pool_ending(struct fair__thread *th);    /* locked */
FAIR_HIDDEN bool fair__pool_withdraw(struct fair__job *job);    /* locked */
FAIR_HIDDEN bool fair__pool_start(void);
FAIR_HIDDEN bool fair__pool_kick(void);
/* Puts it, and kicks. */
FAIR_HIDDEN bool fair__pool_give(struct fair__job *job);
FAIR_HIDDEN void fair__pool_give_first(struct fair__job *job);
FAIR_HIDDEN bool fair__pool_presses(void);
FAIR_HIDDEN struct fair__pool_counts fair__pool_counts(void);

/* A normal scheduler, which others wait for while this thread works. */
static inline bool fair__blocks_others(void)
{
    return enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER;
}

#endif
