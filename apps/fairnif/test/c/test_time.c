/*
 * test_time.c - slices, charges, what is learned; in virtual time, which
 * passes only for the work that bodies say they do and for looks at the
 * clock, so that every figure is the same each time.
 */
#include <stdio.h>
#include <stdlib.h>

#define NEEDS_TASKS
#include "check.h"

enum { US = 1000, MS = 1000000, SLICE = 25 * US, DIRTY_SLICE = MS };

/* work(Units, NsPerUnit, UnitsPerTick) -> Yields */
static ERL_NIF_TERM work(fair_task *t)
{
    unsigned long units, ns, per_tick;

    if (!fair_get_ulong(t, fair_arg(t, 0), &units)
        || !fair_get_ulong(t, fair_arg(t, 1), &ns)
        || !fair_get_ulong(t, fair_arg(t, 2), &per_tick))
        return fair_badarg(t);
    for (unsigned long i = 0; i < units; i += per_tick) {
        vm_work(ns * per_tick);
        fair_tick(t, per_tick);
    }
    return enif_make_uint64(fair_env(t), fair_yields(t));
}

/* silent(Ns): works without a tick */
static ERL_NIF_TERM silent(fair_task *t)
{
    unsigned long ns;

    if (!fair_get_ulong(t, fair_arg(t, 0), &ns))
        return fair_badarg(t);
    vm_work(ns);
    return enif_make_atom(fair_env(t), "ok");
}

/* even(Ns, Units, NsPerUnit): works without a tick, then with them */
static ERL_NIF_TERM even(fair_task *t)
{
    unsigned long silent_ns, units, ns;

    if (!fair_get_ulong(t, fair_arg(t, 0), &silent_ns)
        || !fair_get_ulong(t, fair_arg(t, 1), &units)
        || !fair_get_ulong(t, fair_arg(t, 2), &ns))
        return fair_badarg(t);
    vm_work(silent_ns);
    for (unsigned long i = 0; i < units; i++) {
        vm_work(ns);
        fair_tick(t, 0);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* odd(Units, Tick): works a unit of 1 us a tick, and then says it was Tick */
static ERL_NIF_TERM odd(fair_task *t)
{
    unsigned long units, tick;

    if (!fair_get_ulong(t, fair_arg(t, 0), &units)
        || !fair_get_ulong(t, fair_arg(t, 1), &tick))
        return fair_badarg(t);
    for (unsigned long i = 0; i < units; i++) {
        vm_work(US);
        fair_tick(t, 1);
        if (i % 10 == 5)
            fair_tick(t, tick);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* terms(Slices): makes terms in every slice */
static ERL_NIF_TERM terms(fair_task *t)
{
    unsigned n, root = fair_root_new(t, fair_arg(t, 0));

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    while (fair_yields(t) < n) {
        fair_root_set(t, root,
                  enif_make_tuple1(fair_env(t), fair_root_get(t, root)));
        vm_work(20 * US);
        fair_tick(t, 1);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* many_roots(Slices): makes nothing but roots, of which the last are a tuple at
 * each pause */
static ERL_NIF_TERM many_roots(fair_task *t)
{
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (int i = 0; i < 13; i++)
        fair_root_new(t, fair_arg(t, 0));
    while (fair_yields(t) < n) {
        vm_work(20 * US);
        fair_tick(t, 1);
    }
    return fair_root_get(t, 12);
}

static const fair_options slow_slices = {.body = work, .slice_us = 1000};

static ErlNifFunc nifs[] = {
    ALL_MODES("work", 3, work),
    FAIR_NIF_OPTIONS("work_slow", 3, &slow_slices, FAIR_NORMAL),
    ALL_MODES("silent", 1, silent),
    FAIR_NIF("even", 3, even, FAIR_AUTO),
    ALL_MODES("odd", 2, odd),
    ALL_MODES("terms", 1, terms),
    ALL_MODES("many_roots", 1, many_roots),
};
FAIR_NIF_INIT(test_time, nifs, NULL, NULL, NULL)

static void virtual(void)
{
    vm_options.virtual_time = true;
    vm_options.gc_every = 0;
    node_set("slice_ns", SLICE);
    node_set("turn_ns", SLICE);
    node_set("dirty_slice_ns", DIRTY_SLICE);
    vm_reset_maxima();
}

static long yields_of(const char *name, const char *args)
{
    return atol(finished(spawn_call(name, args)));
}

TEST(slices, "slices are about as long as they should be, from the first call")
{
    static const struct { const char *args; long ms; } works[] = {
        {"1000, 10000, 1", 10}, {"2000, 5000, 1", 10}, {"10000, 1000, 1", 10},
        {"100000, 100, 10", 10}, {"1000000, 10, 100", 10},
        {"10000000, 1, 1000", 10},
    };

    virtual();
    for (unsigned i = 0; i < sizeof works / sizeof *works; i++) {
        const char *name = i % 2 ? "work_yielding" : "work_auto";
        long ideal = works[i].ms * MS / SLICE, yields;

        node_forget(name);
        vm_reset_maxima();
        yields = yields_of(name, works[i].args);
        CHECK_NUMBERS(yields, >=, ideal * 8 / 10);
        CHECK_NUMBERS(yields, <=, ideal * 13 / 10);
        CHECK_NUMBERS(vm_counts().max_slice_ns, <=, 2 * SLICE);
    }
}

TEST(dirty_slices, "slices on dirty schedulers are longer, and a function may have "
     "slices of its own length")
{
    long yields;

    virtual();
    yields = yields_of("work_yielding_dirty", "20000, 1000, 1");
    CHECK_NUMBERS(yields, >=, 18);
    CHECK_NUMBERS(yields, <=, 26);
    CHECK_NUMBERS(vm_counts().max_slice_ns, <=, 2 * DIRTY_SLICE);
    CHECK_NUMBERS(yields_of("work_dirty_cpu", "20000, 1000, 1"), ==, 0);
    CHECK_NUMBERS(yields_of("work_dirty_io", "20000, 1000, 1"), ==, 0);
    CHECK_NUMBERS(yields_of("work_normal", "20000, 1000, 1"), ==, 0);
    yields = yields_of("work_slow", "10000, 1000, 1");
    CHECK_NUMBERS(yields, >=, 8);
    CHECK_NUMBERS(yields, <=, 13);
}

TEST(change, "the rate follows the work, up and down")
{
    virtual();
    for (int round = 0; round < 4; round++) {
        vm_reset_maxima();
        yields_of("work_yielding", "100000, 50, 1");
        yields_of("work_yielding", "100000, 50, 1");
        CHECK_NUMBERS(vm_counts().max_slice_ns, <=, 2 * SLICE);
        vm_reset_maxima();
        yields_of("work_yielding", "30000, 200, 1");    /* 4 times slower */
        CHECK_NUMBERS(vm_counts().max_slice_ns, <=, 5 * SLICE);
        vm_reset_maxima();
        yields_of("work_yielding", "30000, 200, 1");
        CHECK_NUMBERS(vm_counts().max_slice_ns, <=, 2 * SLICE);
    }
}

struct calls {
    const char *name, *args;
    long count;
    double ns, charged;         /* of a call: time, per cent of a slice */
};

static void call_in_a_row(void *arg)
{
    struct calls *c = arg;
    vm_proc *p = vm_spawn();
    uint64_t begin = vm_now();

    for (long i = 0; i < c->count; i++) {
        vm_call(p, lib, c->name, c->args);
        run_all_slices(p);
    }
    c->ns = (double)(vm_now() - begin) / (double)c->count;
    c->charged = vm_percent(p) / (double)c->count;
    vm_free(p);
}

/* All on one thread: each has a count of its own until a call is timed, and a
 * hundred thousand changes of threads take minutes on a busy machine. */
static struct calls in_a_row(const char *name, const char *args, long count)
{
    struct calls c = {.name = name, .args = args, .count = count};

    vm_on(VM_NORMAL, call_in_a_row, &c);
    return c;
}

/* What calls that together work `ms` are charged, as a multiple of that time; one
 * alone goes from thread to thread. */
static void check_charge(const char *name, const char *args, long calls,
                         double ms, int line)
{
    double charged;

    if (calls == 1) {
        vm_proc *p = spawn_call(name, args);

        vm_finish(p);
        charged = vm_percent(p);
        vm_free(p);
    } else {
        charged = in_a_row(name, args, calls).charged * (double)calls;
    }
    charged = charged / 100.0 * SLICE / MS / ms;
    check_that(charged >= 0.8 && charged <= 1.25, __FILE__, line,
               "%s(%s), %ld times: charged %.2f of the time", name, args,
               calls, charged);
}

TEST(charges, "many short calls are charged what one long one is")
{
    static const struct { const char *name, *args; long calls; double ms; } all[] = {
        {"work", "100000, 1000, 1", 1, 100}, {"work", "1000, 1000, 1", 100, 100},
        {"work", "10, 1000, 1", 5000, 50}, {"work", "1, 1000, 1", 20000, 20},
        {"work", "4, 1000, 1", 5000, 20}, {"silent", "1000", 20000, 20},
        {"silent", "10000", 5000, 50}
    };

    virtual();
    for (int i = 0; i < 6; i++)
        /* FAIR_NORMAL never yields: one turn is all it can be charged. */
        for (size_t k = modes[i].yields ? 0 : 2; k < sizeof all / sizeof *all
             && modes[i].first == 'n'; k++)
            check_charge(in_mode(all[k].name, &modes[i]), all[k].args,
                         all[k].calls, all[k].ms, __LINE__);
}

/* -- what was learned wrongly is learned again ----------------------------- */

static const char *const evens[] = {
    "0, 1, 40", "40, 2, 1", "0, 20, 50", "0, 1000, 1", "40, 0, 0", "2000, 0, 0",
    "2000, 1000, 1", "0, 4, 1000", "0, 40, 100", "1000, 20, 200", "0, 50, 1000"
};
enum { EVENS = sizeof evens / sizeof *evens };
/* The figures are the same under any tool: under a slow one, which looks for other
 * things, some of them do. */
#if defined(__SANITIZE_THREAD__) || defined(FAIR_VALGRIND)
enum { STEP = 4 };
#else
enum { STEP = 1 };
#endif

static struct calls reference(const char *args)
{
    node_forget("even");
    in_a_row("even", args, 3000);
    return in_a_row("even", args, 2000);
}

/* After what came before, calls cost within 10,000 what they cost without. */
static void check_settles(const struct calls *should, const char *before)
{
    struct calls is;
    long calls = 0;

    do {
        is = in_a_row("even", should->args, 500);
        calls += 500;
    } while (calls < 10000
             && (is.ns > 1.02 * should->ns
                 || is.charged < 0.8 * should->charged
                 || is.charged > 1.25 * should->charged));
    check_that(calls < 10000, __FILE__, __LINE__, "even(%s) after %s: %.0f ns "
               "a call, charged %.3f %%, not %.0f and %.3f", should->args,
               before, is.ns, is.charged, should->ns, should->charged);
}

TEST(settles, "wherever a thread is stopped for a while, calls cost soon what "
     "they did")
{
    static const uint64_t pauses[] = {3 * US, 10 * MS, 3600000000000};

    virtual();
    for (int i = 0; i < EVENS; i += STEP) {
        struct calls should = reference(evens[i]);

        for (unsigned p = 0; p < sizeof pauses / sizeof *pauses; p++) {
            for (long look = 1; look <= 8; look++) {
                char before[64];

                snprintf(before, sizeof before, "%lu ns at look %ld",
                         (unsigned long)pauses[p], look);
                node_forget("even");
                vm_pause(look, pauses[p]);
                check_settles(&should, before);
            }
        }
    }
}

TEST(follows, "whatever calls did before, they cost soon what they do now")
{
    virtual();
    for (int i = 0; i < EVENS; i += STEP) {
        struct calls should = reference(evens[i]);

        for (int j = 0; j < EVENS; j += STEP) {
            node_forget("even");
            in_a_row("even", evens[j], 300);
            check_settles(&should, evens[j]);
        }
    }
}

TEST(long_settles, "wherever a thread is stopped for a while, a long call goes "
     "on as it did")
{
    static const char args[] = "0, 200000, 100";
    double should;

    virtual();
    in_a_row("even", args, 8);
    should = in_a_row("even", args, 1).ns;
    for (long look = 1; look <= 24; look++) {
        vm_pause(look, 10 * MS);
        CHECK_NUMBERS(in_a_row("even", args, 1).ns - 10 * MS, <=, 1.01 * should);
    }
}

TEST(silence, "a body that does not tick is charged, and named for its gap")
{
    virtual();
    for (int i = 0; i < 6; i++) {
        const char *name = in_mode("silent", &modes[i]);

        if (modes[i].first != 'n')
            continue;
        if (modes[i].yields)
            check_charge(name, "20000000", 5, 100, __LINE__);
        else                    /* one alone might be a stolen CPU */
            for (int call = 0; call < 5; call++)
                CHECK_CALL(name, "20000000", "ok");
        CHECK_NUMBERS(node_counter(name, "longest_gap_ns"), >=, 19 * MS);
        CHECK_NUMBERS(node_counter(name, "longest_gap_ns"), <=, 21 * MS);
    }
}

/* AUTO: the ticks of work(.., 4 ms, 1) lie 4 ms apart. */
TEST(adapts, "an AUTO function whose ticks lie too far apart moves to dirty "
     "schedulers, and back when they no longer do, or when it is upgraded")
{
    virtual();
    for (int upgrade = 0; upgrade < 2; upgrade++) {
        vm_proc *p;

        for (int i = 0; i < 12; i++)
            yields_of("work_auto", "20, 4000000, 1");
        p = spawn_call("work_auto", "20, 4000000, 1");
        vm_finish(p);
        CHECK(vm_kinds(p)[0] == 'n' && strchr(vm_kinds(p), 'c'));
        CHECK_NUMBERS(vm_kinds(p)[vm_slices(p) - 1], ==, 'c');
        vm_free(p);
        if (upgrade)
            node_upgrade(nif_init);
        for (int i = 0; i < (upgrade ? 1 : 200); i++)
            yields_of("work_auto", "200, 1000, 1");
        p = spawn_call("work_auto", "20, 1000, 1");
        vm_finish(p);
        CHECK_TEXT(vm_kinds(p), "n");
        vm_free(p);
    }
}

TEST(others_stay, "other modes stay where they are, however they tick")
{
    vm_proc *p;

    virtual();
    for (int i = 0; i < 12; i++)
        yields_of("work_yielding", "20, 4000000, 1");
    p = spawn_call("work_yielding", "20, 4000000, 1");
    vm_finish(p);
    CHECK(!strchr(vm_kinds(p), 'c'));
    vm_free(p);
}

static void check_odd(const char *tick, long most_ns)
{
    for (int i = 0; i < 6; i++) {
        char args[64];
        long counted;

        snprintf(args, sizeof args, "2000, %s", tick);
        for (int round = 0; round < 100; round++) {
            /* First slices that are not timed come only after short calls. */
            yields_of(in_mode("work", &modes[i]), "2, 1000, 1");
            yields_of(in_mode("odd", &modes[i]), "1, 1");
        }
        vm_reset_maxima();
        counted = node_counter(in_mode("odd", &modes[i]), "normal_ns");
        for (int round = 0; round < 5; round++) {
            vm_proc *p = spawn_call(in_mode("odd", &modes[i]), args);

            while (vm_state(p) == VM_READY && vm_slices(p) < 800)
                vm_step(p);
            check_that(!strcmp(outcome(p), "ok"), __FILE__, __LINE__,
                       "%s(%s): %s after %d slices",
                       in_mode("odd", &modes[i]), args, outcome(p),
                       vm_slices(p));
            vm_free(p);
        }
        if (modes[i].first == 'n' && modes[i].yields)
            check_that(vm_counts().max_slice_ns <= most_ns, __FILE__, __LINE__,
                       "%s(%s): a slice of %ld ns",
                       in_mode("odd", &modes[i]), args,
                       vm_counts().max_slice_ns);
        counted = node_counter(in_mode("odd", &modes[i]), "normal_ns")
            - counted;
        check_that(counted <= 20 * MS, __FILE__, __LINE__, "%s(%s): %ld ns "
                   "counted of 10 ms", in_mode("odd", &modes[i]), args,
                   counted);
    }
}

/* What a tick says is believed, up to a point: so slices may be too long for a
 * moment after one that is far too large.  But what the call is charged for is
 * time that has passed. */
TEST(odd_ticks, "a tick of nothing, a negative one, a huge one is harmless; one "
     "that is far too large does not hold up its call")
{
    static const struct { const char *tick; long most_ns; } ticks[] = {
        {"0", 3 * SLICE},
        {"18446744073709551615", 3 * SLICE},
        {"18446744073709551516", 3 * SLICE},
        {"9223372036854775808", 3 * SLICE},
        {"4294967296", 3 * SLICE}, {"1099511627776", 3 * SLICE},
        {"2147483648", 5 * MS}, {"2000000000", 5 * MS},
        {"1000000", 5 * MS}, {"1000", 5 * MS},
    };

    virtual();
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        check_odd(ticks[i].tick, ticks[i].most_ns);
}

TEST(huge_first, "a huge tick as the very first is harmless")
{
    virtual();
    for (int i = 0; i < 6; i++) {
        const char *name = in_mode("odd", &modes[i]);

        CHECK_CALL(name, "10, 18446744073709551615", "ok");
        CHECK_CALL(name, "10, 2000000000", "ok");
        CHECK_CALL(name, "10, 1", "ok");
    }
}

TEST(every_cpu, "a dirty CPU task yields only while none is left for the "
     "VM")
{
    vm_proc *p;

    virtual();
    node_set("dirty_cpus", 1);
    p = spawn_call("work_dirty_cpu", "5000, 1000, 1");
    vm_finish(p);
    CHECK_NUMBERS(atol(outcome(p)), >=, 4);
    CHECK_NUMBERS(atol(outcome(p)), <=, 6);
    vm_free(p);
    node_set("dirty_cpus", 2);
    CHECK_NUMBERS(yields_of("work_dirty_cpu", "5000, 1000, 1"), ==, 0);
}

TEST(hops, "a dirty task that makes terms passes a normal scheduler")
{
    vm_proc *p;

    virtual();
    node_set("pause_every_tick", 1);
    p = spawn_call("terms_yielding_dirty", "3");
    vm_finish(p);
    CHECK_TEXT(vm_kinds(p), "ncncncnc");
    vm_free(p);
    p = spawn_call("many_roots_yielding_dirty", "3");
    vm_finish(p);
    CHECK_TEXT(vm_kinds(p), "ncncncnc");
    vm_free(p);
    p = spawn_call("work_yielding_dirty", "3, 1, 1");
    vm_finish(p);
    CHECK_TEXT(vm_kinds(p), "ncccc");
    vm_free(p);
}
