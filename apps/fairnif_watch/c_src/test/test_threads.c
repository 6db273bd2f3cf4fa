/*
 * test_threads.c - the names of scheduler threads, and what /proc says of a
 * thread through descriptors that stay open.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look/wait.h"
#include "check.h"
#include "read/ports.h"
#include "read/proc.h"
#include "read/threads.h"

static bool is(const char *name, enum watch__sched kind, unsigned number)
{
    enum watch__sched k;
    unsigned n;

    return watch__parse_name(name, &k, &n) && k == kind && n == number;
}

static bool is_none(const char *name)
{
    enum watch__sched k;
    unsigned n;

    return !watch__parse_name(name, &k, &n);
}

TEST(names, "the scheduler threads of OTP 25 to 29 are known by name, cut as "
     "the kernel cuts")
{
    CHECK(is("1_scheduler", K_NORMAL, 1));
    CHECK(is("1024_scheduler", K_NORMAL, 1024));
    CHECK(is("1_dirty_cpu_sch", K_DIRTY_CPU, 1));
    CHECK(is("10_dirty_cpu_sc", K_DIRTY_CPU, 10));
    CHECK(is("1024_dirty_cpu_", K_DIRTY_CPU, 1024));
    CHECK(is("1_dirty_io_sche", K_DIRTY_IO, 1));
    CHECK(is("1024_dirty_io_s", K_DIRTY_IO, 1024));
    CHECK(is("erts_sched_7", K_NORMAL, 7));
    CHECK(is("erts_dcpus_1024", K_DIRTY_CPU, 1024));
    CHECK(is("erts_dios_10", K_DIRTY_IO, 10));
}

TEST(other_names, "other threads are none, nor are names that only look so")
{
    static const char *const others[] = {
        "beam.smp", "async_1", "1_aux", "erts_aux", "erts_poll_0", "sys_sig_di",
        "erts_smsg_disp", "1_poller", "scheduler", "_scheduler", "0_scheduler",
        "1_scheduler_x", "1_dirty", "1_dirty_cp", "erts_sched_", "erts_sched_x",
        "erts_sched_1x", "erts_sched_0", "", "1", "1_"
    };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(is_none(others[i]));
}

/* -- threads of our own --------------------------------------------------- */

static int tid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool ready, end;
static _Atomic int busy_tid;

static void *sleeps(void *name)
{
    prctl(PR_SET_NAME, name);
    pthread_mutex_lock(&lock);
    tid = watch__gettid();
    ready = true;
    pthread_cond_broadcast(&cond);
    while (!end)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *spins(void *unused)
{
    _Atomic bool *ended = unused;

    atomic_store(&busy_tid, watch__gettid());
    while (!atomic_load(ended))
        ;
    return NULL;
}

static pthread_t start(char *name)
{
    pthread_t thread;

    pthread_create(&thread, NULL, sleeps, name);
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    return thread;
}

static void stop(pthread_t thread)
{
    pthread_mutex_lock(&lock);
    end = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

TEST(found, "threads are found by their names; where one is missing the names "
     "that could not be told are said")
{
    pthread_t thread = start("erts_sched_1");
    int normal[2] = {0, 0};
    struct watch__tids tids = {.count = {1, 0, 0}, .tid = {normal, NULL, NULL}};
    char names[256];

    CHECK(watch__find_threads(&tids, names, sizeof names));
    CHECK_NUMBERS(normal[0], ==, tid);
    tids.count[K_NORMAL] = 2;
    CHECK(!watch__find_threads(&tids, names, sizeof names));
    CHECK(strstr(names, "watch_test") != NULL);
    CHECK(!watch__find_threads(&tids, names, 4));   /* no room: no names */
    stop(thread);
}

TEST(namesake, "a thread that was made later and has a scheduler's name is not "
     "taken for it")
{
    pthread_t thread = start("erts_sched_1"), later;
    int normal[1] = {0};
    struct watch__tids tids = {.count = {1, 0, 0}, .tid = {normal, NULL, NULL}};
    _Atomic bool ended = false;
    char names[256];

    pthread_create(&later, NULL, spins, &ended);
    pthread_setname_np(later, "erts_sched_1");
    CHECK(watch__find_threads(&tids, names, sizeof names));
    CHECK_NUMBERS(normal[0], ==, tid);
    atomic_store(&ended, true);
    pthread_join(later, NULL);
    stop(thread);
}

TEST(sleeping, "a sleeping thread uses no processor and is seen to sleep where "
     "it does")
{
    pthread_t thread = start("x");
    struct watch__place a, b;
    uint64_t cpu;
    int fd;

    if (check_emulated())
        return;
    fd = watch__open(tid, "syscall");
    for (int i = 0; i < 2000 && watch__where(fd, &a) != RUN_SLEEPS; i++)
        usleep(1000);
    usleep(20000);              /* for the lock, perhaps; then for the end */
    CHECK(watch__where(fd, &a) == RUN_SLEEPS);
    cpu = watch__cpu(watch__cpu_clock(tid));
    CHECK(cpu != WATCH__NEVER);
    usleep(20000);
    CHECK(watch__where(fd, &b) == RUN_SLEEPS);
    CHECK_NUMBERS(watch__cpu(watch__cpu_clock(tid)), ==, cpu);
    CHECK(a.syscall == b.syscall && a.arg == b.arg && a.sp == b.sp
          && a.pc == b.pc && a.sp && a.pc);
    CHECK_TEXT(watch__syscall_name(a.syscall), "futex");
    CHECK(!watch__in_disk_sleep(tid));
    stop(thread);
    /* The kernel is done with it a little after it was joined. */
    for (int i = 0; i < 1000 && watch__where(fd, &a) != RUN_UNKNOWN; i++)
        usleep(1000);
    CHECK(watch__where(fd, &a) == RUN_UNKNOWN);
    CHECK(watch__cpu(watch__cpu_clock(tid)) == WATCH__NEVER);
    close(fd);
}

TEST(own, "a running thread is seen to run, and its clock goes on")
{
    _Atomic bool ended = false;
    pthread_t thread;
    struct watch__place place;
    clockid_t clock;
    uint64_t cpu;
    int fd;

    pthread_create(&thread, NULL, spins, &ended);
    while (!atomic_load(&busy_tid))
        usleep(1000);
    clock = watch__cpu_clock(busy_tid);
    fd = watch__open(busy_tid, "syscall");
    if (!check_emulated())
        CHECK(watch__where(fd, &place) == RUN_RUNNING);
    cpu = watch__cpu(clock);
    for (int i = 0; i < 5000 && watch__cpu(clock) < cpu + 1000000; i++)
        usleep(1000);
    CHECK(watch__cpu(clock) >= cpu + 1000000);
    CHECK(watch__where(-1, &place) == RUN_UNKNOWN);
    CHECK(watch__cpu(watch__cpu_clock(4194303)) == WATCH__NEVER);
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
    close(fd);
}

TEST(pressure, "what takes processors away is read, or is 0 where nothing says")
{
    struct watch__pressure p;
    uint64_t throttled, stolen, throttled2, stolen2;

    watch__pressure_open(&p);
    watch__pressure_read(&p, &throttled, &stolen);
    watch__pressure_read(&p, &throttled2, &stolen2);
    CHECK(throttled2 >= throttled && stolen2 >= stolen);
    watch__pressure_close(&p);
}

static unsigned burn(uint64_t ms)
{
    uint64_t until = watch__now() + ms * NS_PER_MS;
    unsigned n = 0;

    while (watch__now() < until)
        n++;
    return n;
}

/* What we use ourselves is not others', and what schedulers use is no native
 * code's. */
TEST(shares, "of what the processors do our own part is told apart, and where nothing "
     "says nobody does anything")
{
    struct watch__pressure p, none = {.stat_fd = -1};
    struct watch__shares s;
    uint64_t own;

    watch__pressure_open(&p);
    s = watch__shares(&p, 1, false);
    CHECK_NUMBERS(s.others + s.native + s.ports, ==, 0);
    own = p.own;
    burn(500);
    s = watch__shares(&p, 1, false);
    CHECK_NUMBERS(s.others, <=, 1000);
    CHECK(p.own > own);
    CHECK(p.stat_fd < 0 || (p.all > 0 && s.native > 0));
    burn(100);
    s = watch__shares(&p, 1 + 10 * NS_PER_S, false);
    CHECK_NUMBERS(s.native, ==, 0);
    s = watch__shares(&none, 1, true);
    CHECK_NUMBERS(s.others + s.native + s.ports, ==, 0);
    watch__pressure_close(&p);
}

/* The child of a child, which has no other parent by name. */
TEST(ports, "what the programs use that this one started is theirs")
{
    uint64_t before, after;
    int status;
    pid_t child;

    if (!watch__ports(&before))
        return;                 /* more processes than it looks at */
    child = fork();
    if (child == 0) {
        child = fork();
        if (child == 0)
            _exit(burn(300) == 0);
        _exit(waitpid(child, &status, 0) != child);
    }
    CHECK(waitpid(child, &status, WNOHANG) == 0);
    burn(600);
    CHECK(watch__ports(&after));
    CHECK_NUMBERS(after, >, before);
    CHECK(waitpid(child, &status, 0) == child);
}

/* Nanoseconds that are counted as the kernel's while a thread reads, and while it only counts; and
 * how long both took, of 500 ms of its own. */
struct kernel_use {
    uint64_t reads, spins, took;
};

/* Reads first: Linux divides the whole time of a thread by the ticks that it was seen in the kernel
 * and outside. */
static void *uses_kernel(void *arg)
{
    struct kernel_use *use = arg;
    uint64_t before = watch__kernel_ns(watch__gettid()), began = watch__now();
    int fd = open("/dev/zero", O_RDONLY);
    size_t size = 1 << 20;
    char *bytes = malloc(size);

    while (watch__cpu(CLOCK_THREAD_CPUTIME_ID) < 300 * NS_PER_MS)
        CHECK(syscall(SYS_read, fd, bytes, size) == (long)size);
    use->reads = watch__kernel_ns(watch__gettid()) - before;
    while (watch__cpu(CLOCK_THREAD_CPUTIME_ID) < 500 * NS_PER_MS)
        for (volatile int i = 0; i < 100000; i++)
            continue;
    use->spins = watch__kernel_ns(watch__gettid()) - before - use->reads;
    use->took = watch__now() - began;
    free(bytes);
    close(fd);
    return NULL;
}

TEST(kernel, "what a thread uses in the kernel is counted, whatever the thread is "
     "called, and what it uses itself is not")
{
    static const char *const names[] = {"x", "a) R 1 2 3", ") D (", "((("};
    struct kernel_use use;
    pthread_t thread;
    bool counted, disturbed;
    char name[17] = "";
    int tries = 10;

    prctl(PR_GET_NAME, name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        prctl(PR_SET_NAME, names[i]);
        CHECK(watch__kernel_ns(watch__gettid()) != WATCH__NEVER);
        CHECK(!watch__in_disk_sleep(watch__gettid()));
    }
    prctl(PR_SET_NAME, name);
    /* Ticks say nothing of a thread that other programs take turns with. */
    do {
        CHECK(pthread_create(&thread, NULL, uses_kernel, &use) == 0);
        pthread_join(thread, NULL);
        counted = use.reads > 150 * NS_PER_MS && use.reads < 400 * NS_PER_MS
            && use.spins < 100 * NS_PER_MS;
        disturbed = use.took > 600 * NS_PER_MS;
    } while (!counted && disturbed && --tries > 0);
    if (!counted && disturbed)
        fprintf(stderr, "kernel: other programs keep the machine busy: can't say\n");
    else
        CHECK(counted);
    CHECK(watch__kernel_ns(4194303) == WATCH__NEVER);
}
