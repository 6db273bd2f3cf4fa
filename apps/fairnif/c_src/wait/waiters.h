/*
 * waiters.h - descriptors by number, and which tasks wait for which.
 *
 * A `fair__fd` is a resource object: its term, the tasks that got it and the
 * VM, while it knows the descriptor, hold it.
 *
 * The descriptors' lock is over what is known of numbers.  The waiting lock may
 * be taken with it held, and not the other way round.
 */
#ifndef FAIR_WAITERS_H
#define FAIR_WAITERS_H

#include "wait/wake.h"

/* A descriptor as the VM knows it: a resource object of the runtime's (fd.c).
 * It is closed in the type's stop callback, or at once where the VM was never
 * given it. */
struct fair__fd {
    int fd;
    bool duplicate;             /* made for one wait; the rest is for others */
    bool selected;              /* the VM knows it: it has to be stopped */
    ErlNifPid owner;
    uint64_t dev, ino;          /* which file it is */
    /* under the descriptors' lock */
    _Atomic bool closing;       /* no task gets it; read unlocked */
    unsigned users;             /* tasks that got it */
    struct fair__fd *next;      /* in its place */
};

/* What is known of a number: the descriptor with a term, and those that wait.
 * Numbers that are a million apart share one. */
struct fair__place {
    struct fair__fd *known;
    struct fair__task *first, *last;
};

FAIR_HIDDEN void fair__fds_lock(void);
FAIR_HIDDEN void fair__fds_unlock(void);
/* NULL: no memory, and nothing is known of it.  Descriptors' lock. */
FAIR_HIDDEN struct fair__place *fair__place(int number);

/* 0, and the task is the one that waits for this; or -errno. */
FAIR_HIDDEN int fair__waiters_enter(struct fair__task *t, struct fair__fd *f,
                                    int number, unsigned events);
FAIR_HIDDEN void fair__waiters_leave(struct fair__task *t);
/* Those that wait for it are to see that it is closed: two at most.
 * Descriptors' lock. */
FAIR_HIDDEN void fair__waiters_tell(struct fair__fd *f,
                                    struct fair__wake w[2]);
/* Under the waiting lock: */
FAIR_HIDDEN void fair__waiter_tell(struct fair__task *t,
                                   struct fair__wake *w);
FAIR_HIDDEN bool fair__wait_waits(const struct fair__task *t);

#endif
