/*
 * fairnif_test_nif.c - an author's library as the tests need it: every body
 * of test_bodies.h in every mode, plain NIFs beside, own load_info, private
 * data and a resource type.
 *
 * Counts in struct probe only, which outlives it.
 */
#include "test_bodies.h"

/* -- plain NIFs ------------------------------------------------------------ */

struct priv {
    long loads;                 /* load and upgrades in a row */
    ErlNifMutex *mutex;
};

/* version() -> {Version, Loads} */
static ERL_NIF_TERM version(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    struct priv *priv = enif_priv_data(env);

    (void)argc, (void)argv;
    return enif_make_tuple2(env, enif_make_int(env, VERSION),
                            enif_make_long(env, priv->loads));
}

/* new_object(Value) */
static ERL_NIF_TERM new_object(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    struct object *obj;
    ERL_NIF_TERM term;
    long value;

    (void)argc;
    if (!enif_get_long(env, argv[0], &value))
        return enif_make_badarg(env);
    obj = enif_alloc_resource(probe->object_type, sizeof *obj);
    obj->value = value;
    memset(obj->text, 7, sizeof obj->text);
    probe->objects++;
    term = enif_make_resource(env, obj);
    enif_release_resource(obj);
    return term;
}

/* pretend(Size): a binary that says it has Size bytes.  It has none. */
static ERL_NIF_TERM pretend(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 size;
    ERL_NIF_TERM term;
    void *obj;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &size))
        return enif_make_badarg(env);
    obj = enif_alloc_resource(probe->object_type, sizeof(struct object));
    probe->objects++;
    term = enif_make_resource_binary(env, obj, obj, size);
    enif_release_resource(obj);
    return term;
}

static ERL_NIF_TERM nothing(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_atom(env, "ok");
}

/* -- loading --------------------------------------------------------------- */

static void object_dtor(ErlNifEnv *env, void *obj)
{
    (void)env;
    memset(obj, 0, sizeof(struct object));
    probe->objects--;
}

/* No process is monitored; but where a type without `down` is taken over while
 * an object of it is made, the VM writes over foreign memory: see the guide. */
static void object_down(ErlNifEnv *env, void *obj, ErlNifPid *pid,
                        ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static const ErlNifResourceTypeInit of_object = {
    .dtor = object_dtor, .down = object_down, .members = 3
};

/* info: {probe, Address} */
static int open_all(ErlNifEnv *env, struct priv **priv, ERL_NIF_TERM info)
{
    const ERL_NIF_TERM *elems;
    int arity;
    ErlNifUInt64 address;

    if (!enif_get_tuple(env, info, &arity, &elems) || arity != 2
        || !enif_is_identical(elems[0], enif_make_atom(env, "probe"))
        || !enif_get_uint64(env, elems[1], &address))
        return 1;
    probe = (struct probe *)(uintptr_t)address;
    probe->object_type = enif_init_resource_type(
        env, "fairnif_test_object", &of_object,
        ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    *priv = enif_alloc(sizeof **priv);
    if (!probe->object_type || !*priv)
        return 2;
    (*priv)->loads = 1;
    (*priv)->mutex = mutex = enif_mutex_create((char *)"fairnif_test_nif");
    probe->privs++;
    return 0;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    return open_all(env, (struct priv **)priv, info);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    const struct priv *old = *old_priv;
    int error = open_all(env, (struct priv **)priv, info);

    if (!error)
        ((struct priv *)*priv)->loads = old->loads + 1;
    return error;
}

static void unload(ErlNifEnv *env, void *priv)
{
    (void)env;
    enif_mutex_destroy(((struct priv *)priv)->mutex);
    enif_free(priv);
    probe->privs--;
}

#define MODES(NAME, ARITY)                                                  \
    FAIR_NIF(#NAME "_normal", ARITY, NAME, FAIR_NORMAL | FAIR_NO_YIELD),    \
    FAIR_NIF(#NAME "_yielding", ARITY, NAME, FAIR_NORMAL),                  \
    FAIR_NIF(#NAME "_dirty_cpu", ARITY, NAME,                               \
             FAIR_DIRTY_CPU | FAIR_NO_YIELD),                               \
    FAIR_NIF(#NAME "_dirty_io", ARITY, NAME,                                \
             FAIR_DIRTY_IO | FAIR_NO_YIELD),                                \
    FAIR_NIF(#NAME "_yielding_dirty", ARITY, NAME, FAIR_DIRTY_CPU),         \
    FAIR_NIF(#NAME "_auto", ARITY, NAME, FAIR_AUTO)

static const fair_options at_most_two = {.body = spin, .max_tasks = 2};
static const fair_options large_stack = {.body = deep,
                                         .stack_size = 4 * 1024 * 1024};
static const fair_options large_called = {.body = deep_called,
                                          .stack_size = 4 * 1024 * 1024};
static const fair_options long_slices = {.body = spin, .slice_us = 2000};

static ErlNifFunc nifs[] = {
    {"version", 0, version, 0},
    {"new_object", 1, new_object, 0},
    {"pretend", 1, pretend, 0},
    {"nothing", 0, nothing, 0},
    {"nothing_dirty", 0, nothing, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF_OPTIONS("limited", 3, &at_most_two, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("deep_enough", 1, &large_stack, FAIR_AUTO),
    FAIR_NIF_OPTIONS("long_slices", 3, &long_slices, FAIR_NORMAL),
    FAIR_NIF("spin_unwinding", 3, spin, FAIR_NORMAL | FAIR_CLEANUP),
    FAIR_NIF("spin_unwinding_dirty", 3, spin, FAIR_DIRTY_CPU | FAIR_CLEANUP),
    MODES(spin, 3), MODES(never_tick, 1), MODES(ticks, 2), MODES(echo, 1),
    MODES(kinds, 1), MODES(walk, 1), MODES(build, 1), MODES(reverse, 1),
    MODES(bytes, 1), MODES(text, 1), MODES(flip, 1), MODES(garbage, 2),
    MODES(fail, 1), MODES(object, 2), MODES(move, 2), MODES(call, 2),
    MODES(blocking, 1), MODES(roots, 2),
    FAIR_NIF("deep", 1, deep, FAIR_AUTO),
    FAIR_NIF("deep_dirty", 1, deep, FAIR_DIRTY_CPU),
    FAIR_NIF("deep_called", 2, deep_called, FAIR_AUTO),
    FAIR_NIF_OPTIONS("deep_called_enough", 2, &large_called, FAIR_AUTO),
    FAIR_NIF("keeps_term", 1, keeps_term, FAIR_NORMAL),
    FAIR_NIF("holds_mutex", 0, holds_mutex, FAIR_NORMAL),
};

FAIR_NIF_INIT(fairnif_test_nif, nifs, load, upgrade, unload)
