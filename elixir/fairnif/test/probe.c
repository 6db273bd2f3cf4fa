/* probe.c - the library of the tests' modules: the term of its load, and how
 * often a body that ticks yielded.  PROBE_MODULE: the module it is for. */
#include <fairnif.h>

static ErlNifEnv *kept;
static ERL_NIF_TERM load_info;

static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_copy(env, load_info);
}

static ERL_NIF_TERM count(fair_task *t)
{
    ErlNifUInt64 n;

    if (!fair_get_uint64(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (ErlNifUInt64 i = 0; i < n; i++)
        fair_tick(t, 1);
    return enif_make_uint64(fair_env(t), fair_yields(t));
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM term)
{
    (void)env, (void)priv;
    kept = enif_alloc_env();
    if (!kept)
        return 1;
    load_info = enif_make_copy(kept, term);
    return 0;
}

static void unload(ErlNifEnv *env, void *priv)
{
    (void)env, (void)priv;
    enif_free_env(kept);
}

static ErlNifFunc nifs[] = {
    {"info", 0, info, 0},
    FAIR_NIF("count", 1, count, FAIR_NORMAL)
};

FAIR_NIF_INIT(PROBE_MODULE, nifs, load, NULL, unload)
