/*
 * charge.h - what a caller is charged: reductions, for time.
 */
#ifndef FAIR_CHARGE_H
#define FAIR_CHARGE_H

#include "task/task.h"

FAIR_HIDDEN void fair__charge(ErlNifEnv *env, double *debt_ns,
                              bool whole_turn);
FAIR_HIDDEN int fair__price(uint64_t ns);
/* A call is over, and its record: answers its result, or what pays for it. */
FAIR_HIDDEN ERL_NIF_TERM fair__pay(struct fair__thread *th, ErlNifEnv *env,
                                   const struct fair__nif *nif,
                                   ERL_NIF_TERM pid, bool normal, double ns,
                                   ERL_NIF_TERM result);

#endif
