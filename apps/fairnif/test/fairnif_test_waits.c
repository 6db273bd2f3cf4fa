/*
 * fairnif_test_waits.c - an author's library whose calls wait: the bodies of
 * test_bodies.h on threads of the pool and after a wait, and bodies that wait
 * in every way there is.
 *
 * Counts in struct probe only, which outlives it.
 */
#include "test_bodies.h"

static void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

/* -- every body after a wait: in a NIF of module fairnif from then on -------- */

static void nothing_at_all(void *arg)
{
    (void)arg;
}

#define AFTER_WAIT(NAME)                                                    \
    static ERL_NIF_TERM NAME##_after_wait(fair_task *t)                     \
    {                                                                       \
        fair_offload(t, FAIR_THREADED, 0, nothing_at_all, NULL);               \
        return NAME(t);                                                     \
    }
AFTER_WAIT(spin) AFTER_WAIT(never_tick) AFTER_WAIT(ticks) AFTER_WAIT(echo)
AFTER_WAIT(kinds) AFTER_WAIT(walk) AFTER_WAIT(build) AFTER_WAIT(reverse)
AFTER_WAIT(bytes) AFTER_WAIT(text) AFTER_WAIT(flip) AFTER_WAIT(garbage)
AFTER_WAIT(fail) AFTER_WAIT(object) AFTER_WAIT(move) AFTER_WAIT(call)
AFTER_WAIT(blocking) AFTER_WAIT(roots)

/* -- fair_offload in FAIR_THREADED --------------------------------------------- */

struct work {
    struct slot *slot;
    long ms;
    int thread;
    char *memory;               /* the task's: there until the function ends */
};

static void do_work(void *arg)
{
    struct work *w = arg;

    w->thread = enif_thread_type();
    for (long left = w->ms; left > 0 && !w->slot->finish; left -= 100)
        sleep_ms(left < 100 ? left : 100);
    memset(w->memory, 3, 1000);
    w->slot->work_ns = probe_now();
    w->slot->works++;
}

/* offload(Slot, Ms, Term) -> {Term, ThreadType}; over before where the slot
 * says so */
static ERL_NIF_TERM offload(fair_task *t)
{
    struct work w = {0};            /* on the task's own stack */
    unsigned ms, root;

    if (!fair_get_uint(t, fair_arg(t, 1), &ms) || ms > 60000
        || !(w.slot = count_ends(t, 0)))
        return fair_badarg(t);
    w.ms = ms;
    w.memory = fair_alloc(t, 1000);
    root = fair_root_new(t, fair_arg(t, 2));
    fair_offload(t, FAIR_THREADED, 0, do_work, &w);
    if (w.memory[999] != 3
        || !enif_is_identical(fair_arg(t, 2), fair_root_get(t, root)))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), fair_arg(t, 2),
                            enif_make_int(fair_env(t), w.thread));
}

/* offload_often(N) -> N: as many waits in one call */
static ERL_NIF_TERM offload_often(fair_task *t)
{
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++)
        fair_offload(t, FAIR_THREADED, 0, nothing_at_all, NULL);
    return fair_arg(t, 0);
}

/* -- locks ------------------------------------------------------------------ */

enum { LOCKS = 8 };
static fair_mutex locks[LOCKS] = {
    FAIR_MUTEX_INIT, FAIR_MUTEX_INIT, FAIR_MUTEX_INIT, FAIR_MUTEX_INIT,
    FAIR_MUTEX_INIT, FAIR_MUTEX_INIT, FAIR_MUTEX_INIT, FAIR_MUTEX_INIT
};
static long inside[LOCKS];          /* who holds the lock may write it */
static _Atomic long order;

static fair_mutex *get_lock(fair_task *t, unsigned i, unsigned *n)
{
    return fair_get_uint(t, fair_arg(t, i), n) && *n < LOCKS ? &locks[*n]
        : NULL;
}

/* locked(Slot, Lock, Us, Term) -> {Nth, Term}: who comes Nth holds the lock
 * for Us of work (0: until the slot's finish), ticking; `raise' as Term lets
 * the call fail with the lock held */
static ERL_NIF_TERM locked(fair_task *t)
{
    unsigned n;
    unsigned long us;
    fair_mutex *m = get_lock(t, 1, &n);
    struct slot *s;
    char name[8];
    long end, nth;

    if (!m || !fair_get_ulong(t, fair_arg(t, 2), &us)
        || !(s = count_ends(t, 0)))
        return fair_badarg(t);
    fair_mutex_lock(t, m);
    nth = ++order;
    if (inside[n]++)
        s->disorder += 1000;
    end = us ? probe_now() + (long)us * 1000 : INT64_MAX;
    while (!s->finish && probe_now() < end) {
        work(1000);
        fair_tick(t, 1000);
    }
    inside[n]--;
    if (fair_get_atom(t, fair_arg(t, 3), name, sizeof name, FAIR_UTF8)
        && strcmp(name, "raise") == 0)
        return fair_raise(t, fair_arg(t, 3));
    if (!fair_mutex_unlock(t, m) || fair_mutex_unlock(t, m))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), enif_make_long(fair_env(t), nth),
                            fair_arg(t, 3));
}

/* sleep(Ms) -> ok: holds nothing at all */
static ERL_NIF_TERM sleeps(fair_task *t)
{
    unsigned ms;

    if (!fair_get_uint(t, fair_arg(t, 0), &ms))
        return fair_badarg(t);
    fair_sleep(t, (int)ms);
    return ok(t);
}

/* -- the library -------------------------------------------------------------- */

/* info: {probe, Address} */
static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    const ERL_NIF_TERM *elems;
    int arity;
    ErlNifUInt64 address;

    (void)priv;
    if (!enif_get_tuple(env, info, &arity, &elems) || arity != 2
        || !enif_get_uint64(env, elems[1], &address))
        return 1;
    probe = (struct probe *)(uintptr_t)address;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

#define BOTH(NAME, ARITY)                                                   \
    FAIR_NIF(#NAME "_threaded_nif", ARITY, NAME, FAIR_THREADED),            \
    FAIR_NIF(#NAME "_waited_nif", ARITY, NAME##_after_wait,                 \
             FAIR_AUTO | FAIR_MAY_WAIT)

static const fair_options at_most_two = {.body = spin, .max_tasks = 2};

static ErlNifFunc nifs[] = {
    BOTH(spin, 3), BOTH(never_tick, 1), BOTH(ticks, 2), BOTH(echo, 1),
    BOTH(kinds, 1), BOTH(walk, 1), BOTH(build, 1), BOTH(reverse, 1),
    BOTH(bytes, 1), BOTH(text, 1), BOTH(flip, 1), BOTH(garbage, 2),
    BOTH(fail, 1), BOTH(object, 2), BOTH(move, 2), BOTH(call, 2),
    BOTH(blocking, 1), BOTH(roots, 2),
    FAIR_NIF("offload_nif", 3, offload, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("deep_threaded_nif", 1, deep, FAIR_THREADED),
    FAIR_NIF("offload_threaded_nif", 3, offload, FAIR_THREADED),
    FAIR_NIF("offload_often_nif", 1, offload_often, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("locked_nif", 4, locked, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("locked_dirty_nif", 4, locked,
             FAIR_DIRTY_CPU | FAIR_MAY_WAIT),
    FAIR_NIF("locked_threaded_nif", 4, locked, FAIR_THREADED),
    FAIR_NIF("sleep_nif", 1, sleeps, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("sleep_threaded_nif", 1, sleeps, FAIR_THREADED),
    FAIR_NIF_OPTIONS("limited_nif", 3, &at_most_two,
                     FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF_OPTIONS("limited_threaded_nif", 3, &at_most_two, FAIR_THREADED),
};

FAIR_NIF_INIT(fairnif_test_waits, nifs, load, upgrade, NULL)
