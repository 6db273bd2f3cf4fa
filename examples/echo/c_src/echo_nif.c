/*
 * echo_nif.c - an echo as plain NIFs: at once, rescheduled, on a dirty
 * scheduler.
 *
 * What comes back is the argument itself: nothing is copied, and no call of
 * these may look at the bytes, so that what is measured is the way alone.
 */
#include <erl_nif.h>

/* nif/1, dirty_cpu/1, dirty_io/1 */
static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    if (argc != 1 || !enif_is_binary(env, argv[0]))
        return enif_make_badarg(env);
    return argv[0];
}

/* rescheduled/1: the answer comes in a second call, which the VM makes. */
static ERL_NIF_TERM rescheduled(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    return enif_schedule_nif(env, "rescheduled", 0, echo, argc, argv);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)old, (void)info;
    return 0;
}

static ErlNifFunc nifs[] = {
    {"nif", 1, echo, 0},
    {"rescheduled", 1, rescheduled, 0},
    {"dirty_cpu", 1, echo, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"dirty_io", 1, echo, ERL_NIF_DIRTY_JOB_IO_BOUND},
};

ERL_NIF_INIT(echo_nif, nifs, NULL, NULL, upgrade, NULL)
