/*
 * fairnif_private.h - what the runtime lends to applications of its own: today
 * fairnif_driver.
 *
 * Not for authors: it changes with them.  Such a library is built with this
 * header and linked with nothing.  In its load it calls the runtime object of
 * fairnif:load_info/0 with a struct fair__visitor (fairnif_abi.h) that asks for
 * FAIR__TABLE_PRIVATE in version FAIR_PRIVATE_MAJOR.FAIR_PRIVATE_MINOR, and
 * gets the table below.  The runtime is never unmapped, so the table is good
 * for as long as the node lives.
 *
 * Why so, and who owns what: docs/internals/drivers.md.
 */
#ifndef FAIRNIF_PRIVATE_H
#define FAIRNIF_PRIVATE_H

#include <stdbool.h>

#ifndef FAIR__RUNTIME
#  define FAIR__RUNTIME         /* functions of the VM as they are */
#endif
#include "fairnif.h"

/* The runtime serves who was built with the same major version and no newer
 * minor one.  A minor version appends functions to the table. */
#define FAIR_PRIVATE_MAJOR 1
#define FAIR_PRIVATE_MINOR 2

enum fair__job_state { J_IDLE, J_QUEUED, J_OVERFLOW };

/* Work for a thread of the pool.  Belongs to who put it, who may free it when
 * it was withdrawn or when `run` was called.  Zeroed but for `run` and `waits`
 * before it is put. */
struct fair__job {
    void (*run)(struct fair__job *job);
    enum fair__job_state state;     /* the pool's, as all that follows but
                                       `waits` */
    struct fair__func *func;        /* whose it is, or NULL */
    bool waits;                     /* it mostly waits: who put it says so */
    uint64_t since_ns;
    struct fair__job *prev, *next;
};

struct fair__private {
    uint32_t size;
    uint16_t abi_major, abi_minor;

    /* -- loading: in a library's load and upgrade -------------------------- */

    /* The first copy of the drivers' library in this node: `mine`, where there
     * was none.  It is never unmapped, and what it has is used ever after. */
    const void *(*first)(const void *mine);
    /* Opens, or takes over, a resource type of the module whose `env` it is,
     * as docs/internals/nif.md says it must be.  NULL: no memory. */
    ErlNifResourceType *(*open_type)(ErlNifEnv *env, const char *name,
                                     ErlNifResourceTypeInit init);

    /* -- threads of the pool: from any thread, not on a strand ------------- */

    /* Puts the job.  It may be done and gone when this returns.  False: there
     * is no thread and none could be started; the job stays put until one comes
     * or it is withdrawn. */
    bool (*pool_start)(struct fair__job *job);
    /* True: it had not been begun, and now never is. */
    bool (*pool_withdraw)(struct fair__job *job);
    /* How many jobs at a time may want a processor: as many as dirty CPU
     * schedulers are online. */
    unsigned (*processors)(void);

    /* -- strands: work in slices, on a stack of its own -------------------- */

    /* work(arg), to be run by strand_run.  NULL: there is no stack, for want of
     * memory or because no task has one here (FAIRNIF_SWITCH=none).  On a
     * normal scheduler. */
    fair_task *(*strand_new)(void (*work)(void *arg), void *arg);
    /* One slice of it.  True: it has come to its end, and is gone; else it is
     * to be run again: a strand is never dropped.  In it fair_tick is called on
     * the strand, and yields when the slice is used up; no other function of
     * fairnif.h is.  On a normal scheduler, any one at a time. */
    bool (*strand_run)(fair_task *strand);

    /* -- time: from any thread --------------------------------------------- */

    /* The clock of slices, ns. */
    uint64_t (*now)(void);
    /* Whether a slice that began then counts as used up. */
    bool (*slice_is_up)(uint64_t since);
    /* What `ns` cost, in percent of a turn: 1 to 100. */
    int (*price)(uint64_t ns);

    /* -- since 1.1 --------------------------------------------------------- */

    /* Whose callback a strand is, for what is said where its stack overflows.
     * The name must stay while the strand does. */
    void (*strand_name)(fair_task *strand, const char *driver);

    /* -- since 1.2: in a job on a thread of the pool ------------------------ */

    /* fn(arg), at a lower priority than the schedulers have: what an author
     * computes, and nothing that takes a lock. */
    void (*run_low)(void (*fn)(void *arg), void *arg);
    /* In that: fn(arg) at their priority.  Anywhere else: fn(arg). */
    void (*at_par)(void (*fn)(void *arg), void *arg);
};

#endif
