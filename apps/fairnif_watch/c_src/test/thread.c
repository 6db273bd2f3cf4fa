/*
 * thread.c - threads that are where a test wants them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "thread.h"

static void *thread_main(void *arg)
{
    struct runner *r = arg;

    r->deeper = r->chain.deeper;
    __atomic_store_n(&r->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    if (r->through)
        r->through(&r->chain, 1, NULL);
    else
        r->outer(&r->chain);
    return NULL;
}

void runner_start(struct runner *r, const char *library)
{
    pthread_attr_t attr;

    r->library = dlopen(check_file(library), RTLD_NOW);
    if (!r->library) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    r->outer = (void (*)(struct chain *))(uintptr_t)dlsym(r->library,
                                                          "chain_outer");
    if (r->nif)
        r->through = (unsigned long (*)(struct chain *, int,
                                        const unsigned long *))(uintptr_t)
            dlsym(r->library, "chain_climb");
    if (r->chain.sleeps && pipe(r->pipe) == 0)
        r->chain.fd = r->pipe[0];
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 4 << 20);
    if (pthread_create(&r->thread, &attr, thread_main, r) != 0)
        abort();
    pthread_attr_destroy(&attr);
    while (!__atomic_load_n(&r->chain.there, __ATOMIC_ACQUIRE))
        sched_yield();
}

void runner_stop(struct runner *r)
{
    __atomic_store_n(&r->chain.leave, true, __ATOMIC_RELEASE);
    if (r->chain.sleeps)
        (void)!write(r->pipe[1], "x", 1);
    pthread_join(r->thread, NULL);
    dlclose(r->library);
    if (r->chain.sleeps) {
        close(r->pipe[0]);
        close(r->pipe[1]);
    }
}

/* Until it is where it can be taken; the machine may be busy. */
enum watch__taken take(struct watch__snapshot *s, const struct runner *r)
{
    enum watch__taken taken = TAKEN_BUSY;
    int tid = __atomic_load_n(&r->tid, __ATOMIC_ACQUIRE);

    for (int i = 0; i < 3000; i++) {
        taken = r->chain.sleeps ? watch__take_sleeping(s, tid)
            : watch__take_running(s, tid, 100000000);
        if (taken != TAKEN_BUSY && taken != TAKEN_LATE)
            break;
        usleep(1000);
    }
    return taken;
}
