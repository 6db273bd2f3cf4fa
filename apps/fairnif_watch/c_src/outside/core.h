/*
 * core.h - a node that has died.
 */
#ifndef WATCH_CORE_H
#define WATCH_CORE_H

#include "outside/dump.h"
#include "outside/target.h"

/* Makes the file what watch__read reads, and fills the dump; false: why not. */
WATCH_HIDDEN bool watch__core_dump(const char *path, struct watch__dump *d,
                                   char why[WATCH__WHY]);

#endif
