/*
 * thread.h - threads that are where a test wants them.
 */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>

#include "chain.h"

struct runner {
    struct chain chain;
    pthread_t thread;
    int tid, pipe[2], deeper;
    const char *nif;            /* through that NIF of the library */
    void *library;
    void (*outer)(struct chain *);
    unsigned long (*through)(struct chain *, int, const unsigned long *);
};

/* Runs the chain of that library on a thread of its own, until stopped. */
void runner_start(struct runner *r, const char *library);
void runner_stop(struct runner *r);
enum watch__taken take(struct watch__snapshot *s, const struct runner *r);

#endif
