/*
 * strand.h - work in slices on a stack of its own that is no call of a NIF.
 */
#ifndef FAIR_STRAND_H
#define FAIR_STRAND_H

#include "task/task.h"

/* What fairnif_private.h says of the functions of these names. */
FAIR_HIDDEN fair_task *fair__strand_new(void (*work)(void *), void *arg);
FAIR_HIDDEN void fair__strand_name(fair_task *pub, const char *name);
FAIR_HIDDEN bool fair__strand_run(fair_task *strand);

#endif
