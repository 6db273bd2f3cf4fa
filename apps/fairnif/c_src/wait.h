/*
 * wait.h - what the files about waiting share: await.c, turn.c, lock.c,
 * threaded.c, wait.c.  "Locked" functions are called with the waiting lock
 * held.
 */
#ifndef FAIR_WAIT_H
#define FAIR_WAIT_H

#include "rt.h"

/* What is sent once the lock is let go. */
struct fair__wake {
    ErlNifEnv *env;             /* NULL: nothing */
    ERL_NIF_TERM ref;
    ErlNifPid to;
    bool kick;                  /* the pool has got work */
};

/* await.c */
FAIR_HIDDEN void fair__wake_send(struct fair__wake *w);
/* Takes what await waits for. */
FAIR_HIDDEN void fair__disarm(struct fair__pending *p,
                              struct fair__wake *w);      /* locked */
/* The task may go on: where it runs, or in its caller's await. */
FAIR_HIDDEN void fair__make_ready(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
FAIR_HIDDEN void fair__begin_waiting(struct fair__task *t,
                                     struct fair__wake *w);   /* locked */

/* turn.c, lock.c */
FAIR_HIDDEN void fair__turn_begin(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
FAIR_HIDDEN void fair__turn_end(struct fair__task *t);    /* locked */
FAIR_HIDDEN void fair__lock_begin(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
FAIR_HIDDEN void fair__lock_end(struct fair__task *t);    /* locked */

/* threaded.c */
FAIR_HIDDEN void fair__run_body(struct fair__job *job);
FAIR_HIDDEN ERL_NIF_TERM fair__take_answer(ErlNifEnv *env, ErlNifEnv *answer,
                                           ERL_NIF_TERM result, bool raises,
                                           ERL_NIF_TERM ref);

/* The lists of waiting tasks. */
static inline void fair__list_append(struct fair__task *t,
                                     struct fair__task **first,
                                     struct fair__task **last)
{
    t->wait_next = NULL;
    t->wait_prev = *last;
    *(*last ? &(*last)->wait_next : first) = t;
    *last = t;
}

static inline void fair__list_take_off(struct fair__task *t,
                                       struct fair__task **first,
                                       struct fair__task **last)
{
    *(t->wait_prev ? &t->wait_prev->wait_next : first) = t->wait_next;
    *(t->wait_next ? &t->wait_next->wait_prev : last) = t->wait_prev;
}

/* A message ends the environment it is made in. */
static inline void fair__send_and_free(ErlNifPid *to, ErlNifEnv *env,
                                       ERL_NIF_TERM message)
{
    enif_send(NULL, to, env, message);
    enif_free_env(env);
}

static inline struct fair__task *fair__task_of(struct fair__job *job)
{
    return (struct fair__task *)(void *)((char *)job
                                         - offsetof(struct fair__task, job));
}

#endif
