/* The zoo's functions that are written with fairnif: well-behaved twins, and the
 * three mistakes that an author can still make. */
#include <fairnif.h>

#include <stdlib.h>

#include "zoo.h"

#define STEP_US 2

static int us_of(fair_task *t, unsigned *us)
{
    return fair_get_uint(t, fair_arg(t, 0), us) && *us <= ZOO_MAX_US;
}

static void work_in_ticks(fair_task *t, unsigned us)
{
    for (unsigned done = 0; done < us; done += STEP_US) {
        zoo_work(STEP_US);
        fair_tick(t, STEP_US);
    }
}

static ERL_NIF_TERM done(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

/* work(Us) */
static ERL_NIF_TERM work(fair_task *t)
{
    unsigned us;

    if (!us_of(t, &us))
        return fair_badarg(t);
    work_in_ticks(t, us);
    return done(t);
}

/* no_ticks(Us): never says how much it has done. */
static ERL_NIF_TERM no_ticks(fair_task *t)
{
    unsigned us;

    if (!us_of(t, &us))
        return fair_badarg(t);
    zoo_work(us);
    return done(t);
}

static void work_ms(void *arg)
{
    (void)arg;
    zoo_work(1000);
}

/* calls(Us): code that cannot tick, a millisecond at a time. */
static ERL_NIF_TERM calls(fair_task *t)
{
    unsigned us;

    if (!us_of(t, &us))
        return fair_badarg(t);
    for (unsigned spent = 0; spent < us; spent += 1000)
        fair_offload(t, FAIR_AUTO, 1000, work_ms, NULL);
    return done(t);
}

static void sleep_us(void *arg)
{
    zoo_sleep(*(unsigned *)arg);
}

/* waits(Us): in one piece, in the kernel, on a dirty I/O scheduler. */
static ERL_NIF_TERM waits(fair_task *t)
{
    unsigned us;

    if (!us_of(t, &us))
        return fair_badarg(t);
    fair_offload(t, FAIR_DIRTY_IO, 0, sleep_us, &us);
    return done(t);
}

/* keeps(Us): memory that goes with the task. */
static ERL_NIF_TERM keeps(fair_task *t)
{
    unsigned us;
    char *p;

    if (!us_of(t, &us))
        return fair_badarg(t);
    if ((p = fair_alloc(t, ZOO_KEPT)) == NULL)
        return fair_enomem(t);
    memset(p, 1, ZOO_KEPT);
    work_in_ticks(t, us);
    return done(t);
}

/* leaks(Us): memory that only the C stack knows: lost when the caller dies. */
static ERL_NIF_TERM leaks(fair_task *t)
{
    unsigned us;
    char *p;

    if (!us_of(t, &us))
        return fair_badarg(t);
    if ((p = malloc(ZOO_KEPT)) == NULL)
        return fair_enomem(t);
    memset(p, 1, ZOO_KEPT);
    __asm__ volatile("" : : "r"(p) : "memory");     /* or it is left out, as unused */
    work_in_ticks(t, us);
    free(p);
    return done(t);
}

/* list(N): 1 to N, made in slices. */
static ERL_NIF_TERM list(fair_task *t)
{
    unsigned n, made = fair_root_new(t, enif_make_list(fair_env(t), 0));

    if (!fair_get_uint(t, fair_arg(t, 0), &n) || n > 20000000)
        return fair_badarg(t);
    for (; n > 0; n--) {
        fair_list_push(t, made, enif_make_uint(fair_env(t), n));
        fair_tick(t, 1);
    }
    return fair_root_get(t, made);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("work_auto", 1, work, FAIR_AUTO),
    FAIR_NIF("work_yielding", 1, work, FAIR_NORMAL),
    FAIR_NIF("work_dirty", 1, work, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("work_yielding_dirty", 1, work, FAIR_DIRTY_CPU),
    FAIR_NIF("no_ticks", 1, no_ticks, FAIR_NORMAL),
    FAIR_NIF("calls", 1, calls, FAIR_AUTO),
    FAIR_NIF("waits", 1, waits, FAIR_AUTO),
    FAIR_NIF("keeps", 1, keeps, FAIR_AUTO),
    FAIR_NIF("leaks", 1, leaks, FAIR_AUTO),
    FAIR_NIF("list", 1, list, FAIR_AUTO),
};

FAIR_NIF_INIT(fairnif_zoo_fair, nifs, NULL, NULL, NULL)
