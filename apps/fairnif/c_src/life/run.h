/*
 * run.h - one slice of a task.
 */
#ifndef FAIR_RUN_H
#define FAIR_RUN_H

#include "task/task.h"

/* The state of one that is to go on there. */
FAIR_HIDDEN enum fair__state fair__queued_as(enum fair__where where);
FAIR_HIDDEN void fair__run_slice(struct fair__task *t,
                                 struct fair__thread *th, uint64_t since);
FAIR_HIDDEN void fair__run_body(struct fair__task *t);
FAIR_HIDDEN void fair__thread_slice(struct fair__task *t,
                                    struct fair__thread *th);

#endif
