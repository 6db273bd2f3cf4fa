/*
 * call.h - functions that cannot tick.
 */
#ifndef FAIR_CALL_H
#define FAIR_CALL_H

#include "task/task.h"

FAIR_HIDDEN int fair__move(fair_task *pub, enum fair_mode where);
FAIR_HIDDEN enum fair_mode fair__where(const fair_task *pub);
FAIR_HIDDEN void fair__call_on(struct fair__task *t, enum fair_mode where,
                               size_t units, void (*fn)(void *), void *arg);
FAIR_HIDDEN uint64_t fair__alarm(fair_task *pub, void (*ring)(void *),
                                 void *arg);
/* The fewest units with which a fair_offload would go to a dirty scheduler now.
 * */
FAIR_HIDDEN double fair__call_cutoff(const struct fair__func *f);

#endif
