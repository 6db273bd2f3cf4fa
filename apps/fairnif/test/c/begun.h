/*
 * begun.h - calls name(N) that have begun, by N: what test_lock.c and test_pool.c
 * share.
 */
#ifndef FAIR_TEST_BEGUN_H
#define FAIR_TEST_BEGUN_H

#include <stdio.h>

#include "check.h"

static vm_proc *procs[128];

/* Up to where it waits. */
static inline void begin(int n, const char *name)
{
    char arg[16];

    snprintf(arg, sizeof arg, "%d", n);
    procs[n] = spawn_await(name, arg);
    until_waiting(procs[n]);
}

/* With its N. */
static inline void ends_well(int n)
{
    char arg[16];

    snprintf(arg, sizeof arg, "%d", n);
    CHECK_TEXT(finished(procs[n]), arg);
}

#endif
