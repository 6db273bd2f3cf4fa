/*
 * core.h - a core file as the source of memory, maps and registers.
 */
#ifndef WATCH_CORE_H
#define WATCH_CORE_H

#include "outside/target.h"
#include "read/common.h"

struct watch__core_thread {
    int tid;
    const void *regs;           /* as NT_PRSTATUS has them */
    size_t size;
};

struct watch__core {
    int pid, signal;            /* that it died of; 0: it lived */
    int sender;                 /* process that sent it; 0: none */
    bool has_address;           /* of the fault */
    uint64_t address;
    unsigned missing;           /* mapped files with code that are not there any
                                   more, or other ones: it is not read */
    const char *missing_path;   /* of one */
    bool is_cut;                /* the file ends early */
    struct watch__core_thread *threads; /* who died is the first */
    unsigned count;
};

/* Makes the file what watch__read and the maps read, once; NULL: why not. */
WATCH_HIDDEN const struct watch__core *watch__core_open(const char *path,
                                                        char why[WATCH__WHY]);

#endif
