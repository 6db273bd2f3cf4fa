/*
 * state.h - the watch thread's own view: what it knows of each scheduler
 * thread, and who may touch it.
 *
 * Who owns what:
 *   - a `struct watch` is a resource object of module fairnif_watch_native.
 *     The watchdog process and the responders hold terms of it; the thread
 *     holds none: whoever ends the thread joins it before the object can go;
 *   - a `struct watch__thread` is written by the watch thread.  What others
 *     read of it is atomic; what a responder writes stands apart, in
 *     `responder`;
 *   - what both sides write is under `shared`, which nobody waits for: who finds
 *     it taken tries again later.  A look that is asked for is a slot of its own.
 *
 * What must never be done here: allocate for each tick, wait for a scheduler,
 * register anything to run at exit, or call into the VM with an environment
 * that is not the thread's own.
 */
#ifndef WATCH_STATE_H
#define WATCH_STATE_H

#include <erl_nif.h>

#include "look/suspect.h"
#include "read/pressure.h"
#include "read/task.h"
#include "read/threads.h"
#include "unwind/capture.h"
#include "unwind/destructor.h"
#include "unwind/maps.h"

struct fair_ops;
struct fair_running;

/* -- one scheduler thread ---------------------------------------------------- */

enum { WATCH__PLACES = 6 };     /* where it is known to sleep idle */

struct watch__responder {
    watch__u64 pid;             /* written by the responder, before `there` */
    _Atomic int there;
    watch__u64 probed;          /* how many probes were sent: the thread's */
    watch__u64 replies;         /* how many came back: the responder's, as */
    watch__u64 reply_at, reply_cpu; /* these */
    _Atomic int roused;         /* sent, and no reply since */
};

enum watch__state { ST_UNKNOWN, ST_IDLE, ST_BUSY, ST_NATIVE,
                    ST_SLEEPS_NATIVE };

struct watch__wait {
    uint64_t at, cpu;           /* when, and what it had used by then */
    uint64_t waited, runs;      /* for a processor, and how often it got one */
};

enum { WATCH__WAITS = 6 };      /* kinds of long waits, by their least ms */

enum { WATCH__WINDOWS = 5 };    /* looks that lie 250 ms apart: a second */

struct watch__thread {
    enum watch__sched kind;
    unsigned number;
    int tid;
    clockid_t clock;
    int syscall_fd, schedstat_fd;   /* -1: not opened yet; -2: not there */
    struct watch__block block;
    struct watch__responder responder;      /* of normal ones */
    /* the last look */
    enum watch__run run;
    enum watch__class class;
    uint64_t looked_at, gap;    /* between the last two looks */
    uint64_t cpu, used;         /* ever, and in between */
    bool there;
    bool slept;                 /* class is that of a sleep that lasts as long
                                   as `cpu` stays */
    struct watch__place place, idle[WATCH__PLACES];
    unsigned idle_count;
    uint64_t busy_since;        /* 0: idle */
    uint64_t id;                /* of the block that was reported */
    bool is_reported;           /* of it, the owner knows */
    unsigned reported_level;
    bool is_late;               /* was asked for its stack and shows none */
    uint64_t kernel_ns;         /* used by then, in the kernel */
    uint64_t throttled, stolen; /* at the probe */
    const struct fair_running *fair;    /* NULL: none */
    uint64_t at[WATCH__WINDOWS], used_at[WATCH__WINDOWS];
    unsigned window;
    bool is_still;              /* at the last look: used nothing */
    struct watch__wait wait;    /* for a processor: when that was read */
    uint64_t stretch, stretch_runs;     /* that it got next to none so far */
    uint64_t merged;            /* runs that are not counted, by these */
    bool has_stack;             /* the report that is kept, of this block */
    ErlNifEnv *last_env;        /* of the last report; NULL: there was none */
    ERL_NIF_TERM last;
    /* for others */
    _Atomic int state;
    watch__u64 shown_cpu, shown_busy_since, shown_begin, shown_share;
    watch__u64 shown_waited, shown_runs;
    watch__u64 long_waits[WATCH__WAITS], long_wait_ns;
};

/* -- counters: data -------------------------------------------------------------------- */

#define WATCH__COUNTERS(COUNTER)                                            \
    COUNTER(ticks)          /* looks at all threads */                      \
    COUNTER(late)           /* of them: later than meant */                 \
    COUNTER(longest_gap_ns) /* between two */                               \
    COUNTER(watch_cpu_ns)   /* used by the thread itself */                 \
    COUNTER(period_ns)      /* now: stretched where looks cost much */      \
    COUNTER(probes)         /* sent to responders */                        \
    COUNTER(replies)        /* that came back in time to be seen */         \
    COUNTER(blocked)        /* blocks that were reported */                 \
    COUNTER(unblocked)      /* and came to their end */                     \
    COUNTER(no_cpu_time)    /* reports of no processor given */             \
    COUNTER(dismissed)      /* blocks that were none */                     \
    COUNTER(suppressed)     /* events that were not sent */                 \
    COUNTER(events)         /* that were */                                 \
    COUNTER(samples)        /* stacks taken to see what runs */             \
    COUNTER(signals)        /* stacks taken of running threads */           \
    COUNTER(failed_stacks)  /* that could not be taken */                   \
    COUNTER(classified)     /* stacks of sleeping threads */                \
    COUNTER(looks)          /* asked for */                                 \
    COUNTER(activations)    /* idle schedulers told to take work */         \
    COUNTER(emergencies)    /* all normal schedulers blocked at once */       \
    COUNTER(others)         /* thousandths of all processors' time that     \
                               other programs took lately, */               \
    COUNTER(port_programs)  /* programs that this one started, */           \
    COUNTER(own_native)     /* and own threads that are no schedulers */    \
    COUNTER(quota)          /* thousandths of a processor; 0: none */       \
    COUNTER(quota_periods)  /* of the quota */                              \
    COUNTER(quota_throttled)    /* in which it stopped us, */               \
    COUNTER(quota_throttled_ns) /* for so long on all processors */         \
    COUNTER(stolen_ns)      /* by the hypervisor */

struct watch__counters {
#define COUNTER(NAME) watch__u64 NAME;
    WATCH__COUNTERS(COUNTER)
#undef COUNTER
};

/* -- what runs most ----------------------------------------------------------- */

enum { WATCH__TALLIES = 64 };

struct watch__tally {
    char library[64], name[WATCH__NAME];    /* "" library: module of name */
    unsigned arity;
    bool is_mfa;
    uint64_t samples;           /* halved every 10 s */
};

/* -- all of it ------------------------------------------------------------------------- */

enum { WATCH__LOOKS = 16, WATCH__RUNNING = 1024, WATCH__POOL = 64 };

enum watch__asked { LOOK_FREE, LOOK_FILLED, LOOK_ASKED };

struct watch__look {
    _Atomic int state;          /* FREE -> FILLED: who asks; ASKED -> FREE: the
                                   thread, or who frees the watch */
    ErlNifEnv *env;             /* of ref */
    ERL_NIF_TERM ref;
    unsigned thread;
};

struct watch__config {
    struct watch__limits limits;
    uint64_t emergency_ns;
    unsigned sample_hz, events_per_s;
    bool signals;
};

struct watch {
    struct watch__config config;
    ErlNifPid owner;            /* gets the events */
    ErlNifTid thread;
    const struct fair_ops *_Atomic fair;    /* NULL: no fairnif */
    ErlNifMonitor monitor;      /* of the watchdog process */
    _Atomic uint32_t wakes;     /* a futex: the thread shall look around */
    bool started;
    int signals_error;          /* errno of why signals are off; 0 */
    bool sleepers_hidden;       /* the system does not show where they are */
    bool awaits_stack;          /* one that comes late */
    _Atomic bool threaded;      /* the thread is to be joined */
    _Atomic bool stop;
    struct watch__look looks[WATCH__LOOKS];
    _Atomic bool shared;        /* over what follows, to `counters` */
    struct watch__tally tallies[WATCH__TALLIES];
    uint64_t tallied, other, tally_since;
    struct fair_running *shown_fair;    /* by thread; tid 0: none */
    struct fair_running *shown_pool;    /* what runs on fairnif's own threads */
    unsigned shown_pools;
    struct watch__counters counters;
    _Atomic int64_t offset;     /* erlang:monotonic_time - CLOCK_MONOTONIC */
    _Atomic unsigned online;    /* normal schedulers, as Erlang says */
    unsigned count, normal;
    struct watch__thread *threads;  /* normal, dirty CPU, dirty I/O */
    /* the thread's own */
    ErlNifEnv *env;             /* of one event */
    ERL_NIF_TERM probe;
    struct fair_running *running;   /* what fairnif says, threads point there */
    bool fair_was_shown;
    struct watch__limits limits;    /* period_ns as it is now */
    uint64_t now, before;
    uint64_t wait_left;         /* for stacks, at this look */
    bool suspects;              /* one may be blocked: unconfirmed */
    struct watch__pace pace;
    uint64_t cpu;               /* its own, so far */
    uint64_t tick;
    struct watch__stack *stack;
    struct watch__maps *maps;
    struct watch__types types;
    uint64_t next_id, next_sample, sampled;
    uint64_t tokens_at, suppressed, suppressed_at;
    double tokens;
    uint64_t emergency_at, late_at, roused_at, activated_at;
    unsigned rouse_next;                /* who is roused first: turns */
    struct watch__pressure pressure;
    uint64_t throttled, stolen, pressure_at;    /* and when that was read */
    uint64_t others_at, long_waits;     /* seen by then */
};

/* `shared`: false where somebody has it. */
static inline bool watch__try_lock(struct watch *w)
{
    return !atomic_exchange_explicit(&w->shared, true, memory_order_acquire);
}

static inline void watch__unlock(struct watch *w)
{
    atomic_store_explicit(&w->shared, false, memory_order_release);
}

#endif
