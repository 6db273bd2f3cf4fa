/*
 * The checker's own NIFs: what Erlang cannot ask the operating system or the VM for.
 *
 * All of them are plain and short; the checker must work where fairnif's runtime is
 * not loaded, since it measures functions that know nothing of it.
 */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include "thread_clock.h"

typedef struct {
    ErlNifPid to;               /* who is notified */
    ErlNifEnv *env;             /* holds `key` */
    ERL_NIF_TERM key;
} sentinel;

static ErlNifResourceType *sentinel_type;

static ErlNifSInt64 nanoseconds(clockid_t clock)
{
    struct timespec t;

    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (ErlNifSInt64)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* On Linux its number in /proc; elsewhere only another one for each thread. */
static int thread_id(void)
{
#ifdef __linux__
    return (int)syscall(SYS_gettid);    /* glibc has a function since 2.30 */
#else
    return (int)((uintptr_t)pthread_self() >> 4 & INT_MAX);
#endif
}

/* {Monotonic, OwnCpu, Waited, Thread} */
static ERL_NIF_TERM thread_times(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM cpu, wait;

    (void)argc, (void)argv;
    wait = enif_make_int64(env, thread_waited());
    cpu = enif_make_int64(env, nanoseconds(CLOCK_THREAD_CPUTIME_ID));
    return enif_make_tuple4(env, enif_make_int64(env, enif_monotonic_time(ERL_NIF_NSEC)), cpu, wait,
                            enif_make_int(env, thread_id()));
}

/* The CPU time of all threads, user's and system's */
static ERL_NIF_TERM cpu_time(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int64(env, nanoseconds(CLOCK_PROCESS_CPUTIME_ID));
}

/* The VM's monotonic time in ns, in whatever way it was called: as a normal NIF
 * and as both kinds of dirty ones. */
static ERL_NIF_TERM now(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int64(env, enif_monotonic_time(ERL_NIF_NSEC));
}

/* Two steps: without glibc there is no such macro to ask. */
#ifdef __GLIBC__
#  if __GLIBC_PREREQ(2, 33)
#    define HAS_MALLINFO2
#  endif
#endif

/* malloc_used(): bytes that malloc has given out, to whomever; `undefined` where
 * the C library does not say */
static ERL_NIF_TERM malloc_used(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
#ifdef HAS_MALLINFO2
    struct mallinfo2 info = mallinfo2();

    return enif_make_uint64(env, info.uordblks + info.hblkhd);
#else
    return enif_make_atom(env, "undefined");
#endif
}

/* Runs on whichever thread frees the last reference: at the owner's exit, or
 * when the NIF that still holds the dead owner's heap returns. */
static void tell(ErlNifEnv *env, void *object)
{
    sentinel *s = object;

    if (s->env == NULL)
        return;
    enif_send(env, &s->to, s->env,
              enif_make_tuple3(s->env, enif_make_atom(s->env, "sentinel"), s->key,
                               enif_make_int64(s->env, enif_monotonic_time(ERL_NIF_NSEC))));
    enif_free_env(s->env);
}

/* sentinel(Pid, Key): Pid gets {sentinel, Key, MonotonicNs} when the term is gone */
static ERL_NIF_TERM make_sentinel(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid to;
    sentinel *s;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_get_local_pid(env, argv[0], &to))
        return enif_make_badarg(env);
    if ((s = enif_alloc_resource(sentinel_type, sizeof *s)) == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    s->to = to;
    s->env = enif_alloc_env();
    if (s->env != NULL)
        s->key = enif_make_copy(s->env, argv[1]);
    term = s->env != NULL ? enif_make_resource(env, s)
        : enif_raise_exception(env, enif_make_atom(env, "enomem"));
    enif_release_resource(s);
    return term;
}

/* Without it the VM may write beyond an object that is made during a takeover: see
 * docs/internals/nif.md. */
static void ignore_down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {.dtor = tell, .down = ignore_down, .members = 3};

    (void)priv, (void)info;
    sentinel_type = enif_init_resource_type(env, "fairnif_check_sentinel", &init,
                                            ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    return sentinel_type == NULL;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    {"thread_times", 0, thread_times, 0},
    {"cpu_time", 0, cpu_time, 0},
    {"now", 0, now, 0},
    {"now_dirty_cpu", 0, now, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"now_dirty_io", 0, now, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"malloc_used", 0, malloc_used, 0},
    {"sentinel", 2, make_sentinel, 0},
};

ERL_NIF_INIT(fairnif_check_nif, nifs, load, NULL, upgrade, NULL)
