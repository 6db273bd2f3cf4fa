/*
 * fairnif_test_ends.c - bodies that hold very much of one kind when they end, in
 * each way that there is to end.
 */
#include <fairnif.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static ErlNifResourceType *type;
static fair_mutex *mutexes;     /* as many as are asked for, never freed */
static unsigned long mutex_count;
static _Atomic long deferred;
static _Atomic bool is_beginning;       /* holds not yet what it is to hold */

static void count_down(void *unused)
{
    (void)unused;
    deferred--;
}

static bool holds_one(fair_task *t, unsigned kind, unsigned long i)
{
    fair_bytes got;
    fair_bin bin;
    void *obj;

    switch (kind) {
    case 0:
        return fair_alloc(t, 40) != NULL;
    case 1:
        return fair_new_bin(t, 100, &bin);
    case 2:
        deferred++;
        return fair_defer(t, count_down, NULL);
    case 3:
        return fair_mutex_trylock(t, &mutexes[i]);
    case 4:
        return fair_get_resource(t, fair_arg(t, 3), type, &obj);
    case 5:
        return fair_get_bytes(t, fair_arg(t, 3), &got);
    default:                    /* of a threaded body: in its environment */
        enif_make_tuple2(fair_env(t), fair_arg(t, 0), fair_arg(t, 1));
        return true;
    }
}

/* hold(Kind, N, How, Arg) */
static ERL_NIF_TERM hold(fair_task *t)
{
    enum { RETURNS, RAISES, FAILS, WAITS };
    unsigned kind, how;
    unsigned long n;

    if (!fair_get_uint(t, fair_arg(t, 0), &kind)
        || !fair_get_ulong(t, fair_arg(t, 1), &n)
        || !fair_get_uint(t, fair_arg(t, 2), &how))
        return fair_badarg(t);
    is_beginning = true;
    for (unsigned long i = 0; i < n; i++) {
        if (!holds_one(t, kind, i))
            return fair_enomem(t);
        fair_tick(t, 1);
    }
    is_beginning = false;
    if (how == WAITS)
        fair_sleep(t, -1);
    if (how == FAILS)
        fair_root_get(t, 1000);     /* there is no such root */
    return how == RAISES ? enif_raise_exception(fair_env(t), fair_arg(t, 1))
        : enif_make_ulong(fair_env(t), n);
}

/* One block, used. */
static ERL_NIF_TERM block(fair_task *t)
{
    unsigned long n;
    char *p;

    if (!fair_get_ulong(t, fair_arg(t, 0), &n) || !(p = fair_alloc(t, n)))
        return fair_badarg(t);
    for (unsigned long i = 0; i < n; i += 4096) {
        p[i] = 1;
        fair_tick(t, 1);
    }
    return fair_arg(t, 0);
}

static __attribute__((noinline)) int deep(fair_task *t, unsigned long n)
{
    volatile char frame[4096];
    int below;

    frame[0] = frame[4095] = 1;
    fair_tick(t, 1);
    below = n > 0 ? deep(t, n - 1) : 0;
    fair_tick(t, 1);            /* it is no loop */
    return below + frame[0];
}

static ERL_NIF_TERM stack(fair_task *t)
{
    unsigned long n;

    if (!fair_get_ulong(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    return enif_make_int(fair_env(t), deep(t, n));
}

static ERL_NIF_TERM take(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

/* As a static of C++ is: gone while the program exits, which takes a while. */
static volatile char *page;

static __attribute__((destructor)) void destroy(void)
{
    if (page) {
        munmap((void *)page, 4096);
        usleep(50000);
    }
}

static ERL_NIF_TERM uses(fair_task *t)
{
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    for (;;) {
        page[0]++;
        fair_tick(t, 1);
    }
    return fair_badarg(t);
}

static ERL_NIF_TERM cpu(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct timespec ts;

    (void)argc, (void)argv;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return enif_make_long(env, ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static ERL_NIF_TERM begins(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_atom(env, is_beginning ? "true" : "false");
}

static ERL_NIF_TERM object(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *obj = enif_alloc_resource(type, 1);
    ERL_NIF_TERM term = enif_make_resource(env, obj);

    (void)argc, (void)argv;
    enif_release_resource(obj);
    return term;
}

static ERL_NIF_TERM left(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    long n = deferred;

    (void)argc, (void)argv;
    for (unsigned long i = 0; i < mutex_count; i++)
        n += mutexes[i].holder != NULL;
    return enif_make_long(env, n);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv;
    type = enif_open_resource_type(env, NULL, "held", NULL, ERL_NIF_RT_CREATE,
                                   NULL);
    if (!type || !enif_get_ulong(env, info, &mutex_count))
        return 1;
    mutexes = calloc(mutex_count, sizeof *mutexes);
    return mutexes ? 0 : 1;
}

static const fair_options stack_options = {
    .body = stack, .stack_size = 64 << 20
};

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_hold", 4, hold, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("nif_hold_threaded", 4, hold, FAIR_THREADED),
    FAIR_NIF("nif_take", 1, take, FAIR_THREADED),
    FAIR_NIF("block", 1, block, FAIR_NORMAL),
    FAIR_NIF("use_threaded", 0, uses, FAIR_THREADED),
    FAIR_NIF("use_dirty", 0, uses, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF_OPTIONS("stack", 1, &stack_options, FAIR_NORMAL),
    {"cpu", 0, cpu, 0},
    {"begins", 0, begins, 0},
    {"object", 0, object, 0},
    {"left", 0, left, ERL_NIF_DIRTY_JOB_CPU_BOUND}   /* a million locks */
};
FAIR_NIF_INIT(fairnif_test_ends, nifs, load, NULL, NULL)
