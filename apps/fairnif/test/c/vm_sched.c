/*
 * vm_sched.c - the scheduler threads.
 *
 * Real threads that do what they are handed, one thing at a time.  They bear
 * the names that OTP 25 gives its schedulers, and stacks and alternate signal
 * stacks of the size that the VM gives them.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "vm_int.h"

enum { ALT_STACK = 47808, MAX_THREADS = 64 };

static const size_t stack_sizes[VM_KINDS] = {
    [1] = 1024 * 1024, 320 * 1024, 320 * 1024
};

__thread vm_thread *vm__self;

static vm_thread *threads[VM_KINDS][MAX_THREADS];
static int thread_count[VM_KINDS];
static int next_thread[VM_KINDS];

static void *serve(void *arg)
{
    static const char *const names[VM_KINDS] = {
        "", "%d_scheduler", "%d_dirty_cpu_sch", "%d_dirty_io_sche"
    };
    vm_thread *t = arg;
    stack_t alt = {.ss_sp = t->alt_stack, .ss_size = ALT_STACK};
    char name[32];

    vm__self = t;
    snprintf(name, sizeof name, names[t->kind], t->number);
    prctl(PR_SET_NAME, name);
    sigaltstack(&alt, NULL);
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->busy && !t->stop)
            pthread_cond_wait(&t->cond, &t->lock);
        if (!t->busy)
            break;
        pthread_mutex_unlock(&t->lock);
        t->fn(t->arg);
        pthread_mutex_lock(&t->lock);
        t->busy = false;
        pthread_cond_broadcast(&t->cond);
    }
    pthread_mutex_unlock(&t->lock);
    alt.ss_flags = SS_DISABLE;
    sigaltstack(&alt, NULL);
    return NULL;
}

void vm_start(int normal, int dirty_cpu, int dirty_io)
{
    int counts[VM_KINDS] = {0, normal, dirty_cpu, dirty_io};

    for (int kind = 1; kind < VM_KINDS; kind++) {
        if (counts[kind] < 1 || counts[kind] > MAX_THREADS)
            vm_misuse("vm_start: %d threads", counts[kind]);
        for (int i = 0; i < counts[kind]; i++) {
            vm_thread *t = vm__malloc(sizeof *t);

            memset(t, 0, sizeof *t);
            t->kind = kind;
            t->number = i + 1;
            t->alt_stack = vm__malloc(ALT_STACK);
            pthread_mutex_init(&t->lock, NULL);
            pthread_cond_init(&t->cond, NULL);
            threads[kind][i] = t;
            vm__thread_create(&t->id, stack_sizes[kind], serve, t);
        }
        thread_count[kind] = counts[kind];
    }
}

void vm_stop(void)
{
    vm__select_stop();
    for (int kind = 1; kind < VM_KINDS; kind++) {
        for (int i = 0; i < thread_count[kind]; i++) {
            vm_thread *t = threads[kind][i];

            pthread_mutex_lock(&t->lock);
            t->stop = true;
            pthread_cond_broadcast(&t->cond);
            pthread_mutex_unlock(&t->lock);
            pthread_join(t->id, NULL);
            pthread_mutex_destroy(&t->lock);
            pthread_cond_destroy(&t->cond);
            vm__free(t->alt_stack);
            vm__free(t);
        }
        thread_count[kind] = 0;
    }
}

int vm_thread_count(int kind)
{
    return thread_count[kind];
}

vm_thread *vm_nth_thread(int kind, int n)
{
    return n < thread_count[kind] ? threads[kind][n] : NULL;
}

void vm_post(vm_thread *t, void (*fn)(void *), void *arg)
{
    if (t == vm__self)
        vm_misuse("a thread that waits for itself");
    pthread_mutex_lock(&t->lock);
    while (t->busy)
        pthread_cond_wait(&t->cond, &t->lock);
    t->fn = fn;
    t->arg = arg;
    t->busy = true;
    pthread_cond_broadcast(&t->cond);
    pthread_mutex_unlock(&t->lock);
}

void vm_wait(vm_thread *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->busy)
        pthread_cond_wait(&t->cond, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static vm_thread *pick(int kind, const vm_thread *not_this)
{
    int n;

    if (!thread_count[kind])
        vm_misuse("no thread of kind %d", kind);
    n = __atomic_fetch_add(&next_thread[kind], 1, __ATOMIC_RELAXED);
    if (threads[kind][n % thread_count[kind]] == not_this)
        n++;
    return threads[kind][n % thread_count[kind]];
}

void vm_on(int kind, void (*fn)(void *), void *arg)
{
    vm_thread *t = pick(kind, NULL);

    vm_post(t, fn, arg);
    vm_wait(t);
}

static void slice(void *p)
{
    vm_slice(p);
}

enum vm_state vm_step(vm_proc *p)
{
    vm_thread *t;

    if (vm_state(p) == VM_DEAD)
        return VM_DEAD;
    t = pick(vm_next_kind(p), p->last);
    vm_post(t, slice, p);
    vm_wait(t);
    return vm_state(p);
}

/* Until a message came, the receive's time is up, or `then`. */
static void sleep_until(vm_proc *p, uint64_t then)
{
    pthread_mutex_lock(&p->lock);
    if (p->state == VM_WAITING && p->await.deadline < then)
        then = p->await.deadline;
    if (p->state == VM_WAITING && !vm__await_due(p))
        vm__wait_until(p, then);
    pthread_mutex_unlock(&p->lock);
}

enum vm_state vm_run(vm_proc *p, int ms)
{
    uint64_t end = ms < 0 ? UINT64_MAX
        : vm__real_now() + (uint64_t)ms * 1000000;

    for (;;) {
        enum vm_state state = vm_state(p);

        if (state != VM_READY && state != VM_WAITING)
            return state;
        if (vm_step(p) == VM_WAITING)
            sleep_until(p, end);
        if (vm__real_now() >= end)
            return vm_state(p);
    }
}

enum vm_state vm_finish(vm_proc *p)
{
    return vm_run(p, -1);
}
