/*
 * role.h - which of a node's threads is which.
 */
#ifndef WATCH_ROLE_H
#define WATCH_ROLE_H

#include "read/threads.h"

/* The first are those of enum watch__sched. */
enum watch__role { R_NORMAL, R_DIRTY_CPU, R_DIRTY_IO, R_POLL, R_AUX, R_ASYNC,
                   R_SIGNALS, R_POOL, R_WATCH, R_MAIN, R_OTHER, R_ROLES };
extern WATCH_HIDDEN const char *const watch__role_names[R_ROLES];

/* `number`: 0 where its name has none. */
WATCH_HIDDEN enum watch__role watch__role_of(int tid, int pid,
                                             const char *name,
                                             unsigned *number);

#endif
