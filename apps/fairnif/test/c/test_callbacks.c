/*
 * test_callbacks.c - what callbacks of fair resources meet that was made for
 * tasks with a caller: lists, clocks, limits, locks of the VM's.
 */
#define FAIR_DEBUG              /* its locks of the VM's are counted */
#include <fcntl.h>

#include "resources.h"

static fair_resource_type *unwinders;

enum how { QUICK, LONG, TICKS, TURNS, FAILS, RAISES, SENDS, TELLS_TIME,
    KEEPS, FDS, RECEIVES, POSTS };

static long inside, turns;
static ErlNifPid holder;        /* who has the lock, and lives */

/* -- callbacks -------------------------------------------------------------- */

/* Until a turn is given. */
static void take_turn(void)
{
    long left;

    __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
    do {
        nap();
        left = __atomic_load_n(&turns, __ATOMIC_RELAXED);
    } while (left == 0
             || !__atomic_compare_exchange_n(&turns, &left, left - 1, false,
                                             __ATOMIC_RELAXED,
                                             __ATOMIC_RELAXED));
    __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
}

static void sends(ErlNifEnv *from)
{
    ErlNifEnv *env = enif_alloc_env();

    note("%d", enif_send(from, &holder, env, enif_make_atom(env, "hello")));
    enif_free_env(env);
}

/* More roots than arguments of a NIF, and of all that a task holds some. */
static void keeps(fair_task *t)
{
    enum { ROOTS = 20 };
    unsigned roots[ROOTS];
    fair_bin bin, small;
    char *block = fair_alloc(t, 1000);
    int n;

    CHECK(block && fair_new_bin(t, 1000, &bin) && fair_new_bin(t, 10, &small));
    memset(block, 7, 1000);
    memset(bin.data, 8, 1000);
    fair_defer(t, note_defer, "deferred");
    for (int i = 0; i < ROOTS; i++) {
        roots[i] = fair_root_new(t, enif_make_tuple1(
                                    fair_env(t),
                                    enif_make_int(fair_env(t), i)));
        fair_tick(t, 1);
    }
    CHECK(enif_is_binary(fair_env(t), fair_make_bin(t, &bin)));
    for (int i = 0; i < ROOTS; i++) {
        const ERL_NIF_TERM *elems;

        fair_tick(t, 1);
        CHECK(enif_get_tuple(fair_env(t), fair_root_get(t, roots[i]), &n, &elems)
              && enif_get_int(fair_env(t), elems[0], &n) && n == i);
    }
    CHECK(block[999] == 7 && bin.data[999] == 8);
}

/* It has no owner to die: the number stays his. */
static void makes_fd(fair_task *t)
{
    int ends[2];

    CHECK(pipe(ends) == 0);
    CHECK(fair_adopt_fd(t, ends[0]) == 0);
    CHECK((fcntl(ends[0], F_GETFL) & O_NONBLOCK) == 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void cleanup(fair_task *t, void *obj)
{
    ERL_NIF_TERM message;

    switch (*(enum how *)obj) {
    case LONG:
        gate_pass(NULL);
        break;
    case TICKS:
        for (int i = 0; i < 10; i++)
            fair_tick(t, 1);
        break;
    case TURNS:
        take_turn();
        break;
    case FAILS:                 /* which a body that unwinds survives */
        fair_root_drop(t, 7);
        CHECK(fair_cancelled(t));
        fair_mutex_lock(t, &mutex);
        fair_mutex_unlock(t, &mutex);
        break;
    case RAISES:
        fair_badarg(t);
        fair_sleep(t, 1);
        note("never");
        break;
    case SENDS:
        sends(fair_env(t));
        sends(NULL);
        break;
    case TELLS_TIME:
        note("%ld", (long)enif_monotonic_time(ERL_NIF_SEC));
        break;
    case KEEPS:
        keeps(t);
        break;
    case FDS:
        makes_fd(t);
        break;
    case RECEIVES:
        __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELEASE);
        fair_receive(t, -1, &message);
        note("never");
        break;
    case POSTS:
        __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELEASE);
        fair_send(t, enif_make_atom(fair_env(t), "x"),
                  enif_make_atom(fair_env(t), "y"));
        note("never");
        break;
    default:
        break;
    }
    note("%c", here());
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELEASE);
}

/* -- NIFs ------------------------------------------------------------------- */

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    static const fair_resource_options thing = {
        .name = "thing", .cleanup = cleanup
    }, unwinder = {
        .name = "unwinder", .cleanup = cleanup, .cleans_up = 1
    };

    (void)priv, (void)info;
    things = fair_resource_open(env, &thing);
    unwinders = fair_resource_open(env, &unwinder);
    return things && unwinders ? 0 : FAIR_E_NOMEM;
}

static enum how *new_thing(fair_resource_type *type, int how)
{
    enum how *thing = fair_resource_new(type, sizeof *thing);

    *thing = (enum how)how;
    return thing;
}

/* make(How, Number) -> Thing */
static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    enum how *thing;
    ERL_NIF_TERM term;
    int how;

    (void)argc;
    if (!enif_get_int(env, argv[0], &how))
        return enif_make_badarg(env);
    thing = new_thing(things, how);
    term = fair_resource_term(env, thing);
    fair_resource_release(thing);
    return term;
}

/* locks(): has the lock until the gate is open */
static ERL_NIF_TERM locks(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_caller(t, &holder);
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    return enif_make_atom(fair_env(t), "ok");
}

/* seconds() of the VM's clock */
static ERL_NIF_TERM seconds(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int64(env, enif_monotonic_time(ERL_NIF_SEC));
}

static ErlNifFunc nifs[] = {
    {"make", 2, make, 0},
    {"seconds", 0, seconds, 0},
    FAIR_NIF("locks", 0, locks, FAIR_AUTO | FAIR_MAY_WAIT),
};
FAIR_NIF_INIT(test_callbacks, nifs, load, NULL, NULL)

/* -- how they go ------------------------------------------------------------ */

static void release_one(void *how)
{
    fair_resource_release(new_thing(things, *(enum how *)how));
}

static void release_unwinder(void *how)
{
    fair_resource_release(new_thing(unwinders, *(enum how *)how));
}

/* -- tests ------------------------------------------------------------------ */

TEST(all_listed, "each callback that runs is listed, also of those that began at "
     "the same time")
{
    enum { MANY = 8 };          /* so some are of one step of the coarse clock */
    char text[4096];
    const char *at;
    int n = 0;

    afresh();
    node_set("dirty_cpus", MANY);
    gate_shut();
    for (int i = 0; i < MANY; i++)
        drop_thing(LONG);
    EVENTUALLY(gate_waiting() == MANY);
    node_tasks(text, sizeof text);
    for (at = text; (at = strstr(at, "thing cleanup")); at++)
        n++;
    CHECK_NUMBERS(n, ==, MANY);
    gate_open();
    EVENTUALLY(cleaned_so_far() == MANY);
    ALL_OVER();
}

TEST(no_caller, "one that receives or sends ends there, and it is reported")
{
    afresh();
    drop_thing_and_wait(RECEIVES);
    drop_thing_and_wait(POSTS);
    let_it_be_short(QUICK);
    drop_thing_and_wait(RECEIVES);
    drop_thing_and_wait(POSTS);
    CHECK_TEXT(notes(), "");
    CHECK_NUMBERS(node_counter("thing cleanup", "rule_violations"), ==, 4);
    ALL_OVER();
}

TEST(vm_clock, "the VM's clock is there on a thread of the pool, whatever ran "
     "there before")
{
    const char *before = finished(spawn_call("seconds", ""));
    long then = strtol(before, NULL, 10);

    afresh();
    drop_thing_and_wait(TELLS_TIME);
    CHECK_NUMBERS(labs(strtol(notes(), NULL, 10) - then), <, 100);
    ALL_OVER();
}

TEST(limit_raised, "a limit that is raised is made use of by what waits already")
{
    afresh();
    node_set("dirty_cpus", 1);
    for (int i = 0; i < 8; i++)
        drop_thing(TURNS);
    EVENTUALLY(__atomic_load_n(&inside, __ATOMIC_RELAXED) == 1);
    node_set("dirty_cpus", 3);
    __atomic_store_n(&turns, 2, __ATOMIC_RELAXED);
    EVENTUALLY(cleaned_so_far() == 2
               && __atomic_load_n(&inside, __ATOMIC_RELAXED) == 3);
    __atomic_store_n(&turns, 6, __ATOMIC_RELAXED);
    EVENTUALLY(cleaned_so_far() == 8);
    ALL_OVER();
}

TASKS_TEST(unwinding_in_place, "one that cleans up after an error in place "
     "leaves the VM's call where it waits for a lock")
{
    enum how quick = QUICK, fails = FAILS;
    vm_proc *p = spawn_await("locks", "");

    afresh();
    node_set("slice_ns", 1000000000);
    vm_on(VM_NORMAL, release_unwinder, &quick);
    EVENTUALLY(cleaned_so_far() == 1);
    clear_notes();
    gate_shut();
    vm_run(p, 1);
    EVENTUALLY(gate_waiting() == 1);
    vm_on(VM_NORMAL, release_unwinder, &fails);
    CHECK_NUMBERS(cleaned_so_far(), ==, 1);
    gate_open();
    CHECK_TEXT(finished(p), "ok");
    EVENTUALLY(cleaned_so_far() == 2);
    CHECK_TEXT(notes(), "?");
    ALL_OVER();
}

TEST(raised, "one that raised in place and then waits is ended, and holds up no "
     "scheduler")
{
    enum how how = RAISES;

    afresh();
    let_it_be_short(QUICK);
    vm_on(VM_NORMAL, release_one, &how);
    ALL_OVER();
    CHECK_TEXT(notes(), "");
    CHECK_NUMBERS(node_counter("thing cleanup", "rule_violations"), >=, 1);
}

TEST(holding, "roots, binaries, memory and deferred functions stay with it from "
     "pause to pause, and go with it")
{
    afresh();
    for (int round = 0; round < 4; round++) {
        node_set("pause_every_tick", round & 1);
        node_set("check_terms", round & 1);
        node_set("measure_cpu", round & 1);
        if (round >= 2)
            let_it_be_short(QUICK);
        clear_notes();
        drop_thing_and_wait(KEEPS);
        ALL_OVER();
        CHECK(is_noted("deferred"));
    }
    CHECK_NUMBERS(node_counter("thing cleanup", "rule_violations"), ==, 0);
}

TEST(descriptors, "one cannot pass a descriptor, which stays as it was")
{
    afresh();
    drop_thing_and_wait(FDS);
    let_it_be_short(QUICK);
    drop_thing_and_wait(FDS);
    ALL_OVER();
}

#ifdef FAIR_NO_TASKS
TEST(never_in_place, "without tasks none is in place, where it could hold a "
     "scheduler")
{
    enum how how = QUICK;

    afresh();
    let_it_be_short(QUICK);
    vm_on(VM_NORMAL, release_one, &how);
    EVENTUALLY(cleaned_so_far() == 2);
    CHECK_TEXT(notes(), "?");
    ALL_OVER();
}
#endif

TASKS_TEST(sending, "messages can be sent, in place and on the pool, with and "
     "without an environment")
{
    vm_proc *p = spawn_await("locks", "");

    afresh();
    gate_shut();
    vm_run(p, 1);
    EVENTUALLY(gate_waiting() == 1);
    drop_thing_and_wait(SENDS);
    CHECK_TEXT(notes(), "11?");
    let_it_be_short(QUICK);
    drop_thing_and_wait(SENDS);
    CHECK_TEXT(notes(), "11n");
    gate_open();
    CHECK_TEXT(finished(p), "ok");
    ALL_OVER();
}

#ifndef VM_REAL
static void *foreign(void *unused)
{
    enum how how = QUICK;

    (void)unused;
    release_one(&how);
    return NULL;
}

TEST(foreign_threads, "threads of the author's that release one leave no "
     "record of theirs")
{
    long before;

    afresh();
    let_it_be_short(QUICK);
    before = node_records();
    for (int i = 0; i < 10; i++) {
        ErlNifTid thread;

        CHECK(enif_thread_create("foreign", &thread, foreign, NULL, NULL) == 0);
        enif_thread_join(thread, NULL);
        EVENTUALLY(cleaned_so_far() == 2 + i);
    }
    CHECK_NUMBERS(node_records() - before, <, 10);   /* some of the pool's */
    ALL_OVER();
}
#endif

static void release_locked(void *how)
{
    ErlNifMutex *lock = enif_mutex_create("held");

    enif_mutex_lock(lock);
    release_one(how);
    enif_mutex_unlock(lock);
    enif_mutex_destroy(lock);
}

TEST(locked, "a thread that releases one with a lock of the VM's held is not "
     "taken for its callback")
{
    enum how how = TICKS;

    afresh();
    let_it_be_short(QUICK);
    node_set("pause_every_tick", 1);
    vm_on(VM_NORMAL, release_locked, &how);
    EVENTUALLY(cleaned_so_far() == 2);
    CHECK_NUMBERS(node_counter("thing cleanup", "rule_violations"), ==, 0);
    ALL_OVER();
}
