/*
 * fairnif_test_pending.c - bodies for fairnif_await_tests: what goes with a
 * task that waits, and what the VM offers to one on a thread of the pool.
 */
#include <unistd.h>

#include <fairnif.h>

static ErlNifResourceType *locked_type;

struct locked {
    fair_mutex mutex;
};

/* The object is gone: whoever still uses the lock in it crashes. */
static void locked_dtor(ErlNifEnv *env, void *obj)
{
    (void)env;
    memset(obj, 0xA5, sizeof(struct locked));
}

static void locked_down(ErlNifEnv *env, void *obj, ErlNifPid *pid,
                        ErlNifMonitor *mon)
{
    (void)env, (void)obj, (void)pid, (void)mon;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {
        .dtor = locked_dtor, .down = locked_down, .members = 3
    };

    (void)priv, (void)info;
    locked_type = enif_init_resource_type(env, "locked", &init,
                                          ERL_NIF_RT_CREATE, NULL);
    return locked_type ? 0 : 1;
}

static void count(void *ptr)
{
    (*(unsigned *)ptr)++;
}

/* defers(N) -> N: more of them than fit into the record */
static ERL_NIF_TERM defers(fair_task *t)
{
    static unsigned counter;
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++)
        fair_defer(t, count, &counter);
    return enif_make_uint(fair_env(t), n);
}

/* naps(N) -> N: waits so often, each time for no time at all */
static ERL_NIF_TERM naps(fair_task *t)
{
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++)
        if (fair_wait(t, -1, 0, 0) != 0)
            return fair_badarg(t);
    return enif_make_uint(fair_env(t), n);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* offloads(N) -> {N, List}: its argument and a list come back each time */
static ERL_NIF_TERM offloads(fair_task *t)
{
    unsigned n, root;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    root = fair_root(t, enif_make_list1(fair_env(t), fair_arg(t, 0)));
    for (unsigned i = 0; i < n; i++)
        fair_call(t, FAIR_THREADED, 0, nothing, NULL);
    return enif_make_tuple2(fair_env(t), fair_arg(t, 0), fair_kept(t, root));
}

static void sleep_ms(void *arg)
{
    usleep(*(unsigned *)arg * 1000);
}

/* blocks(Ms) -> Ms, spent on a thread of the pool */
static ERL_NIF_TERM blocks(fair_task *t)
{
    unsigned ms;

    if (!fair_get_uint(t, fair_arg(t, 0), &ms))
        return fair_badarg(t);
    fair_call(t, FAIR_THREADED, 0, ms ? sleep_ms : nothing, &ms);
    return enif_make_uint(fair_env(t), ms);
}

/* locked() -> Object with a lock in it */
static ERL_NIF_TERM locked(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct locked *l = enif_alloc_resource(locked_type, sizeof *l);
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    *l = (struct locked){FAIR_MUTEX_INIT};
    term = enif_make_resource(env, l);
    enif_release_resource(l);
    return term;
}

/* hold(Object): takes the lock and keeps it until its caller dies */
static ERL_NIF_TERM hold(fair_task *t)
{
    struct locked *l;

    if (!fair_get_resource(t, fair_arg(t, 0), locked_type, (void **)&l))
        return fair_badarg(t);
    fair_mutex_lock(t, &l->mutex);
    for (;;)
        fair_tick(t, 1000);
}

/* take(Object, N) -> N: takes the lock so often */
static ERL_NIF_TERM take(fair_task *t)
{
    struct locked *l;
    unsigned n;

    if (!fair_get_resource(t, fair_arg(t, 0), locked_type, (void **)&l)
        || !fair_get_uint(t, fair_arg(t, 1), &n))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++) {
        fair_mutex_lock(t, &l->mutex);
        fair_tick(t, 1000);
        fair_mutex_unlock(t, &l->mutex);
    }
    return enif_make_uint(fair_env(t), n);
}

/* vm(Name): a function of the VM, in the body's environment */
static ERL_NIF_TERM vm(fair_task *t)
{
    ErlNifEnv *env = fair_env(t);
    char name[32];
    ErlNifPid self, found;

    if (!enif_get_atom(env, fair_arg(t, 0), name, sizeof name,
                       ERL_NIF_LATIN1) || !enif_self(env, &self))
        return fair_badarg(t);
    if (strcmp(name, "self") == 0)
        return enif_make_pid(env, &self);
    if (strcmp(name, "send") == 0)
        return enif_make_int(env, enif_send(env, &self, NULL,
                                            enif_make_atom(env, "sent")));
    if (strcmp(name, "whereis") == 0)
        return enif_whereis_pid(env, enif_make_atom(env, "init"), &found)
            ? enif_make_pid(env, &found) : enif_make_int(env, 0);
    if (strcmp(name, "alive") == 0)
        return enif_make_int(env, enif_is_process_alive(env, &self));
    if (strcmp(name, "current_alive") == 0)
        return enif_make_int(env, enif_is_current_process_alive(env));
    if (strcmp(name, "ref") == 0)
        return enif_make_ref(env);
    if (strcmp(name, "unique") == 0)
        return enif_make_unique_integer(env, ERL_NIF_UNIQUE_POSITIVE);
    if (strcmp(name, "monotonic_unique") == 0)
        return enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC);
    if (strcmp(name, "consume") == 0)
        return enif_make_int(env, enif_consume_timeslice(env, 1));
    if (strcmp(name, "binary") == 0) {
        ErlNifBinary bin;
        ERL_NIF_TERM back = 0;

        if (!enif_term_to_binary(env, fair_arg(t, 0), &bin)
            || !enif_binary_to_term(env, bin.data, bin.size, &back, 0))
            return fair_badarg(t);
        enif_release_binary(&bin);
        return back;
    }
    if (strcmp(name, "monitor") == 0) {
        struct locked *l = enif_alloc_resource(locked_type, sizeof *l);
        ErlNifMonitor mon;
        int set, unset;

        *l = (struct locked){FAIR_MUTEX_INIT};
        set = enif_monitor_process(env, l, &self, &mon);
        unset = set == 0 ? enif_demonitor_process(env, l, &mon) : -1;
        enif_release_resource(l);
        return enif_make_tuple2(env, enif_make_int(env, set),
                                enif_make_int(env, unset));
    }
    if (strcmp(name, "raise") == 0)
        return enif_raise_exception(env, enif_make_atom(env, "raised"));
    return fair_badarg(t);
}

static const fair_options one = {.body = blocks, .max_tasks = 1};

static ErlNifFunc nifs[] = {
    {"locked", 0, locked, 0},
    FAIR_NIF("nif_defers", 1, defers, FAIR_THREADED),
    FAIR_NIF("nif_naps", 1, naps, FAIR_THREADED),
    FAIR_NIF("nif_naps_auto", 1, naps, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_offloads", 1, offloads, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_offloads_dirty", 1, offloads,
             FAIR_DIRTY_IO | FAIR_NO_YIELD | FAIR_AWAITED),
    FAIR_NIF("nif_blocks", 1, blocks, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF_OPTIONS("nif_one_at_a_time", 1, &one, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_hold", 1, hold, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_hold_threaded", 1, hold, FAIR_THREADED),
    FAIR_NIF("nif_take", 2, take, FAIR_AUTO | FAIR_AWAITED),
    FAIR_NIF("nif_take_threaded", 2, take, FAIR_THREADED),
    FAIR_NIF("nif_vm", 1, vm, FAIR_THREADED),
};

FAIR_NIF_INIT(fairnif_test_pending, nifs, load, NULL, NULL, NULL)
