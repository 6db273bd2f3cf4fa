/*
 * test_capture.c - signals to running threads: whose copy arrives, what a late
 * handler does, and what is left behind.
 *
 * The threads spin in clock_gettime: ThreadSanitizer runs handlers only where
 * its own functions are called.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, STACK = 2 << 20, LONG_NS = 200000000 };

struct spinner {
    pthread_t thread;
    char *stack;
    int tid;
    bool leave, block, blocked;
};

static struct spinner spinners[THREADS];
static struct watch__snapshot snapshot;

static void block_all(bool block)
{
    sigset_t set;

    sigfillset(&set);
    pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static bool on(bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(bool *flag, bool value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static void *spin(void *arg)
{
    struct spinner *s = arg;

    __atomic_store_n(&s->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!on(&s->leave)) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        if (on(&s->block) != on(&s->blocked)) {
            block_all(on(&s->block));
            set(&s->blocked, on(&s->block));
        }
        errno = 4711;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        if (errno != 4711)
            abort();
    }
    return NULL;
}

static void start(struct spinner *s)
{
    pthread_attr_t attr;

    memset(s, 0, sizeof *s);
    s->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, s->stack, STACK);
    if (pthread_create(&s->thread, &attr, spin, s) != 0)
        abort();
    pthread_attr_destroy(&attr);
    while (__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
}

static void stop(struct spinner *s)
{
    set(&s->leave, true);
    pthread_join(s->thread, NULL);
    munmap(s->stack, STACK);
}

static void block(struct spinner *s, bool value)
{
    set(&s->block, value);
    while (on(&s->blocked) != value)
        usleep(1000);
}

/* Taken of this thread and of no other. */
static bool is_of(const struct spinner *s)
{
    uint64_t sp = snapshot.regs.sp, top = (uintptr_t)s->stack + STACK;

    return sp >= (uintptr_t)s->stack && sp < top && snapshot.regs.pc != 0
        && !snapshot.slept
        && snapshot.from <= sp
        && snapshot.size >= (top - sp < WATCH__STACK ? top - snapshot.from
                                                     : WATCH__STACK);
}

static enum watch__taken take(const struct spinner *s, uint64_t wait_ns)
{
    memset(&snapshot.regs, 0, sizeof snapshot.regs);
    snapshot.size = 0;
    return watch__take_running(&snapshot,
                               __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE),
                               wait_ns);
}

/* The machine may be busy: a thread may not run for long. */
static enum watch__taken take_patiently(const struct spinner *s)
{
    enum watch__taken taken = TAKEN_LATE;

    for (int i = 0; i < 600; i++) {
        taken = take(s, LONG_NS);
        if (taken != TAKEN_LATE && taken != TAKEN_BUSY)
            break;
        usleep(1000);
    }
    return taken;
}

static int our_signal(void)
{
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++) {
        struct sigaction now;

        if (sigaction(n, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO)
            return n;
    }
    return 0;
}

TEST(storm, "ten thousand copies are each of the thread that was asked")
{
    int count = (int)(10000 * check_storm()), taken = 0, late = 0, tries = 0;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    for (int i = 0; i < THREADS; i++)
        start(&spinners[i]);
    while (taken < count && tries++ < 100 * count) {
        const struct spinner *s = &spinners[tries % THREADS];

        /* Some without patience, so that handlers come late. */
        switch (take(s, tries % 3 ? LONG_NS : 0)) {
        case TAKEN: taken++; CHECK(is_of(s)); break;
        case TAKEN_LATE: late++; break;
        case TAKEN_BUSY: break;
        default: CHECK(!"taken, late or busy");
        }
    }
    CHECK_NUMBERS(taken, ==, count);
    CHECK_NUMBERS(late, >, 0);
    CHECK(watch__stack_stop());
    CHECK_NUMBERS(our_signal(), ==, 0);
    for (int i = 0; i < THREADS; i++)
        stop(&spinners[i]);
}

TEST(start_stop, "starting and stopping under way leaves no handler and no "
     "signal")
{
    int count = (int)(60 * check_storm());

    for (int i = 0; i < THREADS; i++)
        start(&spinners[i]);
    for (int i = 0; i < count; i++) {
        CHECK_NUMBERS(watch__stack_start(true), ==, 0);
        CHECK(our_signal() >= SIGRTMIN + 4);
        for (int k = 0; k < THREADS; k++)
            take(&spinners[k], 0);      /* handled after we looked away */
        CHECK(watch__stack_stop());
        CHECK_NUMBERS(our_signal(), ==, 0);
    }
    for (int i = 0; i < THREADS; i++)
        stop(&spinners[i]);
}

TEST(late, "a handler that comes late disturbs nothing")
{
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    start(&spinners[0]);
    start(&spinners[1]);
    for (int i = 0; i < 20; i++) {
        block(&spinners[0], true);
        CHECK_NUMBERS(take(&spinners[0], 1000000), !=, TAKEN);
        CHECK_NUMBERS(take_patiently(&spinners[1]), ==, TAKEN);
        CHECK(is_of(&spinners[1]));
        block(&spinners[0], false);
        CHECK_NUMBERS(take_patiently(&spinners[1]), ==, TAKEN);
        CHECK(is_of(&spinners[1]));
        CHECK_NUMBERS(take_patiently(&spinners[0]), ==, TAKEN);
        CHECK(is_of(&spinners[0]));
    }
    CHECK(watch__stack_stop());
    stop(&spinners[0]);
    stop(&spinners[1]);
}

static bool shows_late(const struct spinner *s)
{
    enum watch__taken taken = TAKEN_LATE;

    memset(&snapshot.regs, 0, sizeof snapshot.regs);
    for (int i = 0; i < 5000 && taken == TAKEN_LATE; i++) {
        taken = watch__take_late(&snapshot, s->tid);
        if (taken == TAKEN_LATE)
            usleep(1000);
    }
    return taken == TAKEN && is_of(s);
}

TEST(shown, "what a thread shows too late can be had; not when another one was "
     "asked meanwhile, but for who asks for it again")
{
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    start(&spinners[0]);
    start(&spinners[1]);
    CHECK_NUMBERS(watch__take_late(&snapshot, spinners[0].tid), ==, TAKEN_LATE);
    for (int i = 0; i < 20; i++) {
        enum watch__taken taken = TAKEN_BUSY;

        block(&spinners[0], true);
        while (taken == TAKEN_BUSY)
            taken = take(&spinners[0], 1000000);
        CHECK_NUMBERS(taken, ==, TAKEN_LATE);
        CHECK_NUMBERS(watch__take_late(&snapshot, spinners[0].tid), ==,
                      TAKEN_LATE);
        block(&spinners[0], false);
        CHECK(shows_late(&spinners[0]));
        /* Once. */
        CHECK_NUMBERS(watch__take_late(&snapshot, spinners[0].tid), ==,
                      TAKEN_LATE);
        /* Nor is it another one's, nor there when another one was asked. */
        block(&spinners[0], true);
        for (taken = TAKEN_BUSY; taken == TAKEN_BUSY; )
            taken = take(&spinners[0], 1000000);
        CHECK_NUMBERS(watch__take_late(&snapshot, spinners[1].tid), ==,
                      TAKEN_LATE);
        CHECK_NUMBERS(take_patiently(&spinners[1]), ==, TAKEN);
        CHECK(is_of(&spinners[1]));
        if (i % 2) {
            CHECK_NUMBERS(watch__take_late(&snapshot, spinners[0].tid), ==,
                          TAKEN_LATE);
            block(&spinners[0], false);
            CHECK(shows_late(&spinners[0]));
        } else {
            block(&spinners[0], false);
            CHECK_NUMBERS(take_patiently(&spinners[1]), ==, TAKEN);
            CHECK_NUMBERS(watch__take_late(&snapshot, spinners[0].tid), ==,
                          TAKEN_LATE);
        }
        CHECK_NUMBERS(take_patiently(&spinners[0]), ==, TAKEN);
        CHECK(is_of(&spinners[0]));
    }
    CHECK(watch__stack_stop());
    CHECK_NUMBERS(watch__take_late(&snapshot, spinners[0].tid), ==, TAKEN_LATE);
    stop(&spinners[0]);
    stop(&spinners[1]);
}

TEST(pending, "a signal that a thread never takes is dropped at the end")
{
    enum watch__taken taken = TAKEN_BUSY;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    start(&spinners[0]);
    block(&spinners[0], true);
    for (int i = 0; i < 1000 && taken == TAKEN_BUSY; i++) {
        taken = take(&spinners[0], 1000000);
        usleep(1000);
    }
    CHECK_NUMBERS(taken, ==, TAKEN_LATE);
    CHECK(watch__stack_stop());
    CHECK_NUMBERS(our_signal(), ==, 0);
    block(&spinners[0], false);         /* else it would die of it now */
    stop(&spinners[0]);
}

TEST(unseen, "where threads can't be looked at none is said to be out of the "
     "handler")
{
    struct rlimit files, none = {0};

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    start(&spinners[0]);
    CHECK_NUMBERS(take_patiently(&spinners[0]), ==, TAKEN);
    CHECK_NUMBERS(getrlimit(RLIMIT_NOFILE, &files), ==, 0);
    none.rlim_max = files.rlim_max;
    CHECK_NUMBERS(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    CHECK_NUMBERS(take(&spinners[0], LONG_NS), ==, TAKEN_DENIED);
    CHECK(!watch__stack_stop());
    CHECK_NUMBERS(setrlimit(RLIMIT_NOFILE, &files), ==, 0);
    stop(&spinners[0]);
}

/* A debugger, in a process of its own: says 'a' once it is attached, 's' once
 * the thread stands with a signal, and gives it that signal when told. */
static void debug(int tid, int out, int in)
{
    int status = 0, n;
    char c;

    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 || write(out, "a", 1) != 1
        || waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status)
        || write(out, "s", 1) != 1 || read(in, &c, 1) != 1)
        _exit(1);
    n = WSTOPSIG(status);
    ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)n);
    /* Its end is ours, and the other way round. */
    read(in, &c, 1);
    _exit(0);
}

TEST(debugger, "a signal that a debugger holds back does no harm after the end")
{
    int there[2], back[2];
    pid_t debugger;
    char c = 0;

    if (check_emulated())
        return;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    start(&spinners[0]);
    while (__atomic_load_n(&spinners[0].tid, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if ((debugger = fork()) == 0) {
        close(there[0]);
        close(back[1]);
        debug(spinners[0].tid, there[1], back[0]);
    }
    close(there[1]);
    close(back[0]);
    if (read(there[0], &c, 1) == 1 && c == 'a') {
        /* Perhaps not at the first try: it may have stood just then. */
        while (take(&spinners[0], LONG_NS) == TAKEN)
            usleep(1000);
        CHECK_NUMBERS(read(there[0], &c, 1), ==, 1);
        CHECK(!watch__stack_stop());
        CHECK_NUMBERS(write(back[1], &c, 1), ==, 1);
        usleep(100000);         /* else it would die of it now */
    } else {
        CHECK(watch__stack_stop()); /* the system allows no debugger */
    }
    close(back[1]);
    waitpid(debugger, NULL, 0);
    stop(&spinners[0]);
}

static void *sleep_on(void *arg)
{
    __atomic_store_n((int *)arg, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    pause();
    return NULL;
}

TEST(asleep, "a thread that sleeps gets no signal")
{
    enum watch__taken taken = TAKEN;
    pthread_t thread;
    int tid = 0;

    if (check_emulated())
        return;
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    pthread_create(&thread, NULL, sleep_on, &tid);
    while (__atomic_load_n(&tid, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    /* It may take a while until it does. */
    for (int i = 0; i < 2000 && taken != TAKEN_BUSY; i++) {
        usleep(1000);
        if (watch__take_sleeping(&snapshot, tid) == TAKEN)
            taken = watch__take_running(&snapshot, tid, LONG_NS);
    }
    CHECK_NUMBERS(taken, ==, TAKEN_BUSY);
    CHECK_NUMBERS(watch__take_sleeping(&snapshot, tid), ==, TAKEN);
    CHECK(snapshot.slept);
#if defined(__x86_64__)
    CHECK_NUMBERS(snapshot.syscall, ==, SYS_pause);
#endif
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    /* The kernel is done with it a little after it was joined. */
    for (int i = 0; i < 1000
                    && watch__take_sleeping(&snapshot, tid) != TAKEN_GONE; i++)
        usleep(1000);
    CHECK_NUMBERS(watch__take_running(&snapshot, tid, 0), ==, TAKEN_GONE);
    CHECK_NUMBERS(watch__take_sleeping(&snapshot, tid), ==, TAKEN_GONE);
    CHECK(watch__stack_stop());
}

static void other_handler(int n, siginfo_t *info, void *context)
{
    (void)n, (void)info, (void)context;
}

TEST(taken_over, "who takes our signal over keeps it")
{
    struct sigaction theirs = {.sa_flags = SA_SIGINFO}, now;
    int n;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    start(&spinners[0]);
    CHECK_NUMBERS(take_patiently(&spinners[0]), ==, TAKEN);
    n = our_signal();
    theirs.sa_sigaction = other_handler;
    CHECK_NUMBERS(sigaction(n, &theirs, NULL), ==, 0);
    CHECK_NUMBERS(take(&spinners[0], LONG_NS), ==, TAKEN_OFF);
    CHECK(watch__stack_stop());
    CHECK_NUMBERS(sigaction(n, NULL, &now), ==, 0);
    CHECK(now.sa_sigaction == other_handler);
    /* and gives us another one. */
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    CHECK_NUMBERS(take_patiently(&spinners[0]), ==, TAKEN);
    CHECK(watch__stack_stop());
    stop(&spinners[0]);
}

TEST(off, "without signals no thread is interrupted")
{
    CHECK_NUMBERS(watch__stack_start(false), ==, 0);
    start(&spinners[0]);
    CHECK_NUMBERS(take(&spinners[0], LONG_NS), ==, TAKEN_OFF);
    CHECK_NUMBERS(our_signal(), ==, 0);
    CHECK(watch__stack_stop());
    stop(&spinners[0]);
}

TEST(none_free, "where all signals are used none is taken")
{
    struct sigaction theirs = {.sa_flags = SA_SIGINFO};

    theirs.sa_sigaction = other_handler;
    for (int n = SIGRTMIN + 4; n <= SIGRTMAX; n++)
        sigaction(n, &theirs, NULL);
    CHECK_NUMBERS(watch__stack_start(true), ==, EBUSY);
    CHECK(watch__stack_stop());
}
