/*
 * func.h - the registry of fair functions: what they are, what was learned of
 * them.
 *
 * A `fair__func` belongs to the runtime and is never freed: counters outlive
 * the library that declared the function.
 */
#ifndef FAIR_FUNC_H
#define FAIR_FUNC_H

#include "base/base.h"

struct fair__task;

/* Modes as data. */
struct fair__mode {
    const char *name;
    enum fair__where start;     /* where the body begins */
    bool adapts;                /* may begin elsewhere: AUTO */
};
extern FAIR_HIDDEN const struct fair__mode fair__modes[FAIR_AUTO + 1];

struct fair__func {
    unsigned index;
    const char *module, *name;  /* the runtime's copies */
    unsigned arity;
    /* from the newest library that declared it */
    _Atomic unsigned mode, stack_class, max_tasks;
    _Atomic bool may_wait, yields, cleans_up, prompt;
    fair__u64 slice_ns;         /* 0: the runtime's */
    /* the module's instances, to be compared only: the one before may be purged
     * once there is a newer one */
    const struct fair__lib *_Atomic newest, *_Atomic before;
    bool mixed;                 /* its units are not all of one kind: what one
                                   call learned says nothing of the next */
    /* learned */
    fair__num unit_ns;          /* cost of a unit; 0 while unknown */
    fair__num call_ns;          /* cost of a call beside its units */
    fair__num peak_ns;          /* the slowest units of late: slices begin
                                   as if all were like these */
    fair__u64 first_budget;     /* units until the first look; 0 with unit_ns */
    _Atomic unsigned warm_calls; /* timed calls so far, up to a few */
    fair__num mean_ns;          /* of calls that end in their first slice */
    /* fair_offload's, by the octave of its units */
    fair__num work_unit_ns[FAIR__OCTAVES];  /* cost of a unit; 0: unknown */
    fair__u64 work_dirty;       /* bit: the last such call went dirty */
    _Atomic int suspect;        /* slices that will be timed in CPU time,
                                   since a long gap was seen */
    _Atomic int long_gaps;      /* those that were the body's own, less the
                                   calls without; bounded */
    _Atomic bool adapted;       /* AUTO: ticks too far apart, begin dirty */
    _Atomic int sleeps;         /* over 0: its work on the pool's threads
                                   mostly waits; task/stint.c */
    _Atomic bool locks;         /* what it gave to fair_offload took a lock on a low
                                   thread */
    _Atomic int brief;          /* calls in a row on the pool's threads that
                                   were short; bounded; task/stint.c */
    fair__u64 reported;         /* a second, and which rules were reported in
                                   it; debug.c */
    uint64_t active;            /* calls under way, counted under a limit; under
                                   the lock of what waits, as turns */
    struct fair__turns {        /* those that wait for one of them to end */
        struct fair__task *first, *last;
        struct fair__func *next;    /* function with such */
    } turns;
    struct fair__fstat *elsewhere;  /* counters of threads without their own;
                                       several writers */
};

struct fair__fstat {
#define COUNTER(NAME, HOW, UNIT, MEANING) fair__u64 NAME;
#include "thread/counters.def"
#undef COUNTER
    fair__u64 histogram[FAIR__BUCKETS]; /* of slices on normal schedulers */
    unsigned countdown;         /* calls until one is timed */
};

FAIR_HIDDEN struct fair__func *fair__func_declare(const char *module,
                                                  const struct fair__nif *nif);
/* An instance of that module is the newest from now on. */
FAIR_HIDDEN void fair__func_loaded(const char *module,
                                   const struct fair__lib *lib);
FAIR_HIDDEN unsigned fair__func_count(void);
FAIR_HIDDEN struct fair__func *fair__func_nth(unsigned index);
FAIR_HIDDEN unsigned fair__bucket(uint64_t ns);
FAIR_HIDDEN uint64_t fair__bucket_ns(unsigned bucket);  /* its upper end */

#endif
