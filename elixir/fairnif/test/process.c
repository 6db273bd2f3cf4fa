/* process.c - the library of the tests of Fairnif.Process: a counter.
 * PROBE_MODULE: the module it is for. */
#include <fairnif.h>

static int is_atom(fair_task *t, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, enif_make_atom(fair_env(t), name));
}

/* Counts calls and casts; at :stop it ends normally. */
static ERL_NIF_TERM counter(fair_task *t)
{
    ErlNifSInt64 n;
    ERL_NIF_TERM message, from, request;
    const ERL_NIF_TERM *parts;
    int arity;

    if (!fair_get_int64(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (;;) {
        fair_receive(t, -1, &message);
        if (fair_match_call(t, message, &from, &request)) {
            fair_reply(t, from, enif_make_int64(fair_env(t), ++n));
            if (is_atom(t, request, "stop"))
                return enif_make_atom(fair_env(t), "normal");
        } else if (fair_match_cast(t, message, &request)) {
            n++;
        } else if (enif_get_tuple(fair_env(t), message, &arity, &parts)
                   && arity == 3 && is_atom(t, parts[0], "system")) {
            fair_reply(t, parts[1], enif_make_int64(fair_env(t), n));
        }
    }
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("counter", 1, counter, FAIR_NORMAL | FAIR_MAY_WAIT)
};

FAIR_NIF_INIT(PROBE_MODULE, nifs, NULL, NULL, NULL)
