/*
 * unwind.h - bodies that clean up themselves: FAIR_UNWINDS.
 */
#ifndef FAIR_UNWIND_H
#define FAIR_UNWIND_H

#include "base/base.h"

/* Makes their tables from that of all others; as the runtime is loaded. */
FAIR_HIDDEN void fair__unwind_init(const struct fair__ops *plain);

#endif
