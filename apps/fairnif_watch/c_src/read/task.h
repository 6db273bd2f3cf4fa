/*
 * task.h - clocks, and what a thread is at.
 */
#ifndef WATCH_TASK_H
#define WATCH_TASK_H

#include <time.h>

#include "read/common.h"

enum watch__run {
    RUN_UNKNOWN,                /* the system does not say */
    RUN_RUNNING,                /* on a processor, or waiting for one */
    RUN_SLEEPS
};

/* Where a thread sleeps: tells one place from another. */
struct watch__place {
    long syscall;
    uint64_t arg, sp, pc;
};

WATCH_HIDDEN uint64_t watch__now(void);         /* CLOCK_MONOTONIC, ns */
WATCH_HIDDEN uint64_t watch__cpu(clockid_t clock);  /* ns; NEVER: no thread */
WATCH_HIDDEN clockid_t watch__cpu_clock(int tid);
WATCH_HIDDEN int watch__gettid(void);
WATCH_HIDDEN enum watch__run watch__where(int syscall_fd,
                                          struct watch__place *place);
/* How long the thread has waited for a processor, ns, and how often it got one. */
WATCH_HIDDEN bool watch__run_delay(int schedstat_fd, uint64_t *ns,
                                   uint64_t *runs);
WATCH_HIDDEN bool watch__in_disk_sleep(int tid);
/* CPU time that a thread used in the kernel, ns, in steps of some ms; NEVER: not
 * known. */
WATCH_HIDDEN uint64_t watch__kernel_ns(int tid);
WATCH_HIDDEN const char *watch__syscall_name(long number);

#endif
