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
#include "task/state.h"
#include "thread/pool.h"

/* Why the task's stack was left. */
enum fair__exit {
    X_DONE, X_PAUSE,
    X_WAIT,                     /* for `waits_for` */
    X_RAISE,                    /* of the runtime's: `error` says what */
    X_DROP
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
};

struct fair__block;             /* term/hold.c */
struct fair__held;
struct fair__seen;              /* task/debug.c */
struct fair__fd;                /* wait/waiters.h */
struct fair__fd_use;            /* wait/fd.h */
struct fair__escape;            /* task/cancel.h */
struct fair__pending;           /* wait/wake.h */
struct fair__callback;          /* life/resource.c */

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
#endif
#ifdef FAIR_VALGRIND
    unsigned stack_id;
#endif
};

/* Whoever is at a task may touch all of it: the thread that runs it, or its
 * function; where none does, who has its scheduled NIF or, locked, its pending
 * value (of a request: not locked).  Each part says who else may. */
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
    bool counted;               /* under a limit */
    void (*main)(struct fair__task *t);     /* calls the body, on its stack */

    /* -- anyone reads, while it is listed ---------------------------------- */
    bool listed;
    _Atomic int state;          /* enum fair__state: fair__become moves it */
    _Atomic int target;         /* enum fair__where: of the next slice */
    fair__u64 since_ns;         /* of the call */
    _Atomic bool is_process;    /* it is the body of a native process */
    struct fair__task *prev, *next;     /* under the shard's lock */

    /* -- what keeps it while nobody is at it -------------------------------- */
    struct fair__handle *handle;
    ERL_NIF_TERM handle_term;   /* in this slice; 0: there is none */
    bool pinned;                /* the runtime holds a reference to `handle`,
                                   since no term does */
    struct fair__handle *spare; /* FAIR_UNWINDS: in the place of `handle`, when
                                   that has gone with the caller */

    /* -- the slice ---------------------------------------------------------- */
    struct fair__thread *thread;
    struct fair__fstat *stat;
    enum fair__where where;
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
    uint64_t call_ns;           /* of the last fair_call; it ended at `now` */
    void (*ring)(void *);       /* fair_alarm: called with ring_arg, in a signal
                                   handler, when a slice is up; or NULL */
    void *ring_arg;
    bool away;                  /* code of the author's runs for it that must
                                   not use it, maybe on another stack */
    unsigned told;              /* enum fair__rule, as bits: those reported */
    const char *lacked;         /* why the last getter answered 0, where it is
                                   not the argument's fault */
    const char *error;          /* of X_RAISE: {fairnif, {error, Function}},
                                   or overloaded */

    /* -- FAIR_UNWINDS --------------------------------------------------------- */
    struct fair__escape *escape;    /* out of the runtime's function that the
                                       body has called */
    fair__u64 cancelled_ns;     /* when; 0: is not.  Anyone reads */

    /* -- waiting: under the waiting lock, but for what the body gives, and for
          a request, which only its caller sees ----------------------------- */
    struct fair__pending *pending;
    struct fair__job job;       /* for T_POOL */
    struct fair__task *wait_prev, *wait_next;   /* in the list of its state; in
                                   fair_wait under the descriptors' lock */
    fair_mutex *holds;
    _Atomic bool unwanted;      /* nobody wants the result; read without it */
    enum fair__state waits_for; /* of X_WAIT: the state after T_PARKS */
    uint64_t deadline_ns;       /* 0: none */
    bool timed_out;
    void (*work)(void *);       /* T_WORKS calls it, with work_arg */
    void *work_arg;
    fair_mutex *wants;          /* of T_LOCK */
    ERL_NIF_TERM asked;         /* of T_ASKS: of the slice that ended with it */
    unsigned answer_root;       /* of T_ASKS; FAIR__NO_ROOT: none is wanted */
    struct fair__pending *asked_by;     /* of the slice that an answer began: what
                                   it was asked by, and its term.  The next
                                   request, where it ends that slice, is too */
    ERL_NIF_TERM asked_by_term;
    ERL_NIF_TERM outbox;        /* what was sent in this slice: a list, or 0 */
    struct fair__fd_wait {      /* of T_FD */
        struct fair__fd *fd;    /* NULL: for none */
        int number;             /* as the body knows it */
        unsigned events;        /* FAIR_READ, FAIR_WRITE */
        unsigned selected;      /* of them: the VM was asked for a message */
        bool told;              /* one was sent that is not the VM's; locked */
        int error;              /* of the VM's selecting: an errno */
    } waits;

    /* -- FAIR_THREADED: the call's own environment --------------------------- */
    ErlNifEnv *own_env;
    ERL_NIF_TERM *own_argv;
    ERL_NIF_TERM inline_argv[FAIR__INLINE_ARGS];
    bool foreign;               /* pub.env is not of the author's library */
    void *priv;                 /* the author's; where pub.env has it not */

    /* -- a resource's callback, which is no call of a process's --------------- */
    struct fair__callback *callback;    /* NULL: it is one */
    ErlNifEnv *call_env;        /* the VM's, while it is in the VM's call */

    /* -- what goes with the task --------------------------------------------- */
    ERL_NIF_TERM result;
    ERL_NIF_TERM inline_roots[FAIR__INLINE_ROOTS];
    ERL_NIF_TERM *roots;
    unsigned roots_used, roots_size;
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
    struct fair__fd_use *fds;
    struct fair__seen *seen;    /* debug: terms handed out, see debug.c */
};

/* The only way from one state to another; to stay is no move.  By the thread
 * that is at the task; where none is, under the waiting lock or by who has the
 * pending value or the scheduled NIF. */
static inline void fair__become(struct fair__task *t, enum fair__state to)
{
#ifdef FAIRNIF_ASSERT
    if (GET(t->state) != (int)to)
        fair__assert_move(GET(t->state), (int)to);
#endif
    SET(t->state, to);
}

static inline struct fair__task *fair__of(fair_task *pub)
{
    return (struct fair__task *)pub;    /* its first member */
}

#endif
