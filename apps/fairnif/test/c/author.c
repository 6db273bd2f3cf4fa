/*
 * author.c - an author's library as a shared object of its own, that can be
 * loaded, upgraded and unmapped.  Compiled twice: as AUTHOR_VERSION 1 and 2.
 */
#include "../../c_include/fairnif.h"

void author_note(const char *text);     /* of test_load.c */
void gate_pass(void *unused);           /* of common.c */

static int refuses;             /* its load_info asked for it */

static void defer(void *arg)
{
    author_note(arg);           /* a string of this library */
}

static ERL_NIF_TERM version(fair_task *t)
{
    return enif_make_int(fair_env(t), AUTHOR_VERSION);
}

/* waits(N) */
static ERL_NIF_TERM waits(fair_task *t)
{
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    if (!fair_defer(t, defer, AUTHOR_VERSION == 1 ? "one " : "two "))
        return fair_enomem(t);
    for (unsigned i = 0; i < n; i++)
        fair_tick(t, 1);
    return enif_make_tuple2(fair_env(t), enif_make_int(fair_env(t),
                                                       AUTHOR_VERSION),
                            enif_make_uint(fair_env(t), n));
}

static ERL_NIF_TERM plain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_long(env, (long)(intptr_t)enif_priv_data(env));
}

static fair_resource_type *things;
static size_t thing_size = 100;

static void clean_up(fair_task *t, void *obj)
{
    (void)obj;
    fair_tick(t, 1);
    gate_pass(NULL);
    fair_tick(t, 1);
    author_note(AUTHOR_VERSION == 1 ? "clean-one " : "clean-two ");
}

static void go_down(fair_task *t, void *obj, const ErlNifPid *pid,
                    const ErlNifMonitor *monitor)
{
    (void)obj, (void)pid, (void)monitor;
    fair_tick(t, 1);
    gate_pass(NULL);
    fair_tick(t, 1);
    author_note(AUTHOR_VERSION == 1 ? "down-one " : "down-two ");
}

static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *obj = fair_resource_new(things, thing_size);
    ERL_NIF_TERM term = fair_resource_term(env, obj);

    (void)argc, (void)argv;
    fair_resource_release(obj);
    return term;
}

/* monitored(Thing): by its caller. */
static ERL_NIF_TERM monitored(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    void *obj;
    ErlNifMonitor monitor;
    ErlNifPid self;

    (void)argc;
    if (!fair_resource_peek(env, argv[0], things, &obj))
        return enif_make_badarg(env);
    enif_self(env, &self);
    return enif_make_int(env, enif_monitor_process(
        env, fair_resource_vm(obj), &self, &monitor));
}

static ErlNifFunc nifs[] = {
    {"make", 0, make, 0},
    {"monitored", 1, monitored, 0},
    FAIR_NIF("version", 0, version, FAIR_AUTO),
    FAIR_NIF("waits", 1, waits, FAIR_NORMAL),
    FAIR_NIF("waits_dirty", 1, waits, FAIR_DIRTY_CPU),
#if AUTHOR_VERSION == 2
    FAIR_NIF("new_in_two", 0, version, FAIR_AUTO),
#endif
    {"plain", 0, plain, 0},
};

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    fair_resource_options options = {
        .name = "thing", .cleanup = clean_up, .down = go_down
    };
    fair_resource_type *opened;
    int n = 0;

    if (enif_is_identical(info, enif_make_atom(env, "sized")))
        options.size = 100 * AUTHOR_VERSION;
    opened = fair_resource_open(env, &options);
    if (!opened)
        return FAIR_E_NOMEM;
    things = opened;
    if (options.size)
        thing_size = options.size;
    refuses = enif_get_int(env, info, &n);
    *priv = (void *)(intptr_t)(100 + AUTHOR_VERSION);
    return n;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static void unload(ErlNifEnv *env, void *priv)
{
    (void)env, (void)priv;
    author_note(AUTHOR_VERSION == 1 ? "unload-one " : "unload-two ");
}

FAIR_NIF_INIT(author, nifs, load, upgrade, unload)
