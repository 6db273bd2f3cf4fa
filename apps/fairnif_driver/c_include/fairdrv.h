/*
 * fairdrv.h - port drivers that share the BEAM.
 *
 * A driver written with this header can postpone the work of a callback: to a
 * thread of the runtime's pool, or to later turns of the port on a normal
 * scheduler.  No scheduler is blocked meanwhile.
 *
 *     #include <fairdrv.h>
 *
 *     static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *buf,
 *                                 ErlDrvSizeT len, char **rbuf,
 *                                 ErlDrvSizeT rlen)
 *     {
 *         struct state *s = (struct state *)data;
 *
 *         if (!fair_drv_callback_is_rescheduled(s->port))
 *             return FAIR_DRV_RESCHEDULE_DIRTY_CPU;
 *         return compress(s, buf, len, *rbuf, rlen);    // takes its time
 *     }
 *
 *     static ErlDrvEntry entry = {
 *         .start = start, .stop = stop, .control = control,
 *         .driver_name = "squeeze",
 *         .extended_marker = ERL_DRV_EXTENDED_MARKER,
 *         .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
 *         .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
 *         .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING
 *     };
 *     FAIR_DRIVER_INIT(squeeze, entry, NULL)
 *
 *     %% In Erlang:
 *     ok = fairnif_driver:load(Dir, "squeeze"),
 *     Port = open_port({spawn_driver, "squeeze"}, [binary]),
 *     fairnif_driver:control(Port, 1, Data)
 *
 * The driver links nothing: fairnif_driver:load/2 passes it the runtime.
 *
 * THE RULES.  The callbacks of one port never run at the same time, on whatever
 * threads they run: while a postponed one waits or runs, others are queued
 * behind it.  (Except ready_input and ready_output, which the VM would call
 * repeatedly; erlang:port_control and port_call, which cannot wait, raise
 * badarg then.)  On a thread only these functions of erl_driver.h may be
 * called: those for memory and binaries, erl_drv_output_term,
 * erl_drv_send_term, erl_drv_monotonic_time and the like, and those for mutexes
 * and other objects of threads.
 *
 * When the port closes, callbacks that wait are not begun any more.  In one
 * that runs fair_drv_tick returns 1, and it is expected to return then.  `stop`
 * is called when it has.
 *
 * Reference: docs/reference/drivers.md.  Design: docs/internals/drivers.md.
 */
#ifndef FAIRDRV_H
#define FAIRDRV_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <erl_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The binary interface between this header and the runtime.  A driver loads
 * when the major versions are equal and its minor one is not newer. */
#define FAIR_DRV_ABI_MAJOR 1
#define FAIR_DRV_ABI_MINOR 0

/* -- what an author uses -------------------------------------------------- */

/* Where a callback is to run. */
#define FAIR_DRV_NORMAL    0    /* on a normal scheduler, as a turn of the
                                   port; yields in fair_drv_tick */
#define FAIR_DRV_DIRTY_CPU 1    /* on a thread; as many at once, of all ports,
                                   as there are dirty CPU schedulers */
#define FAIR_DRV_DIRTY_IO  2    /* on a thread; for what mostly waits */

/* Returns a negative number if the port is to be closed, with the exit reason
 * callback_failed; any other number is ignored. */
typedef ErlDrvSSizeT (*FairDrvCallback)(ErlDrvData drv_data, void *arg);

/* Only `control` and `call` may return these: the callback is called again,
 * with the same command and a copy of the buffer, where the name says.  Its
 * result then goes to the caller of fairnif_driver:control/3 or call/3; a
 * caller of erlang:port_control/3 gets badarg at once. */
#define FAIR_DRV_RESCHEDULE           ((ErlDrvSSizeT)-4710)
#define FAIR_DRV_RESCHEDULE_DIRTY_CPU ((ErlDrvSSizeT)-4711)
#define FAIR_DRV_RESCHEDULE_DIRTY_IO  ((ErlDrvSSizeT)-4712)

/* The rest of this section is inline, below:
 *
 * ErlDrvSSizeT fair_drv_schedule_callback(ErlDrvPort port, int flags,
 *                                         FairDrvCallback callback, void *arg);
 * ErlDrvSSizeT fair_drv_schedule_or_cancel(ErlDrvPort port, int flags,
 *                                          FairDrvCallback callback, void *arg,
 *                                          void (*cancelled)(void *arg));
 * int fair_drv_callback_is_on_dirty_scheduler(ErlDrvPort port);
 * int fair_drv_callback_is_rescheduled(ErlDrvPort port);
 * int fair_drv_tick(ErlDrvPort port, size_t units);
 * ErlIOVec *fair_drv_keep_iovec(ErlIOVec *ev);
 * void fair_drv_free_iovec(ErlIOVec *kept);
 * FAIR_DRIVER_INIT(NAME, ENTRY, CLOSING)
 */

/* -- between the header and the runtime ----------------------------------- */

/* What the VM has as a port's drv_data.  The runtime's own fields follow,
 * where the port was opened with a runtime. */
struct fair__drv_port {
    const struct fair__drv_ops *ops;    /* NULL: opened without a runtime */
    ErlDrvData data;                    /* the author's */
    ErlDrvPort port;
};

/* Functions of the VM that the runtime calls: it is linked to none of them,
 * since a NIF library cannot be everywhere. */
struct fair__drv_vm {
    int (*select)(ErlDrvPort port, ErlDrvEvent event, int mode, int on);
    ErlDrvTermData (*caller)(ErlDrvPort port);
    ErlDrvTermData (*port_term)(ErlDrvPort port);
    void (*busy)(ErlDrvPort port, int on);
    void (*control_flags)(ErlDrvPort port, int flags);
    int (*consume)(ErlDrvPort port, int percent);
    int (*fail)(ErlDrvPort port, char *reason);
    ErlDrvPort (*create)(ErlDrvPort creator, ErlDrvTermData owner, char *name,
                         ErlDrvData data);
    void (*free)(void *memory);
    void (*free_bin)(ErlDrvBinary *bin);
    ErlIOVec *(*keep_iovec)(ErlIOVec *ev);
    void (*free_iovec)(ErlIOVec *kept);
};

/* One loaded driver, as the runtime finds it. */
struct fair__driver {
    uint32_t size;              /* of this struct: first, never moves */
    uint16_t abi_major, abi_minor;
    uint32_t entry_size, vm_size, ops_size;
    const char *name;
    const ErlDrvEntry *entry;   /* the author's */
    void (*closing)(ErlDrvData drv_data);
    struct fair__drv_vm vm;
    /* answers */
    const struct fair__drv_ops *volatile ops;   /* NULL: not bound */
    void *loaded;               /* the runtime's record of this load */
    int (*go_on)(struct fair__driver *driver);  /* see fair__drv_init */
};

/* The runtime's functions.  Appended to, never reordered, within a major
 * version. */
struct fair__drv_ops {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    ErlDrvData (*start)(struct fair__driver *driver, ErlDrvPort port,
                        char *command);
    void (*stop)(struct fair__drv_port *p);
    void (*output)(struct fair__drv_port *p, char *buf, ErlDrvSizeT len);
    void (*outputv)(struct fair__drv_port *p, ErlIOVec *ev);
    ErlDrvSSizeT (*control)(struct fair__drv_port *p, unsigned command,
                            char *buf, ErlDrvSizeT len, char **rbuf,
                            ErlDrvSizeT rlen);
    ErlDrvSSizeT (*call)(struct fair__drv_port *p, unsigned command, char *buf,
                         ErlDrvSizeT len, char **rbuf, ErlDrvSizeT rlen,
                         unsigned *flags);
    void (*ready_input)(struct fair__drv_port *p, ErlDrvEvent event);
    void (*ready_output)(struct fair__drv_port *p, ErlDrvEvent event);
    void (*timeout)(struct fair__drv_port *p);
    void (*ready_async)(struct fair__drv_port *p, ErlDrvThreadData data);
    void (*process_exit)(struct fair__drv_port *p, ErlDrvMonitor *monitor);
    void (*flush)(struct fair__drv_port *p);
    int (*stop_select)(ErlDrvEvent event);
    void (*finish)(struct fair__driver *driver);
    ErlDrvSSizeT (*schedule)(ErlDrvPort port, int flags,
                             FairDrvCallback callback, void *arg,
                             void (*cancelled)(void *arg));
    int (*is_dirty)(ErlDrvPort port);
    int (*is_again)(ErlDrvPort port);
    int (*tick)(ErlDrvPort port, size_t units);
    void (*busy)(ErlDrvPort port, int on);
    void (*control_flags)(ErlDrvPort port, int flags);
    ErlDrvPort (*create)(struct fair__driver *driver, ErlDrvPort creator,
                         ErlDrvTermData owner, char *name, ErlDrvData data);
};

/* Defined by FAIR_DRIVER_INIT, in one file of the driver. */
extern __attribute__((visibility("hidden"))) struct fair__driver fair__driver;

/* -- work put off --------------------------------------------------------- */

static inline int fair__drv_no_runtime(const char *what)
{
    fprintf(stderr, "fairnif: driver %s: %s: the port was opened before, or "
            "without, fairnif_driver:load/2 loaded the driver: load it with "
            "that instead of erl_ddll\n",
            fair__driver.name ? fair__driver.name : "?", what);
    errno = ENOTSUP;
    return -1;
}

/* Queues callback(drv_data, arg) behind what the port has to do already.  Call
 * it in any callback of that port, also in a postponed one; not from the
 * author's own threads.  It begins after the callback that calls this has
 * returned.
 *
 * If the port closes before the callback begins, cancelled(arg) is called
 * instead, unless it is NULL: on any thread, maybe while another callback of
 * the port still runs.  (A callback that has begun runs to its end.)
 *
 * Returns 0, or -1 and errno: ENOMEM; EMFILE, no descriptor is left (a port
 * that postpones work uses one); EPIPE, the port has been closed; EINVAL, not
 * called in a callback of this port, or bad flags; ENOTSUP, there is no runtime
 * (standard error says so too). */
static inline ErlDrvSSizeT fair_drv_schedule_or_cancel(
    ErlDrvPort port, int flags, FairDrvCallback callback, void *arg,
    void (*cancelled)(void *arg))
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    return ops ? ops->schedule(port, flags, callback, arg, cancelled)
        : fair__drv_no_runtime("fair_drv_schedule_callback");
}

/* The same without `cancelled`: `arg` is static then, or `stop` finds it by
 * drv_data. */
static inline ErlDrvSSizeT fair_drv_schedule_callback(
    ErlDrvPort port, int flags, FairDrvCallback callback, void *arg)
{
    return fair_drv_schedule_or_cancel(port, flags, callback, arg, NULL);
}

/* Whether the calling callback runs on a thread, not on a normal scheduler. */
static inline int fair_drv_callback_is_on_dirty_scheduler(ErlDrvPort port)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    return ops ? ops->is_dirty(port) : 0;
}

/* Whether the calling `control` or `call` is called again, because it has
 * returned one of FAIR_DRV_RESCHEDULE... */
static inline int fair_drv_callback_is_rescheduled(ErlDrvPort port)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    return ops ? ops->is_again(port) : 0;
}

/* Reports that `units` of work were done since the last tick: bytes, rows,
 * rounds.  A callback that was postponed to a normal scheduler and has used its
 * slice (about 25 us) continues in a later turn of the port.  Returns 1 if the
 * work is no longer needed: the port closed, or the caller of
 * fairnif_driver:control/3 or call/3 died; the callback must return soon then.
 * Otherwise returns 0. */
static inline int fair_drv_tick(ErlDrvPort port, size_t units)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    return ops ? ops->tick(port, units) : 0;
}

/* A copy of outputv's vector, which may be used after outputv has returned, on
 * any thread: binaries get a reference, other bytes are copied.  NULL if memory
 * is out. */
static inline ErlIOVec *fair_drv_keep_iovec(ErlIOVec *ev)
{
    size_t n = (size_t)ev->vsize, bytes = 0, i;
    ErlIOVec *kept;
    char *at;

    for (i = 0; i < n; i++)
        if (!ev->binv || !ev->binv[i])
            bytes += ev->iov[i].iov_len;
    kept = (ErlIOVec *)driver_alloc(
        sizeof *kept + n * (sizeof *ev->iov + sizeof *ev->binv) + bytes);
    if (!kept)
        return NULL;
    kept->vsize = ev->vsize;
    kept->size = ev->size;
    kept->iov = (SysIOVec *)(kept + 1);
    kept->binv = (ErlDrvBinary **)(kept->iov + n);
    at = (char *)(kept->binv + n);
    for (i = 0; i < n; i++) {
        kept->iov[i] = ev->iov[i];
        kept->binv[i] = ev->binv ? ev->binv[i] : NULL;
        if (kept->binv[i]) {
            driver_binary_inc_refc(kept->binv[i]);
        } else if (ev->iov[i].iov_len > 0) {
            memcpy(at, ev->iov[i].iov_base, ev->iov[i].iov_len);
            kept->iov[i].iov_base = at;
            at += ev->iov[i].iov_len;
        }
    }
    return kept;
}

static inline void fair_drv_free_iovec(ErlIOVec *kept)
{
    int i;

    if (!kept)
        return;
    for (i = 0; i < kept->vsize; i++)
        if (kept->binv[i])
            driver_free_binary(kept->binv[i]);
    driver_free(kept);
}

/* The entry that the VM gets.  Every callback goes through the runtime where
 * there is one, and straight to the author's where there is none. */
static inline struct fair__drv_port *fair__drv_of(ErlDrvData data)
{
    return (struct fair__drv_port *)data;
}

static inline struct fair__drv_port *fair__drv_plain(ErlDrvPort port,
                                                     ErlDrvData data)
{
    struct fair__drv_port *p =
        (struct fair__drv_port *)driver_alloc(sizeof *p);

    if (p) {
        p->ops = NULL;
        p->data = data;
        p->port = port;
    }
    return p;
}

static inline int fair__drv_is_error(ErlDrvData data)
{
    return data == ERL_DRV_ERROR_GENERAL || data == ERL_DRV_ERROR_ERRNO
        || data == ERL_DRV_ERROR_BADARG;
}

/* Called by the VM after each load.  Where callbacks of the load before are
 * still running, this library was never unloaded: the driver continues as it
 * is, with neither `finish` nor `init` called. */
static inline int fair__drv_init(void)
{
    if (fair__driver.go_on && fair__driver.go_on(&fair__driver))
        return 0;
    return fair__driver.entry->init ? fair__driver.entry->init() : 0;
}

static inline void fair__drv_finish(void)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    if (ops)
        ops->finish(&fair__driver);
    else if (fair__driver.entry->finish)
        fair__driver.entry->finish();
}

static inline ErlDrvData fair__drv_start(ErlDrvPort port, char *command)
{
    const struct fair__drv_ops *ops = fair__driver.ops;
    struct fair__drv_port *p;

    if (ops)
        return ops->start(&fair__driver, port, command);
    if (!(p = fair__drv_plain(port, NULL))) {
        errno = ENOMEM;
        return ERL_DRV_ERROR_ERRNO;
    }
    p->data = fair__driver.entry->start(port, command);
    if (fair__drv_is_error(p->data)) {
        ErlDrvData error = p->data;
        int saved = errno;

        driver_free(p);
        errno = saved;
        return error;
    }
    return (ErlDrvData)p;
}

static inline void fair__drv_stop(ErlDrvData data)
{
    struct fair__drv_port *p = fair__drv_of(data);

    if (p->ops) {
        p->ops->stop(p);
        return;
    }
    if (fair__driver.closing)
        fair__driver.closing(p->data);
    if (fair__driver.entry->stop)
        fair__driver.entry->stop(p->data);
    driver_free(p);
}

static inline ErlDrvSSizeT fair__drv_answer(ErlDrvSSizeT answer)
{
    return answer == FAIR_DRV_RESCHEDULE
        || answer == FAIR_DRV_RESCHEDULE_DIRTY_CPU
        || answer == FAIR_DRV_RESCHEDULE_DIRTY_IO
        ? fair__drv_no_runtime("a call cannot be rescheduled") : answer;
}

static inline ErlDrvSSizeT fair__drv_control(
    ErlDrvData data, unsigned command, char *buf, ErlDrvSizeT len, char **rbuf,
    ErlDrvSizeT rlen)
{
    struct fair__drv_port *p = fair__drv_of(data);

    if (p->ops)
        return p->ops->control(p, command, buf, len, rbuf, rlen);
    return fair__drv_answer(fair__driver.entry->control(
        p->data, command, buf, len, rbuf, rlen));
}

static inline ErlDrvSSizeT fair__drv_call(
    ErlDrvData data, unsigned command, char *buf, ErlDrvSizeT len, char **rbuf,
    ErlDrvSizeT rlen, unsigned *flags)
{
    struct fair__drv_port *p = fair__drv_of(data);

    if (p->ops)
        return p->ops->call(p, command, buf, len, rbuf, rlen, flags);
    return fair__drv_answer(fair__driver.entry->call(
        p->data, command, buf, len, rbuf, rlen, flags));
}

/* The runtime has an event of its own for each port. */
static inline void fair__drv_ready_input(ErlDrvData data, ErlDrvEvent event)
{
    struct fair__drv_port *p = fair__drv_of(data);

    if (p->ops)
        p->ops->ready_input(p, event);
    else if (fair__driver.entry->ready_input)
        fair__driver.entry->ready_input(p->data, event);
}

static inline void fair__drv_stop_select(ErlDrvEvent event, void *reserved)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    if (ops && ops->stop_select(event))
        return;
    if (fair__driver.entry->stop_select)
        fair__driver.entry->stop_select(event, reserved);
}

#define FAIR__DRV_THUNK(NAME, PARAMETERS, ARGUMENTS, OWN_ARGUMENTS)         \
static inline void fair__drv_##NAME PARAMETERS                              \
{                                                                           \
    struct fair__drv_port *p = fair__drv_of(data);                          \
                                                                            \
    if (p->ops)                                                             \
        p->ops->NAME ARGUMENTS;                                             \
    else                                                                    \
        fair__driver.entry->NAME OWN_ARGUMENTS;                             \
}
FAIR__DRV_THUNK(output, (ErlDrvData data, char *buf, ErlDrvSizeT len),
                (p, buf, len), (p->data, buf, len))
FAIR__DRV_THUNK(outputv, (ErlDrvData data, ErlIOVec *ev),
                (p, ev), (p->data, ev))
FAIR__DRV_THUNK(ready_output, (ErlDrvData data, ErlDrvEvent event),
                (p, event), (p->data, event))
FAIR__DRV_THUNK(timeout, (ErlDrvData data), (p), (p->data))
FAIR__DRV_THUNK(ready_async, (ErlDrvData data, ErlDrvThreadData thread_data),
                (p, thread_data), (p->data, thread_data))
FAIR__DRV_THUNK(process_exit, (ErlDrvData data, ErlDrvMonitor *monitor),
                (p, monitor), (p->data, monitor))
FAIR__DRV_THUNK(flush, (ErlDrvData data), (p), (p->data))
#undef FAIR__DRV_THUNK

static inline void fair__drv_emergency_close(ErlDrvData data)
{
    fair__driver.entry->emergency_close(fair__drv_of(data)->data);
}

/* Fills in fair__driver, and `wrapped`, the VM's entry, from the author's. */
static inline ErlDrvEntry *fair__drv_wrap(
    ErlDrvEntry *wrapped, const ErlDrvEntry *entry,
    void (*closing)(ErlDrvData drv_data))
{
    struct fair__driver *d = &fair__driver;
    const struct fair__drv_vm vm = {
        driver_select, driver_caller, driver_mk_port, set_busy_port,
        set_port_control_flags, erl_drv_consume_timeslice, driver_failure_atom,
        driver_create_port, driver_free, driver_free_binary,
        fair_drv_keep_iovec, fair_drv_free_iovec
    };

    d->size = sizeof *d;
    d->abi_major = FAIR_DRV_ABI_MAJOR;
    d->abi_minor = FAIR_DRV_ABI_MINOR;
    d->entry_size = sizeof *entry;
    d->vm_size = sizeof d->vm;
    d->ops_size = sizeof *d->ops;
    d->name = entry->driver_name;
    d->entry = entry;
    d->closing = closing;
    d->vm = vm;
    *wrapped = *entry;
    wrapped->init = fair__drv_init;
    wrapped->finish = fair__drv_finish;
    wrapped->start = fair__drv_start;
    wrapped->stop = fair__drv_stop;
    wrapped->ready_input = fair__drv_ready_input;
    wrapped->stop_select = fair__drv_stop_select;
#define FAIR__DRV_WRAP(NAME)                                                \
    if (entry->NAME)                                                        \
        wrapped->NAME = fair__drv_##NAME;
    FAIR__DRV_WRAP(output)
    FAIR__DRV_WRAP(outputv)
    FAIR__DRV_WRAP(control)
    FAIR__DRV_WRAP(call)
    FAIR__DRV_WRAP(ready_output)
    FAIR__DRV_WRAP(timeout)
    FAIR__DRV_WRAP(ready_async)
    FAIR__DRV_WRAP(process_exit)
    FAIR__DRV_WRAP(flush)
    FAIR__DRV_WRAP(emergency_close)
#undef FAIR__DRV_WRAP
    return wrapped;
}

/* Replaces DRIVER_INIT.  ENTRY is the author's ErlDrvEntry.  CLOSING(drv_data),
 * or NULL, is called as soon as the port closes, in its context, maybe while a
 * callback runs on a thread: to deselect descriptors and to wake what waits.
 * `stop` is called after the last callback, maybe on that thread. */
#define FAIR_DRIVER_INIT(NAME, ENTRY, CLOSING)                              \
    struct fair__driver fair__driver;                                       \
    ERL_DRIVER_EXPORT struct fair__driver *fairnif_driver(void);            \
    ERL_DRIVER_EXPORT struct fair__driver *fairnif_driver(void)             \
    {                                                                       \
        return &fair__driver;                                               \
    }                                                                       \
    DRIVER_INIT(NAME)                                                       \
    {                                                                       \
        static ErlDrvEntry wrapped;                                         \
                                                                            \
        return fair__drv_wrap(&wrapped, &(ENTRY), CLOSING);                 \
    }

/* Functions of erl_driver.h that the runtime replaces.  They keep their
 * meaning; each file of a driver that calls one of them must include this
 * header. */

static inline void fair__drv_set_busy(ErlDrvPort port, int on)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    if (ops)
        ops->busy(port, on);
    else
        set_busy_port(port, on);
}

static inline void fair__drv_set_control_flags(ErlDrvPort port, int flags)
{
    const struct fair__drv_ops *ops = fair__driver.ops;

    if (ops)
        ops->control_flags(port, flags);
    else
        set_port_control_flags(port, flags);
}

static inline ErlDrvPort fair__drv_create_port(
    ErlDrvPort creator, ErlDrvTermData owner, char *name, ErlDrvData data)
{
    const struct fair__drv_ops *ops = fair__driver.ops;
    struct fair__drv_port *p;
    ErlDrvPort port;

    if (ops)
        return ops->create(&fair__driver, creator, owner, name, data);
    if (!(p = fair__drv_plain(NULL, data)))
        return (ErlDrvPort)-1;
    port = driver_create_port(creator, owner, name, (ErlDrvData)p);
    if (port == (ErlDrvPort)-1)
        driver_free(p);
    else
        p->port = port;
    return port;
}

#ifndef FAIR__DRV_RUNTIME
#  define set_busy_port(PORT, ON) fair__drv_set_busy(PORT, ON)
#  define set_port_control_flags(PORT, FLAGS) \
    fair__drv_set_control_flags(PORT, FLAGS)
#  define driver_create_port(CREATOR, OWNER, NAME, DATA) \
    fair__drv_create_port(CREATOR, OWNER, NAME, DATA)
#endif

#ifdef __cplusplus
}
#endif

#endif /* FAIRDRV_H */
