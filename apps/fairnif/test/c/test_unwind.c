/*
 * test_unwind.c - bodies that clean up themselves, FAIR_CLEANUP: exactly once,
 * and not on a normal scheduler.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "unwind.h"

/* -- a body with something on its stack ------------------------------------ */

static fair_mutex mutex = FAIR_MUTEX_INIT;
static int fds[2];

static void count(void *arg)
{
    ++*(long *)arg;
}

/* What needs a caller fails; what only releases works; nothing pauses. */
static void use_cancelled(fair_task *t)
{
    uint64_t yields = fair_yields(t);
    ERL_NIF_TERM head;
    fair_mutex own = FAIR_MUTEX_INIT;
    fair_bytes got;
    fair_bin bin;
    size_t size;
    char *chars, text[16];
    long called = 0;
    void *memory;
    int fd, number;

    for (int i = 0; i < 100; i++)
        CHECK_NUMBERS(fair_tick(t, 1000 * (i % 2)), ==, -ECANCELED);
    CHECK_NUMBERS(fair_move(t, FAIR_DIRTY_IO), ==, -ECANCELED);
    CHECK_NUMBERS(fair_offload(t, FAIR_THREADED, 1, count, &called), ==, 1);
    CHECK_NUMBERS(fair_offload(t, FAIR_AUTO, 1 << 30, count, &called), ==, 1);
    CHECK_NUMBERS(called, ==, 2);
    CHECK_NUMBERS(fair_sleep(t, 1000), ==, -ECANCELED);
    CHECK_NUMBERS(fair_wait(t, fds[0], FAIR_READ, -1), ==, -ECANCELED);
    CHECK_NUMBERS(fair_root_new(t, fair_arg(t, 17)), ==, 0);
    fair_root_set(t, 5, fair_root_get(t, 17));
    fair_root_drop(t, 99);
    CHECK(fair_get_atom(t, fair_root_get(t, 3), text, sizeof text, FAIR_UTF8));
    CHECK(!fair_get_int(t, fair_arg(t, 17), &number));
    CHECK(!fair_get_iolist(t, fair_root_get(t, 0), &got));
    CHECK(!fair_get_bytes(t, fair_root_get(t, 0), &got));
    CHECK(!fair_get_string(t, fair_root_get(t, 0), &chars, &size, FAIR_UTF8));
    CHECK(!fair_get_list_length(t, fair_root_get(t, 0), &size));
    CHECK(!fair_get_fd(t, fair_root_get(t, 0), &fd));
    CHECK(!fair_list_next(t, 0, &head));
    fair_list_push(t, 0, fair_root_get(t, 0));
    CHECK(!fair_list_reverse(t, 0));
    CHECK(fair_get_atom(t, fair_badarg(t), text, sizeof text, FAIR_UTF8));
    CHECK_NUMBERS(fair_mutex_lock(t, &own), ==, 1);
    CHECK_NUMBERS(fair_mutex_lock(t, &own), ==, -EDEADLK);
    CHECK_NUMBERS(fair_mutex_trylock(t, &own), ==, 0);
    CHECK(fair_mutex_unlock(t, &own));
    memory = fair_alloc(t, 100);
    CHECK(fair_new_bin(t, 1000, &bin));
    CHECK(fair_resize_bin(t, &bin, 2000));
    fair_release_bin(t, &bin);
    fair_release_bin(t, &bin);          /* refused, and gone on after */
    fair_free(t, memory);
    CHECK_NUMBERS(fair_yields(t), ==, yields);
    CHECK(fair_cancelled(t));
}

static void ticks(fair_task *t)
{
    fair_tick(t, 1);
}

static void moves(fair_task *t)
{
    fair_move(t, FAIR_DIRTY_IO);
    if (fair_where(t) == FAIR_THREADED)
        fair_tick(t, 1);        /* there it stays where it is */
    if (!fair_cancelled(t))
        fair_move(t, FAIR_NORMAL);
}

static void calls(fair_task *t)
{
    long called = 0;

    fair_offload(t, FAIR_DIRTY_CPU, 1, count, &called);
    if (fair_where(t) == FAIR_DIRTY_CPU)
        fair_tick(t, 1);        /* there it ran in place */
}

static void gets_list(fair_task *t)
{
    unsigned root = fair_root_new(t, fair_arg(t, 0));
    fair_bytes bin;
    size_t length;
    char *chars;

    if (fair_get_list_length(t, fair_arg(t, 0), &length)
        && fair_get_iolist(t, fair_arg(t, 0), &bin)
        && fair_get_string(t, fair_arg(t, 0), &chars, &length, FAIR_UTF8)
        && fair_list_reverse(t, root)) {
        fair_release_bytes(t, &bin);
        fair_free(t, chars);
    }
    fair_root_drop(t, root);
}

static void sleeps(fair_task *t)
{
    fair_sleep(t, -1);
}

static void waits_fd(fair_task *t)
{
    fair_wait(t, fds[0], FAIR_READ, -1);
}

static void locks(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    fair_tick(t, 1);
    fair_mutex_unlock(t, &mutex);
}

static void calls_thread(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 1, gate_pass, NULL);
}

static ERL_NIF_TERM body(fair_task *t, void (*continue_body)(fair_task *t))
{
    char *owned = malloc(64);

    fair_defer(t, note_defer, ".");
    while (!fair_cancelled(t)) {
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
        continue_body(t);
    }
    use_cancelled(t);
    note("%c", "?nci"[enif_thread_type()]);
    free(owned);
    return 0;
}

#define BODY(WORK)                                                          \
    static ERL_NIF_TERM body_##WORK(fair_task *t)                           \
    {                                                                       \
        return body(t, WORK);                                               \
    }
BODY(ticks)
BODY(moves)
BODY(calls)
BODY(gets_list)
BODY(sleeps)
BODY(waits_fd)
BODY(locks)
BODY(calls_thread)

/* -- bodies whose call the runtime ends ------------------------------------ */

static ERL_NIF_TERM clean(fair_task *t, char *owned)
{
    if (fair_cancelled(t))
        use_cancelled(t);
    note(fair_cancelled(t) ? "%c" : "went on", "?nci"[enif_thread_type()]);
    free(owned);
    return enif_make_atom(fair_env(t), "ignored");
}

static ERL_NIF_TERM bad_root(fair_task *t)
{
    char *owned = malloc(64);

    fair_tick(t, 1);
    fair_root_drop(t, 7);
    return clean(t, owned);
}

static ERL_NIF_TERM bad_mode(fair_task *t)
{
    char *owned = malloc(64);

    fair_move(t, FAIR_THREADED);
    return clean(t, owned);
}

static ERL_NIF_TERM not_awaited(fair_task *t)
{
    char *owned = malloc(64);

    fair_sleep(t, 1000);
    return clean(t, owned);
}

static ERL_NIF_TERM deadlock(fair_task *t)
{
    char *owned = malloc(64);

    fair_mutex_lock(t, &mutex);
    fair_tick(t, 1);
    fair_mutex_lock(t, &mutex);
    return clean(t, owned);
}

/* Gets everything that needs memory; where it is out, it says so itself. */
static ERL_NIF_TERM needs_memory(fair_task *t)
{
    char *owned = malloc(64), *held = fair_alloc(t, 64);
    unsigned first = 0;
    ERL_NIF_TERM answer = 0;

    for (int i = 0; i < 40 && !fair_cancelled(t); i++) {
        unsigned root = fair_root_new(t, fair_arg(t, 0));

        first = i ? first : root;
        fair_tick(t, 1);
    }
    if (!fair_cancelled(t))
        answer = fair_root_get(t, first);
    if (held)
        memset(held, 1, 64);    /* it is there until the body has returned */
    note("c");
    free(owned);
    return answer;
}

/* Holds `mutex` until it is cancelled, and a little longer. */
static ERL_NIF_TERM holds(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    while (!fair_cancelled(t))
        fair_tick(t, 1);
    note("(");
    gate_pass(NULL);
    note(")");
    return 0;
}

static ERL_NIF_TERM takes(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    note("taken");
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM returns(fair_task *t)
{
    char *owned = malloc(64);

    fair_tick(t, 1);
    fair_tick(t, 1);
    CHECK(!fair_cancelled(t));
    free(owned);
    return fair_arg(t, 0);
}

static ErlNifFunc nifs[] = {
    UNWINDING("ticks", body_ticks, 0),
    UNWINDING("moves", body_moves, 0),
    UNWINDING("calls", body_calls, 0),
    UNWINDING("gets_list", body_gets_list, 0),
    UNWINDING("sleeps", body_sleeps, FAIR_MAY_WAIT),
    UNWINDING("waits_fd", body_waits_fd, FAIR_MAY_WAIT),
    UNWINDING("locks", body_locks, FAIR_MAY_WAIT),
    UNWINDING("calls_thread", body_calls_thread, FAIR_MAY_WAIT),
    UNWINDING("bad_root", bad_root, 0),
    UNWINDING("bad_mode", bad_mode, 0),
    UNWINDING("not_awaited", not_awaited, 0),
    UNWINDING("deadlock", deadlock, 0),
    UNWINDING("needs_memory", needs_memory, FAIR_MAY_WAIT),
    UNWINDING("holds", holds, FAIR_MAY_WAIT),
    UNWINDING("takes", takes, FAIR_MAY_WAIT),
    UNWINDING("returns", returns, 0),
};

FAIR_NIF_INIT(test_unwind, nifs, NULL, NULL, NULL)

static const struct { const char *name; bool waits; } works[] = {
    {"ticks", false}, {"moves", false}, {"calls", false},
    {"gets_list", false}, {"sleeps", true}, {"waits_fd", true},
    {"locks", false}, {"calls_thread", true}
};
enum { WORKS = sizeof works / sizeof *works };

/* -- the caller dies ------------------------------------------------------- */

/* On a thread of the pool.  The real VM may have gone on with a dirty slice: then
 * there. */
static void check_where(const char *name)
{
#ifdef VM_REAL
    if (*notes() == 'c' || *notes() == 'i')
        check_notes(*notes() == 'c' ? "c." : "i.", name);
    else
#endif
        check_notes("?.", name);
}

/* Between two slices, waiting, or with a thread at it. */
static void kill_in_all_modes(int work)
{
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        const char *name = named(works[work].name, mode);
        long before = __atomic_load_n(&rounds, __ATOMIC_RELAXED);
        vm_proc *p = call(works[work].name, mode);

        EVENTUALLY(has_begun(p, before, works[work].waits));
        vm_kill(p);
        gate_open();
        EVENTUALLY(node_stacks() == 0);
        check_where(name);
        CHECK_NUMBERS(node_counter(name, "cancels"), ==, 1);
        CHECK_NUMBERS(node_counter(name, "cleanups"), ==, 1);
        vm_free(p);
        gate_shut();
    }
}

TASKS_TEST(killed, "a body learns that its caller is dead, wherever it "
     "paused, cleans up once and not on a scheduler")
{
    CHECK(pipe(fds) == 0);
    node_set("pause_every_tick", 1);
    for (int work = 0; work < WORKS; work++)
        kill_in_all_modes(work);
    close(fds[0]);
    close(fds[1]);
}

TEST(running, "one that runs on a dirty scheduler cleans up there")
{
    static const struct { int mode, kind; const char *notes; } modes_[] = {
        {1, VM_DIRTY_CPU, "c."}, {2, VM_DIRTY_IO, "i."}
    };

    node_set("dirty_slice_ns", 1000000000);
    for (int i = 0; i < 2; i++) {
        const char *name = named("ticks", modes_[i].mode);
        long before = __atomic_load_n(&rounds, __ATOMIC_RELAXED);
        vm_proc *doomed = spawn_call(name, "x");

        vm_step(doomed);
        vm_post(vm_nth_thread(modes_[i].kind, 0), run_all_slices, doomed);
        while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < before + 10)
            ;
        vm_kill(doomed);
        vm_wait(vm_nth_thread(modes_[i].kind, 0));
        EVENTUALLY(node_stacks() == 0);
        check_notes(modes_[i].notes, name);
        CHECK_NUMBERS(node_counter(name, "cleanups"), ==, 1);
        vm_free(doomed);
    }
}

TASKS_TEST(late, "the caller's death may be reported late, by a thread that is "
     "no scheduler")
{
    vm_proc *p = call("ticks", 0);

    node_set("pause_every_tick", 1);
    vm_options.late_destructors = true;
    vm_step(p);
    vm_step(p);
    vm_free(p);
    CHECK_TEXT(notes(), "");
    vm_run_destructors();
    EVENTUALLY(node_stacks() == 0);
    CHECK_TEXT(notes(), "?.");
}

TEST(never_begun, "a body that has not begun is not notified")
{
    for (int mode = 1; mode <= 2; mode++) {
        vm_proc *p = call("ticks", mode);

        vm_step(p);
        vm_kill(p);
        ONCE_FREED(node_stacks() == 0);
        CHECK_TEXT(notes(), "");
        CHECK_NUMBERS(node_counter(named("ticks", mode), "cleanups"), ==, 0);
        vm_free(p);
    }
}

TEST(returned, "nothing is different for a body whose caller lives")
{
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        vm_proc *p = vm_spawn();
        vm_term arg = enif_make_int(vm_env(p), 17);

        node_set("pause_every_tick", (unsigned)mode % 2);
        node_await(p, named("returns", mode), 1, &arg);
        CHECK_TEXT(finished(p), "17");
        CHECK_NUMBERS(node_counter(named("returns", mode), "cleanups"), ==, 0);
    }
}

TASKS_TEST(holding, "a lock that it holds is another's once it has cleaned up")
{
    vm_proc *p = call("holds", 0), *q = call("takes", 0);

    node_set("pause_every_tick", 1);
    vm_run(p, 10);
    until_waiting(q);
    vm_kill(p);
    EVENTUALLY(gate_waiting() == 1);
    CHECK_NUMBERS(node_info("threads_busy"), ==, 1);
    vm_run(q, 20);
    CHECK_TEXT(notes(), "(");
    CHECK_NUMBERS(node_stacks(), ==, 2);
    gate_open();
    CHECK_TEXT(finished(q), "ok");
    CHECK_TEXT(notes(), "()taken");
    vm_free(p);
}

/* -- the runtime ends the call --------------------------------------------- */

TEST(refused, "where the runtime ends the call the body cleans up, and the error "
     "is raised")
{
    static const struct { const char *name, *reason; bool threaded; } errors[] = {
        {"bad_root", "bad_root", true}, {"bad_mode", "bad_mode", true},
        {"deadlock", "deadlock", true},
#ifndef FAIR_NO_TASKS           /* there it waits on the scheduler it has */
        {"not_awaited", "not_awaited", false},
#endif
    };

    CHECK(pipe(fds) == 0);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        for (int mode = 0; mode < UNWINDING_MODES - !errors[i].threaded;
             mode++) {
            const char *name = named(errors[i].name, mode);
            char should[128];

            node_set("pause_every_tick", (unsigned)mode % 2);
            snprintf(should, sizeof should,
                     "error:{fairnif,{%s,{test_unwind,%s,1}}}",
                     errors[i].reason, name);
            CHECK_TEXT(finished(call(errors[i].name, mode)), should);
            check_that(strlen(notes()) == 1 && strchr("nci?", *notes()),
                       __FILE__, __LINE__, "%s: %s", name, notes());
            clear_notes();
            CHECK_NUMBERS(node_counter(name, "cleanups"), ==, 1);
            CHECK_NUMBERS(node_counter(name, "cancels"), ==, 0);
        }
    }
    close(fds[0]);
    close(fds[1]);
}

TASKS_TEST(overloaded, "one that gets no thread in time is notified as well")
{
    vm_proc *p = spawn_await("calls_thread_yielding", "x"), *q;

    node_set("threads", 1);
    until_waiting(p);
    EVENTUALLY(gate_waiting() == 1);
    node_set("overload_ns", 1000000);
    q = spawn_await("calls_thread_yielding", "x");
    until_waiting(q);
    EVENTUALLY(vm_run(q, 1) == VM_RAISED);
    CHECK_TEXT(finished(q), "error:overloaded");
    CHECK_TEXT(notes(), "");            /* the only thread is at its work */
    vm_kill(p);
    gate_open();
    EVENTUALLY(node_stacks() == 0);
    CHECK_TEXT(notes(), "?.?.");
    vm_free(p);
}

/* At every place in turn.  What was begun is cleaned up, once. */
TEST(no_memory, "where memory is out it cleans up, and the caller gets enomem")
{
    node_set("pause_every_tick", 1);
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        bool failed = true;

        for (long n = 1; failed; n++) {
            vm_proc *p = call("needs_memory", mode);
            const char *answer;

            vm_fail(VM_F_MEMORY, n, n % 2);
            vm_finish(p);
            failed = vm_failed();
            vm_fail(0, 0, false);
            answer = outcome(p);
            check_that(failed ? strcmp(answer, "error:enomem") == 0
                       || strncmp(answer, "[0,1,2", 6) == 0
                       : strncmp(answer, "[0,1,2", 6) == 0,
                       __FILE__, __LINE__, "%s, %ld: %s",
                       named("needs_memory", mode), n, answer);
            vm_free(p);
            EVENTUALLY(node_stacks() == 0);
            CHECK(strlen(notes()) <= 1);
            clear_notes();
        }
    }
}

/* -- the library goes ------------------------------------------------------ */

TASKS_TEST(purged, "a library stays mapped until its bodies have cleaned up")
{
    vm_proc *p = call("holds", 0);
    vm_lib *old;

    node_set("pause_every_tick", 1);
    vm_run(p, 10);
    old = node_upgrade(nif_init);
    EVENTUALLY(gate_waiting() == 1);
    CHECK(vm_state(p) == VM_DEAD);
    CHECK(!vm_unmapped(old));
    gate_open();
    EVENTUALLY(vm_unmapped(old));
    CHECK_TEXT(notes(), "()");
    CHECK_NUMBERS(node_stacks(), ==, 0);
    vm_free(p);
}

TEST(slices, "the slice in which the runtime ends the call is as long as it was")
{
    for (int mode = 0; mode < UNWINDING_MODES; mode++) {
        const char *name = named("bad_root", mode);

        for (unsigned pause = 0; pause < 2; pause++) {
            node_set("pause_every_tick", pause);
            for (int i = 0; i < 10; i++) {
                const char *answer = finished(call("bad_root", mode));

                CHECK(strstr(answer, "bad_root") != NULL);
            }
        }
        clear_notes();
        check_times(name, 1000000000);
    }
}
