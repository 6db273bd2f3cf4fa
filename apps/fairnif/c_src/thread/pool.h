/*
 * pool.h - the pool of threads, and the waiting lock, which is over all that
 * waits; but which descriptor a task waits for is under the descriptors' lock
 * (wait/waiters.h).
 *
 * What says "locked" is called with that lock held.
 */
#ifndef FAIR_POOL_H
#define FAIR_POOL_H

#include "thread/thread.h"

enum fair__job_state { J_IDLE, J_QUEUED, J_OVERFLOW };

/* Belongs to who put it, who may free it when it was withdrawn or when `run`
 * was called. */
struct fair__job {
    void (*run)(struct fair__job *job);
    enum fair__job_state state;     /* under the waiting lock, as all of it */
    struct fair__func *func;        /* whose it is, or NULL */
    bool waits;                     /* whoever put it says so */
    uint64_t since_ns;
    struct fair__job *prev, *next;
};

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
FAIR_HIDDEN bool fair__pool_kick(void);
FAIR_HIDDEN bool fair__pool_presses(void);
FAIR_HIDDEN struct fair__pool_counts fair__pool_counts(void);

#endif
