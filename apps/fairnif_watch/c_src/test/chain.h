#ifndef CHAIN_H
#define CHAIN_H

#include <stdbool.h>

enum { CHAIN_CALLS = 64 };

struct chain {
    bool sleeps, yields;        /* else it spins */
    int fd;                     /* to read from, asleep */
    int alloca_size, deeper;
    bool there, leave;
    int depth;                  /* what glibc's backtrace says */
    void *calls[CHAIN_CALLS];
};

#endif
