/*
 * low.c - low threads: authors' code that computes waits behind the schedulers.
 *
 *   thread of the pool                        its low thread
 *   fair__low_run --------- go ------------>  fn(arg): the author's
 *       | waits                                  |
 *   ask(arg) <------------- back -----------  fair__at_par
 *       '------------------ go ------------>     |
 *   continues <------------ back -----------  returns
 *
 * One of the two runs at a time, so what either writes the other may read.  They
 * meet at semaphores, not at a lock: a thread of low priority that is preempted
 * with a lock in its hand would be waited for.
 *
 * An idle low thread leaves after a while; `is` decides between that and work that
 * comes just then.
 */
#define _GNU_SOURCE
#include "thread/low.h"

#include "base/config.h"
#include "base/locks.h"
#include "thread/timer.h"

#if defined(__linux__)

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

enum {
    ALTERNATE_STACK = 32 * 1024,
    IDLE_S = 10
};

struct fair__low {
    sem_t go, back;
    _Atomic int is;                 /* of these */
    enum { NONE, IDLE, TAKEN, LEFT } unused;
    _Atomic bool starts;            /* and no code computes yet, but will */
    _Atomic bool runs;              /* the author's code, or is about to */
    _Atomic int os_id;
    int nice;                       /* `pool_nice` as it was when it began */
    unsigned number;                /* as in the name of the pool's thread */
    ErlNifTid tid;
    struct fair__thread *record;    /* NULL: without memory */
    void (*fn)(void *), *arg;
    void (*ask)(void *), *ask_arg;  /* of the low thread, or NULL */
    struct fair__used used;         /* by the last */
};

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;                           /* a signal came */
}

/* -- the low thread --------------------------------------------------------- */

/* False when nothing came for long, or it is to leave. */
static bool work_comes(struct fair__low *low)
{
    struct timespec until;
    int idle = IDLE;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_S;
    while (sem_timedwait(&low->go, &until) != 0)
        if (errno == ETIMEDOUT) {
            if (atomic_compare_exchange_strong(&low->is, &idle, LEFT))
                return false;
            wait_for(&low->go);     /* a job came just now */
            break;
        }
    return atomic_load(&low->is) != LEFT;
}

static void run_author(struct fair__low *low)
{
    struct fair__used before, after;
    bool known = fair__thread_used(&before);

    low->fn(low->arg);
    low->used = known && fair__thread_used(&after)
        ? fair__used_since(after, before) : (struct fair__used){0};
}

static void *low_main(void *arg)
{
    struct fair__low *low = arg;
    char alternate[ALTERNATE_STACK];

    fair__os_alternate_stack(alternate, sizeof alternate);
    fair__os_lower(low->nice);
    low->record = fair__thread_adopt(low->record);
    SET(low->os_id, fair__thread_id());
    if (low->record) {
        SET(low->record->low, low);
        low->record->is_low = true;
    }
    fair__assert_no_locks();
    sem_post(&low->back);
    while (work_comes(low)) {
        run_author(low);
        SET(low->runs, false);
        sem_post(&low->back);
    }
    fair__timer_forget(fair__this_thread());
    /* What is destroyed as it ends finds no thread to pass anything to. */
    if (low->record)
        low->record->is_low = false;
    fair__os_alternate_stack(NULL, 0);
    return NULL;
}

/* -- the pool's thread ------------------------------------------------------ */

static struct fair__low *new_low(struct fair__thread *th)
{
    struct fair__low *low = calloc(1, sizeof *low);

    if (!low)
        return NULL;
    sem_init(&low->go, 0, 0);
    sem_init(&low->back, 0, 0);
    low->number = th->number;
    atomic_store_explicit(&th->low, low, memory_order_release);
    return low;
}

static bool create(struct fair__low *low)
{
    char name[24];

    snprintf(name, sizeof name, "fairnif_%u_low", low->number);
    return fair__thread_create(name, &low->tid, low_main, low) == 0;
}

static bool start(struct fair__low *low, int nice)
{
    bool is_there;

    SET(low->starts, true);
    /* It is at its last line. */
    if (atomic_load(&low->is) == LEFT)
        enif_thread_join(low->tid, NULL);
    atomic_store(&low->is, NONE);
    low->nice = nice;
    is_there = create(low);
    if (is_there)
        wait_for(&low->back);
    SET(low->starts, false);
    /* That took a while: nothing of an author's begins during a halt. */
    if (fair_unlikely(GET(fair__config.halts)))
        fair__os_stay();
    return is_there;
}

struct fair__low *fair__low_get(struct fair__thread *th)
{
    struct fair__low *low = GET(th->low);
    int idle = IDLE, nice = (int)GET(fair__config.pool_nice);

    /* Without tasks a body cannot leave it for a lock. */
    if (!FAIR__TASKS || nice == 0 || th->is_low
        || (!low && !(low = new_low(th))))
        return NULL;
    if (low->nice != nice)
        fair__low_leave(th);    /* another one has that */
    /* In a destructor that its low thread passed back it is taken. */
    if (atomic_load(&low->is) == TAKEN
        || (!atomic_compare_exchange_strong(&low->is, &idle, TAKEN)
            && !start(low, nice)))
        return NULL;
    atomic_store(&low->is, TAKEN);
    if (!low->record) {
        atomic_store(&low->is, IDLE);
        return NULL;
    }
    return low;
}

/* The thread of the pool leaves.  The next one in its place joins the other. */
void fair__low_leave(const struct fair__thread *th)
{
    struct fair__low *low = th ? GET(th->low) : NULL;
    int idle = IDLE;

    if (low && atomic_compare_exchange_strong(&low->is, &idle, LEFT))
        sem_post(&low->go);
}

struct fair__thread *fair__low_record(struct fair__low *low)
{
    return low->record;
}

void fair__low_run(struct fair__low *low, void (*fn)(void *), void *arg)
{
    long asks = 0;

    low->fn = fn;
    low->arg = arg;
    atomic_store_explicit(&low->runs, true, memory_order_release);
    sem_post(&low->go);
    for (;;) {
        void (*ask)(void *);

        wait_for(&low->back);
        ask = low->ask;
        if (!ask)
            break;
        low->ask = NULL;
        ask(low->ask_arg);
        asks++;
        sem_post(&low->go);
    }
    /* It slept each time, but the author's code did not wait. */
    low->used.sleeps -= asks < low->used.sleeps ? asks : low->used.sleeps;
    atomic_store(&low->is, IDLE);
}

struct fair__used fair__low_used(const struct fair__low *low)
{
    return low->used;
}

int fair__low_id(const struct fair__thread *th, int os_id)
{
    const struct fair__low *low =
        th ? atomic_load_explicit(&th->low, memory_order_acquire) : NULL;

    if (low && GET(low->starts))
        return -1;
    return low && atomic_load_explicit(&low->runs, memory_order_acquire)
        ? GET(low->os_id) : os_id;
}

/* Not inlined, as the next one: on a task's stack, after which thread it was
 * before might be taken for granted. */
__attribute__((noinline)) bool fair__at_low(void)
{
    const struct fair__thread *th = fair__this_thread();

    return th && th->is_low;
}

__attribute__((noinline)) void fair__at_par(void (*fn)(void *), void *arg)
{
    const struct fair__thread *th = fair__this_thread();
    struct fair__low *low;

    if (fair_likely(!th || !th->is_low)) {
        fn(arg);
        return;
    }
    low = GET(th->low);
    low->ask_arg = arg;
    low->ask = fn;
    sem_post(&low->back);
    wait_for(&low->go);
}

#else

struct fair__low *fair__low_get(struct fair__thread *th)
{
    (void)th;
    return NULL;
}

void fair__low_leave(const struct fair__thread *th) { (void)th; }

struct fair__thread *fair__low_record(struct fair__low *low)
{
    (void)low;
    return NULL;
}

void fair__low_run(struct fair__low *low, void (*fn)(void *), void *arg)
{
    (void)low;
    fn(arg);
}

struct fair__used fair__low_used(const struct fair__low *low)
{
    (void)low;
    return (struct fair__used){0};
}

int fair__low_id(const struct fair__thread *th, int os_id)
{
    (void)th;
    return os_id;
}

bool fair__at_low(void) { return false; }
void fair__at_par(void (*fn)(void *), void *arg) { fn(arg); }

#endif

struct destruction {
    void (*dtor)(ErlNifEnv *env, void *obj);
    ErlNifEnv *env;
    void *obj;
};

static void call_dtor(void *arg)
{
    struct destruction *d = arg;

    d->dtor(d->env, d->obj);
}

void fair__dtor_at_par(void (*dtor)(ErlNifEnv *env, void *obj),
                       ErlNifEnv *env, void *obj)
{
    struct destruction d = {dtor, env, obj};

    fair__at_par(call_dtor, &d);
}
