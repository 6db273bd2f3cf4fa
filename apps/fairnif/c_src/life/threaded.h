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
/* The same of what it asks for, and of what its caller answers. */
FAIR_HIDDEN bool fair__copy_on_dirty(ErlNifEnv *env, ERL_NIF_TERM term);
FAIR_HIDDEN void fair__threaded_answer(struct fair__task *t,
                                       ERL_NIF_TERM answer);
FAIR_HIDDEN ERL_NIF_TERM fair__take_answer(ErlNifEnv *env, ErlNifEnv *answer,
                                           ERL_NIF_TERM result, bool raises,
                                           ERL_NIF_TERM ref);

#endif
