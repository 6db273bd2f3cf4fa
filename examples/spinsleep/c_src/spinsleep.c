/*
 * spinsleep.c - NIFs that take a given time, to see who else gets any.
 *
 * Two jobs.  `spinsleep` spins until a deadline of the wall clock: while it is
 * interrupted its time goes on, so whoever gives way does less.  `spinwork`
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

static ErlNifTime now(void)
{
    return enif_monotonic_time(ERL_NIF_NSEC);
}

/* ------------------------------------------------------------------------
 * The work: a chain of which each link needs the one before (xorshift), so
 * that no compiler and no processor can do parts of it at once, and another
 * program on the core's other hardware thread hardly changes its time.
 *
 * Counted in rounds and not in time: then all forms do the same work, to the
 * instruction, and interruptions can neither take from it nor add to it.  The
 * thread's CPU clock would be neither cheap (0.4 us, before and after each
 * pause, and a fair body does not see its pauses) nor quite honest: what
 * a pause costs, cold caches and the switch itself, would count as work done.
 * ------------------------------------------------------------------------ */

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
 * Plain, on a normal scheduler or a dirty one: all steps at once.
 * ------------------------------------------------------------------------ */

static int get_us(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifUInt64 *us)
{
    return enif_get_uint64(env, term, us) && *us <= MAX_US;
}

static inline ERL_NIF_TERM plain(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                                 step_fn step)
{
    struct job job;
    ErlNifUInt64 us;

    if (!get_us(env, argv[0], &us))
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
 * Sliced by hand, as the documentation of erl_nif has it: say now and then
 * what part of a time slice (1 ms) was used, reschedule when it is used up.
 * On a dirty scheduler enif_consume_timeslice does nothing and never says
 * that the slice is over; so the parts are counted as well.
 * ------------------------------------------------------------------------ */

typedef ERL_NIF_TERM (*nif_fn)(ErlNifEnv *, int, const ERL_NIF_TERM[]);

/* From one slice to the next the job travels in the arguments. */
enum { BEGUN, END, LEFT, STATE, JOB_ARGS };

static ERL_NIF_TERM go_on_later(ErlNifEnv *env, const struct job *job,
                                const char *name, nif_fn next)
{
    ERL_NIF_TERM argv[JOB_ARGS];
    int dirty = enif_thread_type() == ERL_NIF_THR_DIRTY_CPU_SCHEDULER;

    argv[BEGUN] = enif_make_int64(env, job->begun);
    argv[END] = enif_make_int64(env, job->end);
    argv[LEFT] = enif_make_uint64(env, job->left);
    argv[STATE] = enif_make_uint64(env, job->state);
    return enif_schedule_nif(env, name,
                             dirty ? ERL_NIF_DIRTY_JOB_CPU_BOUND : 0, next,
                             JOB_ARGS, argv);
}

static int get_job(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                   struct job *job)
{
    ErlNifSInt64 begun, end;

    if (!enif_get_int64(env, argv[BEGUN], &begun)
        || !enif_get_int64(env, argv[END], &end)
        || !enif_get_uint64(env, argv[LEFT], &job->left)
        || !enif_get_uint64(env, argv[STATE], &job->state))
        return 0;
    job->begun = begun;
    job->end = end;
    job->now = now();
    return 1;
}

static inline ERL_NIF_TERM slice(ErlNifEnv *env, struct job *job, step_fn step,
                                 const char *name, nif_fn next)
{
    for (int part = 1; ; part++) {
        for (int i = 0; i < PART_US; i++)
            if (!step(job))
                return took(env, job);
        if (enif_consume_timeslice(env, 100 / PARTS) || part >= PARTS)
            return go_on_later(env, job, name, next);
    }
}

/* NAME_timeslice/1 and the NIF that its later slices are. */
#define SLICED(NAME, STEP)                                                  \
    static ERL_NIF_TERM NAME##_next(ErlNifEnv *env, int argc,               \
                                    const ERL_NIF_TERM argv[])              \
    {                                                                       \
        struct job job;                                                     \
                                                                            \
        if (argc != JOB_ARGS || !get_job(env, argv, &job))                  \
            return enif_make_badarg(env);                                   \
        return slice(env, &job, STEP, #NAME "_timeslice", NAME##_next);     \
    }                                                                       \
    static ERL_NIF_TERM NAME##_timeslice(ErlNifEnv *env, int argc,          \
                                         const ERL_NIF_TERM argv[])         \
    {                                                                       \
        struct job job;                                                     \
        ErlNifUInt64 us;                                                    \
                                                                            \
        (void)argc;                                                         \
        if (!get_us(env, argv[0], &us))                                     \
            return enif_make_badarg(env);                                   \
        begin(&job, us);                                                    \
        return slice(env, &job, STEP, #NAME "_timeslice", NAME##_next);     \
    }

SLICED(spinsleep, step_to_deadline)
SLICED(spinwork, step_of_work)

/* ------------------------------------------------------------------------
 * Sliced as the original of 2017 was, see README.md: a first slice of 1 ms;
 * the next one shall be as many nanoseconds long as the spin loop of this one
 * counted, divided by how often 100 us went into it.  What the loop counts to
 * is half of the nanoseconds left, at each look at the clock; an optimising
 * compiler does the sum and leaves the loop out.  So the clock is looked at
 * 20,000 times in the millisecond, the sum is billions, and the second slice
 * lasts until the deadline.
 * ------------------------------------------------------------------------ */

static ERL_NIF_TERM original_slice(ErlNifEnv *env, int argc,
                                   const ERL_NIF_TERM argv[])
{
    struct job job;
    ErlNifUInt64 counted = 0;
    ErlNifTime from, to, used;

    if (argc != JOB_ARGS || !get_job(env, argv, &job))
        return enif_make_badarg(env);
    from = job.now;
    to = job.end;
    if (job.end - from > 0 && job.left < (ErlNifUInt64)(job.end - from))
        to = from + (ErlNifTime)job.left;
    while ((job.now = now()) < to)
        counted += (ErlNifUInt64)(to - job.now) / 2;
    if (job.now >= job.end)
        return took(env, &job);
    used = (to - from) / 1000;
    enif_consume_timeslice(env, used > 100 ? 100 : used > 0 ? (int)used : 1);
    job.left = used > 100 ? counted / ((ErlNifUInt64)used / 100) : counted;
    return go_on_later(env, &job, "spinsleep_original", original_slice);
}

static ERL_NIF_TERM spinsleep_original(ErlNifEnv *env, int argc,
                                       const ERL_NIF_TERM argv[])
{
    struct job job;
    ErlNifUInt64 us;

    (void)argc;
    if (!get_us(env, argv[0], &us))
        return enif_make_badarg(env);
    begin(&job, us);
    job.left = 1000000;     /* ns: the length of the next slice */
    return go_on_later(env, &job, "spinsleep_original", original_slice);
}

/* ------------------------------------------------------------------------
 * Fair: all steps at once, with a tick after each.
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

/* ------------------------------------------------------------------------
 * The cheapest NIF there is, and the table
 * ------------------------------------------------------------------------ */

static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0];
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

#define DIRTY ERL_NIF_DIRTY_JOB_CPU_BOUND

static ErlNifFunc nifs[] = {
    {"echo", 1, echo, 0},
    {"spinsleep", 1, spinsleep, 0},
    {"spinsleep_dirty", 1, spinsleep, DIRTY},
    {"spinsleep_timeslice", 1, spinsleep_timeslice, 0},
    {"spinsleep_timeslice_dirty", 1, spinsleep_timeslice, DIRTY},
    {"spinsleep_original", 1, spinsleep_original, 0},
    {"spinwork", 1, spinwork, 0},
    {"spinwork_dirty", 1, spinwork, DIRTY},
    {"spinwork_timeslice", 1, spinwork_timeslice, 0},
    {"spinwork_timeslice_dirty", 1, spinwork_timeslice, DIRTY},
    FAIR_NIF("spinsleep_fair", 1, spinsleep_fair, FAIR_AUTO),
    FAIR_NIF("spinsleep_fair_yield", 1, spinsleep_fair, FAIR_NORMAL),
    FAIR_NIF("spinsleep_fair_dirty_yield", 1, spinsleep_fair,
             FAIR_DIRTY_CPU),
    FAIR_NIF("spinwork_fair", 1, spinwork_fair, FAIR_AUTO),
    FAIR_NIF("spinwork_fair_yield", 1, spinwork_fair, FAIR_NORMAL),
    FAIR_NIF("spinwork_fair_dirty_yield", 1, spinwork_fair,
             FAIR_DIRTY_CPU),
    /* their answers go through fairnif:await/1, in spinsleep.erl */
    FAIR_NIF("nif_spinsleep_threaded", 1, spinsleep_fair, FAIR_THREADED),
    FAIR_NIF("nif_spinwork_threaded", 1, spinwork_fair, FAIR_THREADED)
};

FAIR_NIF_INIT(spinsleep, nifs, load, NULL, upgrade, NULL)
