/*
 * job.c - deferred work of a port driver: where it runs, in which order,
 * and how it ends.
 *
 *     push --> settle --> NORMAL: wake the port --> drv__work --> slice
 *                |                                   ^    |---> paused
 *                |                                   '----'---> ended
 *                '--> DIRTY: (gate) --> pool --> on_thread ---> ended
 *
 * A port has one turn: a callback of the author's that the VM called, or one
 * job.  When it ends, the first of the queue is started.
 *
 * A job on a normal scheduler is a strand of the runtime's: it has a stack of
 * its own, so that a tick can leave it there and give the scheduler back.  On a
 * thread it runs on the thread's, which is large: code that cannot tick is not
 * known for small frames.
 *
 * Must never be done here: call the author, or free what he may hold on to,
 * with a lock held.
 */
#include "job.h"

#include "gate.h"
#include "queue.h"
#include "request.h"
#include "wake.h"

static void start_on_thread(struct drv_job *job);

void drv__settle(struct drv_port *p)
{
    struct drv_job *job = NULL;

    if (p->turn == T_FREE && p->first && !p->closed && !p->failed) {
        if (p->first->flags == FAIR_DRV_NORMAL)
            drv__wake(p);
        else
            job = drv__pop(p);
    }
    if (p->failed || (p->own_busy && p->jobs <= DRV_BUSY_JOBS / 2
                      && p->bytes <= DRV_BUSY_BYTES / 2))
        drv__wake(p);           /* the port must say so, in its context */
    pthread_mutex_unlock(&p->lock);
    if (job)
        start_on_thread(job);
}

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

/* -- the author's code ----------------------------------------------------- */

/* Of a job. */
static void run_author(void *arg)
{
    struct drv_job *job = arg;
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

/* -1: an answer; else the flags to continue with. */
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

/* -- on a thread ----------------------------------------------------------- */

bool drv__withdraw(struct drv_job *job)
{
    return drv__gate_forget(job) || drv__runtime->pool_withdraw(&job->pool);
}

static void on_thread(struct fair__job *pool);

/* Nothing may touch the job once it is put, but who withdraws it. */
static void start_on_thread(struct drv_job *job)
{
    struct drv_port *p = job->port;

    job->pool.run = on_thread;
    job->pool.waits = job->flags == FAIR_DRV_DIRTY_IO;
    /* From here it may be done and gone; but not if there is no thread: then
     * only a port that closes takes it away. */
    if (!drv__gate_pass(job) || drv__runtime->pool_start(&job->pool))
        return;
    pthread_mutex_lock(&p->lock);
    if (p->running != job || !drv__withdraw(job)) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->failed = "no_thread";
    pthread_mutex_unlock(&p->lock);
    drv__gate_leave(job);
    drv__forget(job);
    drv__end_turn(p);
}

static void on_its_thread(void *arg)
{
    struct drv_job *job = arg;
    struct drv_here before = drv__here_set((struct drv_here){job->port, job, true});

    run_author(job);
    drv__here_set(before);
}

/* What the pool calls. */
static void on_thread(struct fair__job *pool)
{
    struct drv_job *job = (struct drv_job *)pool;
    struct drv_port *p = job->port;
    bool wanted;

    pthread_mutex_lock(&p->lock);
    wanted = !p->closed && !job->unwanted;
    pthread_mutex_unlock(&p->lock);
    if (wanted && job->flags == FAIR_DRV_DIRTY_CPU)
        drv__runtime->run_low(on_its_thread, job);
    else if (wanted)
        on_its_thread(job);
    drv__gate_leave(job);
    if (wanted) {
        ended(job);
    } else {
        drv__forget(job);
        drv__end_turn(p);
    }
}

/* -- on a normal scheduler ------------------------------------------------- */

/* One slice of a job, in the port's context.  True: it has ended.  Without a
 * stack it runs here and to its end. */
static bool slice(struct drv_job *job)
{
    struct drv_here before =
        drv__here_set((struct drv_here){job->port, job, false});
    bool done = true;

    job->paused = false;
    if (!job->strand) {
        job->strand = drv__runtime->strand_new(run_author, job);
        if (job->strand)
            drv__runtime->strand_name(job->strand, job->port->driver->name);
    }
    if (job->strand)
        done = drv__runtime->strand_run(job->strand);
    else
        run_author(job);
    if (done)
        job->strand = NULL;
    drv__here_set(before);
    return done;
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
        job = drv__pop(p);
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
    if (slice(job))
        return ended(job);
    pthread_mutex_lock(&p->lock);
    job->paused = true;
    pthread_mutex_unlock(&p->lock);
    return false;
}

/* The port was woken. */
void drv__work(struct drv_port *p)
{
    const struct fair__private *runtime = drv__runtime;
    uint64_t begin = runtime->now();
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
    while ((job = next_here(p)) != NULL && work_on(job)
           && !runtime->slice_is_up(begin))
        ;
    if (!p->closed)
        p->driver->vm.consume(p->pub.port,
                              runtime->price(runtime->now() - begin));
}

/* Its ticks say that the port has closed, and do not pause. */
void drv__finish_paused(struct drv_port *p)
{
    struct drv_job *job = p->running;

    slice(job);
    ended(job);
}

/* -- ticks ----------------------------------------------------------------- */

int drv__tick(ErlDrvPort port, size_t units)
{
    struct drv_here here = drv__here();
    struct drv_job *job = here.job;

    if (!here.port || here.port->pub.port != port)
        return 1;
    if (GET(here.port->closed) || (job && job->unwanted))
        return 1;
    if (!job || here.dirty || !job->strand)
        return 0;
    fair_tick(job->strand, units);
    return GET(here.port->closed) || job->unwanted;
}
