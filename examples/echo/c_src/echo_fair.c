/*
 * echo_fair.c - an echo as a fair body: the same function in several modes.
 */
#include <fairnif.h>

static ERL_NIF_TERM echo(fair_task *t)
{
    fair_bin in;

    if (!fair_get_bin(t, fair_arg(t, 0), &in))
        return fair_badarg(t);
    return fair_make_bin(t, &in);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("fair_auto", 1, echo, FAIR_AUTO),
    FAIR_NIF("nif_fair_threaded", 1, echo, FAIR_THREADED),
};

FAIR_NIF_INIT(echo_fair, nifs, NULL, NULL, NULL, NULL)
