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
#include "life/park.h"
#include "life/run.h"
#include "life/threaded.h"
#include "task/cancel.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/stack.h"
#include "term/binary.h"
#include "term/hold.h"
#include "wait/turn.h"

/* -- ends ----------------------------------------------------------------- */

/* The body did what the runtime cannot let it do. */
static ERL_NIF_TERM fail(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    ERL_NIF_TERM error = fair__error_term(t, env);

    fair__task_end(t, th);
    return enif_raise_exception(env, error);
}

static ERL_NIF_TERM drop(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;

    ADD(t->stat->cancels, 1);
    fair__task_end(t, th);
    return enif_make_atom(env, "cancelled");    /* nobody will see it */
}

/* sit_out(Result, DebtNs): pays turn by turn for what one turn could not, then
 * gives the result.  Needs no task: a caller that dies meanwhile leaves
 * nothing. */
static ERL_NIF_TERM sit_out(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned long ns;
    double debt;

    enif_get_ulong(env, argv[1], &ns);
    debt = (double)ns;
    fair__charge(env, &debt, true);
    if (debt * 100 < (double)GET(fair__config.fair_ns))
        return argv[0];
    return enif_schedule_nif(env, "sit_out", 0, sit_out, argc,
                             (ERL_NIF_TERM[]){
                                 argv[0],
                                 enif_make_ulong(env, (unsigned long)debt)});
}

/* Where a process's debt on this thread is written down.  The one that stood
 * there before is forgiven, but for the fraction of a percent that nobody can
 * be charged at once: that is passed on, or very many callers of very short
 * calls would never pay. */
static struct fair__debt *debt_of(struct fair__thread *th, ERL_NIF_TERM pid,
                                  double turn)
{
    struct fair__debt *debt =
        &th->debts[((pid >> 4) * 0x9E3779B1u >> 8) % FAIR__DEBTORS];

    if (fair_unlikely(debt->pid != pid)) {
        debt->pid = pid;
        if (debt->ns * 100 >= turn)
            debt->ns = 0;
    }
    return debt;
}

/* The caller is charged.  What his turn could not pay he owes: he pays with his
 * next call, or, when it is more than a turn, he gets his result in a later
 * one. */
static ERL_NIF_TERM pay(struct fair__thread *th, ErlNifEnv *env,
                        const struct fair__nif *nif, ERL_NIF_TERM pid,
                        bool normal, double ns, ERL_NIF_TERM result)
{
    double turn = (double)GET(fair__config.fair_ns);

    if (fair_likely(normal)) {
        struct fair__debt *debt = debt_of(th, pid, turn);

        debt->ns += ns;
        if (fair_likely(debt->ns * 100 < turn))
            return result;
        fair__charge(env, &debt->ns, false);
        if (fair_likely(debt->ns < turn))
            return result;
        ns = debt->ns;
        debt->ns = 0;
    } else if (ns * 100 < turn) {
        return result;
    }
    if (!nif->yields
        || enif_has_pending_exception(env, NULL))
        return result;
    return enif_schedule_nif(env, nif->func->name, 0, sit_out, 2,
                             (ERL_NIF_TERM[]){
                                 result,
                                 enif_make_ulong(env, (unsigned long)ns)});
}

static ERL_NIF_TERM finish(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    const struct fair__nif *nif = t->nif;
    ERL_NIF_TERM result = t->result;
    ERL_NIF_TERM pid = t->owner.pid;
    bool normal = t->where == W_NORMAL;
    double debt = t->debt_ns;

    if (fair_unlikely(!result) && !enif_has_pending_exception(env, NULL)) {
        /* Zero, or what fair_badarg returned before a pause that lost it. */
        fair__misuse(t, RULE_NO_TERM);
        result = enif_raise_exception(env, enif_make_atom(env, "badreturn"));
    }
    fair__task_end(t, th);
    return pay(th, env, nif, pid, normal, debt, result);
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

    t->asked_by = NULL;
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

    if (!fair__bins_pause(t) || (!t->handle && !fair__handle_new(t)))
        goto no_memory;
    make_handle_term(t, env);
    argv[argc++] = t->handle_term;
    argv[argc++] = enif_make_uint64(env, (uintptr_t)t);
    for (unsigned i = 0; i < t->pub.argc; i++)
        argv[argc++] = t->pub.argv[i];
    argc += (int)fair__roots_out(t, env, argv + argc);
    if (t->where == W_NORMAL)
        fair__charge(env, &t->debt_ns, t->pub.yields > 1);
    return schedule(t, env, t->hop ? W_NORMAL : GET(t->target), argc, argv);
no_memory:
    fair__task_end(t, th);
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* Of a mode that runs on the pool: from here, or from a dirty scheduler. */
static ERL_NIF_TERM hand_over(struct fair__task *t, struct fair__thread *th)
{
    if (!fair__threaded_on_dirty(t))
        return fair__begin_threaded(t, th);
    SET(t->target, W_DIRTY_CPU);
    return reschedule(t, th);
}

static ERL_NIF_TERM run(struct fair__task *t, struct fair__thread *th,
                        uint64_t since)
{
    fair__run_slice(t, th, since);
    switch (t->exit) {
    case X_PAUSE:
        ADD(t->stat->yields, 1);
        return reschedule(t, th);
    case X_WAIT:
        return fair__park(t, th, t->waits_for);
    case X_RAISE:
        return fail(t, th);
    case X_DROP:
        return drop(t, th);
    default:
        return finish(t, th);
    }
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
    fair__become(t, T_RUNS);
    if (fair_unlikely(fair__modes[t->nif->mode].start == W_THREAD))
        return hand_over(t, th);
    fair__next_slice(t);
    return run(t, th, GET(t->since_ns));
}

/* More was used than one turn could pay for. */
static bool must_pay(const struct fair__task *t)
{
    return GET(t->target) == W_NORMAL
        && t->debt_ns >= (double)GET(fair__config.fair_ns);
}

static ERL_NIF_TERM proceed(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    struct fair__thread *th = fair__self();
    struct fair__task *t;
    ErlNifUInt64 address;

    enif_get_uint64(env, argv[1], &address);
    t = (struct fair__task *)(uintptr_t)address;
    t->pub.env = env;
    if (t->hop) {
        t->hop = false;
        return schedule(t, env, GET(t->target), argc, argv);
    }
    if (!th) {
        fair__task_end(t, NULL);
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    if (must_pay(t)) {
        fair__charge(env, &t->debt_ns, true);
        return schedule(t, env, W_NORMAL, argc, argv);
    }
    t->handle_term = argv[0];
    return next_slice(t, th, env, argv + 2);
}

/* In nif_await: the wait is over.  The terms are the arguments and roots. */
ERL_NIF_TERM fair__task_resume(struct fair__task *t, ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM next[2 + FAIR__MAX_ARITY + FAIR__INLINE_ROOTS];
    enum fair__where where = GET(t->target);
    struct fair__thread *th = fair__self();

    t->handle_term = 0;
    if (where == W_NORMAL && th && !must_pay(t))
        return next_slice(t, th, env, argv);
    make_handle_term(t, env);
    next[0] = t->handle_term;
    next[1] = enif_make_uint64(env, (uintptr_t)t);
    memcpy(next + 2, argv, (size_t)argc * sizeof *argv);
    return schedule(t, env, where, argc + 2, next);
}

/* -- the first slice ------------------------------------------------------ */

void fair__task_init(struct fair__task *t, struct fair__nif *nif,
                     struct fair__thread *th, struct fair__fstat *st,
                     ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    t->pub.ops = fair_likely(!nif->unwinds) ? nif->lib->ops
        : &fair__unwinding_ops;
    t->pub.env = env;
    t->pub.argv = argv;
    t->pub.argc = (unsigned)argc;
    t->pub.env_used = 0;
    t->pub.yields = 0;
    t->pub.cancelled = 0;
    t->nif = nif;
    t->func = nif->func;
    t->handle = NULL;
    t->handle_term = 0;
    t->spare = NULL;
    t->escape = NULL;
    SET(t->cancelled_ns, 0);
    t->listed = false;
    fair__become(t, T_RUNS);
    SET(t->since_ns, fair__now_coarse());
    t->thread = th;
    t->stat = st;
    t->where = W_NORMAL;
    t->begun = false;
    t->main = fair__run_body;
    t->hop = false;
    t->yielding = nif->yields;
    t->made = 0;
    t->had_gap = false;
    t->makes_terms = true;
    t->unit_ns = 0;
    t->debt_ns = 0;
    t->units = 0;
    t->apart_ns = 0;
    t->pending = NULL;
    t->pinned = false;
    t->foreign = false;
    SET(t->unwanted, false);
    t->job.state = J_IDLE;
    t->own_env = NULL;
    t->own_argv = NULL;
    t->error = NULL;
    t->away = false;
    t->ring = NULL;
    t->told = 0;
    t->lacked = NULL;
    t->holds = NULL;
    t->fds = NULL;
    t->waits.fd = NULL;
    t->asked_by = NULL;
    t->outbox = 0;
    SET(t->is_process, false);
    t->callback = NULL;
    t->call_env = NULL;
    fair__hold_init(t);
}

/* The kind of scheduler on which the body begins; a threaded one is handed over
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
static ERL_NIF_TERM begin(struct fair__task *t, struct fair__thread *th)
{
    enum fair__where where = begins_on(t);

    if (fair_unlikely(where != W_NORMAL)) {
        SET(t->target, where);
        return reschedule(t, th);
    }
    if (fair_unlikely(fair__modes[t->nif->mode].start == W_THREAD))
        return hand_over(t, th);
    fair__first_slice(t);
    return run(t, th, GET(t->since_ns));
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
        && (!nif->awaited || !FAIR__TASKS)) {
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
        return begin(t, th);
    SET(t->target, begins_on(t));
    return fair__park(t, th, T_TURN);
failed:
    return enif_raise_exception(env, enif_make_atom(env, error));
}
