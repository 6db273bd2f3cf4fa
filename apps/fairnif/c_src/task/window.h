/*
 * window.h - when the clock is read, and what is seen then.
 */
#ifndef FAIR_WINDOW_H
#define FAIR_WINDOW_H

#include "task/task.h"

FAIR_HIDDEN void fair__window_open(struct fair__task *t, uint64_t now,
                                   uint64_t units);
/* The units of the window, of which `last` belong to the tick that ends it. */
FAIR_HIDDEN void fair__window_close(struct fair__task *t, uint64_t now,
                                    uint64_t last);
/* Continues with what is left of the slice: all of it when the last window was
 * no slower than expected, else with a little more than that one had. */
FAIR_HIDDEN void fair__window_reopen(struct fair__task *t, uint64_t now);

#endif
