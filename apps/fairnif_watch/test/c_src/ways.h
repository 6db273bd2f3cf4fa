/*
 * ways.h - how native code can block the thread that it runs on, for a known
 * time.
 *
 * Each way says how long it blocked, by the clock that the VM calls native
 * time, and how many of its system calls a signal broke off: the watchdog must
 * cause none.  Everything is static: a library that includes this names these
 * functions in its symbol table at most, and nowhere once stripped.
 */
#ifndef WAYS_H
#define WAYS_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

struct way {
    long ms;                    /* asked for */
    unsigned long interrupted;  /* system calls that EINTR ended too early */
    int failed;                 /* an errno: it did not hold at all */
    unsigned seed;              /* read and written, so that work is done */
};

static uint64_t way_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t way_end(const struct way *w)
{
    return way_ns() + (uint64_t)w->ms * 1000000u;
}

static void way_pause(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* Work between two looks at the clock: a signal nearly always falls here. */
__attribute__((noinline)) static void way_work(struct way *w)
{
    unsigned x = w->seed | 1;

    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    w->seed = x;
}

static void way_spin(struct way *w)
{
    uint64_t end = way_end(w);

    while (way_ns() < end)
        way_work(w);
}

/* The innermost frames are the C library's. */
static int way_order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void way_libc(struct way *w)
{
    enum { N = 20000 };
    uint64_t end = way_end(w);
    int *numbers = malloc(N * sizeof *numbers);

    if (!numbers) {
        w->failed = ENOMEM;
        return;
    }
    while (way_ns() < end) {
        for (int i = 0; i < N; i++)
            numbers[i] = (int)((unsigned)i * 2654435761u >> 1);
        qsort(numbers, N, sizeof *numbers, way_order);
    }
    w->seed += (unsigned)numbers[0];
    free(numbers);
}

/* More stack between the innermost frame and the NIF than is copied of a
 * thread: 64 frames of 1 KiB. */
__attribute__((noinline)) static void way_down(struct way *w, int depth)
{
    volatile char frame[1024];

    frame[0] = frame[sizeof frame - 1] = (char)depth;
    if (depth)
        way_down(w, depth - 1);
    else
        way_spin(w);
    w->seed += (unsigned char)frame[0];
}

static void way_deep(struct way *w)
{
    way_down(w, 64);
}

/* nanosleep says what is left to wait: an interrupted one is continued. */
static void way_sleep(struct way *w)
{
    struct timespec t = { w->ms / 1000, w->ms % 1000 * 1000000 };

    while (nanosleep(&t, &t) && errno == EINTR)
        w->interrupted++;
}

/* One whose time is up may answer EINTR as well, while its thread waits for a
 * processor: that broke nothing off. */
static void way_poll(struct way *w)
{
    uint64_t end = way_end(w), now;

    while ((now = way_ns()) < end)
        if (poll(NULL, 0, (int)((end - now + 999999) / 1000000)) < 0
            && way_ns() < end)
            w->interrupted++;
}

/* A mutex that another thread holds, and a pipe that it writes to, after the
 * time.  `ready`: it is there and has the mutex. */
struct way_other {
    pthread_mutex_t mutex;
    int pipe[2], ready[2];
    long ms;
};

static void *way_other_main(void *arg)
{
    struct way_other *o = arg;

    pthread_mutex_lock(&o->mutex);
    if (write(o->ready[1], "r", 1) != 1)
        abort();
    way_pause(o->ms);
    if (write(o->pipe[1], "d", 1) != 1)
        abort();
    pthread_mutex_unlock(&o->mutex);
    return NULL;
}

static void way_take(struct way_other *o)
{
    pthread_mutex_lock(&o->mutex);
    pthread_mutex_unlock(&o->mutex);
}

static void way_with_other(struct way *w, int by_lock)
{
    struct way_other o = { PTHREAD_MUTEX_INITIALIZER, { -1, -1 }, { -1, -1 },
                           w->ms };
    pthread_t thread;
    char byte;
    int error = 0;

    if (pipe(o.pipe) || pipe(o.ready))
        error = errno;
    if (!error)
        error = pthread_create(&thread, NULL, way_other_main, &o);
    if (!error) {
        while (read(o.ready[0], &byte, 1) != 1)
            ;
        if (by_lock)
            way_take(&o);
        else
            while (read(o.pipe[0], &byte, 1) != 1)
                w->interrupted++;
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (o.pipe[i] >= 0)
            close(o.pipe[i]);
        if (o.ready[i] >= 0)
            close(o.ready[i]);
    }
    w->failed = error;
}

static void way_lock(struct way *w)
{
    way_with_other(w, 1);
}

static void way_read(struct way *w)
{
    way_with_other(w, 0);
}

static void way_reap(struct way *w, pid_t child)
{
    if (child < 0)
        w->failed = errno;
    else
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
}

/* In state D, as one that waits for a disk: until its child is gone, which has
 * memory of its own. */
static void way_disk(struct way *w)
{
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

    if (child == 0) {
        way_pause(w->ms);
        _exit(0);
    }
    way_reap(w, child);
}

/* The same by the C library's vfork, which has no unwind table that a sleeping
 * thread's registers suffice for. */
static void way_vfork(struct way *w)
{
    pid_t child = vfork();

    if (child == 0) {
        way_pause(w->ms);
        _exit(0);
    }
    way_reap(w, child);
}

/* Copies a buffer many times, in one system call that no signal ends: 2 GiB at
 * most, so buffers are too large for caches. */
enum { WAY_COPIED = 64 << 20, WAY_COPIES = 31 };

struct way_copies {
    struct iovec from[WAY_COPIES], to[WAY_COPIES];
};

static void way_copy(struct way *w, struct way_copies *c, size_t times)
{
    if (times > WAY_COPIES)
        times = WAY_COPIES;
    if (process_vm_readv(getpid(), c->to, times, c->from, times, 0) < 0)
        w->failed = errno;
}

/* Works in the kernel, where no signal reaches it and its stack is hidden. */
static void way_kernel(struct way *w)
{
    enum { TRIES = 3 };
    struct way_copies *c = calloc(1, sizeof *c);
    char *from = calloc(1, WAY_COPIED), *to = calloc(1, WAY_COPIED);
    uint64_t best = UINT64_MAX;

    if (!c || !from || !to)
        w->failed = ENOMEM;
    for (int i = 0; i < WAY_COPIES && !w->failed; i++) {
        c->from[i] = (struct iovec){ from, WAY_COPIED };
        c->to[i] = (struct iovec){ to, WAY_COPIED };
    }
    for (int i = 0; i < TRIES && !w->failed; i++) {
        uint64_t since = way_ns();

        way_copy(w, c, 1);
        if (way_ns() - since < best)
            best = way_ns() - since;
    }
    if (!w->failed)
        way_copy(w, c, (uint64_t)w->ms * 1000000u / best + 1);
    free(c);
    free(from);
    free(to);
}

static void way_machine(struct way *w)
{
    w->failed = machine_code(0, w->ms);
}

static void way_machine_named(struct way *w)
{
    w->failed = machine_code(1, w->ms);
}

/* The ways, by name: X(name). */
#define WAYS(X) X(spin) X(libc) X(deep) X(sleep) X(poll) X(lock) X(read) X(disk) \
    X(vfork) X(kernel) X(machine) X(machine_named)

#endif
