/*
 * nif.c - the NIF library of module fairnif_driver: loaded, upgraded, asked.
 *
 * Drivers' ports point into this library, and threads of the pool may be in it,
 * whatever happens to the module, which may be loaded again even from another
 * file.  So the first copy is never unmapped, the runtime remembers it, and
 * the NIFs of every load go through its table, which priv_data points to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "callbacks.h"
#include "queue.h"
#include "request.h"

/* hand_over(Path) -> ok | {error, Reason} */
static ERL_NIF_TERM hand_over(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    (void)argc;
    return drv__hand_over(env, argv[0], &drv__ops);
}

static void put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key, uint64_t n)
{
    enif_make_map_put(env, *map, enif_make_atom(env, key),
                      enif_make_uint64(env, n), map);
}

/* counts() -> #{ports, jobs, requests, libraries} */
static ERL_NIF_TERM counts(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM map = enif_make_new_map(env);

    (void)argc, (void)argv;
    put(env, &map, "ports", drv__ports());
    put(env, &map, "jobs", drv__jobs());
    put(env, &map, "requests", drv__requests());
    put(env, &map, "libraries", drv__libraries());
    return map;
}

/* NIF(name, arity, where, function), called nif_NAME in Erlang. */
#define NIFS                                                                \
    NIF(hand_over, 1, ERL_NIF_DIRTY_JOB_IO_BOUND, hand_over)                \
    NIF(known, 1, 0, drv__known)                                            \
    NIF(request, 2, 0, drv__request)                                        \
    NIF(deferred, 1, 0, drv__deferred)                                      \
    NIF(abandon, 1, 0, drv__abandon)                                        \
    NIF(counts, 0, 0, counts)

/* What one copy of this library offers to the module. */
struct copy {
    uint32_t size;              /* of this struct: first, never moves */
    const char *version;        /* second */
    bool (*open_types)(ErlNifEnv *env);
#define NIF(NAME, ARITY, WHERE, FUNCTION) drv_nif *NAME;
    NIFS
#undef NIF
};

static const struct copy this_copy = {
    .size = sizeof this_copy,
    .version = FAIRNIF_VERSION,
    .open_types = drv__requests_open,
#define NIF(NAME, ARITY, WHERE, FUNCTION) .NAME = FUNCTION,
    NIFS
#undef NIF
};

#define NIF(NAME, ARITY, WHERE, FUNCTION)                                   \
    static ERL_NIF_TERM nif_##NAME(ErlNifEnv *env, int argc,                \
                                   const ERL_NIF_TERM argv[])               \
    {                                                                       \
        const struct copy *copy = enif_priv_data(env);                      \
                                                                            \
        return copy->NAME(env, argc, argv);                                 \
    }
NIFS
#undef NIF

/* One handle more on this library, which is never closed. */
static bool stay_loaded(void)
{
    Dl_info self;

    return dladdr(&this_copy, &self)
        && dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM load_info)
{
    const struct copy *copy;
    int error = drv__bind(env, load_info);

    if (error)
        return error;
    if (!stay_loaded()) {
        fprintf(stderr, "fairnif_driver: cannot keep its library loaded\n");
        return FAIR_E_RUNTIME;
    }
    copy = drv__runtime->first(&this_copy);
    if (copy->size != sizeof *copy
        || strcmp(copy->version, FAIRNIF_VERSION) != 0) {
        fprintf(stderr, "fairnif_driver: version %s is loaded and cannot be "
                "replaced by %s in a running node: restart the node\n",
                copy->version, FAIRNIF_VERSION);
        return FAIR_E_ABI;
    }
    *priv = (void *)(uintptr_t)copy;
    return copy->open_types(env) ? 0 : FAIR_E_NOMEM;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM load_info)
{
    (void)old_priv;
    return load(env, priv, load_info);
}

static ErlNifFunc nifs[] = {
#define NIF(NAME, ARITY, WHERE, FUNCTION)                                   \
    {"nif_" #NAME, ARITY, nif_##NAME, WHERE},
    NIFS
#undef NIF
};

ERL_NIF_INIT(fairnif_driver, nifs, load, NULL, upgrade, NULL)
