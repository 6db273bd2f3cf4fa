/*
 * counter_server.c - the body of a native process: counter_server_erl in C.
 *
 * Its state is in local variables: the value, and a root with the list of those
 * who wait for a value, {Least, From} each.
 */
#include <fairnif.h>

struct counter {
    ErlNifSInt64 value;
    unsigned waiting;           /* a root */
};

static ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

static int is_atom(fair_task *t, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, atom(t, name));
}

/* {Tag, Integer} */
static int get_number(fair_task *t, ERL_NIF_TERM term, const char *tag,
                      ErlNifSInt64 *number)
{
    const ERL_NIF_TERM *parts;
    int arity;

    return enif_get_tuple(fair_env(t), term, &arity, &parts) && arity == 2
        && is_atom(t, parts[0], tag) && fair_get_int64(t, parts[1], number);
}

static void reply(fair_task *t, ERL_NIF_TERM from, ErlNifSInt64 value)
{
    fair_reply(t, from, enif_make_int64(fair_env(t), value));
}

/* Answers those who have waited for so much; the others wait on. */
static void tell(fair_task *t, struct counter *c)
{
    ERL_NIF_TERM head;
    unsigned all;

    if (enif_is_empty_list(fair_env(t), fair_kept(t, c->waiting)))
        return;
    all = fair_root(t, fair_kept(t, c->waiting));
    fair_keep(t, c->waiting, enif_make_list(fair_env(t), 0));
    fair_list_reverse(t, all);          /* who waits longest comes first */
    while (fair_list_next(t, all, &head)) {
        const ERL_NIF_TERM *parts;
        ErlNifSInt64 least;
        int arity;

        enif_get_tuple(fair_env(t), head, &arity, &parts);
        fair_get_int64(t, parts[0], &least);
        if (least <= c->value)
            reply(t, parts[1], c->value);
        else
            fair_list_push(t, c->waiting, head);
        fair_tick(t, 1);
    }
    fair_unroot(t, all);
}

/* 0 when it was told to stop. */
static int handle_call(fair_task *t, struct counter *c, ERL_NIF_TERM from,
                       ERL_NIF_TERM request)
{
    ErlNifSInt64 number;

    if (is_atom(t, request, "value")) {
        reply(t, from, c->value);
    } else if (get_number(t, request, "add", &number)) {
        c->value += number;
        reply(t, from, c->value);
        tell(t, c);
    } else if (get_number(t, request, "wait_for", &number)) {
        if (number <= c->value)
            reply(t, from, c->value);
        else
            fair_list_push(t, c->waiting,
                           enif_make_tuple2(fair_env(t),
                                            enif_make_int64(fair_env(t), number),
                                            from));
    } else if (is_atom(t, request, "stop")) {
        fair_reply(t, from, atom(t, "ok"));
        return 0;
    } else {
        fair_reply(t, from, enif_make_tuple2(fair_env(t), atom(t, "error"),
                                                  atom(t, "unknown")));
    }
    return 1;
}

/* {system, From, Request}: see fairnif_process.  {continue, [Value]} when it is to
 * go on in the newest version of this library; 0: it goes on here. */
static ERL_NIF_TERM handle_system(fair_task *t, struct counter *c,
                                  ERL_NIF_TERM message)
{
    ErlNifEnv *env = fair_env(t);
    ERL_NIF_TERM value = enif_make_int64(env, c->value);
    const ERL_NIF_TERM *parts;
    int arity;

    if (!enif_get_tuple(env, message, &arity, &parts) || arity != 3
        || !is_atom(t, parts[0], "system"))
        return 0;
    if (is_atom(t, parts[2], "get_state")) {
        fair_reply(t, parts[1], value);
        return 0;
    }
    get_number(t, parts[2], "replace_state", &c->value);
    fair_reply(t, parts[1], atom(t, "ok"));
    if (!enif_get_tuple(env, parts[2], &arity, &parts)
        || !is_atom(t, parts[0], "code_change"))
        return 0;
    return enif_make_tuple2(env, atom(t, "continue"), enif_make_list1(env, value));
}

/* counter(First) */
static ERL_NIF_TERM counter(fair_task *t)
{
    struct counter c;
    ERL_NIF_TERM message, from, request, next;
    ErlNifSInt64 number;

    if (!fair_get_int64(t, fair_arg(t, 0), &c.value))
        return fair_badarg(t);
    c.waiting = fair_root(t, enif_make_list(fair_env(t), 0));
    for (;;) {
        fair_receive(t, -1, &message);
        if (fair_get_call(t, message, &from, &request)) {
            if (!handle_call(t, &c, from, request))
                return atom(t, "normal");
        } else if (fair_get_cast(t, message, &request)) {
            if (get_number(t, request, "add", &number)) {
                c.value += number;
                tell(t, &c);
            }
        } else if ((next = handle_system(t, &c, message))) {
            return next;
        }
    }
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_counter", 1, counter, FAIR_NORMAL | FAIR_AWAITED),
};

FAIR_NIF_INIT(counter_server, nifs, NULL, NULL, NULL, NULL)
