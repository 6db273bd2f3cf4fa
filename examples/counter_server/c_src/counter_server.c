/*
 * counter_server.c - the body of a native process: counter_server_erl in C.  Its
 * state is in local variables: the value, and a root with the list of those who
 * wait for a value, {Least, From} each.
 */
#include <fairnif.h>

struct counter {
    ErlNifSInt64 value;
    unsigned waiting;           /* a root */
};

/* Looked up once: each look takes 40 ns, of a call that takes 1,000. */
#define ATOMS(A)                                                             \
    A(add) A(badarg) A(code_change) A(continue) A(error) A(get_state)        \
    A(normal) A(ok) A(replace_state) A(stop) A(system) A(unknown) A(value)   \
    A(wait_for)

#define DECLARE(name) static ERL_NIF_TERM am_##name;
#define LOOK_UP(name) am_##name = enif_make_atom(env, #name);
ATOMS(DECLARE)

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    ATOMS(LOOK_UP)
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)old;
    return load(env, priv, info);
}

static int get_pair(fair_task *t, ERL_NIF_TERM term, const ERL_NIF_TERM **parts)
{
    int arity;

    return enif_get_tuple(fair_env(t), term, &arity, parts) && arity == 2;
}

/* {Tag, Integer} */
static int get_number(fair_task *t, ERL_NIF_TERM term, ERL_NIF_TERM tag,
                      ErlNifSInt64 *number)
{
    const ERL_NIF_TERM *parts;

    return get_pair(t, term, &parts) && enif_is_identical(parts[0], tag)
        && fair_get_int64(t, parts[1], number);
}

static void reply(fair_task *t, ERL_NIF_TERM from, const struct counter *c)
{
    fair_reply(t, from, enif_make_int64(fair_env(t), c->value));
}

/* 0: the sum is none of 64 bits. */
static int add(struct counter *c, ErlNifSInt64 number)
{
    ErlNifSInt64 sum;

    if (__builtin_add_overflow(c->value, number, &sum))
        return 0;
    c->value = sum;
    return 1;
}

/* Answers those whose value is reached; the others wait on. */
static void tell(fair_task *t, struct counter *c)
{
    const ERL_NIF_TERM *parts;
    ErlNifSInt64 least;
    ERL_NIF_TERM head;
    unsigned all;

    if (enif_is_empty_list(fair_env(t), fair_root_get(t, c->waiting)))
        return;
    all = fair_root_new(t, fair_root_get(t, c->waiting));
    fair_root_set(t, c->waiting, enif_make_list(fair_env(t), 0));
    fair_list_reverse(t, all);          /* the longest wait comes first */
    while (fair_list_next(t, all, &head)) {
        /* Anything may be there: sys:replace_state. */
        if (get_pair(t, head, &parts) && fair_get_int64(t, parts[0], &least)) {
            if (least <= c->value)
                reply(t, parts[1], c);
            else
                fair_list_push(t, c->waiting, head);
        }
        fair_tick(t, 1);                /* may pause: `head` is gone */
    }
    fair_root_drop(t, all);
}

/* 0 when it was asked to stop. */
static int handle_call(fair_task *t, struct counter *c, ERL_NIF_TERM from,
                       ERL_NIF_TERM request)
{
    ErlNifEnv *env = fair_env(t);
    ErlNifSInt64 number;

    if (enif_is_identical(request, am_value)) {
        reply(t, from, c);
    } else if (get_number(t, request, am_add, &number) && add(c, number)) {
        reply(t, from, c);
        tell(t, c);
    } else if (get_number(t, request, am_wait_for, &number)) {
        if (number <= c->value)
            reply(t, from, c);
        else
            fair_list_push(t, c->waiting, enif_make_tuple2(
                               env, enif_make_int64(env, number), from));
    } else if (enif_is_identical(request, am_stop)) {
        fair_reply(t, from, am_ok);
        return 0;
    } else {
        fair_reply(t, from, enif_make_tuple2(env, am_error, am_unknown));
    }
    return 1;
}

/* The state as a term, as in Erlang: {Value, Waiting}. */
static ERL_NIF_TERM get_state(fair_task *t, const struct counter *c)
{
    return enif_make_tuple2(fair_env(t), enif_make_int64(fair_env(t), c->value),
                            fair_root_get(t, c->waiting));
}

static int set_state(fair_task *t, struct counter *c, ERL_NIF_TERM state)
{
    const ERL_NIF_TERM *parts;

    if (!get_pair(t, state, &parts) || !enif_is_list(fair_env(t), parts[1])
        || !fair_get_int64(t, parts[0], &c->value))
        return 0;
    fair_root_set(t, c->waiting, parts[1]);
    return 1;
}

/* {system, From, Request}: see fairnif_process.  {continue, [State]} when it is
 * to continue in the newest version of this library; 0: here. */
static ERL_NIF_TERM handle_system(fair_task *t, struct counter *c,
                                  ERL_NIF_TERM message)
{
    ErlNifEnv *env = fair_env(t);
    const ERL_NIF_TERM *parts;
    ERL_NIF_TERM from;
    int arity;

    if (!enif_get_tuple(env, message, &arity, &parts) || arity != 3
        || !enif_is_identical(parts[0], am_system))
        return 0;
    from = parts[1];
    if (enif_is_identical(parts[2], am_get_state)) {
        fair_reply(t, from, get_state(t, c));
    } else if (!enif_get_tuple(env, parts[2], &arity, &parts) || arity < 2) {
        fair_reply(t, from, am_unknown);
    } else if (enif_is_identical(parts[0], am_replace_state)) {
        fair_reply(t, from, set_state(t, c, parts[1]) ? am_ok : am_badarg);
    } else {
        fair_reply(t, from, am_ok);     /* code_change, terminate */
        if (enif_is_identical(parts[0], am_code_change))
            return enif_make_tuple2(env, am_continue,
                                    enif_make_list1(env, get_state(t, c)));
    }
    return 0;
}

/* counter(State) */
static ERL_NIF_TERM counter(fair_task *t)
{
    struct counter c;
    ERL_NIF_TERM message, from, request, next;
    ErlNifSInt64 number;

    c.waiting = fair_root_new(t, enif_make_list(fair_env(t), 0));
    if (!set_state(t, &c, fair_arg(t, 0)))
        return fair_badarg(t);
    for (;;) {
        fair_receive(t, -1, &message);
        if (fair_match_call(t, message, &from, &request)) {
            if (!handle_call(t, &c, from, request))
                return am_normal;
        } else if (fair_match_cast(t, message, &request)) {
            if (get_number(t, request, am_add, &number) && add(&c, number))
                tell(t, &c);
        } else if ((next = handle_system(t, &c, message))) {
            return next;
        }
    }
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_counter", 1, counter, FAIR_NORMAL | FAIR_MAY_WAIT),
};

FAIR_NIF_INIT(counter_server, nifs, load, upgrade, NULL)
