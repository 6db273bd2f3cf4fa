/*
 * fairnif_test_process.c - the body of a native process that obeys its
 * messages, in every mode.
 */
#include <fairnif.h>

struct server {
    unsigned kept;              /* a root */
    int timeout_ms;
    unsigned timeouts;
};

static int is(fair_task *t, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, enif_make_atom(fair_env(t), name));
}

static ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

static ERL_NIF_TERM outcome(fair_task *t, int came, ERL_NIF_TERM term)
{
    return enif_make_tuple2(fair_env(t), atom(t, came > 0 ? "ok" : "nothing"), term);
}

/* What comes of a request {What, ...}; 0: of {return, Term}, which is in `kept`
 * then. */
static ERL_NIF_TERM done(fair_task *t, struct server *s, ERL_NIF_TERM request)
{
    const ERL_NIF_TERM *r;
    char module[32], function[32];
    ERL_NIF_TERM term;
    int n, number;

    if (!enif_get_tuple(fair_env(t), request, &n, &r) || n < 2)
        return atom(t, "what");
    if (is(t, r[0], "echo"))
        return r[1];
    if (is(t, r[0], "keep")) {
        fair_root_set(t, s->kept, r[1]);
        return atom(t, "ok");
    }
    if (is(t, r[0], "get"))
        return is(t, r[1], "timeouts") ? enif_make_uint(fair_env(t), s->timeouts)
            : fair_root_get(t, s->kept);
    if (is(t, r[0], "work") && fair_get_int(t, r[1], &number)) {
        for (int i = 0; i < number && !fair_cancelled(t); i++)
            fair_tick(t, 1);
        return atom(t, "ok");
    }
    if (is(t, r[0], "timeout") && fair_get_int(t, r[1], &s->timeout_ms))
        return atom(t, "ok");
    if (is(t, r[0], "sleep") && fair_get_int(t, r[1], &number)) {
        fair_sleep(t, number);
        return atom(t, "ok");
    }
    if (is(t, r[0], "tagged") && n == 3 && fair_get_int(t, r[2], &number)) {
        n = fair_receive_tagged(t, r[1], number, &term);
        return outcome(t, n, term);
    }
    if (is(t, r[0], "apply") && n == 4
        && fair_get_atom(t, r[1], module, sizeof module, FAIR_UTF8)
        && fair_get_atom(t, r[2], function, sizeof function,
                         FAIR_UTF8)) {
        n = fair_apply(t, module, function, r[3], &term);
        return outcome(t, n, term);
    }
    if (is(t, r[0], "send") && n == 3) {
        fair_send(t, r[1], r[2]);
        return atom(t, "ok");
    }
    if (is(t, r[0], "monitor")) {
        n = fair_monitor(t, r[1], &term);
        return outcome(t, n, term);
    }
    if (is(t, r[0], "link"))
        return atom(t, fair_link(t, r[1]) > 0 ? "ok" : "no");
    if (is(t, r[0], "self"))
        return fair_self(t);
    if (is(t, r[0], "return")) {
        fair_root_set(t, s->kept, r[1]);
        return 0;
    }
    return atom(t, "what");
}

/* server(Kept): {Name, Message} of what is no call goes into the kept list. */
static ERL_NIF_TERM server(fair_task *t)
{
    struct server s = {.timeout_ms = -1};

    s.kept = fair_root_new(t, fair_arg(t, 0));
    for (;;) {
        ERL_NIF_TERM message, from, request, answer;
        unsigned root;

        int came = fair_receive(t, s.timeout_ms, &message);

        if (came == -ECANCELED)
            return message;
        if (came == -ETIMEDOUT) {
            s.timeouts++;
            s.timeout_ms = -1;
            continue;
        }
        if (!fair_match_call(t, message, &from, &request)) {
            fair_list_push(t, s.kept, message);
            continue;
        }
        root = fair_root_new(t, from);
        answer = done(t, &s, request);
        if (!answer) {
            fair_reply(t, fair_root_get(t, root), atom(t, "ok"));
            return fair_root_get(t, s.kept);
        }
        fair_reply(t, fair_root_get(t, root), answer);
        fair_root_drop(t, root);
    }
}

/* {raise, Reason}: it answers, and raises. */
static ERL_NIF_TERM raises(fair_task *t)
{
    ERL_NIF_TERM message, from, request;

    fair_receive(t, -1, &message);
    if (fair_match_call(t, message, &from, &request)) {
        fair_reply(t, from, atom(t, "it"));
        return fair_raise(t, request);
    }
    return fair_badarg(t);
}

static ERL_NIF_TERM at_once(fair_task *t)
{
    return fair_arg(t, 0);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)env, (void)info, (void)old;
    *priv = NULL;
    return 0;
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("normal", 1, server, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("auto", 1, server, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("dirty_cpu", 1, server, FAIR_DIRTY_CPU | FAIR_MAY_WAIT),
    FAIR_NIF("dirty_io", 1, server, FAIR_DIRTY_IO | FAIR_MAY_WAIT),
    FAIR_NIF("no_yield", 1, server, FAIR_NORMAL | FAIR_NO_YIELD | FAIR_MAY_WAIT),
    FAIR_NIF("unwinds", 1, server, FAIR_NORMAL | FAIR_CLEANUP | FAIR_MAY_WAIT),
    FAIR_NIF("threaded", 1, server, FAIR_THREADED),
    FAIR_NIF("raises", 0, raises, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("raises_threaded", 0, raises, FAIR_THREADED),
    FAIR_NIF("at_once", 1, at_once, FAIR_NORMAL | FAIR_MAY_WAIT),
};

FAIR_NIF_INIT(fairnif_test_process, nifs, NULL, upgrade, NULL)
