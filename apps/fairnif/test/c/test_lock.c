/*
 * test_lock.c - fair_mutex_lock, and the limit on how many calls are under way:
 * one at a time, in their order, whichever caller dies, at any point.
 */
#include <string.h>

#define NEEDS_TASKS
#include "begun.h"

/* -- bodies -------------------------------------------------------------- */

static fair_mutex mutex = FAIR_MUTEX_INIT;
static long inside;

/* Lets no other task in while it pauses. */
static bool alone(fair_task *t)
{
    bool one = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) == 1;

    for (int i = 0; i < 3; i++)
        fair_tick(t, 1);
    return one && __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST) == 0;
}

/* locks(Letter) */
static ERL_NIF_TERM locks(fair_task *t)
{
    int letter;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &letter))
        return fair_badarg(t);
    fair_mutex_lock(t, &mutex);
    note("%c", letter);
    if (!alone(t) || !fair_mutex_unlock(t, &mutex)
        || fair_mutex_unlock(t, &mutex))
        return fair_badarg(t);
    return fair_arg(t, 0);
}

/* holds(Letter): has it while the gate is shut, and never releases it. */
static ERL_NIF_TERM holds(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    return fair_arg(t, 0);
}

/* Holds it while it ticks. */
static ERL_NIF_TERM holds_endless(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    note("got");
    for (;;)
        fair_tick(t, 1);
    return 0;
}

/* A lock in an object, of which the memory is used for something else when it has
 * gone. */
static ErlNifResourceType *own_type;

static void spoil(ErlNifEnv *env, void *obj)
{
    (void)env;
    memset(obj, 0xA5, sizeof(fair_mutex));
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    own_type = enif_open_resource_type(env, NULL, "own", spoil,
                                       ERL_NIF_RT_CREATE, NULL);
    return own_type ? 0 : 1;
}

static ERL_NIF_TERM new_own(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    fair_mutex *own = enif_alloc_resource(own_type, sizeof *own);
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    *own = (fair_mutex)FAIR_MUTEX_INIT;
    term = enif_make_resource(env, own);
    enif_release_resource(own);
    return term;
}

static ERL_NIF_TERM holds_own(fair_task *t)
{
    void *own;

    if (!fair_get_resource(t, fair_arg(t, 0), own_type, &own))
        return fair_badarg(t);
    fair_mutex_lock(t, own);
    note("got");
    for (;;)
        fair_tick(t, 1);
}

static ERL_NIF_TERM tries(fair_task *t)
{
    int got = fair_mutex_trylock(t, &mutex), let = fair_mutex_unlock(t, &mutex);

    return enif_make_tuple2(fair_env(t), enif_make_int(fair_env(t), got),
                            enif_make_int(fair_env(t), let));
}

static ERL_NIF_TERM locks_twice(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_mutex_lock(t, &mutex);
    return fair_arg(t, 0);
}

enum { MANY = 10 };

static fair_mutex many[MANY];

/* Takes many, and releases some, in no order. */
static ERL_NIF_TERM takes_many(fair_task *t)
{
    for (int i = 0; i < MANY; i++)
        fair_mutex_lock(t, &many[i]);
    fair_tick(t, 1);
    for (int i = 0; i < MANY; i += 3)
        if (!fair_mutex_unlock(t, &many[(i * 7) % MANY]))
            return fair_badarg(t);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM gated(fair_task *t)
{
    int letter;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &letter))
        return fair_badarg(t);
    note("%c", letter);
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    return fair_arg(t, 0);
}

static const fair_options one_at_a_time = {.body = gated, .max_tasks = 1};

#define OF_ONE(NAME, MODE) \
    FAIR_NIF_OPTIONS("one_" NAME, 1, &one_at_a_time, (MODE) | FAIR_MAY_WAIT)

static ErlNifFunc nifs[] = {
    AWAITED_MODES("locks", 1, locks),
    AWAITED_MODES("holds", 1, holds),
    AWAITED_MODES("takes_many", 1, takes_many),
    FAIR_NIF("holds_endless", 1, holds_endless, FAIR_NORMAL | FAIR_MAY_WAIT),
    {"new_own", 0, new_own, 0},
    FAIR_NIF("holds_own", 1, holds_own, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("holds_own_threaded", 1, holds_own, FAIR_THREADED),
    FAIR_NIF("tries", 0, tries, FAIR_AUTO),
    FAIR_NIF("locks_twice", 1, locks_twice, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("locks_alone", 1, locks, FAIR_AUTO),
    OF_ONE("NORMAL", FAIR_NORMAL | FAIR_NO_YIELD),
    OF_ONE("YIELDING", FAIR_NORMAL),
    OF_ONE("DIRTY_CPU", FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    OF_ONE("DIRTY_IO", FAIR_DIRTY_IO | FAIR_NO_YIELD),
    OF_ONE("YIELDING_DIRTY", FAIR_DIRTY_CPU),
    OF_ONE("AUTO", FAIR_AUTO),
    OF_ONE("THREADED", FAIR_THREADED),
    FAIR_NIF_OPTIONS("one_alone", 1, &one_at_a_time, FAIR_AUTO),
    FAIR_NIF("gated", 1, gated, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("gated_alone", 1, gated, FAIR_AUTO),
};
FAIR_NIF_INIT(test_lock, nifs, load, NULL, NULL)

static const char *const ones[MODES] = {
    "one_NORMAL", "one_YIELDING", "one_DIRTY_CPU", "one_DIRTY_IO",
    "one_YIELDING_DIRTY", "one_AUTO", "one_THREADED"
};

/* -- calls --------------------------------------------------------------- */

/* How many wait for a lock.  A threaded body asks on a thread of its own. */
static int lock_waiters(void)
{
    char text[16384];
    int n = 0;

    node_tasks(text, sizeof text);
    for (const char *at = text; (at = strstr(at, "where=>lock")); at++)
        n++;
    return n;
}

static void check_free(void)
{
    EVENTUALLY(node_stacks() == 0);
    CHECK_CALL("tries", "", "{1,1}");
}

/* -- locks --------------------------------------------------------------- */

TEST(in_turn, "tasks of all modes have a lock one at a time, in the order in "
     "which they asked")
{
    for (int ticks = 0; ticks < 2; ticks++) {
        node_set("pause_every_tick", (uint64_t)ticks);
        for (int i = 0; i < MODES; i++) {
            gate_shut();
            clear_notes();
            begin('a', in_nth_mode("holds", i));
            EVENTUALLY(gate_waiting() == 1);
            for (int k = 0; k < MODES; k++) {
                begin('b' + k, in_nth_mode("locks", k));
                EVENTUALLY(lock_waiters() == k + 1);
            }
            CHECK_TEXT(notes(), "");
            gate_open();
            for (int c = 'a'; c < 'b' + MODES; c++)
                ends_well(c);
            CHECK_TEXT(notes(), "bcdefgh");
            check_free();
        }
    }
}

TEST(try, "a lock that is held is not got by trying, nor released by others")
{
    gate_shut();
    begin('a', "holds_auto");
    CHECK_CALL("tries", "", "{0,0}");
    gate_open();
    ends_well('a');
    CHECK_CALL("tries", "", "{1,1}");
}

TEST(twice, "a task that takes a lock twice gets an error, and the lock is "
     "free")
{
    CHECK_TEXT(finished(spawn_await("locks_twice", "1")),
               "error:{fairnif,{deadlock,{test_lock,locks_twice,1}}}");
    check_free();
}

/* What name(Letter), not awaited, answers in p: copied, since p continues. */
static vm_term pending(ErlNifEnv *to, vm_proc *p, const char *name, int letter)
{
    char arg[16];

    snprintf(arg, sizeof arg, "%d", letter);
    vm_call(p, lib, name, arg);
    vm_finish(p);
    return enif_make_copy(to, vm_result(p));
}

/* Awaits it in p. */
static void await_value(vm_proc *p, vm_term value)
{
    node_await_term(p, enif_make_copy(vm_env(p), value));
}

enum { WAITER_FIRST, WAITER_BEGUN, HOLDER_FIRST, ORDERS };

/* One process calls both.  A threaded holder continues by itself. */
static void both_in_one(const char *holder, const char *waiter, int order,
                        bool holder_runs_on)
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *kept = enif_alloc_env();
    vm_term held, wanted;
    char expected[80];

    gate_shut();
    held = pending(kept, p, holder, 'a');
    EVENTUALLY(gate_waiting() == 1);
    wanted = pending(kept, p, waiter, 'b');
    if (order != WAITER_FIRST)
        EVENTUALLY(lock_waiters() == 1);
    if (order == HOLDER_FIRST || holder_runs_on)
        gate_open();
    if (order == HOLDER_FIRST) {
        await_value(p, held);
        vm_finish(p);
        CHECK_TEXT(outcome(p), "97");
    }
    await_value(p, wanted);
    vm_finish(p);
    snprintf(expected, sizeof expected,
             "error:{fairnif,{deadlock,{test_lock,%s,1}}}", waiter);
    CHECK_TEXT(outcome(p), order == HOLDER_FIRST || holder_runs_on ? "98"
               : expected);
    gate_open();
    vm_free(p);
    enif_free_env(kept);
    check_free();
}

TEST(callers_own, "a caller that awaits a call that wants a lock of another of "
     "its calls gets deadlock, unless that one continues by itself")
{
    for (int i = 0; i < MODES; i++)
        for (int k = 0; k < MODES; k++)
            for (int order = 0; order < ORDERS; order++)
                both_in_one(in_nth_mode("holds", i), in_nth_mode("locks", k),
                            order, i == MODES - 1);
}

TEST(passed_on, "so is who awaits a call that waits for a lock behind another "
     "call of its own, when that one gets it")
{
    for (int i = 0; i < MODES - 1; i++) {
        vm_proc *p = vm_spawn();
        ErlNifEnv *kept = enif_alloc_env();
        vm_term first, second;

        gate_shut();
        clear_notes();
        begin('h', "holds_auto");
        EVENTUALLY(gate_waiting() == 1);
        first = pending(kept, p, in_nth_mode("locks", i), 'a');
        second = pending(kept, p, in_nth_mode("locks", i), 'b');
        await_value(p, second);
        until_waiting(p);
        EVENTUALLY(lock_waiters() == 2);
        gate_open();
        ends_well('h');
        vm_finish(p);
        CHECK(strstr(outcome(p), "{deadlock,") != NULL);
        await_value(p, first);
        vm_finish(p);
        CHECK_TEXT(outcome(p), "97");
        vm_free(p);
        enif_free_env(kept);
        check_free();
    }
}

TEST(alone_waits, "a function that is not awaited takes a free lock, and "
     "raises where it would wait")
{
    CHECK_CALL("locks_alone", "97", "97");
    gate_shut();
    begin('a', "holds_auto");
    CHECK_CALL("locks_alone", "98",
               "error:{fairnif,{not_awaited,{test_lock,locks_alone,1}}}");
    gate_open();
    ends_well('a');
    check_free();
}

TEST(dead_holder, "a lock passes on when its holder dies, in whatever it does")
{
    for (int i = 0; i < MODES; i++) {
        for (int endless = 0; endless < 2; endless++) {
            gate_shut();
            clear_notes();
            if (endless) {
                procs['a'] = spawn_await("holds_endless", "97");
                EVENTUALLY((A_SLICE(procs['a']), is_noted("got")));
            } else {
                begin('a', in_nth_mode("holds", i));
                EVENTUALLY(gate_waiting() == 1);
            }
            begin('b', in_nth_mode("locks", i));
            EVENTUALLY(lock_waiters() == 1);
            begin('c', "locks_auto");
            vm_free(procs['a']);
            gate_open();
            ends_well('b');
            ends_well('c');
            check_free();
        }
    }
}

TEST(in_object, "a lock in an object that only its holder has is passed on before the "
     "object goes")
{
    for (int threaded = 0; threaded < 2; threaded++) {
        vm_proc *p = spawn_call("new_own", "");
        vm_term own;

        clear_notes();
        vm_finish(p);
        own = vm_result(p);
        node_await(p, threaded ? "holds_own_threaded" : "holds_own", 1, &own);
        EVENTUALLY((vm_run(p, 1), is_noted("got")));
        vm_free(p);
        EVENTUALLY(node_stacks() == 0);
    }
}

TEST(dead_waiter, "a waiter that dies, at any point, leaves its place")
{
    step_by_step();
    for (int i = 0; i < MODES; i++) {
        gate_shut();
        clear_notes();
        begin('a', "holds_auto");
        EVENTUALLY(gate_waiting() == 1);
        begin('b', in_nth_mode("locks", i));
        EVENTUALLY(lock_waiters() == 1);
        begin('c', "locks_auto");
        begin('d', "holds_auto");
        begin('e', "locks_auto");
        vm_free(procs['b']);
        gate_open();
        vm_finish(procs['a']);             /* c has it, and is not asked yet */
        vm_free(procs['c']);               /* d as well, and e then */
        ends_well('a');
        vm_free(procs['d']);
        ends_well('e');
        CHECK_TEXT(notes(), "e");
        check_free();
    }
}

TEST(several, "a task has many locks, and all are free when it has ended")
{
    for (int round = 0; round < 3; round++) {
        for (int c = 'a'; c < 'h'; c++)
            begin(c, in_nth_mode("takes_many", c - 'a'));
        for (int c = 'a'; c < 'h'; c++)
            ends_well(c);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(!many[i].holder);
}

/* -- turns --------------------------------------------------------------- */

TEST(turns, "calls over the limit wait their turn, in their order")
{
    for (int i = 0; i < MODES; i++) {
        gate_shut();
        clear_notes();
        for (int c = 'a'; c < 'e'; c++)
            begin(c, ones[i]);
        EVENTUALLY(gate_waiting() == 1);
        CHECK_TEXT(notes(), "a");
        begin('e', "gated");            /* has no limit */
        EVENTUALLY(gate_waiting() == 2);
        gate_open();
        for (int c = 'a'; c < 'f'; c++)
            ends_well(c);
        CHECK_TEXT(notes(), "aebcd");
    }
}

TEST(turn_deaths, "callers that die while they wait their turn, or when it has "
     "come, pass it on")
{
    step_by_step();
    for (int i = 0; i < MODES; i++) {
        gate_shut();
        clear_notes();
        for (int c = 'a'; c < 'f'; c++)
            begin(c, ones[i]);
        EVENTUALLY(gate_waiting() == 1);
        vm_free(procs['c']);
        vm_free(procs['a']);               /* its work continues to the end */
        gate_open();
        EVENTUALLY(gate_waiting() == 0);
        EVENTUALLY(node_info("threads_busy") == 0);
        vm_free(procs['b']);               /* its turn has come */
        ends_well('d');
        ends_well('e');
        CHECK_TEXT(notes(), "ade");
        EVENTUALLY(node_stacks() == 0);
    }
}

TEST(turn_limit, "a call whose turn does not come in time raises overloaded, "
     "one that is not awaited does at once")
{
    gate_shut();
    begin('a', "one_AUTO");
    EVENTUALLY(gate_waiting() == 1);
    node_set("overload_ns", 30000000);
    begin('b', "one_AUTO");
    CHECK_TEXT(finished(procs['b']), "error:overloaded");
    begin('c', "one_alone");
    CHECK_TEXT(finished(procs['c']), "error:{fairnif,{not_awaited,{test_lock,"
               "one_alone,1}}}");
    gate_open();
    ends_well('a');
}

TEST(turns_of_all, "the limit over all functions makes calls wait as well")
{
    gate_shut();
    node_set("max_tasks", 2);
    begin('a', "gated");
    begin('b', "one_AUTO");
    begin('c', "gated");
    begin('d', "one_THREADED");
    begin('e', "gated");
    EVENTUALLY(gate_waiting() == 2);
    CHECK_TEXT(notes(), "ab");
    gate_open();
    for (int c = 'a'; c < 'f'; c++)
        ends_well(c);
    node_set("max_tasks", 0);
    begin('a', "gated");
    ends_well('a');
}

TEST(newcomers, "a newcomer overtakes no waiting call, also when the limit "
     "is raised")
{
    step_by_step();
    gate_shut();
    node_set("max_tasks", 1);
    begin('a', "gated");
    for (int c = 'b'; c < 'f'; c++)
        begin(c, "gated");
    EVENTUALLY(gate_waiting() == 1);
    node_set("max_tasks", 2);
    begin('f', "one_AUTO");             /* lets one in, and waits */
    CHECK_TEXT(notes(), "a");
    vm_run(procs['b'], 1000);
    EVENTUALLY(gate_waiting() == 2);
    CHECK_TEXT(notes(), "ab");
    begin('g', "gated_alone");          /* cannot wait */
    CHECK_TEXT(finished(procs['g']), "error:overloaded");
    gate_open();
    for (int c = 'a'; c < 'g'; c++)
        ends_well(c);
    node_set("max_tasks", 0);
}

/* -- memory -------------------------------------------------------------- */

TEST(memory, "locks and turns are passed on when memory runs out")
{
    static const char *const names[] = {"locks", "takes_many"};

    for (int i = 0; i < MODES; i++)
        for (int on = 0; on < 2; on++)
            for (long n = 1; n < 300 && !check_failures(); n++) {
                const char *name = i % 2 ? names[n % 2] : ones[i];
                bool failed;

                if (name != ones[i])
                    name = in_nth_mode(name, i);
                gate_open();
                vm_fail(VM_F_MEMORY | VM_F_THREAD, n, on);
                for (int c = 'a'; c < 'e'; c++)
                    begin(c, name);
                for (int c = 'a'; c < 'e'; c++)
                    vm_run(procs[c], 20000);
                failed = vm_failed();
                vm_fail(0, 0, false);
                for (int c = 'a'; c < 'e'; c++) {
                    const char *is = outcome(procs[c]);

                    check_that(!strcmp(is, "error:enomem") || is[0] == '9'
                               || is[0] == '1', __FILE__, __LINE__,
                               "%s without call %ld for memory: %s", name, n,
                               is);
                    vm_free(procs[c]);
                }
                if (!failed)
                    break;
            }
    check_free();
}
