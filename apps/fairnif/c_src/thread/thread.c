/*
 * thread.c - what the runtime knows of each scheduler thread.
 *
 * A thread's record is made at its first fair call and lives as long as the
 * VM.  There is no thread-local destructor: at halt such code would run while
 * dirty schedulers are still at work.
 */
#include <stdlib.h>

#include "thread/thread.h"

#include "base/os.h"

/* A pointer fits into what glibc keeps for libraries loaded later, and is then
 * read like a static one; also by a signal handler.  Other C libraries keep
 * nothing, and some refuse such a library. */
#if defined(__GLIBC__)
#  define AT_HAND __attribute__((tls_model("initial-exec")))
#else
#  define AT_HAND
#endif
static _Thread_local AT_HAND struct fair__thread *self;
static struct fair__thread *_Atomic threads;

/* Of a thread, whatever the system's default. */
enum { STACK_KIB = 8 * 1024 };

/* Without memory for the options its stack is what the system gives. */
int fair__thread_create(char *name, ErlNifTid *tid, void *(*main)(void *),
                        void *arg)
{
    ErlNifThreadOpts *opts = enif_thread_opts_create(name);
    int error;

    if (opts)
        opts->suggested_stack_size = STACK_KIB / (int)sizeof(void *);
    error = enif_thread_create(name, tid, main, arg, opts);
    if (opts)
        enif_thread_opts_destroy(opts);
    return error;
}

static enum fair__where where_of_thread(void)
{
    switch (enif_thread_type()) {
    case ERL_NIF_THR_NORMAL_SCHEDULER:
        return W_NORMAL;
    case ERL_NIF_THR_DIRTY_CPU_SCHEDULER:
        return W_DIRTY_CPU;
    case ERL_NIF_THR_DIRTY_IO_SCHEDULER:
        return W_DIRTY_IO;
    default:
        return W_OTHER;
    }
}

static __attribute__((noinline, cold)) struct fair__thread *new_thread(void)
{
    struct fair__thread *th = calloc(1, sizeof *th);

    if (!th)
        return NULL;
    th->where = where_of_thread();
    th->number = fair__thread_number();
    th->tid = fair__thread_id();
    fair__thread_stack(&th->stack_low, &th->stack_size);
    th->seed = (uint32_t)th->tid * 2654435761u | 1;
    th->next = atomic_load(&threads);
    while (!atomic_compare_exchange_weak(&threads, &th->next, th))
        ;
    self = th;
    return th;
}

/* NULL when out of memory.  Only to be called on a scheduler's own stack: on
 * a task's the compiler might keep the address of `self` across a pause. */
struct fair__thread *fair__self(void)
{
    struct fair__thread *th = self;

    return fair_likely(th != NULL) ? th : new_thread();
}

/* Makes a record that no thread uses any more this thread's own, a thread of
 * the pool; NULL: a new one.  NULL when out of memory. */
struct fair__thread *fair__thread_adopt(struct fair__thread *th)
{
    if (!th && !(th = new_thread()))
        return NULL;
    th->where = W_THREAD;
    th->number = fair__thread_number();
    th->tid = fair__thread_id();
    fair__thread_stack(&th->stack_low, &th->stack_size);
    self = th;
    return th;
}

struct fair__thread *fair__threads(void)
{
    return atomic_load_explicit(&threads, memory_order_acquire);
}

/* NULL where it has no record; async-signal-safe on threads that have run a
 * task. */
struct fair__thread *fair__this_thread(void)
{
    return self;
}

/* The task this thread runs, or NULL; as safe. */
struct fair__task *fair__current_task(void)
{
    return self ? self->current : NULL;
}

/* -- counters ------------------------------------------------------------- */

/* The array that is replaced stays: another thread may be reading it, and all
 * the old ones together are smaller than the new one. */
static __attribute__((noinline, cold)) struct fair__fstat *
new_stat(struct fair__thread *th, struct fair__func *func)
{
    struct fair__fstat *_Atomic *stats = GET(th->stats);
    unsigned old_size = GET(th->stats_size), size = old_size;
    struct fair__fstat *st = calloc(1, sizeof *st);

    if (!st)
        return NULL;
    if (func->index >= size) {
        struct fair__fstat *_Atomic *bigger;

        for (size = size ? size : 32; size <= func->index; size *= 2)
            ;
        bigger = calloc(size, sizeof *bigger);
        if (!bigger) {
            free(st);
            return NULL;
        }
        for (unsigned i = 0; i < old_size; i++)
            SET(bigger[i], GET(stats[i]));
        atomic_store_explicit(&th->stats, bigger, memory_order_release);
        atomic_store_explicit(&th->stats_size, size, memory_order_release);
        stats = bigger;
    }
    st->countdown = 1;
    atomic_store_explicit(&stats[func->index], st, memory_order_release);
    return st;
}

/* This thread's counters of a function; NULL when out of memory. */
struct fair__fstat *fair__stat(struct fair__thread *th,
                               struct fair__func *func)
{
    if (fair_likely(func->index < GET(th->stats_size))) {
        struct fair__fstat *st = GET(GET(th->stats)[func->index]);

        if (fair_likely(st != NULL))
            return st;
    }
    return new_stat(th, func);
}

/* Another thread's counters of a function, for reading; NULL when it has
 * none. */
const struct fair__fstat *fair__stat_of(const struct fair__thread *th,
                                        unsigned index)
{
    unsigned size = atomic_load_explicit(&th->stats_size,
                                         memory_order_acquire);

    if (index >= size)
        return NULL;
    return atomic_load_explicit(
        &atomic_load_explicit(&th->stats, memory_order_acquire)[index],
        memory_order_acquire);
}

/* -- what it runs ------------------------------------------------------------ */

/* A seqlock with one writer.  The two fences are free on x86-64. */
void fair__slot_enter(struct fair__thread *th, struct fair__func *func,
                      uint64_t since, uint64_t yields, ERL_NIF_TERM owner)
{
    struct fair__slot *slot = &th->slot;
    uint32_t seq = GET(slot->seq);

    SET(slot->seq, seq + 1);
    atomic_thread_fence(memory_order_release);
    SET(slot->func, func);
    SET(slot->since_ns, since);
    SET(slot->yields, yields);
    SET(slot->owner, owner);
    atomic_store_explicit(&slot->seq, seq + 2, memory_order_release);
}

void fair__slot_leave(struct fair__thread *th)
{
    struct fair__slot *slot = &th->slot;
    uint32_t seq = GET(slot->seq);

    SET(slot->seq, seq + 1);
    atomic_thread_fence(memory_order_release);
    SET(slot->func, NULL);
    atomic_store_explicit(&slot->seq, seq + 2, memory_order_release);
}

/* What a thread runs, read without waiting for it; false after a few attempts
 * that met a change: it then runs short calls one after the other. */
bool fair__slot_read(const struct fair__thread *th, struct fair__func **func,
                     uint64_t *since, uint64_t *yields, ERL_NIF_TERM *owner)
{
    const struct fair__slot *slot = &th->slot;

    for (int attempt = 0; attempt < 8; attempt++) {
        uint32_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);

        *func = GET(slot->func);
        *since = GET(slot->since_ns);
        *yields = GET(slot->yields);
        *owner = GET(slot->owner);
        atomic_thread_fence(memory_order_acquire);
        if (seq % 2 == 0 && GET(slot->seq) == seq)
            return *func != NULL;
    }
    return false;
}

/* What each thread runs, as many as fit; how many.  `item_size` is the caller's
 * struct, which may be shorter than ours. */
unsigned fair__running(struct fair__running *list, size_t item_size,
                       unsigned most)
{
    unsigned count = 0;

    for (struct fair__thread *th = fair__threads(); th && count < most;
         th = th->next) {
        struct fair__running r;
        struct fair__func *func;

        memset(&r, 0, sizeof r);
        if (!fair__slot_read(th, &func, &r.since_ns, &r.yields, &r.owner.pid))
            continue;
        r.where = th->where;
        r.number = th->number;
        r.tid = th->tid;
        r.module = func->module;
        r.name = func->name;
        r.arity = func->arity;
        memcpy((char *)list + count++ * item_size, &r,
               item_size < sizeof r ? item_size : sizeof r);
    }
    return count;
}
