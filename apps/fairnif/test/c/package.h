/*
 * package.h - what the library of a package is put through on the stand-in: memory
 * that runs out anywhere, a caller that dies anywhere.
 */
#ifndef PACKAGE_H
#define PACKAGE_H

#include <string.h>

#include "check.h"

/* Each makes a process with a call scheduled that ends well. */
typedef vm_proc *(*package_call)(void);

/* Each allocation of those kinds fails in turn: the call says enomem, or did
 * without.  More than `least' are met. */
static inline void fail_each(package_call call, unsigned kinds, long least)
{
    bool failed = true;
    long n;

    for (n = 1; failed; n++) {
        vm_proc *p = call();
        const char *answer;

        vm_fail(kinds, n, false);
        vm_finish(p);
        failed = vm_failed();
        vm_fail(0, 0, false);
        answer = outcome(p);
        if (strncmp(answer, "error:", 6) == 0)
            check_that(failed && strcmp(answer, "error:enomem") == 0,
                       __FILE__, __LINE__, "%s", answer);
        vm_free(p);
    }
    CHECK_NUMBERS(n, >, least);
}

/* The caller dies after each slice in turn.  A body that unwinds is over a moment
 * later. */
static inline void kill_each(package_call call, bool unwinds)
{
    int steps = 0;

    node_set("pause_every_tick", 1);
    for (bool over = false; !over; steps++) {
        vm_proc *p = call();

        for (int n = 0; n < steps && !over; n++)
            over = vm_step(p) == VM_DONE;
        vm_kill(p);
        vm_free(p);
        if (unwinds)
            EVENTUALLY(node_stacks() == 0);
        else
            CHECK_NUMBERS(node_stacks(), ==, 0);
    }
    CHECK_NUMBERS(steps, >, modes[1].yields ? 3 : 0);
}

#endif
