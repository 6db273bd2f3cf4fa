/*
 * echo_fair.c - an echo as a fair body: the same function in several modes, and
 * a native process.
 */
#include <fairnif.h>

static ERL_NIF_TERM echo(fair_task *t)
{
    fair_bin in;

    if (!fair_get_bin(t, fair_arg(t, 0), &in))
        return fair_badarg(t);
    return fair_make_bin(t, &in);
}

static ERL_NIF_TERM process(fair_task *t)
{
    ERL_NIF_TERM message, from, request;

    while (fair_receive(t, -1, &message))
        if (fair_get_call(t, message, &from, &request))
            fair_reply(t, from, request);
    return enif_make_atom(fair_env(t), "normal");
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("fair_auto", 1, echo, FAIR_AUTO),
    FAIR_NIF("nif_fair_threaded", 1, echo, FAIR_THREADED),
    FAIR_NIF("nif_process", 0, process, FAIR_NORMAL | FAIR_AWAITED),
};

FAIR_NIF_INIT(echo_fair, nifs, NULL, NULL, NULL, NULL)
