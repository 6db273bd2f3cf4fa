/*
 * task.c - clocks, and what /proc says of one thread, through descriptors that
 * stay open: 0.3 us for a clock, 1 us for a file.
 *
 * Never allocates, and never fails louder than "unknown".
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "read/task.h"
#include "read/proc.h"

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

int watch__gettid(void)
{
    return (int)syscall(SYS_gettid);
}

/* The kernel's own coding of "CPU time of thread tid". */
clockid_t watch__cpu_clock(int tid)
{
    return (clockid_t)((~(unsigned)tid << 3) | 6);
}

uint64_t watch__now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t watch__cpu(clockid_t clock)
{
    struct timespec t;

    return clock_gettime(clock, &t) == 0 ? ns_of(t) : WATCH__NEVER;
}

enum watch__run watch__where(int syscall_fd, struct watch__place *place)
{
    struct watch__call call;
    char text[256];

    *place = (struct watch__place){.syscall = -1};
    if (syscall_fd < 0 || watch__slurp(syscall_fd, text, sizeof text) <= 0
        || watch__parse_call(text, &call) != 0)
        return RUN_UNKNOWN;
    if (call.kind == CALL_RUNNING)
        return RUN_RUNNING;
    *place = (struct watch__place){
        .syscall = call.number, .arg = call.arg, .sp = call.sp, .pc = call.pc
    };
    return RUN_SLEEPS;
}

/* "RAN WAITED TIMES", in ns. */
bool watch__run_delay(int schedstat_fd, uint64_t *ns, uint64_t *runs)
{
    char text[96], *end;

    if (schedstat_fd < 0 || watch__slurp(schedstat_fd, text, sizeof text) <= 0)
        return false;
    strtoull(text, &end, 10);
    *ns = strtoull(end, &end, 10);
    *runs = strtoull(end, NULL, 10);
    return true;
}

bool watch__in_disk_sleep(int tid)
{
    struct watch__stat stat;

    return watch__thread_stat(tid, &stat) == 0 && stat.state == 'D';
}

uint64_t watch__kernel_ns(int tid)
{
    long hz = sysconf(_SC_CLK_TCK);
    struct watch__stat stat;

    return watch__thread_stat(tid, &stat) == 0
        ? stat.kernel_ticks * (NS_PER_S / (hz > 0 ? (uint64_t)hz : 100))
        : WATCH__NEVER;
}

/* Those that a thread may sleep in.  Not all: the number is shown beside. */
static const struct {
    long number;
    const char *name;
} syscalls[] = {
#define CALL(NAME) {SYS_##NAME, #NAME}
    CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64),
    CALL(pwrite64), CALL(fsync), CALL(fdatasync), CALL(flock), CALL(fcntl),
    CALL(openat), CALL(close), CALL(ftruncate), CALL(fallocate),
    CALL(getdents64), CALL(unlinkat), CALL(ioctl), CALL(sendfile), CALL(splice),
    CALL(nanosleep), CALL(clock_nanosleep), CALL(futex), CALL(connect),
    CALL(accept), CALL(accept4), CALL(sendto), CALL(recvfrom), CALL(sendmsg),
    CALL(recvmsg), CALL(ppoll), CALL(pselect6), CALL(epoll_pwait), CALL(wait4),
    CALL(waitid), CALL(rt_sigtimedwait), CALL(rt_sigsuspend), CALL(semop),
    CALL(semtimedop), CALL(msgrcv), CALL(msgsnd), CALL(io_getevents),
    CALL(mmap), CALL(munmap), CALL(mprotect), CALL(madvise), CALL(msync),
    CALL(getrandom), CALL(sched_yield), CALL(membarrier), CALL(clone),
    CALL(execve), CALL(statx), CALL(linkat), CALL(renameat2), CALL(truncate),
#ifdef SYS_open
    CALL(open), CALL(unlink), CALL(rename), CALL(mkdir), CALL(rmdir),
    CALL(poll), CALL(select), CALL(epoll_wait), CALL(pause), CALL(vfork),
    CALL(fork), CALL(stat),
#endif
#undef CALL
};

const char *watch__syscall_name(long number)
{
    for (size_t i = 0; i < sizeof syscalls / sizeof *syscalls; i++)
        if (syscalls[i].number == number)
            return syscalls[i].name;
    return NULL;
}
