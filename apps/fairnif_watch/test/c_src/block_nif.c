/*
 * block_nif.c - plain NIFs that block their scheduler in each way of ways.h,
 * on a normal, a dirty CPU and a dirty I/O scheduler.
 *
 * Built three times: module fairnif_watch_block_nif, its next version (another
 * file, VERSION 2), the same stripped and without frame pointers as
 * fairnif_watch_block_stripped.  All functions are static: the NIF table names
 * them, and the symbol table where there is one.
 */
#define _GNU_SOURCE             /* ways.h, gettid */

#include <erl_nif.h>

#include "ways.h"

#define TEXT_(X) #X
#define TEXT(X) TEXT_(X)

/* {Since, Until, Interrupted}: ns of erlang:monotonic_time/0's native unit. */
static ERL_NIF_TERM block(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                          void (*way)(struct way *))
{
    struct way w = { .seed = 1 };
    ErlNifTime since = enif_monotonic_time(ERL_NIF_NSEC);

    if (!enif_get_long(env, argv[0], &w.ms) || w.ms < 0)
        return enif_make_badarg(env);
    way(&w);
    if (w.failed)
        return enif_raise_exception(env, enif_make_int(env, w.failed));
    return enif_make_tuple3(
        env, enif_make_int64(env, since),
        enif_make_int64(env, enif_monotonic_time(ERL_NIF_NSEC)),
        enif_make_ulong(env, w.interrupted));
}

/* What is called is not the last thing done, or the compiler would jump there
 * and leave no frame of the NIF behind. */
#define NIF(NAME)                                                           \
    static ERL_NIF_TERM nif_##NAME(ErlNifEnv *env, int argc,                \
                                   const ERL_NIF_TERM argv[])               \
    {                                                                       \
        ERL_NIF_TERM term = block(env, argv, way_##NAME);                   \
        (void)argc;                                                         \
        __asm__ volatile("" : "+r"(term));                                  \
        return term;                                                        \
    }
WAYS(NIF)

/* The same by the microsecond, for many short ones. */
static ERL_NIF_TERM burst(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct way w = { .seed = 1 };
    unsigned us;
    uint64_t end;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &us))
        return enif_make_badarg(env);
    for (end = way_ns() + us * 1000ull; way_ns() < end;)
        way_work(&w);
    return enif_make_uint(env, w.seed);
}

/* Answers how often it was interrupted. */
static ERL_NIF_TERM nap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us, interrupted = 0;
    struct timespec t = { 0, 0 };

    (void)argc;
    if (!enif_get_uint(env, argv[0], &us) || us >= 1000000)
        return enif_make_badarg(env);
    t.tv_nsec = us * 1000;
    while (nanosleep(&t, &t) && errno == EINTR)
        interrupted++;
    return enif_make_uint(env, interrupted);
}

static ERL_NIF_TERM version(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int(env, VERSION);
}

/* Ends the node. */
__attribute__((noinline)) static void write_to(volatile char *nowhere)
{
    *nowhere = 1;
}

static ERL_NIF_TERM fault(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned address = 0;

    (void)argc;
    enif_get_uint(env, argv[0], &address);
    write_to((volatile char *)(uintptr_t)address);
    return argv[0];
}

/* -- an object whose destructor blocks ---------------------------------------- */

static ErlNifResourceType *type;

static void block_dtor(ErlNifEnv *env, void *obj)
{
    struct way w = { .seed = 1, .ms = *(long *)obj };

    (void)env;
    way_spin(&w);
    *(volatile long *)obj = w.seed;
}

/* An object whose destructor takes that many ms. */
static ERL_NIF_TERM object(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    long ms, *obj;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_get_long(env, argv[0], &ms) || ms < 0)
        return enif_make_badarg(env);
    obj = enif_alloc_resource(type, sizeof *obj);
    *obj = ms;
    term = enif_make_resource(env, obj);
    enif_release_resource(obj);
    return term;
}

/* The number of the OS thread. */
static ERL_NIF_TERM tid(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int(env, gettid());
}

/* The VM wants one where a type is taken over: docs/internals/nif.md. */
static void ignore_down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {.dtor = block_dtor, .down = ignore_down, .members = 3};

    (void)priv, (void)info;
    type = enif_init_resource_type(env, "block_object", &init,
                                   ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER,
                                   NULL);
    return type ? 0 : 1;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)old;
    return load(env, priv, info);
}

#define ENTRIES(NAME)                                                       \
    { TEXT(NAME), 1, nif_##NAME, 0 },                                       \
    { TEXT(NAME) "_dirty_cpu", 1, nif_##NAME, ERL_NIF_DIRTY_JOB_CPU_BOUND },\
    { TEXT(NAME) "_dirty_io", 1, nif_##NAME, ERL_NIF_DIRTY_JOB_IO_BOUND },

static ErlNifFunc nifs[] = {
    WAYS(ENTRIES)
    { "burst", 1, burst, 0 },
    { "nap", 1, nap, 0 },
    { "object", 1, object, 0 },
    { "fault", 1, fault, 0 },
    { "fault_dirty_io", 1, fault, ERL_NIF_DIRTY_JOB_IO_BOUND },
    { "version", 0, version, 0 },
    { "tid", 0, tid, 0 },
};

#define INIT(MODULE) ERL_NIF_INIT(MODULE, nifs, load, NULL, upgrade, NULL)
INIT(MODULE_NAME)
