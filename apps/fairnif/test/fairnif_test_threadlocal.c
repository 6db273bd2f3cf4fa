/*
 * fairnif_test_threadlocal.c - bodies that use thread-local variables across
 * a change of threads: known-bad ones, and what to do instead.
 *
 * Unless it says otherwise a body answers {Before, Here, Seen}: the thread it
 * began on, the one it ended on, and whose variable it read in the end.  It is
 * right when Seen is Here.  Threads are known by what the kernel calls them:
 * pthread_self() is part of the hazard.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fairnif.h>

#define NOINLINE __attribute__((noinline))

/* The number of the thread whose variable this is, once it has signed it. */
static __thread long owner;

static NOINLINE long thread(void)
{
    return syscall(SYS_gettid);
}

static NOINLINE void sign(void)
{
    owner = thread();
}

/* Asks anew each time it is called; the empty asm keeps the compiler from
 * finding out that it always answers the same on a thread. */
static NOINLINE long *owner_here(void)
{
    long *p = &owner;

    __asm__ volatile("" : "+r"(p));
    return p;
}

/* To another thread for certain: a dirty scheduler is none of the normal
 * ones. */
static NOINLINE void change_thread(fair_task *t)
{
    fair_move(t, fair_where(t) == FAIR_NORMAL ? FAIR_DIRTY_CPU : FAIR_NORMAL);
}

static ERL_NIF_TERM answer(fair_task *t, long before, long seen)
{
    ErlNifEnv *env = fair_env(t);

    return enif_make_tuple3(env, enif_make_long(env, before),
                            enif_make_long(env, thread()),
                            enif_make_long(env, seen));
}

/* -- bad: the author keeps the address ------------------------------------ */

static ERL_NIF_TERM keeps_address(fair_task *t)
{
    long before = thread(), *kept = owner_here();

    sign();
    change_thread(t);
    sign();
    return answer(t, before, *kept);
}

/* The same with nothing but ticks: goes on until the thread is another one. */
static ERL_NIF_TERM keeps_address_ticking(fair_task *t)
{
    long before = thread(), *kept = owner_here();

    sign();
    while (thread() == before)
        fair_tick(t, 1);
    sign();
    return answer(t, before, *kept);
}

/* -- bad: the compiler keeps it ----------------------------------------------
 * Nothing in the text of these says that an address is kept.  Not inlined, so
 * that the suite finds them in the disassembly. */

static NOINLINE long errno_twice(fair_task *t)
{
    errno = 0;
    change_thread(t);
    close(-1);
    return errno;
}

/* {Before, Here, Errno}; right when it is EBADF. */
static ERL_NIF_TERM compiler_keeps_errno(fair_task *t)
{
    long before = thread();

    return answer(t, before, errno_twice(t));
}

static NOINLINE long owner_twice(fair_task *t)
{
    owner = thread();
    change_thread(t);
    sign();
    return owner;
}

static ERL_NIF_TERM compiler_keeps_variable(fair_task *t)
{
    long before = thread();

    return answer(t, before, owner_twice(t));
}

/* Not inlined is not enough: the compiler sees that this function is constant,
 * and calls it once. */
static NOINLINE long *owner_not_inlined(void)
{
    return &owner;
}

static NOINLINE long getter_twice(fair_task *t)
{
    *owner_not_inlined() = thread();
    change_thread(t);
    sign();
    return *owner_not_inlined();
}

static ERL_NIF_TERM compiler_keeps_getter(fair_task *t)
{
    long before = thread();

    return answer(t, before, getter_twice(t));
}

static NOINLINE int self_twice(fair_task *t)
{
    pthread_t self = pthread_self();

    change_thread(t);
    return pthread_equal(self, pthread_self());
}

/* {Before, Here, 1 if pthread_self() is the same on both}. */
static ERL_NIF_TERM compiler_keeps_self(fair_task *t)
{
    long before = thread();

    return answer(t, before, self_twice(t));
}

/* -- bad: the right variable, but not what was stored --------------------- */

static ERL_NIF_TERM state_in_thread(fair_task *t)
{
    long before = thread(), seen;

    *owner_here() = -1;
    change_thread(t);
    seen = *owner_here();
    return answer(t, before, seen);
}

/* -- remedies ------------------------------------------------------------- */

/* Asks again after each tick. */
static ERL_NIF_TERM asks_again(fair_task *t)
{
    long before = thread();

    sign();
    change_thread(t);
    sign();
    return answer(t, before, *owner_here());
}

static NOINLINE int *errno_here(void)
{
    int *p = &errno;

    __asm__ volatile("" : "+r"(p));
    return p;
}

static ERL_NIF_TERM asks_again_for_errno(fair_task *t)
{
    long before = thread();

    *errno_here() = 0;
    change_thread(t);
    close(-1);
    return answer(t, before, *errno_here());
}

/* State that is the task's: {Before, Here, -1}. */
static ERL_NIF_TERM state_in_task(fair_task *t)
{
    long before = thread(), *state = fair_alloc(t, sizeof *state);

    if (!state)
        return fair_enomem(t);
    *state = -1;
    change_thread(t);
    return answer(t, before, *state);
}

static ERL_NIF_TERM state_on_stack(fair_task *t)
{
    long before = thread(), state = -1, *kept = &state;

    change_thread(t);
    return answer(t, before, *kept);
}

/* What wants one thread from begin to end, and whether it had it.  errno and
 * the owner are used as in the bad bodies above.  Not inlined: inside a body
 * with ticks the compiler is free to take their addresses in another slice. */
struct region {
    long begun, ended, seen;
    int error;
    unsigned us;
};

static NOINLINE void one_thread(void *arg)
{
    struct region *r = arg;
    ErlNifTime end = enif_monotonic_time(ERL_NIF_USEC) + r->us;
    long *kept;

    r->begun = thread();
    kept = owner_here();
    sign();
    errno = 0;
    while (enif_monotonic_time(ERL_NIF_USEC) < end)
        ;
    close(-1);
    r->error = errno;
    r->seen = *kept;
    r->ended = thread();
}

static int is_right(const struct region *r)
{
    return r->begun == r->ended && r->seen == r->ended && r->error == EBADF;
}

/* called(Units, Us) -> {Before, ThreadOfFn, Right}: in fair_call. */
static ERL_NIF_TERM called(fair_task *t)
{
    struct region r = {0};
    unsigned long units;
    ErlNifEnv *env;
    long before = thread();

    if (!fair_get_ulong(t, fair_arg(t, 0), &units)
        || !fair_get_uint(t, fair_arg(t, 1), &r.us))
        return fair_badarg(t);
    fair_call(t, FAIR_AUTO, units, one_thread, &r);
    env = fair_env(t);
    return enif_make_tuple3(env, enif_make_long(env, before),
                            enif_make_long(env, r.begun),
                            enif_make_int(env, is_right(&r)));
}

/* regions(N, Us) -> {Changes, Right}: N regions of Us without a tick, a tick
 * after each.  How often two regions in a row were on different threads, and
 * how many regions were right. */
static ERL_NIF_TERM regions(fair_task *t)
{
    struct region r = {0};
    unsigned n, changes = 0, right = 0;
    long last = 0;
    ErlNifEnv *env;

    if (!fair_get_uint(t, fair_arg(t, 0), &n)
        || !fair_get_uint(t, fair_arg(t, 1), &r.us))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++) {
        one_thread(&r);
        right += (unsigned)is_right(&r);
        changes += i > 0 && r.begun != last;
        last = r.begun;
        fair_tick(t, r.us);
    }
    env = fair_env(t);
    return enif_make_tuple2(env, enif_make_uint(env, changes),
                            enif_make_uint(env, right));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("keeps_address", 0, keeps_address, FAIR_NORMAL),
    FAIR_NIF("keeps_address_ticking", 0, keeps_address_ticking,
             FAIR_NORMAL),
    FAIR_NIF("compiler_keeps_errno", 0, compiler_keeps_errno, FAIR_NORMAL),
    FAIR_NIF("compiler_keeps_variable", 0, compiler_keeps_variable,
             FAIR_NORMAL),
    FAIR_NIF("compiler_keeps_getter", 0, compiler_keeps_getter,
             FAIR_NORMAL),
    FAIR_NIF("compiler_keeps_self", 0, compiler_keeps_self, FAIR_NORMAL),
    FAIR_NIF("state_in_thread", 0, state_in_thread, FAIR_NORMAL),
    FAIR_NIF("asks_again", 0, asks_again, FAIR_NORMAL),
    FAIR_NIF("asks_again_for_errno", 0, asks_again_for_errno, FAIR_NORMAL),
    FAIR_NIF("state_in_task", 0, state_in_task, FAIR_NORMAL),
    FAIR_NIF("state_on_stack", 0, state_on_stack, FAIR_NORMAL),
    FAIR_NIF("called", 2, called, FAIR_AUTO),
    FAIR_NIF("regions", 2, regions, FAIR_DIRTY_CPU | FAIR_NO_YIELD)
};

FAIR_NIF_INIT(fairnif_test_threadlocal, nifs, NULL, NULL, NULL, NULL)
