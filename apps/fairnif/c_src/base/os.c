/*
 * os.c - what differs between operating systems: clocks, what a thread is
 * called, how a library stays, descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/os.h"

#if !defined(_WIN32)
#  include <fcntl.h>
#  include <poll.h>
#  include <signal.h>
#  include <sys/stat.h>
#  include <unistd.h>
#endif
#if defined(__linux__)
#  include <sys/prctl.h>
#  include <sys/resource.h>
#  include <sys/syscall.h>
#elif defined(_WIN32)
#  include <windows.h>
#elif defined(__APPLE__)
#  include <dlfcn.h>
#endif

#ifndef CLOCK_MONOTONIC_COARSE
#  define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#endif

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t fair__now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t fair__now_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t fair__cpu_now(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void fair__nap(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};

    nanosleep(&ms, NULL);
}

/* As the operating system knows it; 0 where that is of no use. */
int fair__thread_id(void)
{
#if defined(__linux__)
    return (int)syscall(SYS_gettid);
#elif defined(_WIN32)
    return (int)GetCurrentThreadId();
#else
    return 0;
#endif
}

/* Has a thread of this program a processor, or waits for one?  Else it is
 * asleep: in a system call, for a lock, for a page.  Some us; false where the
 * system does not say. */
bool fair__thread_computes(int tid)
{
#if defined(__linux__)
    char text[128];             /* "Id (name) State ..." */
    const char *name_end;
    ssize_t size;
    int fd;

    snprintf(text, sizeof text, "/proc/self/task/%d/stat", tid);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") R", 3) == 0;
#else
    (void)tid;
    return false;
#endif
}

/* 0.5 us; false where the system does not say. */
bool fair__thread_used(struct fair__used *used)
{
#if defined(__linux__)
    struct rusage u;

    if (getrusage(RUSAGE_THREAD, &u) != 0)
        return false;
    used->ns = fair__now();
    used->cpu_ns = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec)
        * 1000000000u
        + (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
    used->sleeps = u.ru_nvcsw;
    return true;
#else
    (void)used;
    return false;
#endif
}

static void name_of_thread(char *name, size_t size)
{
#if defined(__linux__)
    char comm[17] = "";

    prctl(PR_GET_NAME, comm);
    snprintf(name, size, "%s", comm);
#elif defined(__APPLE__)
    pthread_getname_np(pthread_self(), name, size);
#else
    (void)name, (void)size;
#endif
}

/* "1_scheduler", "1_dirty_cpu_sch" (OTP 25); "erts_sched_1", "erts_dcpus_1"
 * (OTP 26 on): the only number in the name.  0 where it has none. */
unsigned fair__thread_number(void)
{
    char name[64] = "";
    const char *p = name;

    name_of_thread(name, sizeof name);
    while (*p && (*p < '0' || *p > '9'))
        p++;
    return (unsigned)strtoul(p, NULL, 10);
}

/* This library stays mapped whatever happens to the module: authors' libraries
 * keep pointing here.  ELF has a linker flag for it (-z nodelete). */
bool fair__stay_loaded(void)
{
#if defined(_WIN32)
    HMODULE self;

    return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN
                              | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                              (LPCSTR)(uintptr_t)fair__stay_loaded, &self);
#elif defined(__APPLE__)
    Dl_info self;

    return dladdr((void *)(uintptr_t)fair__stay_loaded, &self)
        && dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE);
#else
    return true;
#endif
}

/* -- descriptors ---------------------------------------------------------- */

/* Called on a task's stack as well.  Not to be inlined: errno is another
 * variable on another thread, and its address must not be kept. */
#define APART __attribute__((noinline))

#if defined(_WIN32)

APART int fair__os_look(int fd, unsigned events, int timeout_ms)
{
    (void)events;
    if (fd >= 0)
        return -ENOSYS;
    Sleep((DWORD)timeout_ms);
    return 0;
}

int fair__os_duplicate(int fd) { (void)fd; return -ENOSYS; }
int fair__os_unblock(int fd) { (void)fd; return -ENOSYS; }
void fair__os_close(int fd) { (void)fd; }

void fair__os_alternate_stack(void *memory, size_t size)
{
    (void)memory, (void)size;
}

APART void fair__os_say(const char *line, size_t length)
{
    fwrite(line, 1, length, stderr);
}

int fair__os_identify(int fd, uint64_t *dev, uint64_t *ino)
{
    (void)fd;
    *dev = *ino = 0;
    return -ENOSYS;
}

#else

/* What is ready of `events` now, or becomes so in that time; with fd -1 it
 * sleeps, maybe not as long. */
APART int fair__os_look(int fd, unsigned events, int timeout_ms)
{
    struct pollfd p = {.fd = fd};
    unsigned ready = 0;
    int n;

    if (events & FAIR_READ)
        p.events |= POLLIN;
    if (events & FAIR_WRITE)
        p.events |= POLLOUT;
    n = poll(&p, 1, timeout_ms);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (p.revents & POLLNVAL)
        return -EBADF;
    if (p.revents & (POLLIN | POLLERR | POLLHUP))
        ready |= FAIR_READ;
    if (p.revents & (POLLOUT | POLLERR | POLLHUP))
        ready |= FAIR_WRITE;
    return (int)(ready & events);
}

APART int fair__os_duplicate(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -errno : copy;
}

/* Two descriptors of one number are not always of one file. */
APART int fair__os_identify(int fd, uint64_t *dev, uint64_t *ino)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -errno;
    *dev = (uint64_t)st.st_dev;
    *ino = (uint64_t)st.st_ino;
    return 0;
}

APART int fair__os_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    return 0;
}

APART void fair__os_close(int fd)
{
    close(fd);
}

/* Without one a thread that overflows its task's stack has nowhere to say so. */
void fair__os_alternate_stack(void *memory, size_t size)
{
    /* macOS looks at the size of none, too. */
    stack_t stack = {.ss_sp = memory, .ss_size = memory ? size : SIGSTKSZ,
                     .ss_flags = memory ? 0 : SS_DISABLE};

    sigaltstack(&stack, NULL);
}

/* Standard error may be a pipe that nobody reads, and a scheduler would wait for
 * that.  Where poll finds room there is a page of it, for one writer: nobody
 * else of the runtime writes meanwhile.  (What is not said was counted.) */
APART void fair__os_say(const char *line, size_t length)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

    if (pthread_mutex_trylock(&writing) != 0)
        return;
    if (fair__os_look(STDERR_FILENO, FAIR_WRITE, 0) == FAIR_WRITE
        && write(STDERR_FILENO, line, length) < 0)
        errno = 0;              /* there is nobody to tell */
    pthread_mutex_unlock(&writing);
}

#endif
