/*
 * run.h - one slice of a task.
 */
#ifndef FAIR_RUN_H
#define FAIR_RUN_H

#include "task/task.h"

/* The state of one that continues there. */
FAIR_HIDDEN enum fair__state fair__queued_as(enum fair__where where);
FAIR_HIDDEN void fair__run_body(struct fair__task *t);
/* One slice, and what follows from it. */
FAIR_HIDDEN ERL_NIF_TERM fair__run(struct fair__task *t,
                                   struct fair__thread *th);
/* Of a task that is apart: the same, by which the pool continues it, and what
 * follows where it has left its stack to come back. */
FAIR_HIDDEN void fair__run_apart(struct fair__task *t,
                                 struct fair__thread *th);
FAIR_HIDDEN void fair__run_job(struct fair__job *job);
FAIR_HIDDEN ERL_NIF_TERM fair__put_by(struct fair__task *t,
                                      struct fair__thread *th);
/* How long its slice took. */
static inline uint64_t fair__slice_took(const struct fair__task *t)
{
    return t->slice.before + t->slice.now - t->slice.start;
}

#endif
