/*
 * pool.h - the pool of threads, and the waiting lock, which is over all that
 * waits; but which descriptor a task waits for is under the descriptors' lock
 * (wait/waiters.h).
 *
 * What says "locked" is called with that lock held.  struct fair__job is
 * fairnif_private.h's; all of it is under that lock.
 */
#ifndef FAIR_POOL_H
#define FAIR_POOL_H

#include "fairnif_private.h"
#include "thread/thread.h"

struct fair__pool_counts {
    uint64_t threads, busy, queued, overflowing;    /* now */
    uint64_t done, overflows, failed_starts;        /* so far */
    uint64_t wait_ns, longest_wait_ns;              /* for a thread, by the
                                                       coarse clock */
};

FAIR_HIDDEN void fair__wait_lock(void);
FAIR_HIDDEN void fair__wait_unlock(void);
FAIR_HIDDEN void fair__pool_put(struct fair__job *job);         /* locked */
FAIR_HIDDEN void fair__pool_put_back(struct fair__job *job);    /* locked */
FAIR_HIDDEN void fair__pool_ending(struct fair__thread *th);    /* locked */
FAIR_HIDDEN bool fair__pool_withdraw(struct fair__job *job);    /* locked */
FAIR_HIDDEN bool fair__pool_start(void);
FAIR_HIDDEN bool fair__pool_kick(void);
FAIR_HIDDEN bool fair__pool_presses(void);
FAIR_HIDDEN struct fair__pool_counts fair__pool_counts(void);

#endif
