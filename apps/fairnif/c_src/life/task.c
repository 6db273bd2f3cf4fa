/*
 * task.c - the life of a task: called, run in slices, finished or dropped.
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
 * Everything in this file but fair__leave, fair__outside and `body_main` runs
 * on a scheduler's own stack.
 */
#include <stdlib.h>

#include "task/checkers.h"
#include "wait/wait.h"

/* -- the list of suspended tasks, for fairnif:tasks/0 --------------------- */

static struct shard {
    pthread_mutex_t lock;
    struct fair__task *first;
    _Atomic size_t count;
} shards[FAIR__SHARDS] = {
    [0 ... FAIR__SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}
};

static struct shard *shard_of(const struct fair__task *t)
{
    return &shards[((uintptr_t)t->map >> 16) % FAIR__SHARDS];
}

static void enlist(struct fair__task *t)
{
    struct shard *s = shard_of(t);

    pthread_mutex_lock(&s->lock);
    t->prev = NULL;
    t->next = s->first;
    if (s->first)
        s->first->prev = t;
    s->first = t;
    ADD(s->count, 1);
    pthread_mutex_unlock(&s->lock);
    t->listed = true;
}

static void delist(struct fair__task *t)
{
    struct shard *s = shard_of(t);

    if (!t->listed)
        return;
    pthread_mutex_lock(&s->lock);
    *(t->prev ? &t->prev->next : &s->first) = t->next;
    if (t->next)
        t->next->prev = t->prev;
    ADD(s->count, (size_t)-1);
    pthread_mutex_unlock(&s->lock);
    t->listed = false;
}

size_t fair__suspended_count(void)
{
    size_t count = 0;

    for (unsigned i = 0; i < FAIR__SHARDS; i++)
        count += GET(shards[i].count);
    return count;
}

/* Copies what is to be seen of every task that has been suspended at least once
 * and has not ended; the caller frees it.  NULL when there is none, or no
 * memory.  The locks are held for the copying only: schedulers wait for them. */
struct fair__seen_task *fair__suspended(size_t *count)
{
    struct fair__seen_task *all = NULL;

    *count = 0;
    for (unsigned i = 0; i < FAIR__SHARDS; i++) {
        struct shard *s = &shards[i];
        size_t room = GET(s->count) + 64;
        struct fair__seen_task *more =
            realloc(all, (*count + room) * sizeof *more);

        if (!more)
            break;
        all = more;
        pthread_mutex_lock(&s->lock);
        for (struct fair__task *t = s->first; t && room > 0; t = t->next) {
            all[(*count)++] = (struct fair__seen_task){
                t->func, GET(t->state), GET(t->target), GET(t->stage),
                GET(t->since_ns),
                __atomic_load_n(&t->pub.yields, __ATOMIC_RELAXED), t->owner
            };
            room--;
        }
        pthread_mutex_unlock(&s->lock);
    }
    return all;
}

/* -- the switch ----------------------------------------------------------- */

static FAIR_NO_TSAN void body_main(void *arg)
{
    struct fair__task *t = arg;

    fair__check_begun(t);
    t->result = t->nif->body(&t->pub);
    fair__term_in(t, t->result);
    t->exit = X_DONE;
    fair__check_leave(t, true);
}

/* From the task's stack: back to the scheduler, because of `exit`. */
void fair__leave(struct fair__task *t, enum fair__exit exit)
{
    t->exit = exit;
    fair__check_leave(t, false);
    fair__arch_pause(&t->ctx);
    fair__check_resumed(t);
}

struct outside {
    struct fair__task *t;
    void (*fn)(void *);
    void *arg;
};

static FAIR_NO_TSAN void run_outside(void *arg)
{
    struct outside *o = arg;

    fair__check_back(o->t);
    o->fn(o->arg);
    fair__check_enter(o->t);
}

/* From the task's stack: fn(arg) on the thread's own, which has room for a
 * library's needs.  A pause in it would leave a stack that is not the task's:
 * there are no units for its ticks. */
FAIR_NO_TSAN void fair__outside(struct fair__task *t, void (*fn)(void *),
                                void *arg)
{
    struct outside o = {t, fn, arg};
    uint64_t budget = t->pub.budget;

    t->away = true;
    t->pub.budget = 0;
    fair__check_leave(t, false);
    fair__arch_call(&t->ctx, run_outside, &o);
    fair__check_resumed(t);
    t->away = false;
    t->pub.budget = budget;
}

static void switch_to(struct fair__task *t)
{
    fair__check_enter(t);
    if (!t->begun) {
        t->begun = true;
        fair__arch_start(&t->ctx, body_main, t);
    } else {
        fair__arch_resume(&t->ctx);
    }
    fair__check_back(t);
}

/* -- ends ----------------------------------------------------------------- */

/* Everything the task holds, locks too; nothing when it is called again. */
void fair__let_go(struct fair__task *t)
{
    fair__hold_release(t);
    if (fair_unlikely(t->waits.fd || t->fds))
        fair__fds_release(t);
}

static __attribute__((noinline)) void free_own_env(struct fair__task *t)
{
    if (t->own_argv != t->inline_argv)
        enif_free(t->own_argv);
    t->own_argv = NULL;
    if (t->own_env)
        enif_free_env(t->own_env);
    t->own_env = NULL;
}

/* Everything the task holds is let go; `th` is NULL where no tasks run. */
static void end(struct fair__task *t, struct fair__thread *th)
{
    struct fair__handle *handle = t->handle;
    bool pinned = t->pinned;

    fair__let_go(t);
    delist(t);
    if (t->counted)
        fair__dismiss(t->func, fair__vm_env(t));
    if (fair_unlikely(t->own_argv != NULL))
        free_own_env(t);
    if (handle)
        handle->task = NULL;
    fair__stack_give(th, t);
    /* It may have been the last of an author's library: at the very end. */
    if (fair_unlikely(pinned))
        enif_release_resource(handle);
}

void fair__task_end(struct fair__task *t, struct fair__thread *th)
{
    end(t, th);
}

/* Its caller died, or let go of its pending value; on any thread.  `env` is
 * that of a callback of the VM's, or NULL. */
void fair__drop_elsewhere(struct fair__task *t, ErlNifEnv *env)
{
    t->pub.env = env;
    atomic_fetch_add(&t->func->elsewhere->cancels, 1);
    end(t, NULL);
}

/* The body did what the runtime cannot let it do. */
static ERL_NIF_TERM fail(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    ERL_NIF_TERM error = fair__error_term(t, env);

    end(t, th);
    return enif_raise_exception(env, error);
}

static ERL_NIF_TERM drop(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;

    ADD(t->stat->cancels, 1);
    end(t, th);
    return enif_make_atom(env, "cancelled");    /* nobody will see it */
}

/* The destructor of an author's task type.  On any thread, also ones that are
 * no schedulers; the author's code is still mapped, since the object's type
 * is his. */
void fair__handle_dtor(ErlNifEnv *env, void *obj)
{
    struct fair__task *t = ((struct fair__handle *)obj)->task;

    if (!t)
        return;
    t->handle = NULL;
    fair__drop_elsewhere(t, env);
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
    if (!fair__modes[nif->mode].yields
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
    end(t, th);
    return pay(th, env, nif, pid, normal, debt, result);
}

/* -- between slices ------------------------------------------------------- */

static ERL_NIF_TERM proceed(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[]);

static int waits_as(enum fair__where where)
{
    return where == W_NORMAL ? S_SUSPENDED
        : where == W_THREAD ? S_WAITING : S_QUEUED;
}

static ERL_NIF_TERM schedule(struct fair__task *t, ErlNifEnv *env,
                             enum fair__where where, int argc,
                             const ERL_NIF_TERM argv[])
{
    int flags = where == W_DIRTY_CPU ? ERL_NIF_DIRTY_JOB_CPU_BOUND
        : where == W_DIRTY_IO ? ERL_NIF_DIRTY_JOB_IO_BOUND : 0;

    SET(t->state, waits_as(where));
    return enif_schedule_nif(env, t->func->name, flags, proceed, argc, argv);
}

/* The resource object, with one reference that is the caller's to release. */
static bool new_handle(struct fair__task *t)
{
    t->handle = enif_alloc_resource(t->nif->lib->type, sizeof *t->handle);
    if (!t->handle)
        return false;
    t->handle->task = t;
    if (!t->listed)
        enlist(t);
    return true;
}

bool fair__pin(struct fair__task *t)
{
    if (t->handle)
        enif_keep_resource(t->handle);
    else if (!new_handle(t))
        return false;
    t->pinned = true;
    return true;
}

/* The arguments of the scheduled NIF: what must live until the next slice.
 * The address of the task is a small integer: it is valid as long as the
 * first argument holds the object. */
ERL_NIF_TERM fair__reschedule(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    ERL_NIF_TERM argv[2 + FAIR__MAX_ARITY + FAIR_ROOTS + FAIR__SLOTS_OWN];
    int argc = 0;

    if (!t->handle) {
        if (!new_handle(t))
            goto no_memory;
        t->handle_term = enif_make_resource(env, t->handle);
        enif_release_resource(t->handle);   /* the argument keeps it */
    }
    if (!fair__bins_pause(t))
        goto no_memory;
    argv[argc++] = t->handle_term;
    argv[argc++] = enif_make_uint64(env, (uintptr_t)t);
    for (unsigned i = 0; i < t->pub.argc; i++)
        argv[argc++] = t->pub.argv[i];
    for (unsigned i = 0; i < t->roots_used; i++)
        argv[argc++] = t->roots[i];
    if (t->where == W_NORMAL)
        fair__charge(env, &t->debt_ns, t->pub.yields > 1);
    return schedule(t, env, t->hop ? W_NORMAL : GET(t->target), argc, argv);
no_memory:
    end(t, th);
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* One slice; t->exit says how it ended. */
static void run_slice(struct fair__task *t, struct fair__thread *th,
                      uint64_t since)
{
    bool dirty_cpu = t->where == W_DIRTY_CPU;

    if (dirty_cpu)
        atomic_fetch_add(&fair__config.dirty_running, 1);
    th->current = t;
    fair__slot_enter(th, t->func, since, t->pub.yields, t->owner.pid);
    switch_to(t);
    th->current = NULL;
    if (t->exit == X_PAUSE || t->exit == X_WAIT) {
        /* Seen as suspended before it is no longer seen as running. */
        SET(t->state, t->exit == X_WAIT ? S_WAITING
            : waits_as(t->hop ? W_NORMAL : GET(t->target)));
        if (!t->listed)
            enlist(t);
    }
    fair__slot_leave(th);
    if (dirty_cpu)
        atomic_fetch_sub(&fair__config.dirty_running, 1);
    fair__slice_end(t);
}

static ERL_NIF_TERM run(struct fair__task *t, struct fair__thread *th,
                        uint64_t since)
{
    run_slice(t, th, since);
    switch (t->exit) {
    case X_PAUSE:
        ADD(t->stat->yields, 1);
        return fair__reschedule(t, th);
    case X_WAIT:
        return fair__park(t, th);
    case X_RAISE:
        return fail(t, th);
    case X_DROP:
        return drop(t, th);
    default:
        return finish(t, th);
    }
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
        end(t, NULL);
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    if (GET(t->target) == W_NORMAL
        && t->debt_ns >= (double)GET(fair__config.fair_ns)) {
        /* More was used than one turn could pay for. */
        fair__charge(env, &t->debt_ns, true);
        return schedule(t, env, W_NORMAL, argc, argv);
    }
    t->thread = th;
    t->where = GET(t->target);
    t->stat = fair__stat(th, t->func);
    if (!t->stat)
        t->stat = t->func->elsewhere;
    t->handle_term = argv[0];
    t->pub.argv = argv + 2;
    for (unsigned i = 0; i < t->roots_used; i++)
        t->roots[i] = argv[2 + t->pub.argc + i];
    if (!enif_is_current_process_alive(env))
        return drop(t, th);
    if (fair_unlikely(fair__modes[t->nif->mode].start == W_THREAD))
        return fair__begin_threaded(t, th);
    SET(t->state, S_RUNNING);
    fair__next_slice(t);
    return run(t, th, GET(t->since_ns));
}

/* In nif_await: the wait is over.  The terms are the arguments and roots. */
ERL_NIF_TERM fair__task_resume(struct fair__task *t, ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM next[2 + FAIR__MAX_ARITY + FAIR_ROOTS + FAIR__SLOTS_OWN];
    enum fair__where where = GET(t->target);

    next[0] = enif_make_resource(env, t->handle);
    next[1] = enif_make_uint64(env, (uintptr_t)t);
    memcpy(next + 2, argv, (size_t)argc * sizeof *argv);
    t->pinned = false;
    enif_release_resource(t->handle);   /* the term keeps it */
    if (where != W_NORMAL)
        return schedule(t, env, where, argc + 2, next);
    return proceed(env, argc + 2, next);
}

/* On a thread of the pool, for a task with an environment of its own. */
void fair__thread_slice(struct fair__task *t, struct fair__thread *th)
{
    t->where = W_THREAD;
    SET(t->target, W_THREAD);
    t->pub.env = t->own_env;
    t->pub.argv = t->own_argv;
    t->foreign = true;
    SET(t->state, S_RUNNING);
    fair__next_slice(t);
    run_slice(t, th, GET(t->since_ns));
}

/* -- the first slice ------------------------------------------------------ */

static void init(struct fair__task *t, struct fair__nif *nif,
                 struct fair__thread *th, struct fair__fstat *st,
                 ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    t->pub.ops = nif->lib->ops;
    t->pub.env = env;
    t->pub.argv = argv;
    t->pub.argc = (unsigned)argc;
    t->pub.env_used = 0;
    t->pub.yields = 0;
    t->nif = nif;
    t->func = nif->func;
    t->handle = NULL;
    t->listed = false;
    SET(t->state, S_RUNNING);
    SET(t->since_ns, fair__now_coarse());
    t->thread = th;
    t->stat = st;
    t->where = W_NORMAL;
    t->begun = false;
    t->hop = false;
    t->yielding = fair__modes[nif->mode].yields;
    t->made = 0;
    t->had_gap = false;
    t->makes_terms = true;
    t->unit_ns = 0;
    t->debt_ns = 0;
    t->units = 0;
    t->apart_ns = 0;
    t->roots_used = 0;
    SET(t->stage, P_RUNS);
    t->pending = NULL;
    t->pinned = false;
    t->foreign = false;
    SET(t->cancelled, false);
    t->job.state = J_IDLE;
    t->own_env = NULL;
    t->own_argv = NULL;
    t->error = NULL;
    t->away = false;
    t->told = 0;
    t->lacked = NULL;
    t->holds = NULL;
    t->fds = NULL;
    t->waits.fd = NULL;
    fair__hold_init(t);
    enif_self(env, &t->owner);
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
        return fair__reschedule(t, th);
    }
    if (fair_unlikely(fair__modes[t->nif->mode].start == W_THREAD))
        return fair__begin_threaded(t, th);
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
    init(t, nif, th, st, env, argc, argv);
    ADD(st->calls, 1);
    if (fair_likely(admitted))
        return begin(t, th);
    SET(t->target, begins_on(t));
    SET(t->stage, P_TURN);
    return fair__park(t, th);
failed:
    return enif_raise_exception(env, enif_make_atom(env, error));
}
