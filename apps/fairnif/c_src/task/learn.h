/*
 * learn.h - what the windows of window.c teach of a function.
 */
#ifndef FAIR_LEARN_H
#define FAIR_LEARN_H

#include "task/task.h"

/* Part of a slice after which the clock is read first. */
static const double fair__first_look = 0.125;

static inline double fair__min(double a, double b) { return a < b ? a : b; }
static inline double fair__max(double a, double b) { return a > b ? a : b; }

FAIR_HIDDEN uint64_t fair__units_for(double ns, double unit_ns);
FAIR_HIDDEN bool fair__always_timed(const struct fair__func *f);
FAIR_HIDDEN void fair__learn_unit(struct fair__task *t, double elapsed,
                                  double units);
/* The first window of a call that is timed from its begin. */
FAIR_HIDDEN void fair__learn_call(struct fair__task *t, double elapsed,
                                  double units);
/* Before the last window of a timed call is closed. */
FAIR_HIDDEN void fair__learn_mean(struct fair__task *t, double elapsed);
/* `ns` without a tick.  On the thread that ran them. */
FAIR_HIDDEN void fair__note_gap(struct fair__task *t, uint64_t ns);
/* A timed call has come to its end. */
FAIR_HIDDEN void fair__judge_call(struct fair__task *t);

#endif
