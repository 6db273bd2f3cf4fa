/*
 * spinsleep.c - NIFs that take a given time, for the Elixir module Spinsleep.
 *
 * Two jobs in steps of a microsecond, as in examples/spinsleep, which has more
 * forms of them and says why they are as they are.  `spinsleep` spins until a
 * deadline of the wall clock; `spinwork` does a fixed amount of computation.
 */
#define _GNU_SOURCE
#include <time.h>

#include <fairnif.h>

#define MAX_US 3600000000   /* an hour */

struct job {
    ErlNifTime begun, now;  /* of the VM's clock, ns */
    ErlNifTime end;         /* the deadline */
    ErlNifUInt64 left;      /* microseconds of work still to do */
    ErlNifUInt64 state;     /* of the work; never 0 */
};

static unsigned rounds_per_us;      /* written once, in the first load */

static ErlNifTime now(void)
{
    return enif_monotonic_time(ERL_NIF_NSEC);
}

/* A chain of which each link needs the one before (xorshift): no compiler and
 * no processor can do parts of it at once. */
static __attribute__((noinline)) ErlNifUInt64 work(ErlNifUInt64 x,
                                                   unsigned rounds)
{
    while (rounds-- > 0) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    __asm__ volatile("" : "+r"(x));     /* or it is left out, as unused */
    return x;
}

static long cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

/* How many rounds this machine does in a microsecond of CPU time: by the
 * shortest of some runs, as only disturbances make them longer.  3 ms. */
static void calibrate(void)
{
    enum { RUNS = 32, ROUNDS = 40000 };
    ErlNifUInt64 x = 1;
    long best = 0;

    if (rounds_per_us)
        return;
    for (int i = 0; i < RUNS; i++) {
        long t = cpu_ns();

        x = work(x, ROUNDS);
        t = cpu_ns() - t;
        if (t > 0 && (best == 0 || t < best))
            best = t;
    }
    rounds_per_us = best > 0 ? (unsigned)(ROUNDS * 1000L / best) + 1 : 1;
}

/* ------------------------------------------------------------------------
 * The steps: about a microsecond of the job; 0 when it is done.
 * ------------------------------------------------------------------------ */

typedef int (*step_fn)(struct job *job);

static inline int step_to_deadline(struct job *job)
{
    ErlNifTime until = job->now + 1000;

    if (job->now >= job->end)
        return 0;
    if (until > job->end)
        until = job->end;
    while (job->now < until)
        job->now = now();
    return 1;
}

static inline int step_of_work(struct job *job)
{
    if (job->left == 0) {
        job->now = now();
        return 0;
    }
    job->state = work(job->state, rounds_per_us);
    job->left--;
    return 1;
}

static void begin(struct job *job, ErlNifUInt64 us)
{
    job->begun = job->now = now();
    job->end = job->begun + (ErlNifTime)us * 1000;
    job->left = us;
    job->state = 88172645463325252;
}

/* The microseconds from begin to end, by the clock on the wall. */
static ERL_NIF_TERM took(ErlNifEnv *env, const struct job *job)
{
    return enif_make_int64(env, (job->now - job->begun) / 1000);
}

/* ------------------------------------------------------------------------
 * Plain, on a normal scheduler or a dirty one
 * ------------------------------------------------------------------------ */

static inline ERL_NIF_TERM plain(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                                 step_fn step)
{
    struct job job;
    ErlNifUInt64 us;

    if (!enif_get_uint64(env, argv[0], &us) || us > MAX_US)
        return enif_make_badarg(env);
    begin(&job, us);
    while (step(&job))
        ;
    return took(env, &job);
}

static ERL_NIF_TERM spinsleep(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    (void)argc;
    return plain(env, argv, step_to_deadline);
}

static ERL_NIF_TERM spinwork(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    (void)argc;
    return plain(env, argv, step_of_work);
}

/* ------------------------------------------------------------------------
 * Fair: the same, with a tick after each step
 * ------------------------------------------------------------------------ */

static inline ERL_NIF_TERM fair(fair_task *t, step_fn step)
{
    struct job job;
    ErlNifUInt64 us;

    if (!fair_get_uint64(t, fair_arg(t, 0), &us) || us > MAX_US)
        return fair_badarg(t);
    begin(&job, us);
    while (step(&job))
        fair_tick(t, 1);
    return took(fair_env(t), &job);
}

static ERL_NIF_TERM spinsleep_fair(fair_task *t)
{
    return fair(t, step_to_deadline);
}

static ERL_NIF_TERM spinwork_fair(fair_task *t)
{
    return fair(t, step_of_work);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)info;
    calibrate();
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    {"spinsleep", 1, spinsleep, 0},
    {"spinsleep_dirty", 1, spinsleep, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"spinwork", 1, spinwork, 0},
    FAIR_NIF("spinsleep_fair", 1, spinsleep_fair, FAIR_AUTO),
    FAIR_NIF("spinwork_fair", 1, spinwork_fair, FAIR_AUTO)
};

/* Elixir's module Spinsleep, by the name that it has in the VM. */
FAIR_NIF_INIT(Elixir.Spinsleep, nifs, load, NULL, upgrade, NULL)
