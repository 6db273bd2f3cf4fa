/*
 * source.h - whose memory and threads are looked at: this process's, unless
 * another one's, or a core file's, were set (folder outside).
 */
#ifndef WATCH_SOURCE_H
#define WATCH_SOURCE_H

#include "read/common.h"

struct watch__source {
    int pid;                    /* of the other process; 0: there is none, and
                                   the functions answer */
    size_t (*read)(void *to, uint64_t from, size_t size);   /* bytes */
    int (*open)(const char *name);      /* a file as of /proc/PID; -1 */
};

/* Before anything is read; NULL: this process. */
WATCH_HIDDEN void watch__source_set(const struct watch__source *source);
WATCH_HIDDEN const struct watch__source *watch__source(void);
/* Memory as it was copied before, which stands in for what is there now; NULL:
 * none does any more.  And what of it is there. */
WATCH_HIDDEN void watch__source_lay(const void *copy, uint64_t from,
                                    size_t size);
WATCH_HIDDEN const void *watch__source_laid(uint64_t from, size_t size);
/* Its pid, our own; 0: a core's. */
WATCH_HIDDEN int watch__source_pid(void);
WATCH_HIDDEN bool watch__source_is_own(void);
/* /proc/PID/name, and that opened; -1. */
enum { WATCH__PROC = 128 };
WATCH_HIDDEN const char *watch__source_name(char path[WATCH__PROC],
                                            const char *name);
WATCH_HIDDEN int watch__source_open(const char *name);
/* A file that it has mapped, which may lie in a container; -1: it is not there,
 * or no file. */
WATCH_HIDDEN int watch__source_open_file(const char *path);

#endif
