/*
 * base.h - what every file of the runtime knows: what it is built with, limits,
 * plain atomics.
 *
 * The runtime's folders are layers: base, thread, task, term, wait, life,
 * resource, nif.  A file includes headers of its own folder and of those before
 * it, never in a circle (tools/check_layers).
 *
 * What must never be done in any of them: keep a pointer into an author's
 * library longer than a resource object of that library's task type lives;
 * register anything to run at exit; read a thread-local on a task's stack.
 */
#ifndef FAIR_BASE_H
#define FAIR_BASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FAIR__RUNTIME
#include "fairnif.h"

/* Which file of task/arch/ this is built with.  Without one that can switch stacks
 * every mode is a plain dirty NIF: see task/arch/none.c. */
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
    FAIR__SLICE_MAX_US = 1000000,
    FAIR__CLASSES = 13,             /* stack sizes: powers of two, MIN..MAX */
    FAIR__CLASS_DEFAULT = 3,
    FAIR__WARM = 16, FAIR__COLD = 64, /* idle stacks kept for all threads, of
                                       each size; only the cold are trimmed */
    FAIR__WARM_BYTES = 64 * 1024 * 1024,    /* of all warm ones together */
    FAIR__TRIM_IN_PLACE = 256 * 1024,       /* stacks: 64 pages, 10 us */
    FAIR__CACHED = 4,               /* idle default stacks kept per thread */
    FAIR__INLINE_BINS = 4,
    FAIR__INLINE_DEFERS = 4,
    FAIR__INLINE_ARGS = 4,
    FAIR__SMALL_BIN = 64,           /* bytes of a binary that lie in its record */
    FAIR__SUB_BIN = 48,             /* bytes of heap for a sub-binary */
    FAIR__SHARDS = 16,
    FAIR__DEBTORS = 16,             /* per thread */
    FAIR__TURNS_MOST = 1000,        /* that a process owes at most: 25 ms */
    FAIR__INLINE_ROOTS = 12,        /* arguments of their own at a pause */
    FAIR__OCTAVES = 64,             /* of a number of units */
    FAIR__END_IS_WORK = 512,        /* what a task holds, by fair__weight: more
                                       is released in slices, or on the pool;
                                       half a slice */
    FAIR__BUCKETS = 1 + 20 * 8      /* under 1 us; 8 to an octave up to 1 s */
};

_Static_assert(FAIR__STACK_MIN << FAIR__CLASS_DEFAULT == FAIR__STACK_DEFAULT,
               "the class of the default size");

#define FAIR__NS_PER_US 1000u
#define FAIR__NS_PER_S 1000000000u
#define FAIR__BOGUS_UNITS ((uint64_t)1 << 31)   /* more in one tick: a bug */

/* A NIF. */
typedef ERL_NIF_TERM fair__nif_function(ErlNifEnv *env, int argc,
                                        const ERL_NIF_TERM argv[]);

/* Kinds of threads. */
enum fair__where {
    W_NORMAL, W_DIRTY_CPU, W_DIRTY_IO,
    W_THREAD,                   /* one of the pool's */
    W_OTHER
};

#endif
