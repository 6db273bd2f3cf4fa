/*
 * life.c - the life of a task: called, run in slices, finished or dropped.
 *
 *     enter --> run --> DONE: finish, the result goes to the caller
 *       |        ^ |--> PAUSE: reschedule --> (queue) --> proceed --> run
 *       |        | |--> DROP: the caller is dead: clean up
 *       |        |
 *       '--> begin on a dirty scheduler: reschedule before the first line
 *
 * A suspended task hangs on the resource object in the first argument of its
 * scheduled NIF.  When the caller dies, is purged, or is killed while queued,
 * the VM frees those arguments and with them the task: fair__handle_dtor.
 * At halt it does neither, and nothing here relies on it.
 *
 * All of it runs on a scheduler's own stack.  The slice itself is run.c's, the
 * end end.c's.
 */
#include "life/life.h"

#include "base/config.h"
#include "base/os.h"
#include "life/end.h"
#include "life/run.h"
#include "life/threaded.h"
#include "task/cancel.h"
#include "task/charge.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/stack.h"
#include "term/binary.h"
#include "term/hold.h"
#include "wait/turn.h"

/* -- ends ----------------------------------------------------------------- */

static ERL_NIF_TERM reschedule(struct fair__task *t, struct fair__thread *th);
static const struct fair__kind scheduled;

/* The body is over, with much to release: that is done in slices, before
 * the result goes out.  False where it is done at once, or memory is out; or on
 * the pool, where the VM has been given an exception, and schedules no NIF. */
static bool ends_in_slices(struct fair__task *t)
{
    if (!FAIR__TASKS || t->where != W_NORMAL
        || enif_has_pending_exception(t->pub.env, NULL)
        || (!t->handle && !fair__handle_new(t)))
        return false;
    t->over = true;
    t->slice.hop = false;
    t->pub.argc = 0;
    t->hold.roots = t->hold.inline_roots;   /* others are among the blocks */
    t->hold.roots_used = t->exit == X_DONE;
    t->hold.roots[0] = t->result;
    return true;
}

/* The body did what the runtime cannot let it do. */
static ERL_NIF_TERM fail(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    ERL_NIF_TERM error = fair__error_term(t, env);

    if (fair_unlikely(fair__end_is_work(t)) && ends_in_slices(t))
        return reschedule(t, th);
    fair__task_end(t, th);
    return enif_raise_exception(env, error);
}

static ERL_NIF_TERM drop(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;

    ADD(t->stat->cancels, 1);
    fair__task_end(t, th);
    return enif_make_atom(env, "cancelled");    /* no process sees it */
}

static ERL_NIF_TERM finish(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    const struct fair__nif *nif = t->nif;
    ERL_NIF_TERM result = t->result;
    ERL_NIF_TERM pid = t->owner.pid;
    bool normal = t->where == W_NORMAL;
    double debt = t->slice.debt_ns;

    if (fair_unlikely(!result) && !enif_has_pending_exception(env, NULL)) {
        /* Zero, or what fair_badarg returned before a pause that lost it. */
        fair__misuse(t, RULE_NO_TERM);
        result = enif_raise_exception(env, enif_make_atom(env, "badreturn"));
    }
    if (fair_unlikely(fair__end_is_work(t)) && ends_in_slices(t))
        return reschedule(t, th);
    fair__task_end(t, th);
    return fair__pay(th, env, nif, pid, normal, debt, result);
}

/* -- between slices ------------------------------------------------------- */

static ERL_NIF_TERM proceed(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[]);

static ERL_NIF_TERM schedule(struct fair__task *t, ErlNifEnv *env,
                             enum fair__where where, int argc,
                             const ERL_NIF_TERM argv[])
{
    int flags = where == W_DIRTY_CPU ? ERL_NIF_DIRTY_JOB_CPU_BOUND
        : where == W_DIRTY_IO ? ERL_NIF_DIRTY_JOB_IO_BOUND : 0;

    t->ask.by = NULL;
    fair__become(t, fair__queued_as(where));
    return enif_schedule_nif(env, t->func->name, flags, proceed, argc, argv);
}

/* From here on the term keeps the handle, and the runtime, which had made or
 * pinned it, does not. */
static void make_handle_term(struct fair__task *t, ErlNifEnv *env)
{
    if (t->handle_term)
        return;
    t->handle_term = enif_make_resource(env, t->handle);
    t->pinned = false;
    enif_release_resource(t->handle);
}

/* The arguments of the scheduled NIF: what must live until the next slice.
 * The address of the task is a small integer: it is valid as long as the
 * first argument holds the object. */
static ERL_NIF_TERM reschedule(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    ERL_NIF_TERM argv[2 + FAIR__MAX_ARITY + FAIR__INLINE_ROOTS];
    int argc = 0;

    if (!t->over
        && (!fair__bins_pause(t) || (!t->handle && !fair__handle_new(t))))
        goto no_memory;
    make_handle_term(t, env);
    argv[argc++] = t->handle_term;
    argv[argc++] = enif_make_uint64(env, (uintptr_t)t);
    for (unsigned i = 0; i < t->pub.argc; i++)
        argv[argc++] = t->pub.argv[i];
    argc += (int)fair__roots_out(t, env, argv + argc);
    if (t->where == W_NORMAL)
        fair__charge(env, &t->slice.debt_ns, t->pub.yields > 1);
    return schedule(t, env, t->slice.hop ? W_NORMAL : GET(t->target), argc,
                    argv);
no_memory:
    fair__task_end(t, th);
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* Of a mode that runs on the pool: from here, or from a dirty scheduler. */
static ERL_NIF_TERM hand_to_pool(struct fair__task *t, struct fair__thread *th)
{
    if (!fair__threaded_on_dirty(t))
        return fair__begin_threaded(t, th);
    SET(t->target, W_DIRTY_CPU);
    return reschedule(t, th);
}

static ERL_NIF_TERM park_call(struct fair__task *t, struct fair__thread *th)
{
    return fair__wait_or_end(t, th, t->wait.state);
}

/* It is charged as the body was. */
static ERL_NIF_TERM resume_ending(struct fair__task *t, struct fair__thread *th)
{
    uint64_t begin = fair__now(), ns;
    bool more;

    fair__slot_enter(th, t->func, GET(t->since_ns), t->pub.yields,
                     t->owner.pid);
    more = !fair__release_some(t, begin);
    fair__slot_leave(th);
    ns = fair__now() - begin;
    t->slice.debt_ns += (double)ns;
    ADD(t->stat->slices, 1);
    ADD(t->stat->normal_ns, ns);
    if (more)
        return reschedule(t, th);
    t->hold.weight = 0;
    if (t->hold.roots_used > 0)
        t->result = t->hold.roots[0];
    return t->kind->left[t->exit](t, th);
}

/* Its next slice, on a scheduler. */
static ERL_NIF_TERM next_slice(struct fair__task *t, struct fair__thread *th,
                               ErlNifEnv *env, const ERL_NIF_TERM argv[])
{
    t->thread = th;
    t->where = GET(t->target);
    t->stat = fair__stat(th, t->func);
    if (!t->stat)
        t->stat = t->func->elsewhere;
    t->pub.argv = argv;
    fair__roots_in(t, env, argv + t->pub.argc);
    if (!enif_is_current_process_alive(env))
        return drop(t, th);
    fair__become(t, T_RUNNING);
    if (fair_unlikely(t->over))
        return resume_ending(t, th);
    if (fair_unlikely(fair__is_threaded(t)))
        return hand_to_pool(t, th);
    fair__next_slice(t);
    return fair__run(t, th);
}

/* More was used than one turn could pay for. */
static bool must_pay(const struct fair__task *t)
{
    return GET(t->target) == W_NORMAL
        && t->slice.debt_ns >= (double)GET(fair__config.turn_ns);
}

static ERL_NIF_TERM proceed(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    struct fair__thread *th = fair__self();
    struct fair__task *t;
    ErlNifUInt64 address;

    enif_get_uint64(env, argv[1], &address);
    t = (struct fair__task *)(uintptr_t)address;
    t->pub.env = t->vm_env = env;
    if (t->slice.hop) {
        t->slice.hop = false;
        return schedule(t, env, GET(t->target), argc, argv);
    }
    if (!th) {
        fair__task_end(t, NULL);
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    if (must_pay(t)) {
        fair__charge(env, &t->slice.debt_ns, true);
        return schedule(t, env, W_NORMAL, argc, argv);
    }
    t->handle_term = argv[0];
    return next_slice(t, th, env, argv + 2);
}

/* In nif_await: the wait is over.  The terms are the arguments and roots. */
static ERL_NIF_TERM resume_call(struct fair__task *t, ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM next[2 + FAIR__MAX_ARITY + FAIR__INLINE_ROOTS];
    enum fair__where where = GET(t->target);
    struct fair__thread *th = fair__self();

    if (t->error)
        return fair__end_in_error(t, env, argc, argv);
    t->handle_term = 0;
    if (where == W_NORMAL && th && !must_pay(t))
        return next_slice(t, th, env, argv);
    make_handle_term(t, env);
    next[0] = t->handle_term;
    next[1] = enif_make_uint64(env, (uintptr_t)t);
    memcpy(next + 2, argv, (size_t)argc * sizeof *argv);
    return schedule(t, env, where, argc + 2, next);
}

static const struct fair__kind scheduled = {
    .left = {
        [X_DONE] = finish, [X_PAUSE] = reschedule, [X_WAIT] = park_call,
        [X_RAISE] = fail, [X_DROP] = drop
    },
    .drop = fair__drop_elsewhere,
    .resume = resume_call,
    .has_caller = true
};

/* -- the first slice ------------------------------------------------------ */

void fair__task_init(struct fair__task *t, struct fair__nif *nif,
                     struct fair__thread *th, struct fair__fstat *st,
                     ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    t->pub.ops = fair_likely(!nif->cleans_up) ? nif->lib->ops
        : &fair__cleanup_ops;
    t->pub.env = t->vm_env = env;
    t->pub.argv = argv;
    t->pub.argc = (unsigned)argc;
    t->pub.env_used = 0;
    t->pub.yields = 0;
    t->pub.cancelled = 0;
    t->nif = nif;
    t->func = nif->func;
    t->kind = &scheduled;
    t->main = fair__run_body;
    t->listed = false;
    SET(t->is_process, false);
    fair__become(t, T_RUNNING);
    SET(t->target, W_NORMAL);
    SET(t->since_ns, fair__now_coarse());
    t->handle = NULL;
    t->handle_term = 0;
    t->pinned = false;
    t->thread = th;
    t->stat = st;
    t->where = W_NORMAL;
    t->begun = false;
    t->foreign = false;
    t->alarm.ring = NULL;
    t->away = AWAY_NOT;
    t->over = false;
    t->lacked = t->error = NULL;
    t->slice.unit_ns = t->slice.debt_ns = 0;
    t->slice.made = t->slice.units = t->slice.apart_ns = 0;
    t->slice.yielding = nif->yields;
    t->slice.hop = t->slice.had_gap = t->slice.at_par = false;
    t->slice.makes_terms = true;
    t->wait.pending = NULL;
    t->wait.job.state = J_IDLE;
    SET(t->wait.unwanted, false);
    t->wait.on.fd = NULL;
    t->ask.by = NULL;
    t->ask.outbox = t->ask.raised = 0;
    t->own = (struct fair__own){0};
    t->cancel = (struct fair__cancel){0};
    fair__hold_init(t);
}

/* The kind of scheduler on which the body begins; a threaded one is passed
 * on a normal one. */
static enum fair__where begins_on(const struct fair__task *t)
{
    const struct fair__mode *mode = &fair__modes[t->nif->mode];

    if (!FAIR__TASKS)
        return mode->start == W_DIRTY_IO || mode->start == W_THREAD
            ? W_DIRTY_IO : W_DIRTY_CPU;
    if (mode->start == W_THREAD)
        return W_NORMAL;
    return GET(t->func->adapted) && mode->adapts ? W_DIRTY_CPU : mode->start;
}

/* A call that may begin: in place, or elsewhere. */
static ERL_NIF_TERM begin_call(struct fair__task *t, struct fair__thread *th)
{
    enum fair__where where = begins_on(t);

    if (fair_unlikely(where != W_NORMAL)) {
        SET(t->target, where);
        return reschedule(t, th);
    }
    if (fair_unlikely(fair__is_threaded(t)))
        return hand_to_pool(t, th);
    fair__first_slice(t);
    return fair__run(t, th);
}

ERL_NIF_TERM fair__enter(struct fair__nif *nif, ErlNifEnv *env, int argc,
                         const ERL_NIF_TERM argv[])
{
    struct fair__func *f = nif->func;
    struct fair__thread *th = fair__self();
    struct fair__fstat *st = th ? fair__stat(th, f) : NULL;
    const char *error = "enomem";
    struct fair__task *t;
    bool admitted, counted;

    if (fair_unlikely(!st))
        goto failed;
    if (fair_unlikely(!(admitted = fair__admit(nif, env, &counted)))
        && (!nif->may_wait || !FAIR__TASKS)) {
        ADD(st->overloaded, 1);
        error = "overloaded";
        goto failed;
    }
    t = fair__stack_take(th, nif->stack_class, &error);
    if (fair_unlikely(!t)) {
        if (counted)
            fair__dismiss(f, env);
        goto failed;
    }
    t->counted = counted;
    fair__task_init(t, nif, th, st, env, argc, argv);
    enif_self(env, &t->owner);
    ADD(st->calls, 1);
    if (fair_likely(admitted))
        return begin_call(t, th);
    SET(t->target, begins_on(t));
    return fair__wait_or_end(t, th, T_WAIT_TURN);
failed:
    return enif_raise_exception(env, enif_make_atom(env, error));
}
