/*
 * lock.h - locks that suspend tasks, not schedulers.
 */
#ifndef FAIR_LOCK_H
#define FAIR_LOCK_H

#include "wait/wake.h"

FAIR_HIDDEN int fair__lock(fair_task *pub, fair_mutex *m, int wait);
FAIR_HIDDEN int fair__unlock(fair_task *pub, fair_mutex *m);
FAIR_HIDDEN bool fair__lock_is_own(struct fair__task *t, fair_mutex *m);
/* As fair__hold_release. */
FAIR_HIDDEN unsigned fair__locks_release(struct fair__task *t,
                                         unsigned most);
FAIR_HIDDEN void fair__lock_begin(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
FAIR_HIDDEN void fair__lock_end(struct fair__task *t);    /* locked */
/* Its caller waits for it, and for no other call: refuses it the lock that it
 * would never get.  Locked. */
FAIR_HIDDEN void fair__lock_awaited(struct fair__task *t,
                                    struct fair__wake *w);

#endif
