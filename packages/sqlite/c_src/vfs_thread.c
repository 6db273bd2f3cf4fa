/*
 * vfs_thread.c - where a method of "unix" runs: on a thread of the runtime's
 * pool if a task calls, here if none does.
 *
 * No frame of the "unix" VFS may ever be on the stack of a task that pauses: it
 * holds its mutexes across system calls, and looks at errno after them.  So a
 * method runs as a whole, from begin to end, in one fair_offload.
 *
 * Its locking methods are too short to be sent away, and only ask the kernel's
 * memory.  But they take mutexes that others hold while they wait for a disk:
 * xClose and xShmMap of the same file.  Hence the gate: while one of those is
 * under way (on a thread), the short ones of that file go to a thread as well,
 * and wait there.  The other way round the long ones begin when the short ones
 * that run have ended, which is in a microsecond or, where the system took
 * their processor away, soon.
 */
#include <sched.h>
#include <stdatomic.h>

#include "vfs_private.h"

/* By inode; two that share one only wait for each other more often. */
enum { GATES = 64, LONG = 1 << 16 };

static struct {
    _Alignas(64) _Atomic unsigned inside;   /* short ones + LONG * long ones */
} gates[GATES];

static _Atomic unsigned *gate_of(const struct file *f)
{
    return &gates[f->inode % GATES].inside;
}

/* -- long ------------------------------------------------------------------ */

void vfs_close_gate(const struct file *f)
{
    _Atomic unsigned *gate = gate_of(f);

    atomic_fetch_add(gate, LONG);
    while (atomic_load(gate) % LONG != 0)
        sched_yield();
}

void vfs_open_gate(const struct file *f)
{
    atomic_fetch_sub(gate_of(f), LONG);
}

/* -- short ----------------------------------------------------------------- */

static bool pass(_Atomic unsigned *gate)
{
    unsigned inside = atomic_load_explicit(gate, memory_order_relaxed);

    while (inside < LONG)
        if (atomic_compare_exchange_weak(gate, &inside, inside + 1))
            return true;
    return false;
}

/* For what asks the kernel and no disk; elsewhere where that is not sure. */
int vfs_in_place_or_thread(struct job *job, void (*fn)(struct job *))
{
    const struct file *f = job->f;
    _Atomic unsigned *gate = gate_of(f);

    if (f->disk == UNKNOWN || f->disk == REMOTE || !pass(gate))
        return vfs_on_thread(job, fn);
    fn(job);
    atomic_fetch_sub(gate, 1);
    return job->rc;
}

/* -- elsewhere ------------------------------------------------------------- */

static void run(void *arg)
{
    struct job *job = arg;

    job->fn(job);
}

/* A task whose caller dies while it waits for a thread comes back without that
 * anything was done.  The library still needs its files then, to roll back: the
 * second call runs the job at once, on the thread where the task cleans up.
 * (So it is where the runtime refuses the call, since too many wait for
 * threads: but then on the scheduler.) */
int vfs_on_thread(struct job *job, void (*fn)(struct job *))
{
    fair_task *t = fair_current();

    job->fn = fn;
    if (!t)
        fn(job);
    else
        while (fair_offload(t, FAIR_THREADED, 0, run, job) < 0)
            ;
    return job->rc;
}
