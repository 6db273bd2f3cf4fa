/*
 * park.h - waiting without a scheduler: pending values.
 */
#ifndef FAIR_PARK_H
#define FAIR_PARK_H

#include "wait/wake.h"

extern FAIR_HIDDEN ErlNifResourceType *fair__pending_type;
FAIR_HIDDEN bool fair__await_open(ErlNifEnv *env);
FAIR_HIDDEN void fair__call(fair_task *pub, enum fair_mode where, size_t units,
                            void (*fn)(void *), void *arg);
FAIR_HIDDEN ERL_NIF_TERM fair__park(struct fair__task *t,
                                    struct fair__thread *th);
FAIR_HIDDEN void fair__begin_waiting(struct fair__task *t,
                                     struct fair__wake *w);   /* locked */
FAIR_HIDDEN void fair__stage_end(struct fair__task *t);       /* locked */
FAIR_HIDDEN const char *fair__stage_name(int stage);

#endif
