/*
 * dead.h - a node that has died, from its core.
 */
#ifndef WATCH_DEAD_H
#define WATCH_DEAD_H

#include "outside/dump.h"
#include "outside/target.h"

WATCH_HIDDEN bool watch__dump_core(const char *path, struct watch__dump *d,
                                   char why[WATCH__WHY]);

#endif
