/*
 * turn.h - the limit on how many calls are under way at once.
 */
#ifndef FAIR_TURN_H
#define FAIR_TURN_H

#include "wait/wake.h"

FAIR_HIDDEN bool fair__admit(const struct fair__nif *nif, ErlNifEnv *env,
                             bool *counted);
FAIR_HIDDEN void fair__dismiss(struct fair__func *f, ErlNifEnv *env);
FAIR_HIDDEN void fair__turn_begin(struct fair__task *t,
                                  struct fair__wake *w);  /* locked */
FAIR_HIDDEN void fair__turn_end(struct fair__task *t);    /* locked */

#endif
