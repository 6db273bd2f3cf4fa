/*
 * os.h - what differs between operating systems.
 */
#ifndef FAIR_OS_H
#define FAIR_OS_H

#include "base/base.h"

FAIR_HIDDEN uint64_t fair__now(void);           /* CLOCK_MONOTONIC, ns, 20 ns */
FAIR_HIDDEN uint64_t fair__now_coarse(void);    /* the same, 4 ms late, 3 ns */
FAIR_HIDDEN uint64_t fair__cpu_now(void);       /* of the thread, ns, 400 ns */
FAIR_HIDDEN void fair__nap(void);       /* sleeps a millisecond */
FAIR_HIDDEN int fair__thread_id(void);
FAIR_HIDDEN unsigned fair__thread_number(void);
FAIR_HIDDEN bool fair__thread_computes(int tid);
struct fair__used {             /* by this thread so far */
    uint64_t ns, cpu_ns;        /* of the clock, of a processor */
    long sleeps;                /* times it gave its processor up to wait */
};
FAIR_HIDDEN bool fair__thread_used(struct fair__used *used);
FAIR_HIDDEN bool fair__stay_loaded(void);
/* Descriptors; an error is answered as -errno. */
FAIR_HIDDEN int fair__os_look(int fd, unsigned events, int timeout_ms);
FAIR_HIDDEN int fair__os_duplicate(int fd);
FAIR_HIDDEN int fair__os_identify(int fd, uint64_t *dev, uint64_t *ino);
FAIR_HIDDEN int fair__os_unblock(int fd);
FAIR_HIDDEN void fair__os_close(int fd);
/* Where this thread handles signals with SA_ONSTACK; NULL: where it is. */
FAIR_HIDDEN void fair__os_alternate_stack(void *memory, size_t size);
/* A line on standard error, or nothing: it never waits. */
FAIR_HIDDEN void fair__os_say(const char *line, size_t length);

/* In a loop that waits for another processor. */
static inline void fair__relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
