/*
 * wait.h - what the files about waiting share: await.c, turn.c, lock.c,
 * threaded.c, wait.c, fd.c.  "Locked" functions are called with the waiting lock
 * held.
 */
#ifndef FAIR_WAIT_H
#define FAIR_WAIT_H

#include "base/rt.h"

/* What is sent once the lock is let go. */
struct fair__wake {
    ErlNifEnv *env;             /* NULL: nothing */
    ERL_NIF_TERM ref;
    ErlNifPid to;
    bool kick;                  /* the pool has got work */
    bool settle;                /* say so, and not "go" */
};

/* await.c */
FAIR_HIDDEN void fair__may_wait(struct fair__task *t);  /* or it fails */
/* `env` as for enif_send: NULL on threads that are not the VM's. */
FAIR_HIDDEN void fair__wake_send(ErlNifEnv *env, struct fair__wake *w);
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

/* wait.c */
FAIR_HIDDEN bool fair__wait_waits(const struct fair__task *t);  /* locked */
/* Whether the VM is to be asked, by fair__wait_select, when the lock is let
 * go. */
FAIR_HIDDEN bool fair__wait_begin(struct fair__task *t,
                                  struct fair__wake *w);      /* locked */
FAIR_HIDDEN void fair__wait_select(struct fair__task *t, ErlNifEnv *env,
                                   ERL_NIF_TERM ref);
FAIR_HIDDEN unsigned fair__wait_settle(struct fair__task *t, ErlNifEnv *env,
                                       bool received);
FAIR_HIDDEN void fair__wait_end(struct fair__task *t);
/* Those that wait for it are to see that it is closed: two at most. */
FAIR_HIDDEN void fair__wait_tell(struct fair__fd *f,
                                 struct fair__wake w[2]);     /* locked */

/* fd.c */
FAIR_HIDDEN bool fair__fd_open_types(ErlNifEnv *env);
FAIR_HIDDEN struct fair__fd *fair__fd_new(const struct fair__task *t, int fd,
                                          int *error);
FAIR_HIDDEN struct fair__fd *fair__fd_used(const struct fair__task *t,
                                           int fd);
FAIR_HIDDEN void fair__fd_shut(struct fair__fd *f, ErlNifEnv *env);
FAIR_HIDDEN int fair__fd_select(struct fair__fd *f, ErlNifEnv *env,
                                enum ErlNifSelectFlags what,
                                const ErlNifPid *to, ERL_NIF_TERM message);
FAIR_HIDDEN int fair__fd_unselect(struct fair__fd *f, ErlNifEnv *env,
                                  enum ErlNifSelectFlags what);

/* threaded.c */
FAIR_HIDDEN void fair__run_body(struct fair__job *job);
FAIR_HIDDEN ERL_NIF_TERM fair__take_answer(ErlNifEnv *env, ErlNifEnv *answer,
                                           ERL_NIF_TERM result, bool raises,
                                           ERL_NIF_TERM ref);

/* The environment of the NIF or callback in which whoever has the task now may
 * send and select; NULL on a thread of the pool. */
static inline ErlNifEnv *fair__vm_env(const struct fair__task *t)
{
    return t->pub.env == t->own_env ? NULL : t->pub.env;
}

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

/* A message ends the environment it is made in.  In the name of a process that
 * is dead, whose dirty NIF still runs, the VM sends nothing: a lock that it held
 * would be passed on, and nobody told. */
static inline void fair__send_and_free(ErlNifEnv *caller, ErlNifPid *to,
                                       ErlNifEnv *env, ERL_NIF_TERM message)
{
    if (!enif_send(caller, to, env, message) && caller)
        enif_send(NULL, to, env, message);
    enif_free_env(env);
}

static inline struct fair__task *fair__task_of(struct fair__job *job)
{
    return (struct fair__task *)(void *)((char *)job
                                         - offsetof(struct fair__task, job));
}

#endif
