/*
 * wake.h - how a task begins to wait, and how it is made ready.
 *
 * What says "locked" is called with the waiting lock held.
 */
#ifndef FAIR_WAKE_H
#define FAIR_WAKE_H

#include "task/env.h"

/* A pending value's resource object, of a type of the runtime's.  One for each
 * wait, or for the requests of one slice: it owns the task until it is resumed,
 * or until a thread of the pool finds that it has gone.  All of it under the
 * waiting lock, but for that of a request. */
struct fair__pending {
    struct fair__task *task;    /* NULL once resumed, or ended */
    int arity;                  /* of the value that it is in, but for a
                                   request */
    unsigned answers;           /* how many requests were answered; of the
                                   owner's NIFs only */
    bool of_request;            /* its task waits for nothing but its owner's
                                   answer: then only the owner touches it, and
                                   who frees its terms, without the lock */
    int apart;                  /* of the tuple that is its last; 0: none is */
    ErlNifPid owner;
    /* fairnif:await/1 waits for a message with this reference; or NULL */
    ErlNifEnv *armed;
    ERL_NIF_TERM ref;
    /* FAIR_THREADED, ended: what await answers, in an environment of its own,
     * and the task's last hold on the author's library */
    ErlNifEnv *answer;
    ERL_NIF_TERM result;
    bool raises;
    bool weighs;                /* that environment may be large */
    struct fair__handle *handle;
};

/* What is sent once the lock is released. */
struct fair__wake {
    ErlNifEnv *env;             /* NULL: nothing */
    ERL_NIF_TERM ref;
    ErlNifPid to;
    bool kick;                  /* the pool has got work */
    bool settle;                /* say so, and not "go" */
};

FAIR_HIDDEN void fair__may_wait(struct fair__task *t);  /* or it fails */
/* `env` as for enif_send: NULL on threads that are not the VM's. */
FAIR_HIDDEN void fair__wake_send(ErlNifEnv *env, struct fair__wake *w);
/* Takes what await waits for. */
FAIR_HIDDEN void fair__disarm(struct fair__pending *p,
                              struct fair__wake *w);      /* locked */
/* The task may continue: where it runs, or in its caller's await. */
FAIR_HIDDEN void fair__make_ready(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
/* From the task's stack: continues when the wait is over. */
FAIR_HIDDEN void fair__wait_for(struct fair__task *t, enum fair__state state);

/* Whatever the bound of the queue.  The first kicks the pool. */
FAIR_HIDDEN void fair__put_job_back(struct fair__job *job);
/* An environment that is not known to be small. */
FAIR_HIDDEN void fair__free_env_elsewhere(ErlNifEnv *env);

/* The lists of waiting tasks. */
static inline void fair__list_append(struct fair__task *t,
                                     struct fair__task **first,
                                     struct fair__task **last)
{
    t->wait.next = NULL;
    t->wait.prev = *last;
    *(*last ? &(*last)->wait.next : first) = t;
    *last = t;
}

static inline void fair__list_take_off(struct fair__task *t,
                                       struct fair__task **first,
                                       struct fair__task **last)
{
    *(t->wait.prev ? &t->wait.prev->wait.next : first) = t->wait.next;
    *(t->wait.next ? &t->wait.next->wait.prev : last) = t->wait.prev;
}

/* A message ends the environment it is made in.  In the name of a process that
 * is dead, whose dirty NIF still runs, the VM sends nothing: a lock that it held
 * would be passed on, and no process notified. */
static inline void fair__send_and_free(ErlNifEnv *caller, ErlNifPid *to,
                                       ErlNifEnv *env, ERL_NIF_TERM message)
{
    if (!enif_send(caller, to, env, message) && caller)
        enif_send(NULL, to, env, message);
    enif_free_env(env);
}

#endif
