/*
 * ports.h - the programs that this one started.
 */
#ifndef WATCH_PORTS_H
#define WATCH_PORTS_H

#include "read/common.h"

/* Ticks of the programs that this one started; false: not all were seen. */
WATCH_HIDDEN bool watch__ports(uint64_t *ticks);

#endif
