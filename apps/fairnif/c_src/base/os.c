/*
 * os.c - what differs between operating systems: clocks, thread names,
 * keeping a library loaded, descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/os.h"

#if !defined(_WIN32)
#  include <dlfcn.h>
#  include <fcntl.h>
#  include <poll.h>
#  include <signal.h>
#  include <sys/stat.h>
#  include <unistd.h>
#endif
#if defined(__linux__)
#  include <dirent.h>
#  include <sched.h>
#  include <sys/mman.h>
#  include <sys/prctl.h>
#  include <sys/resource.h>
#  include <sys/syscall.h>
#elif defined(_WIN32)
#  include <windows.h>
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

void fair__sleep_ns(long ns)
{
    const struct timespec time = {.tv_nsec = ns};

    nanosleep(&time, NULL);
}

/* This thread does nothing any more, until the program ends. */
void fair__os_stay(void)
{
    for (;;)
        fair__nap();
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

#if defined(__linux__)
/* What the kernel says of a thread of this program, cut after size - 1 bytes; ""
 * where it does not. */
static void read_of_thread(int tid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t length = -1;
    int fd;

    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, text, size - 1);
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
}
#endif

/* Has a thread of this program a processor, or waits for one?  Else it is
 * asleep: in a system call, for a lock, for a page.  Some us; false where the
 * system does not say. */
bool fair__thread_computes(int tid)
{
#if defined(__linux__)
    char text[128];             /* "Id (name) State ..." */
    const char *name_end;

    read_of_thread(tid, "stat", text, sizeof text);
    name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") R", 3) == 0;
#else
    (void)tid;
    return false;
#endif
}

void fair__os_lower(int by)
{
#if defined(__linux__)
    id_t tid = (id_t)fair__thread_id();
    int nice = getpriority(PRIO_PROCESS, tid) + by;

    setpriority(PRIO_PROCESS, tid, nice < 19 ? nice : 19);
#else
    (void)by;
#endif
}

#if defined(__linux__)
/* OTP 25: 1_scheduler; 27: erts_sched_1. */
static bool is_scheduler(int tid)
{
    char name[17];

    read_of_thread(tid, "comm", name, sizeof name);
    return strstr(name, "_scheduler") || strncmp(name, "erts_sched_", 11) == 0;
}

/* Only of threads that run as most do; what has deadlines has no such slice. */
static void set_slice(int tid, uint64_t ns)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } a = {0};

    if (syscall(SYS_sched_getattr, tid, &a, sizeof a, 0) != 0
        || (a.policy != SCHED_OTHER && a.policy != SCHED_BATCH))
        return;
    a.runtime = ns;
    syscall(SYS_sched_setattr, tid, &a, 0);
}
#endif

void fair__os_slice_schedulers(uint64_t ns)
{
#if defined(__linux__)
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;

    while (tasks && (entry = readdir(tasks)))
        if (is_scheduler(atoi(entry->d_name)))
            set_slice(atoi(entry->d_name), ns);
    if (tasks)
        closedir(tasks);
#else
    (void)ns;
#endif
}

void fair__os_usual_slice(void)
{
#if defined(__linux__)
    set_slice(0, 0);
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
    used->preempted = u.ru_nivcsw;
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

/* The stack that the system gave this thread; NULL and SIZE_MAX where it does not
 * say. */
void fair__thread_stack(char **low, size_t *size)
{
#if defined(__linux__)
    pthread_attr_t attr;
    void *at;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        int error = pthread_attr_getstack(&attr, &at, size);

        pthread_attr_destroy(&attr);
        if (!error) {
            *low = at;
            return;
        }
    }
#endif
    *low = NULL;
    *size = SIZE_MAX;
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

void fair__os_forget(char *memory, size_t size)
{
#if defined(__linux__)
    uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t low = ((uintptr_t)memory + mask) & ~mask;
    uintptr_t high = ((uintptr_t)memory + size) & ~mask;

    if (high > low)
        madvise((void *)low, high - low, MADV_DONTNEED);
#else
    (void)memory, (void)size;
#endif
}

/* A function of the VM's that not every release has; NULL there. */
void *fair__os_find(const char *name)
{
#if defined(_WIN32)
    (void)name;
    return NULL;
#else
    return dlsym(RTLD_DEFAULT, name);
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

/* A write to standard error would block a scheduler where that is a full pipe.
 * Where poll finds room there is a page of it, for one writer: no other thread
 * of the runtime writes meanwhile.  (A skipped line was counted.) */
APART void fair__os_say(const char *line, size_t length)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

    if (pthread_mutex_trylock(&writing) != 0)
        return;
    if (fair__os_look(STDERR_FILENO, FAIR_WRITE, 0) == FAIR_WRITE
        && write(STDERR_FILENO, line, length) < 0)
        errno = 0;              /* there is no way to report it */
    pthread_mutex_unlock(&writing);
}

#endif
