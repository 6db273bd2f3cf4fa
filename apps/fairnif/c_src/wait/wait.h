/*
 * wait.h - fair_wait: for descriptors, and for time.
 */
#ifndef FAIR_WAIT_H
#define FAIR_WAIT_H

#include "wait/fd.h"

FAIR_HIDDEN int fair__wait(fair_task *pub, int fd, unsigned events,
                           int timeout_ms);
/* Whether the VM is to be asked, by fair__wait_select, when the lock is let
 * go. */
FAIR_HIDDEN bool fair__wait_begin(struct fair__task *t,
                                  struct fair__wake *w);      /* locked */
FAIR_HIDDEN void fair__wait_select(struct fair__task *t, ErlNifEnv *env,
                                   ERL_NIF_TERM ref);
FAIR_HIDDEN unsigned fair__wait_settle(struct fair__task *t, ErlNifEnv *env,
                                       bool received);
FAIR_HIDDEN void fair__wait_end(struct fair__task *t);

#endif
