/*
 * block_fair.c - fairnif functions, module fairnif_watch_block_fair: bodies
 * that block their scheduler since they do not tick, in each mode where that
 * does harm or might be taken for harm, and one that ticks as it should.
 */
#define _GNU_SOURCE             /* ways.h */

#include <fairnif.h>

#include "ways.h"

static ERL_NIF_TERM answer(fair_task *t, ErlNifTime since)
{
    return enif_make_tuple3(
        fair_env(t), enif_make_int64(fair_env(t), since),
        enif_make_int64(fair_env(t), enif_monotonic_time(ERL_NIF_NSEC)),
        enif_make_uint(fair_env(t), 0));
}

static int get_ms(fair_task *t, struct way *w)
{
    unsigned ms;

    if (!fair_get_uint(t, fair_arg(t, 0), &ms))
        return 0;
    *w = (struct way){ .ms = (long)ms, .seed = 1 };
    return 1;
}

/* Never ticks. */
static ERL_NIF_TERM hold(fair_task *t, void (*way)(struct way *))
{
    ErlNifTime since = enif_monotonic_time(ERL_NIF_NSEC);
    struct way w;

    if (!get_ms(t, &w))
        return fair_badarg(t);
    way(&w);
    return w.failed ? fair_raise(t, enif_make_int(fair_env(t), w.failed))
        : answer(t, since);
}

static ERL_NIF_TERM spin(fair_task *t)
{
    return hold(t, way_spin);
}

static ERL_NIF_TERM sleeps(fair_task *t)
{
    return hold(t, way_sleep);
}

static ERL_NIF_TERM kernel(fair_task *t)
{
    return hold(t, way_kernel);
}

static void spin_in_call(void *arg)
{
    way_spin(arg);
}

/* Code that cannot tick, where it belongs. */
static ERL_NIF_TERM call(fair_task *t)
{
    ErlNifTime since = enif_monotonic_time(ERL_NIF_NSEC);
    struct way w;

    if (!get_ms(t, &w))
        return fair_badarg(t);
    fair_offload(t, FAIR_AUTO, (size_t)w.ms, spin_in_call, &w);
    return answer(t, since);
}

/* Runs until its caller dies, and takes that long to clean up. */
static ERL_NIF_TERM unwinds(fair_task *t)
{
    struct way w;

    if (!get_ms(t, &w))
        return fair_badarg(t);
    while (!fair_cancelled(t))
        fair_tick(t, 500);
    way_sleep(&w);
    return 0;
}

/* Ticks about once a microsecond, for that many ms of its own time. */
static ERL_NIF_TERM fair(fair_task *t)
{
    ErlNifTime since = enif_monotonic_time(ERL_NIF_NSEC);
    struct way w;
    volatile unsigned x = 1;
    uint64_t end;

    if (!get_ms(t, &w))
        return fair_badarg(t);
    end = way_end(&w);
    while (way_ns() < end) {
        for (int i = 0; i < 500; i++)
            x = x * 1664525u + 1013904223u;
        fair_tick(t, 500);
    }
    return answer(t, since);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("spin_normal", 1, spin, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("spin_yielding", 1, spin, FAIR_NORMAL),
    FAIR_NIF("spin_auto", 1, spin, FAIR_AUTO),
    FAIR_NIF("spin_dirty_cpu", 1, spin, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("spin_dirty_io", 1, spin, FAIR_DIRTY_IO | FAIR_NO_YIELD),
    FAIR_NIF("sleep_normal", 1, sleeps, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("kernel_normal", 1, kernel, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("sleep_dirty_io", 1, sleeps, FAIR_DIRTY_IO | FAIR_NO_YIELD),
    FAIR_NIF("sleep_threaded", 1, sleeps, FAIR_THREADED),
    FAIR_NIF("unwinds", 1, unwinds, FAIR_AUTO | FAIR_CLEANUP),
    FAIR_NIF("call_auto", 1, call, FAIR_AUTO),
    FAIR_NIF("fair_yielding", 1, fair, FAIR_NORMAL),
    FAIR_NIF("fair_auto", 1, fair, FAIR_AUTO),
    FAIR_NIF("fair_yielding_dirty", 1, fair, FAIR_DIRTY_CPU),
};

FAIR_NIF_INIT(fairnif_watch_block_fair, nifs, NULL, NULL, NULL)
