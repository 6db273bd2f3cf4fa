/*
 * port.h - a port of a driver that was handed the runtime, and what belongs to
 * it.
 *
 * Who owns what:
 *   - a `drv_port` belongs to its references: one for the port, kept until the
 *     author's `stop` has been called, and one for each `drv_request`.  What
 *     a request may do needs nothing of the driver's library;
 *   - a `drv_job` belongs to the list it is in, or to the port's `running`.
 *
 * Locks, in this order: a port's own, then the gate's (gate.c), then the
 * runtime's.  The registry's is taken alone.
 */
#ifndef DRV_PORT_H
#define DRV_PORT_H

#include "library.h"

enum drv_kind {
    K_CALLBACK, K_CONTROL, K_CALL, K_OUTPUT, K_OUTPUTV, K_TIMEOUT,
    K_READY_ASYNC, K_PROCESS_EXIT, K_FLUSH
};

enum {
    DRV_SMALL = 64,             /* bytes of answer without an allocation, as in
                                   the VM */
    DRV_BUSY_JOBS = 64,         /* a port with this many jobs or bytes to */
    DRV_BUSY_BYTES = 65536      /* do is busy until half of it is done */
};

struct drv_port;
struct drv_request;

struct drv_job {
    struct fair__job pool;      /* first: the pool passes its address */
    struct drv_port *port;
    struct drv_job *next;
    enum drv_kind kind;
    int flags;                  /* FAIR_DRV_... */
    enum { G_OUTSIDE, G_WAITS, G_PASSED } gate;     /* the gate's */
    bool again;                 /* the author has rescheduled it */
    bool paused;                /* `strand` is to be run again */
    _Atomic bool unwanted;      /* no process waits for the answer */
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
    /* the answer, and its receiver */
    struct drv_request *request;    /* under the port's lock */
    bool sending;                   /* as this */
    ErlNifPid caller;
    ErlNifEnv *tag_env;
    ERL_NIF_TERM tag;
    ErlDrvSSizeT result;
    char *rbuf;
    unsigned call_flags;
    char small[DRV_SMALL];
    fair_task *strand;          /* while it runs in slices */
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

/* What fairnif_driver:control/3 waits for: a resource object. */
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
DRV_HIDDEN struct drv_here drv__here(void);
DRV_HIDDEN struct drv_here drv__here_set(struct drv_here here);

/* With one reference, the port's own; it has no identifier yet. */
DRV_HIDDEN struct drv_port *drv__port_new(struct fair__driver *driver,
                                          const struct fair__drv_ops *ops,
                                          ErlDrvPort port);
DRV_HIDDEN void drv__port_unref(struct drv_port *p);
/* The port's own reference: nothing of the author's is left. */
DRV_HIDDEN void drv__port_gone(struct drv_port *p);
/* The author's last callback of a closed port has returned: his `stop`, and
 * then the same. */
DRV_HIDDEN void drv__last_stop(struct drv_port *p);

DRV_HIDDEN void drv__register(struct drv_port *p);
DRV_HIDDEN void drv__unregister(struct drv_port *p);
/* The caller gets a reference; NULL: no port of a driver of ours. */
DRV_HIDDEN struct drv_port *drv__lookup(ErlNifEnv *env, ERL_NIF_TERM term);
DRV_HIDDEN uint64_t drv__ports(void);

#endif
