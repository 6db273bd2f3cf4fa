/*
 * test_outside.c - another process, and what it left when it died, looked at from
 * outside.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "outside/attach.h"
#include "outside/dead.h"
#include "outside/erlang.h"
#include "outside/print.h"
#include "outside/target.h"
#include "read/source.h"
#include "thread.h"

/* -- another process ------------------------------------------------------ */

/* What it shares with who looks. */
struct shared {
    _Atomic int tid, interrupted;
    _Atomic uint64_t rounds;
};

static struct shared *share(void)
{
    return mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Like a node: a thread is called as a scheduler is. */
static pid_t child(void (*fn)(struct shared *), struct shared *s)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "1_scheduler");
        s->tid = getpid();
        fn(s);
        _exit(0);
    }
    for (int i = 0; i < 60000 && !s->tid; i++)
        usleep(1000);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void spins_in_chain(struct shared *s)
{
    struct runner r = {.chain = {.yields = true}};

    s->tid = 0;
    runner_start(&r, "chain_nofp.so");
    s->tid = r.tid;
    for (;;)
        pause();
}

static bool has_frame(const struct watch__frame *frames, unsigned n,
                      const char *symbol)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(frames[i].symbol, symbol))
            return true;
    return false;
}

TEST(stopped, "a thread of another process is stopped, copied and let go; its "
     "frames have their names")
{
    static struct watch__stack s;
    static struct watch__source source;
    struct shared *shared = share();
    pid_t pid = child(spins_in_chain, shared);
    struct watch__maps *maps;
    uint64_t paused = 0;

    if (check_emulated())
        return end_child(pid);
    source.pid = pid;
    watch__source_set(&source);
    watch__read_stop();
    watch__read_start();
    maps = watch__maps_new();
    s.end = END_NO_TABLE;
    for (int i = 0; i < 1000 && s.end != END_WHOLE; i++) {
        s.taken = watch__take_stopped(&s.snapshot, shared->tid,
                                      60 * NS_PER_S, &paused);
        CHECK_NUMBERS(s.taken, ==, TAKEN);
        s.count = watch__unwind(maps, &s.snapshot, s.frames, WATCH__FRAMES,
                                &s.end, &s.last);
        if (s.count == 0)
            s.end = END_NO_TABLE;
    }
    for (unsigned i = 0; i < s.count; i++)
        watch__name(maps, &s.frames[i]);
    CHECK(has_frame(s.frames, s.count, "chain_inner"));
    CHECK(has_frame(s.frames, s.count, "chain_outer"));
    CHECK_NUMBERS(paused, >, 0);
    end_child(pid);
    CHECK_NUMBERS(watch__take_stopped(&s.snapshot, shared->tid, NS_PER_S,
                                      &paused), ==, TAKEN_GONE);
    watch__maps_free(maps);
}

/* The kernel ends it with EINTR whenever its thread is stopped. */
static void sleeps_in_epoll(struct shared *s)
{
    struct epoll_event event;
    int fd = epoll_create1(0);

    for (;; s->rounds++)
        if (epoll_wait(fd, &event, 1, 3600000) < 0)
            s->interrupted++;
}

TEST(undisturbed, "a thread that sleeps is not woken up by being looked at")
{
    struct shared *shared = share();
    pid_t pid = child(sleeps_in_epoll, shared);
    char why[WATCH__WHY] = "";

    if (check_emulated())
        return end_child(pid);
    CHECK(watch__target_set(pid, why));
    for (int i = 0; i < 20; i++) {
        struct watch__dump d = {.pid = pid, .stops = true};

        CHECK(watch__dump_start(&d));
        watch__dump_look(&d, NS_PER_MS, watch__erlang_seen);
        CHECK_NUMBERS(d.count, ==, 1);
        CHECK_NUMBERS(d.lines[0].role, ==, R_NORMAL);
        if (i > 0)              /* it may have just begun */
            CHECK_NUMBERS(d.lines[0].run, ==, RUN_SLEEPS);
        watch__dump_free(&d);
        if (i == 0)
            usleep(100000);
    }
    CHECK_NUMBERS(shared->interrupted, ==, 0);
    end_child(pid);
    CHECK(!watch__target_set(pid, why));
    CHECK(strstr(why, "there is no process") != NULL);
}

/* -- cores ----------------------------------------------------------------- */

static char core_dir[] = "/tmp/watch_core.XXXXXX", core_path[64];

/* The core of dies.c; false: the system writes none. */
static bool make_core(void)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    char pattern[16] = "", exe[1200];
    int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY), status = 0;
    pid_t pid;

    if (check_emulated() || fd < 0 || read(fd, pattern, sizeof pattern - 1) < 0
        || strcmp(pattern, "core\n") || !mkdtemp(core_dir))
        return false;
    snprintf(exe, sizeof exe, "%s", check_file("dies"));
    pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &all);
        if (chdir(core_dir) == 0)
            execl(exe, exe, NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status));
    snprintf(core_path, sizeof core_path, "%s/core", core_dir);
    if (access(core_path, R_OK) != 0) {
        char with_pid[64];

        snprintf(with_pid, sizeof with_pid, "%s/core.%d", core_dir, pid);
        if (rename(with_pid, core_path) != 0)
            return false;
    }
    return true;
}

static void forget_core(void)
{
    unlink(core_path);
    rmdir(core_dir);
}

/* Reads and prints it in a process of its own; false: that died. */
static bool survives(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        static struct watch__verdict v;
        struct watch__dump d = {.waiting = {-1, -1, -1}};
        char why[WATCH__WHY] = "";
        FILE *nowhere = fopen("/dev/null", "w");

        if (watch__dump_core(core_path, &d, why)) {
            watch__verdict(&d, &v);
            watch__print(nowhere, &d, &v, true);
            watch__print_json(nowhere, &d, &v);
        } else if (!why[0]) {
            _exit(2);
        }
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(core, "a core tells which thread died of what, where")
{
    static struct watch__verdict v;
    struct watch__dump d = {.waiting = {-1, -1, -1}};
    char why[WATCH__WHY] = "";

    if (!make_core()) {
        fprintf(stderr, "core: the system writes none\n");
        return;
    }
    CHECK(watch__dump_core(core_path, &d, why));
    watch__verdict(&d, &v);
    CHECK_NUMBERS(d.count, ==, 2);
    CHECK_NUMBERS(d.signal, ==, SIGSEGV);
    CHECK_NUMBERS(v.exit_code, ==, WATCH__FOUND);
    CHECK(strstr(v.sentence[0], "died of signal 11") != NULL);
    CHECK(strstr(v.sentence[0], "at address 0x10") != NULL);
    CHECK_NUMBERS(d.lines[0].doing, ==, DOING_DIED);
    CHECK(has_frame(d.lines[0].frames, d.lines[0].count, "dies_inner"));
    CHECK(has_frame(d.lines[0].frames, d.lines[0].count, "dies_outer"));
    CHECK(has_frame(d.lines[0].frames, d.lines[0].count, "main"));
    CHECK(has_frame(d.lines[1].frames, d.lines[1].count, "sleeps"));
    watch__dump_free(&d);
    forget_core();
}

TEST(cut, "a core that is cut anywhere, or broken, is read as far as it goes")
{
    struct stat st;
    int fd;

    if (!make_core())
        return;
    CHECK(stat(core_path, &st) == 0);
    fd = open(core_path, O_RDWR);
    srand(1);
    /* Numbers in headers and notes, some at a time, from there on. */
    for (int i = 0; i < 100; i++) {
        unsigned char was[8], is[8];
        off_t at = rand() % 6000;

        CHECK(pread(fd, was, sizeof was, at) == sizeof was);
        memcpy(is, was, sizeof is);
        for (int k = 0; k <= i % 8; k++)
            is[k] = (unsigned char)rand();
        CHECK(pwrite(fd, is, sizeof is, at) == sizeof is);
        CHECK(survives());
        if (i % 4)
            CHECK(pwrite(fd, was, sizeof was, at) == sizeof was);
    }
    close(fd);
    forget_core();
    strcpy(core_dir + sizeof core_dir - 7, "XXXXXX");
    if (!make_core())
        return;
    for (int i = 0; i < 60; i++) {
        CHECK(truncate(core_path, st.st_size - st.st_size / 60 * i) == 0);
        CHECK(survives());
    }
    for (int size = 8192; size >= 0; size -= 64) {
        CHECK(truncate(core_path, size) == 0);
        CHECK(survives());
    }
    forget_core();
}
