/*
 * fairnif.h - native functions that share the BEAM.
 *
 * A NIF written against this header is ordinary straight-line C that now and
 * then says how much work it has done (`fair_tick`).  The runtime makes it
 * give way to other Erlang processes, charges reductions for the time it
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
 * THE RULES OF A BODY.  A pause can happen in `fair_tick` and in every
 * function below that says "may pause".  After a pause the body may be on
 * another thread, and the process heap may have been moved by the garbage
 * collector.  Therefore these do not survive a pause:
 *   - ERL_NIF_TERM values in C variables (re-read arguments with `fair_arg`,
 *     keep others in roots, `fair_root`), and pointers into terms
 *     (enif_get_tuple, enif_inspect_binary);
 *   - an ErlNifEnv (ask `fair_env` again);
 *   - addresses of thread-local variables, errno among them (the compiler may
 *     keep one where the source does not).
 * These do survive: C variables, the C stack, `fair_bin` data, memory from
 * `fair_alloc` and malloc, resource objects got with `fair_get_resource`.
 * Never pause while holding an enif_mutex or any other lock: the thread that
 * goes on may be another one, and the lock's waiters hold schedulers.
 *
 * When the caller dies the body is not resumed: its C stack is dropped where
 * it paused, and the functions given to `fair_defer` run.  So nothing that
 * must be released may be reachable from the stack alone.
 *
 * The reference for authors is docs/manual/c-api.md; why it is built so is
 * in docs/internals.
 */
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

/* The binary interface between this header and the runtime.  A library loads
 * when the major versions are equal and its minor one is not newer. */
#define FAIR_ABI_MAJOR 2
#define FAIR_ABI_MINOR 0

/* ------------------------------------------------------------------------
 * Modes: where a function begins.  It gives way to other work after each slice,
 * on normal schedulers of about 25 us, elsewhere of 1 ms.  One body can be
 * registered in several.  On a platform without tasks (fairnif:info/0 has
 * stack_switch => none) each mode is a plain dirty NIF: FAIR_DIRTY_IO and
 * FAIR_THREADED on a dirty I/O scheduler, the others on a dirty CPU scheduler.
 * ------------------------------------------------------------------------ */

enum fair_mode {
    /* On the caller's scheduler, at once. */
    FAIR_NORMAL = 1,
    /* On a dirty CPU scheduler. */
    FAIR_DIRTY_CPU = 2,
    /* On a dirty I/O scheduler. */
    FAIR_DIRTY_IO = 3,
    /* On a thread of the runtime's pool: the caller holds no scheduler.  The
     * call answers a pending value, for fairnif:await/1.  Gives way to other
     * work of the pool, where some waits. */
    FAIR_THREADED = 4,
    /* The default choice: FAIR_NORMAL, until the function's ticks prove to lie
     * too far apart; from then on FAIR_DIRTY_CPU. */
    FAIR_AUTO = 5
};

/* Or-ed to a mode: the function runs to its end where it begins.  Ticks count;
 * they do not give way, unless
 *   - it made terms on a dirty scheduler, where they are garbage to nobody;
 *   - fairnif's tasks hold every dirty CPU scheduler: the VM collects there;
 *   - it was moved (fair_move).
 * On a normal scheduler such a call is charged one turn (4000 reductions) at
 * most, and the caller's death waits until it ends, since the VM tells a
 * process of it only between two turns. */
#define FAIR_NO_YIELD 0x40u

/* Or-ed to a mode: the Erlang function hands what the NIF answers to
 * fairnif:await/1, so calls may wait without holding a scheduler.  What waits
 * (fair_call in FAIR_THREADED, fair_wait, fair_mutex_lock, and the limit
 * max_tasks, which else raises overloaded) needs it; FAIR_THREADED implies it.
 *
 *     FAIR_NIF("nif_fetch", 1, fetch, FAIR_AUTO | FAIR_AWAITED)
 *
 *     fetch(Url) -> fairnif:await(nif_fetch(Url)).
 */
#define FAIR_AWAITED 0x80u

/* -- types ---------------------------------------------------------------- */

typedef struct fair_task fair_task;

/* A fair function: called with the task, answers a term of the current
 * `fair_env` or what fair_badarg, fair_enomem or fair_raise return. */
typedef ERL_NIF_TERM (*fair_body)(fair_task *t);

/* A binary whose bytes stay where they are until the task ends, however it
 * ends.  Read `data` and `size`; the rest is the runtime's. */
typedef struct {
    unsigned char *data;
    size_t size;
    void *ref;
} fair_bin;

/* A lock that suspends tasks, not schedulers.  Begins as FAIR_MUTEX_INIT, lies
 * where the author wants it (static, or in a resource object) and must stay
 * there while a task holds it or waits for it.  The rest is the runtime's. */
typedef struct {
    void *holder, *first, *last, *next;
} fair_mutex;
#define FAIR_MUTEX_INIT {0, 0, 0, 0}

/* What one function may set for itself; zero means the default.  Given to
 * FAIR_NIF_OPTIONS, must live as long as the library (static const). */
typedef struct {
    fair_body body;
    size_t stack_size;      /* bytes of C stack; default 128 KiB, 16 KiB to
                               64 MiB, rounded up to a power of two */
    unsigned slice_us;      /* length of a slice on normal schedulers, us;
                               default: calibrated, see fairnif:info/0 */
    unsigned max_tasks;     /* how many calls may be under way at once; one
                               more waits its turn with FAIR_AWAITED, and
                               raises error:overloaded without */
} fair_options;

/* How many entries the table of a library may have.  A larger library defines
 * it, up to 4096, before it includes this file; it costs compile time only. */
#ifndef FAIR_MAX_NIFS
#  define FAIR_MAX_NIFS 256
#endif

/* What else the runtime and a library know of each other: not for authors, but
 * for FAIR_NIF_INIT, and FAIR_E_..., the numbers that a load fails with. */
#include "fairnif_abi.h"

/* -- giving way ----------------------------------------------------------- */

/* Says that `units` of work were done since the last tick: bytes, rows,
 * rounds, whatever the body does much of.  One subtraction and one branch;
 * the runtime learns what a unit costs.  Tick at least every 5 us.  May pause.
 * A nonsensical number (negative, huge) only makes the runtime read the clock.
 */
static inline void fair_tick(fair_task *t, size_t units)
{
    if (__builtin_expect(units < t->budget, 1))
        t->budget -= units + 1;     /* so that ticks of 0 count as well */
    else
        t->ops->tick(t, units);
}

/* How often this task has given way so far. */
static inline uint64_t fair_yields(const fair_task *t)
{
    return t->yields;
}

/* Goes on, from this line, on another kind of scheduler: FAIR_NORMAL,
 * FAIR_DIRTY_CPU or FAIR_DIRTY_IO.  A FAIR_THREADED body stays on its thread.
 * Any other mode raises error:{fairnif, {bad_mode, Function}}.  Costs about one
 * dirty call.  Pauses. */
static inline void fair_move(fair_task *t, enum fair_mode where)
{
    t->ops->move(t, where);
}

/* Where the body is running now: any mode but FAIR_AUTO. */
static inline enum fair_mode fair_where(const fair_task *t)
{
    return t->ops->where(t);
}

/* Runs fn(arg), code that cannot tick, elsewhere, and comes back.  `fn` must
 * not use the task: a tick in it does nothing, and is reported.  It has a large
 * stack, of a scheduler or thread.  `where` says on what it runs:
 *   FAIR_AUTO       for code that computes: here while so many units are
 *                   learned to cost little beside a trip to a dirty scheduler
 *                   (a tenth of it is lost at most), else on a dirty CPU
 *                   scheduler.  What a call costs need not be proportional to
 *                   its units: it is learned for each power of two of them, and
 *                   one call corrects a wrong guess.  The first call of a size
 *                   goes dirty, unless a larger one was short.
 *   FAIR_DIRTY_CPU  on a dirty CPU scheduler
 *   FAIR_DIRTY_IO   on a dirty I/O scheduler: code that waits
 *   FAIR_THREADED   on a thread of the runtime's pool: code that waits or
 *                   computes for long.  The caller holds no scheduler, and the
 *                   function must be FAIR_AWAITED.  `fn` runs to its end also
 *                   when the caller dies, and what it uses stays until then.
 *                   When the pool's queue is full the caller waits its turn,
 *                   and raises error:overloaded when that takes too long
 *                   (fairnif's `overload_ms`).
 *   FAIR_NORMAL     on a normal scheduler: code that is short
 * In a FAIR_THREADED body it runs in place.  Only FAIR_AUTO looks at `units`.
 * Pauses before and after, in FAIR_AUTO it may; never during fn. */
static inline void fair_call(fair_task *t, enum fair_mode where, size_t units,
                             void (*fn)(void *), void *arg)
{
    t->ops->call(t, where, units, fn, arg);
}

/* ------------------------------------------------------------------------
 * Waiting.  The caller waits in fairnif:await/1 and holds no scheduler; when
 * it dies, what waits is dropped as at any other pause.  In a function without
 * FAIR_AWAITED these raise error:{fairnif, {not_awaited, Function}} where they
 * would have to wait, and do not return.
 * ------------------------------------------------------------------------ */

#define FAIR_READ  1u
#define FAIR_WRITE 2u

/* Waits until the descriptor is ready to be read or written (FAIR_READ,
 * FAIR_WRITE, or both: for either), holding no scheduler and no thread; at
 * most `timeout_ms`, or for ever when that is negative.  Answers what is ready
 * (an error or hang-up counts as ready: read or write, and see), 0 when the
 * time is up, or -errno:
 *   -EBUSY   another task waits for the same event of this descriptor
 *   -EBADF   it is not open, or was closed while this waited
 *   -EINVAL  other events than these
 *   -EDEADLK a function given to fair_call or the like waits, which must not
 *            use the task
 *   -ENOMEM, -EMFILE, ...  no memory or no descriptor for the waiting
 *   -ENOSYS  Windows, where it only sleeps
 * A descriptor that the task got by fair_get_fd is waited for as it is; of any
 * other one a duplicate, so that its owner may close it at any time.  With
 * fd -1 and no events it sleeps.  Pauses. */
static inline int fair_wait(fair_task *t, int fd, unsigned events,
                            int timeout_ms)
{
    return t->ops->wait(t, fd, events, timeout_ms);
}

/* Hands an open descriptor over to the runtime: a term (a resource object)
 * that stands for it from now on.  It is made non-blocking, and closed when
 * fair_close_fd is called, when its owner (the calling process) dies, or when
 * the term is garbage, whichever is first; but not while a task has it from
 * fair_get_fd.  0 and the descriptor untouched when it is none, was handed over
 * before, or memory is out. */
static inline ERL_NIF_TERM fair_make_fd(fair_task *t, int fd)
{
    return t->ops->make_fd(t, fd);
}

/* The descriptor behind a term, which stays open until the task ends; 0 when
 * the term is none, or it was closed. */
static inline int fair_get_fd(fair_task *t, ERL_NIF_TERM term, int *fd)
{
    return t->ops->get_fd(t, FAIR__TERM(term), fd);
}

/* Closes the descriptor behind a term, as soon as no task uses it; those that
 * wait for it get -EBADF.  0 when it is none or was closed before. */
static inline int fair_close_fd(fair_task *t, ERL_NIF_TERM term)
{
    return t->ops->close_fd(t, FAIR__TERM(term));
}

/* Takes a lock; waiters get it in their order.  May be held across pauses.
 * When the task ends, however it ends, it lets go of what it holds.  A task
 * that takes a lock that it has raises error:{fairnif, {deadlock, Function}}.
 * May pause. */
static inline void fair_mutex_lock(fair_task *t, fair_mutex *m)
{
    t->ops->lock(t, m, 1);
}

/* The same without waiting; 0 when another task has it. */
static inline int fair_mutex_trylock(fair_task *t, fair_mutex *m)
{
    return t->ops->lock(t, m, 0);
}

/* 0, and nothing done, when this task does not hold it. */
static inline int fair_mutex_unlock(fair_task *t, fair_mutex *m)
{
    return t->ops->unlock(t, m);
}

/* The process that called, in every mode. */
static inline void fair_caller(fair_task *t, ErlNifPid *pid)
{
    t->ops->caller(t, pid);
}

/* -- environment, arguments, roots ---------------------------------------- */

/* The environment of the current slice, for enif_make_ and enif_get_
 * functions.  Ask again after each pause. */
static inline ErlNifEnv *fair_env(fair_task *t)
{
    t->env_used = 1;
    return t->env;
}

static inline unsigned fair_argc(const fair_task *t)
{
    return t->argc;
}

/* Argument `i` (from 0), valid until the next pause; an index that is out of
 * range answers the atom badarg. */
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

/* Roots: terms that survive pauses.  fair_root makes one and answers its
 * number, for the functions below; it lives as long as the task, or until
 * fair_unroot lets go of it and of all that were made after it: so a function
 * that makes roots lets go of its first one before it returns.  A number that
 * is no root's raises error:{fairnif, {bad_root, Function}}.  Each costs a word
 * at a pause, from the twelfth on two.  Raises error:enomem. */
static inline unsigned fair_root(fair_task *t, ERL_NIF_TERM term)
{
    return t->ops->root(t, FAIR__TERM(term));
}

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

/* -- reading terms --------------------------------------------------------
 * Any term of the current slice: fair_arg(t, 0), an element of a list or tuple.
 * 1, or 0 and nothing set when it is something else or does not fit. */

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

/* The name of an atom as a Latin-1 string with its final zero; 0 also when
 * `size` bytes are too few. */
static inline int fair_get_atom(fair_task *t, ERL_NIF_TERM term, char *buf,
                                unsigned size)
{
    return enif_get_atom(t->env, FAIR__TERM(term), buf, size,
                         ERL_NIF_LATIN1) > 0;
}

/* A resource object; it is kept until the task ends. */
static inline int fair_get_resource(fair_task *t, ERL_NIF_TERM term,
                                    ErlNifResourceType *type, void **obj)
{
    return t->ops->get_resource(t, FAIR__TERM(term), type, obj);
}

/* The bytes of a binary; 0 also when memory is out.  Up to 64 bytes are copied,
 * of longer ones only the address is taken.  (The exception is the VM's: the
 * bytes of a longer binary that begins within a byte, such as the B of
 * <<_:1, B/binary>>, are copied in one go.) */
static inline int fair_get_bin(fair_task *t, ERL_NIF_TERM term, fair_bin *bin)
{
    return t->ops->get_bin(t, FAIR__TERM(term), bin);
}

/* The bytes of an iolist or binary, copied into one piece, in slices.  0 also
 * when memory is out.  May pause. */
static inline int fair_get_iolist(fair_task *t, ERL_NIF_TERM term,
                                  fair_bin *bin)
{
    return t->ops->get_iolist(t, FAIR__TERM(term), bin);
}

/* A list of integers 0..255 as bytes with a final zero (not counted in
 * *length), in slices; the memory goes with the task.  0 also when memory is
 * out.  May pause. */
static inline int fair_get_string(fair_task *t, ERL_NIF_TERM term,
                                  char **chars, size_t *length)
{
    return t->ops->get_string(t, FAIR__TERM(term), chars, length);
}

/* The length of a proper list.  May pause. */
static inline int fair_get_list_length(fair_task *t, ERL_NIF_TERM term,
                                       size_t *length)
{
    return t->ops->get_list_length(t, FAIR__TERM(term), length);
}

/* -- making binaries ------------------------------------------------------ */

/* A new binary of `size` bytes, not zeroed, to be written and then turned
 * into a term; 0 when memory is out.  Costs an allocation over 64 bytes. */
static inline int fair_new_bin(fair_task *t, size_t size, fair_bin *bin)
{
    return t->ops->new_bin(t, size, bin);
}

/* Changes the size of a binary from fair_new_bin that is no term yet; its
 * data may move.  0 when memory is out: the binary is then as it was.  The
 * VM copies in one go what it cannot grow in place. */
static inline int fair_resize_bin(fair_task *t, fair_bin *bin, size_t size)
{
    return t->ops->resize_bin(t, bin, size);
}

/* The term of a fair_bin (new or got).  Afterwards its bytes must not be
 * changed any more.  Like any term it does not survive a pause, but it can be
 * asked for again. */
static inline ERL_NIF_TERM fair_make_bin(fair_task *t, fair_bin *bin)
{
    return t->ops->make_bin(t, bin);
}

/* Lets go of a binary before the task ends; its data and the fair_bin are not
 * to be used any more: a function that is given it raises
 * error:{fairnif, {released_bin, Function}}.  For bodies that look at very many
 * binaries. */
static inline void fair_release_bin(fair_task *t, fair_bin *bin)
{
    t->ops->release_bin(t, bin);
}

/* -- lists, in slices.  The list stands in a root. ------------------------ */

/* Takes the head off the list in `root`: 1 and *head (valid until the next
 * pause), or 0 when the root holds no non-empty list: at the end it holds [],
 * in an improper list the tail.  Tick in the loop that calls it. */
static inline int fair_list_next(fair_task *t, unsigned root,
                                 ERL_NIF_TERM *head)
{
    return t->ops->list_next(t, root, head);
}

/* Puts `head` before the list in `root`. */
static inline void fair_list_push(fair_task *t, unsigned root,
                                  ERL_NIF_TERM head)
{
    t->ops->list_push(t, root, head);
}

/* Reverses the proper list in `root`; 0, and [] in the root, when it is no
 * proper list.  May pause. */
static inline int fair_list_reverse(fair_task *t, unsigned root)
{
    return t->ops->list_reverse(t, root);
}

/* -- memory and clean-up -------------------------------------------------- */

/* Memory that goes with the task, aligned for any type; NULL when out of
 * memory.  fair_realloc and fair_free take only what these returned. */
static inline void *fair_alloc(fair_task *t, size_t size)
{
    return t->ops->alloc(t, size);
}

static inline void *fair_realloc(fair_task *t, void *ptr, size_t size)
{
    return t->ops->realloc(t, ptr, size);
}

static inline void fair_free(fair_task *t, void *ptr)
{
    t->ops->free(t, ptr);
}

/* fn(ptr) runs exactly once when the task ends: after the body returned, or
 * when the caller died; last given, first run; on any thread, so it must not
 * use the task nor the environment and should be quick.  When memory is out
 * fn(ptr) is called at once and the answer is 0.  Nothing runs at halt. */
static inline int fair_defer(fair_task *t, void (*fn)(void *), void *ptr)
{
    return t->ops->defer(t, fn, ptr);
}

/* Takes back the latest fair_defer of fn and ptr, without running it; 0 when
 * there is none. */
static inline int fair_undefer(fair_task *t, void (*fn)(void *), void *ptr)
{
    return t->ops->undefer(t, fn, ptr);
}

/* ------------------------------------------------------------------------
 * Errors.  `return fair_badarg(t);`: the body must return what these return,
 * and not tick in between.
 * ------------------------------------------------------------------------ */

/* error:Reason.  The reason badarg, right after one of the functions above that
 * got a binary, an iolist, a string or a resource answered 0, is what that one
 * failed for: enomem where memory was out, system_limit where an iolist has more
 * bytes than can be counted. */
static inline ERL_NIF_TERM fair_raise(fair_task *t, ERL_NIF_TERM reason)
{
    return t->ops->raise(t, reason);
}

static inline ERL_NIF_TERM fair_badarg(fair_task *t)
{
    return t->ops->raise(t, enif_make_atom(t->env, "badarg"));
}

static inline ERL_NIF_TERM fair_enomem(fair_task *t)
{
    return t->ops->raise(t, enif_make_atom(t->env, "enomem"));
}

/* -- registering functions ------------------------------------------------ */

/* An entry of the ErlNifFunc table.  Used with ERL_NIF_INIT instead of
 * FAIR_NIF_INIT, the VM refuses the library ("Illegal flags field"). */
#define FAIR_NIF(NAME, ARITY, BODY, MODE)                                   \
    {(NAME), (ARITY),                                                       \
     (fair__entry)(void (*)(void))(1 ? (BODY) : (fair_body)0),              \
     FAIR__MARK | (unsigned)(MODE)}

/* The same with options: OPTIONS is a `const fair_options *` whose `body` is
 * set. */
#define FAIR_NIF_OPTIONS(NAME, ARITY, OPTIONS, MODE)                        \
    {(NAME), (ARITY),                                                       \
     (fair__entry)(uintptr_t)(1 ? (OPTIONS) : (const fair_options *)0),     \
     FAIR__MARK | FAIR__OPTIONS | (unsigned)(MODE)}

/* FAIR_NIF_INIT(NAME, FUNCS, LOAD, RELOAD, UPGRADE, UNLOAD), in fairnif_abi.h,
 * replaces ERL_NIF_INIT; the same arguments.  The author's load and upgrade
 * are called with the term that was given to fairnif:load_info/1 (undefined
 * without).  As with ERL_NIF_INIT an upgrade is refused without an upgrade
 * function, but not if there is no load function either: then there is no
 * state to carry over. */

#ifdef __cplusplus
}
#endif

#endif /* FAIRNIF_H */
