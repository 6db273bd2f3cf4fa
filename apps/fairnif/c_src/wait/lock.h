/*
 * lock.h - locks that suspend tasks, not schedulers.
 */
#ifndef FAIR_LOCK_H
#define FAIR_LOCK_H

#include "wait/wake.h"

FAIR_HIDDEN int fair__lock(fair_task *pub, fair_mutex *m, int wait);
FAIR_HIDDEN int fair__unlock(fair_task *pub, fair_mutex *m);
FAIR_HIDDEN void fair__locks_release(struct fair__task *t);
FAIR_HIDDEN void fair__lock_begin(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
FAIR_HIDDEN void fair__lock_end(struct fair__task *t);    /* locked */

#endif
