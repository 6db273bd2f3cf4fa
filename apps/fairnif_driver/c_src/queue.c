/*
 * queue.c - creates, queues, takes and cancels the jobs of a port.
 */
#include "queue.h"

static drv_u64 jobs;                    /* that exist */

uint64_t drv__jobs(void)
{
    return GET(jobs);
}

/* -- jobs ------------------------------------------------------------------ */

struct drv_job *drv__job_new(struct drv_port *p, enum drv_kind kind, int flags,
                             const char *buf, size_t len)
{
    struct drv_job *job = enif_alloc(sizeof *job + len);

    if (!job)
        return NULL;
    memset(job, 0, sizeof *job);
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

/* The caller of a control or call learns of it by the end of the port. */
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

void drv__forget(struct drv_job *job)
{
    struct drv_port *p = job->port;

    pthread_mutex_lock(&p->lock);
    p->running = NULL;
    pthread_mutex_unlock(&p->lock);
    drv__cancel(job);
}

/* -- a port's queue -------------------------------------------------------- */

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

struct drv_job *drv__pop(struct drv_port *p)
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
