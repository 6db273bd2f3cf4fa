/*
 * test_ends.c - the end of a task that holds much: in slices before its result
 * goes out, or on the pool.
 */
#define NEEDS_TASKS
#include "check.h"

enum {
    MANY = 3000,                /* more than is released at once */
    A_SLICE = 130               /* things released in one, at most */
};

static long undone;

/* Where there is no environment it has none that is over. */
static void undo(void *task)
{
    fair_task *t = task;

    CHECK(!t->env || enif_make_atom(t->env, "ok"));
    __atomic_sub_fetch(&undone, 1, __ATOMIC_SEQ_CST);
}

static fair_mutex mutexes[MANY];

static bool get_one(fair_task *t, unsigned kind, unsigned i)
{
    fair_bin bin;

    switch (kind) {
    case 0:
        return fair_alloc(t, 40);
    case 1:
        return fair_new_bin(t, 100, &bin);
    case 2:
        __atomic_add_fetch(&undone, 1, __ATOMIC_SEQ_CST);
        return fair_defer(t, undo, t);
    default:
        return fair_mutex_trylock(t, &mutexes[i]);
    }
}

enum how { RETURNS, RAISES, FAILS, TICKS, WAITS };

/* hold(Kind, How): in one slice */
static ERL_NIF_TERM hold(fair_task *t)
{
    unsigned kind, how;

    CHECK(fair_get_uint(t, fair_arg(t, 0), &kind));
    CHECK(fair_get_uint(t, fair_arg(t, 1), &how));
    for (unsigned i = 0; i < MANY; i++)
        CHECK(get_one(t, kind, i));
    if (how == RAISES)
        return fair_badarg(t);
    if (how == FAILS)
        fair_root_get(t, 1000);     /* there is no such root */
    while (how == TICKS)
        fair_tick(t, 1);
    if (how == WAITS)
        fair_sleep(t, -1);
    return enif_make_tuple1(fair_env(t), fair_arg(t, 1));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("hold", 2, hold, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("hold_threaded", 2, hold, FAIR_THREADED)
};
FAIR_NIF_INIT(test_ends, nifs, NULL, NULL, NULL)

static long things(void)
{
    struct vm_counts c = vm_counts();
    long n = c.allocs + c.binaries + __atomic_load_n(&undone, __ATOMIC_SEQ_CST);

    for (unsigned i = 0; i < MANY; i++)
        n += mutexes[i].holder != NULL;
    return n;
}

static vm_proc *begin(unsigned kind, enum how how)
{
    char args[16];

    snprintf(args, sizeof args, "%u,%u", kind, how);
    return spawn_await("hold", args);
}

TEST(slices, "what it held is freed in slices, and then the result goes out")
{
    static const char *const results[] = {
        [RETURNS] = "{0}",
        [FAILS] = "error:{fairnif,{bad_root,{test_ends,hold,2}}}"
    };

    node_set("pause_every_tick", 1);
    for (unsigned kind = 0; kind < 4; kind++)
        for (enum how how = RETURNS; how <= FAILS; how += FAILS - RETURNS) {
            vm_proc *p = begin(kind, how);
            long before, held = things();
            char tasks[512];

            vm_step(p);
            CHECK(strstr(node_tasks(tasks, sizeof tasks), "state=>suspended"));
            CHECK_NUMBERS(things() - held, >=, MANY / 2);
            do {
                before = things();
                vm_step(p);
                CHECK_NUMBERS(before - things(), <=, A_SLICE);
            } while (vm_state(p) == VM_READY);
            CHECK_NUMBERS(undone, ==, 0);
            CHECK_TEXT(finished(p), results[how]);
            CHECK_TEXT(node_leftovers(), "");
        }
}

TEST(raised, "an exception goes out at once, and the rest is done on the pool")
{
    for (unsigned kind = 0; kind < 4; kind++) {
        CHECK_TEXT(finished(begin(kind, RAISES)), "error:badarg");
        ALL_OVER();
        CHECK_NUMBERS(undone, ==, 0);
    }
}

TEST(killed, "where its caller is killed that is done on the pool, also while it "
     "releases")
{
    for (unsigned kind = 0; kind < 4; kind++)
        for (unsigned i = 0; i < 3; i++) {
            static const enum how hows[] = {TICKS, WAITS, RETURNS};
            vm_proc *p = begin(kind, hows[i]);
            long before;

            node_set("pause_every_tick", hows[i] != WAITS);
            if (hows[i] == WAITS)
                until_waiting(p);
            else
                vm_step(p);
            before = node_info("jobs_done");
            vm_free(p);
            EVENTUALLY(node_info("jobs_done") > before);
            ALL_OVER();
            CHECK_NUMBERS(undone, ==, 0);
        }
}
