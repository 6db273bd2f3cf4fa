/*
 * proc.h - what /proc/PID/task says of one thread.
 */
#ifndef WATCH_PROC_H
#define WATCH_PROC_H

#include "read/common.h"

struct watch__stat {
    char state;                 /* R S D T Z X */
    uint64_t started;           /* ticks since boot; tells it from a later
                                   thread of the same id */
    uint64_t user_ticks, kernel_ticks;  /* CPU used, in either mode */
};

struct watch__call {
    enum { CALL_RUNNING, CALL_NONE, CALL_IN } kind;
    long number;                /* of the system call */
    uint64_t arg;               /* its first */
    uint64_t sp, pc;
};

/* A file under /proc/PID/task/TID, to be kept open; -1. */
WATCH_HIDDEN int watch__open(int tid, const char *name);
/* Where *fd is -1; -2: there is no such file. */
WATCH_HIDDEN void watch__open_once(int *fd, int tid, const char *name);
/* What the file begins with, ended by '\0'; bytes, or -1. */
WATCH_HIDDEN int watch__slurp(int fd, char *text, size_t size);
/* Both, and closes it.  0 or an errno. */
WATCH_HIDDEN int watch__read_once(int tid, const char *name, char *text,
                                  size_t size);

/* 0 or an errno: ENOENT and ESRCH say that there is no such thread. */
WATCH_HIDDEN int watch__thread_stat(int tid, struct watch__stat *t);
WATCH_HIDDEN int watch__thread_call(int tid, struct watch__call *c);
/* What the kernel says there: "running"; "-1 SP PC": asleep, but in no system
 * call (a page fault); "NUMBER ARG0 ... ARG5 SP PC".  0 or EINVAL. */
WATCH_HIDDEN int watch__parse_call(const char *text, struct watch__call *c);
/* Does it block the signal?  True too where that can't be seen. */
WATCH_HIDDEN bool watch__thread_blocks(int tid, int signal);

#endif
