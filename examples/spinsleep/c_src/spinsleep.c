/*
 * spinsleep.c - NIFs that take a given time, to see who else gets any.
 *
 * Two jobs.  `spinsleep` spins until a deadline of the wall clock: while it is
 * interrupted its time runs on, so a form that yields does less.  `spinwork`
 * does a fixed amount of computation: while it is interrupted nothing is done.
 *
 * Each job comes in steps of a microsecond.  Every form of it runs the same
 * steps; the forms differ in what they do between two of them.
 */
#define _GNU_SOURCE
#include <time.h>

#include <fairnif.h>

#define MAX_US 3600000000   /* an hour */
#define PART_US 100         /* what the forms sliced by hand report at once */
#define PARTS 10            /* such parts in a slice of theirs: 1 ms */

struct job {
    ErlNifTime begun, now;  /* of the VM's clock, ns */
    ErlNifTime end;         /* the deadline */
    ErlNifUInt64 left;      /* microseconds of work still to do */
    ErlNifUInt64 state;     /* of the work; never 0 */
};

typedef int (*step_fn)(struct job *job);
typedef ERL_NIF_TERM (*nif_fn)(ErlNifEnv *, int, const ERL_NIF_TERM[]);

static ErlNifTime now(void)
{
    return enif_monotonic_time(ERL_NIF_NSEC);
}

/* The work: a chain of which each link needs the one before (xorshift), so that
 * no compiler and no processor can do parts of it at once.  Counted in rounds and
 * not in time: all forms do the same work, to the instruction. */
static unsigned rounds_per_us;      /* written once, in the first load */

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
    long best = 0;

    for (int i = 0; i < RUNS; i++) {
        long t = cpu_ns();

        work(1, ROUNDS);
        t = cpu_ns() - t;
        if (t > 0 && (best == 0 || t < best))
            best = t;
    }
    rounds_per_us = best > 0 ? (unsigned)(ROUNDS * 1000L / best) + 1 : 1;
}

/* The steps: about a microsecond of the job; 0 when it is done. */
static inline int step_to_deadline(struct job *job)
{
    ErlNifTime until = job->now + 1000;

    if (job->now >= job->end)
        return 0;
    while (job->now < until && job->now < job->end)
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

/* 0 when `term` is not how many microseconds it may take. */
static int begin(ErlNifEnv *env, ERL_NIF_TERM term, struct job *job)
{
    if (!enif_get_uint64(env, term, &job->left) || job->left > MAX_US)
        return 0;
    job->begun = job->now = now();
    job->end = job->begun + (ErlNifTime)job->left * 1000;
    job->state = 88172645463325252;
    return 1;
}

/* The microseconds from begin to end, by the clock on the wall. */
static ERL_NIF_TERM took(ErlNifEnv *env, const struct job *job)
{
    return enif_make_int64(env, (job->now - job->begun) / 1000);
}

/* Plain, on a normal scheduler or a dirty one: all steps at once. */
static inline ERL_NIF_TERM plain(ErlNifEnv *env, ERL_NIF_TERM us, step_fn step)
{
    struct job job;

    if (!begin(env, us, &job))
        return enif_make_badarg(env);
    while (step(&job))
        ;
    return took(env, &job);
}

/* Sliced by hand, as the documentation of erl_nif has it: say now and then what
 * part of a time slice (1 ms) was used, reschedule when it is used up.  On a dirty
 * scheduler enif_consume_timeslice does nothing and never says that the slice is
 * over; so the parts are counted as well.  From one slice to the next the job
 * travels in the argument. */
static ERL_NIF_TERM resume_later(ErlNifEnv *env, const struct job *job,
                                const char *name, nif_fn next)
{
    int dirty = enif_thread_type() == ERL_NIF_THR_DIRTY_CPU_SCHEDULER;
    ERL_NIF_TERM arg;

    memcpy(enif_make_new_binary(env, sizeof *job, &arg), job, sizeof *job);
    return enif_schedule_nif(env, name, dirty ? ERL_NIF_DIRTY_JOB_CPU_BOUND : 0,
                             next, 1, &arg);
}

static struct job get_job(ErlNifEnv *env, ERL_NIF_TERM arg)
{
    ErlNifBinary bin;
    struct job job;

    enif_inspect_binary(env, arg, &bin);
    memcpy(&job, bin.data, sizeof job);
    job.now = now();
    return job;
}

static inline ERL_NIF_TERM slice(ErlNifEnv *env, struct job *job, step_fn step,
                                 const char *name, nif_fn next)
{
    for (int part = 1; ; part++) {
        for (int i = 0; i < PART_US; i++)
            if (!step(job))
                return took(env, job);
        if (enif_consume_timeslice(env, 100 / PARTS) || part >= PARTS)
            return resume_later(env, job, name, next);
    }
}

/* Fair: all steps at once, with a tick after each. */
static inline ERL_NIF_TERM fair(fair_task *t, step_fn step)
{
    struct job job;

    if (!begin(fair_env(t), fair_arg(t, 0), &job))
        return fair_badarg(t);
    while (step(&job))
        fair_tick(t, 1);
    return took(fair_env(t), &job);
}

#define NIF(NAME) static ERL_NIF_TERM NAME(                                 \
        ErlNifEnv *env, __attribute__((unused)) int argc, const ERL_NIF_TERM argv[])

/* The forms of a job; NAME_next is the NIF that the later slices are. */
#define FORMS(NAME, STEP)                                                   \
    NIF(NAME) { return plain(env, argv[0], STEP); }                         \
    NIF(NAME##_next)                                                        \
    {                                                                       \
        struct job job = get_job(env, argv[0]);                             \
                                                                            \
        return slice(env, &job, STEP, #NAME "_timeslice", NAME##_next);     \
    }                                                                       \
    NIF(NAME##_timeslice)                                                   \
    {                                                                       \
        struct job job;                                                     \
                                                                            \
        if (!begin(env, argv[0], &job))                                     \
            return enif_make_badarg(env);                                   \
        return slice(env, &job, STEP, #NAME "_timeslice", NAME##_next);     \
    }                                                                       \
    static ERL_NIF_TERM NAME##_fair(fair_task *t) { return fair(t, STEP); }

FORMS(spinsleep, step_to_deadline)
FORMS(spinwork, step_of_work)

/* The cheapest NIF there is. */
NIF(echo) { (void)env; return argv[0]; }

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)info;
    calibrate();
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)old;
    return load(env, priv, info);
}

/* The threaded form's answer goes through fairnif:await/1, in spinsleep.erl. */
#define TABLE(NAME)                                                         \
    {#NAME, 1, NAME, 0},                                                    \
    {#NAME "_dirty", 1, NAME, ERL_NIF_DIRTY_JOB_CPU_BOUND},                 \
    {#NAME "_timeslice", 1, NAME##_timeslice, 0},                           \
    {#NAME "_timeslice_dirty", 1, NAME##_timeslice,                         \
     ERL_NIF_DIRTY_JOB_CPU_BOUND},                                          \
    FAIR_NIF(#NAME "_fair", 1, NAME##_fair, FAIR_AUTO),                     \
    FAIR_NIF(#NAME "_fair_yield", 1, NAME##_fair, FAIR_NORMAL),             \
    FAIR_NIF(#NAME "_fair_dirty_yield", 1, NAME##_fair, FAIR_DIRTY_CPU),    \
    FAIR_NIF("nif_" #NAME "_threaded", 1, NAME##_fair, FAIR_THREADED)

static ErlNifFunc nifs[] = {{"echo", 1, echo, 0}, TABLE(spinsleep), TABLE(spinwork)};

FAIR_NIF_INIT(spinsleep, nifs, load, upgrade, NULL)
