/*
 * drv.h - port drivers, as the runtime sees them.
 *
 * Who owns what:
 *   - a `drv_port` belongs to its references: one for the port, held until the
 *     author's `stop` has been called, and one for each `drv_request`.  What
 *     a request may do needs nothing of the driver's library;
 *   - a `drv_job` belongs to the list it is in, or to the port's `running`;
 *   - a `drv_loaded` (a handle on the driver's library, which keeps it mapped)
 *     belongs to the load and to each port until its `stop` has been called.
 *
 * Locks, in this order: a port's own, then the waiting lock (pool.c).  The
 * registry's is taken alone.  No author's code, no function of the VM that
 * may wait or call back is called with any of them held.
 *
 * Must never be done here: link to a function of erl_driver.h (the driver
 * brings them: struct fair__drv_vm), or read a thread-local where the reader
 * may be inlined into code that pauses.
 */
#ifndef FAIR_DRV_H
#define FAIR_DRV_H

#include "task/task.h"

#define FAIR__DRV_RUNTIME
#include "fairdrv.h"

enum drv_kind {
    K_CALLBACK, K_CONTROL, K_CALL, K_OUTPUT, K_OUTPUTV, K_TIMEOUT,
    K_READY_ASYNC, K_PROCESS_EXIT, K_FLUSH
};

enum {
    DRV_SMALL = 64,             /* bytes of answer without an allocation, as in
                                   the VM */
    DRV_BUSY_JOBS = 64,         /* a port with so many, or so many bytes, to */
    DRV_BUSY_BYTES = 65536      /* do is busy until half of it is done */
};

struct drv_port;
struct drv_request;

struct drv_job {
    struct fair__job pool;      /* first: the pool hands out its address */
    struct drv_port *port;
    struct drv_job *next;
    enum drv_kind kind;
    int flags;                  /* FAIR_DRV_... */
    bool gated;                 /* counts among those on the processors */
    bool waits_at_gate;
    bool again;                 /* the author has rescheduled it */
    bool paused;
    bool done;
    _Atomic bool unwanted;      /* nobody waits for the answer any more */
    size_t bytes;               /* that it keeps from the sender */
    /* by kind */
    FairDrvCallback callback;
    void *arg;
    void (*cancelled)(void *arg);
    unsigned command;
    char *buf;                  /* behind this struct */
    size_t len;
    ErlIOVec *ev;
    ErlDrvThreadData thread_data;
    ErlDrvMonitor monitor;
    /* the answer, and who waits for it */
    struct drv_request *request;    /* under the port's lock */
    bool sending;                   /* as this */
    ErlNifPid caller;
    ErlNifEnv *tag_env;
    ERL_NIF_TERM tag;
    ErlDrvSSizeT result;
    char *rbuf;
    unsigned call_flags;
    char small[DRV_SMALL];
    /* the slice */
    struct fair__task *stack;   /* its own, on a normal scheduler */
    uint64_t slice_start, win_start;
    uint64_t budget, refill;    /* units */
};

struct drv_port {
    struct fair__drv_port pub;  /* first: the VM's drv_data */
    struct fair__driver *driver;
    struct drv_loaded *loaded;
    _Atomic unsigned refs;
    ErlDrvTermData term;        /* the port's identifier; immediate */
    struct drv_port *hash_next; /* the registry's */
    pthread_mutex_t lock;       /* over the rest */
    enum {
        T_FREE,                 /* nothing of the author's runs */
        T_CALLBACK,             /* one that the VM called */
        T_JOB                   /* `running`, which may be paused */
    } turn;
    struct drv_job *running;
    struct drv_job *first, *last;
    struct drv_job *own_last;   /* of those put off by a callback of the VM's:
                                   they are the first in the queue */
    size_t jobs, bytes;
    _Atomic bool closed;
    const char *failed;         /* the port is to be closed, why */
    bool author_busy, own_busy, vm_busy;
    int control_flags;
    int wake[2];                /* -1: none; of an eventfd twice the same */
    bool awake;                 /* written to, not read */
    struct drv_request *requests;   /* those whose call has not come */
};

/* What fairnif:port_control/3 waits for: a resource object. */
struct drv_request {
    struct drv_port *port;
    struct drv_request *next;   /* in port->requests */
    bool listed;
    bool deferred;
    struct drv_job *job;        /* while it is under way */
    ErlNifPid caller;
    ErlNifEnv *tag_env;
    ERL_NIF_TERM tag;
};

/* Which callback this thread is in; the caller's, until it returns. */
struct drv_here {
    struct drv_port *port;
    struct drv_job *job;        /* NULL: one that the VM called */
    bool dirty;
};

/* drv_job.c */
FAIR_HIDDEN struct drv_here drv__here(void);
FAIR_HIDDEN struct drv_here drv__here_set(struct drv_here here);
FAIR_HIDDEN struct drv_job *drv__job_new(struct drv_port *p,
                                         enum drv_kind kind, int flags,
                                         const char *buf, size_t len);
FAIR_HIDDEN void drv__job_free(struct drv_job *job);
FAIR_HIDDEN void drv__push(struct drv_port *p, struct drv_job *job,
                           bool own);                  /* locked */
FAIR_HIDDEN void drv__settle(struct drv_port *p);      /* unlocks */
FAIR_HIDDEN bool drv__end_turn(struct drv_port *p);
FAIR_HIDDEN void drv__cancel(struct drv_job *job);
FAIR_HIDDEN void drv__forget(struct drv_job *job);
FAIR_HIDDEN bool drv__withdraw(struct drv_job *job);   /* locked */
FAIR_HIDDEN void drv__work(struct drv_port *p);
FAIR_HIDDEN void drv__finish_paused(struct drv_port *p);
FAIR_HIDDEN int drv__tick(ErlDrvPort port, size_t units);
FAIR_HIDDEN uint64_t drv__jobs(void);

/* drv_wake.c */
static inline ErlDrvEvent drv__event(int fd)
{
    return (ErlDrvEvent)(intptr_t)fd;
}
FAIR_HIDDEN bool drv__wake_open(struct drv_port *p);
FAIR_HIDDEN void drv__wake(struct drv_port *p);        /* locked */
FAIR_HIDDEN void drv__wake_read(struct drv_port *p);   /* locked */
FAIR_HIDDEN void drv__wake_close(struct drv_port *p);
FAIR_HIDDEN int drv__wake_stopped(ErlDrvEvent event);

/* drv_port.c */
FAIR_HIDDEN extern const struct fair__drv_ops drv__ops;
FAIR_HIDDEN void drv__last_stop(struct drv_port *p);
FAIR_HIDDEN void drv__port_unref(struct drv_port *p);

/* drv_load.c */
FAIR_HIDDEN void drv__loaded_ref(struct drv_loaded *l);
FAIR_HIDDEN void drv__loaded_unref(struct drv_loaded *l);
FAIR_HIDDEN void drv__finish(struct fair__driver *driver);
FAIR_HIDDEN uint64_t drv__libraries(void);

/* drv_request.c */
FAIR_HIDDEN void drv__register(struct drv_port *p);
FAIR_HIDDEN void drv__unregister(struct drv_port *p);
FAIR_HIDDEN struct drv_request *drv__claim(struct drv_port *p);   /* locked */
FAIR_HIDDEN void drv__answer(struct drv_job *job);

#endif
