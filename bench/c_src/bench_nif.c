/*
 * bench_nif.c - the bodies and the peers that the figures are measured with.
 *
 * A peer does the same work with the same loop as the fair body beside it, as
 * a plain or dirty NIF.  Nothing here is an example of how to write one: some
 * block schedulers on purpose.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

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

/* cpu() -> ns of CPU time of the thread that runs the caller. */
static ERL_NIF_TERM cpu(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_uint64(env, read_clock(CLOCK_THREAD_CPUTIME_ID));
}

/* node_cpu() -> ns of CPU time of all threads of this emulator. */
static ERL_NIF_TERM node_cpu(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_uint64(env, read_clock(CLOCK_PROCESS_CPUTIME_ID));
}

/* faults() -> page faults of this emulator so far. */
static ERL_NIF_TERM faults(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct rusage usage;

    (void)argc, (void)argv;
    getrusage(RUSAGE_SELF, &usage);
    return enif_make_long(env, usage.ru_minflt);
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

/* -- how long a slice holds the scheduler, seen from the body --------------- */

/* probe(Slices, Step) -> <<Ns:64/native, ...>>: the CPU time of each slice,
 * from the first line after a pause to the last before the next. */
static ERL_NIF_TERM probe(fair_task *t)
{
    uint64_t x = 88172645463325252u, yields = 0, start, last, *ns;
    ErlNifUInt64 slices, step;
    size_t n = 0;
    fair_bin out;

    if (!fair_get_uint64(t, fair_arg(t, 0), &slices)
        || !fair_get_uint64(t, fair_arg(t, 1), &step)
        || step == 0 || slices > 1000000)
        return fair_badarg(t);
    if (!fair_new_bin(t, slices * sizeof *ns, &out))
        return fair_enomem(t);
    ns = (uint64_t *)out.data;
    start = last = read_clock(CLOCK_THREAD_CPUTIME_ID);
    while (n < slices) {
        x = work(x, step);
        last = read_clock(CLOCK_THREAD_CPUTIME_ID);
        fair_tick(t, step);
        if (fair_yields(t) != yields) {
            yields = fair_yields(t);
            ns[n++] = last - start + (x == 0);
            start = read_clock(CLOCK_THREAD_CPUTIME_ID);
        }
    }
    return fair_make_bin(t, &out);
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

/* copy(Bin): a plain memcpy into a new binary, for exor to be held against. */
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

/* ------------------------------------------------------------------------
 * Threads: the runtime's pool, and what authors do without it.
 * ------------------------------------------------------------------------ */

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
    fair_call(t, FAIR_THREADED, 0, sleep_ms, &ms);
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

    enif_send(NULL, &e->caller, e->env,
              enif_make_tuple2(e->env, e->ref,
                               enif_make_atom(e->env, "done")));
    return NULL;
}

/* thread_call(Ref) -> Handle: a thread of its own, which does nothing and sends
 * {Ref, done} */
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

/* -- a state in a resource --------------------------------------------------- */

static ErlNifResourceType *counter_type;

/* counter_new() -> Counter, which begins at 0. */
static ERL_NIF_TERM counter_new(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    ErlNifSInt64 *value = enif_alloc_resource(counter_type, sizeof *value);
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    *value = 0;
    term = enif_make_resource(env, value);
    enif_release_resource(value);
    return term;
}

/* counter_add(Counter, Number) -> its new value; from one process. */
static ERL_NIF_TERM counter_add(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    ErlNifSInt64 number;
    void *value;

    if (argc != 2 || !enif_get_resource(env, argv[0], counter_type, &value)
        || !enif_get_int64(env, argv[1], &number))
        return enif_make_badarg(env);
    return enif_make_int64(env, *(ErlNifSInt64 *)value += number);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    counter_type = enif_open_resource_type(env, NULL, "fairnif_bench_counter",
                                           NULL, ERL_NIF_RT_CREATE, NULL);
    return counter_type ? 0 : -1;
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_threaded_noop", 1, noop, FAIR_THREADED),
    FAIR_NIF("nif_offload_sleep", 1, offload_sleep,
             FAIR_AUTO | FAIR_AWAITED),
    {"thread_call", 1, thread_call, 0},
    {"thread_join", 1, thread_join, 0},
    {"now", 0, now, 0},
    {"cpu", 0, cpu, 0},
    {"node_cpu", 0, node_cpu, 0},
    {"faults", 0, faults, 0},
    {"work_ns", 1, work_ns, 0},
    {"noop", 1, noop_nif, 0},
    {"dirty_noop", 1, noop_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF("auto_noop", 1, noop, FAIR_AUTO),
    FAIR_NIF("auto_spin", 2, spin, FAIR_AUTO),
    FAIR_NIF("auto_spin_quiet", 2, spin, FAIR_AUTO),
    FAIR_NIF("yielding_spin", 2, spin, FAIR_NORMAL),
    FAIR_NIF("yielding_spin_quiet", 2, spin, FAIR_NORMAL),
    FAIR_NIF("auto_probe", 2, probe, FAIR_AUTO),
    FAIR_NIF("yielding_probe", 2, probe, FAIR_NORMAL),
    {"slot", 1, slot_nif, 0},
    {"clear_slot", 1, clear_slot, 0},
    FAIR_NIF("normal_forever", 1, forever, FAIR_NORMAL | FAIR_NO_YIELD),
    FAIR_NIF("yielding_forever", 1, forever, FAIR_NORMAL),
    FAIR_NIF("auto_forever", 1, forever, FAIR_AUTO),
    FAIR_NIF("dirty_cpu_forever", 1, forever, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("dirty_io_forever", 1, forever, FAIR_DIRTY_IO | FAIR_NO_YIELD),
    FAIR_NIF("yielding_dirty_forever", 1, forever, FAIR_DIRTY_CPU),
    {"plain_dirty_forever", 1, forever_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF("flip", 1, flip, FAIR_AUTO),
    {"copy", 1, copy, 0},
    {"prepare", 2, prepare, 0},
    {"counter_new", 0, counter_new, 0},
    {"counter_add", 2, counter_add, 0},
};

FAIR_NIF_INIT(fairnif_bench_nif, nifs, load, NULL, NULL, NULL)
