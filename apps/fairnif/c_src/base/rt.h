/*
 * rt.h - the runtime's own view of itself.
 *
 * Who owns what:
 *   - a `fair__func` belongs to the runtime and is never freed: counters
 *     outlive the library that declared the function;
 *   - a `fair__thread` belongs to one scheduler thread, is written only by it,
 *     read by anyone, never freed (scheduler threads live as long as the VM);
 *   - a `fair__task` lies at the top of its own stack's mapping.  While it
 *     runs it belongs to the thread that runs it.  While it is suspended it
 *     belongs to the resource object in the arguments of its scheduled NIF:
 *     if that object is destroyed, the task is dropped, on whatever thread
 *     the VM does it.  While it waits (await.c) it belongs to its pending
 *     value, a resource object of the runtime; while a thread of the pool
 *     works for it, to that thread;
 *   - a `fair__fd` is a resource object too: its term, the tasks that got it
 *     and the VM, while it knows the descriptor, hold it.
 *
 * What must never be done here: keep a pointer into an author's library
 * longer than a resource object of that library's task type lives; register
 * anything to run at exit; read a thread-local on a task's stack.
 */
#ifndef FAIR_RT_H
#define FAIR_RT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FAIR__RUNTIME
#include "fairnif.h"

/* Which file of arch/ this is built with.  Without one that can switch stacks
 * every mode is a plain dirty NIF: see arch/none.c. */
#ifndef FAIR_SWITCH
#  define FAIR_SWITCH "?"
#endif
#ifdef FAIR_NO_TASKS
enum { FAIR__TASKS = 0 };
#else
enum { FAIR__TASKS = 1 };
#endif

#if defined(__SANITIZE_ADDRESS__) && !defined(FAIR_NO_TASKS)
#  define FAIR_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(FAIR_NO_TASKS)
#  define FAIR_TSAN 1
#endif

#define FAIR_HIDDEN __attribute__((visibility("hidden")))
#define fair_likely(C) __builtin_expect(!!(C), 1)
#define fair_unlikely(C) __builtin_expect(!!(C), 0)

/* Plain loads and stores that other threads may see at any time. */
#define GET(X) atomic_load_explicit(&(X), memory_order_relaxed)
#define SET(X, V) atomic_store_explicit(&(X), (V), memory_order_relaxed)
/* For the single writer of X. */
#define ADD(X, V) SET(X, GET(X) + (V))
#define RAISE_TO(X, V) do { if ((V) > GET(X)) SET(X, V); } while (0)

typedef _Atomic uint64_t fair__u64;
typedef _Atomic double fair__num;

/* -- limits, all in one place ------------------------------------------- */

enum {
    FAIR__MAX_ARITY = 240,          /* of 255: the rest are roots and ours */
    FAIR__GUARD = 64 * 1024,
    FAIR__STACK_DEFAULT = 128 * 1024,
    FAIR__STACK_MIN = 16 * 1024,
    FAIR__STACK_MAX = 64 * 1024 * 1024,
    FAIR__CLASSES = 13,             /* stack sizes: powers of two, MIN..MAX */
    FAIR__WARM = 16, FAIR__COLD = 64, /* idle stacks kept for all threads, of
                                       each size; only the cold are trimmed */
    FAIR__WARM_BYTES = 64 * 1024 * 1024,    /* of all warm ones together */
    FAIR__CACHED = 4,               /* idle default stacks kept per thread */
    FAIR__INLINE_BINS = 4,
    FAIR__INLINE_DEFERS = 4,
    FAIR__INLINE_ARGS = 4,
    FAIR__SMALL_BIN = 64,           /* bytes of a binary that lie in its record */
    FAIR__SUB_BIN = 48,             /* bytes of heap for a sub-binary */
    FAIR__SHARDS = 16,
    FAIR__DEBTORS = 16,             /* per thread */
    FAIR__TURNS_MOST = 1000,        /* that a process owes at most: 25 ms */
    FAIR__SLOTS_OWN = 4,            /* hidden roots, for sliced traversals */
    FAIR__OCTAVES = 64,             /* of a number of units */
    FAIR__BUCKETS = 1 + 20 * 8      /* under 1 us; 8 to an octave up to 1 s */
};

#define FAIR__NS_PER_US 1000u
#define FAIR__BOGUS_UNITS ((uint64_t)1 << 31)   /* more in one tick: a bug */

/* -- functions ----------------------------------------------------------- */

enum fair__where {
    W_NORMAL, W_DIRTY_CPU, W_DIRTY_IO,
    W_THREAD,                   /* one of the pool's */
    W_OTHER
};

/* Modes as data. */
struct fair__mode {
    const char *name;
    enum fair__where start;     /* where the body begins */
    bool yields;                /* gives way when its slice is up */
    bool adapts;                /* may begin elsewhere: AUTO */
};
extern FAIR_HIDDEN const struct fair__mode fair__modes[FAIR_THREADED + 1];

struct fair__func {
    unsigned index;
    const char *module, *name;  /* the runtime's copies */
    unsigned arity;
    /* from the newest library that declared it */
    _Atomic unsigned mode, stack_class, max_tasks;
    fair__u64 slice_ns;         /* 0: the runtime's */
    /* learned */
    fair__num unit_ns;          /* cost of a unit; 0 while unknown */
    fair__num call_ns;          /* cost of a call beside its units */
    fair__num peak_ns;          /* the dearest units of late: slices begin
                                   as if all were like these */
    fair__u64 first_budget;     /* units until the first look; 0 with unit_ns */
    _Atomic unsigned warm_calls; /* timed calls so far, up to a few */
    fair__num mean_ns;          /* of calls that end in their first slice */
    /* fair_call's, by the octave of its units */
    fair__num work_unit_ns[FAIR__OCTAVES];  /* cost of a unit; 0: unknown */
    fair__u64 work_dear;        /* bit: the last such call went dirty */
    _Atomic int suspect;        /* so many slices will be timed in CPU time,
                                   since a long gap was seen */
    _Atomic int long_gaps;      /* those that were the body's own, less the
                                   calls without; bounded */
    _Atomic bool adapted;       /* AUTO: ticks too far apart, begin dirty */
    _Atomic int sleeps;         /* over 0: its work on the pool's threads
                                   mostly waits; pool.c */
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

/* -- threads ------------------------------------------------------------- */

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
    struct fair__task *cache;   /* idle stacks of the default class */
    unsigned cache_class;
    _Atomic unsigned cached;
    /* What callers of late used and were not charged: under a turn. */
    struct fair__debt {
        ERL_NIF_TERM pid;
        double ns;
    } debts[FAIR__DEBTORS];
    uint32_t seed;
    bool ending;                /* of the pool: see fair__pool_ending */
    int locks;                  /* FAIR_DEBUG: enif mutexes held */
    /* by function index; the size is published after the array */
    _Atomic unsigned stats_size;
    struct fair__fstat *_Atomic *_Atomic stats;
    struct fair__thread *next;
};

/* -- tasks --------------------------------------------------------------- */

/* The files in arch/ know this layout, and agree about what it is for:
 * `sp` leads to where the task paused, `sched_sp` to the scheduler while the
 * task runs.  Floating-point control is the processor's own word for it. */
struct fair__ctx {
    void *sp;
    void *sched_sp;
    void *top;                  /* where the task's stack begins, 64-aligned */
    uint64_t fp_control, sched_fp_control;
    void *call;                 /* ucontext only */
};

enum fair__state {
    S_RUNNING,
    S_SUSPENDED,                /* waits for its next slice on a normal one */
    S_QUEUED,                   /* waits for a dirty scheduler */
    S_WAITING                   /* in fairnif:await/1: see fair__task.stage */
};

/* Why the task's stack was left. */
enum fair__exit {
    X_DONE, X_PAUSE,
    X_WAIT,                     /* goes on when `stage` has come to its end */
    X_RAISE,                    /* of the runtime's: `error` says what */
    X_DROP
};

/* What a waiting task waits for, as data in await.c. */
enum fair__stage {
    P_RUNS,                     /* for nothing: it has begun or goes on */
    P_TURN,                     /* one of the calls under way to end */
    P_POOL,                     /* a thread, and then its work */
    P_LOCK,
    P_FD,
    P_SLEEP,
    P_READY                     /* to be resumed by fairnif:await/1 */
};

/* -- the pool of threads ------------------------------------------------------ */

enum fair__job_state { J_IDLE, J_QUEUED, J_OVERFLOW, J_RUNNING };

/* Belongs to who put it, who may free it when it was withdrawn or when `run`
 * was called. */
struct fair__job {
    void (*run)(struct fair__job *job);
    enum fair__job_state state;     /* under the waiting lock, as all of it */
    struct fair__func *func;        /* whose it is, or NULL */
    bool waits;                     /* whoever put it says so */
    uint64_t since_ns;
    struct fair__job *prev, *next;
};

struct fair__pool_counts {
    uint64_t threads, busy, queued, overflowing;    /* now */
    uint64_t done, overflows, failed_starts;        /* so far */
    uint64_t wait_ns, longest_wait_ns;              /* for a thread, by the
                                                       coarse clock */
};

/* Keeps the binaries of one slice alive: copies of their terms, which refer
 * to the same bytes. */
struct fair__keeper {
    ErlNifEnv *env;
    unsigned refs;
};

/* A binary the task holds: what fair_bin.ref points to. */
struct fair__bin {
    enum {
        B_SMALL,                /* its bytes are in `small` */
        B_OWNED,                /* `bin` is ours to release */
        B_TERM,                 /* `term` of this slice holds the bytes */
        B_KEPT                  /* `term` of keeper->env holds them */
    } kind;
    bool on_heap;               /* enif_alloc'ed, not one of inline_bins */
    bool fixed;                 /* got, or a term already: its size stays */
    struct fair__bin **list;    /* the list it is in, or NULL */
    ErlNifBinary bin;
    ERL_NIF_TERM term;
    struct fair__keeper *keeper;
    struct fair__bin *prev, *next;
    unsigned char small[FAIR__SMALL_BIN];
};

struct fair__defer {
    void (*fn)(void *);
    void *ptr;
};

/* A block of fair_alloc; the caller's bytes follow. */
struct fair__block {
    struct fair__block *prev, *next;
    size_t size;
    size_t shift;               /* of the block in its allocation, which the
                                   VM aligns to 8 only */
};

struct fair__held {             /* a resource object of the author's */
    void *obj;
    struct fair__held *next;
};

struct fair__handle {           /* the resource object */
    struct fair__task *task;    /* NULL once it has ended */
};

/* A descriptor as the VM knows it: a resource object of the runtime's (fd.c).
 * It is closed in the type's stop callback, or at once where the VM was never
 * told of it. */
struct fair__fd {
    int fd;
    bool duplicate;             /* made for one wait; the rest is for others */
    bool selected;              /* the VM knows it: it has to be stopped */
    _Atomic bool closing;       /* nobody gets it any more; set locked */
    unsigned users;             /* tasks that got it; locked */
    ErlNifPid owner;
    uint64_t dev, ino;          /* which file it is */
    struct fair__fd *next;      /* among those with terms; locked */
};

struct fair__fd_use {           /* a descriptor that a task got */
    struct fair__fd *fd;
    struct fair__fd_use *next;
};

/* What checkers.h tells the tools of a task's stack. */
struct fair__check {
#ifdef FAIR_ASAN
    void *fake, *sched_fake;    /* ASan's own stacks, for use after return */
    const void *sched_bottom;
    size_t sched_size;
#endif
#ifdef FAIR_TSAN
    void *fiber, *sched_fiber;
#endif
#ifdef FAIR_VALGRIND
    unsigned stack_id;
#endif
};

/* A pending value's resource object, of a type of the runtime's.  One for each
 * wait: it owns the task until it is resumed, or until a thread of the pool
 * finds that it has gone.  All of it under the waiting lock. */
struct fair__pending {
    struct fair__task *task;    /* NULL once resumed, or ended */
    int arity;                  /* of the value that it is in */
    ErlNifPid owner;
    /* fairnif:await/1 waits for a message with this reference; or NULL */
    ErlNifEnv *armed;
    ERL_NIF_TERM ref;
    /* FAIR_THREADED, ended: what await answers, in an environment of its own,
     * and the task's last hold on the author's library */
    ErlNifEnv *answer;
    ERL_NIF_TERM result;
    bool raises;
    struct fair__handle *handle;
};

struct fair__task {
    struct fair_task pub;
    struct fair__ctx ctx;
    /* the mapping: guard, stack, this struct; stays while pooled */
    struct fair__task *pool_next;
    char *map;
    size_t map_size;
    unsigned stack_class;
    struct fair__check check;
    /* identity; from here on it is the task's own */
    struct fair__nif *nif;
    struct fair__func *func;
    struct fair__handle *handle;
    ERL_NIF_TERM handle_term;   /* in this slice */
    ErlNifPid owner;
    bool counted;               /* under a limit */
    bool listed;
    _Atomic int state;
    fair__u64 since_ns;         /* of the call */
    struct fair__task *prev, *next;
    /* the slice */
    struct fair__thread *thread;
    struct fair__fstat *stat;
    enum fair__where where;
    _Atomic int target;         /* enum fair__where */
    enum fair__exit exit;
    bool begun;                 /* the body has started */
    bool yielding;              /* gives way when its slice is up */
    bool hop;                   /* pass through a normal scheduler first */
    bool makes_terms;           /* on dirty ones; until a slice there shows
                                   that it does not */
    bool timed;                 /* slice_start is known */
    bool estimated;             /* win_start is computed, not read */
    bool single;                /* timed from its begin, not paused yet */
    uint64_t slice_ns;
    uint64_t slice_start;
    uint64_t slice_before;      /* used before slice_start without giving way
                                   (modes that do not) */
    uint64_t cpu_start;         /* of the slice; 0: not read */
    uint64_t cpu_win;           /* of the window, where cpu_start is read */
    bool had_gap;               /* the call has been long without a tick */
    uint64_t win_start;
    uint64_t apart_ns;          /* of the window, or of a first slice without
                                   one: announced work, no unit's */
    uint64_t refill;            /* units given at win_start */
    uint64_t units;             /* units of the call before win_start */
    uint64_t win_units;         /* units of the last window */
    bool confirmed;             /* it was no dearer than expected */
    uint64_t now;               /* the clock at the last look */
    uint64_t made;              /* bytes of terms made by fair_ functions
                                   since the last normal slice */
    double unit_ns;
    double debt_ns;
    uint64_t call_ns;           /* of the last fair_call or fair_blocking;
                                   it ended at `now` */
    /* waiting; under the waiting lock where a thread may be at it */
    struct fair__pending *pending;
    _Atomic int stage;          /* enum fair__stage */
    struct fair__job job;       /* for P_POOL */
    void (*work)(void *);       /* what it does; NULL: the body itself */
    void *work_arg;
    uint64_t deadline_ns;       /* 0: none */
    bool timed_out;
    bool pinned;                /* the runtime holds a reference to `handle`,
                                   since no term does */
    _Atomic bool cancelled;     /* FAIR_THREADED: nobody wants the result */
    void *priv;                 /* the author's; where pub.env has it not */
    bool foreign;               /* pub.env is not of the author's library */
    ErlNifEnv *own_env;         /* FAIR_THREADED: of the call */
    ERL_NIF_TERM *own_argv;
    ERL_NIF_TERM inline_argv[FAIR__INLINE_ARGS];
    const char *error;          /* of X_RAISE: {fairnif, {error, Function}},
                                   or overloaded */
    bool away;                  /* code of the author's runs for it that must
                                   not use it, maybe on another stack */
    unsigned told;              /* enum fair__rule, as bits: those reported */
    const char *lacked;         /* why the last getter answered 0, where it is
                                   not the argument's fault */
    struct fair__task *wait_prev, *wait_next;   /* in the list of its stage */
    fair_mutex *wants, *holds;
    struct fair__fd_use *fds;
    struct fair__fd_wait {
        struct fair__fd *fd;    /* NULL: for none */
        int number;             /* as the body knows it */
        unsigned events;        /* FAIR_READ, FAIR_WRITE */
        unsigned selected;      /* of them: the VM was asked for a message */
        bool told;              /* one was sent that is not the VM's; locked */
        int error;              /* of the VM's selecting: an errno */
    } waits;
    /* what goes with the task */
    ERL_NIF_TERM result;
    ERL_NIF_TERM roots[FAIR_ROOTS + FAIR__SLOTS_OWN];
    unsigned roots_used;        /* highest slot kept, plus one */
    struct fair__bin *terms;    /* B_TERM: to be kept at the next pause */
    struct fair__bin *bins;     /* the others of which something must be let
                                   go */
    struct fair__bin inline_bins[FAIR__INLINE_BINS];
    unsigned inline_bins_used;
    struct fair__defer inline_defers[FAIR__INLINE_DEFERS];
    struct fair__defer *defers;
    unsigned defers_used, defers_size;
    struct fair__block *blocks;
    struct fair__held *resources;
    struct fair__seen *seen;    /* debug: terms handed out, see debug.c */
};

/* -- the runtime --------------------------------------------------------- */

/* Set once by fairnif:load_runtime and then by fairnif:configure; read
 * everywhere. */
struct fair__config {
    fair__u64 slice_ns;         /* on normal schedulers */
    fair__u64 fair_ns;          /* what 4000 reductions take: the price */
    fair__u64 dirty_slice_ns;
    fair__u64 dirty_trip_ns;    /* a dirty call there and back */
    fair__u64 adapt_gap_ns;     /* AUTO: mean gap from which calls begin
                                   dirty */
    fair__u64 max_tasks;        /* 0: no limit */
    fair__u64 dirty_cpus;       /* dirty CPU schedulers online; so many
                                   threads of the pool may compute at once */
    fair__u64 threads;          /* of the pool, at most */
    fair__u64 max_queued;       /* jobs that wait for one */
    fair__u64 overload_ns;      /* how long a call waits to begin */
    fair__u64 spin;             /* more than one processor: a thread of the
                                   pool may look for work without sleeping */
    _Atomic bool pause_every_tick;
    _Atomic bool check_terms;
    _Atomic bool measure_cpu;
    /* not settings, but as global */
    uint64_t active;                /* calls under way, with max_tasks set;
                                       under the lock of what waits */
    _Atomic int64_t dirty_running;  /* tasks that hold a dirty CPU scheduler */
};
extern FAIR_HIDDEN struct fair__config fair__config;

/* os.c */
FAIR_HIDDEN uint64_t fair__now(void);           /* CLOCK_MONOTONIC, ns, 20 ns */
FAIR_HIDDEN uint64_t fair__now_coarse(void);    /* the same, 4 ms late, 3 ns */
FAIR_HIDDEN uint64_t fair__cpu_now(void);       /* of the thread, ns, 400 ns */
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

/* thread.c */
FAIR_HIDDEN struct fair__thread *fair__self(void);
FAIR_HIDDEN struct fair__thread *fair__thread_adopt(struct fair__thread *th);
FAIR_HIDDEN struct fair__thread *fair__threads(void);
FAIR_HIDDEN struct fair__task *fair__current_task(void);
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

/* func.c */
FAIR_HIDDEN struct fair__func *fair__func_declare(const char *module,
                                                  const struct fair__nif *nif);
FAIR_HIDDEN unsigned fair__func_count(void);
FAIR_HIDDEN struct fair__func *fair__func_nth(unsigned index);
FAIR_HIDDEN struct fair__fstat *fair__stat(struct fair__thread *th,
                                           struct fair__func *func);
FAIR_HIDDEN const struct fair__fstat *fair__stat_of(
    const struct fair__thread *th, unsigned index);
FAIR_HIDDEN unsigned fair__bucket(uint64_t ns);
FAIR_HIDDEN uint64_t fair__bucket_ns(unsigned bucket);  /* its upper end */

/* stack.c */
FAIR_HIDDEN unsigned fair__stack_class(size_t size);    /* or FAIR__CLASSES */
FAIR_HIDDEN size_t fair__stack_size(unsigned stack_class);
FAIR_HIDDEN struct fair__task *fair__stack_take(struct fair__thread *th,
                                                unsigned stack_class,
                                                const char **error);
FAIR_HIDDEN void fair__stack_give(struct fair__thread *th,
                                  struct fair__task *t);
FAIR_HIDDEN int fair__stack_init(void);
struct fair__stack_counts {
    uint64_t mapped, pooled;
    uint64_t limit;             /* of mapped; 0: none */
    const char *guard;
};
FAIR_HIDDEN struct fair__stack_counts fair__stack_counts(void);

/* task.c */
FAIR_HIDDEN ERL_NIF_TERM fair__enter(struct fair__nif *nif, ErlNifEnv *env,
                                     int argc, const ERL_NIF_TERM argv[]);
FAIR_HIDDEN void fair__leave(struct fair__task *t, enum fair__exit exit);
FAIR_HIDDEN void fair__outside(struct fair__task *t, void (*fn)(void *),
                               void *arg);
FAIR_HIDDEN void fair__handle_dtor(ErlNifEnv *env, void *obj);
/* For await.c.  A pin keeps the author's library mapped while no term holds the
 * handle. */
FAIR_HIDDEN bool fair__pin(struct fair__task *t);
FAIR_HIDDEN void fair__let_go(struct fair__task *t);
FAIR_HIDDEN void fair__task_end(struct fair__task *t,
                                struct fair__thread *th);
FAIR_HIDDEN void fair__drop_elsewhere(struct fair__task *t, ErlNifEnv *env);
FAIR_HIDDEN ERL_NIF_TERM fair__reschedule(struct fair__task *t,
                                          struct fair__thread *th);
FAIR_HIDDEN ERL_NIF_TERM fair__task_resume(struct fair__task *t,
                                           ErlNifEnv *env, int argc,
                                           const ERL_NIF_TERM argv[]);
FAIR_HIDDEN void fair__thread_slice(struct fair__task *t,
                                    struct fair__thread *th);
struct fair__seen_task {        /* for readers: a copy */
    struct fair__func *func;
    int state, target, stage;
    uint64_t since_ns, yields;
    ErlNifPid owner;
};
FAIR_HIDDEN struct fair__seen_task *fair__suspended(size_t *count);
FAIR_HIDDEN size_t fair__suspended_count(void);

/* slice.c */
FAIR_HIDDEN void fair__first_slice(struct fair__task *t);
FAIR_HIDDEN void fair__next_slice(struct fair__task *t);
FAIR_HIDDEN void fair__slice_end(struct fair__task *t);
FAIR_HIDDEN void fair__charge(ErlNifEnv *env, double *debt_ns,
                              bool whole_turn);
FAIR_HIDDEN void fair__tick(fair_task *pub, size_t units);
/* For the runtime's own sliced loops: fair__work_begin, then fair__work every
 * few microseconds, then fair__work_end.  Their time is no unit's. */
FAIR_HIDDEN void fair__work_begin(struct fair__task *t);
FAIR_HIDDEN void fair__work(struct fair__task *t);
FAIR_HIDDEN void fair__work_end(struct fair__task *t);
FAIR_HIDDEN void fair__go(struct fair__task *t, enum fair__where where);
FAIR_HIDDEN void fair__go_waiting(struct fair__task *t);
FAIR_HIDDEN void fair__announced(struct fair__task *t, uint64_t ns);
FAIR_HIDDEN void fair__force_look(struct fair__task *t);

/* call.c */
FAIR_HIDDEN void fair__move(fair_task *pub, enum fair_mode where);
FAIR_HIDDEN enum fair_mode fair__where(const fair_task *pub);
FAIR_HIDDEN void fair__call(fair_task *pub, size_t units, void (*fn)(void *),
                            void *arg);
FAIR_HIDDEN void fair__blocking(fair_task *pub, void (*fn)(void *), void *arg);
/* The fewest units with which a fair_call would go to a dirty scheduler now. */
FAIR_HIDDEN double fair__call_cutoff(const struct fair__func *f);

/* pool.c; what says "locked" is called with the waiting lock held */
FAIR_HIDDEN void fair__wait_lock(void);
FAIR_HIDDEN void fair__wait_unlock(void);
FAIR_HIDDEN void fair__pool_put(struct fair__job *job);         /* locked */
FAIR_HIDDEN void fair__pool_put_back(struct fair__job *job);    /* locked */
FAIR_HIDDEN void fair__pool_ending(struct fair__thread *th);    /* locked */
FAIR_HIDDEN bool fair__pool_withdraw(struct fair__job *job);    /* locked */
FAIR_HIDDEN bool fair__pool_kick(void);
FAIR_HIDDEN bool fair__pool_presses(void);
FAIR_HIDDEN struct fair__pool_counts fair__pool_counts(void);

/* await.c */
FAIR_HIDDEN bool fair__admit(const struct fair__nif *nif, ErlNifEnv *env,
                             bool *counted);
FAIR_HIDDEN void fair__dismiss(struct fair__func *f, ErlNifEnv *env);
FAIR_HIDDEN int fair__lock(fair_task *pub, fair_mutex *m, int wait);
FAIR_HIDDEN int fair__unlock(fair_task *pub, fair_mutex *m);
FAIR_HIDDEN void fair__locks_release(struct fair__task *t);
FAIR_HIDDEN void fair__offload(fair_task *pub, void (*fn)(void *), void *arg);
FAIR_HIDDEN void fair__wait_for(struct fair__task *t, enum fair__stage stage);
FAIR_HIDDEN __attribute__((noreturn)) void fair__fail(struct fair__task *t,
                                                      const char *error);
FAIR_HIDDEN ERL_NIF_TERM fair__park(struct fair__task *t,
                                    struct fair__thread *th);
FAIR_HIDDEN ERL_NIF_TERM fair__begin_threaded(struct fair__task *t,
                                              struct fair__thread *th);
FAIR_HIDDEN bool fair__await_open(ErlNifEnv *env);
FAIR_HIDDEN ERL_NIF_TERM fair__await(ErlNifEnv *env, int argc,
                                     const ERL_NIF_TERM argv[]);
FAIR_HIDDEN ERL_NIF_TERM fair__expire(ErlNifEnv *env, int argc,
                                      const ERL_NIF_TERM argv[]);
FAIR_HIDDEN const char *fair__stage_name(int stage);

FAIR_HIDDEN ERL_NIF_TERM fair__settle(ErlNifEnv *env, int argc,
                                      const ERL_NIF_TERM argv[]);

/* wait.c, fd.c */
FAIR_HIDDEN int fair__wait(fair_task *pub, int fd, unsigned events,
                           int timeout_ms);
FAIR_HIDDEN ERL_NIF_TERM fair__fd_term(fair_task *pub, int fd);
FAIR_HIDDEN int fair__fd_get(fair_task *pub, ERL_NIF_TERM term, int *fd);
FAIR_HIDDEN int fair__fd_close(fair_task *pub, ERL_NIF_TERM term);
FAIR_HIDDEN void fair__fds_release(struct fair__task *t);

/* drv_load.c, drv_request.c: port drivers, see drv.h */
struct fair__driver_nifs {
    ERL_NIF_TERM (*bind)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*known)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*request)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*deferred)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*abandon)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]),
        (*counts)(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
};
extern FAIR_HIDDEN const struct fair__driver_nifs fair__driver_nifs;
FAIR_HIDDEN bool fair__drivers_open(ErlNifEnv *env);
FAIR_HIDDEN ERL_NIF_TERM fair__driver_bind(ErlNifEnv *env, int argc,
                                           const ERL_NIF_TERM argv[]);

/* env.c: what the environment of a task's slice does not know */
FAIR_HIDDEN bool fair__alive(const struct fair__task *t);
FAIR_HIDDEN void fair__caller(fair_task *pub, ErlNifPid *pid);
FAIR_HIDDEN void *fair__env_priv_data(ErlNifEnv *env);
FAIR_HIDDEN ErlNifPid *fair__env_self(ErlNifEnv *env, ErlNifPid *pid);
FAIR_HIDDEN int fair__env_is_alive(ErlNifEnv *env);
FAIR_HIDDEN void fair__env_note_time(void);
FAIR_HIDDEN ErlNifTime fair__env_monotonic_time(ErlNifTimeUnit unit);
FAIR_HIDDEN int fair__env_consume(ErlNifEnv *env, int percent);
FAIR_HIDDEN int fair__env_send(ErlNifEnv *env, const ErlNifPid *to,
                               ErlNifEnv *msg_env, ERL_NIF_TERM msg);
FAIR_HIDDEN ERL_NIF_TERM fair__error_term(const struct fair__task *t,
                                          ErlNifEnv *env);

/* debug.c: rules of a body */
FAIR_HIDDEN void fair__held_lock(int change);
enum fair__rule {                /* their texts are in debug.c */
    RULE_KEPT_TERM, RULE_LOCK, RULE_EXCEPTION, RULE_NO_TERM, RULE_AWAY,
    RULE_SLOT, RULE_RELEASED, RULE_MOVE
};
FAIR_HIDDEN void fair__misuse(struct fair__task *t, enum fair__rule rule);
/* Ends the call, unless the task is away; who calls it does nothing then. */
FAIR_HIDDEN void fair__refuse(struct fair__task *t, enum fair__rule rule,
                              const char *error);
/* Refuses any other slot than a root's. */
static inline bool fair__slot_is_good(struct fair__task *t, unsigned slot)
{
    if (fair_likely(slot < FAIR_ROOTS))
        return true;
    fair__refuse(t, RULE_SLOT, "bad_slot");
    return false;
}

/* True, and reported, when the task must not be used. */
FAIR_HIDDEN bool fair__used_away(struct fair__task *t);
FAIR_HIDDEN void fair__see_out(struct fair__task *t, ERL_NIF_TERM term);
FAIR_HIDDEN void fair__see_in(struct fair__task *t, ERL_NIF_TERM term);
FAIR_HIDDEN ERL_NIF_TERM fair__seen_arg(fair_task *pub, ERL_NIF_TERM term);

/* hold.c: what goes with a task */
FAIR_HIDDEN void fair__keep(fair_task *pub, unsigned slot, ERL_NIF_TERM term);
FAIR_HIDDEN ERL_NIF_TERM fair__kept(fair_task *pub, unsigned slot);
FAIR_HIDDEN void *fair__alloc(fair_task *pub, size_t size);
FAIR_HIDDEN void *fair__realloc(fair_task *pub, void *ptr, size_t size);
FAIR_HIDDEN void fair__free(fair_task *pub, void *ptr);
FAIR_HIDDEN int fair__defer(fair_task *pub, void (*fn)(void *), void *ptr);
FAIR_HIDDEN int fair__undefer(fair_task *pub, void (*fn)(void *), void *ptr);
FAIR_HIDDEN int fair__resource(fair_task *pub, ERL_NIF_TERM term,
                               ErlNifResourceType *type, void **obj);
FAIR_HIDDEN void fair__hold_init(struct fair__task *t);
FAIR_HIDDEN void fair__hold_release(struct fair__task *t);
FAIR_HIDDEN void fair__root_set(struct fair__task *t, unsigned slot,
                                ERL_NIF_TERM term);
FAIR_HIDDEN void fair__bins_init(void);
FAIR_HIDDEN bool fair__bins_pause(struct fair__task *t);
FAIR_HIDDEN void fair__bins_release(struct fair__task *t);

/* binary.c, list.c */
FAIR_HIDDEN int fair__inspect_bin(fair_task *pub, ERL_NIF_TERM term,
                                  fair_bin *bin);
FAIR_HIDDEN int fair__new_bin(fair_task *pub, size_t size, fair_bin *bin);
FAIR_HIDDEN int fair__resize_bin(fair_task *pub, fair_bin *bin, size_t size);
FAIR_HIDDEN void fair__release_bin(fair_task *pub, fair_bin *bin);
FAIR_HIDDEN ERL_NIF_TERM fair__bin_term(fair_task *pub, fair_bin *bin);
FAIR_HIDDEN int fair__inspect_iolist(fair_task *pub, ERL_NIF_TERM term,
                                     fair_bin *bin);
FAIR_HIDDEN int fair__string(fair_task *pub, ERL_NIF_TERM list, char **chars,
                             size_t *length);
FAIR_HIDDEN int fair__list_length(fair_task *pub, ERL_NIF_TERM list,
                                  size_t *length);
FAIR_HIDDEN int fair__list_next(fair_task *pub, unsigned slot,
                                ERL_NIF_TERM *head);
FAIR_HIDDEN void fair__list_push(fair_task *pub, unsigned slot,
                                 ERL_NIF_TERM head);
FAIR_HIDDEN int fair__list_reverse(fair_task *pub, unsigned slot);
FAIR_HIDDEN ERL_NIF_TERM fair__raise(fair_task *pub, ERL_NIF_TERM reason);

/* arch/ one of them */
FAIR_HIDDEN void fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *),
                                  void *arg);
FAIR_HIDDEN void fair__arch_resume(struct fair__ctx *ctx);
FAIR_HIDDEN void fair__arch_pause(struct fair__ctx *ctx);
FAIR_HIDDEN void fair__arch_call(struct fair__ctx *ctx, void (*fn)(void *),
                                 void *arg);

/* load.c */
FAIR_HIDDEN ErlNifResourceType *fair__open_type(ErlNifEnv *env,
                                                const char *name,
                                                ErlNifResourceTypeInit init);
FAIR_HIDDEN void fair__bind_library(ErlNifEnv *env,
                                    struct fair__handshake *hs);
FAIR_HIDDEN const struct fair__ops *fair__ops(void);

/* A term goes to the body, or comes from it. */
static inline ERL_NIF_TERM fair__term_out(struct fair__task *t,
                                          ERL_NIF_TERM term)
{
    if (fair_unlikely(GET(fair__config.check_terms)))
        fair__see_out(t, term);
    return term;
}

static inline void fair__term_in(struct fair__task *t, ERL_NIF_TERM term)
{
    if (fair_unlikely(GET(fair__config.check_terms)))
        fair__see_in(t, term);
}

enum { FAIR__TERMS_ON_DIRTY = 1 << 20 };    /* bytes; see give_way */

/* The runtime made a term of that many bytes for the body. */
static inline void fair__made(struct fair__task *t, size_t bytes)
{
    t->made += bytes;
    if (fair_unlikely(t->where != W_NORMAL
                      && t->made >= FAIR__TERMS_ON_DIRTY))
        fair__force_look(t);
}

static inline struct fair__task *fair__of(fair_task *pub)
{
    return (struct fair__task *)pub;    /* its first member */
}

#endif
