/*
 * target.h - which process is looked at, and why it can't be.
 */
#ifndef WATCH_TARGET_H
#define WATCH_TARGET_H

#include "read/common.h"

enum { WATCH__WHY = 512 };      /* bytes of a refusal: a sentence */

/* Makes the process what watch__read and all else read; false: why not. */
WATCH_HIDDEN bool watch__target_set(int pid, char why[WATCH__WHY]);
/* The pid of the node that was started with that name, NAME or NAME@HOST; 0:
 * why there is none. */
WATCH_HIDDEN int watch__target_named(const char *name, char why[WATCH__WHY]);
/* Of the node in the container whose id begins so. */
WATCH_HIDDEN int watch__target_contained(const char *id, char why[WATCH__WHY]);
/* The name that the node was started with; "". */
WATCH_HIDDEN void watch__target_name(int pid, char *name, size_t size);
WATCH_HIDDEN bool watch__target_lives(int pid);
/* The process that traces it; 0: none. */
WATCH_HIDDEN int watch__target_tracer(int pid);

#endif
