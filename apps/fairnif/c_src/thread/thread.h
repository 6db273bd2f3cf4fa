/*
 * thread.h - what the runtime knows of each thread: what it runs, what is
 * counted on it.
 *
 * A `fair__thread` belongs to one scheduler thread, or to one of the pool's.
 * It is written only by that thread, read by anyone, never freed: scheduler
 * threads live as long as the VM.
 */
#ifndef FAIR_THREAD_H
#define FAIR_THREAD_H

#include <time.h>

#include "thread/func.h"

/* What a thread runs, for readers that must not wait (a watchdog's own OS
 * thread): odd `seq` while it is being written; read seq, fields, seq. */
struct fair__slot {
    _Atomic uint32_t seq;
    struct fair__func *_Atomic func;    /* NULL: no fair function */
    fair__u64 since_ns;                 /* CLOCK_MONOTONIC; first slices: of
                                           the coarse clock, 1 to 4 ms late */
    fair__u64 yields;
    fair__u64 owner;                    /* ErlNifPid.pid */
};

struct fair__thread {
    struct fair__slot slot;
    enum fair__where where;
    unsigned number;            /* as in the thread's name: 1, 2, ... */
    int tid;
    struct fair__task *current;
    struct fair__task *for_whom;    /* where it is no body's slice: whose
                                   function it runs, or whose stack it is on,
                                   for who overflows one */
    char *stack_low;            /* of its own stack; NULL: not known, and
                                   stack_size is a number without end */
    size_t stack_size;
    struct fair__task *cache;   /* idle stacks of the default class */
    _Atomic unsigned cached;
    /* What callers of late used and were not charged: under a turn. */
    struct fair__debt {
        ERL_NIF_TERM pid;
        double ns;
    } debts[FAIR__DEBTORS];
    uint32_t seed;
    bool has_timer;             /* thread/timer.c */
#if defined(__linux__)
    timer_t timer;
    void (*_Atomic ring)(void *);       /* for its handler; NULL: it is stopped */
    void *ring_arg;
#endif
    struct fair__low *_Atomic low;  /* of the pool: thread/low.c */
    bool is_low;                /* it is that one itself */
    bool ending;                /* of the pool: see fair__pool_ending */
    bool in_place;              /* runs a callback of a resource, in the VM's
                                   call */
    uint64_t in_place_since, in_place_ns;   /* of late, for such; resource/resource.c */
    int locks;                  /* FAIR_DEBUG: held by the body that it runs */
    /* by function index; the size is published after the array */
    _Atomic unsigned stats_size;
    struct fair__fstat *_Atomic *_Atomic stats;
    struct fair__thread *next;
};

/* A thread of the runtime's, on which authors' code runs; not 0: there is none. */
FAIR_HIDDEN int fair__thread_create(char *name, ErlNifTid *tid,
                                    void *(*main)(void *), void *arg);
FAIR_HIDDEN struct fair__thread *fair__self(void);
FAIR_HIDDEN struct fair__thread *fair__this_thread(void);
FAIR_HIDDEN struct fair__thread *fair__thread_adopt(struct fair__thread *th);
FAIR_HIDDEN struct fair__thread *fair__threads(void);
FAIR_HIDDEN struct fair__task *fair__current_task(void);
/* The task whose code of an author's it runs; NULL: none. */
static inline struct fair__task *fair__runs_whose(const struct fair__thread *th)
{
    return th->for_whom ? th->for_whom : th->current;
}
/* What this thread runs now is this task's, and no slice of its body (NULL:
 * none's); answers whose it was. */
static inline struct fair__task *fair__runs_for(struct fair__thread *th,
                                                struct fair__task *t)
{
    struct fair__task *before = th ? th->for_whom : NULL;

    if (th)
        th->for_whom = t;
    return before;
}
FAIR_HIDDEN void fair__slot_enter(struct fair__thread *th,
                                  struct fair__func *func, uint64_t since,
                                  uint64_t yields, ERL_NIF_TERM owner);
FAIR_HIDDEN void fair__slot_leave(struct fair__thread *th);
FAIR_HIDDEN bool fair__slot_read(const struct fair__thread *th,
                                 struct fair__func **func, uint64_t *since,
                                 uint64_t *yields, ERL_NIF_TERM *owner);
/* For watchdogs: any thread may call it at any time, it waits for nothing. */
FAIR_HIDDEN unsigned fair__running(struct fair__running *list,
                                   size_t item_size, unsigned most);
/* The counters of a function on a thread: the own ones, and to be read. */
FAIR_HIDDEN struct fair__fstat *fair__stat(struct fair__thread *th,
                                           struct fair__func *func);
FAIR_HIDDEN const struct fair__fstat *fair__stat_of(
    const struct fair__thread *th, unsigned index);

#endif
