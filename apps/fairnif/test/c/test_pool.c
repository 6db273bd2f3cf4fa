/*
 * test_pool.c - the runtime's threads: how many there are, what waits for
 * them and for how long, what happens when there is no room and no thread.
 */
#include <string.h>
#include <unistd.h>

#define NEEDS_TASKS
#include "begun.h"

/* -- bodies -------------------------------------------------------------- */

static ERL_NIF_TERM gated(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    return fair_arg(t, 0);
}

/* The same in the body itself: for FAIR_THREADED. */
static ERL_NIF_TERM blocks(fair_task *t)
{
    gate_pass(NULL);
    return fair_arg(t, 0);
}

static void note_letter(void *arg)
{
    note("%c", *(char *)arg);
}

/* notes_it(Integer): on a thread of the pool */
static ERL_NIF_TERM notes_it(fair_task *t)
{
    int c;
    char letter;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &c))
        return fair_badarg(t);
    letter = (char)c;
    fair_offload(t, FAIR_THREADED, 0, note_letter, &letter);
    return fair_arg(t, 0);
}

static long rounds;

static ERL_NIF_TERM endless(fair_task *t)
{
    for (;;) {
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
        fair_tick(t, 1);
    }
    return 0;
}

static long computing;
static bool enough;

/* Until there is enough of it; then it waits at the gate. */
static void compute(void *unused)
{
    __atomic_add_fetch(&computing, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&enough, __ATOMIC_SEQ_CST))
        ;
    __atomic_sub_fetch(&computing, 1, __ATOMIC_SEQ_CST);
    gate_pass(unused);
}

/* naps(Integer): sleeps a little, on a thread of the pool; more often than it loses
 * the processor on a busy machine */
static ERL_NIF_TERM naps(fair_task *t)
{
    for (int i = 0; i < 20; i++)
        usleep(1000);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM computes(fair_task *t)
{
    compute(NULL);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM computes_away(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 0, compute, NULL);
    return fair_arg(t, 0);
}

static fair_mutex mutex = FAIR_MUTEX_INIT;

/* With the lock, for a moment; then it computes. */
static ERL_NIF_TERM holds(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_sleep(t, 200);
    fair_mutex_unlock(t, &mutex);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM takes(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_mutex_unlock(t, &mutex);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM holds_for_good(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_sleep(t, -1);
    fair_mutex_unlock(t, &mutex);
    return fair_arg(t, 0);
}

static fair_resource_type *things;

static void clean_up(fair_task *t, void *data)
{
    (void)t, (void)data;
    note(".");
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    static const fair_resource_options options = {
        .name = "thing", .cleanup = clean_up
    };

    (void)priv, (void)info;
    things = fair_resource_open(env, &options);
    return things ? 0 : FAIR_E_NOMEM;
}

/* Offloads, blocks, moves and sleeps, all on the thread it is on. */
static ERL_NIF_TERM everywhere(fair_task *t)
{
    int letter = 'x', slept;

    fair_offload(t, FAIR_THREADED, 0, note_letter, &letter);
    fair_offload(t, FAIR_DIRTY_IO, 0, note_letter, &letter);
    fair_offload(t, FAIR_AUTO, 1, note_letter, &letter);
    fair_move(t, FAIR_DIRTY_CPU);
    fair_move(t, FAIR_NORMAL);
    slept = fair_sleep(t, 1);
    fair_tick(t, 1);
    return enif_make_tuple2(fair_env(t), fair_arg(t, 0),
                            enif_make_int(fair_env(t), slept));
}

/* Many terms, of its argument. */
static ERL_NIF_TERM lists(fair_task *t)
{
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));

    for (unsigned i = 0; i < 500; i++) {
        fair_list_push(t, list, enif_make_uint(fair_env(t), i));
        fair_tick(t, 1);
    }
    if (!fair_list_reverse(t, list))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), fair_root_get(t, list), fair_arg(t, 0));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("gated", 1, gated, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("blocks", 1, blocks, FAIR_THREADED),
    FAIR_NIF("naps", 1, naps, FAIR_THREADED),
    FAIR_NIF("computes", 1, computes, FAIR_THREADED),
    FAIR_NIF("computes_away", 1, computes_away, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("notes_it", 1, notes_it, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("endless", 0, endless, FAIR_THREADED),
    FAIR_NIF("everywhere", 1, everywhere, FAIR_THREADED),
    FAIR_NIF("lists", 1, lists, FAIR_THREADED),
    FAIR_NIF("holds", 1, holds, FAIR_THREADED),
    FAIR_NIF("takes", 1, takes, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("holds_for_good", 1, holds_for_good,
             FAIR_NORMAL | FAIR_MAY_WAIT | FAIR_CLEANUP),
};
FAIR_NIF_INIT(test_pool, nifs, load, NULL, NULL)

/* -- threads ------------------------------------------------------------- */

TEST(as_needed, "threads start as work comes, up to their number; the rest is "
     "queued")
{
    node_set("threads", 3);
    for (int i = 0; i < 10; i++) {
        begin(i, i % 2 ? "gated" : "blocks");
        EVENTUALLY(gate_waiting() == (i < 3 ? i + 1 : 3));
        CHECK_NUMBERS(node_info("threads_started"), ==, i < 3 ? i + 1 : 3);
        CHECK_NUMBERS(node_info("jobs_queued"), ==, i < 3 ? 0 : i - 2);
        CHECK(vm_state(procs[i]) == VM_WAITING);
    }
    CHECK_NUMBERS(node_info("threads_busy"), ==, 3);
    for (int i = 0; i < 20; i++)        /* a step of the coarse clock */
        nap();
    gate_open();
    for (int i = 0; i < 10; i++)
        ends_well(i);
    EVENTUALLY(node_info("jobs_done") == 10);
    CHECK_NUMBERS(node_info("threads_busy"), ==, 0);
    CHECK_NUMBERS(node_info("jobs_longest_wait_ns"), >, 0);
    CHECK_NUMBERS(node_info("jobs_wait_ns"), >=,
                  node_info("jobs_longest_wait_ns"));
    CHECK_NUMBERS(node_counter("gated", "thread_ns")
                  + node_counter("blocks", "thread_ns"), >, 3 * 20000000);
}

TEST(used_again, "a thread that is idle takes the next work")
{
    long most = node_info("threads_started");   /* of a test before */

    most = most < 2 ? 2 : most;
    gate_open();
    for (int i = 0; i < 30; i++) {
        begin(i, "gated");
        ends_well(i);
        EVENTUALLY(node_info("threads_busy") == 0);
    }
    CHECK_NUMBERS(node_info("threads_started"), <=, most);
}

TEST(in_order, "what is queued is done in its order")
{
    node_set("threads", 1);
    begin(0, "gated");
    EVENTUALLY(gate_waiting() == 1);
    for (int i = 'a'; i <= 'p'; i++)
        begin(i, "notes_it"), vm_free(procs[i]);
    for (int i = 'a'; i <= 'p'; i++)
        begin(i, "notes_it");
    vm_kill(procs['e']);
    ONCE_FREED(node_info("jobs_queued") == 15);
    gate_open();
    ends_well(0);
    for (int i = 'a'; i <= 'p'; i++)
        finished(procs[i]);
    CHECK_TEXT(notes(), "abcdfghijklmnop");
}

TEST(stuck, "where all threads are stuck what is queued raises overloaded, too; "
     "what has begun does not")
{
    node_set("threads", 1);
    begin(0, "blocks");
    EVENTUALLY(gate_waiting() == 1);
    node_set("overload_ns", 50000000);
    for (int i = 1; i < 7; i++)
        begin(i, i % 2 ? "gated" : "blocks");
    CHECK_NUMBERS(node_info("jobs_queued"), ==, 6);
    for (int i = 1; i < 7; i++)
        CHECK_TEXT(finished(procs[i]), "error:overloaded");
    CHECK_NUMBERS(node_info("jobs_queued"), ==, 0);
    gate_open();
    ends_well(0);
}

TEST(put_back, "a body that yielded to others is not refused, however long it "
     "waits for a thread")
{
    node_set("threads", 1);
    node_set("pause_every_tick", 1);
    begin(0, "lists");          /* yields at every tick */
    begin(1, "blocks");
    EVENTUALLY(gate_waiting() == 1);
    node_set("overload_ns", 50000000);
    for (int i = 0; i < 100; i++)
        nap();
    gate_open();
    CHECK(strstr(finished(procs[0]), "error") == NULL);
    ends_well(1);
}

TEST(fewer, "fewer threads are left when fewer are wanted, and more come "
     "again")
{
    node_set("pool_nice", 0);   /* they alone are counted */
    node_set("threads", 6);
    for (int i = 0; i < 6; i++)
        begin(i, "gated");
    EVENTUALLY(gate_waiting() == 6);
    node_set("threads", 2);
    gate_open();
    for (int i = 0; i < 6; i++)
        ends_well(i);
    EVENTUALLY(node_info("threads_started") == 2);
    node_set("threads", 6);
    gate_shut();
    for (int i = 0; i < 6; i++)
        begin(i, "gated");
    EVENTUALLY(gate_waiting() == 6);
    gate_open();
    for (int i = 0; i < 6; i++)
        ends_well(i);
    CHECK_NUMBERS(node_info("threads_started"), ==, 6);
    CHECK_NUMBERS(vm_counts().threads, ==, 6 + 1);  /* who starts them */
}

/* -- processors ---------------------------------------------------------- */

static long computing_now(void)
{
    return __atomic_load_n(&computing, __ATOMIC_SEQ_CST);
}

TEST(processors, "no more threads compute at a time than there are processors; "
     "those that wait do not count")
{
    long most = 0;

    node_set("dirty_cpus", 2);
    node_set("threads", 12);
    for (int i = 0; i < 4; i++)
        begin(i, i % 2 ? "gated" : "blocks");
    EVENTUALLY(gate_waiting() == 4);
    for (int i = 4; i < 10; i++)
        begin(i, i % 2 ? "computes" : "computes_away");
    EVENTUALLY(computing_now() == 2);
    for (int i = 0; i < 100; i++) {
        nap();
        most = computing_now() > most ? computing_now() : most;
    }
    CHECK_NUMBERS(most, ==, 2);
    CHECK_NUMBERS(node_info("threads_busy"), ==, 6);
    CHECK_NUMBERS(node_info("jobs_queued"), ==, 4);
    vm_kill(procs[9]);          /* it has not begun, and never will */
    ONCE_FREED(node_info("jobs_queued") == 3);
    /* From here on all of them wait, and none keeps another one out. */
    __atomic_store_n(&enough, true, __ATOMIC_SEQ_CST);
    EVENTUALLY(gate_waiting() == 9);
    gate_open();
    for (int i = 0; i < 9; i++)
        ends_well(i);
    vm_free(procs[9]);
}

TEST(passes, "what is known to wait passes what computes and may not begin yet")
{
    step_by_step();             /* nothing was learned in a test before */
    node_set("dirty_cpus", 1);
    begin(0, "gated");
    EVENTUALLY(gate_waiting() == 1);
    begin(1, "naps");           /* with one at work, its manner is learned */
    ends_well(1);
    for (int i = 2; i < 5; i++)
        begin(i, "computes");
    EVENTUALLY(computing_now() == 1);
    begin(5, "naps");
    ends_well(5);
    CHECK_NUMBERS(computing_now(), ==, 1);
    CHECK_NUMBERS(node_info("jobs_queued"), ==, 2);
    __atomic_store_n(&enough, true, __ATOMIC_SEQ_CST);
    gate_open();
    ends_well(0);
    for (int i = 2; i < 5; i++)
        ends_well(i);
}

/* With one processor taken, and calls that wait for it. */
static void take_processors(int from, int to)
{
    __atomic_store_n(&enough, false, __ATOMIC_SEQ_CST);
    for (int i = from; i < to; i++)
        begin(i, "computes");
    EVENTUALLY(computing_now() == 1);
}

static void give_processors(int from, int to)
{
    CHECK_NUMBERS(computing_now(), ==, 1);
    __atomic_store_n(&enough, true, __ATOMIC_SEQ_CST);
    gate_open();
    for (int i = from; i < to; i++)
        ends_well(i);
}

TEST(holder_passes, "a body that has a lock continues beside what computes and "
     "before what waits for that")
{
    step_by_step();
    node_set("dirty_cpus", 1);
    begin(0, "holds");
    EVENTUALLY(node_counter("holds", "waits") >= 1);
    take_processors(1, 30);
    ends_well(0);
    give_processors(1, 30);
}

TEST(cleanup_passes, "so does the clean-up of a call whose caller died with a lock")
{
    step_by_step();
    node_set("dirty_cpus", 1);
    begin(0, "holds_for_good");
    take_processors(1, 30);
    begin(30, "takes");
    vm_kill(procs[0]);
    ends_well(30);
    give_processors(1, 30);
    vm_free(procs[0]);
}

static void drop_things(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        fair_resource_release(fair_resource_new(things, 1));
}

TEST(objects_pass, "and the clean-ups of fair resources: no call delays what frees "
     "memory")
{
    step_by_step();
    node_set("dirty_cpus", 1);
    take_processors(0, 30);
    clear_notes();
    drop_things(NULL);
    EVENTUALLY(strlen(notes()) == 100);
    give_processors(0, 30);
}

TEST(processors_more, "more threads compute when more processors are there")
{
    step_by_step();
    node_set("dirty_cpus", 1);
    for (int i = 0; i < 5; i++)
        begin(i, "computes");
    EVENTUALLY(computing_now() == 1);
    node_set("dirty_cpus", 4);
    /* Or 5: one of them may be seen asleep, twice. */
    EVENTUALLY(computing_now() >= 4);
    gate_open();
    __atomic_store_n(&enough, true, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 5; i++)
        ends_well(i);
}

/* -- no room ------------------------------------------------------------- */

static void fill(void)
{
    node_set("threads", 1);
    node_set("max_queued", 2);
    begin(0, "gated");
    EVENTUALLY(gate_waiting() == 1);
    begin(1, "gated");
    begin(2, "blocks");
}

TEST(overloaded, "a call that finds the queue full waits for room, and raises "
     "when that takes too long")
{
    uint64_t start;

    fill();
    node_set("overload_ns", 50000000);  /* of those that come now */
    start = vm_now();
    begin(3, "gated");
    begin(4, "blocks");
    CHECK_NUMBERS(node_info("jobs_waiting_for_room"), ==, 2);
    CHECK_TEXT(finished(procs[3]), "error:overloaded");
    CHECK_TEXT(finished(procs[4]), "error:overloaded");
    CHECK_NUMBERS(vm_now() - start, >=, 50000000);
    CHECK_NUMBERS(node_info("jobs_queued"), ==, 2);
    CHECK_NUMBERS(node_info("jobs_waiting_for_room"), ==, 0);
    CHECK_NUMBERS(node_counter("gated", "overloaded"), ==, 1);
    CHECK_NUMBERS(node_counter("blocks", "overloaded"), ==, 1);
    gate_open();
    for (int i = 0; i < 3; i++)
        ends_well(i);
}

TEST(room, "what waits for room is let in, in its order, when there is some")
{
    long before = node_info("jobs_without_room");

    fill();
    for (int i = 3; i < 9; i++)
        begin(i, i % 2 ? "gated" : "blocks");
    vm_kill(procs[1]);                  /* queued: makes room */
    ONCE_FREED(node_info("jobs_waiting_for_room") == 5);
    CHECK_NUMBERS(node_info("jobs_queued"), ==, 2);
    vm_kill(procs[6]);                  /* waits for it */
    ONCE_FREED(node_info("jobs_waiting_for_room") == 4);
    gate_open();
    for (int i = 0; i < 9; i++) {
        if (i == 1 || i == 6)
            vm_free(procs[i]);
        else
            ends_well(i);
    }
    CHECK_NUMBERS(node_info("jobs_without_room") - before, ==, 6);
}

TEST(room_at_once, "what waited for room does not wait for the work before it")
{
    node_set("max_queued", 1);
    for (int round = 0; round < 20; round++) {
        gate_open();
        begin(0, "gated");              /* its thread still looks for more */
        ends_well(0);
        gate_shut();
        for (int i = 1; i < 4; i++)
            begin(i, "gated");
        EVENTUALLY(gate_waiting() == 3);
        gate_open();
        for (int i = 1; i < 4; i++)
            ends_well(i);
    }
}

/* -- no thread ----------------------------------------------------------- */

TEST_WITH(no_thread, "without a thread, and when none can be started, calls raise "
          "enomem", NULL, node_without_pool)
{
    gate_open();
    vm_fail(VM_F_THREAD, 1, true);
    begin(0, "gated");
    CHECK_TEXT(finished(procs[0]), "error:enomem");
    begin(1, "blocks");
    CHECK_TEXT(finished(procs[1]), "error:enomem");
    vm_fail(0, 0, false);
    CHECK_NUMBERS(node_info("threads_failed"), ==, 2);
    begin(2, "blocks");
    ends_well(2);
}

TEST(one_thread, "when no more threads can be started, those there are do the "
     "work")
{
    begin(0, "gated");
    EVENTUALLY(gate_waiting() == 1);
    vm_fail(VM_F_THREAD, 1, true);
    begin(1, "gated");
    begin(2, "blocks");
    gate_open();
    for (int i = 0; i < 3; i++)
        ends_well(i);
    vm_fail(0, 0, false);
    CHECK_NUMBERS(node_info("threads_started"), ==, 1);
}

/* -- threaded bodies ----------------------------------------------------- */

TEST(shares, "a threaded body that ticks gives its thread to work that waits")
{
    vm_proc *p = spawn_await("endless", "");

    gate_open();
    node_set("threads", 1);
    until_waiting(p);
    begin(0, "gated");
    ends_well(0);
    begin(1, "blocks");
    ends_well(1);
    CHECK(still_waits(p));
    vm_free(p);
    EVENTUALLY(node_stacks() == 0);
    CHECK_NUMBERS(node_counter("endless", "cancels"), ==, 1);
}

TEST(in_place, "whatever a threaded body calls, it stays on its kind of "
     "thread")
{
    for (int every = 0; every < 2; every++) {
        node_set("pause_every_tick", (uint64_t)every);
        clear_notes();
        CHECK_TEXT(finished(spawn_await("everywhere", "{a,\"b\"}")),
                   "{{a,[98]},1}");
        CHECK_TEXT(notes(), "xxx");
    }
}

TEST(answers, "terms of all kinds go to a threaded body and come back")
{
    static const char *const terms[] = {
        "1", "-1", "12345678901234567890", "1.5", "atom", "[]", "[1|2]", "{}",
        "{1,[2,{3}],<<4,5>>}", "<<1,2,3>>", "<<5:3>>", "#{a=>[1],b=>{2}}",
        "{{fairnif_pendin,1},2}"
    };

    gate_open();
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        vm_proc *p = vm_spawn();
        vm_term arg = vm_parse(vm_env(p), terms[i]);
        char should[256];

        vm_print(arg, should, sizeof should);
        node_await(p, "blocks", 1, &arg);
        vm_finish(p);
        CHECK_TEXT(outcome(p), should);
        vm_free(p);
    }
    for (int every = 0; every < 2; every++) {
        vm_proc *p = spawn_await("lists", "x");

        node_set("pause_every_tick", (uint64_t)every);
        vm_finish(p);
        CHECK_NUMBERS(strncmp(outcome(p), "{[0,1,2,3,4,5,", 14), ==, 0);
        vm_free(p);
    }
}

TEST(binaries, "a large binary goes to a thread and back without a copy")
{
    vm_proc *p = vm_spawn();
    unsigned char bytes[1000] = {1};
    vm_term bin = vm_binary(vm_env(p), bytes, sizeof bytes);
    ErlNifBinary was, is;

    gate_open();
    CHECK(enif_inspect_binary(vm_env(p), bin, &was));
    node_await(p, "blocks", 1, &bin);
    vm_finish(p);
    CHECK(enif_inspect_binary(vm_env(p), vm_result(p), &is));
    CHECK(is.data == was.data && is.size == 1000);
    vm_free(p);
}
