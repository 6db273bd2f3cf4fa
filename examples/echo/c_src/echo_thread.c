/*
 * echo_thread.c - an echo by an operating system's thread of its own for each
 * call, which answers with a message: what one does without a pool.
 *
 * A call is a resource.  It owns the thread, the answer's environment and the
 * identity of the caller.  The thread uses them until it ends, and it is joined
 * before they are freed: by join/1, or by the destructor when the caller died
 * before it came to that.  The thread never waits for anything, so that neither
 * holds a scheduler for longer than the rest of the thread's few microseconds.
 *
 * No upgrade: a new version of this library would take the resource type over,
 * and the code of this one could then be unmapped beneath a thread.
 */
#include <erl_nif.h>

struct call {
    ErlNifTid thread;
    int to_join;                /* changed atomically: one caller joins */
    ErlNifPid caller;
    ErlNifEnv *env;
    ERL_NIF_TERM answer;        /* {Ref, Bin}, in env */
};

static ErlNifResourceType *call_type;

static void *answer(void *arg)
{
    struct call *c = arg;

    enif_send(NULL, &c->caller, c->env, c->answer);
    return NULL;
}

/* Waits for the thread's end; 0 when that was or is done already. */
static int join_once(struct call *c)
{
    if (!__atomic_exchange_n(&c->to_join, 0, __ATOMIC_ACQ_REL))
        return 0;
    enif_thread_join(c->thread, NULL);
    return 1;
}

static void end_of_call(ErlNifEnv *env, void *obj)
{
    struct call *c = obj;

    (void)env;
    join_once(c);
    if (c->env)
        enif_free_env(c->env);
}

/* start(Ref, Bin): a call; {Ref, Bin} comes as a message. */
static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct call *c;
    ERL_NIF_TERM term;

    if (argc != 2 || !enif_is_ref(env, argv[0])
        || !enif_is_binary(env, argv[1]) || !(c = enif_alloc_resource(call_type, sizeof *c)))
        return enif_make_badarg(env);
    c->to_join = 0;
    c->env = enif_alloc_env();
    term = enif_make_resource(env, c);
    enif_release_resource(c);   /* the term holds it now */
    if (!c->env)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    enif_self(env, &c->caller);
    c->answer = enif_make_tuple2(c->env, enif_make_copy(c->env, argv[0]),
                                 enif_make_copy(c->env, argv[1]));
    if (enif_thread_create("echo_thread", &c->thread, answer, c, NULL))
        return enif_raise_exception(env, enif_make_atom(env, "no_thread"));
    __atomic_store_n(&c->to_join, 1, __ATOMIC_RELEASE);
    return term;
}

/* join(Call): ok once its thread has ended; badarg the second time. */
static ERL_NIF_TERM join(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *obj;

    if (argc != 1 || !enif_get_resource(env, argv[0], call_type, &obj)
        || !join_once(obj))
        return enif_make_badarg(env);
    return enif_make_atom(env, "ok");
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    call_type = enif_open_resource_type(env, NULL, "echo_thread_call",
                                        end_of_call, ERL_NIF_RT_CREATE, NULL);
    return call_type ? 0 : 1;
}

static ErlNifFunc nifs[] = {
    {"start", 2, start, 0},
    {"join", 1, join, 0},
};

ERL_NIF_INIT(echo_thread, nifs, load, NULL, NULL, NULL)
