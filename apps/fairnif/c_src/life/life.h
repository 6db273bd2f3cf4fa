/*
 * life.h - the life of a task: called, gone on with.
 */
#ifndef FAIR_LIFE_H
#define FAIR_LIFE_H

#include "task/task.h"

FAIR_HIDDEN ERL_NIF_TERM fair__enter(struct fair__nif *nif, ErlNifEnv *env,
                                     int argc, const ERL_NIF_TERM argv[]);
/* A record that was taken is a call's: all but `counted` and `owner`. */
FAIR_HIDDEN void fair__task_init(struct fair__task *t, struct fair__nif *nif,
                                 struct fair__thread *th,
                                 struct fair__fstat *st, ErlNifEnv *env,
                                 int argc, const ERL_NIF_TERM argv[]);

#endif
