/*
 * task.h - the record of a task.
 *
 * It lies at the top of its own stack's mapping.  While it runs it belongs to
 * the thread that runs it.  While it is suspended it belongs to the resource
 * object in the arguments of its scheduled NIF: if that object is destroyed,
 * the task is dropped, on whatever thread the VM does it.  While it waits it
 * belongs to its pending value, a resource object of the runtime; while a
 * thread of the pool works for it, to that thread.
 */
#ifndef FAIR_TASK_H
#define FAIR_TASK_H

#include <limits.h>

#include "task/arch/arch.h"
#include "thread/pool.h"

/* The states of a task: T_FREE and the others. */
enum fair__state {
#define STATE(NAME, WHAT, HOLDS) T_##NAME,
#define MOVE(FROM, TO, WHEN)
#include "task/state.def"
#undef STATE
#undef MOVE
};

/* Why the task's stack was left. */
enum fair__exit {
    X_DONE, X_PAUSE,
    X_WAIT,                     /* for `wait.state` */
    X_PAR,                      /* to continue, in this slice, beside the low
                                   thread: life/run.c */
    X_RAISE,                    /* of the runtime's: `error` says what */
    X_DROP,
    X_EXITS
};

struct fair__task;

/* What a task is a task of: a call on schedulers (life/life.c) or on threads of
 * the pool (life/threaded.c), a resource's callback (resource/resource.c), a strand
 * (life/strand.c); or a body whose caller is gone, which cleans up
 * (life/end.c). */
struct fair__kind {
    /* After a slice, by why that ended.  Answers what the VM gets of a NIF; of
     * a strand, whether it is over. */
    ERL_NIF_TERM (*left[X_EXITS])(struct fair__task *t,
                                  struct fair__thread *th);
    /* A thread of the pool that would continue it has no counters for it. */
    void (*poor)(struct fair__task *t, struct fair__thread *th);
    /* Of one with a caller that waits for it no more; or takes it, in await:
     * with its arguments and roots. */
    void (*drop)(struct fair__task *t, ErlNifEnv *env);
    ERL_NIF_TERM (*resume)(struct fair__task *t, ErlNifEnv *env, int argc,
                           const ERL_NIF_TERM argv[]);
    /* Of one that is apart: what it asked for has come. */
    void (*answered)(struct fair__task *t, ERL_NIF_TERM answer);
    bool apart;                 /* in no process's environment; once it has
                                   begun it runs by itself */
    bool has_caller;            /* a process, which awaits it */
};

#define FAIR__NO_ROOT UINT_MAX

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
    struct fair__defer *before; /* of those given, or of those that are free */
};

struct fair__defers;            /* term/hold.c */
struct fair__block;
struct fair__held;
struct fair__seen;              /* task/debug.c */
struct fair__fd;                /* wait/waiters.h */
struct fair__fd_use;            /* wait/fd.h */
struct fair__escape;            /* task/cancel.h */
struct fair__pending;           /* wait/wake.h */
struct fair__callback;          /* resource/resource.c */

struct fair__link {             /* of a list of tasks: life/listed.c */
    struct fair__task *task;    /* NULL: a reader's mark */
    struct fair__link *prev, *next;
};

struct fair__handle {           /* the resource object */
    struct fair__task *task;    /* NULL once it has ended */
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
    unsigned fiber_uses;
    bool returned;
#endif
#ifdef FAIR_VALGRIND
    unsigned stack_id;
#endif
};

/* By folder task: when it yields, and what it is charged. */
struct fair__slice {
    double unit_ns;
    double debt_ns;
    uint64_t made;              /* bytes of terms made by fair_ functions since
                                   the last normal slice */
    uint64_t units;             /* of the call before win_start */
    uint64_t apart_ns;          /* of the window, or of a first slice without
                                   one: announced work, no unit's */
    bool yielding;              /* yields when its slice is up */
    bool at_par;                /* has left the low thread in it */
    bool hop;                   /* pass through a normal scheduler first */
    bool makes_terms;           /* on dirty ones; until a slice there shows
                                   that it does not */
    bool had_gap;               /* the call has been long without a tick */
    bool timed;                 /* `start` is known */
    bool estimated;             /* win_start is computed, not read */
    bool whole;                 /* the call is timed from its begin, and in its
                                   first slice still */
    bool confirmed;             /* the last window was as fast as expected */
    uint64_t ns;                /* may be used */
    uint64_t start;
    uint64_t before;            /* used before `start` without yielding (modes
                                   that do not) */
    uint64_t own_ns;            /* on the pool: without what others had of the
                                   processor meanwhile */
    uint64_t cpu_start;         /* of the slice; 0: not read */
    uint64_t cpu_win;           /* of the window, where cpu_start is read */
    uint64_t win_start;
    uint64_t refill;            /* units given at win_start */
    uint64_t win_units;         /* units of the last window */
    uint64_t now;               /* the clock at the last look */
    uint64_t call_ns;           /* of the last fair_offload; it ended at `now` */
};

/* By folder wait: under the waiting lock, but for what the body gives, and for a
 * request, which only its caller sees. */
struct fair__wait {
    struct fair__pending *pending;
    struct fair__job job;       /* for T_WAIT_THREAD */
    struct fair__task *prev, *next;     /* in the list of its state; in
                                   fair_wait under the descriptors' lock */
    _Atomic bool unwanted;      /* no process wants it; read without it */
    enum fair__state state;     /* of X_WAIT: the one after T_PARKING */
    uint64_t deadline_ns;       /* 0: none */
    bool timed_out;
    void (*work)(void *);       /* T_OFFLOADED calls it, with work_arg */
    void *work_arg;
    fair_mutex *mutex;          /* of T_WAIT_LOCK */
    struct fair__fd_wait {      /* of T_WAIT_FD */
        struct fair__fd *fd;    /* NULL: for none */
        int number;             /* as the body knows it */
        unsigned events;        /* FAIR_READ, FAIR_WRITE */
        unsigned selected;      /* of them: the VM was asked for a message */
        bool notified;          /* one not of the VM's was sent; locked */
        int error;              /* of the VM's selecting: an errno */
    } on;
};

/* By wait/ask.c: what a body has its caller do. */
struct fair__ask {
    ERL_NIF_TERM request;       /* of the slice that ended with it */
    unsigned root;              /* for the answer; FAIR__NO_ROOT: none is wanted */
    struct fair__pending *by;   /* of the slice that an answer began: what it was
                                   asked by, and its term.  The next request,
                                   where it ends that slice, is too */
    ERL_NIF_TERM by_term;
    ERL_NIF_TERM outbox;        /* what was sent in this slice: a list, or 0 */
    ERL_NIF_TERM raised;        /* fair_raise's reason, where something was sent:
                                   raised once that is passed on; or 0 */
};

/* Of one that is apart: an environment of its own. */
struct fair__own {
    ErlNifEnv *env;
    ERL_NIF_TERM *argv;
    uint64_t ns;                /* the body's, in which it may have made terms
                                   there */
    bool weighs;                /* so there may be many, or were from the begin */
};

/* FAIR_CLEANUP. */
struct fair__cancel {
    struct fair__escape *escape;    /* out of the runtime's function that the
                                       body has called */
    fair__u64 since_ns;         /* 0: it is not.  Anyone reads */
    struct fair__handle *spare; /* in the place of `handle`, when that has gone
                                   with the caller */
};

/* By folder term, and what is counted as taken by wait/: it goes with the
 * task. */
struct fair__hold {
    ERL_NIF_TERM *roots;
    unsigned roots_used, roots_size;
    unsigned chunks;            /* tuples of them that this slice began with */
    struct fair__bin *terms;    /* B_TERM: to be kept at the next pause */
    struct fair__bin *bins;     /* the others of which something must be let
                                   go */
    struct fair__defer *defers; /* the last one given */
    struct fair__defer *free_defers;
    struct fair__defers *more_defers;   /* memory that they lie in */
    struct fair__block *blocks;
    struct fair__held *resources;
    struct fair__fd_use *fds;
    fair_mutex *mutexes;
    struct fair__seen *seen;    /* debug: terms returned, see debug.c */
    unsigned to_keep;           /* how many of `terms` */
    unsigned inline_bins_used, inline_defers_used;
    unsigned weight;            /* of all that: what it takes to release it */
    ERL_NIF_TERM inline_roots[FAIR__INLINE_ROOTS];
    struct fair__defer inline_defers[FAIR__INLINE_DEFERS];
    struct fair__bin inline_bins[FAIR__INLINE_BINS];
};

/* The owner of a task may touch all of it: the thread that runs it or its
 * function; without one, the holder of its scheduled NIF or, locked, of its
 * pending value (of a request: not locked).  Each part says who else may. */
struct fair__task {
    struct fair_task pub;
    struct fair__ctx ctx;

    /* -- of the mapping, which is guard, stack, this: stays while pooled -- */
    struct fair__task *pool_next;
    char *map;
    size_t map_size;
    unsigned stack_class;
    struct fair__check check;

    /* -- of the call: set as it begins ------------------------------------ */
    struct fair__nif *nif;
    struct fair__func *func;
    ErlNifPid owner;
    const struct fair__kind *kind;
    void (*main)(struct fair__task *t);     /* calls the body, on its stack */
    bool counted;               /* under a limit */
    const char *driver;         /* of a strand: whose callback it is */
    struct fair__callback *callback;        /* of a resource */

    /* -- anyone reads, while it is listed ---------------------------------- */
    bool listed;
    _Atomic bool is_process;    /* it is the body of a native process */
    _Atomic int state;          /* enum fair__state: fair__become moves it */
    _Atomic int target;         /* enum fair__where: of the next slice */
    fair__u64 since_ns;         /* of the call */
    struct fair__link link;     /* under the shard's lock */

    /* -- what keeps it while no thread has it ------------------------------ */
    struct fair__handle *handle;
    ERL_NIF_TERM handle_term;   /* in this slice; 0: there is none */
    bool pinned;                /* the runtime holds a reference to `handle`,
                                   since no term does */

    /* -- where it runs ------------------------------------------------------ */
    struct fair__thread *thread;
    struct fair__fstat *stat;
    ErlNifEnv *vm_env;          /* of the NIF or callback of the VM's that it is
                                   in, where one may send and select; NULL: in
                                   none */
    enum fair__where where;
    enum fair__exit exit;
    bool begun;                 /* the body has started */
    bool foreign;               /* pub.env is not of the author's library */
    void *priv;                 /* the author's; where pub.env has it not */

    /* -- the body ----------------------------------------------------------- */
    struct {
        void (*ring)(void *);   /* fair_alarm: called with `arg`, in a signal
                                   handler, when a slice is up; or NULL */
        void *arg;
    } alarm;
    enum {                      /* code of the author's runs for it that must
                                   not use it, maybe on another stack */
        AWAY_NOT, AWAY_CALL, AWAY_DEFER
    } away;
    bool over;                  /* it is, and what it holds is released in
                                   slices; its result is the only root */
    const char *lacked;         /* why the last getter answered 0, where it is
                                   not the argument's fault */
    const char *error;          /* of X_RAISE: {fairnif, {error, Function}}, or
                                   overloaded */
    ERL_NIF_TERM result;

    struct fair__slice slice;
    struct fair__wait wait;
    struct fair__ask ask;
    struct fair__own own;
    struct fair__cancel cancel;
    struct fair__hold hold;
    ERL_NIF_TERM inline_argv[FAIR__INLINE_ARGS];    /* for `own.argv` */
};

#ifdef FAIRNIF_ASSERT
/* Ends the VM where the table has no such move, or what it says of the new state
 * is not so. */
FAIR_HIDDEN void fair__assert_move(const struct fair__task *t, int to);
#endif

/* The only way from one state to another; to stay is no move.  By the thread
 * that is at the task; where none is, under the waiting lock or by who has the
 * pending value or the scheduled NIF. */
static inline void fair__become(struct fair__task *t, enum fair__state to)
{
#ifdef FAIRNIF_ASSERT
    if (GET(t->state) != (int)to)
        fair__assert_move(t, (int)to);
#endif
    SET(t->state, to);
}

/* The body is to return.  A pause would lose the exception. */
static inline bool fair__has_raised(const struct fair__task *t)
{
    return t->ask.raised
        || (t->pub.env && enif_has_pending_exception(t->pub.env, NULL));
}

/* A block of memory weighs as one that is small does, about 25 ns, and more for
 * the pages that go back to the system. */
static inline unsigned fair__weight(size_t bytes)
{
    size_t weight = 1 + bytes / 2048;

    return weight < INT_MAX / 2 ? (unsigned)weight : INT_MAX / 2;
}

/* Once its body has begun it runs by itself, on the pool.  Of any task that
 * has not ended, at any time. */
static inline bool fair__is_threaded(const struct fair__task *t)
{
    return fair__modes[t->nif->mode].start == W_THREAD;
}

static inline bool fair__end_is_work(const struct fair__task *t)
{
    return t->hold.weight > FAIR__END_IS_WORK;
}

static inline struct fair__task *fair__of(fair_task *pub)
{
    return (struct fair__task *)pub;    /* its first member */
}

/* By others: for what it holds, or the memory that it frees. */
static inline bool fair__is_waited_for(const struct fair__task *t)
{
    return t->hold.mutexes || t->callback;
}

static inline struct fair__task *fair__task_of(struct fair__job *job)
{
    return (void *)((char *)job - offsetof(struct fair__task, wait.job));
}

#endif
