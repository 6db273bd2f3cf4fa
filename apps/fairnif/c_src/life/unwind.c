/*
 * unwind.c - bodies that clean up themselves: FAIR_UNWINDS.
 *
 * Where any other body is left behind on its stack (its caller is dead, or the
 * runtime ends the call), such a one is told.  It sees it when the function
 * returns that it called: fair_cancelled answers 1 from then on.
 *
 *     suspended, waits --> T_UNWINDS: fair__task_end, on a thread --.
 *                                                                    v
 *     runs: fair__leave, X_DROP or X_RAISE --> fair__cancel --> fair__escape
 *                                                                    v
 *                           the function returns, the body cleans up and ends
 *
 * Two tables in the place of the runtime's do it, so that no other body pays for
 * it, nor any function here asks: `unwinding`, whose functions can be left from
 * within, and, once it is cancelled, `cancelled`, which has what is of use
 * without a caller.
 */
#include <errno.h>

#include "life/unwind.h"

#include "base/os.h"
#include "life/park.h"
#include "task/call.h"
#include "task/cancel.h"
#include "task/debug.h"
#include "task/slice.h"
#include "task/switch.h"
#include "term/binary.h"
#include "term/hold.h"
#include "term/list.h"
#include "wait/ask.h"
#include "wait/lock.h"
#include "wait/wait.h"

static ERL_NIF_TERM nothing(fair_task *pub)
{
    return enif_make_atom(pub->env, "cancelled");
}

static void no_post(fair_task *pub, ERL_NIF_TERM to, ERL_NIF_TERM message,
                    int reply)
{
    (void)pub, (void)to, (void)message, (void)reply;
}

static int no_answer(fair_task *pub, const ERL_NIF_TERM *request,
                     unsigned parts, ERL_NIF_TERM *answer)
{
    (void)request, (void)parts;
    *answer = nothing(pub);
    return 0;
}

/* It may have come meanwhile.  The body takes it that it did not, and may free
 * the memory that it lies in.  One that it had before stays its own. */
static int let_go(fair_task *pub, fair_mutex *m)
{
    struct fair__task *t = fair__of(pub);

    if (t->wants == m)
        fair__unlock(pub, m);
    t->wants = NULL;
    return 0;
}

/* -- until it is cancelled ------------------------------------------------- */

/* fair__NAME, which answers ELSE where it is left from within. */
#define LEAVABLE(TYPE, NAME, PARAMS, ARGS, ELSE)                            \
    static TYPE leavable_##NAME PARAMS                                      \
    {                                                                       \
        struct fair__escape here = {.outer = fair__of(pub)->escape};        \
        TYPE answer;                                                        \
                                                                            \
        if (FAIR__SETJMP(here.out) != 0) {                                  \
            fair__of(pub)->escape = here.outer;                             \
            return ELSE;                                                    \
        }                                                                   \
        fair__of(pub)->escape = &here;                                      \
        answer = fair__##NAME ARGS;                                         \
        fair__of(pub)->escape = here.outer;                                 \
        return answer;                                                      \
    }
#define LEAVABLE_VOID(NAME, PARAMS, ARGS)                                   \
    static void leavable_##NAME PARAMS                                      \
    {                                                                       \
        struct fair__escape here = {.outer = fair__of(pub)->escape};        \
                                                                            \
        if (FAIR__SETJMP(here.out) == 0) {                                  \
            fair__of(pub)->escape = &here;                                  \
            fair__##NAME ARGS;                                              \
        }                                                                   \
        fair__of(pub)->escape = here.outer;                                 \
    }

/* Of a root that there is they cannot be left: nothing need be noted. */
#define QUICK(TYPE, NAME, PARAMS, ARGS)                                     \
    static TYPE quick_##NAME PARAMS                                         \
    {                                                                       \
        if (fair_likely(root < fair__of(pub)->roots_used))                  \
            return fair__##NAME ARGS;                                       \
        return leavable_##NAME ARGS;                                        \
    }

LEAVABLE_VOID(tick, (fair_task *pub, size_t units), (pub, units))
LEAVABLE_VOID(move, (fair_task *pub, enum fair_mode where), (pub, where))
LEAVABLE_VOID(call, (fair_task *pub, enum fair_mode where, size_t units,
                     void (*fn)(void *), void *arg),
              (pub, where, units, fn, arg))
LEAVABLE(int, wait, (fair_task *pub, int fd, unsigned events, int timeout_ms),
         (pub, fd, events, timeout_ms), -ECANCELED)
LEAVABLE(int, lock, (fair_task *pub, fair_mutex *m, int wait), (pub, m, wait),
         let_go(pub, m))
LEAVABLE_VOID(post, (fair_task *pub, ERL_NIF_TERM to, ERL_NIF_TERM message,
                     int reply), (pub, to, message, reply))
LEAVABLE(ERL_NIF_TERM, raise, (fair_task *pub, ERL_NIF_TERM reason),
         (pub, reason), nothing(pub))
LEAVABLE(int, ask, (fair_task *pub, const ERL_NIF_TERM *request,
                    unsigned parts, ERL_NIF_TERM *term),
         (pub, request, parts, term), no_answer(pub, request, parts, term))
LEAVABLE(unsigned, root, (fair_task *pub, ERL_NIF_TERM term), (pub, term), 0)
LEAVABLE_VOID(unroot, (fair_task *pub, unsigned root), (pub, root))
QUICK(void, unroot, (fair_task *pub, unsigned root), (pub, root))
LEAVABLE_VOID(keep, (fair_task *pub, unsigned root, ERL_NIF_TERM term),
              (pub, root, term))
QUICK(void, keep, (fair_task *pub, unsigned root, ERL_NIF_TERM term),
      (pub, root, term))
LEAVABLE(ERL_NIF_TERM, kept, (fair_task *pub, unsigned root), (pub, root),
         nothing(pub))
QUICK(ERL_NIF_TERM, kept, (fair_task *pub, unsigned root), (pub, root))
LEAVABLE(int, get_iolist, (fair_task *pub, ERL_NIF_TERM term, fair_bin *bin),
         (pub, term, bin), 0)
LEAVABLE(int, get_string, (fair_task *pub, ERL_NIF_TERM term, char **chars,
                           size_t *length), (pub, term, chars, length), 0)
LEAVABLE(int, get_list_length, (fair_task *pub, ERL_NIF_TERM term,
                                size_t *length), (pub, term, length), 0)
LEAVABLE(int, resize_bin, (fair_task *pub, fair_bin *bin, size_t size),
         (pub, bin, size), 0)
LEAVABLE(ERL_NIF_TERM, make_bin, (fair_task *pub, fair_bin *bin), (pub, bin),
         nothing(pub))
LEAVABLE_VOID(release_bin, (fair_task *pub, fair_bin *bin), (pub, bin))
LEAVABLE(int, list_next, (fair_task *pub, unsigned root, ERL_NIF_TERM *head),
         (pub, root, head), 0)
QUICK(int, list_next, (fair_task *pub, unsigned root, ERL_NIF_TERM *head),
      (pub, root, head))
LEAVABLE_VOID(list_push, (fair_task *pub, unsigned root, ERL_NIF_TERM head),
              (pub, root, head))
QUICK(void, list_push, (fair_task *pub, unsigned root, ERL_NIF_TERM head),
      (pub, root, head))
LEAVABLE(int, list_reverse, (fair_task *pub, unsigned root), (pub, root), 0)

/* -- afterwards ------------------------------------------------------------ */

static void no_tick(fair_task *pub, size_t units)
{
    (void)pub, (void)units;
}

static void no_move(fair_task *pub, enum fair_mode where)
{
    (void)pub, (void)where;
}

static void call_at_once(fair_task *pub, enum fair_mode where, size_t units,
                         void (*fn)(void *), void *arg)
{
    struct fair__task *t = fair__of(pub);

    (void)where, (void)units;
    if (t->away)
        fn(arg);
    else
        fair__outside(t, fn, arg);
}

static int no_wait(fair_task *pub, int fd, unsigned events, int timeout_ms)
{
    (void)pub, (void)fd, (void)events, (void)timeout_ms;
    return -ECANCELED;
}

static bool has(struct fair__task *t, const fair_mutex *m)
{
    bool is;

    fair__wait_lock();
    is = m->holder == t;
    fair__wait_unlock();
    return is;
}

/* Who has the lock may need this thread to let go of it.  Not while it cleans up
 * in its caller's call (end.c), nor where an exception would be lost. */
static bool can_give_way(const struct fair__task *t)
{
    return FAIR__TASKS && !t->away && t->thread && t->thread->where == t->where
        && (t->where != W_THREAD || fair__pool_presses())
        && !(t->pub.env && enif_has_pending_exception(t->pub.env, NULL));
}

/* Comes back by fair__escape: on this scheduler, or, where the caller is dead or
 * none, on a thread of the pool. */
static void give_way(struct fair__task *t)
{
    struct fair__escape here = {.outer = t->escape};

    t->now = fair__now();
    t->hop = false;
    SET(t->target, t->callback ? W_THREAD : t->where);
    if (FAIR__SETJMP(here.out) == 0) {
        t->escape = &here;
        fair__leave(t, X_PAUSE);
    }
    t->escape = here.outer;
    t->now = fair__now();       /* of the slice that this has begun */
}

static int lock_in_place(fair_task *pub, fair_mutex *m, int wait)
{
    struct fair__task *t = fair__of(pub);

    while (!fair__lock(pub, m, 0)) {
        if (!wait || has(t, m))
            return 0;
        if (t->where != W_NORMAL || !can_give_way(t))
            fair__nap();
        if (can_give_way(t))
            give_way(t);
    }
    return 1;
}

static ERL_NIF_TERM no_fd(fair_task *pub, int fd)
{
    (void)pub, (void)fd;
    return 0;
}

static int no_get_fd(fair_task *pub, ERL_NIF_TERM term, int *fd)
{
    (void)pub, (void)term, (void)fd;
    return 0;
}

static int no_close_fd(fair_task *pub, ERL_NIF_TERM term)
{
    (void)pub, (void)term;
    return 0;
}

static unsigned no_root(fair_task *pub, ERL_NIF_TERM term)
{
    (void)pub, (void)term;
    return 0;
}

static void no_unroot(fair_task *pub, unsigned root)
{
    (void)pub, (void)root;
}

static void no_keep(fair_task *pub, unsigned root, ERL_NIF_TERM term)
{
    (void)pub, (void)root, (void)term;
}

static ERL_NIF_TERM no_kept(fair_task *pub, unsigned root)
{
    (void)root;
    return nothing(pub);
}

static int no_resource(fair_task *pub, ERL_NIF_TERM term,
                       ErlNifResourceType *type, void **obj)
{
    (void)pub, (void)term, (void)type, (void)obj;
    return 0;
}

static int no_bin(fair_task *pub, ERL_NIF_TERM term, fair_bin *bin)
{
    (void)pub, (void)term, (void)bin;
    return 0;
}

static int no_string(fair_task *pub, ERL_NIF_TERM term, char **chars,
                     size_t *length)
{
    (void)pub, (void)term, (void)chars, (void)length;
    return 0;
}

static int no_length(fair_task *pub, ERL_NIF_TERM term, size_t *length)
{
    (void)pub, (void)term, (void)length;
    return 0;
}

static ERL_NIF_TERM no_made_bin(fair_task *pub, fair_bin *bin)
{
    (void)bin;
    return nothing(pub);
}

static int no_next(fair_task *pub, unsigned root, ERL_NIF_TERM *head)
{
    (void)pub, (void)root, (void)head;
    return 0;
}

static int no_reverse(fair_task *pub, unsigned root)
{
    (void)pub, (void)root;
    return 0;
}

static ERL_NIF_TERM no_raise(fair_task *pub, ERL_NIF_TERM reason)
{
    (void)reason;
    return nothing(pub);
}

/* -- the tables ------------------------------------------------------------ */

void fair__unwind_init(const struct fair__ops *plain)
{
    struct fair__ops *u = &fair__unwinding_ops, *c = &fair__cancelled_ops;

    *u = *plain;
    u->tick = leavable_tick;
    u->move = leavable_move;
    u->call = leavable_call;
    u->wait = leavable_wait;
    u->lock = leavable_lock;
    u->raise = leavable_raise;
    u->post = leavable_post;
    u->ask = leavable_ask;
    u->root = leavable_root;
    u->unroot = quick_unroot;
    u->keep = quick_keep;
    u->kept = quick_kept;
    u->get_iolist = leavable_get_iolist;
    u->get_string = leavable_get_string;
    u->get_list_length = leavable_get_list_length;
    u->resize_bin = leavable_resize_bin;
    u->make_bin = leavable_make_bin;
    u->release_bin = leavable_release_bin;
    u->list_next = quick_list_next;
    u->list_push = quick_list_push;
    u->list_reverse = leavable_list_reverse;

    *c = *u;
    c->tick = no_tick;
    c->move = no_move;
    c->call = call_at_once;
    c->wait = no_wait;
    c->post = no_post;
    c->ask = no_answer;
    c->make_fd = no_fd;
    c->get_fd = no_get_fd;
    c->close_fd = no_close_fd;
    c->lock = lock_in_place;
    c->root = no_root;
    c->unroot = no_unroot;
    c->keep = no_keep;
    c->kept = no_kept;
    c->get_resource = no_resource;
    c->get_bin = no_bin;
    c->get_iolist = no_bin;
    c->get_string = no_string;
    c->get_list_length = no_length;
    c->make_bin = no_made_bin;
    c->list_next = no_next;
    c->list_push = no_keep;
    c->list_reverse = no_reverse;
    c->raise = no_raise;
}
