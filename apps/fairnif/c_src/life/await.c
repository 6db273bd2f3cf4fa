/*
 * await.c - waiting without a scheduler: pending values.
 *
 * No NIF can suspend a process.  So a call that must wait returns, to Erlang,
 * a pending value; fairnif:await/1 waits for it in a receive, and calls
 * nif_await, which goes on with the task or answers what it came to.
 *
 *     {fairnif_pending, Object, Arguments..., Roots...}
 *
 * The terms go with it, since the process's heap is the only place where terms
 * live without being copied.  The object (struct fair__pending) owns the task
 * while it waits: the object's destructor, when the caller is dead or let go of
 * the value, takes the task off whatever list it is in and drops it; what a
 * thread of the pool works at just then is dropped by that thread, when it is
 * done.  Each wait has an object of its own, so one that was awaited is told
 * from one that is new.
 *
 *     run --X_WAIT--> park --> begin_waiting --> (list) --> ready --> {Ref, go}
 *      ^                                                                |
 *      '------------------- resume <-- nif_await <-- fairnif:await/1 <--'
 *
 * What is decided about a task is decided under the waiting lock; messages are
 * sent and memory is freed without it.  After the lock was let go a task that
 * was made ready belongs to its caller: it may have ended.
 */
#include "wait/wait.h"

static ErlNifResourceType *pending_type;

/* -- messages ------------------------------------------------------------- */

void fair__disarm(struct fair__pending *p, struct fair__wake *w)
{
    w->env = p->armed;
    w->ref = p->ref;
    w->to = p->owner;
    p->armed = NULL;
}

void fair__wake_send(ErlNifEnv *env, struct fair__wake *w)
{
    if (w->kick)
        fair__pool_kick();
    if (w->env)
        fair__send_and_free(env, &w->to, w->env,
                            enif_make_tuple2(w->env, w->ref,
                                             enif_make_atom(
                                                 w->env, w->settle ? "settle"
                                                 : "go")));
}

/* -- ready ---------------------------------------------------------------- */

void fair__make_ready(struct fair__task *t, struct fair__wake *w)
{
    t->job.state = J_IDLE;
    if (t->own_env && t->begun) {
        SET(t->stage, P_POOL);
        t->deadline_ns = 0;         /* it has begun */
        fair__pool_put_back(&t->job);
        w->kick = true;
        return;
    }
    SET(t->stage, P_READY);
    fair__disarm(t->pending, w);
}

/* -- stages --------------------------------------------------------------- */

static void set_limit(struct fair__task *t)
{
    t->deadline_ns = fair__now() + GET(fair__config.overload_ns);
}

static void begin_turn(struct fair__task *t, struct fair__wake *w)
{
    set_limit(t);
    fair__turn_begin(t, w);
}

static void begin_pool(struct fair__task *t, struct fair__wake *w)
{
    fair__pool_put(&t->job);
    set_limit(t);
    w->kick = true;
}

static void end_pool(struct fair__task *t)
{
    fair__pool_withdraw(&t->job);
}

/* How a wait begins, and how a task is taken off its list again when nobody
 * wants it any more; locked.  What has neither only waits for its time. */
static const struct {
    const char *name;           /* in fairnif:tasks/0 */
    void (*begin)(struct fair__task *t, struct fair__wake *w);
    void (*end)(struct fair__task *t);
    bool by_await;              /* fairnif:await/1 knows when it is over */
} stages[] = {
    [P_RUNS]  = {"none",       NULL,             NULL,           false},
    [P_TURN]  = {"turn",       begin_turn,       fair__turn_end, false},
    [P_POOL]  = {"pool",       begin_pool,       end_pool,       false},
    [P_LOCK]  = {"lock",       fair__lock_begin, fair__lock_end, false},
    [P_FD]    = {"descriptor", NULL,             NULL,           true},
    [P_SLEEP] = {"time",       NULL,             NULL,           true},
    [P_READY] = {"await",      NULL,             NULL,           false},
};

const char *fair__stage_name(int stage)
{
    return stages[stage].name;
}

void fair__begin_waiting(struct fair__task *t, struct fair__wake *w)
{
    int stage = GET(t->stage);

    if (stages[stage].begin) {
        t->deadline_ns = 0;
        stages[stage].begin(t, w);
    } else if (stages[stage].by_await && t->own_env) {
        /* Await waits for the end of the call: it has to know. */
        fair__disarm(t->pending, w);
    }
}

/* Nobody waits for the task any more.  True when it is the caller's now; false
 * when a thread of the pool is at it, and will see.  Locked. */
static bool take_back(struct fair__task *t)
{
    int stage = GET(t->stage);

    t->pending = NULL;
    SET(t->cancelled, true);
    if (t->job.state == J_RUNNING)
        return false;
    if (stages[stage].end)
        stages[stage].end(t);
    SET(t->stage, P_READY);
    return true;
}

static void pending_dtor(ErlNifEnv *env, void *obj)
{
    struct fair__pending *p = obj;
    struct fair__task *t;

    fair__wait_lock();
    t = p->task;
    p->task = NULL;
    if (t && !take_back(t))
        t = NULL;
    fair__wait_unlock();
    if (p->armed)
        enif_free_env(p->armed);
    if (p->answer)
        enif_free_env(p->answer);
    if (p->handle)
        enif_release_resource(p->handle);
    if (t)
        fair__drop_elsewhere(t, env);
}

/* Opened through the runtime that is at work, whichever copy of its library the
 * module was loaded from: the destructor must be that one's. */
bool fair__await_open(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {.dtor = pending_dtor};
    ErlNifResourceType *type = fair__open_type(env, "fairnif_pending", init);

    if (type)
        pending_type = type;
    return type && fair__fd_open_types(env);
}

/* -- from a body ---------------------------------------------------------- */

/* Ends the call with error:{fairnif, {Error, Function}}; does not return. */
void fair__fail(struct fair__task *t, const char *error)
{
    t->error = error;
    fair__leave(t, X_RAISE);
    __builtin_unreachable();
}

/* Does not return where the task cannot be suspended. */
void fair__may_wait(struct fair__task *t)
{
    if (t->where != W_THREAD && !t->nif->awaited)
        fair__fail(t, "not_awaited");
}

/* From the task's stack: goes on when the wait is over.  Errors of the waiting
 * itself do not come back here. */
void fair__wait_for(struct fair__task *t, enum fair__stage stage)
{
    fair__may_wait(t);
    SET(t->stage, stage);
    fair__go_waiting(t);
}

void fair__offload(fair_task *pub, void (*fn)(void *), void *arg)
{
    struct fair__task *t = fair__of(pub);

    if (t->where == W_THREAD || !FAIR__TASKS || t->away) {
        fair__blocking(pub, fn, arg);
        return;
    }
    t->work = fn;
    t->work_arg = arg;
    fair__wait_for(t, P_POOL);
    t->work = NULL;
}

/* -- on a thread of the pool ---------------------------------------------- */

/* fair_offload's function.  It may use the task's stack, so the task stays
 * until it has returned, whatever happened to the caller. */
static void run_work(struct fair__job *job)
{
    struct fair__task *t = fair__task_of(job);
    struct fair__thread *th = fair__self();
    struct fair__fstat *st = th ? fair__stat(th, t->func) : NULL;
    uint64_t begin = fair__now();
    struct fair__wake w = {0};
    bool wanted;

    if (th)
        fair__slot_enter(th, t->func, begin, t->pub.yields, t->owner.pid);
    SET(t->state, S_RUNNING);
    t->away = true;
    t->pub.env = NULL;          /* of a NIF call that is over */
    t->pub.budget = 0;
    t->work(t->work_arg);
    t->away = false;
    SET(t->state, S_WAITING);
    if (th)
        fair__slot_leave(th);
    if (st) {
        ADD(st->offloads, 1);
        ADD(st->thread_ns, fair__now() - begin);
    }
    fair__wait_lock();
    wanted = t->pending != NULL;
    if (wanted) {
        fair__make_ready(t, &w);
        fair__pool_ending(th);
    }
    fair__wait_unlock();
    if (wanted)
        fair__wake_send(NULL, &w);
    else
        fair__drop_elsewhere(t, NULL);
}

/* -- parking -------------------------------------------------------------- */

/* {fairnif_pending, Object, Arguments..., Roots...} */
static ERL_NIF_TERM pending_term(struct fair__task *t, ErlNifEnv *env,
                                 struct fair__pending *p)
{
    ERL_NIF_TERM terms[2 + FAIR__MAX_ARITY + FAIR_ROOTS + FAIR__SLOTS_OWN];
    unsigned n = 0;

    terms[n++] = enif_make_atom(env, "fairnif_pending");
    terms[n++] = enif_make_resource(env, p);
    if (!t->own_env) {
        for (unsigned i = 0; i < t->pub.argc; i++)
            terms[n++] = t->pub.argv[i];
        for (unsigned i = 0; i < t->roots_used; i++)
            terms[n++] = t->roots[i];
    }
    p->arity = (int)n;
    return enif_make_tuple_from_array(env, terms, n);
}

/* No thread could be started for it, and none is there. */
static void withdraw(ErlNifEnv *env, struct fair__pending *p)
{
    struct fair__wake w = {0};

    fair__wait_lock();
    if (p->task && GET(p->task->stage) == P_POOL
        && fair__pool_withdraw(&p->task->job)) {
        p->task->error = "enomem";
        SET(p->task->stage, P_READY);
        fair__disarm(p, &w);
    }
    fair__wait_unlock();
    fair__wake_send(env, &w);
}

/* On a scheduler: the caller gets a pending value, for the stage the task is
 * in.  After the lock was let go the task may be running elsewhere, or have
 * ended. */
ERL_NIF_TERM fair__park(struct fair__task *t, struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    uint64_t begin = fair__now();
    bool normal = t->where == W_NORMAL;
    double parking;
    struct fair__wake w = {0};
    struct fair__pending *p = enif_alloc_resource(pending_type, sizeof *p);
    ERL_NIF_TERM term;

    if (!p)
        goto no_memory;
    *p = (struct fair__pending){.owner = t->owner};
    if (GET(t->stage) == P_POOL)
        fair__env_note_time();
    if (!fair__pin(t) || (!t->own_env && !fair__bins_pause(t)))
        goto no_memory;
    if (!t->foreign)
        t->priv = enif_priv_data(env);
    term = pending_term(t, env, p);
    if (normal)
        fair__charge(env, &t->debt_ns, false);
    ADD(t->stat->waits, 1);
    t->job.run = t->own_env ? fair__run_body : run_work;
    t->job.state = J_IDLE;
    t->job.func = t->func;
    t->job.waits = false;
    t->timed_out = false;
    SET(t->state, S_WAITING);
    fair__wait_lock();
    p->task = t;
    t->pending = p;
    fair__begin_waiting(t, &w);
    fair__wait_unlock();
    if (w.kick && !fair__pool_kick())
        withdraw(env, p);
    w.kick = false;
    fair__wake_send(env, &w);
    enif_release_resource(p);
    /* To wake a thread takes longer than all the rest, and is the caller's. */
    parking = (double)(fair__now() - begin);
    if (normal)
        fair__charge(env, &parking, false);
    return term;
no_memory:
    if (p)
        enif_release_resource(p);
    fair__task_end(t, th);
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* -- fairnif:await/1 ------------------------------------------------------ */

static ERL_NIF_TERM refuse(ErlNifEnv *env, const char *why)
{
    return enif_raise_exception(
        env, enif_make_tuple2(env, enif_make_atom(env, "fairnif"),
                              enif_make_atom(env, why)));
}

/* A tuple that somebody made longer or shorter is none: the task would take
 * what is not there for its arguments. */
static bool get_pending(ErlNifEnv *env, ERL_NIF_TERM term,
                        struct fair__pending **p, int *arity,
                        const ERL_NIF_TERM **elems)
{
    return enif_get_tuple(env, term, arity, elems) && *arity >= 2
        && enif_is_identical((*elems)[0],
                             enif_make_atom(env, "fairnif_pending"))
        && enif_get_resource(env, (*elems)[1], pending_type, (void **)p)
        && *arity == (*p)->arity;
}

static bool is_own(ErlNifEnv *env, const struct fair__pending *p)
{
    ErlNifPid self;

    return enif_self(env, &self) && self.pid == p->owner.pid;
}

/* The caller's own, or NULL. */
static struct fair__pending *own_pending(ErlNifEnv *env, ERL_NIF_TERM term)
{
    struct fair__pending *p;
    const ERL_NIF_TERM *elems;
    int arity;

    return get_pending(env, term, &p, &arity, &elems) && is_own(env, p)
        ? p : NULL;
}

/* {Ref, Milliseconds | infinity} */
static ERL_NIF_TERM wait_answer(ErlNifEnv *env, ERL_NIF_TERM ref,
                                uint64_t deadline)
{
    uint64_t now = fair__now(), ms;

    if (!deadline)
        return enif_make_tuple2(env, ref, enif_make_atom(env, "infinity"));
    ms = deadline > now ? (deadline - now + 999999) / 1000000 : 0;
    return enif_make_tuple2(env, ref,
                            enif_make_uint64(env, ms < INT32_MAX ? ms
                                             : INT32_MAX));
}

/* The task is its caller's again. */
static ERL_NIF_TERM resume(struct fair__task *t, ErlNifEnv *env, int arity,
                           const ERL_NIF_TERM *elems)
{
    t->pub.env = env;
    t->foreign = true;
    SET(t->stage, P_RUNS);
    if (t->error) {
        ERL_NIF_TERM error = fair__error_term(t, env);

        if (strcmp(t->error, "overloaded") == 0)
            atomic_fetch_add(&t->func->elsewhere->overloaded, 1);
        fair__task_end(t, NULL);
        return enif_raise_exception(env, error);
    }
    return fair__task_resume(t, env, arity - 2, elems + 2);
}

/* await(Pending, Ref) -> Value, maybe another pending one
 *                      | {Ref, Timeout}: ask again after {Ref, go} */
ERL_NIF_TERM fair__await(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct fair__pending *p;
    const ERL_NIF_TERM *elems;
    struct fair__task *t;
    ErlNifEnv *armed, *answer;
    struct fair__task *selects = NULL;
    struct fair__wake w = {0};
    ERL_NIF_TERM ref;
    uint64_t deadline = 0;
    int arity;

    (void)argc;
    if (!get_pending(env, argv[0], &p, &arity, &elems))
        return refuse(env, "not_pending");
    if (!is_own(env, p))
        return refuse(env, "not_owner");
    if (!enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    armed = enif_alloc_env();
    if (!armed)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    ref = enif_make_copy(armed, argv[1]);
    fair__wait_lock();
    t = p->task;
    answer = p->answer;
    p->answer = NULL;
    if (t && GET(t->stage) == P_READY) {
        p->task = NULL;
        t->pending = NULL;
    } else if (t) {
        ErlNifEnv *before = p->armed;

        p->armed = armed;
        p->ref = ref;
        armed = before;
        if (t->job.state != J_RUNNING)
            deadline = t->deadline_ns;
        if (fair__wait_begin(t, &w))
            selects = t;
        t = NULL;
    } else if (!answer) {
        fair__wait_unlock();
        enif_free_env(armed);
        return refuse(env, "awaited_before");
    }
    fair__wait_unlock();
    if (armed)
        enif_free_env(armed);
    if (t)
        return resume(t, env, arity, elems);
    if (answer) {
        enif_release_resource(p->handle);
        p->handle = NULL;
        return fair__take_answer(env, answer, p->result, p->raises, argv[1]);
    }
    if (selects)
        fair__wait_select(selects, env, argv[1]);
    fair__wake_send(env, &w);
    return wait_answer(env, argv[1], deadline);
}

/* The time that fairnif:await/1 was told is up; locked.  How many messages with
 * its reference are on their way. */
static unsigned expire(struct fair__task *t, struct fair__wake *w)
{
    struct fair__wake unsent = {0};
    int stage = GET(t->stage);

    if (stage == P_READY || !t->pending->armed)
        return 1;
    fair__disarm(t->pending, w);
    /* A body that a thread runs is not there yet, whatever its stage says. */
    if (t->job.state == J_RUNNING || !t->deadline_ns
        || fair__now() < t->deadline_ns)
        return 0;
    if (stage == P_SLEEP) {
        t->timed_out = true;
        fair__make_ready(t, &unsent);
        w->kick = unsent.kick;
    } else if (stage == P_TURN || stage == P_POOL) {
        stages[stage].end(t);
        t->error = "overloaded";
        SET(t->stage, P_READY);
    }
    t->deadline_ns = 0;
    return 0;
}

/* expire(Pending) -> number of messages to be taken, then ask again */
ERL_NIF_TERM fair__expire(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct fair__pending *p = own_pending(env, argv[0]);
    struct fair__wake w = {0};
    struct fair__task *t;
    unsigned messages = 1;      /* of a threaded call that is over */

    (void)argc;
    if (!p)
        return enif_make_badarg(env);
    fair__wait_lock();
    t = p->task;
    if (t && fair__wait_waits(t)) {
        fair__wait_unlock();
        return enif_make_uint(env, fair__wait_settle(t, env, false));
    }
    if (t)
        messages = expire(t, &w);
    fair__wait_unlock();
    if (w.env)
        enif_free_env(w.env);
    if (w.kick)
        fair__pool_kick();
    return enif_make_uint(env, messages);
}

/* settle(Pending), after {Ref, settle} -> number of messages to be taken, then
 * ask again */
ERL_NIF_TERM fair__settle(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct fair__pending *p = own_pending(env, argv[0]);
    struct fair__task *t;

    (void)argc;
    if (!p)
        return enif_make_badarg(env);
    fair__wait_lock();
    t = p->task;
    if (t && !fair__wait_waits(t))
        t = NULL;
    fair__wait_unlock();
    return enif_make_uint(env, t ? fair__wait_settle(t, env, true) : 0);
}
