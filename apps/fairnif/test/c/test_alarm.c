/*
 * test_alarm.c - fair_alarm: a body that cannot tick is notified in time, on
 * the thread where it is, and only while it is at work.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

/* It holds signals back, and one may come a slice late. */
#if defined(__SANITIZE_THREAD__)
#  define EXACTLY >=
enum { LATE = 5 };
#else
#  define EXACTLY ==
enum { LATE = 0 };
#endif

/* What a library has that can be made to return. */
static struct machine {
    volatile sig_atomic_t stopped;
    _Atomic int rings;
    pthread_t rang_on;
    volatile bool deaf;         /* it ignores the first alarm */
} machine;

static void ring(void *arg)
{
    struct machine *m = arg;

    m->rang_on = pthread_self();
    m->rings++;
    m->stopped = !m->deaf;
    m->deaf = false;
    errno = EDOM;               /* which no caller may see */
}

/* Without a system call, but where signals are seen in those only. */
static void work(struct machine *m)
{
    while (!m->stopped)
        if (LATE)
            usleep(1);
}

/* NULL, or what was wrong. */
static const char *run(struct machine *m)
{
    m->stopped = 0;
    errno = 0;
    work(m);
    return errno && !LATE ? "errno" : !pthread_equal(m->rang_on, pthread_self())
        ? "elsewhere" : NULL;
}

/* Slices -> Yields */
static ERL_NIF_TERM run_slices(fair_task *t, struct machine *m)
{
    const char *wrong = NULL;
    unsigned slices;

    if (!fair_get_uint(t, fair_arg(t, 0), &slices))
        return fair_badarg(t);
    if (!fair_alarm(t, ring, m))
        wrong = "none";
    for (unsigned i = 0; i < slices && !wrong; i++) {
        wrong = run(m);
        fair_tick(t, 1);
    }
    fair_alarm(t, NULL, NULL);
    return wrong ? enif_make_atom(fair_env(t), wrong)
        : enif_make_uint64(fair_env(t), fair_yields(t));
}

static ERL_NIF_TERM runs(fair_task *t)
{
    return run_slices(t, &machine);
}

/* On a thread of its own, since all wait at the gate. */
static ERL_NIF_TERM runs_apart(fair_task *t)
{
    struct machine mine = {0};

    gate_pass(NULL);
    return run_slices(t, &mine);
}

/* Returns while its alarm is on. */
static ERL_NIF_TERM forgets(fair_task *t)
{
    fair_alarm(t, ring, &machine);
    run(&machine);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM runs_on(fair_task *t)
{
    fair_alarm(t, ring, &machine);
    while (run(&machine) == NULL)
        fair_tick(t, 1);
    return enif_make_atom(fair_env(t), "wrong");
}

static void run_apart(void *arg)
{
    run(arg);
}

static void set_apart(void *arg)
{
    CHECK_NUMBERS(fair_alarm(arg, ring, &machine), ==, 0);
}

static ERL_NIF_TERM calls(fair_task *t)
{
    fair_alarm(t, ring, &machine);
    fair_offload(t, FAIR_DIRTY_CPU, 0, run_apart, &machine);
    fair_offload(t, FAIR_NORMAL, 0, set_apart, t);
    fair_alarm(t, NULL, NULL);
    return fair_arg(t, 0);
}

/* The library has to be made to return also where the body is cancelled. */
static ERL_NIF_TERM cleans(fair_task *t)
{
    fair_alarm(t, ring, &machine);
    while (!fair_cancelled(t)) {
        run(&machine);
        fair_tick(t, 1);
    }
    run(&machine);
    fair_alarm(t, NULL, NULL);
    note(fair_alarm(t, ring, &machine) ? "another" : "cleaned");
    return fair_arg(t, 0);
}

static void limit_timers(rlim_t most)
{
    struct rlimit limit;

    getrlimit(RLIMIT_SIGPENDING, &limit);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    setrlimit(RLIMIT_SIGPENDING, &limit);
}

/* Continues where no timer can be had: it is notified at once there, in each
 * slice, and each tick ends one. */
static ERL_NIF_TERM goes_without(fair_task *t)
{
    fair_alarm(t, ring, &machine);
    run(&machine);
    limit_timers(0);
    for (int i = 0; i < 3; i++) {
        uint64_t before = fair_yields(t);

        machine.stopped = 0;
        fair_tick(t, 1);
        CHECK_NUMBERS(fair_yields(t), ==, before + modes[1].yields);
        work(&machine);
    }
    limit_timers(RLIM_INFINITY);
    return fair_arg(t, 0);
}

static const fair_options slow_slices = {.body = runs, .slice_us = 2000};

static ErlNifFunc nifs[] = {
    ALL_MODES("runs", 1, runs),
    FAIR_NIF("runs_threaded", 1, runs, FAIR_THREADED),
    FAIR_NIF("runs_apart", 1, runs_apart, FAIR_THREADED),
    FAIR_NIF_OPTIONS("runs_slow", 1, &slow_slices, FAIR_NORMAL),
    FAIR_NIF("forgets", 1, forgets, FAIR_AUTO),
    FAIR_NIF("runs_on", 0, runs_on, FAIR_NORMAL),
    FAIR_NIF("runs_on_threaded", 0, runs_on, FAIR_THREADED),
    FAIR_NIF("calls", 1, calls, FAIR_AUTO),
    FAIR_NIF("cleans", 1, cleans, FAIR_NORMAL | FAIR_CLEANUP),
    FAIR_NIF("goes_without", 1, goes_without, FAIR_NORMAL),
};
FAIR_NIF_INIT(test_alarm, nifs, NULL, NULL, NULL)

/* No alarm rings any more. */
static bool is_quiet(void)
{
    int before = machine.rings;

    for (int i = 0; i < 20; i++)
        nap();
    return machine.rings == before;
}

TEST(every_slice, "a body that cannot tick gets an alarm in each slice, in "
     "every mode and on every thread")
{
    for (int i = 0; i < 6; i++) {
        int yields = atoi(finished(spawn_call(in_mode("runs", &modes[i]),
                                              "20")));

        CHECK_NUMBERS(yields, EXACTLY, modes[i].yields ? 20 - LATE : 0);
    }
    CHECK_NUMBERS(machine.rings, >=, 6 * 20);
    CHECK_TEXT(finished(spawn_await("runs_threaded", "20")), "0");
    CHECK(is_quiet());
}

TEST(slice, "it rings when the slice is up, not earlier")
{
    uint64_t begin = vm_now(), most = modes[1].yields ? 2000000 : 1000000;

    CHECK_TEXT(finished(spawn_call("runs_slow", "10")),
               modes[1].yields ? "10" : "0");
    CHECK_NUMBERS(vm_now() - begin, >=, 10 * most * 8 / 10);
}

TEST(deaf, "it rings again where a library ignored it")
{
    machine.deaf = true;
    CHECK_TEXT(finished(spawn_call("runs_yielding", "1")),
               modes[1].yields ? "1" : "0");
    CHECK_NUMBERS(machine.rings, >=, 2);
}

TEST(forgotten, "an alarm ends with its call")
{
    CHECK_TEXT(finished(spawn_call("forgets", "x")), "x");
    CHECK(is_quiet());
}

TEST(apart, "it rings in what fair_offload runs, and cannot be set there")
{
    CHECK_TEXT(finished(spawn_call("calls", "x")), "x");
    CHECK_NUMBERS(machine.rings, >=, 1);
    CHECK_NUMBERS(node_counter("calls", "rule_violations"), ==, 1);
    CHECK(is_quiet());
}

static void run_on_two_threads(void)
{
    vm_proc *p[2];

    gate_shut();
    for (int i = 0; i < 2; i++) {
        p[i] = spawn_await("runs_apart", "1");
        until_waiting(p[i]);
    }
    EVENTUALLY(gate_waiting() == 2);
    gate_open();
    for (int i = 0; i < 2; i++)
        CHECK_TEXT(finished(p[i]), "0");
}

TEST(thread_ends, "the next thread of the pool has a timer of its own")
{
    node_set("threads", 2);
    run_on_two_threads();
    node_set("threads", 1);
    EVENTUALLY(node_info("threads_started") == 1);
    node_set("threads", 2);
    run_on_two_threads();
}

#ifndef FAIR_NO_TASKS           /* where a body is not left before it ends */
TEST(killed, "it does not ring for a body that is gone")
{
    for (int i = 0; i < 2; i++) {
        vm_proc *p = i == 0 ? spawn_call("runs_on", "")
            : spawn_await("runs_on_threaded", "");
        int before = machine.rings;

        EVENTUALLY((vm_run(p, 1), machine.rings > before + 3));
        vm_kill(p);
        vm_free(p);
        EVENTUALLY(node_stacks() == 0);
        CHECK(is_quiet());
    }
}

TEST(cancelled, "a body that cleans up is still notified, once")
{
    vm_proc *p = spawn_call("cleans", "x");

    EVENTUALLY((vm_run(p, 1), machine.rings > 3));
    vm_kill(p);
    vm_free(p);
    EVENTUALLY(is_noted("cleaned"));
    EVENTUALLY(node_stacks() == 0);
    CHECK(is_quiet());
}

#endif

#ifndef VM_REAL                 /* whose threads keep their timers */
static void block_signals(void *set)
{
    pthread_sigmask(SIG_BLOCK, set, NULL);
}

TEST(blocked, "a signal that the node's parent has blocked is let through")
{
    sigset_t all;

    sigfillset(&all);
    for (int kind = VM_NORMAL; kind < VM_KINDS; kind++)
        for (int i = 0; i < 2; i++)
            vm_on(kind, block_signals, &all);
    CHECK_TEXT(finished(spawn_call("runs_yielding", "4")),
               modes[1].yields ? "4" : "0");
}

TEST(no_timers, "where no timer can be had there is no alarm, and the body "
     "is notified at once")
{
    limit_timers(0);
    CHECK_TEXT(finished(spawn_call("runs_auto", "3")), "none");
    limit_timers(RLIM_INFINITY);
    CHECK_TEXT(finished(spawn_call("goes_without", "x")), "x");
    CHECK(is_quiet());
}

static int our_signal(void)
{
    struct sigaction now;

    for (int n = SIGRTMIN; n <= SIGRTMAX; n++)
        if (sigaction(n, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO)
            return n;
    return 0;
}

static void send_signal(void *arg)
{
    (void)arg;
    raise(our_signal());
}

TEST(others, "a signal of another process rings nothing; a signal that is in "
     "use is not taken")
{
    struct sigaction theirs = {.sa_handler = SIG_IGN}, now;
    int n = SIGRTMIN + 4;

    sigaction(n, &theirs, NULL);
    finished(spawn_call("runs_yielding", "3"));
    CHECK_NUMBERS(our_signal(), >, n);
    sigaction(n, NULL, &now);
    CHECK(now.sa_handler == SIG_IGN);
    machine.rings = 0;
    for (int kind = VM_NORMAL; kind < VM_KINDS; kind++)
        vm_on(kind, send_signal, NULL);
    send_signal(NULL);
    CHECK_NUMBERS(machine.rings, ==, 0);
}
#endif
