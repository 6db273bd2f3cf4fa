/*
 * threaded.h - FAIR_THREADED: bodies that run on threads of the pool.
 */
#ifndef FAIR_THREADED_H
#define FAIR_THREADED_H

#include "task/task.h"

/* Whether its arguments are too large to be copied on a normal scheduler. */
FAIR_HIDDEN bool fair__threaded_on_dirty(const struct fair__task *t);
FAIR_HIDDEN ERL_NIF_TERM fair__begin_threaded(struct fair__task *t,
                                              struct fair__thread *th);

#endif
