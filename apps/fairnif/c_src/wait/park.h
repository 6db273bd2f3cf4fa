/*
 * park.h - waiting without a scheduler: pending values.
 */
#ifndef FAIR_PARK_H
#define FAIR_PARK_H

#include "wait/wake.h"

extern FAIR_HIDDEN ErlNifResourceType *fair__pending_type;
FAIR_HIDDEN bool fair__await_open(ErlNifEnv *env);
/* A value marked fairnif_asks has this many elements more. */
enum { FAIR__REQUEST = 2 };
FAIR_HIDDEN int fair__offload(fair_task *pub, enum fair_mode where,
                              size_t units, void (*fn)(void *), void *arg);
/* On a scheduler: what the caller gets; 0: memory is out. */
FAIR_HIDDEN ERL_NIF_TERM fair__park(struct fair__task *t);
FAIR_HIDDEN void fair__begin_waiting(struct fair__task *t,
                                     struct fair__wake *w);   /* locked */
/* Is no thread at it?  Then it is on a list, or waits for its time. */
FAIR_HIDDEN bool fair__is_at_rest(const struct fair__task *t); /* locked */
/* It stops waiting, and is ready. */
FAIR_HIDDEN void fair__stop_waiting(struct fair__task *t);    /* locked */
/* What fairnif:tasks/0 says one in that state waits for, or NULL. */
FAIR_HIDDEN const char *fair__waits_name(int state);

#endif
