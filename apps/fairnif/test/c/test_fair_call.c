/*
 * test_fair_call.c - where fair_offload runs its function, by what it learned;
 * in virtual time.  A dirty trip is 2 us here: in place is what costs less
 * than 20.
 */
#include <stdio.h>
#include <stdlib.h>

#define NEEDS_TASKS
#include "check.h"

enum { US = 1000, MS = 1000000, TRIP = 2 * US, CUTOFF = 10 * TRIP,
       LOOK = 20 };             /* ns of the clock, at each look */

struct job {
    uint64_t ns;
    char where;
};

static void run(void *arg)
{
    struct job *job = arg;

    job->where = "?nci"[enif_thread_type()];
    vm_work(job->ns);
}

/* call(Units, Ns) -> where it ran, as a character */
static ERL_NIF_TERM call(fair_task *t)
{
    struct job job = {0};
    unsigned long units, ns;

    if (!fair_get_ulong(t, fair_arg(t, 0), &units)
        || !fair_get_ulong(t, fair_arg(t, 1), &ns))
        return fair_badarg(t);
    job.ns = ns;
    fair_offload(t, FAIR_AUTO, units, run, &job);
    return enif_make_int(fair_env(t), job.where);
}

/* many(N, Units, Ns, Tick) -> Yields: N calls in a row, and after each a tick
 * of Tick units of 100 ns, if any */
static ERL_NIF_TERM many(fair_task *t)
{
    struct job job = {0};
    unsigned long n, units, ns, tick;

    if (!fair_get_ulong(t, fair_arg(t, 0), &n)
        || !fair_get_ulong(t, fair_arg(t, 1), &units)
        || !fair_get_ulong(t, fair_arg(t, 2), &ns)
        || !fair_get_ulong(t, fair_arg(t, 3), &tick))
        return fair_badarg(t);
    job.ns = ns;
    for (unsigned long i = 0; i < n; i++) {
        fair_offload(t, FAIR_AUTO, units, run, &job);
        vm_work(100 * tick);
        if (tick > 0)
            fair_tick(t, tick);
    }
    return enif_make_uint64(fair_env(t), fair_yields(t));
}

static void run_and_die(void *arg)
{
    run(arg);
    vm_kill(vm_current());
}

/* dies(Units): the caller is killed inside the call */
static ERL_NIF_TERM dies(fair_task *t)
{
    struct job *job = fair_alloc(t, sizeof *job);
    unsigned long units;
    fair_bin bin;

    if (!job || !fair_get_ulong(t, fair_arg(t, 0), &units)
        || !fair_new_bin(t, 1000, &bin))
        return fair_badarg(t);
    job->ns = US;
    fair_defer(t, note_defer, "d");
    fair_offload(t, FAIR_AUTO, units, run_and_die, job);
    if (fair_where(t) != FAIR_NORMAL)
        note("went on");
    fair_tick(t, 1);
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    ALL_MODES("call", 2, call),
    ALL_MODES("many", 4, many),
    ALL_MODES("dies", 1, dies),
};
FAIR_NIF_INIT(test_fair_call, nifs, NULL, NULL, NULL)

/* Where a call of the function runs: 'n', 'c' or 'i'. */
static char ran_in(const char *name, uint64_t units, uint64_t ns)
{
    char args[64];

    sprintf(args, "%lu, %lu", (unsigned long)units, (unsigned long)ns);
    return (char)atoi(finished(spawn_call(name, args)));
}

static char ran(uint64_t units, uint64_t ns)
{
    return ran_in("call_auto", units, ns);
}

/* Where `times` of them run, one letter for each. */
static const char *ran_times(int times, uint64_t units, uint64_t ns)
{
    static char where[65];
    int i;

    for (i = 0; i < times && i < 64; i++)
        where[i] = ran(units, ns);
    where[i] = 0;
    return where;
}

static void start(void)
{
    vm_options.virtual_time = true;
    node_set("dirty_round_trip_ns", TRIP);
}

/* The function's calls in turn, `times` of each kind. */
struct calls {
    int times;
    uint64_t units, ns;
    const char *should;         /* where they run, or NULL: wherever that is */
};

static void check_calls(const struct calls *calls)
{
    for (start(); calls->times > 0; calls++) {
        const char *is = ran_times(calls->times, calls->units, calls->ns);

        check_that(!calls->should || !strcmp(is, calls->should), __FILE__,
                   __LINE__, "%d of %lu units, %lu ns: %s, not %s", calls->times,
                   (unsigned long)calls->units, (unsigned long)calls->ns, is,
                   calls->should);
    }
}

#define CALLS(TEST_NAME, SENTENCE, ...)                                     \
    TEST(TEST_NAME, SENTENCE)                                               \
    {                                                                       \
        check_calls((const struct calls[]){__VA_ARGS__, {0}});              \
    }

CALLS(too_low, "the first call of a function is measured on a dirty scheduler; after "
      "one that was longer than believed the next is dirty",
      {4, 100, US, "cnnn"}, {4, 100, MS, "nccc"}, {4, 100, CUTOFF + US, "cccc"})
CALLS(too_high, "one dirty call that was shorter than believed, and the next is in "
      "place",
      {3, 100, MS, "ccc"}, {3, 100, US, "cnn"}, {3, 100, CUTOFF - 2 * US, "nnn"})
CALLS(cold, "a first call with cold caches sends one more away",
      {1, 16, 50 * US, "c"}, {3, 16, US, "cnn"})
CALLS(band, "calls that went dirty come back when they cost clearly less",
      {10, 100, CUTOFF + US, NULL}, {10, 100, CUTOFF * 9 / 10, "cccccccccc"},
      {20, 100, CUTOFF * 7 / 10, NULL},
      {10, 100, CUTOFF * 7 / 10, "nnnnnnnnnn"},
      {10, 100, CUTOFF * 9 / 10, "nnnnnnnnnn"})
CALLS(smaller, "less work than what is known to be short runs in place at once",
      {2, 4096, 4 * US, "cn"}, {1, 64, US, "n"}, {1, 0, US, "n"},
      {1, 8192, 8 * US, "c"}, {2, 1 << 20, MS, NULL}, {1, 1 << 19, MS / 2, "c"})
CALLS(odd_units, "no units, and more than there can be, are harmless",
      {3, 0, US, "cnn"}, {3, UINT64_MAX, US, "cnn"}, {3, UINT64_MAX, MS, "ncc"},
      {3, 0, MS, "ncc"}, {3, 1, 0, "cnn"})
/* The operating system gave the thread to another thread in the middle.  Near
 * the cutoff, by less than a factor of two, none is sent away. */
CALLS(outlier, "a sample with another thread's time sends one call away",
      {10, 100, 5 * US, NULL},
      {1, 100, 3 * MS, "n"}, {10, 100, 5 * US, "cnnnnnnnnn"},
      {1, 100, 3 * MS, "n"}, {10, 100, 5 * US, "cnnnnnnnnn"},
      {10, 1000, 14 * US, NULL}, {1, 1000, 27 * US, "n"},
      {10, 1000, 14 * US, "nnnnnnnnnn"})

static int changes(const char *where)
{
    int n = 0;

    for (; where[0] && where[1]; where++)
        n += where[0] != where[1];
    return n;
}

TEST(near, "calls that cost about the cutoff do not change places from call to "
     "call")
{
    char where[201] = "";

    start();
    ran_times(4, 100, CUTOFF - US);
    srand(25);
    for (int i = 0; i < 200; i++)       /* 10 % up and down */
        where[i] = ran(100, (uint64_t)(CUTOFF * (0.9 + rand() % 201 / 1e3)));
    CHECK_NUMBERS(changes(where), ==, 1);
    CHECK_NUMBERS(where[199], ==, 'c');
}

/* A fixed cost and one by the unit, the sizes in turn. */
static void mixed(const char *name, uint64_t fixed, const char *should)
{
    static const uint64_t sizes[] = {16, 65536, 256, 16 << 20, 4096, 16384};
    char where[7] = "";

    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 6; i++)
            where[i] = ran_in(name, sizes[i], fixed + sizes[i]);
        if (round > 0)
            CHECK_TEXT(where, should);
    }
}

TEST(mixed_sizes, "calls of one size say nothing about another's place; a fixed cost "
     "that is expensive is so at every size")
{
    start();
    mixed("call_auto", 500, "ncncnn");
    mixed("call_yielding", 50 * US, "cccccc");
}

TEST(in_octave, "within an octave it goes by the units")
{
    start();
    for (int i = 0; i < 20; i++) {
        char few = ran(17000, 17000 * 7 / 10);      /* 12 us */
        char many = ran(32000, 32000 * 7 / 10);     /* 22 us */

        if (i > 0) {
            CHECK_NUMBERS(few, ==, 'n');
            CHECK_NUMBERS(many, ==, 'c');
        }
    }
}

TEST(modes_that_stay, "FAIR_NORMAL and the dirty modes run everything in "
     "place")
{
    start();
    for (int i = 0; i < 6; i++) {
        const char *name = in_mode("call", &modes[i]);
        bool leaves = modes[i].first == 'n' && modes[i].yields;

        for (int j = 0; j < 5; j++) {
            char where = ran_in(name, 100, j % 2 ? 100 : 10 * MS);

            if (!leaves)
                CHECK_NUMBERS(where, ==, modes[i].first);
        }
        CHECK_NUMBERS(node_counter(name, "dirty_offloads")
                      + node_counter(name, "inline_offloads"), ==, 5);
        CHECK_NUMBERS(node_counter(name, "dirty_offloads"), ==, leaves ? 3 : 0);
    }
}

TEST(killed, "a caller that is killed inside leaves nothing, wherever it runs")
{
    start();
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 3; j++) {
            vm_proc *p = spawn_call(in_mode("dies", &modes[i]), "1");

            CHECK(vm_finish(p) == VM_DEAD);
            vm_free(p);
            CHECK_NUMBERS(node_stacks(), ==, 0);
        }
    }
    CHECK_TEXT(notes(), "dddddddddddddddddd");
}

TEST(killed_on_its_way, "a caller that is killed on the way there or back "
     "leaves nothing")
{
    start();
    for (int slices = 1; slices <= 3; slices++) {
        vm_proc *p = spawn_call("call_auto", "100, 1000000");

        while (vm_slices(p) < slices && vm_state(p) == VM_READY)
            vm_step(p);
        vm_free(p);
        CHECK_NUMBERS(node_stacks(), ==, 0);
    }
}

TEST(yielded, "many short calls in a row yield and are charged")
{
    static const uint64_t costs[] = {100, US, 5 * US, 15 * US};

    start();
    node_set("slice_ns", 25 * US);
    for (int i = 0; i < 4; i++) {
        char args[64];
        vm_proc *p;

        for (int tick = 0; tick < 2; tick++) {
            unsigned long n = 20 * MS / costs[i];

            sprintf(args, "%lu, %d, %lu, %d", n, 1 << i, (long)costs[i],
                    tick);
            finished(spawn_call("many_auto", args));    /* learns */
            p = spawn_call("many_auto", args);
            vm_reset_maxima();
            CHECK(vm_finish(p) == VM_DONE);
            CHECK_NUMBERS(vm_counts().max_slice_ns, <=,
                          25 * US + (long)costs[i] + 6 * US);
            /* 800 turns at least, for 20 ms */
            CHECK_NUMBERS(vm_slices(p), >=, 600);
            CHECK_NUMBERS(vm_percent(p), >=, 60000);
            vm_free(p);
        }
    }
}

TEST(no_gap, "the time of a call is no unit's, and no gap")
{
    start();
    for (int i = 0; i < 200; i++)
        finished(spawn_call("many_auto", i % 2 ? "3, 100, 15000, 2"
                            : "40, 100, 1500, 5"));
    CHECK_NUMBERS(node_counter("many_auto", "longest_gap_ns"), <=, 2 * US);
    for (int i = 0; i < 5; i++)
        finished(spawn_call("many_yielding", "5, 100, 90000000, 5"));
    CHECK_NUMBERS(node_counter("many_yielding", "longest_gap_ns"), <=,
                  2 * US);
}

/* What a thousand calls of that length, each of another process, are charged,
 * in parts of what they take.  A turn of 25 us is 100 %. */
static double charged(uint64_t ns)
{
    unsigned percent = 0;
    char args[64];

    sprintf(args, "100, %lu", (unsigned long)ns);
    for (int i = 0; i < 1000; i++) {
        vm_proc *p = spawn_call("call_auto", args);

        CHECK(vm_finish(p) == VM_DONE);
        percent += vm_percent(p);
        vm_free(p);
    }
    return percent * 250.0 / (1000.0 * (double)ns);
}

TEST(is_charged, "a body is charged for a call that ran in place, and once")
{
    start();
    node_set("turn_ns", 25 * US);
    for (uint64_t us = 2; us <= 15; us++) {
        double part = charged(us * US);

        /* What is around the call costs as well; debts of callers that are
         * gone are forgiven. */
        CHECK_NUMBERS(1000 * part, >=, 850);
        CHECK_NUMBERS(1000 * part, <=, 1200);
    }
}

/* -- what info/0 shows -------------------------------------------------------- */

static const char *learned(void)
{
    static char text[1 << 20];
    vm_proc *p = node_spawn("nif_info", "");
    char *at, *end;

    vm_finish(p);
    vm_print(vm_result(p), text, sizeof text);
    vm_free(p);
    at = strstr(text, "function=>{test_fair_call,call_auto,2}");
    at = at ? strstr(at, "offload_unit_ns") : NULL;
    end = at ? strstr(at, "cutoff_units=>") : NULL;
    if (!end)
        return text;
    end += strlen("cutoff_units=>");
    end[strcspn(end, ",}")] = 0;
    return at + strlen("offload_");
}

TEST(shown, "info shows what was learned, and from where calls go dirty")
{
    static const struct {
        uint64_t units, ns;
        const char *unit_ns, *cutoff;
    } calls[] = {
        {64, 640, "{64,10}", "128"},
        {16384, 32768, "{64,10},{16384,2}", "128"},
        {8192, 8192, "{64,10},{8192,1},{16384,2}", "16384"},
        {32768, 16384, "{64,10},{8192,1},{16384,2},{32768,0.5}", "16384"},
        {16384, 10240, "{64,10},{8192,1},{16384,0.625},{32768,0.5}", "32000"},
    };

    start();
    CHECK_TEXT(learned(), "unit_ns=>[],offload_cutoff_units=>1");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char should[256];

        ran_times(1, calls[i].units, calls[i].ns - LOOK);
        snprintf(should, sizeof should,
                 "unit_ns=>[%s],offload_cutoff_units=>%s", calls[i].unit_ns,
                 calls[i].cutoff);
        CHECK_TEXT(learned(), should);
    }
}
