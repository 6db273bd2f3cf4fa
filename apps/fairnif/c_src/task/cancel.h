/*
 * cancel.h - a body that has to clean up (FAIR_CLEANUP): it is notified by its
 * next return from a function of the runtime.
 */
#ifndef FAIR_CANCEL_H
#define FAIR_CANCEL_H

#include <setjmp.h>

#include "task/task.h"

/* Where one of the runtime's functions began that may not return.  What lies
 * between there and here are frames of the runtime's own, which own nothing. */
struct fair__escape {
    jmp_buf out;
    struct fair__escape *outer;
};

/* Without the signal mask, which some systems would save at each call. */
#ifdef _WIN32
#  define FAIR__SETJMP(BUF) setjmp(BUF)
#  define FAIR__LONGJMP(BUF) longjmp(BUF, 1)
#else
#  define FAIR__SETJMP(BUF) _setjmp(BUF)
#  define FAIR__LONGJMP(BUF) _longjmp(BUF, 1)
#endif

/* What a body may call, one that cleans up, a cancelled one: nif/ops.def. */
extern FAIR_HIDDEN const struct fair__ops fair__plain_ops, fair__cleanup_ops,
    fair__cancelled_ops;

/* How many bodies clean up now. */
extern FAIR_HIDDEN fair__u64 fair__cancelled_now;

/* By who is at the task; it is over when the body has returned. */
FAIR_HIDDEN void fair__cancel(struct fair__task *t);
FAIR_HIDDEN void fair__cancel_over(struct fair__task *t);
/* From the task's stack: the function that the body called returns. */
FAIR_HIDDEN __attribute__((noreturn)) void fair__escape(struct fair__task *t);

#endif
