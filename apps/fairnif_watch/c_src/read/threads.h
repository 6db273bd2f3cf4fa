/*
 * threads.h - which thread is which.
 */
#ifndef WATCH_THREADS_H
#define WATCH_THREADS_H

#include "read/common.h"

enum watch__sched { K_NORMAL, K_DIRTY_CPU, K_DIRTY_IO, K_KINDS };
extern WATCH_HIDDEN const char *const watch__kind_names[K_KINDS];

/* The number in a thread's name and its kind; false: no scheduler's name. */
WATCH_HIDDEN bool watch__parse_name(const char *name, enum watch__sched *kind,
                                    unsigned *number);
/* All threads of watch__source, as the kernel lists them; a name may be "". */
WATCH_HIDDEN void watch__each_thread(
    void (*fn)(int tid, const char *name, void *arg), void *arg);
/* Finds all scheduler threads; false: some are missing, and `names` holds the
 * names that could not be told, separated by blanks. */
struct watch__tids {
    unsigned count[K_KINDS];    /* in: how many there must be */
    int *tid[K_KINDS];          /* out: by number - 1 */
};
WATCH_HIDDEN bool watch__find_threads(struct watch__tids *tids, char *names,
                                      size_t size);

#endif
