/*
 * test_resource.c - fair resources: their callbacks are tasks without a caller.
 */
#include "resources.h"

static fair_resource_type *opened;

enum how {
    QUICK, LONG, TICKS, LOCKS, SLEEPS, CALLS, MOVES, WAITS, FAILS, RAISES,
    RELEASES, HOLDS
};

struct thing {
    enum how how;
    int number;
    unsigned char pattern[64];
    void *other;                /* RELEASES: this one */
};

static long stopped, at_once;
static bool too_many;
static int fds[2];

static void add(void *arg)
{
    ++*(long *)arg;
}

/* -- callbacks -------------------------------------------------------------- */

static void ticks(fair_task *t, int n)
{
    for (int i = 0; i < n; i++) {
        vm_work(1000);
        fair_tick(t, 1);
    }
}

static void do_as(fair_task *t, struct thing *thing)
{
    ErlNifPid pid;
    long called = 0;

    switch (thing->how) {
    case LONG:
        gate_pass(NULL);
        break;
    case TICKS:
        ticks(t, 100);
        break;
    case LOCKS:
        fair_mutex_lock(t, &mutex);
        ticks(t, 5);
        fair_mutex_unlock(t, &mutex);
        break;
    case HOLDS:
        fair_mutex_lock(t, &mutex);
        gate_pass(NULL);        /* released at its end */
        break;
    case SLEEPS:
        CHECK_NUMBERS(fair_sleep(t, 2), ==, 1);
        break;
    case CALLS:
        fair_offload(t, FAIR_AUTO, 1000, add, &called);
        fair_offload(t, FAIR_DIRTY_CPU, 1, add, &called);
        fair_offload(t, FAIR_THREADED, 1, add, &called);
        CHECK_NUMBERS(called, ==, 3);
        break;
    case MOVES:
        CHECK_NUMBERS(fair_move(t, FAIR_DIRTY_IO), ==, 0);
#ifndef FAIR_NO_TASKS
        CHECK_NUMBERS(fair_where(t), ==, FAIR_THREADED);
        CHECK_NUMBERS(fair_move(t, FAIR_NORMAL), ==, 0);
#endif
        break;
    case WAITS:
        CHECK_NUMBERS(fair_wait(t, fds[0], FAIR_READ, -1), ==, FAIR_READ);
        break;
    case FAILS:
        fair_root_drop(t, 7);
        note("never");
        break;
    case RAISES:
        fair_badarg(t);
        break;
    case RELEASES:
        fair_resource_release(thing->other);
        break;
    default:
        break;
    }
    fair_caller(t, &pid);
    CHECK(!enif_self(fair_env(t), &pid));
    CHECK(fair_current() == t);
    CHECK(enif_priv_data(fair_env(t)) == &cleaned);
}

static void cleanup(fair_task *t, void *obj)
{
    struct thing *thing = obj;
    long now = __atomic_add_fetch(&at_once, 1, __ATOMIC_RELAXED);

    if (now > 2)
        __atomic_store_n(&too_many, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof thing->pattern; i++)
        CHECK(thing->pattern[i] == 0x5A);
    do_as(t, thing);
    for (size_t i = 0; i < sizeof thing->pattern; i++)
        CHECK(thing->pattern[i] == 0x5A);
    __atomic_sub_fetch(&at_once, 1, __ATOMIC_RELAXED);
    note("%c", here());
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELEASE);
}

static void down(fair_task *t, void *obj, const ErlNifPid *pid,
                 const ErlNifMonitor *monitor)
{
    struct thing *thing = obj;

    (void)pid, (void)monitor;
    do_as(t, thing);
    note("d%d", thing->number);
}

static void stop(fair_task *t, void *obj, ErlNifEvent event, int is_direct)
{
    (void)is_direct;
    do_as(t, obj);
    close((int)event);
    __atomic_add_fetch(&stopped, 1, __ATOMIC_RELEASE);
}

static const fair_resource_options options = {
    .name = "thing", .cleanup = cleanup, .down = down, .stop = stop,
    .max_concurrent = 2
};

/* -- NIFs ------------------------------------------------------------------- */

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    static const fair_resource_options bad[] = {
        {.cleanup = cleanup},
        {.name = "", .cleanup = cleanup},
        {.name = "small", .cleanup = cleanup, .stack_size = 100},
        {.name = "large", .cleanup = cleanup, .stack_size = SIZE_MAX},
        {.name = "slow", .cleanup = cleanup, .slice_us = 2000000},
    };
    static const fair_resource_options bare = {.name = "bare"};

    (void)info;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!fair_resource_open(env, &bad[i]));
    opened = fair_resource_open(env, &bare);
    CHECK(!fair_resource_open(env, &bare));     /* a second time */
    things = fair_resource_open(env, &options);
    *priv = &cleaned;
    return things && opened ? 0 : FAIR_E_NOMEM;
}

static struct thing *new_thing(int how, int number)
{
    struct thing *thing = fair_resource_new(things, sizeof *thing);

    if (!thing)
        return NULL;
    CHECK((uintptr_t)thing % 16 == 0);
    CHECK(thing->number == 0 && thing->pattern[63] == 0);
    thing->how = (enum how)how;
    thing->number = number;
    memset(thing->pattern, 0x5A, sizeof thing->pattern);
    return thing;
}

/* make(How, Number) -> Thing */
static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct thing *thing;
    ERL_NIF_TERM term;
    int how, number;

    (void)argc;
    if (!enif_get_int(env, argv[0], &how)
        || !enif_get_int(env, argv[1], &number))
        return enif_make_badarg(env);
    thing = new_thing(how, number);
    if (!thing)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    term = fair_resource_term(env, thing);
    fair_resource_release(thing);
    return term;
}

/* monitored(Thing): by its caller. */
static ERL_NIF_TERM monitored(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    void *obj;
    ErlNifMonitor monitor;
    ErlNifPid self;

    (void)argc;
    if (!fair_resource_peek(env, argv[0], things, &obj))
        return enif_make_badarg(env);
    enif_self(env, &self);
    CHECK(enif_monitor_process(env, fair_resource_vm(obj), &self, &monitor)
          == 0);
    return enif_make_atom(env, "ok");
}

/* selected(Thing): its descriptor, and stopped at once; in a NIF, and in a body on
 * a thread of the pool. */
static ERL_NIF_TERM select_and_stop(ErlNifEnv *env, void *obj,
                                    const ErlNifPid *self)
{
    void *vm = fair_resource_vm(obj);
    int fd = dup(fds[0]);

    CHECK(enif_select_read(env, fd, vm, self, enif_make_atom(env, "m"), NULL)
          >= 0);
    CHECK(enif_select_x(env, fd, ERL_NIF_SELECT_STOP, vm, NULL, 0, NULL) >= 0);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM selected(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    void *obj;

    (void)argc;
    if (!fair_resource_peek(env, argv[0], things, &obj))
        return enif_make_badarg(env);
    return select_and_stop(env, obj, enif_self(env, &self));
}

static ERL_NIF_TERM selected_there(fair_task *t)
{
    ErlNifPid self;
    void *obj;

    if (!fair_resource_get(t, fair_arg(t, 0), things, &obj))
        return fair_badarg(t);
    fair_caller(t, &self);
    return select_and_stop(fair_env(t), obj, &self);
}

/* locks(): has the lock until the gate is open */
static ERL_NIF_TERM locks(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    return enif_make_atom(fair_env(t), "ok");
}

/* current(): NULL where the task must not be used */
static void is_away(void *arg)
{
    *(bool *)arg = !fair_current();
}

static ERL_NIF_TERM current(fair_task *t)
{
    bool away = false;

    CHECK(fair_current() == t);
    fair_tick(t, 1);
    CHECK(fair_current() == t);
    fair_offload(t, FAIR_AUTO, 1, is_away, &away);
    CHECK(away);
    away = false;
    fair_offload(t, FAIR_DIRTY_IO, 1, is_away, &away);
    CHECK(away);
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    {"make", 2, make, 0},
    {"monitored", 1, monitored, 0},
    {"selected", 1, selected, 0},
    FAIR_NIF("selected_there", 1, selected_there, FAIR_THREADED),
    FAIR_NIF("locks", 0, locks, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("current", 0, current, FAIR_NORMAL),
};
FAIR_NIF_INIT(test_resource, nifs, load, NULL, NULL)

/* -- how they go ------------------------------------------------------------ */

/* In place, as far as it comes. */
static void release_one(void *how)
{
    fair_resource_release(new_thing(*(enum how *)how, 17));
}

static void release_some(void *n)
{
    for (int i = 0; i < *(int *)n; i++)
        fair_resource_release(new_thing(TICKS, 17));
}

/* -- tests ------------------------------------------------------------------ */

TEST(pool_first, "the first of its kind cleans up on a thread of the pool, and "
     "the VM's destructor returns before")
{
    afresh();
    gate_shut();
    drop_thing(LONG);
    EVENTUALLY(gate_waiting() == 1);
    CHECK_NUMBERS(cleaned_so_far(), ==, 0);
    gate_open();
    EVENTUALLY(cleaned_so_far() == 1);
    CHECK_TEXT(notes(), "?");
    ALL_OVER();
}

/* So long as they are believed to take, in a row: thread n is one of the VM's. */
TASKS_TEST(in_place, "one that is learned to be short cleans up at once, "
     "where the VM calls")
{
    enum how how = QUICK;

    afresh();
    let_it_be_short(QUICK);
    for (int i = 0; i < 3; i++) {
        vm_on(VM_NORMAL, release_one, &how);
        CHECK_NUMBERS(cleaned_so_far(), ==, 2 + i);
    }
    CHECK_TEXT(notes(), "nnn");
    ALL_OVER();
}

/* Of 100 us each, n in a row. */
static void check_in_place(uint64_t slice_ns, int n, const char *should)
{
    long before;

    node_set("slice_ns", slice_ns);
    drop_thing_and_wait(TICKS);
    clear_notes();
    before = cleaned_so_far();
    vm_on(VM_NORMAL, release_some, &n);
    EVENTUALLY(cleaned_so_far() == before + n);
    CHECK_TEXT(notes(), should);
    ALL_OVER();
}

TASKS_TEST(not_for_long, "those in place use up one slice of a millisecond at "
     "most; what is learned to take more than half a slice is left to the pool")
{
    afresh();
    vm_options.virtual_time = true;
    node_set("threads", 1);             /* which stays, whatever the time */
    check_in_place(250000, 3, "nn?");
    check_in_place(150000, 1, "?");
}

TASKS_TEST(moves_out, "one that proves to be long in place continues on the "
     "pool at its next tick")
{
    enum how how = TICKS;

    afresh();
    let_it_be_short(QUICK);
    node_set("pause_every_tick", 1);
    vm_on(VM_NORMAL, release_one, &how);
    EVENTUALLY(cleaned_so_far() == 2);
    CHECK_TEXT(notes(), "?");
    ALL_OVER();
}

/* In place, each does what it does first thing. */
TEST(all_kinds, "callbacks tick, lock, wait and call elsewhere, begun in place "
     "or on the pool")
{
    afresh();
    CHECK(pipe(fds) == 0);
    CHECK(write(fds[1], "x", 1) == 1);
    for (int round = 0; round < 4; round++) {
        node_set("pause_every_tick", round % 2);
        node_set("slice_ns", round < 2 ? 1000 : 1000000000);
        for (int how = QUICK; how <= WAITS; how++) {
            enum how it = (enum how)how;
            long before = cleaned_so_far();

            gate_open();
            vm_on(VM_NORMAL, release_one, &it);
            EVENTUALLY(cleaned_so_far() == before + 1);
        }
    }
    CHECK_NUMBERS(node_counter("thing cleanup", "rule_violations"), ==, 0);
    ALL_OVER();
    close(fds[0]);
    close(fds[1]);
}

TASKS_TEST(lock_wait, "one that waits for a lock holds no thread, and gets it "
     "in its turn")
{
    vm_proc *p = spawn_await("locks", "");

    afresh();
    gate_shut();
    vm_run(p, 1);
    EVENTUALLY(gate_waiting() == 1);
    drop_thing(LOCKS);
    drop_thing(LOCKS);
    EVENTUALLY(node_counter("thing cleanup", "slices") == 2
               && node_info("threads_busy") == 1);
    CHECK_NUMBERS(cleaned_so_far(), ==, 0);
    gate_open();
    CHECK_TEXT(finished(p), "ok");
    EVENTUALLY(cleaned_so_far() == 2);
    ALL_OVER();
}

TEST(lock_kept, "a lock that it did not release is another's once it has ended")
{
    afresh();
    gate_shut();
    drop_thing(HOLDS);
    EVENTUALLY(gate_waiting() == 1);
    drop_thing(LOCKS);
    gate_open();
    EVENTUALLY(cleaned_so_far() == 2);
    ALL_OVER();
}

TEST(few_at_once, "no more of a type are under way than it allows, and all come "
     "to their turn")
{
    afresh();
    gate_shut();
    for (int i = 0; i < 50; i++)
        drop_thing(LONG);
    EVENTUALLY(gate_waiting() == 2);
    for (int i = 0; i < 20; i++)
        nap();
    CHECK_NUMBERS(gate_waiting(), ==, 2);
    CHECK_NUMBERS(node_stacks(), ==, 2);
    gate_open();
    EVENTUALLY(cleaned_so_far() == 50);
    CHECK(!too_many);
    ALL_OVER();
}

TEST(in_order, "callbacks of one object run one after the other, and its clean-up "
     "last")
{
    vm_proc *owner = vm_spawn(), *others[3];
    vm_term thing;

    afresh();
    gate_shut();
    vm_call(owner, lib, "make", "1, 3");
    CHECK(vm_finish(owner) == VM_DONE);
    for (int i = 0; i < 3; i++) {
        others[i] = vm_spawn();
        thing = enif_make_copy(vm_env(others[i]), vm_result(owner));
        vm_call_array(others[i], lib, "monitored", 1, &thing);
        CHECK(vm_finish(others[i]) == VM_DONE);
    }
    for (int i = 0; i < 3; i++)
        vm_free(others[i]);             /* three have gone down */
    vm_free(owner);                     /* and no term refers to it */
    EVENTUALLY(gate_waiting() == 1);
    for (int i = 0; i < 20; i++)
        nap();
    CHECK_NUMBERS(gate_waiting(), ==, 1);
    gate_open();
    EVENTUALLY(cleaned_so_far() == 1);
    CHECK_TEXT(notes(), "d3d3d3?");
    ALL_OVER();
}

TEST(stops, "a stop is called once the VM has released the descriptor, and "
     "closes it")
{
    vm_proc *p = vm_spawn();
    vm_term thing;

    afresh();
    CHECK(pipe(fds) == 0);
    for (int late = 0; late < 2; late++) {
        vm_options.late_stops = late;
        vm_call(p, lib, "make", "0, 3");
        CHECK(vm_finish(p) == VM_DONE);
        thing = vm_result(p);
        vm_call_array(p, lib, "selected", 1, &thing);
        CHECK(vm_finish(p) == VM_DONE);
        vm_call(p, lib, "make", "0, 3");
        CHECK(vm_finish(p) == VM_DONE);
        thing = vm_result(p);
        node_await(p, "selected_there", 1, &thing);
        CHECK(vm_finish(p) == VM_DONE);
        CHECK_TEXT(outcome(p), "ok");
    }
    EVENTUALLY(__atomic_load_n(&stopped, __ATOMIC_ACQUIRE) == 4);
    vm_free(p);
    EVENTUALLY(cleaned_so_far() == 4);
    ALL_OVER();
    close(fds[0]);
    close(fds[1]);
}

TEST(nested, "one that releases another one in place leaves that to the pool")
{
    struct thing *outer, *inner;
    long before;

    afresh();
    let_it_be_short(QUICK);
    before = cleaned_so_far();
    for (int i = 0; i < 100; i++) {
        inner = new_thing(QUICK, 1);
        for (int depth = 0; depth < 10; depth++) {
            outer = new_thing(RELEASES, 2);
            outer->other = inner;
            inner = outer;
        }
        fair_resource_release(outer);
    }
    EVENTUALLY(cleaned_so_far() == before + 1100);
    ALL_OVER();
}

TEST(failing, "what one raises, and what it must not do, is counted, and the "
     "object goes all the same")
{
    afresh();
    drop_thing(FAILS);
    drop_thing(RAISES);
    EVENTUALLY(cleaned_so_far() == 1 && node_counter("thing cleanup", "rule_violations")
               == 3);                   /* a bad root, and two that failed */
    ALL_OVER();
    CHECK_NUMBERS(strlen(notes()), ==, 1);  /* the second may be in place */
}

TEST(current_task, "the task at work is found where nothing passes it, and not "
     "where it must not be used")
{
    afresh();
    CHECK(!fair_current());
    node_set("pause_every_tick", 1);
    CHECK_CALL("current", "", "ok");
    CHECK(!fair_current());
}

TEST(no_memory, "nothing is lost where memory runs out")
{
    static const enum how hows[] = {QUICK, TICKS, LOCKS, CALLS, SLEEPS};

    afresh();
    node_set("pause_every_tick", 1);
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        int n = 0;

        do {
            vm_proc *p = with_thing(hows[i]);
            long before = cleaned_so_far();
            bool made;

            vm_fail(VM_F_ALL, ++n, false);
            made = vm_finish(p) == VM_DONE;
            vm_free(p);
            if (made)
                EVENTUALLY(cleaned_so_far() == before + 1);
            ALL_OVER();
        } while (vm_failed() && n < 200);
        vm_fail(0, 0, false);
        CHECK_NUMBERS(n, >=, 2);
    }
}

/* The VM has called, and has no stack for it, nor a record of its thread's. */
TEST(no_memory_yet, "a callback waits until there is memory for it")
{
    struct thing *thing = new_thing(QUICK, 1);

    afresh();
    vm_fail(VM_F_MEMORY, 1, true);
    fair_resource_release(thing);
    for (int i = 0; i < 20; i++)
        nap();
    CHECK(vm_failed());
    CHECK_NUMBERS(cleaned_so_far(), ==, 0);
    vm_fail(0, 0, false);
    EVENTUALLY(cleaned_so_far() == 1);
    ALL_OVER();
}
