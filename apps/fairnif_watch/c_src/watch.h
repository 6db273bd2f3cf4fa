/*
 * watch.h - the watch thread's own view: what it knows of each scheduler
 * thread, who may touch it, and which file does what.
 *
 * Who owns what:
 *   - a `struct watch` is a resource object of module fairnif_watch_native.
 *     The watchdog process and the hearts hold terms of it; the thread holds
 *     none: whoever ends the thread joins it before the object can go;
 *   - a `struct watch__thread` is written by the watch thread.  What others
 *     read of it is atomic; what a heart writes stands apart, in `heart`;
 *   - what both sides write is under `shared`, which nobody waits for: who finds
 *     it taken tries again later.  A look that is asked for is a slot of its own.
 *
 * What must never be done here: allocate for each tick, wait for a scheduler,
 * register anything to run at exit, or call into the VM with an environment
 * that is not the thread's own.
 */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include <stdatomic.h>
#include <time.h>

#include <erl_nif.h>

#include "stack.h"

struct fair_ops;
struct fair_running;

#define GET(X) atomic_load_explicit(&(X), memory_order_relaxed)
#define SET(X, V) atomic_store_explicit(&(X), (V), memory_order_relaxed)
/* For the single writer of X. */
#define ADD(X, V) SET(X, GET(X) + (V))

typedef _Atomic uint64_t watch__u64;

#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S ((uint64_t)1000000000)
#define WATCH__NEVER UINT64_MAX

/* -- kinds of scheduler threads ------------------------------------------- */

enum watch__sched { K_NORMAL, K_DIRTY_CPU, K_DIRTY_IO, K_KINDS };
extern WATCH_HIDDEN const char *const watch__kind_names[K_KINDS];

/* -- /proc and clocks: task.c ------------------------------------------------ */

enum watch__run {
    RUN_UNKNOWN,                /* the system does not say */
    RUN_RUNNING,                /* on a processor, or waiting for one */
    RUN_SLEEPS
};

/* Where a thread sleeps: tells one place from another. */
struct watch__place {
    long syscall;
    uint64_t arg, sp, pc;
};

WATCH_HIDDEN uint64_t watch__now(void);         /* CLOCK_MONOTONIC, ns: maps.c */
WATCH_HIDDEN uint64_t watch__cpu(clockid_t clock);  /* ns; NEVER: no thread */
WATCH_HIDDEN clockid_t watch__cpu_clock(int tid);
WATCH_HIDDEN int watch__gettid(void);
WATCH_HIDDEN enum watch__run watch__where(int syscall_fd,
                                          struct watch__place *place);
WATCH_HIDDEN bool watch__run_delay(int schedstat_fd, uint64_t *ns);
WATCH_HIDDEN bool watch__in_disk_sleep(int tid);
/* CPU time that a thread used in the kernel, ns, in steps of some ms; NEVER: not
 * known. */
WATCH_HIDDEN uint64_t watch__kernel_ns(int tid);
WATCH_HIDDEN const char *watch__syscall_name(long number);

/* What takes processors away from the whole process; pressure.c */
struct watch__pressure {
    int stat_fd, cgroup_fd;
    uint64_t tick_ns;           /* of /proc/stat */
    bool in_us;                 /* cgroup v2 counts us, v1 ns */
};
WATCH_HIDDEN void watch__pressure_open(struct watch__pressure *p);
WATCH_HIDDEN void watch__pressure_close(struct watch__pressure *p);
WATCH_HIDDEN void watch__pressure_read(const struct watch__pressure *p,
                                       uint64_t *throttled_ns,
                                       uint64_t *stolen_ns);

/* -- which thread is which: threads.c ------------------------------------------ */

/* The number in a thread's name and its kind; false: no scheduler's name. */
WATCH_HIDDEN bool watch__parse_name(const char *name, enum watch__sched *kind,
                                    unsigned *number);
/* Finds all scheduler threads; false: some are missing, and `names` holds the
 * names that could not be told, separated by blanks. */
struct watch__tids {
    unsigned count[K_KINDS];    /* in: how many there must be */
    int *tid[K_KINDS];          /* out: by number - 1 */
};
WATCH_HIDDEN bool watch__find_threads(struct watch__tids *tids, char *names,
                                      size_t size);

/* -- the rules: suspect.c ---------------------------------------------------------- */

/* What a thread does, as far as one look shows. */
enum watch__class {
    C_UNKNOWN,
    C_RUNS,
    C_IDLE,                     /* sleeps in the emulator's own code */
    C_NATIVE                    /* sleeps in native code */
};

/* One look at a thread. */
struct watch__seen {
    uint64_t now;
    uint64_t gap;               /* since the last look */
    uint64_t lost;              /* of it: the whole process stood still */
    uint64_t cpu;               /* used ever */
    uint64_t waited;            /* for a processor, ever; NEVER: not known */
    enum watch__class class;
    bool answered;              /* the beat came */
    uint64_t beat_at, beat_cpu;
};

enum watch__does {
    DO_NOTHING,
    DO_POKE,
    DO_SHOW,                    /* its stack is wanted: watch__confirm */
    DO_REPORT,                  /* confirmed: `level` has gone up, or a second */
    DO_STARVED,
    DO_RELEASE                  /* what was reported has come to its end */
};

struct watch__limits {
    uint64_t period_ns, warn_ns, error_ns;
    uint64_t apart_ns;          /* two stacks that prove a hold; at most warn */
};

/* What a stack shows of the call that a thread is in. */
struct watch__shown {
    bool whole;                 /* the frames go down to Erlang code; then: */
    uint64_t process, reductions, heap; /* as that code had them */
    uint64_t library;           /* where it is mapped: of the outermost native
                                   frame; 0: there is none */
    uint64_t function;          /* where it begins: of that, or else of the
                                   outermost frame */
    bool sleeps;
    uint64_t cpu;               /* that the thread had used */
    uint64_t owner, since, yields;  /* as fairnif says; owner 0: it runs none */
};

/* Whether a thread gives way. */
struct watch__hold {
    uint64_t seen_at;           /* last time it was seen giving way */
    uint64_t seen_cpu;          /* what it had used by then */
    uint64_t cpu;               /* at the last look */
    bool slept_native;          /* then */
    bool poked;                 /* and has not answered */
    uint64_t begin;             /* of what holds it, when poked */
    uint64_t begin_cpu, begin_waited;
    uint64_t counted;           /* since the poke: evidence.  CPU time used, or
                                   asleep in native code */
    uint64_t stalled;           /* since: ready, but on no processor */
    uint64_t unknown_ns;        /* since: time of which nothing is known */
    bool is_shown, confirmed;
    struct watch__shown shown;  /* by the stack that the next one is held */
    uint64_t shown_counted;     /* against */
    uint64_t reported_at;       /* 0: not */
    uint64_t starved_at;        /* last told, at most once a second */
    uint64_t untold_delay;      /* of earlier pokes since then */
    unsigned level;             /* that was reported: 0, 1 warn, 2 error */
    /* for the report */
    uint64_t held, used, delay;
};

WATCH_HIDDEN enum watch__does watch__judge(struct watch__hold *h,
                                           const struct watch__limits *limits,
                                           const struct watch__seen *seen);
/* What was to be reported was not: it is to be again. */
WATCH_HIDDEN void watch__report_again(struct watch__hold *h);
/* It was seen not to be held after all: other processes ran. */
WATCH_HIDDEN void watch__dismiss(struct watch__hold *h, uint64_t now,
                                 uint64_t cpu);
/* Of a stack that was taken since the poke, and no answer came before it. */
enum watch__confirms {
    CONFIRM_NOT_YET,
    CONFIRM_OTHER,              /* it is in another call than it was */
    CONFIRM_DONE
};
WATCH_HIDDEN enum watch__confirms watch__confirm(struct watch__hold *h,
                                                 const struct watch__limits *limits,
                                                 const struct watch__shown *shown,
                                                 uint64_t now, uint64_t cpu);
WATCH_HIDDEN bool watch__same_call(const struct watch__shown *a,
                                   const struct watch__shown *b);
/* Of what is confirmed: DO_REPORT or DO_NOTHING. */
WATCH_HIDDEN enum watch__does watch__due(struct watch__hold *h,
                                         const struct watch__limits *limits,
                                         uint64_t now);

/* How often all are looked at. */
struct watch__pace {
    uint64_t look_cpu;          /* of a look, on average */
    unsigned saved;             /* looks, while nobody worked */
};

/* ns to the next look. `used`: CPU time of the last one, or WATCH__NEVER. */
WATCH_HIDDEN uint64_t watch__pace(struct watch__pace *p, uint64_t period,
                                  uint64_t used, bool idle, bool suspects);

/* -- one scheduler thread ------------------------------------------------------------ */

enum { WATCH__PLACES = 6 };     /* where it is known to sleep idle */

struct watch__heart {
    watch__u64 pid;             /* written by the heart, before `there` */
    _Atomic int there;
    watch__u64 poked;           /* how many pokes were sent: the thread's */
    watch__u64 beats;           /* how many came back: the heart's, as */
    watch__u64 beat_at, beat_cpu;   /* these */
    _Atomic int roused;         /* sent, and no beat since */
};

enum watch__state { ST_UNKNOWN, ST_IDLE, ST_BUSY, ST_NATIVE,
                    ST_SLEEPS_NATIVE };

enum { WATCH__WINDOWS = 5 };    /* looks that lie 250 ms apart: a second */

struct watch__thread {
    enum watch__sched kind;
    unsigned number;
    int tid;
    clockid_t clock;
    int syscall_fd, schedstat_fd;   /* -1: not opened yet; -2: not there */
    struct watch__hold hold;
    struct watch__heart heart;      /* of normal ones */
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
    uint64_t id;                /* of the hold that was reported */
    bool is_reported;           /* of it, the owner knows */
    unsigned reported_level;
    bool is_late;               /* was asked for its stack and shows none */
    uint64_t kernel_ns;         /* used by then, in the kernel */
    uint64_t throttled, stolen; /* at the poke */
    const struct fair_running *fair;    /* NULL: none */
    uint64_t at[WATCH__WINDOWS], used_at[WATCH__WINDOWS];
    unsigned window;
    bool has_stack;             /* the report that is kept, of this hold */
    ErlNifEnv *last_env;        /* of the last report; NULL: there was none */
    ERL_NIF_TERM last;
    /* for others */
    _Atomic int state;
    watch__u64 shown_cpu, shown_busy_since, shown_begin, shown_share;
};

/* -- counters: data -------------------------------------------------------------------- */

#define WATCH__COUNTERS(COUNTER)                                            \
    COUNTER(ticks)          /* looks at all threads */                      \
    COUNTER(late)           /* of them: later than meant */                 \
    COUNTER(longest_gap_ns) /* between two */                               \
    COUNTER(watch_cpu_ns)   /* used by the thread itself */                 \
    COUNTER(period_ns)      /* now: stretched where looks are dear */       \
    COUNTER(pokes)          /* sent to hearts */                            \
    COUNTER(beats)          /* that came back in time to be seen */         \
    COUNTER(held)           /* holds that were reported */                  \
    COUNTER(released)       /* and came to their end */                     \
    COUNTER(starved)        /* reports of no processor given */             \
    COUNTER(dismissed)      /* holds that were none */                      \
    COUNTER(suppressed)     /* events that were not sent */                 \
    COUNTER(events)         /* that were */                                 \
    COUNTER(samples)        /* stacks taken to see what runs */             \
    COUNTER(signals)        /* stacks taken of running threads */           \
    COUNTER(failed_stacks)  /* that could not be taken */                   \
    COUNTER(classified)     /* stacks of sleeping threads */                \
    COUNTER(looks)          /* asked for */                                 \
    COUNTER(activations)    /* idle schedulers told to take work */         \
    COUNTER(emergencies)    /* all normal schedulers held at once */

struct watch__counters {
#define COUNTER(NAME) watch__u64 NAME;
    WATCH__COUNTERS(COUNTER)
#undef COUNTER
};

/* -- what runs most: tally.c ----------------------------------------------------------- */

enum { WATCH__TALLIES = 64 };

struct watch__tally {
    char library[64], name[WATCH__NAME];    /* "" library: module of name */
    unsigned arity;
    bool is_mfa;
    uint64_t samples;           /* halved every 10 s */
};

/* -- a stack: stacks.c -------------------------------------------------------------------- */

struct watch__stack {
    struct watch__snapshot snapshot;
    enum watch__taken taken;
    struct watch__frame frames[WATCH__FRAMES];
    unsigned count;
    enum watch__end end;
    struct watch__regs last;
};

/* -- resource types: destructor.c --------------------------------------------------------- */

struct watch__types {
    uint64_t own;               /* ours, one of the VM's ring; 0: not known how
                                   they are made */
    unsigned destructor, module, name;  /* which word of a type */
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
    ERL_NIF_TERM poke;
    struct fair_running *running;   /* what fairnif says, threads point there */
    bool fair_was_shown;
    struct watch__limits limits;    /* period_ns as it is now */
    uint64_t now, before;
    uint64_t wait_left;         /* for stacks, at this look */
    bool suspects;              /* one may be held, and is not confirmed to be */
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
};

static inline uint64_t watch__less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* `shared`: false where somebody has it. */
static inline bool watch__try_lock(struct watch *w)
{
    return !atomic_exchange_explicit(&w->shared, true, memory_order_acquire);
}

static inline void watch__unlock(struct watch *w)
{
    atomic_store_explicit(&w->shared, false, memory_order_release);
}

/* look.c: a thread, each time that it is looked at */
/* How long threads may take to show their stacks, at each look: all of them. */
#define STACK_WAIT_NS (5 * NS_PER_MS)
WATCH_HIDDEN bool watch__measure_thread(struct watch *w,
                                        struct watch__thread *t);
WATCH_HIDDEN void watch__look_at(struct watch *w, struct watch__thread *t);
WATCH_HIDDEN void watch__judge_thread(struct watch *w, struct watch__thread *t,
                                      uint64_t lost);
WATCH_HIDDEN void watch__read_pressure(struct watch *w);
WATCH_HIDDEN void watch__rouse(struct watch *w);

/* watch.c */
WATCH_HIDDEN void watch__wake(struct watch *w);
WATCH_HIDDEN bool watch__init(struct watch *w,
                              const struct watch__config *config,
                              const struct watch__tids *tids);
enum watch__started { START_OK, START_BUSY, START_FAILED };
WATCH_HIDDEN enum watch__started watch__start(struct watch *w);
/* Waits for the thread, and that nothing of the library is in use by any; may
 * be called by several, and again. */
WATCH_HIDDEN void watch__stop(struct watch *w);
WATCH_HIDDEN void watch__ask_to_stop(struct watch *w);     /* does not wait */
WATCH_HIDDEN void watch__free(struct watch *w);

/* stacks.c, into w->stack */
WATCH_HIDDEN enum watch__class watch__classify(struct watch *w,
                                               struct watch__thread *t);
WATCH_HIDDEN bool watch__take_stack(struct watch *w, struct watch__thread *t,
                              uint64_t wait_ns);
WATCH_HIDDEN bool watch__take_late_stack(struct watch *w,
                                         struct watch__thread *t);
WATCH_HIDDEN const struct watch__frame *watch__culprit(
    const struct watch__stack *s);
WATCH_HIDDEN const struct watch__frame *watch__called(
    const struct watch__stack *s);
WATCH_HIDDEN bool watch__call_of(const struct watch *w,
                               const struct watch__thread *t,
                               struct watch__shown *shown);
WATCH_HIDDEN bool watch__process(const struct watch__stack *s, ErlNifPid *pid);
WATCH_HIDDEN const char *watch__stack_note(const struct watch__stack *s);
/* t->syscall_fd; -2: the system does not show where its threads sleep. */
WATCH_HIDDEN void watch__open_syscall(struct watch__thread *t);

/* fair.c */
WATCH_HIDDEN const struct fair_ops *watch__fair_bind(ErlNifEnv *env,
                                                     ERL_NIF_TERM runtime);
WATCH_HIDDEN void watch__fair_look(struct watch *w);

/* destructor.c: of our own type, its destructor, module and name */
WATCH_HIDDEN void watch__types_learn(struct watch__types *types,
                                     const void *own, uint64_t destructor,
                                     ERL_NIF_TERM module, ERL_NIF_TERM name);
/* Is the function that begins there the destructor of a resource type?  Two
 * atoms. */
WATCH_HIDDEN bool watch__type_of(const struct watch__types *types,
                                 uint64_t function, ERL_NIF_TERM *module,
                                 ERL_NIF_TERM *name);

/* tally.c */
WATCH_HIDDEN void watch__sample(struct watch *w);

/* event.c: one event at a time, in w->env */
WATCH_HIDDEN bool watch__admit(struct watch *w);
/* w->stack is of it.  Not `now`: it is kept for the end. */
WATCH_HIDDEN void watch__send_held(struct watch *w, struct watch__thread *t,
                                   bool now);
WATCH_HIDDEN void watch__send_released(struct watch *w,
                                       struct watch__thread *t);
WATCH_HIDDEN void watch__send_starved(struct watch *w,
                                      struct watch__thread *t);
WATCH_HIDDEN void watch__send_late(struct watch *w, uint64_t gap,
                                   uint64_t throttled, uint64_t stolen);
WATCH_HIDDEN void watch__send_looked(struct watch *w, struct watch__thread *t,
                                     ERL_NIF_TERM ref);
WATCH_HIDDEN void watch__send_suppressed(struct watch *w);

#endif
