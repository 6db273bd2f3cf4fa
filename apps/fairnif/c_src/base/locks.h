/*
 * locks.h - the runtime's locks, and in which order a thread takes them.
 *
 * A thread that holds one may take those that stand after it here, and no
 * other: with FAIRNIF_ASSERT another order ends the VM.  No code of an author's
 * is called with one held, nor a function of the VM's that may free a resource
 * object, whose destructor may take one, or wait. fair__os_say (os.c) has one
 * that is tried only, in any order.
 */
#ifndef FAIR_LOCKS_H
#define FAIR_LOCKS_H

#include <pthread.h>

#include "base/base.h"

enum fair__rank {
    RANK_TYPES,                 /* of fair resources, by loads: type.c */
    RANK_FUNCS,                 /* the registry of functions: func.c */
    RANK_KEPT,                  /* what keeps the runtime's own types: type.c */
    RANK_FIRST,                 /* the pool's first thread is started: pool.c */
    RANK_FDS,                   /* descriptors by number: waiters.c */
    RANK_WAITING,               /* all that waits, and the pool */
    RANK_SHARD,                 /* one of 16, of suspended tasks: listed.c */
    RANK_STACKS,                /* that are idle: stack.c */
    RANK_SIGNAL                 /* which one alarms use: timer.c */
};

struct fair__mutex {
    pthread_mutex_t mutex;
    enum fair__rank rank;
};
#define FAIR__MUTEX(RANK) {PTHREAD_MUTEX_INITIALIZER, RANK}

#ifdef FAIRNIF_ASSERT
FAIR_HIDDEN void fair__assert_rank(enum fair__rank rank, bool taken);
FAIR_HIDDEN void fair__assert_no_locks(void);
#else
#  define fair__assert_no_locks() ((void)0)
#  define fair__assert_rank(RANK, TAKEN) ((void)0)
#endif

static inline void fair__mutex_lock(struct fair__mutex *m)
{
    fair__assert_rank(m->rank, true);
    pthread_mutex_lock(&m->mutex);
}

static inline void fair__mutex_unlock(struct fair__mutex *m)
{
    pthread_mutex_unlock(&m->mutex);
    fair__assert_rank(m->rank, false);
}

/* The waiting lock: held for some tens of nanoseconds. */
extern FAIR_HIDDEN struct fair__mutex fair__waiting;
static inline void fair__wait_lock(void) { fair__mutex_lock(&fair__waiting); }
static inline void fair__wait_unlock(void)
{
    fair__mutex_unlock(&fair__waiting);
}

#endif
