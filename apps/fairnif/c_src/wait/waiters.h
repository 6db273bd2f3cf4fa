/*
 * waiters.h - descriptors, and which tasks wait for which.
 *
 * A `fair__fd` is a resource object: its term, the tasks that got it and the
 * VM, while it knows the descriptor, hold it.
 */
#ifndef FAIR_WAITERS_H
#define FAIR_WAITERS_H

#include "wait/wake.h"

/* A descriptor as the VM knows it: a resource object of the runtime's (fd.c).
 * It is closed in the type's stop callback, or at once where the VM was never
 * told of it. */
struct fair__fd {
    int fd;
    bool duplicate;             /* made for one wait; the rest is for others */
    bool selected;              /* the VM knows it: it has to be stopped */
    _Atomic bool closing;       /* nobody gets it any more; set locked */
    unsigned users;             /* tasks that got it; locked */
    ErlNifPid owner;
    uint64_t dev, ino;          /* which file it is */
    struct fair__fd *next;      /* among those with terms; locked */
};

/* 0, and the task is the one that waits for this; or -errno. */
FAIR_HIDDEN int fair__waiters_enter(struct fair__task *t, struct fair__fd *f,
                                    int number, unsigned events);
FAIR_HIDDEN void fair__waiters_leave(struct fair__task *t);
/* Those that wait for it are to see that it is closed: two at most. */
FAIR_HIDDEN void fair__waiters_tell(struct fair__fd *f,
                                    struct fair__wake w[2]);     /* locked */
FAIR_HIDDEN void fair__waiter_tell(struct fair__task *t,
                                   struct fair__wake *w);        /* locked */
FAIR_HIDDEN bool fair__wait_waits(const struct fair__task *t);  /* locked */

#endif
