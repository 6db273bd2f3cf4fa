/*
 * env.h - what the environment of a task's slice does not know.
 */
#ifndef FAIR_ENV_H
#define FAIR_ENV_H

#include "task/task.h"

/* Made once: to make an atom takes a lock of the VM's. */
extern FAIR_HIDDEN struct fair__atoms {
    ERL_NIF_TERM asks, ok, pending, sent, undefined;
} fair__atoms;
FAIR_HIDDEN void fair__atoms_make(ErlNifEnv *env);
/* A process wants its result. */
FAIR_HIDDEN bool fair__alive(const struct fair__task *t);
FAIR_HIDDEN fair_task *fair__current(void);
FAIR_HIDDEN void fair__caller(fair_task *pub, ErlNifPid *pid);
FAIR_HIDDEN void *fair__env_priv_data(ErlNifEnv *env);
FAIR_HIDDEN ErlNifPid *fair__env_self(ErlNifEnv *env, ErlNifPid *pid);
FAIR_HIDDEN int fair__env_is_alive(ErlNifEnv *env);
FAIR_HIDDEN void fair__env_note_time(void);
FAIR_HIDDEN ErlNifTime fair__env_monotonic_time(ErlNifTimeUnit unit);
FAIR_HIDDEN int fair__env_consume(ErlNifEnv *env, int percent);
FAIR_HIDDEN int fair__env_send(ErlNifEnv *env, const ErlNifPid *to,
                               ErlNifEnv *msg_env, ERL_NIF_TERM msg);
FAIR_HIDDEN ERL_NIF_TERM fair__error_term(const struct fair__task *t,
                                          ErlNifEnv *env);

#endif
