/*
 * echo.c - an echo as plain NIFs, as a fair body in two modes, and as a native
 * process.
 *
 * What comes back is the argument itself: nothing is copied, and none of these
 * looks at the bytes, so that what is measured is the way alone.
 */
#include <fairnif.h>

static ERL_NIF_TERM plain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    if (argc != 1 || !enif_is_binary(env, argv[0]))
        return enif_make_badarg(env);
    return argv[0];
}

static ERL_NIF_TERM fair(fair_task *t)
{
    fair_bytes in;

    if (!fair_get_bytes(t, fair_arg(t, 0), &in))
        return fair_badarg(t);
    return fair_make_bytes(t, &in);
}

static ERL_NIF_TERM process(fair_task *t)
{
    ERL_NIF_TERM message, from, request;

    while (fair_receive(t, -1, &message) > 0)
        if (fair_match_call(t, message, &from, &request))
            fair_reply(t, from, request);
    return enif_make_atom(fair_env(t), "normal");
}

static ErlNifFunc nifs[] = {
    {"nif", 1, plain, 0},
    {"dirty_cpu", 1, plain, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF("fair_auto", 1, fair, FAIR_AUTO),
    FAIR_NIF("nif_fair_threaded", 1, fair, FAIR_THREADED),
    FAIR_NIF("nif_process", 0, process, FAIR_NORMAL | FAIR_MAY_WAIT),
};

FAIR_NIF_INIT(echo, nifs, NULL, NULL, NULL)
