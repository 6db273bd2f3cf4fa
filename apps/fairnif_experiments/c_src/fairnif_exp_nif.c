/*
 * NIFs with manners that the experiments need and no example has: one that only
 * says that it used its time slice, and one that is sliced by hand with slices
 * of any length.
 *
 * Plain NIFs: fairnif's runtime has no part in them.
 */
#include <erl_nif.h>

#define MAX_SLICE_US 1000000
#define MAX_SLICES 1000000000

/* consume(Percent): whether the VM says that the slice is used up */
static ERL_NIF_TERM consume(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int percent;

    (void)argc;
    if (!enif_get_int(env, argv[0], &percent) || percent < 1 || percent > 100)
        return enif_make_badarg(env);
    return enif_make_atom(env, enif_consume_timeslice(env, percent) ? "true" : "false");
}

/* sliced(SliceUs, Slices): so many slices of so many microseconds, by the wall
 * clock, each charged as a full one; answers ok. How many are left travels in
 * the arguments. */
static ERL_NIF_TERM sliced(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM next[2];
    unsigned us, slices;
    ErlNifTime end;

    if (argc != 2 || !enif_get_uint(env, argv[0], &us) || us < 1 || us > MAX_SLICE_US
        || !enif_get_uint(env, argv[1], &slices) || slices < 1 || slices > MAX_SLICES)
        return enif_make_badarg(env);
    end = enif_monotonic_time(ERL_NIF_NSEC) + (ErlNifTime)us * 1000;
    while (enif_monotonic_time(ERL_NIF_NSEC) < end)
        ;
    enif_consume_timeslice(env, 100);
    if (slices == 1)
        return enif_make_atom(env, "ok");
    next[0] = argv[0];
    next[1] = enif_make_uint(env, slices - 1);
    return enif_schedule_nif(env, "sliced", 0, sliced, 2, next);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)info;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    {"consume", 1, consume, 0},
    {"sliced", 2, sliced, 0},
};

ERL_NIF_INIT(fairnif_exp_nif, nifs, load, NULL, upgrade, NULL)
