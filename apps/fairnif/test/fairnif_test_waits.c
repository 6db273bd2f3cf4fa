/*
 * fairnif_test_waits.c - an author's library whose calls wait: the bodies of
 * test_bodies.h on threads of the pool and after a wait, and bodies that wait
 * in every way there is.
 *
 * Counts in struct probe only, which outlives it.
 */
#include "test_bodies.h"

struct priv {
    long tag;
};
enum { TAG = 4711 };

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
        fair_call(t, FAIR_THREADED, 0, nothing_at_all, NULL);               \
        return NAME(t);                                                     \
    }
AFTER_WAIT(spin) AFTER_WAIT(never_tick) AFTER_WAIT(ticks) AFTER_WAIT(echo)
AFTER_WAIT(kinds) AFTER_WAIT(walk) AFTER_WAIT(build) AFTER_WAIT(reverse)
AFTER_WAIT(bytes) AFTER_WAIT(text) AFTER_WAIT(flip) AFTER_WAIT(garbage)
AFTER_WAIT(fail) AFTER_WAIT(object) AFTER_WAIT(move) AFTER_WAIT(call)
AFTER_WAIT(blocking) AFTER_WAIT(memory) AFTER_WAIT(undefer)
AFTER_WAIT(harmonic) AFTER_WAIT(roots)

/* -- what the VM says of the caller ------------------------------------------ */

static ERL_NIF_TERM bool_term(ErlNifEnv *env, int value)
{
    return enif_make_atom(env, value ? "true" : "false");
}

/* {Tag, Self, Caller, Alive, Sent, Now}; sends {hello, Self} to argument 0, in
 * an environment of its own and without one */
static ERL_NIF_TERM about(fair_task *t)
{
    struct priv *priv = enif_priv_data(fair_env(t));
    ErlNifPid self, caller, to;
    ErlNifEnv *env = fair_env(t), *own = enif_alloc_env();
    int sent;

    if (!enif_get_local_pid(fair_env(t), fair_arg(t, 0), &to))
        return fair_badarg(t);
    if (!enif_self(env, &self))
        return fair_badarg(t);
    fair_caller(t, &caller);
    enif_consume_timeslice(env, 1);
    sent = enif_send(env, &to, own,
                     enif_make_tuple2(own, enif_make_atom(own, "hello"),
                                      enif_make_pid(own, &self)));
    enif_free_env(own);
    sent += enif_send(env, &to, NULL,
                      enif_make_tuple2(env, enif_make_atom(env, "hello"),
                                       enif_make_pid(env, &self)));
    return enif_make_tuple6(
        env, enif_make_long(env, priv ? priv->tag : 0),
        enif_make_pid(env, &self), enif_make_pid(env, &caller),
        bool_term(env, enif_is_current_process_alive(env)),
        enif_make_int(env, sent),
        enif_make_int64(env, enif_monotonic_time(ERL_NIF_NSEC)));
}
AFTER_WAIT(about)

struct clock {
    ErlNifTime units[4];
};

static void read_clock(void *arg)
{
    static const ErlNifTimeUnit units[] = {
        ERL_NIF_SEC, ERL_NIF_MSEC, ERL_NIF_USEC, ERL_NIF_NSEC
    };

    for (int i = 0; i < 4; i++)
        ((struct clock *)arg)->units[i] = enif_monotonic_time(units[i]);
}

/* clock() -> {Sec, Ms, Us, Ns}, as fair_call's function sees it */
static ERL_NIF_TERM clock_offloaded(fair_task *t)
{
    struct clock c;
    ErlNifEnv *env;

    fair_call(t, FAIR_THREADED, 0, read_clock, &c);
    env = fair_env(t);
    return enif_make_tuple4(env, enif_make_int64(env, c.units[0]),
                            enif_make_int64(env, c.units[1]),
                            enif_make_int64(env, c.units[2]),
                            enif_make_int64(env, c.units[3]));
}

/* -- fair_call in FAIR_THREADED --------------------------------------------- */

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
    root = fair_root(t, fair_arg(t, 2));
    fair_call(t, FAIR_THREADED, 0, do_work, &w);
    if (w.memory[999] != 3
        || !enif_is_identical(fair_arg(t, 2), fair_kept(t, root)))
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
        fair_call(t, FAIR_THREADED, 0, nothing_at_all, NULL);
    return fair_arg(t, 0);
}

/* first(Term) -> Term: awaited and never waits */
static ERL_NIF_TERM first_of(fair_task *t)
{
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
    if (fair_get_atom(t, fair_arg(t, 3), name, sizeof name)
        && strcmp(name, "raise") == 0)
        return fair_raise(t, fair_arg(t, 3));
    if (!fair_mutex_unlock(t, m) || fair_mutex_unlock(t, m))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), enif_make_long(fair_env(t), nth),
                            fair_arg(t, 3));
}

/* left(Lock): what a killed holder has left `inside' is forgotten */
static ERL_NIF_TERM left(fair_task *t)
{
    unsigned n;

    if (!get_lock(t, 0, &n))
        return fair_badarg(t);
    inside[n] = 0;
    return ok(t);
}

/* try(Lock) -> true | false: and lets go of it at the end, as every task does */
static ERL_NIF_TERM try_lock(fair_task *t)
{
    unsigned n;
    fair_mutex *m = get_lock(t, 0, &n);

    return m ? bool_term(fair_env(t), fair_mutex_trylock(t, m))
        : fair_badarg(t);
}

/* twice(Lock): waits for itself */
static ERL_NIF_TERM twice(fair_task *t)
{
    unsigned n;
    fair_mutex *m = get_lock(t, 0, &n);

    if (!m)
        return fair_badarg(t);
    fair_mutex_lock(t, m);
    fair_mutex_lock(t, m);
    return ok(t);
}

/* many_locks(N) -> N: takes all, lets go of them in another order */
static ERL_NIF_TERM many_locks(fair_task *t)
{
    for (int i = 0; i < LOCKS; i++) {
        fair_mutex_lock(t, &locks[i]);
        fair_tick(t, 1);
    }
    for (int i = 0; i < LOCKS; i++) {
        if (!fair_mutex_unlock(t, &locks[(3 * i + 5) % LOCKS]))
            return fair_badarg(t);
        fair_tick(t, 1);
    }
    return ok(t);
}

/* sleep(Ms) -> ok: holds nothing at all */
static ERL_NIF_TERM sleeps(fair_task *t)
{
    unsigned ms;

    if (!fair_get_uint(t, fair_arg(t, 0), &ms))
        return fair_badarg(t);
    fair_wait(t, -1, 0, (int)ms);
    return ok(t);
}

/* -- the library -------------------------------------------------------------- */

/* info: {probe, Address} */
static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    const ERL_NIF_TERM *elems;
    int arity;
    ErlNifUInt64 address;
    struct priv *p = enif_alloc(sizeof *p);

    if (!p || !enif_get_tuple(env, info, &arity, &elems) || arity != 2
        || !enif_get_uint64(env, elems[1], &address))
        return 1;
    probe = (struct probe *)(uintptr_t)address;
    p->tag = TAG;
    *priv = p;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static void unload(ErlNifEnv *env, void *priv)
{
    (void)env;
    enif_free(priv);
}

#define BOTH(NAME, ARITY)                                                   \
    FAIR_NIF(#NAME "_threaded_nif", ARITY, NAME, FAIR_THREADED),            \
    FAIR_NIF(#NAME "_waited_nif", ARITY, NAME##_after_wait,                 \
             FAIR_AUTO | FAIR_AWAITED)

static const fair_options at_most_two = {.body = spin, .max_tasks = 2};

static ErlNifFunc nifs[] = {
    BOTH(spin, 3), BOTH(never_tick, 1), BOTH(ticks, 2), BOTH(echo, 1),
    BOTH(kinds, 1), BOTH(walk, 1), BOTH(build, 1), BOTH(reverse, 1),
    BOTH(bytes, 1), BOTH(text, 1), BOTH(flip, 1), BOTH(garbage, 2),
    BOTH(fail, 1), BOTH(object, 2), BOTH(move, 2), BOTH(call, 2),
    BOTH(blocking, 1), BOTH(memory, 2), BOTH(undefer, 1), BOTH(harmonic, 1),
    BOTH(roots, 2), BOTH(about, 1),
    FAIR_NIF("about_normal_nif", 1, about, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("about_yielding_nif", 1, about, FAIR_NORMAL),
    FAIR_NIF("about_dirty_cpu_nif", 1, about, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("about_dirty_io_nif", 1, about, FAIR_DIRTY_IO | FAIR_NO_YIELD),
    FAIR_NIF("about_yielding_dirty_nif", 1, about, FAIR_DIRTY_CPU),
    FAIR_NIF("about_auto_nif", 1, about, FAIR_AUTO),
    FAIR_NIF("about_dirty_waited_nif", 1, about_after_wait,
             FAIR_DIRTY_IO | FAIR_NO_YIELD | FAIR_AWAITED),
    FAIR_NIF("offload_nif", 3, offload, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("offload_dirty_nif", 3, offload,
             FAIR_DIRTY_CPU | FAIR_NO_YIELD | FAIR_AWAITED),
    FAIR_NIF("deep_threaded_nif", 1, deep, FAIR_THREADED),
    FAIR_NIF("offload_threaded_nif", 3, offload, FAIR_THREADED),
    FAIR_NIF("offload_not_awaited_nif", 3, offload, FAIR_AUTO),
    FAIR_NIF("offload_often_nif", 1, offload_often, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("clock_nif", 0, clock_offloaded, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("clock_threaded_nif", 0, clock_offloaded, FAIR_THREADED),
    FAIR_NIF("first_nif", 1, first_of, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("locked_nif", 4, locked, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("locked_dirty_nif", 4, locked,
             FAIR_DIRTY_CPU | FAIR_AWAITED),
    FAIR_NIF("locked_threaded_nif", 4, locked, FAIR_THREADED),
    FAIR_NIF("locked_not_awaited_nif", 4, locked, FAIR_AUTO),
    FAIR_NIF("left_nif", 1, left, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("try_lock_nif", 1, try_lock, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("twice_nif", 1, twice, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("twice_threaded_nif", 1, twice, FAIR_THREADED),
    FAIR_NIF("many_locks_nif", 0, many_locks, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("many_locks_threaded_nif", 0, many_locks, FAIR_THREADED),
    FAIR_NIF("sleep_nif", 1, sleeps, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("sleep_threaded_nif", 1, sleeps, FAIR_THREADED),
    FAIR_NIF_OPTIONS("limited_nif", 3, &at_most_two,
                     FAIR_NORMAL | FAIR_AWAITED),
    FAIR_NIF_OPTIONS("limited_threaded_nif", 3, &at_most_two, FAIR_THREADED),
};

FAIR_NIF_INIT(fairnif_test_waits, nifs, load, NULL, upgrade, unload)
