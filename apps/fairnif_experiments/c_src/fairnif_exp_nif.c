/*
 * fairnif_exp_nif.c - what experiments and comparisons call and no example has.
 *
 * A peer does the same work with the same loop as the fair body beside it, as
 * a plain or dirty NIF.  Nothing here is an example of how to write one: some
 * block schedulers on purpose.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fairnif.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* -- clocks ---------------------------------------------------------------- */

static uint64_t read_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* now() -> ns of CLOCK_MONOTONIC, which the time stamps below have as well. */
static ERL_NIF_TERM now(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_uint64(env, read_clock(CLOCK_MONOTONIC));
}

/* faults() -> page faults of this emulator so far. */
static ERL_NIF_TERM faults(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct rusage usage;

    (void)argc, (void)argv;
    getrusage(RUSAGE_SELF, &usage);
    return enif_make_long(env, usage.ru_minflt);
}

/* yields() -> calls of sched_yield so far; 0 without fairnif_exp_yield.so. */
static ERL_NIF_TERM yields(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned long *count = dlsym(RTLD_DEFAULT, "fairnif_exp_yields");

    (void)argc, (void)argv;
    return enif_make_ulong(env, count == NULL
                                ? 0 : __atomic_load_n(count, __ATOMIC_RELAXED));
}

/* -- work ------------------------------------------------------------------ */

/* A chain of dependent operations: about a nanosecond a round. */
static uint64_t work(uint64_t x, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

/*
 * burn(Own) -> ok: a program that works until the node has gone, in a session of
 * its own where Own is 1.
 */
static ERL_NIF_TERM burn(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    pid_t node = getpid();
    uint64_t x = 1;
    int own;

    (void)argc;
    if (!enif_get_int(env, argv[0], &own))
        return enif_make_badarg(env);
    switch (fork()) {
    case -1:
        return enif_raise_exception(env, enif_make_atom(env, "no_process"));
    case 0:
        /* A reader of what the node writes waits for its end. */
        syscall(SYS_close_range, 0u, ~0u, 0u);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (own)
            setsid();
        while (getppid() == node)
            x = work(x, 1000000);
        _exit(x == 0);
    }
    return enif_make_atom(env, "ok");
}

/* work_ns(Rounds) -> how long they take, the shortest of 20 runs. */
static ERL_NIF_TERM work_ns(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint64_t best = UINT64_MAX, x = 88172645463325252u;
    ErlNifUInt64 rounds;

    if (argc != 1 || !enif_get_uint64(env, argv[0], &rounds))
        return enif_make_badarg(env);
    for (int i = 0; i < 20; i++) {
        uint64_t begin = read_clock(CLOCK_MONOTONIC), took;

        x = work(x, rounds);
        took = read_clock(CLOCK_MONOTONIC) - begin;
        best = took < best ? took : best;
    }
    return x ? enif_make_uint64(env, best) : enif_make_int(env, 0);
}

/* -- calls that do nothing ------------------------------------------------- */

static ERL_NIF_TERM noop_nif(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0];
}

static ERL_NIF_TERM noop(fair_task *t)
{
    return fair_arg(t, 0);
}

/* -- short work ------------------------------------------------------------ */

/* spin(Rounds, Step): ticks after every Step rounds; Step 0: never. */
static ERL_NIF_TERM spin(fair_task *t)
{
    uint64_t x = 88172645463325252u;
    ErlNifUInt64 rounds, step;

    if (!fair_get_uint64(t, fair_arg(t, 0), &rounds)
        || !fair_get_uint64(t, fair_arg(t, 1), &step))
        return fair_badarg(t);
    if (step == 0) {
        x = work(x, rounds);
    } else {
        for (uint64_t done = 0; done < rounds; done += step) {
            x = work(x, step);
            fair_tick(t, step);
        }
    }
    return enif_make_int(fair_env(t), x != 0);
}

/* -- endless work ---------------------------------------------------------- */

enum { SLOTS = 64, STEP = 2000 };       /* rounds: about 2 us */

/* What an endless call says to the outside. */
static struct slot {
    _Alignas(64) _Atomic uint64_t rounds;
    _Atomic uint64_t begun, ended;      /* CLOCK_MONOTONIC, ns; 0: not yet */
} slots[SLOTS];

static int get_slot(ErlNifEnv *env, ERL_NIF_TERM term, struct slot **slot)
{
    unsigned n;

    if (!enif_get_uint(env, term, &n) || n >= SLOTS)
        return 0;
    *slot = &slots[n];
    return 1;
}

/* slot(N) -> {Rounds, Begun, Ended} */
static ERL_NIF_TERM slot_nif(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    struct slot *s;

    if (argc != 1 || !get_slot(env, argv[0], &s))
        return enif_make_badarg(env);
    return enif_make_tuple3(env, enif_make_uint64(env, s->rounds),
                            enif_make_uint64(env, s->begun),
                            enif_make_uint64(env, s->ended));
}

static ERL_NIF_TERM clear_slot(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    struct slot *s;

    if (argc != 1 || !get_slot(env, argv[0], &s))
        return enif_make_badarg(env);
    s->rounds = s->begun = s->ended = 0;
    return enif_make_atom(env, "ok");
}

static void stamp_end(void *ptr)
{
    ((struct slot *)ptr)->ended = read_clock(CLOCK_MONOTONIC);
}

/* For a body that would not notice the death of its caller: ends it after
 * this time, so that the measurement shows it and does not hang. */
static const uint64_t too_long_ns = 2u * 1000 * 1000 * 1000;

/* forever(Slot), in every mode */
static ERL_NIF_TERM forever(fair_task *t)
{
    uint64_t x = 88172645463325252u;
    struct slot *s;

    if (!get_slot(fair_env(t), fair_arg(t, 0), &s))
        return fair_badarg(t);
    fair_defer(t, stamp_end, s);
    s->begun = read_clock(CLOCK_MONOTONIC);
    for (uint64_t n = 1; x != 0; n++) {
        x = work(x, STEP);
        atomic_fetch_add_explicit(&s->rounds, STEP, memory_order_relaxed);
        fair_tick(t, STEP);
        if (n % 100000 == 0
            && read_clock(CLOCK_MONOTONIC) - s->begun > too_long_ns)
            break;
    }
    return enif_make_int(fair_env(t), 0);
}

/* forever_nif(Slot): the same as an ordinary dirty NIF, which ends when the
 * caller is dead: it could not be stopped otherwise. */
static ERL_NIF_TERM forever_nif(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    uint64_t x = 88172645463325252u;
    struct slot *s;

    if (argc != 1 || !get_slot(env, argv[0], &s))
        return enif_make_badarg(env);
    s->begun = read_clock(CLOCK_MONOTONIC);
    while (x != 0 && enif_is_current_process_alive(env)) {
        x = work(x, STEP);
        atomic_fetch_add_explicit(&s->rounds, STEP, memory_order_relaxed);
    }
    stamp_end(s);
    return enif_make_int(env, 0);
}

/* -- there and back -------------------------------------------------------- */

/* flip(N): to a dirty CPU scheduler and back, N times. */
static ERL_NIF_TERM flip(fair_task *t)
{
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    while (n-- > 0) {
        fair_move(t, FAIR_DIRTY_CPU);
        fair_move(t, FAIR_NORMAL);
    }
    return enif_make_int(fair_env(t), 0);
}

/* -- memory ---------------------------------------------------------------- */

/* copy(Bin): a plain memcpy into a new binary, to compare exor with. */
static ERL_NIF_TERM copy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary in, out;

    if (argc != 1 || !enif_inspect_binary(env, argv[0], &in)
        || !enif_alloc_binary(in.size, &out))
        return enif_make_badarg(env);
    memcpy(out.data, in.data, in.size);
    return enif_make_binary(env, &out);
}

/*
 * prepare(Size, State): brings the memory that the next binary of that size
 * will get into a state, and answers its address.  In an emulator whose
 * carriers stay mapped (+MMscs) the binary allocated and released here lies
 * where the next one will.
 *   reused  its 4 KiB pages are there
 *   small   no page is there; they will come as pages of 4 KiB
 *   huge    no page is there; they will come as pages of 2 MiB
 */
static ERL_NIF_TERM prepare(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    static const struct {
        const char *name;
        int advice[3];
    } states[] = {
        {"reused", {MADV_NOHUGEPAGE, MADV_POPULATE_WRITE, 0}},
        {"small", {MADV_NOHUGEPAGE, MADV_DONTNEED, 0}},
        {"huge", {MADV_HUGEPAGE, MADV_DONTNEED, 0}},
    };
    ErlNifUInt64 size;
    ErlNifBinary bin;
    uintptr_t from, end;
    char name[16];

    if (argc != 2 || !enif_get_uint64(env, argv[0], &size)
        || !enif_get_atom(env, argv[1], name, sizeof name, ERL_NIF_LATIN1)
        || !enif_alloc_binary(size, &bin))
        return enif_make_badarg(env);
    from = ((uintptr_t)bin.data + 4095) & ~(uintptr_t)4095;
    end = ((uintptr_t)bin.data + size) & ~(uintptr_t)4095;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        for (const int *a = states[i].advice;
             *a != 0 && strcmp(states[i].name, name) == 0; a++)
            madvise((void *)from, end - from, *a);
    enif_release_binary(&bin);
    return enif_make_uint64(env, from);
}

/* -- threads: the runtime's pool, and what authors do without it ----------- */

static void sleep_ms(void *arg)
{
    unsigned ms = *(unsigned *)arg;
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&ts, NULL);
}

/* nif_offload_sleep(Ms): a job that waits */
static ERL_NIF_TERM offload_sleep(fair_task *t)
{
    unsigned ms;

    if (!fair_get_uint(t, fair_arg(t, 0), &ms))
        return fair_badarg(t);
    fair_offload(t, FAIR_THREADED, 0, sleep_ms, &ms);
    return fair_arg(t, 0);
}

struct errand {
    ErlNifTid tid;
    ErlNifPid caller;
    ErlNifEnv *env;
    ERL_NIF_TERM ref;
};

static void *run_errand(void *arg)
{
    struct errand *e = arg;

    enif_send(NULL, &e->caller, e->env, e->ref);
    return NULL;
}

/* thread_call(Ref) -> Handle: a thread of its own, which only sends Ref */
static ERL_NIF_TERM thread_call(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    struct errand *e = enif_alloc(sizeof *e);

    if (argc != 1 || !e)
        return enif_make_badarg(env);
    e->env = enif_alloc_env();
    e->ref = enif_make_copy(e->env, argv[0]);
    enif_self(env, &e->caller);
    if (enif_thread_create((char *)"errand", &e->tid, run_errand, e, NULL)) {
        enif_free_env(e->env);
        enif_free(e);
        return enif_make_badarg(env);
    }
    return enif_make_uint64(env, (uintptr_t)e);
}

/* thread_join(Handle), once */
static ERL_NIF_TERM thread_join(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 handle;
    struct errand *e;

    if (argc != 1 || !enif_get_uint64(env, argv[0], &handle))
        return enif_make_badarg(env);
    e = (struct errand *)(uintptr_t)handle;
    enif_thread_join(e->tid, NULL);
    enif_free_env(e->env);
    enif_free(e);
    return enif_make_atom(env, "ok");
}

/* -- time slices by hand --------------------------------------------------- */

/* consume(Percent): whether the VM says that the slice is used up */
static ERL_NIF_TERM consume(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int percent;

    if (argc != 1 || !enif_get_int(env, argv[0], &percent) || percent < 1
        || percent > 100)
        return enif_make_badarg(env);
    return enif_make_atom(env, enif_consume_timeslice(env, percent) ? "true"
                                                                    : "false");
}

/* sliced(SliceUs, Slices): Slices slices of SliceUs microseconds, by the wall
 * clock, each charged as a full one; answers ok.  How many are left travels in
 * the arguments. */
static ERL_NIF_TERM sliced(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM next[2];
    unsigned us, slices;
    uint64_t end;

    if (argc != 2 || !enif_get_uint(env, argv[0], &us) || us < 1
        || us > 1000000 || !enif_get_uint(env, argv[1], &slices) || slices < 1
        || slices > 1000000000)
        return enif_make_badarg(env);
    end = read_clock(CLOCK_MONOTONIC) + us * 1000u;
    while (read_clock(CLOCK_MONOTONIC) < end)
        ;
    enif_consume_timeslice(env, 100);
    if (slices == 1)
        return enif_make_atom(env, "ok");
    next[0] = argv[0];
    next[1] = enif_make_uint(env, slices - 1);
    return enif_schedule_nif(env, "sliced", 0, sliced, 2, next);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_threaded_noop", 1, noop, FAIR_THREADED),
    {"thread_call", 1, thread_call, 0},
    {"thread_join", 1, thread_join, 0},
    FAIR_NIF("nif_offload_sleep", 1, offload_sleep,
             FAIR_AUTO | FAIR_MAY_WAIT),
    {"now", 0, now, 0},
    {"faults", 0, faults, 0},
    {"yields", 0, yields, 0},
    {"burn", 1, burn, 0},
    {"work_ns", 1, work_ns, 0},
    {"noop", 1, noop_nif, 0},
    {"dirty_noop", 1, noop_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF("auto_noop", 1, noop, FAIR_AUTO),
    FAIR_NIF("auto_spin", 2, spin, FAIR_AUTO),
    FAIR_NIF("auto_spin_quiet", 2, spin, FAIR_AUTO),
    FAIR_NIF("yielding_spin", 2, spin, FAIR_NORMAL),
    FAIR_NIF("yielding_spin_quiet", 2, spin, FAIR_NORMAL),
    {"slot", 1, slot_nif, 0},
    {"clear_slot", 1, clear_slot, 0},
    FAIR_NIF("yielding_forever", 1, forever, FAIR_NORMAL),
    FAIR_NIF("auto_forever", 1, forever, FAIR_AUTO),
    FAIR_NIF("dirty_cpu_forever", 1, forever, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("dirty_io_forever", 1, forever, FAIR_DIRTY_IO | FAIR_NO_YIELD),
    FAIR_NIF("yielding_dirty_forever", 1, forever, FAIR_DIRTY_CPU),
    {"plain_dirty_forever", 1, forever_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF("flip", 1, flip, FAIR_AUTO),
    {"copy", 1, copy, 0},
    {"prepare", 2, prepare, 0},
    {"consume", 1, consume, 0},
    {"sliced", 2, sliced, 0},
};

FAIR_NIF_INIT(fairnif_exp_nif, nifs, NULL, NULL, NULL)
