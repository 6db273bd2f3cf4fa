/*
 * overflow.h - says whose C stack was too small.
 */
#ifndef FAIR_OVERFLOW_H
#define FAIR_OVERFLOW_H

#include "task/task.h"

FAIR_HIDDEN int fair__overflow_init(void);      /* 0, or an errno */
/* Whether the handler is ours still: "installed" or "replaced". */
FAIR_HIDDEN const char *fair__overflow_handler(void);

#endif
