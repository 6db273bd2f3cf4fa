/*
 * fairnif.h - native functions that share the BEAM.
 *
 * A NIF written with this header is ordinary straight-line C.  Now and then it
 * reports how much work it has done (`fair_tick`).  The runtime makes it yield
 * to other Erlang processes, charges reductions for the time that it used,
 * stops it when its caller dies, and keeps statistics.
 *
 *     #include <fairnif.h>
 *
 *     static ERL_NIF_TERM exor(fair_task *t)
 *     {
 *         fair_bytes in;
 *         fair_bin out;
 *         unsigned byte;
 *
 *         if (!fair_get_bytes(t, fair_arg(t, 0), &in)
 *             || !fair_get_uint(t, fair_arg(t, 1), &byte) || byte > 255)
 *             return fair_badarg(t);
 *         if (!fair_new_bin(t, in.size, &out))
 *             return fair_enomem(t);
 *         for (size_t i = 0, n; i < in.size; i += n) {
 *             n = in.size - i < BLOCK ? in.size - i : BLOCK;
 *             xor_block(out.data + i, in.data + i, byte, n);
 *             fair_tick(t, n);
 *         }
 *         return fair_make_bin(t, &out);
 *     }
 *
 *     static ErlNifFunc nifs[] = {
 *         FAIR_NIF("exor", 2, exor, FAIR_AUTO),
 *         {"plain", 1, plain_nif, 0}            // plain NIFs as they are
 *     };
 *     FAIR_NIF_INIT(my_module, nifs, load, upgrade, unload)
 *
 * and, in the Erlang module:
 *
 *     -include_lib("fairnif/include/fairnif.hrl").
 *     -on_load(init/0).
 *     init() -> ?FAIRNIF_LOAD.
 *
 * No library is linked: load_info passes the runtime's functions.
 *
 * Names that begin with fair_ or FAIR_ are for authors.  Names that begin with
 * fair__ or FAIR__ belong to the runtime and may change.
 *
 * -- Pauses ------------------------------------------------------------------
 *
 * A body pauses only in fair_tick and in the functions below that say "Pauses"
 * or "May pause".  After a pause it may run on another thread, and the garbage
 * collector may have moved the process heap.  These survive a pause:
 *
 *   - C variables and the C stack;
 *   - `data` of fair_bytes and of a fair_bin, until the task ends;
 *   - memory from fair_alloc, malloc or enif_alloc;
 *   - resource objects from fair_get_resource;
 *   - terms in roots (fair_root_new);
 *   - a fair_mutex that the task holds.
 *
 * These do not:
 *
 *   - ERL_NIF_TERM values in C variables: get them again with fair_arg,
 *     fair_root_get or fair_make_bin;
 *   - pointers into terms: enif_inspect_binary, enif_get_tuple;
 *   - an ErlNifEnv: call fair_env again;
 *   - addresses of thread-local variables, such as errno: the compiler may keep
 *     one where the source does not
 *     (docs/guide/hazards.md#thread-local-variables).
 *
 * Never pause while holding a lock of the VM or of the system (enif_mutex,
 * pthread_mutex).  The body may continue on another thread, and schedulers that
 * wait for the lock are blocked.
 *
 * When the caller dies, the body is not resumed.  Its C stack is dropped where
 * it paused: C++ destructors and cleanup attributes do not run.  The functions
 * passed to fair_defer run, and memory from fair_alloc is freed.  Anything that
 * only the stack points to is leaked, so register it.  The body of a function
 * with FAIR_CLEANUP is resumed instead, to clean up.
 *
 * -- Return values -----------------------------------------------------------
 *
 * A function that returns an int returns 1 when it has done what its name says,
 * and 0 when it has not.  fair_tick, fair_move, fair_offload and all functions
 * that wait return a negative errno instead when they cannot: -ECANCELED once
 * the call was cancelled (only in functions with FAIR_CLEANUP), -ETIMEDOUT when
 * the time is up, -EDEADLK in a function passed to fair_offload and the
 * like.  Test these for `> 0`, not with `!`.
 */
/* tools/c_reference makes a page of these comments (`make site').  A ruler
 * begins a section.  A comment belongs to the declarations right below it.  Two
 * blanks and two columns make a table, four blanks make code. */
#ifndef FAIRNIF_H
#define FAIRNIF_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <erl_nif.h>

#if ERL_NIF_MAJOR_VERSION < 2 \
    || (ERL_NIF_MAJOR_VERSION == 2 && ERL_NIF_MINOR_VERSION < 16)
#  error "fairnif needs the erl_nif.h of Erlang/OTP 25 or newer (NIF 2.16)"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -- Versions ---------------------------------------------------------------
 *
 * A library is compiled for this version of the binary interface.  `interface`
 * of fairnif:info/0 is the runtime's version.  A library loads when the major
 * versions are equal and its minor version is not newer than the runtime's.
 * Within a major version functions are only appended.  See
 * docs/reference/versions.md for all promises. */
#define FAIR_ABI_MAJOR 3
#define FAIR_ABI_MINOR 0

/* -- Modes ------------------------------------------------------------------
 *
 * A mode says where a function begins.  The function yields to other work after
 * each slice: about 25 us on a normal scheduler, 1 ms elsewhere.  One body can
 * be registered under several names in several modes.  How to choose:
 * docs/guide/choosing-a-mode.md.
 *
 * On a platform without tasks (`stack_switch` of fairnif:info/0 is `none`)
 * every mode is a plain dirty NIF: FAIR_DIRTY_IO and FAIR_THREADED on a dirty
 * I/O scheduler, the others on a dirty CPU scheduler.  Nothing pauses,
 * fair_move changes nothing, and fair_offload runs its function in place.  A
 * tick still ends the body when its caller is dead. */

/* Where a function begins. */
enum fair_mode {
    /* On the caller's scheduler, at once.  Charged reductions by time. */
    FAIR_NORMAL = 1,
    /* On a dirty CPU scheduler.  Charged by the VM. */
    FAIR_DIRTY_CPU = 2,
    /* On a dirty I/O scheduler.  Charged by the VM. */
    FAIR_DIRTY_IO = 3,
    /* On a thread of the runtime's pool: the caller occupies no scheduler.  The
     * call returns a pending value, for fairnif:await/1.  The body yields to
     * other work that waits for the pool.  Charged a few reductions, since it
     * uses no scheduler's time. */
    FAIR_THREADED = 4,
    /* The default choice: FAIR_NORMAL, or FAIR_DIRTY_CPU while the function's
     * ticks prove to be too far apart. */
    FAIR_AUTO = 5
};

/* Or-ed to a mode: the function runs to its end where it begins.  Its ticks
 * count, but do not yield, unless
 *
 *   - it created terms on a dirty scheduler, where no garbage collection runs;
 *   - tasks of fairnif occupy every dirty CPU scheduler: the VM needs those to
 *     collect large heaps;
 *   - it was moved (fair_move).
 *
 * On a normal scheduler such a call is charged up to one turn (4000
 * reductions), and runs to its end even if the caller is killed: the VM handles
 * exit signals only between turns.  On a dirty one a tick then ends it. */
#define FAIR_NO_YIELD 0x40u

/* Or-ed to a mode: an Erlang wrapper passes the NIF's return value to
 * fairnif:await/1, so calls may wait without occupying a scheduler.  These need
 * the flag: fair_offload in FAIR_THREADED, fair_wait, fair_mutex_lock, the
 * functions of section Messages, and calls that should queue under `max_tasks`
 * instead of raising `overloaded`.  FAIR_THREADED implies it.
 *
 *     FAIR_NIF("nif_fetch", 1, fetch, FAIR_AUTO | FAIR_MAY_WAIT)
 *
 *     fetch(Url) -> fairnif:await(nif_fetch(Url)).
 */
#define FAIR_MAY_WAIT 0x80u

/* Or-ed to a mode: the function's code on threads of the pool (as
 * FAIR_THREADED, or in fair_offload) runs at the priority of a scheduler.
 * Without this flag, code that computes there for long runs at a lower one
 * (`pool_nice`; Linux).  Idle schedulers then wake up in time, but while all
 * schedulers are busy the code gets a tenth of the processors.  With this flag
 * it gets half, and idle schedulers wake up to 12 ms late. */
#define FAIR_PROMPT 0x100u

/* Or-ed to a mode: the body's stack owns resources, which the body itself
 * releases.  C++ and Rust need it for their destructors.  C may use it, for
 * instance around a library that must be allowed to finish.
 *
 * When the caller of such a function dies, the body is cancelled: it is resumed
 * once more.  The function in which it paused returns, usually -ECANCELED, and
 * fair_cancelled returns 1 from then on.  The body then cleans up and returns
 * soon; its result is ignored.  The same happens when the runtime itself ends
 * the call (section Errors): the error is raised once the body has returned.
 *
 *   - Where: a body that is suspended or waits is resumed on a thread of the
 *     runtime's pool.  A body that runs on a dirty scheduler or a thread
 *     continues there.  It continues on a normal scheduler only when the
 *     runtime raises an error in a live caller, or when out of memory.
 *   - A cancelled body does not pause.  fair_tick, fair_move and fair_wait do
 *     nothing and return -ECANCELED; fair_offload runs its function at once.
 *     fair_mutex_lock waits until it has the lock, and may then return on
 *     another thread.  But if the body is cancelled while it waits there,
 *     fair_mutex_lock returns -ECANCELED and the body does not have the lock.
 *   - When fair_offload returns -ECANCELED, its function was not run.  If that
 *     must run anyway, for instance to free something, call fair_offload once
 *     more: it then runs at once.
 *   - There may be no caller: then there are no arguments, fair_root_new
 *     returns 0, fair_root_get an atom, and functions that read or make terms
 *     return 0 or an atom.  fair_env is an environment of no process.  Memory,
 *     binaries and locks are released as always.
 *   - A body that has not begun, or has returned, is not cancelled.  Nothing is
 *     cancelled when the node halts.
 *
 * `cleaning_up` of fairnif:info/0 lists bodies that clean up for over a
 * second. */
#define FAIR_CLEANUP 0x20u

/* -- Types ----------------------------------------------------------------- */

/* A call in progress: the first argument of almost every function.  Its fields
 * are for the inline functions. */
typedef struct fair_task fair_task;

/* The body of a fair function.  It gets the task, and returns a term of the
 * current fair_env, or what fair_badarg, fair_enomem or fair_raise returned. */
typedef ERL_NIF_TERM (*fair_body)(fair_task *t);

/* Bytes of a term, to be read.  They stay where they are until the task ends,
 * however it ends.  Other terms and processes may share them.  Read `data` and
 * `size`; the other fields are the runtime's. */
typedef struct {
    const unsigned char *data;
    size_t size;
    void *ref, *reserved;
} fair_bytes;

/* A new binary, to be written.  Its bytes stay where they are until the task
 * ends or fair_resize_bin moves them.  Read `data` and `size`; the other fields
 * are the runtime's. */
typedef struct {
    unsigned char *data;
    size_t size;
    void *ref, *reserved;
} fair_bin;

/* How text is encoded. */
enum fair_encoding {
    FAIR_UTF8,
    FAIR_LATIN1
};

/* A lock for which tasks wait without blocking schedulers.  Initialise it with
 * FAIR_MUTEX_INIT.  It may be anywhere (static, or in a resource object), and
 * must stay there while a task holds it or waits for it.  Its fields are the
 * runtime's. */
typedef struct {
    void *holder, *first, *last, *next;
    void *reserved[2];
} fair_mutex;
#define FAIR_MUTEX_INIT {0, 0, 0, 0, {0, 0}}

/* The settings of one function; zero means the default.  FAIR_NIF_OPTIONS takes
 * a pointer to it, so it must live as long as the library (`static const`). */
typedef struct {
    fair_body body;         /* required */
    size_t stack_size;      /* bytes of C stack, for the body and what it passes
                               to fair_offload: 16 KiB to 64 MiB, rounded up to
                               a power of two; default 128 KiB */
    unsigned slice_us;      /* length of a slice on normal schedulers, us: 1 to
                               1,000,000; default calibrated (fairnif:info/0) */
    unsigned max_tasks;     /* up to this many calls may be under way at once;
                               default no limit.  One more, or one that comes
                               while others wait, waits for its turn with
                               FAIR_MAY_WAIT; else it raises error:overloaded */
} fair_options;

/* -- Error numbers of load --------------------------------------------------
 *
 * erlang:load_nif/2 returns one of these in place of N:
 *
 *     {error, {load, "Library load-call unsuccessful (N)."}}
 *
 * or the same with `upgrade`.  A line on standard error says why; for all but
 * the first two, a line in the log does too.  Other numbers come from the
 * author's own load function. */
#define FAIR_E_LOAD_INFO 4701   /* the second argument of load_nif is not what
                                   fairnif:load_info/0,1 returned */
#define FAIR_E_RUNTIME   4702   /* that value is not this runtime's */
#define FAIR_E_ABI       4703   /* header and runtime are incompatible */
#define FAIR_E_NIFS      4704   /* a bad entry: unknown mode, no body, arity
                                   over 240, stack or slice out of bounds; in
                                   C++ two resource types of one name */
#define FAIR_E_NOMEM     4705   /* out of memory */

#ifndef FAIR_MAX_NIFS
#  define FAIR_MAX_NIFS 256
#endif

/* A type of resource objects whose callbacks are fair bodies, and its options:
 * see fairnif_resource.h. */
typedef struct fair_resource_type fair_resource_type;
typedef struct fair_resource_options fair_resource_options;

/* What the runtime and a library share besides: not for authors. */
#include "fairnif_abi.h"

/* -- Yielding -------------------------------------------------------------- */

/* Reports that `units` of work were done since the last tick: bytes, rows,
 * rounds, whatever the body processes in quantity.  The runtime learns what a
 * unit costs.  Tick at least every 5 us.  May pause: when the slice is up, and
 * the mode yields.
 *
 * Cost: an addition, a subtraction and a branch while a budget of units lasts.
 * When it is used up, a few times in a slice, the runtime reads the clock.
 * Each tick counts one unit more than `units`, so ticks of 0 use up the budget
 * too.  A nonsensical number (negative, over 2^31) only makes the runtime read
 * the clock.
 *
 * Returns 1, or -ECANCELED once the call was cancelled.  Without FAIR_CLEANUP
 * it always returns 1. */
static inline int fair_tick(fair_task *t, size_t units)
{
    if (__builtin_expect(units < t->budget, 1)) {
        t->budget -= units + 1;     /* so that ticks of 0 count as well */
        return 1;
    }
    return t->ops->tick(t, units);
}

/* How many times this task has yielded or moved.  Cost: a field access. */
static inline uint64_t fair_yields(const fair_task *t)
{
    return t->yields;
}

/* Whether the call was cancelled: 1 once the body must clean up and return.
 * Only in functions with FAIR_CLEANUP.  Call it after each function that may
 * pause or end the call but cannot return -ECANCELED.  If it returns 1 in a
 * callback of a library, return what makes the library give up, and let the
 * body return after that.  Cost: a field access. */
static inline int fair_cancelled(const fair_task *t)
{
    return t->cancelled != 0;
}

/* The task that runs on this thread, for callbacks of a library that get no
 * user argument.  NULL when there is none, or when it must not be
 * used (in a function passed to fair_offload or fair_defer).  Cost: a call. */
static inline fair_task *fair_current(void)
{
    return fair__lib_ops ? fair__lib_ops->current() : NULL;
}

/* Makes the body continue on another kind of scheduler: FAIR_NORMAL,
 * FAIR_DIRTY_CPU or FAIR_DIRTY_IO.  Any other value raises `error:{fairnif,
 * {bad_mode, MFA}}`.  Pauses, unless the body already runs there.
 *
 * Away from the kind of scheduler of its mode, a function yields after each
 * slice, even with FAIR_NO_YIELD.  Cost: 1.4 dirty calls there and back.
 *
 * Returns 1 when the body runs there, 0 when it does not (a FAIR_THREADED body
 * stays where it is, as does any body on a platform without tasks; a callback
 * of a resource continues on a thread of the pool), or -ECANCELED. */
static inline int fair_move(fair_task *t, enum fair_mode where)
{
    return t->ops->move(t, where);
}

/* Where the body runs now: FAIR_NORMAL, FAIR_DIRTY_CPU, FAIR_DIRTY_IO, or
 * FAIR_THREADED for a thread of the pool. */
static inline enum fair_mode fair_where(const fair_task *t)
{
    return t->ops->where(t);
}

/* Runs `fn(arg)`, code that cannot tick, where `where` says, and comes back.
 * `fn` uses that scheduler's or thread's stack: 1 MiB on a normal one (+sss),
 * 320 KiB on a dirty one (+sssdcpu, +sssdio), 8 MiB on a thread of the pool.
 * If the function's `stack_size` is larger, `fn` runs on the body's own stack.
 * An overflow ends the node; a line on standard error names the function and
 * the stack.  `where` says where `fn` runs:
 *
 *   FAIR_AUTO       For code that computes.  In place if `units` are known to
 *                   cost less than ten dirty round trips, if the body is on a
 *                   dirty scheduler, or if the function does not yield;
 *                   otherwise on a dirty CPU scheduler.
 *   FAIR_DIRTY_CPU  On a dirty CPU scheduler: for code that is never short.
 *   FAIR_DIRTY_IO   On a dirty I/O scheduler: for short or rare waits.
 *   FAIR_THREADED   On a thread of the runtime's pool: for code that waits, or
 *                   computes for long.  The function must be FAIR_MAY_WAIT.
 *                   In a FAIR_THREADED body: in place.
 *   FAIR_NORMAL     On a normal scheduler: for short code.
 *
 * Another value raises `error:{fairnif, {bad_mode, MFA}}`.  `fn` must not use
 * the task: a tick in it does nothing, is reported, and counts in
 * `rule_violations`.  `fn` cannot be cancelled: the caller's death is noticed
 * when `fn` returns.
 *
 * Pauses before and after `fn`.  If the body already runs there, it pauses only
 * after `fn`, and only if the slice is up.  With FAIR_AUTO it pauses only if
 * `fn` is sent to a dirty scheduler or the slice is up; with FAIR_THREADED
 * always, and the caller waits in fairnif:await/1.  Never during `fn`.
 *
 * FAIR_AUTO learns the cost from each such call, for each function of the
 * library and for each power of two of `units`.  So the cost need not be
 * proportional to the units; it need only grow with them.  One call corrects a
 * wrong guess.  The first call of a size goes to a dirty scheduler, unless a
 * larger size is known to be short.  One sent there runs in place again once it
 * costs less than eight round trips.  See `offload_unit_ns` of fairnif:info/1
 * (docs/reference/info.md).  A function that offloads two kinds of work should
 * count both in one measure, such as estimated nanoseconds.  Other modes ignore
 * `units`.
 *
 * FAIR_THREADED runs `fn` to its end even when the caller dies.  Everything
 * that the task owns stays until then: `arg` may point to the C stack or to
 * memory from fair_alloc.  A call that no thread begins within `overload_ms`
 * raises error:overloaded.  No more threads compute at once than there are
 * dirty CPU schedulers online.  Threads that wait do not count; the runtime
 * learns which functions wait.
 *
 * Returns 1 when `fn` has run, even if the call was cancelled since: see
 * fair_cancelled.  Returns -ECANCELED when the call was cancelled before, and
 * `fn` was not run.  Without FAIR_CLEANUP it always returns 1. */
static inline int fair_offload(fair_task *t, enum fair_mode where, size_t units,
                               void (*fn)(void *), void *arg)
{
    return t->ops->offload(t, where, units, fn, arg);
}

/* For a library that cannot tick and does not call back, but can be
 * interrupted.  From now on the runtime calls `ring(arg)` whenever a slice is
 * up, until `fair_alarm(t, NULL, NULL)`.  The library returns soon after; the
 * body then ticks, which pauses, and calls the library again.
 *
 *     fair_alarm(t, interrupt, machine);
 *     while (run(machine) == INTERRUPTED)
 *         fair_tick(t, 1);
 *     fair_alarm(t, NULL, NULL);
 *
 * `ring` runs in a signal handler, on the thread that runs the body, in the
 * middle of the body.  It may do what is async-signal-safe, such as setting a
 * `volatile sig_atomic_t` that a loop reads, and what the library allows there.
 * It must not use the task.  It is called only while the body runs, never in a
 * pause, and again every 10 ms until the next slice begins.  It is no longer
 * called once the body or `fair_alarm(t, NULL, NULL)` has returned.  A body has
 * one alarm: a new one replaces it.
 *
 * Returns the nanoseconds until the first `ring`, or 0 if there will be none:
 * the system has no such timers (all but Linux), the user may have no more of
 * them (RLIMIT_SIGPENDING), no real-time signal is free, the call was
 * cancelled, or this is a function passed to fair_offload.  Then use ticks, or
 * fair_offload.  If the body continues on a thread that gets no timer, the
 * alarm rings as each slice begins, and each tick ends a slice.  So a body that
 * is interrupted before it has done anything should call fair_alarm again, and
 * do without an alarm if that returns 0.
 *
 * Cost: two system calls a slice, and a signal when the slice is used up: some
 * us, 20 in some virtual machines.  Give such a function slices of 200 us or
 * more (fair_options.slice_us).  While an alarm is on, each tick reads the
 * clock.  If a scheduler has no alternate stack (an emulator without JIT), the
 * handler takes some kilobytes of the body's stack. */
static inline uint64_t fair_alarm(fair_task *t, void (*ring)(void *), void *arg)
{
    return t->ops->alarm(t, ring, arg);
}

/* -- Waiting ----------------------------------------------------------------
 *
 * The caller waits in fairnif:await/1 and occupies no scheduler
 * (docs/guide/waiting.md).  When it dies, the task is dropped as at any other
 * pause.  In a function without FAIR_MAY_WAIT these functions raise
 * `error:{fairnif, {not_awaited, MFA}}` if they would have to wait, and do not
 * return.  After a wait the body continues on the same kind of scheduler as
 * before.
 *
 * A FAIR_THREADED body has an environment of its own, with copies of its
 * arguments.  Binaries over 64 bytes are not copied; large terms are copied on
 * a dirty CPU scheduler.  Terms that it creates are not collected until the
 * call ends. */

/* The events of fair_wait. */
#define FAIR_READ  1u
#define FAIR_WRITE 2u

/* Waits until the descriptor is ready to be read or written: FAIR_READ,
 * FAIR_WRITE, or both or-ed, for either.  It waits up to `timeout_ms`
 * milliseconds; forever if that is negative, not at all if it is 0.  Pauses,
 * unless the descriptor is ready at once; the caller waits in fairnif:await/1.
 * Returns:
 *
 *   1, 2, 3   What is ready: FAIR_READ, FAIR_WRITE, both.  An error or a
 *             hang-up counts as ready: read or write, and see.
 *   -ETIMEDOUT  The time is up.
 *   -ECANCELED  The call was cancelled.
 *   -EBUSY    Another task waits for the same event of this descriptor.
 *   -EBADF    The descriptor is not open, or it came from fair_get_fd and was
 *             closed before or during the wait.
 *   -EINVAL   Events other than these.
 *   -EDEADLK  This is a function passed to fair_offload or the like, which must
 *             not use the task.
 *   -ENOMEM, -EMFILE, -ENFILE  No memory, or no descriptor for the duplicate.
 *   -EIO      The VM could not watch it.
 *   -ENOSYS   Windows.
 *
 * Notes:
 *
 *   - If the descriptor did not come from fair_get_fd, the runtime waits for a
 *     duplicate of it.  So its owner may close it at any time; the wait for the
 *     file continues.  That costs another descriptor and three system calls.
 *   - Another thread may read the data before the body does.  Use non-blocking
 *     descriptors, and wait again when there is nothing to read.
 *   - errno after a wait may be another thread's
 *     (docs/guide/hazards.md#thread-local-variables).
 *   - A descriptor that the runtime owns must not be passed to
 *     enif_select nor to `close`.
 *   - Cost: one `poll` if it is ready.  Otherwise some 10 us from the event to
 *     the next line of the body (2 cores, busy with other programs) and two
 *     short NIF calls; some us more with a duplicate.
 *   - On a platform without tasks it polls on its dirty scheduler, and checks
 *     20 times a second whether the caller is alive. */
static inline int fair_wait(fair_task *t, int fd, unsigned events,
                            int timeout_ms)
{
    return t->ops->wait(t, fd, events, timeout_ms);
}

/* Sleeps for `ms` milliseconds; if negative, until the caller dies.
 * Returns 1, -ECANCELED, or -EDEADLK as fair_wait.  Pauses. */
static inline int fair_sleep(fair_task *t, int ms)
{
    return fair_wait(t, -1, 0, ms);
}

/* Hands an open descriptor over to the runtime, and returns a term (a resource
 * object) that stands for it.  The runtime makes the descriptor non-blocking.
 * It closes it when fair_close_fd is called, when its owner (the calling
 * process) dies, or when the term is garbage, whichever comes first, but never
 * while a task has it from fair_get_fd.  Returns 0 if `fd` is not open or was
 * passed before, or if out of memory: the author then still owns it. */
static inline ERL_NIF_TERM fair_adopt_fd(fair_task *t, int fd)
{
    return t->ops->adopt_fd(t, fd);
}

/* Gets the descriptor of a term.  It stays open until the task ends, whatever
 * happens to its term and its owner; deferred functions may use it.  Returns 0
 * if the term stands for no descriptor, or for a closed one. */
static inline int fair_get_fd(fair_task *t, ERL_NIF_TERM term, int *fd)
{
    return t->ops->get_fd(t, FAIR__TERM(term), fd);
}

/* Closes the descriptor of a term, as soon as no task has it; tasks that wait
 * for it get -EBADF at once.  Any process may do so.  Returns 0 if the term
 * stands for no descriptor, or for a closed one. */
static inline int fair_close_fd(fair_task *t, ERL_NIF_TERM term)
{
    return t->ops->close_fd(t, FAIR__TERM(term));
}

/* -- Locks ------------------------------------------------------------------
 *
 * A task that ends, however it ends, releases the locks that it holds.  If its
 * caller was killed, the data that they protect may be half written.  A
 * deferred function, or one passed to fair_offload, cannot yield.  If it asks
 * for a lock that another task holds, it gets -EDEADLK instead of the lock;
 * this is reported and counted in `rule_violations`.  Use fair_mutex_trylock in
 * a deferred function; lock around a fair_offload. */

/* Takes a lock; waiters get it in the order in which they came.  It may be held
 * across pauses and waits.  A task that takes a lock that it already holds
 * raises `error:{fairnif, {deadlock, MFA}}`.  So does an awaited task that
 * needs a lock held by another call of its caller, since that call cannot
 * continue until it is awaited.  May pause: if another task holds the lock, and
 * the caller waits in fairnif:await/1; on a thread of the pool also if the lock
 * is free.  Returns 1 when it has the lock, else -ECANCELED or -EDEADLK.
 *
 * On a thread of the pool a body computes at a lower priority than the
 * schedulers do, but not while it holds a lock, since others may wait for it.
 * The priority is lowered again at a tick, the only place where the body may
 * change threads.  So tick after fair_mutex_unlock. */
static inline int fair_mutex_lock(fair_task *t, fair_mutex *m)
{
    return t->ops->lock(t, m, 1);
}

/* The same without waiting, in every mode.  Returns 0 if any task holds it. */
static inline int fair_mutex_trylock(fair_task *t, fair_mutex *m)
{
    return t->ops->lock(t, m, 0);
}

/* Releases a lock.  Does nothing and returns 0 if the task does not hold it. */
static inline int fair_mutex_unlock(fair_task *t, fair_mutex *m)
{
    return t->ops->unlock(t, m);
}

/* -- Functions of the VM ----------------------------------------------------
 *
 * After a wait a body runs in a NIF of module `fairnif`; in FAIR_THREADED it
 * runs on a thread that is no scheduler.  There six functions of the VM would
 * return another library's values, fail, or end the node.  These replacements
 * work there too, and may be called wherever the VM's may.  Macros put them in
 * place of the VM's, so `enif_send` in a source is fair_enif_send; to prevent
 * that, define FAIR_NO_ENIF_MACROS before this file is included.
 * enif_time_offset has no replacement: it fails there.
 *
 * On a thread of the pool these functions run at the body's lower priority, and
 * some take locks of the VM: enif_send the receiver's, enif_make_atom that of
 * the atom table.  On a busy machine, a scheduler that needs such a lock may in
 * rare cases wait milliseconds for the thread.  So make atoms in `load`, and
 * use fair_send: the caller then sends the message. */
static inline void *fair_enif_priv_data(ErlNifEnv *env)
{
    return fair__lib_ops ? fair__lib_ops->priv_data(env)
        : enif_priv_data(env);
}
static inline ErlNifPid *fair_enif_self(ErlNifEnv *env, ErlNifPid *pid)
{
    return fair__lib_ops ? fair__lib_ops->self(env, pid)
        : enif_self(env, pid);
}
static inline int fair_enif_is_current_process_alive(ErlNifEnv *env)
{
    return fair__lib_ops ? fair__lib_ops->is_alive(env)
        : enif_is_current_process_alive(env);
}
static inline int fair_enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    return fair__lib_ops ? fair__lib_ops->consume(env, percent)
        : enif_consume_timeslice(env, percent);
}
static inline int fair_enif_send(ErlNifEnv *env, const ErlNifPid *to,
                                 ErlNifEnv *msg_env, ERL_NIF_TERM msg)
{
    return fair__lib_ops ? fair__lib_ops->send(env, to, msg_env, msg)
        : enif_send(env, to, msg_env, msg);
}
static inline ErlNifTime fair_enif_monotonic_time(ErlNifTimeUnit unit)
{
    ErlNifTime now = enif_monotonic_time(unit);

    return now == ERL_NIF_TIME_ERROR && fair__lib_ops
        ? fair__lib_ops->monotonic_time(unit) : now;
}

#if !defined(FAIR_NO_ENIF_MACROS) && !defined(FAIR__RUNTIME)
#  undef enif_monotonic_time
#  undef enif_priv_data
#  undef enif_self
#  undef enif_is_current_process_alive
#  undef enif_consume_timeslice
#  undef enif_send
#  define enif_monotonic_time(U) fair_enif_monotonic_time(U)
#  define enif_priv_data(E) fair_enif_priv_data(E)
#  define enif_self(E, P) fair_enif_self(E, P)
#  define enif_is_current_process_alive(E) \
    fair_enif_is_current_process_alive(E)
#  define enif_consume_timeslice(E, N) fair_enif_consume_timeslice(E, N)
#  define enif_send(E, P, M, T) fair_enif_send(E, P, M, T)
#endif

/* -- Environment and arguments --------------------------------------------- */

/* The environment of the current slice, for enif_make_ and enif_get_ functions.
 * Call it again after each pause.  Cost: a field access.
 *
 * A body that calls it on a dirty scheduler is moved through a normal one at
 * the end of that slice, in any mode, so that terms can be collected. */
static inline ErlNifEnv *fair_env(fair_task *t)
{
    t->env_used = 1;
    return t->env;
}

/* The number of arguments. */
static inline unsigned fair_argc(const fair_task *t)
{
    return t->argc;
}

/* Argument `i`, counted from 0; valid until the next pause.  Returns the atom
 * `badarg` if there is no such argument. */
static inline ERL_NIF_TERM fair_arg(fair_task *t, unsigned i)
{
    ERL_NIF_TERM arg = i < t->argc ? t->argv[i]
        : enif_make_atom(t->env, "badarg");
#ifdef FAIR_DEBUG
    return t->ops->seen_arg(t, arg);
#else
    return arg;
#endif
}

/* The pid of the calling process, in every mode. */
static inline void fair_caller(fair_task *t, ErlNifPid *pid)
{
    t->ops->caller(t, pid);
}

/* -- Roots ------------------------------------------------------------------
 *
 * A root holds a term that survives pauses.  The garbage collector knows it,
 * and the term is not copied.  A helper that makes roots should drop its first
 * one before it returns, so that helpers can be nested and recursive.  An
 * invalid root number, here and in the list functions, raises `error:{fairnif,
 * {bad_root, MFA}}`: pass the value that fair_root_new returned.  Memory is the
 * only limit.  Cost: a word is copied at each pause, two from the twelfth root
 * on.  Thousands of roots cost little; a million block the scheduler for 1 to 2
 * ms at each pause, so keep that many terms in one list. */

/* Makes a root of a term of the current slice, and returns its number, 1 or
 * more.  It lives until fair_root_drop, or as long as the task.  Raises
 * error:enomem if out of memory.  Returns 0, never a root's number, only in a
 * cancelled call and in a function that must not use the task. */
static inline unsigned fair_root_new(fair_task *t, ERL_NIF_TERM term)
{
    return t->ops->root_new(t, FAIR__TERM(term));
}

/* Drops a root and all roots that were made after it. */
static inline void fair_root_drop(fair_task *t, unsigned root)
{
    t->ops->root_drop(t, root);
}

/* Puts another term into a root. */
static inline void fair_root_set(fair_task *t, unsigned root, ERL_NIF_TERM term)
{
    t->ops->root_set(t, root, FAIR__TERM(term));
}

/* The term of a root, valid until the next pause. */
static inline ERL_NIF_TERM fair_root_get(fair_task *t, unsigned root)
{
    return t->ops->root_get(t, root);
}

/* Copies a term of the task into the author's environment `to`, or, if `to` is
 * NULL, a term of an author's environment into the task's.  The VM copies a
 * term in one go (2 million words take 10 ms).  So a term of more than 4,000
 * words, or of unknown size (a fun, a long integer), is copied on a dirty
 * scheduler.  May pause. */
static inline ERL_NIF_TERM fair_copy(fair_task *t, ErlNifEnv *to,
                                     ERL_NIF_TERM term)
{
    return t->ops->copy(t, to, FAIR__TERM(term));
}

/* -- Messages ---------------------------------------------------------------
 *
 * These functions are for native processes (docs/guide/processes.md), and for
 * any other awaited call.  The caller, in fairnif:await/1, does for the task
 * what only Erlang can do.  The terms that they return are valid until the next
 * pause, as all terms are: keep them in a root.  They are copied only for a
 * FAIR_THREADED body.
 *
 * In a function without FAIR_MAY_WAIT they raise `error:{fairnif, {not_awaited,
 * MFA}}` and do not return.  In a callback of a resource and on a platform
 * without tasks the error is `{fairnif, {no_caller, MFA}}`.  In a function
 * passed to fair_offload or fair_defer they do nothing and return -EDEADLK and
 * an atom; in a call that was cancelled, -ECANCELED and an atom.
 *
 * A FAIR_THREADED body has its own environment, into which messages are copied.
 * Each of these functions replaces it, and frees the terms that are in no root,
 * as long as arguments and roots have fewer than 512 words and contain no funs.
 *
 * Cost: about 1 us more than a receive in Erlang; docs/reference/figures.md. */

/* Takes the next message out of the caller's mailbox, and returns 1.  Waits up
 * to `timeout_ms` milliseconds, forever if that is negative; then it returns
 * -ETIMEDOUT and an atom.  Pauses. */
static inline int fair_receive(fair_task *t, int timeout_ms,
                               ERL_NIF_TERM *message)
{
    ERL_NIF_TERM timeout = enif_make_int(t->env, timeout_ms < 0 ? -1
                                         : timeout_ms);

    return t->ops->ask(t, &timeout, 1, message);
}

/* As fair_receive, for the first message with a tag, which may be any term.
 * The message is the tag, or a tuple whose first element is the tag.  If the
 * tag is a reference, it may also be the second element, as in `{'DOWN', Ref,
 * process, Pid, Reason}`.  Other messages stay in the mailbox, in their order.
 * Cost: it looks at each message before that one, as a receive in Erlang does.
 * Pauses. */
static inline int fair_receive_tagged(fair_task *t, ERL_NIF_TERM tag,
                                      int timeout_ms, ERL_NIF_TERM *message)
{
    ERL_NIF_TERM request[2] = {
        tag, enif_make_int(t->env, timeout_ms < 0 ? -1 : timeout_ms)
    };

    return t->ops->ask(t, request, 2, message);
}

/* Calls Module:Function(Arguments...) in the caller.  The Erlang code may wait
 * as long as it likes.  The names are ASCII.  Returns 1 and the function's
 * result, or 0 and {Class, Reason} if it raised.  Pauses. */
static inline int fair_apply(fair_task *t, const char *module,
                             const char *function, ERL_NIF_TERM arguments,
                             ERL_NIF_TERM *result)
{
    ERL_NIF_TERM request[3] = {
        enif_make_atom(t->env, module), enif_make_atom(t->env, function),
        arguments
    };

    return t->ops->ask(t, request, 3, result);
}

/* The caller's pid as a term. */
static inline ERL_NIF_TERM fair_self(fair_task *t)
{
    ErlNifPid pid;

    fair_caller(t, &pid);
    return fair__pid_term(t->env, &pid);
}

/* `to ! message`: to a pid, a registered name, {Name, Node} or an alias, here
 * or on another node.  It does not pause: the caller sends the message at the
 * end of this slice, or at the body's next pause.  Such messages arrive in the
 * order of the calls; a message sent by enif_send overtakes them.  A message to
 * an unregistered name is lost.  A pause in a list function (fair_get_iolist,
 * fair_list_reverse) does not send them.  Messages of a slice are lost if the
 * slice ends with the caller's death, an error of the runtime, or an exception
 * that fair_raise did not raise. */
static inline void fair_send(fair_task *t, ERL_NIF_TERM to,
                             ERL_NIF_TERM message)
{
    t->ops->post(t, to, message, 0);
}

/* erlang:monitor(process, Who).  Returns 1 and the reference, or 0 and {Class,
 * Reason}.  Otherwise as fair_apply.  Pauses. */
static inline int fair_monitor(fair_task *t, ERL_NIF_TERM who,
                               ERL_NIF_TERM *ref)
{
    ERL_NIF_TERM arguments[2] = {enif_make_atom(t->env, "process"), who};

    return fair_apply(t, "erlang", "monitor", fair__list(t, arguments, 2), ref);
}

/* link(Pid).  Returns 0 if there is no such process and the caller does not
 * trap exits.  Otherwise as fair_apply.  Pauses. */
static inline int fair_link(fair_task *t, ERL_NIF_TERM pid)
{
    ERL_NIF_TERM result;

    return fair_apply(t, "erlang", "link", fair__list(t, &pid, 1), &result);
}

/* Whether a message was sent by gen_server:call: `{'$gen_call', From,
 * Request}`.  If so, pass `from` to fair_reply. */
static inline int fair_match_call(fair_task *t, ERL_NIF_TERM message,
                                  ERL_NIF_TERM *from, ERL_NIF_TERM *request)
{
    static ERL_NIF_TERM made;
    const ERL_NIF_TERM *parts;
    int arity;

    if (!enif_get_tuple(t->env, message, &arity, &parts) || arity != 3
        || !enif_is_identical(parts[0], fair__atom(t->env, &made, "$gen_call")))
        return 0;
    *from = parts[1];
    *request = parts[2];
    return 1;
}

/* Whether a message was sent by gen_server:cast: `{'$gen_cast', Request}`. */
static inline int fair_match_cast(fair_task *t, ERL_NIF_TERM message,
                                  ERL_NIF_TERM *request)
{
    static ERL_NIF_TERM made;
    const ERL_NIF_TERM *parts;
    int arity;

    if (!enif_get_tuple(t->env, message, &arity, &parts) || arity != 2
        || !enif_is_identical(parts[0], fair__atom(t->env, &made, "$gen_cast")))
        return 0;
    *request = parts[1];
    return 1;
}

/* gen_server:reply(From, Reply), to a caller on any node.  Does not pause;
 * sends as fair_send does. */
static inline void fair_reply(fair_task *t, ERL_NIF_TERM from,
                              ERL_NIF_TERM reply)
{
    t->ops->post(t, from, reply, 1);
}

/* -- Reading terms ----------------------------------------------------------
 *
 * These functions read any term that is valid in the current slice:
 * `fair_arg(t, 0)`, an element of a list or of a tuple.  They return 1.  If the
 * term has another type or does not fit, they return 0 and set nothing.  A
 * number in place of a term (`fair_get_bytes(t, 0, &in)`) does not compile with
 * optimisation.  Read other terms (tuples, maps, references, local pids) with
 * the enif_ functions and fair_env, between two pauses.
 *
 * After a 0, write `return fair_badarg(t);`.  It raises `enomem` if memory was
 * short. */

/* A number, read by the enif_ function of the same name, at its cost.  On a
 * dirty scheduler use these instead: a body that calls fair_env there counts as
 * one that creates terms. */
#define FAIR__GETTER(NAME, TYPE, ENIF)                                      \
    static inline int fair_get_##NAME(fair_task *t, ERL_NIF_TERM term,      \
                                      TYPE *value)                          \
    {                                                                       \
        return ENIF(t->env, FAIR__TERM(term), value);                       \
    }
FAIR__GETTER(int, int, enif_get_int)
FAIR__GETTER(uint, unsigned, enif_get_uint)
FAIR__GETTER(long, long, enif_get_long)
FAIR__GETTER(ulong, unsigned long, enif_get_ulong)
FAIR__GETTER(int64, ErlNifSInt64, enif_get_int64)
FAIR__GETTER(uint64, ErlNifUInt64, enif_get_uint64)
FAIR__GETTER(double, double, enif_get_double)
#undef FAIR__GETTER

/* The name of an atom, zero-terminated.  Also returns 0 if a character is not
 * in the encoding, or if `size` is too small: 1021 bytes are enough for any
 * atom in UTF-8. */
static inline int fair_get_atom(fair_task *t, ERL_NIF_TERM term, char *buf,
                                size_t size, enum fair_encoding encoding)
{
    return t->ops->get_atom(t, FAIR__TERM(term), buf, size, encoding);
}

/* A resource object, kept alive until the task ends, however it ends.
 * Also returns 0 if out of memory.  Cost: a small allocation. */
static inline int fair_get_resource(fair_task *t, ERL_NIF_TERM term,
                                    ErlNifResourceType *type, void **obj)
{
    return t->ops->get_resource(t, FAIR__TERM(term), type, obj);
}

/* The bytes of a binary.  Also returns 0 if out of memory.
 *
 * Binaries of up to 64 bytes (which the VM keeps on heaps) are copied.  Longer
 * ones are not; the first pause adds a reference (0.2 us).  The exception is a
 * longer binary that does not begin at a byte, such as the `B` of `<<_:1,
 * B/binary>>`: the VM and the runtime each copy it in one go.  The first four
 * binaries of a task need no allocation for their records. */
static inline int fair_get_bytes(fair_task *t, ERL_NIF_TERM term,
                                 fair_bytes *bytes)
{
    return t->ops->get_bytes(t, FAIR__TERM(term), bytes);
}

/* The bytes of an iolist in one piece, made in slices.  One pass counts the
 * bytes, a second copies them.  A binary is read as by fair_get_bytes.  Nesting
 * may be as deep as memory allows.  Also returns 0 if out of memory.  May
 * pause: long input. */
static inline int fair_get_iolist(fair_task *t, ERL_NIF_TERM term,
                                  fair_bytes *bytes)
{
    return t->ops->get_iolist(t, FAIR__TERM(term), bytes);
}

/* A list of characters as zero-terminated text, made in slices.  `*length` does
 * not count the zero.  The memory comes from fair_alloc.  Also returns 0 if a
 * number is not a character of the encoding (over 255 in FAIR_LATIN1), or if
 * out of memory.  May pause: long input. */
static inline int fair_get_string(fair_task *t, ERL_NIF_TERM term,
                                  char **chars, size_t *length,
                                  enum fair_encoding encoding)
{
    return t->ops->get_string(t, FAIR__TERM(term), chars, length, encoding);
}

/* The length of a proper list, in slices.  May pause: long input. */
static inline int fair_get_list_length(fair_task *t, ERL_NIF_TERM term,
                                       size_t *length)
{
    return t->ops->get_list_length(t, FAIR__TERM(term), length);
}

/* -- Binaries ---------------------------------------------------------------
 *
 * Binaries may have any size that memory allows, also over 4 GiB. */

/* A new binary of `size` bytes, not zeroed.  Write it, then make a term of it
 * with fair_make_bin.  Returns 0 if out of memory.  Cost: an allocation if over
 * 64 bytes. */
static inline int fair_new_bin(fair_task *t, size_t size, fair_bin *bin)
{
    return t->ops->new_bin(t, size, bin);
}

/* Changes the size of a binary that is not yet a term.  `data` may
 * move.  Returns 0 if out of memory: the binary is unchanged then.  A binary
 * that the allocator cannot grow in place is copied in one go.  To build a
 * result of unknown size, grow by factors, or collect parts. */
static inline int fair_resize_bin(fair_task *t, fair_bin *bin, size_t size)
{
    return t->ops->resize_bin(t, bin, size);
}

/* The term of a new binary.  Only binaries of up to 64 bytes are copied.
 * Afterwards its bytes must not be changed; `data` stays valid, and in place,
 * until the task ends.  The term does not survive a pause: call it again. */
static inline ERL_NIF_TERM fair_make_bin(fair_task *t, fair_bin *bin)
{
    return t->ops->make_bin(t, bin);
}

/* The same for bytes that were read, such as an iolist in one piece. */
static inline ERL_NIF_TERM fair_make_bytes(fair_task *t, fair_bytes *bytes)
{
    return t->ops->make_bytes(t, bytes);
}

/* Releases a binary before the task ends, for bodies that read very many.
 * Afterwards, do not use `data` or the struct: a function that gets it raises
 * `error:{fairnif, {released_bin, MFA}}`. */
static inline void fair_release_bin(fair_task *t, fair_bin *bin)
{
    t->ops->release_bin(t, bin);
}
static inline void fair_release_bytes(fair_task *t, fair_bytes *bytes)
{
    t->ops->release_bytes(t, bytes);
}

/* -- Lists ------------------------------------------------------------------
 *
 * The list is in a root.  Its elements are taken one by one. */

/* Takes the head off the list in the root.  Returns 1; `*head` is valid until
 * the next pause.  Returns 0 when no element is left: the root then holds `[]`,
 * or the tail of an improper list.  Tick in the loop. */
static inline int fair_list_next(fair_task *t, unsigned root,
                                 ERL_NIF_TERM *head)
{
    return t->ops->list_next(t, root, head);
}

/* Adds `head` at the front of the list in the root. */
static inline void fair_list_push(fair_task *t, unsigned root,
                                  ERL_NIF_TERM head)
{
    t->ops->list_push(t, root, head);
}

/* Reverses the proper list in the root, in slices.  Returns 0, and puts `[]`
 * into the root, if it is not a proper list.  May pause: long input. */
static inline int fair_list_reverse(fair_task *t, unsigned root)
{
    return t->ops->list_reverse(t, root);
}

/* -- Memory and clean-up ----------------------------------------------------
 *
 * At the end of a task deferred functions run first.  Then memory of fair_alloc
 * is freed, then resource objects and binaries are released.  So a deferred
 * function may use all of these.  Nothing runs when the node halts. */

/* Memory that is freed with the task, aligned to 16 bytes, which is enough for
 * any standard type; NULL if out of memory.  It comes from enif_alloc, and
 * takes up to 47 bytes more. */
static inline void *fair_alloc(fair_task *t, size_t size)
{
    return t->ops->alloc(t, size);
}

/* As `realloc`, for what fair_alloc or fair_realloc returned.  A NULL `ptr`
 * allocates.  Returns NULL if out of memory: the block is unchanged then. */
static inline void *fair_realloc(fair_task *t, void *ptr, size_t size)
{
    return t->ops->realloc(t, ptr, size);
}

/* Frees memory of fair_alloc early; NULL is allowed. */
static inline void fair_free(fair_task *t, void *ptr)
{
    t->ops->free(t, ptr);
}

/* Registers `fn(ptr)`, which runs exactly once when the task ends: after the
 * body has returned, or when the caller has died.  The last registered runs
 * first.  It may run on any thread, not only a scheduler's; it must not use the
 * task or an environment, and should be quick.  The caller gets the result when
 * all have run.  It may get an exception earlier: if the task owns a lot, a
 * thread of the pool frees it, as when the caller has died.  If out of memory,
 * fair_defer calls `fn(ptr)` at once and returns 0.  The first four need no
 * allocation. */
static inline int fair_defer(fair_task *t, void (*fn)(void *), void *ptr)
{
    return t->ops->defer(t, fn, ptr);
}

/* Undoes the latest fair_defer of `fn` and `ptr`: it does not run.  Returns 0
 * if there is none. */
static inline int fair_undefer(fair_task *t, void (*fn)(void *), void *ptr)
{
    return t->ops->undefer(t, fn, ptr);
}

/* -- Errors -----------------------------------------------------------------
 *
 * Write `return fair_badarg(t);`: the body must return the value of these
 * functions at once, since a pause would lose the exception.  A body that
 * continues does not pause any more; it is reported and counted in
 * `rule_violations`.  None of these functions pauses.  Messages of fair_send
 * are sent when the body has returned, before the exception.
 *
 * The runtime itself raises these errors in a call of a fair function.  MFA is
 * {Module, Function, Arity}:
 *
 *   error:overloaded  `max_tasks` of the function or of the node is reached;
 *       in a FAIR_MAY_WAIT function, for all of `overload_ms`.  Or no thread
 *       of the pool began the call in that time.
 *   error:{fairnif, {not_awaited, MFA}}  The body would have to wait, and the
 *       function is not FAIR_MAY_WAIT.
 *   error:{fairnif, {bad_root, MFA}}  An invalid root number.
 *   error:{fairnif, {bad_mode, MFA}}  fair_move or fair_offload got a value
 *       that is not one of its modes.
 *   error:{fairnif, {released_bin, MFA}}  Use of a fair_bin or of fair_bytes
 *       after they were released.
 *   error:{fairnif, {deadlock, MFA}}  fair_mutex_lock of a lock that is held
 *       by the task, or by another call of its caller.
 *   error:enomem  No memory for the stack, a thread's counters, a root or a
 *       pause.  If raised at a pause, the task has been cleaned up.
 *   error:badreturn  The body returned no term (zero) and raised nothing.
 *       Counted in `rule_violations`.
 *   error:system_limit  All the stacks that `stacks_limit` of fairnif:info/0
 *       allows are mapped. */

/* error:Reason. */
static inline ERL_NIF_TERM fair_raise(fair_task *t, ERL_NIF_TERM reason)
{
    return t->ops->raise(t, reason);
}

/* error:badarg.  If the last function that read a binary, an iolist, a string
 * or a resource returned 0 for another reason, it raises that: `enomem` if
 * out of memory, `system_limit` if an iolist has more bytes than can be
 * counted.  fair_raise with the reason `badarg` does the same. */
static inline ERL_NIF_TERM fair_badarg(fair_task *t)
{
    return t->ops->raise(t, enif_make_atom(t->env, "badarg"));
}

/* error:enomem. */
static inline ERL_NIF_TERM fair_enomem(fair_task *t)
{
    return t->ops->raise(t, enif_make_atom(t->env, "enomem"));
}

/* -- Registering ----------------------------------------------------------- */

/* An entry of the ErlNifFunc table, which may contain plain entries too.  The
 * arity is up to 240.  With ERL_NIF_INIT in place of FAIR_NIF_INIT
 * the VM refuses it ("Illegal flags field"). */
#define FAIR_NIF(NAME, ARITY, BODY, MODE)                                   \
    {(NAME), (ARITY),                                                       \
     (fair__entry)(void (*)(void))(1 ? (BODY) : (fair_body)0),              \
     FAIR__MARK | (unsigned)(MODE)}

/* The same with options: a `const fair_options *` that has a `body`. */
#define FAIR_NIF_OPTIONS(NAME, ARITY, OPTIONS, MODE)                        \
    {(NAME), (ARITY),                                                       \
     (fair__entry)(uintptr_t)(1 ? (OPTIONS) : (const fair_options *)0),     \
     FAIR__MARK | FAIR__OPTIONS | (unsigned)(MODE)}

/* FAIR_NIF_INIT(MODULE, FUNCS, LOAD, UPGRADE, UNLOAD)
 *
 * Replaces ERL_NIF_INIT.  It takes the same arguments except RELOAD, which the
 * VM does not call.  Use it once in a library.
 *
 * LOAD and UPGRADE get the term that was passed to fairnif:load_info/1, or else
 * `undefined`.  They run after the library has been bound to the runtime; no
 * fair function can be called before they have returned 0.  As with
 * ERL_NIF_INIT, an upgrade without UPGRADE is refused, but not if LOAD is NULL
 * too: then there is no state to carry over.  The same file may be loaded four
 * times at once (current, old, and two that wait for their last task); a fifth
 * is refused. */

/* FAIR_MAX_NIFS
 *
 * The number of entries that the table may have, plain ones included: 256.  For
 * more, up to 4096, define it before this file is included; otherwise the
 * library does not compile.  It costs compile time (4096: 0.6 s), not size: a
 * stub of some 100 bytes is made for each entry that exists. */

/* FAIR_TRANSLATED
 *
 * Define it when a program that translates C, such as `zig translate-c`, reads
 * this header: it omits a check of arguments that only compilers understand. */

/* -- Debug build ------------------------------------------------------------
 *
 * Compile a library with FAIR_DEBUG defined (`cc -DFAIR_DEBUG`) to find broken
 * rules.  Macros then replace the functions for enif_mutex_ and enif_rwlock_
 * locks and count the locks that are held, so a tick or a pause under a lock is
 * reported; in C++, so is one in the initialiser of a static variable.  With
 * `check_terms` of fairnif:debug/1 fair_arg remembers the terms it returns, and
 * enif_ functions that read a term check if it was kept over a pause; those
 * that put terms into a tuple or list do not.  enif_port_command is reported
 * unless it is called on a normal scheduler.  Reports go to standard error,
 * each kind once a second for each function and never where that would block.
 * The counter `rule_violations` counts each one.  The switches of
 * fairnif:debug/1 need no special build (docs/guide/testing.md). */

#include "fairnif_resource.h"

#ifdef __cplusplus
}
#endif

#endif /* FAIRNIF_H */
