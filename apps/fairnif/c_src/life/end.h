/*
 * end.h - the end of a task: what it holds is released.
 */
#ifndef FAIR_END_H
#define FAIR_END_H

#include "task/task.h"

FAIR_HIDDEN void fair__handle_dtor(ErlNifEnv *env, void *obj);
FAIR_HIDDEN bool fair__handle_new(struct fair__task *t);
/* On a scheduler: the caller gets a pending value, or an exception where memory
 * is out. */
FAIR_HIDDEN ERL_NIF_TERM fair__wait_or_end(struct fair__task *t,
                                           struct fair__thread *th,
                                           enum fair__state state);
/* In its caller's await: it waited in vain. */
FAIR_HIDDEN ERL_NIF_TERM fair__end_in_error(struct fair__task *t,
                                            ErlNifEnv *env, int argc,
                                            const ERL_NIF_TERM argv[]);
/* On a thread of the pool, before anything is released of a task that cannot
 * continue: its body cleans up, if it has to. */
FAIR_HIDDEN void fair__clean_up(struct fair__task *t,
                                struct fair__thread *th);
/* A body that was cancelled has returned: why its task ends. */
FAIR_HIDDEN void fair__cleaned_up(struct fair__task *t);
FAIR_HIDDEN void fair__release_all(struct fair__task *t);
FAIR_HIDDEN bool fair__release_some(struct fair__task *t, uint64_t since);
FAIR_HIDDEN void fair__task_end(struct fair__task *t,
                                struct fair__thread *th);
FAIR_HIDDEN void fair__drop_elsewhere(struct fair__task *t, ErlNifEnv *env);

#endif
