/*
 * arch.h - the switch between a scheduler's stack and a task's; one file here has it.
 */
#ifndef FAIR_ARCH_H
#define FAIR_ARCH_H

#include "base/base.h"

/* The files here know this layout, and agree about what it is for:
 * `sp` leads to where the task paused, `sched_sp` to the scheduler while the
 * task runs.  Floating-point control is the processor's own word for it. */
struct fair__ctx {
    void *sp;
    void *sched_sp;
    void *top;                  /* where the task's stack begins, 64-aligned */
    uint64_t fp_control, sched_fp_control;
    void *call;                 /* ucontext only */
};

FAIR_HIDDEN void fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *),
                                  void *arg);
FAIR_HIDDEN void fair__arch_resume(struct fair__ctx *ctx);
FAIR_HIDDEN void fair__arch_pause(struct fair__ctx *ctx);
FAIR_HIDDEN void fair__arch_call(struct fair__ctx *ctx, void (*fn)(void *),
                                 void *arg);

#endif
