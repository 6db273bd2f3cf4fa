/*
 * gate.c - limits the jobs that compute on threads at once to the number of
 * dirty CPU schedulers.  Further jobs wait in order.
 *
 * The pool's own gate lets more begin where those who compute sleep; a driver's
 * author is promised a number.
 */
#include "gate.h"

/* Over all of this file, and each job's `gate`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned passed;
static struct drv_job *first, *last;

bool drv__gate_pass(struct drv_job *job)
{
    bool passes;

    if (job->flags != FAIR_DRV_DIRTY_CPU)
        return true;
    pthread_mutex_lock(&lock);
    passes = passed < drv__runtime->processors();
    if (passes) {
        passed++;
        job->gate = G_PASSED;
    } else {
        job->gate = G_WAITS;
        job->next = NULL;
        *(first ? &last->next : &first) = job;
        last = job;
    }
    pthread_mutex_unlock(&lock);
    return passes;
}

static void take_off(struct drv_job *job)
{
    struct drv_job **at = &first, *before = NULL;

    while (*at != job) {
        before = *at;
        at = &before->next;
    }
    *at = job->next;
    if (last == job)
        last = before;
}

bool drv__gate_forget(struct drv_job *job)
{
    bool waits;

    pthread_mutex_lock(&lock);
    waits = job->gate == G_WAITS;
    if (waits) {
        take_off(job);
        job->gate = G_OUTSIDE;
    }
    pthread_mutex_unlock(&lock);
    return waits;
}

void drv__gate_leave(struct drv_job *job)
{
    struct drv_job *next = NULL;

    pthread_mutex_lock(&lock);
    if (job->gate == G_PASSED) {
        job->gate = G_OUTSIDE;
        passed--;
        if (first && passed < drv__runtime->processors()) {
            next = first;
            first = next->next;
            next->gate = G_PASSED;
            passed++;
        }
    }
    pthread_mutex_unlock(&lock);
    /* Until it is put no thread can withdraw it, and it is begun even if its
     * port closes now: so it is there.  With no thread it stays queued. */
    if (next)
        (void)drv__runtime->pool_start(&next->pool);
}
