/*
 * test_defer.c - deferred functions: in reverse order, exactly once, however
 * the task ends.
 */
#include <stdlib.h>

#include "check.h"

static void defer_all(fair_task *t)
{
    CHECK(fair_defer(t, note_defer, "a"));
    CHECK(fair_defer(t, note_defer, "b"));
    fair_tick(t, 1);
    CHECK(fair_defer(t, note_defer, "c"));
    CHECK(fair_defer(t, note_defer, "d"));
    CHECK(fair_defer(t, note_defer, "e"));      /* more than fit inline */
    fair_tick(t, 1);
    CHECK(fair_defer(t, note_defer, "f"));
}

static ERL_NIF_TERM returns(fair_task *t)
{
    defer_all(t);
    note("returned:");
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM raises(fair_task *t)
{
    defer_all(t);
    note("raised:");
    return fair_badarg(t);
}

static long rounds;             /* of `endless` */

static ERL_NIF_TERM endless(fair_task *t)
{
    defer_all(t);
    while (fair_argc(t) == 0) {
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
        fair_tick(t, 1);
    }
    return fair_badarg(t);
}

/* Does not look at the time: the caller is dead when it returns. */
static ERL_NIF_TERM dies_and_returns(fair_task *t)
{
    defer_all(t);
    vm_kill(vm_current());
    note("returned:");
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM dies_and_ticks(fair_task *t)
{
    defer_all(t);
    vm_kill(vm_current());
    while (fair_argc(t) == 0)
        fair_tick(t, 1000);
    return fair_badarg(t);
}

static void die_here(void *arg)
{
    (void)arg;
    vm_kill(vm_current());
}

static ERL_NIF_TERM dies_in_call(fair_task *t)
{
    defer_all(t);
    fair_offload(t, FAIR_AUTO, 1000000, die_here, NULL);
    note("went on:");
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM dies_blocking(fair_task *t)
{
    defer_all(t);
    fair_offload(t, FAIR_DIRTY_IO, 0, die_here, NULL);
    note("went on:");
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM never_begins(fair_task *t)
{
    note("begun:");
    defer_all(t);
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM takes_back(fair_task *t)
{
    CHECK(!fair_undefer(t, note_defer, "a"));
    defer_all(t);
    CHECK(fair_undefer(t, note_defer, "f"));
    CHECK(!fair_undefer(t, note_defer, "f"));
    fair_tick(t, 1);
    CHECK(fair_undefer(t, note_defer, "b"));
    CHECK(!fair_undefer(t, free, "c"));
    CHECK(fair_defer(t, note_defer, "a"));
    CHECK(fair_undefer(t, note_defer, "a"));    /* the latest one */
    CHECK(fair_undefer(t, note_defer, "a"));
    fair_tick(t, 1);
    CHECK(fair_defer(t, note_defer, "g"));
    return enif_make_atom(fair_env(t), "ok");
}

/* free(ptr) may come from anywhere: a few hundred of them. */
static ERL_NIF_TERM hundreds(fair_task *t)
{
    for (int i = 0; i < 300; i++) {
        void *p = malloc(16);

        if (!fair_defer(t, free, p))
            return fair_enomem(t);
        if (i % 2 && i < 200) {
            CHECK(fair_undefer(t, free, p));
            free(p);
        }
        if (i % 10 == 0)
            fair_tick(t, 1);
    }
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    ALL_MODES("returns", 0, returns),
    ALL_MODES("raises", 0, raises),
    ALL_MODES("endless", 0, endless),
    ALL_MODES("dies_and_returns", 0, dies_and_returns),
    ALL_MODES("dies_and_ticks", 0, dies_and_ticks),
    ALL_MODES("dies_in_call", 0, dies_in_call),
    ALL_MODES("dies_blocking", 0, dies_blocking),
    ALL_MODES("never_begins", 0, never_begins),
    ALL_MODES("takes_back", 0, takes_back),
    ALL_MODES("hundreds", 0, hundreds),
    FAIR_NIF("hundreds_threaded", 0, hundreds, FAIR_THREADED),
};
FAIR_NIF_INIT(test_defer, nifs, NULL, NULL, NULL)

static void check_notes(const char *should, const char *name, int line)
{
    check_that(!strcmp(notes(), should), __FILE__, line, "%s: %s, not %s",
               name, notes(), should);
    clear_notes();
}

/* Runs to the end, with and without pauses, in all modes or in those where a
 * body can be stopped. */
static void in_all_modes(const char *name, const char *should, bool plain_too)
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        node_set("slice_ns", 1000);
        node_set("dirty_slice_ns", 10000);
        for (int i = 0; i < 6; i++) {
            const struct mode *m = &modes[i];

            if (!plain_too && m->first == 'n' && !m->yields)
                continue;
            finished(spawn_call(in_mode(name, m), ""));
            check_notes(should, in_mode(name, m), __LINE__);
        }
    }
}

/* When the body has returned or raised, its caller alive or dead; when the
 * caller dies, no further than a slice's ticks or fair_offload; fair_undefer
 * takes back the latest of its kind; there may be hundreds. */
TEST(ends, "they run in reverse order, once, however the body ends, but for "
     "those that were taken back")
{
    static const struct { const char *name, *should; bool plain_too; } bodies[] = {
        {"returns", "returned:fedcba", true},
        {"raises", "raised:fedcba", true},
        {"dies_and_returns", "returned:fedcba", true},
        {"dies_and_ticks", "fedcba", false},
        {"dies_in_call", "fedcba", false},
        {"dies_blocking", "fedcba", true},
        {"takes_back", "gedc", true},
        {"hundreds", "", true},
    };

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        in_all_modes(bodies[i].name, bodies[i].should, bodies[i].plain_too);
    CHECK_AWAIT("hundreds_threaded", "", "ok");
}

/* The nth slice, then the caller's death; on each kind of thread. */
TEST(suspended, "they run when the caller is killed while suspended")
{
    static const char *const should[] = {
        "", "ba", "edcba", "fedcba", "fedcba"
    };

    vm_options.virtual_time = true;     /* no slice has debts to pay */
    node_set("pause_every_tick", 1);
    node_set("turn_ns", 1000000);       /* a busy machine owes no turns */
    for (int i = 0; i < 6; i++) {
        if (!modes[i].yields)
            continue;
        for (int slices = 0; slices <= 4; slices++) {
            for (int kind = VM_NORMAL; kind < VM_KINDS; kind++) {
                vm_proc *p = spawn_call(in_mode("endless", &modes[i]), "");

                vm_options.dead_heaps_on = kind;
                for (int s = 0; s < slices + modes[i].queued; s++)
                    vm_step(p);
                vm_kill(p);
                check_notes(should[slices], in_mode("suspended", &modes[i]),
                            __LINE__);
                CHECK_NUMBERS(node_stacks(), ==, 0);
                vm_free(p);
            }
        }
        CHECK_NUMBERS(node_counter(in_mode("endless", &modes[i]), "cancels"),
                      ==, 12 + 3 * modes[i].queued);
    }
}

TASKS_TEST(late, "they run when the destructor comes late, on any thread")
{
    vm_proc *p = spawn_call("endless_yielding", "");

    vm_options.virtual_time = true;
    node_set("pause_every_tick", 1);
    vm_options.late_destructors = true;
    vm_step(p);
    vm_step(p);
    vm_free(p);
    CHECK_TEXT(notes(), "");
    vm_run_destructors();               /* on no scheduler's thread */
    CHECK_TEXT(notes(), "edcba");
}

TEST(late_return, "a destructor that comes after the end does nothing")
{
    vm_proc *p = spawn_call("returns_yielding", "");

    node_set("pause_every_tick", 1);
    vm_options.late_destructors = true;
    vm_finish(p);
    CHECK_TEXT(notes(), "returned:fedcba");
    for (int i = 0; i < 5; i++)         /* others get its stack */
        finished(spawn_call("returns_auto", ""));
    clear_notes();
    vm_free(p);
    vm_run_destructors();
    CHECK_TEXT(notes(), "");
}

TEST(queued, "a call killed while queued never begins")
{
    for (int i = 0; i < 6; i++) {
        vm_proc *p;

        if (!modes[i].queued)
            continue;
        p = spawn_call(in_mode("never_begins", &modes[i]), "");
        CHECK(vm_step(p) == VM_READY);
        CHECK_NUMBERS(node_stacks(), ==, 1);
        vm_kill(p);
        CHECK_TEXT(notes(), "");
        CHECK_NUMBERS(node_stacks(), ==, 0);
        vm_free(p);
    }
}

TEST(running, "they run when the caller is killed while running dirty, and "
     "until then the task is listed")
{
    static const char *const names[] = {"endless_dirty_cpu",
                                        "endless_dirty_io",
                                        "endless_yielding_dirty"};

    /* So long that the one slice which is run here does not end before the
     * caller is killed, however busy the machine is. */
    node_set("dirty_slice_ns", 1000000000);
    for (int i = 0; i < 3; i++) {
        int kind = i == 1 ? VM_DIRTY_IO : VM_DIRTY_CPU;
        char text[2048], owner[64] = "owner=>";
        vm_proc *doomed = spawn_call(names[i], "");

        vm_print(vm_pid(doomed), owner + 7, sizeof owner - 7);
        vm_step(doomed);
        rounds = 0;
        vm_post(vm_nth_thread(kind, 0), run_all_slices, doomed);
        while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 10)
            ;
        if (i == 0) {           /* not between two slices, and tasks/0 runs
                                   on another thread */
            node_tasks(text, sizeof text);
            check_that(strstr(text, "state=>running")
                       && strstr(text, owner), __FILE__, __LINE__,
                       "running tasks: %s", text);
        }
        vm_kill(doomed);
        vm_wait(vm_nth_thread(kind, 0));
        CHECK(vm_state(doomed) == VM_DEAD);
        check_notes("fedcba", names[i], __LINE__);
        CHECK_NUMBERS(node_stacks(), ==, 0);
        vm_free(doomed);
    }
}
