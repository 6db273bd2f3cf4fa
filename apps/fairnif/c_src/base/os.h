/*
 * os.h - what differs between operating systems.
 */
#ifndef FAIR_OS_H
#define FAIR_OS_H

#include "base/base.h"

FAIR_HIDDEN uint64_t fair__now(void);           /* CLOCK_MONOTONIC, ns, 20 ns */
FAIR_HIDDEN uint64_t fair__now_coarse(void);    /* the same, 4 ms late, 3 ns */
FAIR_HIDDEN uint64_t fair__cpu_now(void);       /* of the thread, ns, 400 ns */
FAIR_HIDDEN void fair__sleep_ns(long ns);   /* under a second; Linux adds 50 us */
static inline void fair__nap(void)
{
    fair__sleep_ns(1000000);
}
FAIR_HIDDEN void fair__os_stay(void) __attribute__((noreturn));
FAIR_HIDDEN int fair__thread_id(void);
FAIR_HIDDEN unsigned fair__thread_number(void);
FAIR_HIDDEN bool fair__thread_computes(int tid);
/* Lowers this thread's priority; raising it again takes privileges. */
FAIR_HIDDEN void fair__os_lower(int by);
/* How long the kernel lets a thread of a normal scheduler run before another one
 * that wants its processor; 0: as long as any.  Linux from 6.12 on. */
FAIR_HIDDEN void fair__os_slice_schedulers(uint64_t ns);
FAIR_HIDDEN void fair__os_usual_slice(void);    /* for this thread */
struct fair__used {             /* by this thread so far */
    uint64_t ns, cpu_ns;        /* of the clock, of a processor */
    long sleeps, preempted;     /* times it gave its processor up to wait, and
                                   times it was taken away */
};
FAIR_HIDDEN bool fair__thread_used(struct fair__used *used);
static inline struct fair__used fair__used_since(struct fair__used now,
                                                 struct fair__used then)
{
    return (struct fair__used){
        now.ns - then.ns, now.cpu_ns - then.cpu_ns, now.sleeps - then.sleeps,
        now.preempted - then.preempted
    };
}
static inline struct fair__used fair__used_sum(struct fair__used a,
                                               struct fair__used b)
{
    return (struct fair__used){
        a.ns + b.ns, a.cpu_ns + b.cpu_ns, a.sleeps + b.sleeps,
        a.preempted + b.preempted
    };
}
/* Most of the time went to waiting, and not for a processor: code that computes
 * behind busy schedulers gets a tenth of one, and may sleep for a page. */
static inline bool fair__used_mostly_waits(const struct fair__used *u)
{
    return u->sleeps > 0 && u->sleeps >= u->preempted && 2 * u->cpu_ns < u->ns;
}
/* The time that it would have taken on a processor of its own. */
static inline uint64_t fair__used_by_itself(const struct fair__used *u)
{
    return u->preempted > 0 && !fair__used_mostly_waits(u) ? u->cpu_ns : u->ns;
}
FAIR_HIDDEN void fair__thread_stack(char **low, size_t *size);
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

FAIR_HIDDEN void *fair__os_find(const char *name);
/* What lies there is needed no more, the memory still is: whole pages of it go
 * back to the system. */
FAIR_HIDDEN void fair__os_forget(char *memory, size_t size);

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
