/*
 * fairnif_test_release.c - the library of the author's application that
 * fairnif_release_SUITE puts into a release: count(Us) -> {VERSION, Yields}.
 */
#include <time.h>

#include <fairnif.h>

static long now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

static ERL_NIF_TERM count(fair_task *t)
{
    unsigned us;

    if (!fair_get_uint(t, fair_arg(t, 0), &us))
        return fair_badarg(t);
    for (long end = now_us() + us; now_us() < end; )
        fair_tick(t, 20);
    return enif_make_tuple2(fair_env(t), enif_make_int(fair_env(t), VERSION),
                            enif_make_uint64(fair_env(t), fair_yields(t)));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("count", 1, count, FAIR_AUTO),
    FAIR_NIF("count_dirty", 1, count, FAIR_DIRTY_CPU),
};

FAIR_NIF_INIT(fairrel, nifs, NULL, NULL, NULL)
