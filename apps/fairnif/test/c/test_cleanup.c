/*
 * test_cleanup.c - what a body with FAIR_CLEANUP relies on while it cleans up,
 * and what else happens meanwhile.
 */
#include <stdlib.h>
#include <unistd.h>

#include "unwind.h"

static fair_mutex mutex = FAIR_MUTEX_INIT;
static int fds[2];

/* -- bodies ----------------------------------------------------------------- */

/* Is cancelled at a tick. */
static ERL_NIF_TERM asks(fair_task *t)
{
    ErlNifTime begin = enif_monotonic_time(ERL_NIF_SEC);
    long *priv;

    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    while (!fair_cancelled(t))
        fair_tick(t, 1);
    priv = enif_priv_data(fair_env(t));
    note("%s", priv == &private_data ? "priv" : "another's");
    note(enif_monotonic_time(ERL_NIF_SEC) - begin < 100 ? " now" : " then");
    return 0;
}

/* Its binary's bytes lie in its caller's heap, until it pauses. */
static ERL_NIF_TERM reads(fair_task *t)
{
    unsigned sum = 0;
    fair_bytes bin;

    if (!fair_get_bytes(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    fair_tick(t, 1);
    if (fair_cancelled(t))
        for (int i = 0; i < 20; i++)
            nap();
    for (size_t i = 0; i < bin.size; i++)
        sum += bin.data[i];
    note(sum ? "read" : "nothing");
    return fair_arg(t, 0);
}

/* A lock in memory that goes with the last one who has it. */
static struct shared {
    fair_mutex mutex;
    int users;
} *shared;

static ERL_NIF_TERM shares(fair_task *t)
{
    struct shared *mine = shared;

    mine->users++;
    fair_mutex_lock(t, &mine->mutex);
    if (!fair_cancelled(t)) {
        fair_tick(t, 1);
        fair_mutex_unlock(t, &mine->mutex);
    }
    if (--mine->users == 0) {
        free(mine);
        note("freed");
    }
    return fair_arg(t, 0);
}

static ERL_NIF_TERM locks_late(fair_task *t)
{
    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    while (!fair_cancelled(t))
        fair_tick(t, 1);
    fair_mutex_lock(t, &mutex);
    note("l");
    fair_mutex_unlock(t, &mutex);
    return 0;
}

/* The same where the runtime ends the call. */
static ERL_NIF_TERM locks_refused(fair_task *t)
{
    fair_tick(t, 1);
    fair_root_drop(t, 7);
    fair_mutex_lock(t, &mutex);     /* which may begin another slice */
    CHECK(fair_tick(t, 1) == -ECANCELED);
    note("l");
    fair_mutex_unlock(t, &mutex);
    return 0;
}

static ERL_NIF_TERM holds_long(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    while (!fair_cancelled(t))
        fair_tick(t, 1);
    fair_mutex_unlock(t, &mutex);
    note("h");
    return 0;
}

static ERL_NIF_TERM holds_short(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_tick(t, 1);
    fair_tick(t, 1);
    fair_mutex_unlock(t, &mutex);
    note("h");
    return fair_arg(t, 0);
}

/* What a deferred function releases is not used any more. */
static void spoil(void *arg)
{
    memcpy(arg, "gone", 5);
    note("d");
}

static ERL_NIF_TERM remembers(fair_task *t)
{
    char *text = fair_alloc(t, 16);

    memcpy(text, "here", 5);
    fair_defer(t, spoil, text);
    fair_wait(t, fds[0], FAIR_READ, -1);
    note("%s", fair_cancelled(t) ? text : "went on");
    return fair_arg(t, 0);
}

static ERL_NIF_TERM lingers(fair_task *t)
{
    int answer = fair_wait(t, fds[0], FAIR_READ, -1);

    if (fair_cancelled(t))
        gate_pass(NULL);
    return enif_make_int(fair_env(t), answer);
}

static ERL_NIF_TERM passes_gate(fair_task *t)
{
    gate_pass(NULL);
    return fair_arg(t, 0);
}

/* Frees the last hold on another call. */
static ErlNifEnv *last_hold;

static ERL_NIF_TERM frees(fair_task *t)
{
    enif_free_env(last_hold);
    note(enif_priv_data(fair_env(t)) == &private_data ? "[priv]"
         : "[another's]");
    return fair_arg(t, 0);
}

static ERL_NIF_TERM sleeps(fair_task *t)
{
    fair_sleep(t, -1);
    note("slept");
    return 0;
}

static ERL_NIF_TERM returns(fair_task *t)
{
    fair_tick(t, 1);
    return fair_arg(t, 0);
}

static ErlNifFunc nifs[] = {
    UNWINDING("asks", asks, 0),
    UNWINDING("reads", reads, FAIR_MAY_WAIT),
    UNWINDING("shares", shares, FAIR_MAY_WAIT),
    UNWINDING("locks_late", locks_late, FAIR_MAY_WAIT),
    UNWINDING("locks_refused", locks_refused, 0),
    UNWINDING("holds_long", holds_long, FAIR_MAY_WAIT),
    UNWINDING("holds_short", holds_short, FAIR_MAY_WAIT),
    UNWINDING("remembers", remembers, FAIR_MAY_WAIT),
    UNWINDING("lingers", lingers, FAIR_MAY_WAIT),
    FAIR_NIF("passes_gate", 1, passes_gate, FAIR_THREADED),
    FAIR_NIF("frees", 1, frees, FAIR_THREADED),
    UNWINDING("sleeps", sleeps, FAIR_MAY_WAIT),
    UNWINDING("returns", returns, 0),
};

FAIR_NIF_INIT(test_cleanup, nifs, load_private, upgrade_private, NULL)

/* -- what a body that cleans up relies on ---------------------------------- */

TASKS_TEST(priv_data, "the author's private data and the VM's clock are there "
     "where it cleans up")
{
    node_set("pause_every_tick", 1);
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        long before = __atomic_load_n(&rounds, __ATOMIC_RELAXED);
        vm_proc *p = call("asks", mode);

        EVENTUALLY(has_begun(p, before - 1, false));
        vm_kill(p);
        EVENTUALLY(node_stacks() == 0);
        check_notes("priv now", named("asks", mode));
        vm_free(p);
    }
}

#ifndef VM_REAL                 /* which does not do these things in an order */
TEST(unkept, "what could not be kept for want of memory is there while it cleans "
     "up")
{
    static const unsigned char bytes[300] = {1, 2, 3};

    node_set("pause_every_tick", 1);
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        bool failed = true;

        for (long n = 1; failed; n++) {
            vm_proc *p = vm_spawn();
            vm_term arg = vm_binary(vm_env(p), bytes, sizeof bytes);

            node_await(p, named("reads", mode), 1, &arg);
            vm_fail(VM_F_ALLOC, n, false);
            vm_finish(p);
            failed = vm_failed();
            vm_fail(0, 0, false);
            vm_free(p);
            EVENTUALLY(node_stacks() == 0);
            CHECK(!strcmp(notes(), "read") || (failed && !*notes()));
            clear_notes();
        }
    }
}

TASKS_TEST(no_record, "a threaded body that finds itself on a thread without "
     "a record, for want of memory, cleans up before anything is released")
{
    vm_proc *p, *q;

    CHECK(pipe(fds) == 0);
    node_set("threads", 1);
    p = spawn_await("remembers_threaded", "x");
    EVENTUALLY((vm_run(p, 1), vm_armed() == 1));
    q = spawn_await("passes_gate", "x");
    until_waiting(q);
    EVENTUALLY(gate_waiting() == 1);
    node_set("threads", 2);
    vm_fail(VM_F_MALLOC, 1, true);
    CHECK(write(fds[1], "x", 1) == 1);
    vm_finish(p);
    vm_fail(0, 0, false);
    CHECK_TEXT(finished(p), "error:enomem");
    CHECK_TEXT(notes(), "hered");
    gate_open();
    CHECK_TEXT(finished(q), "x");
    close(fds[0]);
    close(fds[1]);
}

/* -- locks ------------------------------------------------------------------ */

TASKS_TEST(granted, "a lock that came when its caller was dead is not held "
     "while it cleans up")
{
    for (int mode = 0; mode < THREADED; mode++) {   /* which runs on at once */
        vm_proc *p, *q;

        node_set("pause_every_tick", 1);
        shared = calloc(1, sizeof *shared);
        p = call("shares", mode);
        while (shared->mutex.holder == NULL)
            vm_step(p);
        q = call("shares", mode);
        until_waiting(q);
        CHECK_TEXT(finished(p), finished(call("returns", 0)));
        CHECK(shared->mutex.holder != NULL);        /* it is q's */
        vm_kill(q);
        EVENTUALLY(node_stacks() == 0);
        check_notes("freed", named("shares", mode));
        vm_free(q);
    }
}

TASKS_TEST(starved, "bodies that wait for a lock to clean up let the one have "
     "a thread that holds it")
{
    node_set("pause_every_tick", 1);
    node_set("threads", 1);
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        long before = __atomic_load_n(&rounds, __ATOMIC_RELAXED);
        vm_proc *h = call("holds_long", mode), *p = call("locks_late", mode),
            *q = call("locks_late", mode);

        EVENTUALLY(has_begun(h, before - 1, false));
        EVENTUALLY(has_begun(p, before, false));
        EVENTUALLY(has_begun(q, before + 1, false));
        vm_kill(p);
        vm_kill(q);
        nap();
        vm_kill(h);
        EVENTUALLY(node_stacks() == 0);
        check_notes("hll", named("locks_late", mode));
        vm_free(h);
        vm_free(p);
        vm_free(q);
    }
}

TASKS_TEST(holds_up, "one whose call the runtime ends holds up no scheduler "
     "while it waits for a lock to clean up")
{
    node_set("pause_every_tick", 1);
    node_set("threads", 1);
    for (int mode = 0; mode < THREADED; mode++) {
        vm_proc *h = call("holds_short", mode), *p = call("locks_refused", mode);
        int steps;

        do
            vm_step(h);
        while (__atomic_load_n(&mutex.holder, __ATOMIC_RELAXED) == NULL);
        for (steps = 0; steps < 10 && vm_state(p) != VM_RAISED; steps++)
            vm_step(p);
        CHECK(vm_state(p) != VM_RAISED);
        vm_free(h);
        CHECK(strstr(finished(p), "bad_root") != NULL);
        check_times(named("locks_refused", mode), 60000000000);
        clear_notes();
    }
}

TASKS_TEST(leaves, "one that waits on a dirty scheduler for a lock to clean "
     "up leaves it for the pool")
{
    long before = __atomic_load_n(&rounds, __ATOMIC_RELAXED);
    vm_thread *thread = vm_nth_thread(VM_DIRTY_CPU, 0);
    vm_proc *h = call("holds_long", 0), *doomed;

    node_set("dirty_slice_ns", 1000000000);
    EVENTUALLY(has_begun(h, before - 1, false));
    doomed = spawn_call("locks_late_dirty_cpu", "x");
    vm_step(doomed);
    vm_post(thread, run_all_slices, doomed);
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < before + 2)
        ;
    vm_kill(doomed);
    vm_wait(thread);
    CHECK_TEXT(notes(), "");
    vm_kill(h);
    EVENTUALLY(node_stacks() == 0);
    CHECK_TEXT(notes(), "hl");
    CHECK_NUMBERS(node_counter("locks_late_dirty_cpu", "cancels"), ==, 1);
    CHECK_NUMBERS(node_counter("locks_late_dirty_cpu", "cleanups"), ==, 1);
    vm_free(doomed);
    vm_free(h);
}

/* -- descriptors ------------------------------------------------------------ */

/* A threaded one may have to wait for its thread before. */
static bool one_waits_for_a_descriptor(void)
{
    char text[1024];

    return strstr(node_tasks(text, sizeof text), "descriptor") != NULL;
}

TASKS_TEST(free_again, "a body that waited for a descriptor is in no one's way "
     "while it cleans up")
{
    char byte;

    CHECK(pipe(fds) == 0);
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        vm_proc *p = call("lingers", mode), *q;

        until_waiting(p);
        EVENTUALLY(one_waits_for_a_descriptor());
        vm_kill(p);
        EVENTUALLY(gate_waiting() == 1);
        q = call("lingers", mode);
        until_waiting(q);
        CHECK(write(fds[1], "x", 1) == 1);
        CHECK_TEXT(finished(q), "1");       /* FAIR_READ, and not -EBUSY */
        gate_open();
        EVENTUALLY(node_stacks() == 0);
        vm_free(p);
        gate_shut();
        CHECK(read(fds[0], &byte, 1) == 1);
    }
    close(fds[0]);
    close(fds[1]);
}

/* -- a thread of the pool --------------------------------------------------- */

TASKS_TEST(nested, "a body that frees the last hold on another call is not in "
     "its way")
{
    vm_proc *p = spawn_call("sleeps_yielding", "x"), *q;

    CHECK(vm_finish(p) == VM_DONE);         /* a pending value */
    last_hold = enif_alloc_env();
    enif_make_copy(last_hold, vm_result(p));
    vm_free(p);
    CHECK_NUMBERS(node_stacks(), ==, 1);
    q = spawn_await("frees", "x");
    CHECK_TEXT(finished(q), "x");
    EVENTUALLY(node_stacks() == 0);
    CHECK(strstr(notes(), "[priv]") != NULL);
    CHECK(strstr(notes(), "slept") != NULL);
}
#endif
