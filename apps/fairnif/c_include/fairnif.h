/*
 * fairnif.h - native functions that share the BEAM.
 *
 * A NIF written against this header is ordinary straight-line C that now and
 * then says how much work it has done (`fair_tick`).  The runtime makes it
 * yield to other Erlang processes, charges reductions for the time it
 * used, stops it when its caller dies, and counts what it did.
 *
 *     #include <fairnif.h>
 *
 *     static ERL_NIF_TERM exor(fair_task *t)
 *     {
 *         fair_bin in, out;
 *         unsigned byte;
 *
 *         if (!fair_get_bin(t, fair_arg(t, 0), &in)
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
 *         {"plain", 1, plain_nif, 0}            // others stay as they are
 *     };
 *     FAIR_NIF_INIT(my_module, nifs, load, NULL, upgrade, unload)
 *
 * and, in the Erlang module:
 *
 *     -on_load(init/0).
 *     init() ->
 *         fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE),
 *                                        fairnif:load_info())).
 *
 * Nothing is linked: the table of runtime functions travels with load_info.
 *
 * What begins with fair_ or FAIR_ is for authors.  What begins with fair__ or
 * FAIR__ belongs to the runtime and may change.
 *
 * -- Pauses ------------------------------------------------------------------
 *
 * A body pauses in fair_tick, and in those functions below that say "Pauses" or
 * "May pause"; in no other one.  After a pause it may be on another thread, and
 * the garbage collector may have moved the process heap.  What survives:
 *
 *   - C variables and the C stack;
 *   - `data` of a fair_bin, until the task ends;
 *   - memory from fair_alloc, malloc or enif_alloc;
 *   - resource objects from fair_get_resource;
 *   - terms in roots (fair_root);
 *   - a fair_mutex that the task holds.
 *
 * What does not:
 *
 *   - ERL_NIF_TERM values in C variables: re-read them with fair_arg, fair_kept
 *     or fair_make_bin;
 *   - pointers into terms: enif_inspect_binary, enif_get_tuple;
 *   - an ErlNifEnv: ask fair_env again;
 *   - addresses of thread-local variables, errno among them: the compiler may
 *     keep one where the source does not
 *     (docs/guide/4-hazards.md#thread-local-variables).
 *
 * Never pause while holding a lock of the VM's or of the system's: the thread
 * that goes on may be another one, and the lock's waiters block schedulers.
 *
 * When the caller dies, the body is not resumed.  Its C stack is dropped where
 * it paused: C++ destructors and cleanup attributes do not run.  What was given
 * to fair_defer and got from fair_alloc is cleaned up.  So nothing that must be
 * released may be reachable from the stack alone.  A function registered with
 * FAIR_UNWINDS is resumed instead, to clean up.
 */
/* tools/c_reference makes docs/manual/c-api.md of these comments.  A ruler
 * begins a section; a comment belongs to the declarations right below it; two
 * blanks and two columns make a table, four blanks make code. */
#ifndef FAIRNIF_H
#define FAIRNIF_H

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
 * The binary interface that a library was compiled for; fairnif:info/0 has the
 * runtime's under `interface`.  A library loads when the major versions are
 * equal and its minor one is not newer.  Within a major version functions are
 * only appended.  All promises: docs/manual/versions.md. */
#define FAIR_ABI_MAJOR 2
#define FAIR_ABI_MINOR 4

/* -- Modes ------------------------------------------------------------------
 *
 * A mode says where a function begins.  It yields to other work after each
 * slice: about 25 us on a normal scheduler, 1 ms elsewhere.  One body can be
 * registered under several names in several modes.  Which to use:
 * docs/guide/3-choosing-a-mode.md.
 *
 * On a platform without tasks (`stack_switch` of fairnif:info/0 is `none`)
 * every mode is a plain dirty NIF, to its end: FAIR_DIRTY_IO and FAIR_THREADED
 * on a dirty I/O scheduler, the others on a dirty CPU scheduler.  Nothing
 * pauses, fair_move changes nothing, and fair_call runs its function in place.
 * A tick still ends the body of a caller that is dead. */

/* Where a function begins. */
enum fair_mode {
    /* On the caller's scheduler, at once.  Charged by time. */
    FAIR_NORMAL = 1,
    /* On a dirty CPU scheduler.  Charged by the VM. */
    FAIR_DIRTY_CPU = 2,
    /* On a dirty I/O scheduler.  Charged by the VM. */
    FAIR_DIRTY_IO = 3,
    /* On a thread of the runtime's pool: the caller holds no scheduler.  The
     * call answers a pending value, for fairnif:await/1.  Yields to other
     * work of the pool, where some waits.  Charged a few reductions: the time
     * is on no scheduler. */
    FAIR_THREADED = 4,
    /* The default choice: FAIR_NORMAL, until the function's ticks prove to lie
     * too far apart; from then on FAIR_DIRTY_CPU. */
    FAIR_AUTO = 5
};

/* Or-ed to a mode: the function runs to its end where it begins.  Its ticks
 * count; they do not yield, unless
 *
 *   - it made terms on a dirty scheduler, where they are garbage to nobody;
 *   - fairnif's tasks hold every dirty CPU scheduler: the VM collects there;
 *   - it was moved (fair_move).
 *
 * On a normal scheduler such a call is charged one turn (4000 reductions) at
 * most.  The caller's death waits until it ends, since the VM tells a process
 * of it only between two turns. */
#define FAIR_NO_YIELD 0x40u

/* Or-ed to a mode: the Erlang function hands what the NIF answers to
 * fairnif:await/1, so calls may wait without holding a scheduler.  What waits
 * (fair_call in FAIR_THREADED, fair_wait, fair_mutex_lock, and the limit
 * `max_tasks`, which else raises `overloaded`) needs it; FAIR_THREADED implies
 * it.
 *
 *     FAIR_NIF("nif_fetch", 1, fetch, FAIR_AUTO | FAIR_AWAITED)
 *
 *     fetch(Url) -> fairnif:await(nif_fetch(Url)).
 */
#define FAIR_AWAITED 0x80u

/* Or-ed to a mode: what lies on the body's stack owns things, and the body
 * cleans up itself.  C++ and Rust, whose destructors do that, need it; C may
 * use it, for instance around a library that has to be let finish.
 *
 * When the caller of such a function dies, its body is not forgotten: it goes
 * on once more, cancelled.  The function of the runtime that it paused in
 * returns, and fair_cancelled answers 1 from then on.  The body then cleans up
 * and returns soon; what it returns counts for nothing.  The same happens where
 * the runtime ends the call itself (section Errors): there the error is raised
 * once the body has returned.
 *
 *   - Where: a body that is suspended or waits goes on on a thread of the
 *     runtime's pool, one that is at work on a dirty scheduler or a thread
 *     where it is.  Never on a normal scheduler, but where the caller lives:
 *     for an error of the runtime's.  (And where memory is out: then the body
 *     ends where it paused.)
 *   - While it is cancelled it does not pause.  fair_tick does nothing,
 *     fair_wait answers -ECANCELED, fair_call runs its function at once.
 *     fair_mutex_lock waits until it has the lock, and may go on on another
 *     thread then.  But the one in which the body was cancelled has not got it.
 *   - A fair_call whose function had not begun when the call was cancelled (no
 *     thread had it yet, or the body was on its way to a dirty scheduler) has not
 *     run it, and a fair_wait is over.  What must be done all the same, such as to
 *     free something, is called once more: it runs at once then.
 *   - There may be no caller: there are no arguments, fair_root answers 0,
 *     fair_kept an atom, and what reads a term or would make one answers 0 or an
 *     atom.  fair_env is an environment of no process.  Memory, binaries and
 *     locks are let go as ever.
 *   - A body that has not begun, or has returned, is not cancelled.  Nor is
 *     anything at halt.
 *
 * A body that takes longer than a second to end is in `unwinding` of
 * fairnif:info/0. */
#define FAIR_UNWINDS 0x20u

/* -- Types ----------------------------------------------------------------- */

/* The call under way: the first argument of almost everything.  Its fields are
 * for the inline functions. */
typedef struct fair_task fair_task;

/* A fair function.  It is called with the task, and returns a term of the
 * current fair_env, or what fair_badarg, fair_enomem or fair_raise returned. */
typedef ERL_NIF_TERM (*fair_body)(fair_task *t);

/* A binary whose bytes stay where they are until the task ends, however it
 * ends.  Read `data` and `size`; the rest is the runtime's. */
typedef struct {
    unsigned char *data;
    size_t size;
    void *ref;
} fair_bin;

/* A lock that suspends tasks, not schedulers.  It begins as FAIR_MUTEX_INIT.
 * It lies where the author wants it (static, or in a resource object), and must
 * stay there while a task holds it or waits for it.  Its fields are the
 * runtime's. */
typedef struct {
    void *holder, *first, *last, *next;
} fair_mutex;
#define FAIR_MUTEX_INIT {0, 0, 0, 0}

/* What one function sets for itself; zero means the default.  Given to
 * FAIR_NIF_OPTIONS, it must live as long as the library (`static const`). */
typedef struct {
    fair_body body;         /* required */
    size_t stack_size;      /* bytes of C stack: default 128 KiB; 16 KiB to
                               64 MiB, rounded up to a power of two */
    unsigned slice_us;      /* length of a slice on normal schedulers, us: 1 to
                               1,000,000; default calibrated (fairnif:info/0) */
    unsigned max_tasks;     /* how many calls may be under way at once; default
                               no limit.  One more, or one that comes while
                               others wait, waits its turn with FAIR_AWAITED,
                               and raises error:overloaded without */
} fair_options;

/* -- Error numbers of load --------------------------------------------------
 *
 * erlang:load_nif/2 answers one of these in the place of N:
 *
 *     {error, {load, "Library load-call unsuccessful (N)."}}
 *
 * or the same with `upgrade`.  A sentence goes to standard error, and for all
 * but the first two to the log.  Other numbers are those of the author's own
 * load function. */
#define FAIR_E_LOAD_INFO 4701   /* the second argument of load_nif is not what
                                   fairnif:load_info/0,1 returned */
#define FAIR_E_RUNTIME   4702   /* that value's runtime is not there */
#define FAIR_E_ABI       4703   /* header and runtime do not fit together */
#define FAIR_E_NIFS      4704   /* a bad entry: unknown mode, no body, arity
                                   over 240, stack or slice out of bounds */
#define FAIR_E_NOMEM     4705   /* out of memory */

#ifndef FAIR_MAX_NIFS
#  define FAIR_MAX_NIFS 256
#endif

/* A type of resource objects whose callbacks are fair bodies, and what it is
 * opened with: see fairnif_resource.h. */
typedef struct fair_resource_type fair_resource_type;
typedef struct fair_resource_options fair_resource_options;

/* What else the runtime and a library know of each other is not for authors. */
#include "fairnif_abi.h"

/* -- Yielding -------------------------------------------------------------- */

/* Says that `units` of work were done since the last tick: bytes, rows,
 * rounds, whatever the body does much of.  The runtime learns what a unit
 * costs.  Tick at least every 5 us.  May pause: when the slice is up, and the
 * mode yields.
 *
 * Cost: one addition, one subtraction and one branch while the budget lasts.
 * The clock is read when it is used up, a few times in a slice.  Each tick
 * counts one unit more than it says, so ticks of 0 come to an end as well.  A
 * nonsensical number (negative, over 2^31) only makes the runtime read the
 * clock. */
static inline void fair_tick(fair_task *t, size_t units)
{
    if (__builtin_expect(units < t->budget, 1))
        t->budget -= units + 1;     /* so that ticks of 0 count as well */
    else
        t->ops->tick(t, units);
}

/* How often this task has yielded or moved so far.  A field access. */
static inline uint64_t fair_yields(const fair_task *t)
{
    return t->yields;
}

/* Whether the call was cancelled: 1 once the body is to clean up and return.
 * Only in functions with FAIR_UNWINDS; ask after each function that may pause,
 * or end the call.  A callback of a library answers what makes the library give
 * up then, and the body returns after it.  A field access. */
static inline int fair_cancelled(const fair_task *t)
{
    return t->cancelled != 0;
}

/* The task at work on this thread; NULL where none is, or where it must not be
 * used (in what fair_call or fair_defer was given).  For callbacks of a library
 * that hand over nothing of the caller's.  Cost: a call. */
static inline fair_task *fair_current(void)
{
    return fair__lib_ops ? fair__lib_ops->current() : NULL;
}

/* Goes on, from this line, on another kind of scheduler: FAIR_NORMAL,
 * FAIR_DIRTY_CPU or FAIR_DIRTY_IO.  Any other value raises
 * `error:{fairnif, {bad_mode, MFA}}`.  Pauses, unless the body already runs
 * there.
 *
 * On another kind of scheduler than its mode begins on, a function yields
 * after each slice, whatever its mode.  A FAIR_THREADED body stays on its
 * thread.  Cost: half a trip of a dirty call each way. */
static inline void fair_move(fair_task *t, enum fair_mode where)
{
    t->ops->move(t, where);
}

/* Where the body runs now: FAIR_NORMAL, FAIR_DIRTY_CPU, FAIR_DIRTY_IO, or
 * FAIR_THREADED for a thread of the pool. */
static inline enum fair_mode fair_where(const fair_task *t)
{
    return t->ops->where(t);
}

/* Runs `fn(arg)`, code that cannot tick, elsewhere, and comes back.  It has the
 * large stack of a scheduler or thread.  `where` says on what it runs:
 *
 *   FAIR_AUTO       For code that computes: in place, while so many units are
 *                   learned to cost under ten dirty trips; else on a dirty CPU
 *                   scheduler.  On a dirty scheduler, and in a function that
 *                   does not yield, always in place.
 *   FAIR_DIRTY_CPU  On a dirty CPU scheduler: computes, and is never short.
 *   FAIR_DIRTY_IO   On a dirty I/O scheduler: waits, briefly or seldom.
 *   FAIR_THREADED   On a thread of the runtime's pool: waits, or computes for
 *                   long.  The function must be FAIR_AWAITED.  In a
 *                   FAIR_THREADED body: in place.
 *   FAIR_NORMAL     On a normal scheduler: code that is short.
 *
 * Another value raises `error:{fairnif, {bad_mode, MFA}}`.  `fn` must not use
 * the task: a tick in it does nothing, is reported, and counts in `misuses`.
 * `fn` cannot be cancelled: the caller's death is noticed when it returns.
 *
 * Pauses before and after `fn`, unless the body already runs there: then only
 * after it, where the slice is up; with FAIR_AUTO only where `fn` is sent to a
 * dirty scheduler or the slice is up; with FAIR_THREADED always, and the caller
 * waits in fairnif:await/1.  It never pauses during `fn`.
 *
 * FAIR_AUTO learns the cost from each such call, in place or not, for each
 * function of the library and each power of two of `units` apart.  So the cost
 * need not be proportional to the units, only grow with them.  One call
 * corrects a wrong guess: what took longer than believed goes dirty the next
 * time, what took less comes back.  The first call of a size goes dirty, unless
 * a larger one is known to be short.  Calls that went dirty come back when they
 * cost under eight trips, so that one near the cutoff does not change places
 * from call to call.  fairnif:info/1 shows both (docs/manual/info.md).  A
 * function that makes two kinds of calls should count their units in one
 * measure, such as estimated nanoseconds.  No other mode looks at `units`.
 *
 * FAIR_THREADED runs `fn` to its end also when the caller dies.  Everything
 * that the task holds stays until then: `arg` may point to the C stack or to
 * memory from fair_alloc.  A call that no thread has begun within `overload_ms`
 * raises error:overloaded, whether it was queued or waited for room in the
 * queue.  No more threads compute at a time than dirty CPU schedulers are
 * online.  Those that wait do not count; which a function does is learned. */
static inline void fair_call(fair_task *t, enum fair_mode where, size_t units,
                             void (*fn)(void *), void *arg)
{
    t->ops->call(t, where, units, fn, arg);
}

/* For a library that cannot tick, and does not call back, but can be told to
 * return: from now on `ring(arg)` is called whenever a slice is up, until
 * `fair_alarm(t, NULL, NULL)`.  The library returns soon after that, the body
 * ticks, which pauses, and it calls the library again.
 *
 *     fair_alarm(t, interrupt, machine);
 *     while (run(machine) == INTERRUPTED)
 *         fair_tick(t, 1);
 *     fair_alarm(t, NULL, NULL);
 *
 * `ring` runs in a signal handler, on the thread that runs the body, and in the
 * middle of it: it may do what is async-signal-safe, such as to set a
 * `volatile sig_atomic_t` that a loop looks at, and what the library allows
 * there.  It must not use the task.  It is called while the body is at work
 * only, never in a pause; again every 10 ms until the next slice begins; and for
 * the last time before the body has returned or `fair_alarm(t, NULL, NULL)`
 * does.  A body has one alarm: another one takes its place.
 *
 * Answers the nanoseconds until it rings first; 0 where it never does: the
 * system has no such timers (all but Linux), the user may have no more of them
 * (RLIMIT_SIGPENDING), no real-time signal is free, the call was cancelled, or a
 * function of fair_call's asks.  Then do with ticks, or fair_call.  Where a body
 * goes on on a thread that can get no timer, it rings as each slice begins, and
 * each tick ends one: who is told to return before it has done anything should
 * ask for the alarm again, and do without.
 *
 * Cost: two system calls in a slice, and a signal where it is used up: some us,
 * 20 in some virtual machines.  Give such a function slices of 200 us or more
 * (fair_options.slice_us).  While it is on, each tick reads the clock.  Where a
 * scheduler has no alternate stack (an emulator without JIT), the handler takes
 * some kilobytes of the body's. */
static inline uint64_t fair_alarm(fair_task *t, void (*ring)(void *), void *arg)
{
    return t->ops->alarm(t, ring, arg);
}

/* -- Waiting ----------------------------------------------------------------
 *
 * The caller waits in fairnif:await/1 and holds no scheduler
 * (docs/guide/10-waiting.md).  When it dies, what waits is dropped as at any
 * other pause.  In a function without FAIR_AWAITED these functions raise
 * `error:{fairnif, {not_awaited, MFA}}` where they would have to wait, and do
 * not return.  After a wait the body goes on where it was: on a normal
 * scheduler, or on a dirty one.
 *
 * A FAIR_THREADED body has an environment of its own, with copies of its
 * arguments.  Binaries over 64 bytes are not copied; large terms are copied on
 * a dirty CPU scheduler.  Terms that it makes are not collected until the call
 * ends.  Its answer is fetched without another copy. */

/* The events of fair_wait. */
#define FAIR_READ  1u
#define FAIR_WRITE 2u

/* Waits until the descriptor is ready to be read or written: FAIR_READ,
 * FAIR_WRITE, or both or-ed, for either.  It waits `timeout_ms` milliseconds at
 * most, and for ever when that is negative; 0 is a look that does not wait.
 * Pauses, unless it is ready at once; the caller waits in fairnif:await/1.
 * Answers:
 *
 *   1, 2, 3   What is ready: FAIR_READ, FAIR_WRITE, both.  An error or a
 *             hang-up counts as ready: read or write, and see.
 *   0         The time is up.
 *   -EBUSY    Another task waits for the same event of this descriptor.
 *   -EBADF    It is not open; or it is a descriptor from fair_get_fd that was
 *             closed, also while this waited.
 *   -EINVAL   Other events than these.
 *   -EDEADLK  A function given to fair_call or the like waits, which must not
 *             use the task.
 *   -ENOMEM, -EMFILE, -ENFILE  No memory, or no descriptor for the duplicate.
 *   -EIO      The VM could not watch it.
 *   -ENOSYS   Windows: there only sleeping works.
 *
 * What to know:
 *
 *   - A descriptor that the task got by fair_get_fd is waited for as it is.  Of
 *     any other one a duplicate is waited for: its owner may close it at any
 *     time, and the wait goes on, for the file and not for the number.  That
 *     costs a descriptor and three system calls more.
 *   - With `fd` -1 and no events it sleeps, holding nothing.  Times are rounded
 *     up to milliseconds.
 *   - What is ready may be somebody else's by the time the body reads.  Read
 *     from non-blocking descriptors, and wait again when there is nothing.
 *   - errno after a wait may be another thread's
 *     (docs/guide/4-hazards.md#thread-local-variables).
 *   - A descriptor that was handed over to the runtime must not be given to
 *     enif_select by anybody else, nor closed with `close`.
 *   - Cost: one `poll` when it is ready.  Else some 10 us from the event to the
 *     next line of the body (2 cores, busy with other programs), and two short
 *     NIF calls more; for a duplicate some us in addition.
 *   - On a platform without tasks it polls, on the dirty scheduler that it
 *     holds, and looks for the caller's death 20 times a second. */
static inline int fair_wait(fair_task *t, int fd, unsigned events,
                            int timeout_ms)
{
    return t->ops->wait(t, fd, events, timeout_ms);
}

/* Hands an open descriptor over to the runtime, and answers a term (a resource
 * object) that stands for it from now on.  The descriptor is made non-blocking.
 * It is closed when fair_close_fd is called, when its owner (the calling
 * process) dies, or when the term is garbage, whichever is first; but not while
 * a task has it from fair_get_fd.  Answers 0, and the descriptor stays the
 * author's, when it is none, was handed over before, or memory is out. */
static inline ERL_NIF_TERM fair_make_fd(fair_task *t, int fd)
{
    return t->ops->make_fd(t, fd);
}

/* The descriptor behind a term.  It stays open until the task ends, whatever
 * happens to its term and its owner, and is there in deferred functions too.
 * 0 when the term is none, or it was closed. */
static inline int fair_get_fd(fair_task *t, ERL_NIF_TERM term, int *fd)
{
    return t->ops->get_fd(t, FAIR__TERM(term), fd);
}

/* Closes the descriptor behind a term, as soon as no task has it; those that
 * wait for it get -EBADF at once.  From any process.  0 when it is none or was
 * closed before. */
static inline int fair_close_fd(fair_task *t, ERL_NIF_TERM term)
{
    return t->ops->close_fd(t, FAIR__TERM(term));
}

/* -- Locks ------------------------------------------------------------------
 *
 * When a task ends, however it ends, it lets go of what it holds.  The data
 * under a lock may then be half written: a killed caller leaves them as they
 * are.  A deferred function cannot yield: where it takes a lock that another
 * task has, it blocks its thread, a scheduler's too, until that task lets go.
 * Use fair_mutex_trylock there. */

/* Takes a lock; waiters get it in their order.  It may be held across pauses
 * and waits.  A task that takes a lock that it has raises
 * `error:{fairnif, {deadlock, MFA}}`.  May pause: when another task has it; the
 * caller waits in fairnif:await/1. */
static inline void fair_mutex_lock(fair_task *t, fair_mutex *m)
{
    t->ops->lock(t, m, 1);
}

/* The same without waiting, in every mode; 0 when any task has it. */
static inline int fair_mutex_trylock(fair_task *t, fair_mutex *m)
{
    return t->ops->lock(t, m, 0);
}

/* Lets go; 0, and nothing done, when this task does not hold it. */
static inline int fair_mutex_unlock(fair_task *t, fair_mutex *m)
{
    return t->ops->unlock(t, m);
}

/* -- Functions of the VM ----------------------------------------------------
 *
 * After a wait a body runs in a NIF of module `fairnif`, and in FAIR_THREADED
 * on a thread that is no scheduler.  There enif_priv_data, enif_self,
 * enif_send, enif_is_current_process_alive, enif_consume_timeslice and
 * enif_monotonic_time would answer for another library, fail, or end the node.
 * So this header replaces them by macros that go through the runtime, and they
 * answer as everywhere else.  enif_time_offset is not replaced: it fails. */

/* -- Environment and arguments --------------------------------------------- */

/* The environment of the current slice, for enif_make_ and enif_get_ functions.
 * Ask again after each pause.  A field access.
 *
 * A body that calls it on a dirty scheduler passes through a normal one at the
 * end of that dirty slice, in any mode, so that the garbage collector gets what
 * was made. */
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

/* Argument `i`, from 0; valid until the next pause.  Out of range: the atom
 * `badarg`. */
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

/* The process that called, in every mode. */
static inline void fair_caller(fair_task *t, ErlNifPid *pid)
{
    t->ops->caller(t, pid);
}

/* -- Roots ------------------------------------------------------------------
 *
 * Terms that survive pauses.  The garbage collector sees them; they are not
 * copied.  A function that makes roots lets go of its first one before it
 * returns: so helpers nest, and may call themselves.  A number that is no
 * root's, here and in the functions of lists, raises
 * `error:{fairnif, {bad_root, MFA}}`.  There is no limit but memory.  Cost: a
 * word to copy at each pause, from the twelfth root on two. */

/* Makes a root of a term of the current slice, and answers its number.  It
 * lives as long as the task, or until fair_unroot.  Raises error:enomem. */
static inline unsigned fair_root(fair_task *t, ERL_NIF_TERM term)
{
    return t->ops->root(t, FAIR__TERM(term));
}

/* Lets go of a root, and of all that were made after it. */
static inline void fair_unroot(fair_task *t, unsigned root)
{
    t->ops->unroot(t, root);
}

/* Puts another term into a root. */
static inline void fair_keep(fair_task *t, unsigned root, ERL_NIF_TERM term)
{
    t->ops->keep(t, root, FAIR__TERM(term));
}

/* The term of a root, valid until the next pause. */
static inline ERL_NIF_TERM fair_kept(fair_task *t, unsigned root)
{
    return t->ops->kept(t, root);
}

/* -- Messages ---------------------------------------------------------------
 *
 * For native processes (docs/guide/16-native-processes.md), and for any other
 * awaited call.  The caller, in fairnif:await/1, does for the task what only
 * Erlang can, and the body goes on where it was.  Terms that
 * they answer are valid until the next pause, as all are: a root keeps them.
 * They are not copied, but for a FAIR_THREADED body.
 *
 * In a function without FAIR_AWAITED they raise `error:{fairnif, {not_awaited,
 * MFA}}`, in a callback of a resource and on a platform without tasks
 * `error:{fairnif, {no_caller, MFA}}`, and do not return.  In what fair_call or
 * fair_defer was given, and once the call was cancelled, they do nothing and answer
 * 0 and an atom.
 *
 * A FAIR_THREADED body has its own environment: messages are copied into it, and
 * at each of these functions it is made anew, so that what is in no root is let
 * go, while arguments and roots have fewer than 512 words and are no funs.
 *
 * Cost: each time about 1 us more than a receive in Erlang; docs/figures.md. */

/* The next message of the caller's mailbox: 1.  Waits `timeout_ms` milliseconds at
 * most, and for ever when that is negative; 0 then, and an atom.  Pauses. */
static inline int fair_receive(fair_task *t, int timeout_ms,
                               ERL_NIF_TERM *message)
{
    ERL_NIF_TERM timeout = enif_make_int(t->env, timeout_ms < 0 ? -1
                                         : timeout_ms);

    return t->ops->ask(t, &timeout, 1, message);
}

/* The same of the first message with a tag, which may be any term: the message is
 * the tag, or a tuple whose first element it is; of a reference also one whose
 * second element it is, such as `{'DOWN', Ref, process, Pid, Reason}`.  The
 * others stay in the mailbox, in their order.  Cost: it looks at each message
 * before that, as a receive in Erlang does. */
static inline int fair_receive_tagged(fair_task *t, ERL_NIF_TERM tag,
                                      int timeout_ms, ERL_NIF_TERM *message)
{
    ERL_NIF_TERM request[2] = {
        tag, enif_make_int(t->env, timeout_ms < 0 ? -1 : timeout_ms)
    };

    return t->ops->ask(t, request, 2, message);
}

/* Calls Module:Function(Arguments...) in the caller, where Erlang code waits as
 * long as it likes and holds nothing: 1 and what it returned, or 0 and {Class,
 * Reason} of what it raised.  Pauses. */
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

/* `to ! message`: to a pid, a registered name, {Name, Node} or an alias, here or on
 * another node.  It does not pause: the caller sends it, at the end of this slice
 * or when the body pauses next in any way.  What is sent so arrives in the order
 * in which it was sent; what enif_send sends comes before it.  A name that nobody
 * has is ignored.  A list function (fair_get_iolist, fair_list_reverse) that
 * pauses sends nothing.  Lost is what a slice has sent that ends with the caller's
 * death, an error of the runtime's, or an exception that was not fair_raise's. */
static inline void fair_send(fair_task *t, ERL_NIF_TERM to,
                             ERL_NIF_TERM message)
{
    t->ops->post(t, to, message, 0);
}

/* erlang:monitor(process, Who): 1 and the reference, or 0.  Pauses. */
static inline int fair_monitor(fair_task *t, ERL_NIF_TERM who,
                               ERL_NIF_TERM *ref)
{
    ERL_NIF_TERM arguments[2] = {enif_make_atom(t->env, "process"), who};

    return fair_apply(t, "erlang", "monitor", fair__list(t, arguments, 2), ref);
}

/* link(Pid).  0 when there is no such process, and the caller does not trap exits.
 * Pauses. */
static inline int fair_link(fair_task *t, ERL_NIF_TERM pid)
{
    ERL_NIF_TERM result;

    return fair_apply(t, "erlang", "link", fair__list(t, &pid, 1), &result);
}

/* Whether a message is gen_server:call's: `{'$gen_call', From, Request}`.  Where
 * it is, `from` is for fair_reply. */
static inline int fair_get_call(fair_task *t, ERL_NIF_TERM message,
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

/* The same of gen_server:cast's: `{'$gen_cast', Request}`. */
static inline int fair_get_cast(fair_task *t, ERL_NIF_TERM message,
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

/* gen_server:reply(From, Reply): the answer to a call, from any node.  Does not
 * pause: as fair_send. */
static inline void fair_reply(fair_task *t, ERL_NIF_TERM from,
                              ERL_NIF_TERM reply)
{
    t->ops->post(t, from, reply, 1);
}

/* -- Reading terms ----------------------------------------------------------
 *
 * Of any term of the current slice: `fair_arg(t, 0)`, an element of a list or
 * of a tuple.  These functions answer 1; or 0, and nothing set, when the term
 * is something else or does not fit.  For a number where a term belongs
 * (`fair_get_bin(t, 0, &bin)`) an optimising compiler gives an error.  What is
 * not here (tuples, maps, references, local pids) is read with the enif_
 * functions and fair_env, between two pauses.
 *
 * After a 0 `return fair_badarg(t);` is right, also where memory may have been
 * out: it then raises `enomem`. */

/* A number, by the enif_ function of the same name, at its cost.  On a dirty
 * scheduler use these instead of that: to ask for fair_env there looks like
 * making terms. */
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

/* The name of an atom in Latin-1 with its final zero; 0 also when it has other
 * characters, or `size` bytes are too few. */
static inline int fair_get_atom(fair_task *t, ERL_NIF_TERM term, char *buf,
                                unsigned size)
{
    return enif_get_atom(t->env, FAIR__TERM(term), buf, size,
                         ERL_NIF_LATIN1) > 0;
}

/* A resource object.  It is kept until the task ends, however it ends.  0 also
 * when memory is out.  Cost: a small allocation. */
static inline int fair_get_resource(fair_task *t, ERL_NIF_TERM term,
                                    ErlNifResourceType *type, void **obj)
{
    return t->ops->get_resource(t, FAIR__TERM(term), type, obj);
}

/* The bytes of a binary; 0 also when memory is out.
 *
 * Up to 64 bytes (what the VM keeps on heaps; learned as the runtime is loaded)
 * are copied.  Of longer binaries only the address is taken, and the first
 * pause adds a reference (enif_make_copy; 0.2 us, once measured).  The
 * exception: a longer binary that begins within a byte, such as the `B` of
 * `<<_:1, B/binary>>`, is copied twice, in one go: by the VM and by the
 * runtime.  Four binaries of a task need no allocation for their records. */
static inline int fair_get_bin(fair_task *t, ERL_NIF_TERM term, fair_bin *bin)
{
    return t->ops->get_bin(t, FAIR__TERM(term), bin);
}

/* The bytes of an iolist in one piece, in slices.  Two walks: one counts, one
 * copies.  A binary is taken as by fair_get_bin.  Nesting may be as deep as
 * memory allows.  0 also when memory is out.  May pause: long input. */
static inline int fair_get_iolist(fair_task *t, ERL_NIF_TERM term,
                                  fair_bin *bin)
{
    return t->ops->get_iolist(t, FAIR__TERM(term), bin);
}

/* A list of integers 0..255 as bytes with a final zero, which is not counted in
 * `*length`; in slices.  The memory is fair_alloc's.  0 also when memory is
 * out.  May pause: long input. */
static inline int fair_get_string(fair_task *t, ERL_NIF_TERM term,
                                  char **chars, size_t *length)
{
    return t->ops->get_string(t, FAIR__TERM(term), chars, length);
}

/* The length of a proper list, in slices.  May pause: long input. */
static inline int fair_get_list_length(fair_task *t, ERL_NIF_TERM term,
                                       size_t *length)
{
    return t->ops->get_list_length(t, FAIR__TERM(term), length);
}

/* -- Binaries ---------------------------------------------------------------
 *
 * Of any size that memory allows; over 4 GiB works. */

/* A new binary of `size` bytes, not zeroed, to be written and then turned into
 * a term; 0 when memory is out.  Over 64 bytes it costs an allocation. */
static inline int fair_new_bin(fair_task *t, size_t size, fair_bin *bin)
{
    return t->ops->new_bin(t, size, bin);
}

/* Changes the size of a binary from fair_new_bin that is no term yet.  `data`
 * may move.  0 when memory is out: it is then as it was.  The VM copies in one
 * go what the allocator cannot grow in place.  To build a result of unknown
 * size, grow by factors, or collect parts. */
static inline int fair_resize_bin(fair_task *t, fair_bin *bin, size_t size)
{
    return t->ops->resize_bin(t, bin, size);
}

/* The term of a fair_bin, new or got, without copying (up to 64 bytes: copied,
 * also after fair_resize_bin).  Afterwards its bytes must not be changed;
 * `data` stays where it is, and valid until the task ends.  The term does not
 * survive a pause: ask again. */
static inline ERL_NIF_TERM fair_make_bin(fair_task *t, fair_bin *bin)
{
    return t->ops->make_bin(t, bin);
}

/* Lets go of a binary before the task ends, for bodies that look at very many.
 * `data` and the fair_bin are not to be used any more: a function that is given
 * it raises `error:{fairnif, {released_bin, MFA}}`. */
static inline void fair_release_bin(fair_task *t, fair_bin *bin)
{
    t->ops->release_bin(t, bin);
}

/* -- Lists ------------------------------------------------------------------
 *
 * The list stands in a root.  Heads come out one by one. */

/* Takes the head off the list in the root: 1, and `*head` is valid until the
 * next pause.  0 when the root holds no non-empty list: at the end it holds
 * `[]`, of an improper list the tail.  Tick in the loop that calls it. */
static inline int fair_list_next(fair_task *t, unsigned root,
                                 ERL_NIF_TERM *head)
{
    return t->ops->list_next(t, root, head);
}

/* Puts `head` before the list in the root. */
static inline void fair_list_push(fair_task *t, unsigned root,
                                  ERL_NIF_TERM head)
{
    t->ops->list_push(t, root, head);
}

/* Reverses the proper list in the root, in slices.  0, and `[]` in the root,
 * when it is no proper list.  May pause: long input. */
static inline int fair_list_reverse(fair_task *t, unsigned root)
{
    return t->ops->list_reverse(t, root);
}

/* -- Memory and clean-up ----------------------------------------------------
 *
 * Order at the end of a task: deferred functions, then memory of fair_alloc,
 * then resource objects, then binaries.  So a deferred function may use the
 * other three.  At halt nothing runs. */

/* Memory that goes with the task, aligned to 16 bytes, which is enough for any
 * standard type; NULL when out of memory.  By enif_alloc, with up to 47 bytes
 * more. */
static inline void *fair_alloc(fair_task *t, size_t size)
{
    return t->ops->alloc(t, size);
}

/* As `realloc`, of what fair_alloc or this returned.  NULL as `ptr` allocates;
 * NULL as answer: the block is as it was. */
static inline void *fair_realloc(fair_task *t, void *ptr, size_t size)
{
    return t->ops->realloc(t, ptr, size);
}

/* Frees early; NULL is allowed. */
static inline void fair_free(fair_task *t, void *ptr)
{
    t->ops->free(t, ptr);
}

/* `fn(ptr)` runs exactly once when the task ends: after the body returned, or
 * when the caller died; last given, first run.  It runs on any thread, also on
 * one that is no scheduler; it must not use the task nor an environment, and
 * should be quick.  When memory is out `fn(ptr)` is called at once and the
 * answer is 0.  Four need no allocation. */
static inline int fair_defer(fair_task *t, void (*fn)(void *), void *ptr)
{
    return t->ops->defer(t, fn, ptr);
}

/* Takes back the latest fair_defer of `fn` and `ptr`, without running it; 0
 * when there is none. */
static inline int fair_undefer(fair_task *t, void (*fn)(void *), void *ptr)
{
    return t->ops->undefer(t, fn, ptr);
}

/* -- Errors -----------------------------------------------------------------
 *
 * `return fair_badarg(t);`: the body must return what these functions return,
 * and not go on in between, since a pause would lose the exception.  A body that
 * goes on pauses no more; it is reported, once a call, and counted in `misuses`.
 *
 * At the call of any fair function the runtime itself raises, with {Module,
 * Function, Arity} for MFA:
 *
 *   error:overloaded  `max_tasks` of the function or of the node is reached,
 *       and, of an awaited call, no turn came within `overload_ms`.  Or no
 *       thread of the pool began the call in that time.
 *   error:{fairnif, {not_awaited, MFA}}  The body would have to wait, and the
 *       function is not FAIR_AWAITED.
 *   error:{fairnif, {bad_root, MFA}}  A number that is no root's.
 *   error:{fairnif, {bad_mode, MFA}}  fair_move to another mode than its three,
 *       fair_call in none.
 *   error:{fairnif, {released_bin, MFA}}  Use of a fair_bin after
 *       fair_release_bin.
 *   error:{fairnif, {deadlock, MFA}}  fair_mutex_lock of a lock that the task
 *       holds.
 *   error:enomem  No memory for the stack, a thread's counters, a root or a
 *       pause.  Raised at a pause, the task has been cleaned up.
 *   error:badreturn  The body returned no term (zero) and raised nothing;
 *       counted in `misuses`.
 *   error:system_limit  As many stacks as `stacks_limit` of fairnif:info/0 says
 *       are mapped. */

/* error:Reason. */
static inline ERL_NIF_TERM fair_raise(fair_task *t, ERL_NIF_TERM reason)
{
    return t->ops->raise(t, reason);
}

/* error:badarg.  Right after a function that got a binary, an iolist, a string
 * or a resource answered 0 for another reason, that one: `enomem` where memory
 * was out, `system_limit` where an iolist has more bytes than can be counted.
 * (So does fair_raise with the reason `badarg`.) */
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

/* An entry of the ErlNifFunc table.  Plain entries may stand beside it.  Arity
 * at most 240.  Used with ERL_NIF_INIT instead of FAIR_NIF_INIT, the VM refuses
 * the library ("Illegal flags field"). */
#define FAIR_NIF(NAME, ARITY, BODY, MODE)                                   \
    {(NAME), (ARITY),                                                       \
     (fair__entry)(void (*)(void))(1 ? (BODY) : (fair_body)0),              \
     FAIR__MARK | (unsigned)(MODE)}

/* The same with options: a `const fair_options *` whose `body` is set. */
#define FAIR_NIF_OPTIONS(NAME, ARITY, OPTIONS, MODE)                        \
    {(NAME), (ARITY),                                                       \
     (fair__entry)(uintptr_t)(1 ? (OPTIONS) : (const fair_options *)0),     \
     FAIR__MARK | FAIR__OPTIONS | (unsigned)(MODE)}

/* FAIR_NIF_INIT(MODULE, FUNCS, LOAD, RELOAD, UPGRADE, UNLOAD)
 *
 * In the place of ERL_NIF_INIT, with the same arguments.  Once in a library.
 *
 * LOAD and UPGRADE get the term that was given to fairnif:load_info/1
 * (`undefined` without).  They run after the library has been bound to the
 * runtime; no fair function can be called before they have returned 0.  As with
 * ERL_NIF_INIT an upgrade is refused without UPGRADE, but not if LOAD is NULL
 * too: then there is no state to carry over.  The same file may be loaded four
 * times at once (current, old, and two that wait for their last task); a fifth
 * is refused. */

/* FAIR_MAX_NIFS
 *
 * How many entries the table may have, plain ones too: 256.  For more, up to
 * 4096, define it before this file is included; else the library does not
 * compile.  It costs compile time (4096: 0.6 s), not size: stubs are made for
 * the entries that there are, some 100 bytes each. */

/* FAIR_TRANSLATED
 *
 * To be defined where a program that translates C reads this header, such as
 * `zig translate-c`: it leaves out a check of arguments that only compilers
 * understand. */

/* -- Debug build ------------------------------------------------------------
 *
 * A library compiled with FAIR_DEBUG defined (`cc -DFAIR_DEBUG`) replaces the
 * functions that lock, try to lock and unlock enif_mutex_ and enif_rwlock_
 * locks by macros that count what is held, so that a tick taken under a lock is
 * reported; and fair_arg notes what it hands out, for `check_terms`.  Reports
 * go to standard error, each kind once a call and never where that would block,
 * and to the counter `misuses`, each time.  The switches of fairnif:debug/1
 * need no special build (docs/guide/5-testing.md). */

#include "fairnif_resource.h"

#ifdef __cplusplus
}
#endif

#endif /* FAIRNIF_H */
