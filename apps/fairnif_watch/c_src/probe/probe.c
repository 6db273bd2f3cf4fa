/*
 * probe.c - what the watch runs on schedulers on purpose, module
 * fairnif_watch_probe: a job for a dirty pool that does nothing but say when it
 * ran, and, for the self-test, a call that blocks its scheduler.
 *
 * A library of its own, so that the self-test is seen as anybody's NIF would be
 * and not as part of the watch. Keeps no state; nothing here may be called
 * on a node's own account but by the two modules that say so.
 */
#include <erl_nif.h>

enum { MAX_MS = 10000 };

static ErlNifTime now(void)
{
    return enif_monotonic_time(ERL_NIF_NSEC);
}

/* When a scheduler got to it: erlang:monotonic_time(nanosecond). */
static ERL_NIF_TERM ran_at(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int64(env, now());
}

/* Blocks the scheduler for so many ms, never gives way; ns that it was. It is
 * at work between two looks at the clock, as a NIF would be. */
static ERL_NIF_TERM block(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifTime begin = now(), end;
    unsigned ms;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &ms) || ms > MAX_MS)
        return enif_make_badarg(env);
    do {
        for (volatile int i = 0; i < 20000; i++)
            ;
        end = now();
    } while (end - begin < (ErlNifTime)ms * 1000000);
    return enif_make_int64(env, end - begin);
}

static ErlNifFunc functions[] = {
    { "block", 1, block, 0 },
    { "dirty_cpu", 0, ran_at, ERL_NIF_DIRTY_JOB_CPU_BOUND },
    { "dirty_io", 0, ran_at, ERL_NIF_DIRTY_JOB_IO_BOUND },
};

ERL_NIF_INIT(fairnif_watch_probe, functions, NULL, NULL, NULL, NULL)
