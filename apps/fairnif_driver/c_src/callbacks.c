/*
 * callbacks.c - the callbacks that the VM calls.  Each calls the author's
 * callback at once if no job of the port waits or runs; otherwise it is queued
 * behind those.
 *
 * Must never be done here: wait for a callback that runs on a thread.
 */
#include <errno.h>

#include "callbacks.h"

#include "gate.h"
#include "job.h"
#include "queue.h"
#include "request.h"
#include "wake.h"

static const struct fair__drv_vm *vm_of(const struct drv_port *p)
{
    return &p->driver->vm;
}

static const ErlDrvEntry *author(const struct drv_port *p)
{
    return p->driver->entry;
}

/* -- busy ------------------------------------------------------------------ */

/* In the port's context: to the VM it is busy when the author says so, or when
 * much waits. */
static void apply_busy(struct drv_port *p)
{
    bool busy, changes;

    pthread_mutex_lock(&p->lock);
    if (p->jobs >= DRV_BUSY_JOBS || p->bytes >= DRV_BUSY_BYTES)
        p->own_busy = true;
    else if (p->jobs <= DRV_BUSY_JOBS / 2 && p->bytes <= DRV_BUSY_BYTES / 2)
        p->own_busy = false;
    busy = p->own_busy || p->author_busy;
    changes = busy != p->vm_busy && !p->closed;
    p->vm_busy = busy;
    pthread_mutex_unlock(&p->lock);
    if (changes)
        vm_of(p)->busy(p->pub.port, busy);
}

static void busy(ErlDrvPort port, int on)
{
    struct drv_here here = drv__here();

    if (!here.port || here.port->pub.port != port || here.dirty)
        return;
    here.port->author_busy = on != 0;
    apply_busy(here.port);
}

static void control_flags(ErlDrvPort port, int flags)
{
    struct drv_here here = drv__here();

    if (!here.port || here.port->pub.port != port || here.dirty)
        return;
    here.port->control_flags = flags;
    vm_of(here.port)->control_flags(port, flags);
}

/* -- turns ----------------------------------------------------------------- */

/* What must be put back when a callback that the VM called has returned. */
struct visit {
    struct drv_here before;
    bool turn;                  /* it was the port's turn */
};

/* False: something of the port's waits or runs.  A callback that the VM calls
 * from within another of this port's (driver_failure does) is part of it. */
static bool take_turn(struct drv_port *p, struct visit *v)
{
    bool nested;

    pthread_mutex_lock(&p->lock);
    nested = p->turn == T_CALLBACK;
    v->turn = p->turn == T_FREE && !p->first && !p->closed;
    if (v->turn)
        p->turn = T_CALLBACK;
    pthread_mutex_unlock(&p->lock);
    return v->turn || nested;
}

static void enter(struct drv_port *p, struct visit *v)
{
    atomic_fetch_add(&p->refs, 1);
    v->before = drv__here_set((struct drv_here){p, NULL, false});
}

static void leave(struct drv_port *p, struct visit *v)
{
    drv__here_set(v->before);
    if ((!v->turn || drv__end_turn(p)) && !p->closed)
        apply_busy(p);
    drv__port_unref(p);
}

/* -- the port opens ---------------------------------------------------------*/

static void opened(struct drv_port *p, ErlDrvPort port)
{
    p->pub.port = port;
    p->term = vm_of(p)->port_term(port);
    drv__register(p);
}

static ErlDrvData start(struct fair__driver *driver, ErlDrvPort port,
                        char *command)
{
    struct drv_port *p = drv__port_new(driver, &drv__ops, port);
    struct visit v;
    ErlDrvData data;

    if (!p) {
        errno = ENOMEM;
        return ERL_DRV_ERROR_ERRNO;
    }
    opened(p, port);
    take_turn(p, &v);
    enter(p, &v);
    data = author(p)->start(port, command);
    if (fair__drv_is_error(data)) {
        struct drv_job *job;
        int error = errno;

        drv__here_set(v.before);
        drv__unregister(p);
        drv__wake_close(p);
        while ((job = p->first) != NULL) {
            p->first = job->next;
            drv__cancel(job);
        }
        drv__port_unref(p);
        drv__port_gone(p);
        errno = error;
        return data;
    }
    p->pub.data = data;
    leave(p, &v);
    return (ErlDrvData)p;
}

static ErlDrvPort create(struct fair__driver *driver, ErlDrvPort creator,
                         ErlDrvTermData owner, char *name, ErlDrvData data)
{
    struct drv_port *p = drv__port_new(driver, &drv__ops, NULL);
    ErlDrvPort port;

    if (!p)
        return (ErlDrvPort)-1;
    p->pub.data = data;
    port = driver->vm.create(creator, owner, name, (ErlDrvData)p);
    if (port == (ErlDrvPort)-1)
        drv__port_gone(p);
    else
        opened(p, port);
    return port;
}

/* -- and closes ------------------------------------------------------------ */

/* Nothing more is begun.  What runs on a thread, or on the stack that called
 * this, calls the author's `stop` when it is done; what is paused is done
 * here: its ticks do not pause any more. */
static void stop(struct fair__drv_port *pub)
{
    struct drv_port *p = (struct drv_port *)pub;
    struct drv_job *first, *job, *running;
    struct visit v = {.turn = false};
    bool paused, begun, withdrawn;

    drv__unregister(p);
    enter(p, &v);
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    first = p->first;
    p->first = p->last = p->own_last = NULL;
    p->jobs = p->bytes = 0;
    begun = p->turn != T_FREE;
    running = p->turn == T_JOB ? p->running : NULL;
    paused = running && running->paused;
    withdrawn = running && !paused && drv__withdraw(running);
    pthread_mutex_unlock(&p->lock);
    if (p->driver->closing)
        p->driver->closing(p->pub.data);
    drv__wake_close(p);
    while ((job = first) != NULL) {
        first = job->next;
        drv__cancel(job);
    }
    if (withdrawn) {
        drv__gate_leave(running);
        drv__forget(running);
        drv__end_turn(p);
    } else if (paused) {
        drv__finish_paused(p);
    } else if (!begun) {
        drv__last_stop(p);
    }
    leave(p, &v);
}

/* -- callbacks that can wait ----------------------------------------------- */

/* Puts a callback off that the VM called out of turn.  No memory: it is lost,
 * and the port is closed for it. */
static struct drv_job *queue_job(struct drv_port *p, enum drv_kind kind,
                                 const char *buf, size_t len)
{
    struct drv_job *job = drv__job_new(p, kind, FAIR_DRV_NORMAL, buf, len);

    pthread_mutex_lock(&p->lock);
    if (!job && !p->failed) {
        p->failed = "enomem";
        drv__wake(p);
    }
    pthread_mutex_unlock(&p->lock);
    return job;
}

static void queue(struct drv_port *p, struct drv_job *job)
{
    pthread_mutex_lock(&p->lock);
    drv__push(p, job, false);
    drv__settle(p);
    apply_busy(p);
}

#define DIRECT(NAME, ...)                                                   \
    struct drv_port *p = (struct drv_port *)pub;                            \
    struct visit v;                                                         \
                                                                            \
    if (take_turn(p, &v)) {                                                 \
        enter(p, &v);                                                       \
        author(p)->NAME(p->pub.data, ##__VA_ARGS__);                        \
        leave(p, &v);                                                       \
        return;                                                             \
    }                                                                       \
    if (p->closed)                                                          \
        return

static void output(struct fair__drv_port *pub, char *buf, ErlDrvSizeT len)
{
    DIRECT(output, buf, len);
    struct drv_job *job = queue_job(p, K_OUTPUT, buf, len);

    if (job)
        queue(p, job);
}

static void outputv(struct fair__drv_port *pub, ErlIOVec *ev)
{
    DIRECT(outputv, ev);
    struct drv_job *job = queue_job(p, K_OUTPUTV, NULL, 0);

    if (!job)
        return;
    job->ev = vm_of(p)->keep_iovec(ev);
    job->bytes = ev->size;
    if (job->ev) {
        queue(p, job);
        return;
    }
    drv__job_free(job);
    pthread_mutex_lock(&p->lock);
    p->failed = "enomem";
    drv__wake(p);
    pthread_mutex_unlock(&p->lock);
}

static void timeout(struct fair__drv_port *pub)
{
    DIRECT(timeout);
    struct drv_job *job = queue_job(p, K_TIMEOUT, NULL, 0);

    if (job)
        queue(p, job);
}

static void ready_async(struct fair__drv_port *pub, ErlDrvThreadData data)
{
    DIRECT(ready_async, data);
    struct drv_job *job = queue_job(p, K_READY_ASYNC, NULL, 0);

    if (job) {
        job->thread_data = data;
        queue(p, job);
    }
}

static void process_exit(struct fair__drv_port *pub, ErlDrvMonitor *monitor)
{
    DIRECT(process_exit, monitor);
    struct drv_job *job = queue_job(p, K_PROCESS_EXIT, NULL, 0);

    if (job) {
        job->monitor = *monitor;
        queue(p, job);
    }
}

static void flush(struct fair__drv_port *pub)
{
    DIRECT(flush);
    struct drv_job *job = queue_job(p, K_FLUSH, NULL, 0);

    if (job)
        queue(p, job);
}

/* -- callbacks that cannot ------------------------------------------------- */

/* The VM calls these again and again until the author has read or written. */
static void ready_input(struct fair__drv_port *pub, ErlDrvEvent event)
{
    struct drv_port *p = (struct drv_port *)pub;
    struct visit v;

    if (event == drv__event(p->wake[0])) {
        v.turn = false;
        enter(p, &v);
        drv__work(p);
        leave(p, &v);
        return;
    }
    if (!author(p)->ready_input)
        return;
    take_turn(p, &v);
    enter(p, &v);
    author(p)->ready_input(p->pub.data, event);
    leave(p, &v);
}

static void ready_output(struct fair__drv_port *pub, ErlDrvEvent event)
{
    struct drv_port *p = (struct drv_port *)pub;
    struct visit v;

    take_turn(p, &v);
    enter(p, &v);
    author(p)->ready_output(p->pub.data, event);
    leave(p, &v);
}

/* -- control and call ------------------------------------------------------ */

static int flags_of(ErlDrvSSizeT answer)
{
    switch (answer) {
    case FAIR_DRV_RESCHEDULE:
        return FAIR_DRV_NORMAL;
    case FAIR_DRV_RESCHEDULE_DIRTY_CPU:
        return FAIR_DRV_DIRTY_CPU;
    case FAIR_DRV_RESCHEDULE_DIRTY_IO:
        return FAIR_DRV_DIRTY_IO;
    default:
        return -1;
    }
}

/* A caller that waits in fairnif_driver:control/3 gets a message later: true.
 * What the VM is answered now is then of no interest. */
static bool defer(struct drv_port *p, enum drv_kind kind, int flags,
                  bool again, unsigned command, const char *buf, size_t len)
{
    struct drv_job *job;
    struct drv_request *request;

    if (!drv__wake_open(p)
        || !(job = drv__job_new(p, kind, flags, buf, len)))
        return false;
    job->command = command;
    job->again = again;
    job->tag_env = enif_alloc_env();
    pthread_mutex_lock(&p->lock);
    request = job->tag_env ? drv__claim(p) : NULL;
    if (request) {
        job->request = request;
        job->caller = request->caller;
        job->tag = enif_make_copy(job->tag_env, request->tag);
        request->job = job;
        request->deferred = true;
        drv__push(p, job, again);
    }
    drv__settle(p);
    if (!request)
        drv__job_free(job);
    return request != NULL;
}

static ErlDrvSSizeT control(struct fair__drv_port *pub, unsigned command,
                            char *buf, ErlDrvSizeT len, char **rbuf,
                            ErlDrvSizeT rlen)
{
    struct drv_port *p = (struct drv_port *)pub;
    ErlDrvSSizeT answer;
    char *first_rbuf = *rbuf;
    struct visit v;

    if (p->closed)
        return -1;
    if (!take_turn(p, &v))
        return defer(p, K_CONTROL, FAIR_DRV_NORMAL, false, command, buf, len)
            ? 0 : -1;
    enter(p, &v);
    answer = author(p)->control(p->pub.data, command, buf, len, rbuf, rlen);
    if (flags_of(answer) >= 0) {
        *rbuf = first_rbuf;
        answer = defer(p, K_CONTROL, flags_of(answer), true, command, buf, len)
            ? 0 : -1;
    }
    leave(p, &v);
    return answer;
}

/* The VM wants a term of every call that did not fail: the atom `ok`. */
static ErlDrvSSizeT call_answer(bool deferred, char *rbuf, unsigned *flags)
{
    static const unsigned char term[] = {131, 119, 2, 'o', 'k'};

    if (!deferred)
        return -1;
    memcpy(rbuf, term, sizeof term);
    *flags |= DRIVER_CALL_KEEP_BUFFER;
    return sizeof term;
}

static ErlDrvSSizeT call(struct fair__drv_port *pub, unsigned command,
                         char *buf, ErlDrvSizeT len, char **rbuf,
                         ErlDrvSizeT rlen, unsigned *flags)
{
    struct drv_port *p = (struct drv_port *)pub;
    ErlDrvSSizeT answer;
    char *first_rbuf = *rbuf;
    struct visit v;

    if (p->closed || rlen < 8)
        return -1;
    if (!take_turn(p, &v))
        return call_answer(defer(p, K_CALL, FAIR_DRV_NORMAL, false, command,
                                 buf, len), *rbuf, flags);
    enter(p, &v);
    answer = author(p)->call(p->pub.data, command, buf, len, rbuf, rlen, flags);
    if (flags_of(answer) >= 0) {
        *rbuf = first_rbuf;
        answer = call_answer(defer(p, K_CALL, flags_of(answer), true, command,
                                   buf, len), *rbuf, flags);
    }
    leave(p, &v);
    return answer;
}

/* -- from callbacks -------------------------------------------------------- */

struct put {
    struct drv_port *p;
    struct drv_job *job;
    bool own, put;
};

/* A scheduler may wait for these locks: not at a low priority. */
static void put(void *arg)
{
    struct put *a = arg;

    pthread_mutex_lock(&a->p->lock);
    a->put = !a->p->closed;
    if (a->put) {
        drv__push(a->p, a->job, a->own);
        drv__settle(a->p);      /* where the callback has no turn of its own */
    } else {
        pthread_mutex_unlock(&a->p->lock);
        drv__job_free(a->job);
    }
}

static ErlDrvSSizeT schedule(ErlDrvPort port, int flags,
                             FairDrvCallback callback, void *arg,
                             void (*cancelled)(void *arg))
{
    struct drv_here here = drv__here();
    struct drv_port *p = here.port;
    struct drv_job *job;
    struct put a;

    if (!p || p->pub.port != port || flags < FAIR_DRV_NORMAL
        || flags > FAIR_DRV_DIRTY_IO || !callback) {
        errno = EINVAL;
        return -1;
    }
    if (!p->closed && !here.dirty && !drv__wake_open(p))
        return -1;
    if (!(job = drv__job_new(p, K_CALLBACK, flags, NULL, 0))) {
        errno = ENOMEM;
        return -1;
    }
    job->callback = callback;
    job->arg = arg;
    job->cancelled = cancelled;
    a = (struct put){p, job, !here.job || here.job->kind != K_CALLBACK, false};
    drv__runtime->at_par(put, &a);
    if (!a.put)
        errno = EPIPE;
    return a.put ? 0 : -1;
}

static int is_dirty(ErlDrvPort port)
{
    struct drv_here here = drv__here();

    return here.port && here.port->pub.port == port && here.job && here.dirty;
}

static int is_again(ErlDrvPort port)
{
    struct drv_here here = drv__here();

    return here.port && here.port->pub.port == port && here.job
        && here.job->again;
}

const struct fair__drv_ops drv__ops = {
    .size = sizeof drv__ops,
    .abi_major = FAIR_DRV_ABI_MAJOR,
    .abi_minor = FAIR_DRV_ABI_MINOR,
    .start = start,
    .stop = stop,
    .output = output,
    .outputv = outputv,
    .control = control,
    .call = call,
    .ready_input = ready_input,
    .ready_output = ready_output,
    .timeout = timeout,
    .ready_async = ready_async,
    .process_exit = process_exit,
    .flush = flush,
    .stop_select = drv__wake_stopped,
    .finish = drv__finish,
    .schedule = schedule,
    .is_dirty = is_dirty,
    .is_again = is_again,
    .tick = drv__tick,
    .busy = busy,
    .control_flags = control_flags,
    .create = create,
};
