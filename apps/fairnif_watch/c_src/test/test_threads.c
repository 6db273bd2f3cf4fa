/*
 * test_threads.c - the names of scheduler threads, and what /proc says of a
 * thread through descriptors that stay open.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../watch.h"
#include "check.h"

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

TEST(processor, "a thread's processor is known, whatever the thread is called")
{
    static const char *const names[] = {"x", "a) R 1 2 3", ") D (", "((("};
    char before[17] = "";

    prctl(PR_GET_NAME, before);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool same = false;

        prctl(PR_SET_NAME, names[i]);
        for (int tries = 0; tries < 100 && !same; tries++)
            same = watch__processor(watch__gettid()) == sched_getcpu();
        CHECK(same);
        CHECK(!watch__in_disk_sleep(watch__gettid()));
    }
    prctl(PR_SET_NAME, before);
    CHECK_NUMBERS(watch__processor(4194303), ==, -1);
}

static void spin(uint64_t ns)
{
    uint64_t end = watch__now() + ns;

    while (watch__now() < end)
        continue;
}

TEST(counted, "a processor that works is counted, its time and what was stolen "
     "of it; one that does not exist is not")
{
    struct watch__pressure p, closed = {.stat_fd = -1};
    struct watch__counted a = {0}, b = {0};
    uint64_t begin;
    double took;

    watch__pressure_open(&p);
    CHECK(watch__counted(&p, sched_getcpu(), &a));
    for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_ONLN); cpu++)
        CHECK(watch__counted(&p, cpu, &b) && b.own_ns > 0);
    CHECK(!watch__counted(&p, 1000000, &b));
    CHECK(!watch__counted(&p, -1, &b));
    CHECK(!watch__counted(&closed, 0, &b));
    /* Whatever that one does, it is counted. */
    CHECK(watch__counted(&p, 0, &a));
    begin = watch__now();
    spin(500 * NS_PER_MS);
    CHECK(watch__counted(&p, 0, &b));
    took = (double)(watch__now() - begin);
    b.own_ns += b.stolen_ns - a.stolen_ns;
    CHECK((double)(b.own_ns - a.own_ns) > 0.8 * took);
    CHECK((double)(b.own_ns - a.own_ns) < 1.2 * took);
    watch__pressure_close(&p);
}

/* A /proc/stat of a machine with so many processors, each of which lost `lost`
 * ticks more than its number. */
enum { MANY = 300 };

static void write_stat(FILE *f, unsigned lost)
{
    rewind(f);
    fprintf(f, "cpu  1 1 1 1 1 1 1 %u 0 0\n", 99 * MANY);
    for (unsigned i = 0; i < MANY; i++)
        fprintf(f, "cpu%u 1000000 1 20000 300000 4 5 6 %u 0 0\n", i, i + lost);
    fprintf(f, "intr 1");
    for (unsigned i = 0; i < 5000; i++)
        fprintf(f, " 0");
    fprintf(f, "\nctxt 5\n");
    fflush(f);
}

TEST(many, "of hundreds of processors each is found, and what was stolen of it "
     "since then")
{
    uint64_t first[MANY], second[MANY];
    struct watch__pressure p = {.cgroup_fd = -1, .tick_ns = 10 * NS_PER_MS,
                                .processors = MANY,
                                .kept = {{0, first}, {0, second}}};
    const uint64_t second_ns = NS_PER_S, tick = p.tick_ns;
    struct watch__counted c;
    FILE *f = tmpfile();

    p.stat_fd = fileno(f);
    write_stat(f, 100);
    for (int i = 0; i < MANY; i++) {
        CHECK(watch__counted(&p, i, &c));
        CHECK_NUMBERS(c.own_ns, ==, 1320016 * tick);
        CHECK_NUMBERS(c.stolen_ns, ==, (uint64_t)(i + 100) * tick);
    }
    CHECK(!watch__counted(&p, MANY, &c));
    CHECK_NUMBERS(watch__stolen_since(&p, 7, second_ns), ==, 0);
    watch__pressure_keep(&p, 10 * second_ns);
    write_stat(f, 110);
    CHECK_NUMBERS(watch__stolen_since(&p, 7, 10 * second_ns), ==, 10 * tick);
    CHECK_NUMBERS(watch__stolen_since(&p, 299, 11 * second_ns), ==, 10 * tick);
    /* Too soon to be kept anew. */
    watch__pressure_keep(&p, 10 * second_ns + second_ns / 2);
    CHECK_NUMBERS(watch__stolen_since(&p, 7, 11 * second_ns), ==, 10 * tick);
    /* The older one is for what was poked before the newer one. */
    watch__pressure_keep(&p, 11 * second_ns);
    write_stat(f, 115);
    CHECK_NUMBERS(watch__stolen_since(&p, 7, 11 * second_ns), ==, 5 * tick);
    CHECK_NUMBERS(watch__stolen_since(&p, 7, 11 * second_ns - 1), ==, 15 * tick);
    CHECK_NUMBERS(watch__stolen_since(&p, MANY, 11 * second_ns), ==, 0);
    CHECK_NUMBERS(watch__stolen_since(&p, -1, 11 * second_ns), ==, 0);
    fclose(f);
}

TEST(missing, "a processor of which little is counted was not there, where the "
     "time is long enough to say so; else what was stolen counts")
{
    struct watch__pressure p = {.tick_ns = 10 * NS_PER_MS};
    struct watch__counted from = {NS_PER_S, NS_PER_S}, to = from;

    CHECK_NUMBERS(watch__missing(&p, &from, &to, 59 * NS_PER_MS), ==, 0);
    CHECK_NUMBERS(watch__missing(&p, &from, &to, 60 * NS_PER_MS), ==,
                  60 * NS_PER_MS);
    to.own_ns += 30 * NS_PER_MS;
    CHECK_NUMBERS(watch__missing(&p, &from, &to, 60 * NS_PER_MS), ==, 0);
    to.stolen_ns += 20 * NS_PER_MS;
    CHECK_NUMBERS(watch__missing(&p, &from, &to, 50 * NS_PER_MS), ==,
                  20 * NS_PER_MS);
}
