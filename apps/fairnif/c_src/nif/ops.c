/*
 * ops.c - the functions that authors' libraries call, and the cancelling of
 * bodies that clean up themselves (FAIR_CLEANUP).
 *
 * Any other body is left behind on its stack (its caller is dead, or the
 * runtime ends the call).  This one sees it when the function of the runtime
 * that it called returns: fair_cancelled answers 1 from then on.
 *
 *     suspended, waits --> T_CLEANUP: fair__task_end, on a thread --.
 *                                                                    v
 *     runs: fair__leave, X_DROP or X_RAISE --> fair__cancel --> fair__escape
 *                                                                    v
 *                           the function returns, the body cleans up and ends
 *
 * Tables in the place of the plain one do it, so that no other body pays for it,
 * nor any function here asks: ops.def has them.
 */
#include <errno.h>

#include "base/os.h"
#include "life/life.h"
#include "nif/load.h"
#include "resource/resource.h"
#include "task/call.h"
#include "task/cancel.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/switch.h"
#include "term/binary.h"
#include "term/copy.h"
#include "term/hold.h"
#include "term/list.h"
#include "term/text.h"
#include "wait/ask.h"
#include "wait/lock.h"
#include "wait/park.h"
#include "wait/wait.h"

static ERL_NIF_TERM nothing(fair_task *pub)
{
    return enif_make_atom(pub->env, "cancelled");
}

/* It may have come meanwhile.  The body takes it that it did not, and may free
 * the memory that it lies in.  One that it had before stays its own. */
static int unlock_cleaning_up(fair_task *pub, fair_mutex *m)
{
    struct fair__task *t = fair__of(pub);

    if (t->wait.mutex == m)
        fair__unlock(pub, m);
    t->wait.mutex = NULL;
    return -ECANCELED;
}

/* -- once it is cancelled --------------------------------------------------- */

static int offload_at_once(fair_task *pub, enum fair_mode where, size_t units,
                           void (*fn)(void *), void *arg)
{
    struct fair__task *t = fair__of(pub);

    (void)where, (void)units;
    if (t->away)
        fn(arg);
    else
        fair__outside(t, fn, arg);
    return 1;
}

/* The lock's owner may need this thread.  Not while the body cleans up in its
 * caller's call (end.c), nor where an exception would be lost. */
static bool can_pause(const struct fair__task *t)
{
    return FAIR__TASKS && !t->away && t->thread && t->thread->where == t->where
        && (t->where != W_THREAD || fair__pool_presses())
        && !fair__has_raised(t);
}

/* Comes back by fair__escape: on this scheduler, or, where the caller is dead or
 * none, on a thread of the pool. */
static void pause_cleaning_up(struct fair__task *t)
{
    struct fair__escape here = {.outer = t->cancel.escape};

    t->slice.now = fair__now();
    t->slice.hop = false;
    SET(t->target, t->kind->apart ? W_THREAD : t->where);
    if (FAIR__SETJMP(here.out) == 0) {
        t->cancel.escape = &here;
        fair__leave(t, X_PAUSE);
    }
    t->cancel.escape = here.outer;
    t->slice.now = fair__now(); /* of the slice that this has begun */
}

static int lock_cleaning_up(fair_task *pub, fair_mutex *m, int wait)
{
    struct fair__task *t = fair__of(pub);

    if (t->away)
        return fair__lock(pub, m, wait);
    while (!fair__lock(pub, m, 0)) {
        if (!wait || fair__lock_is_own(t, m))
            return wait ? -EDEADLK : 0;
        if (t->where != W_NORMAL || !can_pause(t))
            fair__nap();
        if (can_pause(t))
            pause_cleaning_up(t);
    }
    return 1;
}

/* -- the tables ------------------------------------------------------------ */

struct leaving {
    struct fair__escape here;
    struct fair__task *t;
};

static void left(struct leaving *l)
{
    l->t->cancel.escape = l->here.outer;
}

/* A function of fair_offload, and whether it was begun: it comes to its end
 * then. */
struct called {
    void (*fn)(void *);
    void *arg;
    volatile bool begun;
};

static void begin(void *arg)
{
    struct called *c = arg;

    c->begun = true;
    c->fn(c->arg);
}

static int offload_noting(fair_task *pub, enum fair_mode where, size_t units,
                          void (*fn)(void *), void *arg)
{
    struct called c = {fn, arg, false};
    __attribute__((cleanup(left))) struct leaving l = {
        .here.outer = fair__of(pub)->cancel.escape, .t = fair__of(pub)
    };

    if (FAIR__SETJMP(l.here.out) != 0)
        return c.begun ? 1 : -ECANCELED;
    l.t->cancel.escape = &l.here;
    return fair__offload(pub, where, units, begin, &c);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define SAME(NAME, FUNCTION)
#define OWN(NAME, SECOND, THIRD)
#define STOPS(TYPE, NAME, PARAMS, ELSE)                                     \
    static TYPE over_##NAME PARAMS { return ELSE; }
#define LEAVES_FOR(TYPE, NAME, PARAMS, ARGS, ELSE, FUNCTION)                \
    static TYPE leavable_##NAME PARAMS                                      \
    {                                                                       \
        __attribute__((cleanup(left))) struct leaving l = {                 \
            .here.outer = fair__of(pub)->cancel.escape, .t = fair__of(pub)  \
        };                                                                  \
                                                                            \
        if (FAIR__SETJMP(l.here.out) != 0)                                  \
            return ELSE;                                                    \
        l.t->cancel.escape = &l.here;                                       \
        return fair__##NAME ARGS;                                           \
    }
#define LEAVES(TYPE, NAME, PARAMS, ARGS, ELSE)                              \
    LEAVES_FOR(TYPE, NAME, PARAMS, ARGS, ELSE, )                            \
    STOPS(TYPE, NAME, PARAMS, ELSE)
#define QUICK(TYPE, NAME, PARAMS, ARGS, ELSE)                               \
    LEAVES(TYPE, NAME, PARAMS, ARGS, ELSE)                                  \
    static TYPE quick_##NAME PARAMS                                         \
    {                                                                       \
        return fair_likely(root - 1 < fair__of(pub)->hold.roots_used)       \
            ? fair__##NAME ARGS : leavable_##NAME ARGS;                     \
    }
#include "nif/ops.def"
#undef SAME
#undef OWN
#undef STOPS
#undef LEAVES_FOR
#undef LEAVES
#undef QUICK

#define HEAD .size = sizeof(struct fair__ops), .abi_major = FAIR_ABI_MAJOR, \
    .abi_minor = FAIR_ABI_MINOR,
#define SAME(NAME, FUNCTION) .NAME = FUNCTION,

#define STOPS(TYPE, NAME, ...) .NAME = fair__##NAME,
#define LEAVES_FOR STOPS
#define LEAVES STOPS
#define QUICK STOPS
#define OWN(NAME, SECOND, THIRD) .NAME = fair__##NAME,
const struct fair__ops fair__plain_ops = {
    HEAD
#include "nif/ops.def"
};
#undef LEAVES_FOR
#undef LEAVES
#undef QUICK
#undef OWN

#define OWN(NAME, SECOND, THIRD) .NAME = SECOND,
#define LEAVES_FOR(TYPE, NAME, ...) .NAME = leavable_##NAME,
#define LEAVES LEAVES_FOR
#define QUICK(TYPE, NAME, ...) .NAME = quick_##NAME,
const struct fair__ops fair__cleanup_ops = {
    HEAD
#include "nif/ops.def"
};
#undef STOPS
#undef LEAVES_FOR
#undef LEAVES
#undef QUICK
#undef OWN

#define OWN(NAME, SECOND, THIRD) .NAME = THIRD,
#define STOPS(TYPE, NAME, ...) .NAME = over_##NAME,
#define LEAVES_FOR(TYPE, NAME, PARAMS, ARGS, ELSE, FUNCTION) .NAME = FUNCTION,
#define LEAVES STOPS
#define QUICK STOPS
const struct fair__ops fair__cancelled_ops = {
    HEAD
#include "nif/ops.def"
};
