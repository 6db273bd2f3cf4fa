/*
 * test_private.c - what the runtime lends to applications of its own: the
 * table and its versions, strands, threads of the pool.
 *
 * The NIFs here are plain ones, as such an application's callbacks: each call
 * is on another scheduler's thread than the one before.
 */
#include <string.h>

#include "../../c_include/fairnif_private.h"
#include "check.h"

static const struct fair__private *lent;
static struct fair__visitor visitor;

/* -- the application gets the table ---------------------------------------- */

static void visit(unsigned which, unsigned major, unsigned minor)
{
    visitor = (struct fair__visitor){
        .is = {sizeof visitor, FAIR__VISITS}, .abi_major = (uint16_t)major,
        .abi_minor = (uint16_t)minor, .which = which
    };
    node_visit(&visitor);
}

static void borrow(void)
{
    visit(FAIR__TABLE_PRIVATE, FAIR_PRIVATE_MAJOR, FAIR_PRIVATE_MINOR);
    lent = visitor.table;
}

/* -- a strand -------------------------------------------------------------- */

static fair_task *strand;
static unsigned frames;         /* of 32 KiB that its work takes */
static struct {
    unsigned ticks, units;      /* how many ticks of how many units */
    uint64_t ns;                /* that each of them takes */
} work;

static __attribute__((noinline)) void dig(unsigned depth)
{
    volatile char frame[32 * 1024];

    if (depth == 0)
        return;
    for (size_t i = 0; i < sizeof frame; i += 512)
        frame[i] = (char)depth;
    dig(depth - 1);
    CHECK_NUMBERS(frame[0], ==, (char)depth);
}

static void do_work(void *arg)
{
    char marks[512];

    dig(frames);
    memset(marks, 0x5A, sizeof marks);
    note("<%s", (const char *)arg);
    for (unsigned i = 0; i < work.ticks; i++) {
        vm_work(work.ns);
        fair_tick(strand, work.units);
    }
    for (unsigned i = 0; i < sizeof marks; i++)
        CHECK_NUMBERS(marks[i], ==, 0x5A);
    note(">");
}

static ERL_NIF_TERM begin_strand(ErlNifEnv *env, int argc,
                                 const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    strand = lent->strand_new(do_work, "s");
    return enif_make_atom(env, strand ? "there" : "none");
}

static ERL_NIF_TERM run_strand(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_atom(env,
                          lent->strand_run(strand) ? "ended" : "continues");
}

/* In slices of 25 us; how many there were. */
static unsigned run_to_end(void)
{
    unsigned slices = 1;

    CHECK_CALL("begin_strand", "", "there");
    while (!strcmp(finished(spawn_call("run_strand", "")), "continues"))
        slices++;
    return slices;
}

/* -- a job ----------------------------------------------------------------- */

static struct fair__job job;
static _Atomic int jobs_done;

static void do_job(struct fair__job *done)
{
    CHECK(done == &job);
    gate_pass(NULL);
    jobs_done++;
}

static ERL_NIF_TERM start_job(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    memset(&job, 0, sizeof job);
    job.run = do_job;
    return enif_make_atom(env, lent->pool_start(&job) ? "started" : "put");
}

static ERL_NIF_TERM blocks(fair_task *t)
{
    gate_pass(NULL);
    return fair_arg(t, 0);
}

/* Ends with something to be sent. */
static ERL_NIF_TERM fails(fair_task *t)
{
    fair_send(t, fair_self(t), fair_self(t));
    fair_root_drop(t, 7);
    return fair_self(t);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("fails", 0, fails, FAIR_NORMAL | FAIR_MAY_WAIT),
    {"begin_strand", 0, begin_strand, 0},
    {"run_strand", 0, run_strand, 0},
    {"start_job", 0, start_job, 0},
    FAIR_NIF("blocks", 1, blocks, FAIR_THREADED),
};
FAIR_NIF_INIT(test_private, nifs, NULL, NULL, NULL)

/* -- the table ------------------------------------------------------------- */

TEST(versions, "a library built with another private header gets no table, "
     "but the runtime's version")
{
    const struct { unsigned which, major, minor; } odd[] = {
        {FAIR__TABLE_PRIVATE, FAIR_PRIVATE_MAJOR + 1, 0},
        {FAIR__TABLE_PRIVATE, FAIR_PRIVATE_MAJOR, FAIR_PRIVATE_MINOR + 1},
        {FAIR__TABLE_PRIVATE, FAIR_PRIVATE_MAJOR - 1, FAIR_PRIVATE_MINOR},
    };

    for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
        visit(odd[i].which, odd[i].major, odd[i].minor);
        CHECK(visitor.table == NULL);
        CHECK_NUMBERS(visitor.abi_major, ==, FAIR_PRIVATE_MAJOR);
        CHECK_NUMBERS(visitor.abi_minor, ==, FAIR_PRIVATE_MINOR);
    }
    visit(FAIR__TABLE_PRIVATE + 1, FAIR_PRIVATE_MAJOR, 0);
    CHECK(visitor.table == NULL);
    borrow();
    CHECK(lent != NULL);
    if (lent)
        CHECK_NUMBERS(lent->size, ==, sizeof *lent);
}

static void nothing(void)
{
}

TEST(first, "the first copy of an application's library is remembered, also "
     "when the runtime's module is loaded again")
{
    static const char mine, others;
    vm_proc *p = vm_spawn();
    int error = -1;

    borrow();
    CHECK(lent->first(&mine) == &mine);
    CHECK(lent->first(&others) == &mine);
    CHECK(node_runtime_again(p, nothing, &error) != NULL);
    borrow();
    CHECK(lent->first(&others) == &mine);
    vm_free(p);
}

/* -- strands --------------------------------------------------------------- */

TASKS_TEST(strands, "a strand yields at its ticks, continues on another "
     "thread, and ends")
{
    borrow();
    node_set("pause_every_tick", 1);
    work.ticks = 3, work.units = 1, work.ns = 0;
    CHECK_CALL("begin_strand", "", "there");
    CHECK_TEXT(notes(), "");
    for (unsigned i = 0; i < work.ticks; i++) {
        CHECK_CALL("run_strand", "", "continues");
        CHECK_TEXT(notes(), "<s");
        CHECK_NUMBERS(fair_yields(strand), ==, i + 1);
        CHECK_NUMBERS(node_stacks(), ==, 1);
    }
    CHECK_CALL("run_strand", "", "ended");
    CHECK_TEXT(notes(), "<s>");
    CHECK_NUMBERS(node_stacks(), ==, 0);
    node_set("pause_every_tick", 0);
}

TASKS_TEST_DIES(strand_overflow, "a strand that overflows its stack is named",
          "fairnif: stack overflow in a callback of port driver squeeze: its C "
          "stack of 131072 bytes is too small")
{
    borrow();
    frames = 10;
    CHECK_CALL("begin_strand", "", "there");
    lent->strand_name(strand, "squeeze");
    finished(spawn_call("run_strand", ""));
}

TASKS_TEST(many_strands, "strands that are paused at once stay apart")
{
    fair_task *strands[20];

    borrow();
    node_set("pause_every_tick", 1);
    work.ticks = 1, work.units = 1, work.ns = 0;
    for (unsigned i = 0; i < 20; i++) {
        CHECK_CALL("begin_strand", "", "there");
        strands[i] = strand;
        CHECK_CALL("run_strand", "", "continues");
    }
    for (unsigned i = 20; i-- > 0;) {
        strand = strands[i];
        CHECK_CALL("run_strand", "", "ended");
    }
    node_set("pause_every_tick", 0);
}

TASKS_TEST(after_a_task, "a strand has nothing of a call that had its stack "
     "before")
{
    borrow();
    for (int i = 0; i < 12; i++)
        CHECK_TEXT(finished(spawn_await("fails", "")), "error:{fairnif,{bad_root,"
                   "{test_private,fails,0}}}");
    node_set("pause_every_tick", 1);
    work.ticks = 1, work.units = 1, work.ns = 0;
    for (int i = 0; i < 6; i++)
        CHECK_NUMBERS(run_to_end(), ==, 2);
    node_set("pause_every_tick", 0);
}

/* Virtual time: 1000 units of 1 us are 40 slices of 25 us, if none is cut short
 * and none is overrun by more than a tick. */
TASKS_TEST(slices, "a strand's slices are as long as a task's, whatever its "
     "units cost and whatever the units of another")
{
    const struct { unsigned ticks, units; uint64_t ns; } works[] = {
        {1000, 1, 1000}, {10000, 1, 100}, {1000, 1000000, 1000},
        {100, 1, 10000}, {1000, 1, 1000}
    };

    vm_options.virtual_time = true;
    borrow();
    for (unsigned i = 0; i < sizeof works / sizeof *works; i++) {
        work.ticks = works[i].ticks;
        work.units = works[i].units;
        work.ns = works[i].ns;
        for (unsigned k = 0; k < 3; k++) {
            unsigned slices = run_to_end();

            CHECK_NUMBERS(slices, >=, 33);
            CHECK_NUMBERS(slices, <=, 52);
        }
    }
}

TASKS_TEST(few_looks, "cheap ticks do not read the clock each time")
{
    uint64_t begin, spent;

    vm_options.virtual_time = true;
    borrow();
    work.ticks = 20000, work.units = 1, work.ns = 1;
    run_to_end();
    begin = vm_now();
    CHECK_NUMBERS(run_to_end(), <=, 2);
    spent = vm_now() - begin;
    /* 20 us of work; each look takes 20 ns. */
    CHECK_NUMBERS(spent, <, 22000);
}

TASKS_TEST(no_memory, "without memory for a stack there is no strand")
{
    borrow();
    vm_fail(VM_F_MMAP, 1, true);
    CHECK_CALL("begin_strand", "", "none");
    vm_fail(0, 0, false);
}

/* -- what it costs --------------------------------------------------------- */

TEST(price, "time is priced in percent of a turn, and a slice is up near its "
     "end")
{
    vm_options.virtual_time = true;
    borrow();
    node_set("turn_ns", 100000);
    CHECK_NUMBERS(lent->price(0), ==, 1);
    CHECK_NUMBERS(lent->price(50000), ==, 50);
    CHECK_NUMBERS(lent->price(1000000), ==, 100);
    node_set("slice_ns", 100000);
    CHECK(!lent->slice_is_up(lent->now()));
    CHECK(lent->slice_is_up(lent->now() - 86000));
    node_set("dirty_cpus", 3);
    CHECK_NUMBERS(lent->processors(), ==, 3);
}

/* -- threads of the pool --------------------------------------------------- */

TEST(jobs, "a job is done on a thread of the pool; one that waits for a thread "
     "can be withdrawn")
{
    vm_proc *busy;

    borrow();
    gate_open();
    jobs_done = 0;
    CHECK_CALL("start_job", "", "started");
    EVENTUALLY(jobs_done == 1);
    EVENTUALLY(node_info("threads_busy") == 0);
    gate_shut();
    node_set("threads", 1);
    busy = spawn_await("blocks", "a");
    until_waiting(busy);
    EVENTUALLY(gate_waiting() == 1);
    CHECK_CALL("start_job", "", "started");
    CHECK(lent->pool_withdraw(&job));
    CHECK(!lent->pool_withdraw(&job));
    gate_open();
    CHECK_TEXT(finished(busy), "a");
    CHECK_NUMBERS(jobs_done, ==, 1);
}

TEST_WITH(no_thread, "a job that no thread can be started for stays put, and can be "
          "withdrawn", NULL, node_without_pool)
{
    borrow();
    gate_open();
    jobs_done = 0;
    vm_fail(VM_F_THREAD, 1, true);
    CHECK_CALL("start_job", "", "put");
    vm_fail(0, 0, false);
    CHECK(lent->pool_withdraw(&job));
    CHECK_CALL("start_job", "", "started");
    EVENTUALLY(jobs_done == 1);
}
