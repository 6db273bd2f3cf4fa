/*
 * drv_job.c - work of a port driver that was put off: where it runs, in which
 * order, and what becomes of it.
 *
 *     push --> settle --> NORMAL: wake the port --> drv__work --> slice
 *                |                                   ^    |---> paused
 *                |                                   '----'---> ended
 *                '--> DIRTY: (gate) --> pool --> on_thread ---> ended
 *
 * A port has one turn: a callback of the author's that the VM called, or one
 * job.  When it ends, the first of the queue is started.
 *
 * A job on a normal scheduler has a stack of its own, so that a tick can leave
 * it there and give the scheduler back.  On a thread it runs on the thread's,
 * which is large: code that cannot tick is not known for small frames.
 *
 * Must never be done here: call the author, or free what he may hold on to,
 * with a lock held.
 */
#ifndef _WIN32

#include <stdlib.h>

#include "base/config.h"
#include "base/os.h"
#include "driver/drv.h"
#include "task/checkers.h"
#include "task/stack.h"

static const double used_up = 0.85;     /* of a slice */
static fair__u64 jobs;                  /* that exist */

uint64_t drv__jobs(void)
{
    return GET(jobs);
}

/* -- which callback a thread is in ------------------------------------------- */

static _Thread_local struct drv_here here_now;

/* Not inlined: a job that pauses goes on on another thread, and the compiler
 * may keep a thread-local's address. */
__attribute__((noinline)) struct drv_here drv__here(void)
{
    return here_now;
}

__attribute__((noinline)) struct drv_here drv__here_set(struct drv_here here)
{
    struct drv_here before = here_now;

    here_now = here;
    return before;
}

/* -- jobs --------------------------------------------------------------------- */

static void on_thread(struct fair__job *pool);

/* With a copy of `buf`; NULL when out of memory. */
struct drv_job *drv__job_new(struct drv_port *p, enum drv_kind kind, int flags,
                             const char *buf, size_t len)
{
    struct drv_job *job = enif_alloc(sizeof *job + len);

    if (!job)
        return NULL;
    memset(job, 0, sizeof *job);
    job->pool.run = on_thread;
    job->port = p;
    job->kind = kind;
    job->flags = flags;
    job->buf = (char *)(job + 1);
    job->len = len;
    job->bytes = kind == K_OUTPUT ? len : 0;
    if (len > 0)
        memcpy(job->buf, buf, len);
    atomic_fetch_add(&jobs, 1);
    return job;
}

void drv__job_free(struct drv_job *job)
{
    if (job->ev)
        job->port->driver->vm.free_iovec(job->ev);
    if (job->tag_env)
        enif_free_env(job->tag_env);
    enif_free(job);
    atomic_fetch_sub(&jobs, 1);
}

/* It was not begun, or not to an end that anybody wants to hear of.  The
 * caller of a control or call learns of it by the end of the port. */
void drv__cancel(struct drv_job *job)
{
    struct drv_port *p = job->port;

    if (job->kind == K_CALLBACK && job->cancelled)
        job->cancelled(job->arg);
    pthread_mutex_lock(&p->lock);
    if (job->request)
        job->request->job = NULL;
    job->request = NULL;
    pthread_mutex_unlock(&p->lock);
    drv__job_free(job);
}

/* The same of the job whose turn it is. */
void drv__forget(struct drv_job *job)
{
    struct drv_port *p = job->port;

    pthread_mutex_lock(&p->lock);
    p->running = NULL;
    pthread_mutex_unlock(&p->lock);
    drv__cancel(job);
}

/* -- a port's queue ------------------------------------------------------------- */

/* With the port's lock held.  What came from the VM goes to the end, and so
 * does what one scheduled callback schedules: a chain of those must not keep
 * the others out.  `own`: what a callback of the VM's puts off belongs to it,
 * and comes before the next of those. */
void drv__push(struct drv_port *p, struct drv_job *job, bool own)
{
    struct drv_job **at = &p->first;

    if (own && p->own_last)
        at = &p->own_last->next;
    else if (!own && p->last)
        at = &p->last->next;
    job->next = *at;
    *at = job;
    if (!job->next)
        p->last = job;
    if (own)
        p->own_last = job;
    p->jobs++;
    p->bytes += job->bytes;
}

static struct drv_job *pop(struct drv_port *p)
{
    struct drv_job *job = p->first;

    p->first = job->next;
    if (!p->first)
        p->last = NULL;
    if (p->own_last == job)
        p->own_last = NULL;
    p->jobs--;
    p->bytes -= job->bytes;
    p->running = job;
    p->turn = T_JOB;
    return job;
}

static void start_on_thread(struct drv_job *job);

/* With the port's lock held, which it lets go: whoever is next is started, if
 * nothing runs. */
void drv__settle(struct drv_port *p)
{
    struct drv_job *job = NULL;

    if (p->turn == T_FREE && p->first && !p->closed && !p->failed) {
        if (p->first->flags == FAIR_DRV_NORMAL)
            drv__wake(p);
        else
            job = pop(p);
    }
    if (p->failed || (p->own_busy && p->jobs <= DRV_BUSY_JOBS / 2
                      && p->bytes <= DRV_BUSY_BYTES / 2))
        drv__wake(p);           /* the port must say so, in its context */
    pthread_mutex_unlock(&p->lock);
    if (job)
        start_on_thread(job);
}

/* The callback or job whose turn it was has returned.  False: it was the last
 * of a port that is closed, which is gone now. */
bool drv__end_turn(struct drv_port *p)
{
    bool last;

    pthread_mutex_lock(&p->lock);
    p->turn = T_FREE;
    p->running = NULL;
    last = p->closed;
    if (!last) {
        drv__settle(p);
        return true;
    }
    pthread_mutex_unlock(&p->lock);
    drv__last_stop(p);
    return false;
}

/* -- the author's code ------------------------------------------------------------ */

static void run_author(struct drv_job *job)
{
    struct drv_port *p = job->port;
    const ErlDrvEntry *author = p->driver->entry;
    ErlDrvData data = p->pub.data;

    switch (job->kind) {
    case K_CALLBACK:
        job->result = job->callback(data, job->arg);
        break;
    case K_CONTROL:
        job->rbuf = job->small;
        job->result = author->control(data, job->command, job->buf, job->len,
                                      &job->rbuf, sizeof job->small);
        break;
    case K_CALL:
        job->rbuf = job->small;
        job->call_flags = 0;
        job->result = author->call(data, job->command, job->buf, job->len,
                                   &job->rbuf, sizeof job->small,
                                   &job->call_flags);
        break;
    case K_OUTPUT:
        author->output(data, job->buf, job->len);
        break;
    case K_OUTPUTV:
        author->outputv(data, job->ev);
        break;
    case K_TIMEOUT:
        author->timeout(data);
        break;
    case K_READY_ASYNC:
        author->ready_async(data, job->thread_data);
        break;
    case K_PROCESS_EXIT:
        author->process_exit(data, &job->monitor);
        break;
    case K_FLUSH:
        author->flush(data);
        break;
    }
}

/* -1: an answer; else the flags to go on with. */
static int rescheduled(const struct drv_job *job)
{
    if (job->kind != K_CONTROL && job->kind != K_CALL)
        return -1;
    return job->result == FAIR_DRV_RESCHEDULE ? FAIR_DRV_NORMAL
        : job->result == FAIR_DRV_RESCHEDULE_DIRTY_CPU ? FAIR_DRV_DIRTY_CPU
        : job->result == FAIR_DRV_RESCHEDULE_DIRTY_IO ? FAIR_DRV_DIRTY_IO
        : -1;
}

/* The job has run to its end: its answer goes out, and the turn with it.
 * False: the port is gone. */
static bool ended(struct drv_job *job)
{
    struct drv_port *p = job->port;
    int flags = rescheduled(job);
    bool again = false;

    if (flags < 0 && (job->kind == K_CONTROL || job->kind == K_CALL))
        drv__answer(job);
    pthread_mutex_lock(&p->lock);
    if (job->kind == K_CALLBACK && job->result < 0 && !p->failed)
        p->failed = "callback_failed";
    if (flags >= 0 && !p->closed && !job->unwanted) {
        job->flags = flags;
        job->again = true;
        job->done = false;
        drv__push(p, job, true);
        again = true;
    }
    p->running = NULL;          /* stop must not look at it any more */
    pthread_mutex_unlock(&p->lock);
    if (!again) {
        job->cancelled = NULL;  /* it has had its turn */
        drv__cancel(job);
    }
    return drv__end_turn(p);
}

/* -- on a thread -------------------------------------------------------------------- */

/* Under the waiting lock: work that wants a processor, at most as much at once
 * as there are dirty CPU schedulers. */
static struct {
    uint64_t running;
    struct drv_job *first, *last;
} gate;

static bool pass_gate(struct drv_job *job)
{
    if (job->flags != FAIR_DRV_DIRTY_CPU)
        return true;
    if (gate.running < GET(fair__config.dirty_cpus)) {
        gate.running++;
        job->gated = true;
        return true;
    }
    job->waits_at_gate = true;
    job->next = NULL;
    *(gate.first ? &gate.last->next : &gate.first) = job;
    gate.last = job;
    return false;
}

/* With the waiting lock held; true: fair__pool_kick must follow. */
static bool leave_gate(struct drv_job *job)
{
    struct drv_job *next = gate.first;

    if (!job->gated)
        return false;
    job->gated = false;
    gate.running--;
    if (!next || gate.running >= GET(fair__config.dirty_cpus))
        return false;
    gate.first = next->next;
    next->waits_at_gate = false;
    next->gated = true;
    gate.running++;
    fair__pool_put(&next->pool);
    return true;
}

static void take_from_gate(struct drv_job *job)
{
    struct drv_job **at = &gate.first, *before = NULL;

    while (*at != job) {
        before = *at;
        at = &before->next;
    }
    *at = job->next;
    if (gate.last == job)
        gate.last = before;
    job->waits_at_gate = false;
}

/* True: it had not been begun, and now never is.  fair__pool_kick must follow,
 * without a lock. */
bool drv__withdraw(struct drv_job *job)
{
    bool withdrawn = true;

    fair__wait_lock();
    if (job->waits_at_gate)
        take_from_gate(job);
    else if ((withdrawn = fair__pool_withdraw(&job->pool)))
        leave_gate(job);
    fair__wait_unlock();
    return withdrawn;
}

/* Nothing may touch the job once it is put, but who withdraws it. */
static void start_on_thread(struct drv_job *job)
{
    struct drv_port *p = job->port;
    bool passed;

    fair__wait_lock();
    passed = pass_gate(job);
    job->pool.waits = job->flags == FAIR_DRV_DIRTY_IO;
    if (passed)
        fair__pool_put(&job->pool);
    fair__wait_unlock();
    /* From here it may be done and gone; but not if there is no thread: then
     * only a port that closes takes it away. */
    if (!passed || fair__pool_kick())
        return;
    pthread_mutex_lock(&p->lock);
    if (p->running != job || !drv__withdraw(job)) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->failed = "no_thread";
    pthread_mutex_unlock(&p->lock);
    drv__forget(job);
    drv__end_turn(p);
}

/* What the pool calls. */
static void on_thread(struct fair__job *pool)
{
    struct drv_job *job = (struct drv_job *)pool;
    struct drv_port *p = job->port;
    struct drv_here before;
    bool wanted, kick;

    pthread_mutex_lock(&p->lock);
    wanted = !p->closed && !job->unwanted;
    pthread_mutex_unlock(&p->lock);
    if (wanted) {
        before = drv__here_set((struct drv_here){p, job, true});
        run_author(job);
        drv__here_set(before);
    }
    fair__wait_lock();
    kick = leave_gate(job);
    fair__wait_unlock();
    if (kick)
        fair__pool_kick();
    if (wanted) {
        ended(job);
    } else {
        drv__forget(job);
        drv__end_turn(p);
    }
}

/* -- on a normal scheduler ------------------------------------------------------------ */

static FAIR_NO_TSAN void job_main(void *arg)
{
    struct drv_job *job = arg;

    fair__check_begun(job->stack);
    run_author(job);
    job->done = true;
    fair__check_leave(job->stack, true);
}

static FAIR_NO_TSAN void pause_job(struct drv_job *job)
{
    fair__check_leave(job->stack, false);
    fair__arch_pause(&job->stack->ctx);
    fair__check_resumed(job->stack);
}

/* One slice of a job, in the port's context.  Without memory for a stack it
 * runs here and to its end. */
static void slice(struct drv_job *job)
{
    struct fair__thread *th = fair__self();
    struct drv_here before =
        drv__here_set((struct drv_here){job->port, job, false});
    const char *error;

    job->slice_start = job->win_start = fair__now();
    job->budget = job->refill = 0;
    if (job->paused) {
        job->paused = false;
        fair__check_enter(job->stack);
        fair__arch_resume(&job->stack->ctx);
        fair__check_back(job->stack);
    } else {
        job->stack = FAIR__TASKS && th ? fair__stack_take(
            th, fair__stack_class(FAIR__STACK_DEFAULT), &error) : NULL;
        if (job->stack) {
            fair__check_enter(job->stack);
            fair__arch_start(&job->stack->ctx, job_main, job);
            fair__check_back(job->stack);
        } else {
            run_author(job);
            job->done = true;
        }
    }
    if (job->done && job->stack) {
        fair__stack_give(th, job->stack);
        job->stack = NULL;
    }
    drv__here_set(before);
}

/* What is next to be done here: NULL when it is nothing.  The wake-up stays as
 * it is while something is. */
static struct drv_job *next_here(struct drv_port *p)
{
    struct drv_job *job = NULL;

    pthread_mutex_lock(&p->lock);
    if (p->turn == T_JOB && p->running && p->running->paused)
        job = p->running;
    else if (p->turn == T_FREE && p->first && !p->closed && !p->failed
             && p->first->flags == FAIR_DRV_NORMAL)
        job = pop(p);
    else if (!p->failed)
        drv__wake_read(p);
    pthread_mutex_unlock(&p->lock);
    return job;
}

/* True: it has ended, and the port has not. */
static bool work_on(struct drv_job *job)
{
    struct drv_port *p = job->port;

    if (job->unwanted && !job->paused) {
        drv__forget(job);
        return drv__end_turn(p);
    }
    slice(job);
    if (job->done)
        return ended(job);
    pthread_mutex_lock(&p->lock);
    job->paused = true;
    pthread_mutex_unlock(&p->lock);
    return false;
}

static void charge(struct drv_port *p, uint64_t ns)
{
    uint64_t percent = ns * 100 / GET(fair__config.fair_ns);

    p->driver->vm.consume(p->pub.port, percent < 1 ? 1
                          : percent > 100 ? 100 : (int)percent);
}

/* The port was woken: a slice of what is to be done in its context. */
void drv__work(struct drv_port *p)
{
    uint64_t begin = fair__now(), now = begin;
    uint64_t enough = (uint64_t)(used_up
                                 * (double)GET(fair__config.slice_ns));
    const char *failed;
    struct drv_job *job;

    pthread_mutex_lock(&p->lock);
    failed = p->closed ? NULL : p->failed;
    p->failed = NULL;
    pthread_mutex_unlock(&p->lock);
    if (failed) {
        p->driver->vm.fail(p->pub.port, (char *)(uintptr_t)failed);
        return;
    }
    while (now - begin < enough && (job = next_here(p)) != NULL) {
        if (!work_on(job))
            break;
        now = fair__now();
    }
    if (!p->closed)
        charge(p, fair__now() - begin);
}

/* The port has closed, in whose context this is: what is paused goes on to its
 * end at once, with ticks that say so and do not pause. */
void drv__finish_paused(struct drv_port *p)
{
    struct drv_job *job = p->running;

    slice(job);
    ended(job);
}

/* -- ticks ---------------------------------------------------------------------------- */

/* The count of units is used up: how many until the clock is read again. */
static void look_again_in(struct drv_job *job, uint64_t now)
{
    double units = (double)(job->refill - job->budget);
    double elapsed = (double)(now - job->win_start);
    double left = (double)GET(fair__config.slice_ns)
        - (double)(now - job->slice_start);
    double next = elapsed > 0 ? units * left / 2 / elapsed : 4 * units;

    if (next > 4 * units + 1)
        next = 4 * units + 1;
    job->budget = job->refill = next < 1 ? 0 : (uint64_t)next;
    job->win_start = now;
}

int drv__tick(ErlDrvPort port, size_t units)
{
    struct drv_here here = drv__here();
    struct drv_job *job = here.job;
    uint64_t now;

    if (!here.port || here.port->pub.port != port)
        return 1;
    if (GET(here.port->closed)
        || (job && job->unwanted))
        return 1;
    if (!job || here.dirty || !job->stack)
        return 0;
    if (units < job->budget) {
        job->budget -= units + 1;
        return 0;
    }
    job->refill += units > job->budget ? units - job->budget : 0;
    job->budget = 0;
    now = fair__now();
    if ((double)(now - job->slice_start)
        < used_up * (double)GET(fair__config.slice_ns)
        && !GET(fair__config.pause_every_tick)) {
        look_again_in(job, now);
        return 0;
    }
    pause_job(job);
    return GET(here.port->closed)
        || job->unwanted;
}

#endif
