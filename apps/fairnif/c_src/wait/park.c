/*
 * park.c - waiting without a scheduler: pending values.
 *
 * No NIF can suspend a process.  So a call that must wait returns, to Erlang,
 * a pending value; fairnif:await/1 waits for it in a receive, and calls
 * nif_await, which continues the task or answers what it came to.
 *
 *     {fairnif_pending, Object, Arguments..., Roots...}
 *     {fairnif_asks, Object, Request, Answers, Arguments..., Roots...}
 *
 * The second asks its caller for something that only Erlang can do (wait/ask.c);
 * nif_answer has what came of it.  Answers is how many there were before it: an
 * object serves for one request after the other.
 *
 * The terms go with it, since the process's heap is the only place where terms
 * live without being copied.  The object (struct fair__pending) owns the task
 * while it waits: the object's destructor, when the caller is dead or released
 * the value, takes the task off whatever list it is in and drops it; what a
 * thread of the pool works at just then is dropped by that thread, when it is
 * done.  Each wait has an object of its own, so one that was awaited differs
 * from one that is new; but for requests that follow one another in a slice,
 * which Answers tells apart.
 *
 *     run --X_WAIT--> park --> begin_waiting --> (list) --> ready --> {Ref, go}
 *      ^                                                                |
 *      '------------------- resume <-- nif_await <-- fairnif:await/1 <--'
 */
#include "wait/park.h"

#include "base/config.h"
#include "base/os.h"
#include "base/type.h"
#include "task/call.h"
#include "task/charge.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/stint.h"
#include "task/switch.h"
#include "term/binary.h"
#include "term/hold.h"
#include "wait/ask.h"
#include "wait/lock.h"
#include "wait/turn.h"
#include "wait/wait.h"

ErlNifResourceType *fair__pending_type;

/* -- what a task waits for -------------------------------------------------- */

static void set_limit(struct fair__task *t)
{
    t->wait.deadline_ns = fair__now() + GET(fair__config.overload_ns);
}

static void begin_turn(struct fair__task *t, struct fair__wake *w)
{
    set_limit(t);
    fair__turn_begin(t, w);
}

static void begin_pool(struct fair__task *t, struct fair__wake *w)
{
    fair__pool_put(&t->wait.job);
    set_limit(t);
    w->kick = true;
}

static void end_pool(struct fair__task *t)
{
    fair__pool_withdraw(&t->wait.job);
}

/* How a wait begins, and how a task is taken off its list again when no process
 * wants it any more; locked.  What has neither only waits for its time. */
static const struct {
    const char *name;           /* in fairnif:tasks/0 */
    void (*begin)(struct fair__task *t, struct fair__wake *w);
    void (*end)(struct fair__task *t);
    bool by_await;              /* fairnif:await/1 knows when it is over */
} waits[] = {
    [T_PARKING]     = {.name = "await"},
    [T_WAIT_TURN]   = {"turn",       begin_turn,       fair__turn_end, false},
    [T_WAIT_THREAD] = {"pool",       begin_pool,       end_pool,       false},
    [T_OFFLOADED]   = {.name = "pool"},
    [T_WAIT_LOCK]   = {"lock",       fair__lock_begin, fair__lock_end, false},
    [T_WAIT_FD]     = {"descriptor", NULL,             NULL,           true},
    [T_WAIT_TIME]   = {"time",       NULL,             NULL,           true},
    [T_WAIT_CALLER] = {"caller",     NULL,             NULL,           true},
    [T_READY]       = {.name = "await"},
    [T_CLEANUP]   = {0},
    [T_ENDING]      = {0}
};

bool fair__is_at_rest(const struct fair__task *t)
{
    int state = GET(t->state);

    if (state == T_WAIT_THREAD)
        return t->wait.job.state != J_IDLE;
    return state != T_RUNNING && state != T_PARKING && state != T_OFFLOADED;
}

void fair__stop_waiting(struct fair__task *t)
{
    int state = GET(t->state);

    if (waits[state].end)
        waits[state].end(t);
    fair__become(t, T_READY);
}

const char *fair__waits_name(int state)
{
    return waits[state].name;
}

void fair__begin_waiting(struct fair__task *t, struct fair__wake *w)
{
    enum fair__state state = t->wait.state;

    fair__become(t, state);
    if (waits[state].begin) {
        t->wait.deadline_ns = 0;
        waits[state].begin(t, w);
    } else if (waits[state].by_await && t->kind->apart) {
        /* Await waits for the end of the call: it has to know. */
        fair__disarm(t->wait.pending, w);
    }
}

/* No process waits for the task any more.  True when it is the caller's now;
 * false when a thread of the pool is at it, and will see.  Locked. */
static bool take_back(struct fair__task *t)
{
    t->wait.pending = NULL;
    SET(t->wait.unwanted, true);
    if (!fair__is_at_rest(t))
        return false;
    fair__stop_waiting(t);
    return true;
}

static void drop_pending(ErlNifEnv *env, void *obj)
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
    if (p->answer && p->weighs)
        fair__free_env_elsewhere(p->answer);
    else if (p->answer)
        enif_free_env(p->answer);
    if (p->handle)
        enif_release_resource(p->handle);
    if (t)
        t->kind->drop(t, env);
}

static void pending_dtor(ErlNifEnv *env, void *obj)
{
    fair__dtor_at_par(drop_pending, env, obj);
}

/* Of the runtime that is at work, whichever copy of its library the module was
 * loaded from: the destructor must be that one's. */
bool fair__await_open(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {.dtor = pending_dtor};

    fair__atoms_make(env);
    return fair__open_kept_type(env, "fairnif_pending", init,
                                &fair__pending_type)
        && fair__fd_open_types(env);
}

/* -- from a body ---------------------------------------------------------- */

int fair__offload(fair_task *pub, enum fair_mode where, size_t units,
                  void (*fn)(void *), void *arg)
{
    struct fair__task *t = fair__of(pub);

    if (!t->away)
        fair__sends(t);
    if (where != FAIR_THREADED || t->where == W_THREAD || !FAIR__TASKS
        || !t->kind->has_caller || t->away) {
        fair__call_on(t, where, units, fn, arg);
        return 1;
    }
    t->wait.work = fn;
    t->wait.work_arg = arg;
    fair__wait_for(t, T_WAIT_THREAD);
    if (fair_unlikely(GET(t->state) == T_OFFLOADED)) {
        fn(arg);                /* as run_work would have it */
        fair__leave(t, X_WAIT);
    }
    t->wait.work = NULL;
    return 1;
}

/* -- on a thread of the pool ---------------------------------------------- */

/* On this thread's stack; where its author asked for more, on the task's. */
static void run_function(void *task)
{
    struct fair__task *t = task;
    struct fair__thread *th = fair__self();

    fair__runs_for(th, t);
    if (fair__thread_has_room(th, t)) {
        t->wait.work(t->wait.work_arg);
    } else {
        t->thread = th;         /* it was a scheduler's */
        fair__switch_to(t);
    }
    fair__runs_for(th, NULL);
}

/* On the low thread of this one, or here. */
static void run_away(struct fair__task *t, struct fair__thread *th)
{
    struct fair__stint s = fair__stint_begin(t, th, false);
    struct fair__used used;

    if (s.at)
        fair__slot_enter(s.at, t->func, s.begin, t->pub.yields, t->owner.pid);
    fair__become(t, T_OFFLOADED);
    t->away = AWAY_CALL;
    t->pub.env = NULL;          /* of a NIF call that is over */
    t->pub.budget = 0;
    if (s.low)
        fair__low_run(s.low, run_function, t);
    else
        run_function(t);
    t->away = AWAY_NOT;
    if (s.at)
        fair__slot_leave(s.at);
    used = fair__stint_used(&s);
    fair__stint_learn(t, &s, &used, false);
}

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

    run_away(t, th);
    if (st) {
        ADD(st->thread_offloads, 1);
        ADD(st->thread_ns, fair__now() - begin);
    }
    fair__wait_lock();
    wanted = t->wait.pending != NULL;
    if (wanted) {
        fair__make_ready(t, &w);
        fair__pool_ending(th);
    }
    fair__wait_unlock();
    if (wanted)
        fair__wake_send(NULL, &w);
    else
        t->kind->drop(t, NULL);
}

/* -- parking -------------------------------------------------------------- */

/* What the caller gets. */
static ERL_NIF_TERM pending_term(struct fair__task *t, ErlNifEnv *env,
                                 struct fair__pending *p, ERL_NIF_TERM object)
{
    ERL_NIF_TERM terms[2 + FAIR__REQUEST + FAIR__MAX_ARITY + FAIR__INLINE_ROOTS];
    bool asks = t->wait.state == T_WAIT_CALLER;
    unsigned n = 0;

    terms[n++] = asks ? fair__atoms.asks : fair__atoms.pending;
    terms[n++] = object;
    if (asks) {
        terms[n++] = t->ask.request;
        terms[n++] = enif_make_uint(env, p->answers);
    }
    if (!t->kind->apart) {
        for (unsigned i = 0; i < t->pub.argc; i++)
            terms[n++] = t->pub.argv[i];
        n += fair__roots_out(t, env, terms + n);
    }
    p->arity = (int)n - (asks ? FAIR__REQUEST : 0);
    p->apart = t->kind->apart ? 0 : (int)fair__roots_apart(t);
    return enif_make_tuple_from_array(env, terms, n);
}

/* No thread could be started for it, and none is there. */
static void withdraw(ErlNifEnv *env, struct fair__pending *p)
{
    struct fair__wake w = {0};

    fair__wait_lock();
    if (p->task && GET(p->task->state) == T_WAIT_THREAD
        && fair__is_at_rest(p->task)) {
        fair__stop_waiting(p->task);
        p->task->error = "enomem";
        fair__disarm(p, &w);
    }
    fair__wait_unlock();
    fair__wake_send(env, &w);
}

/* An object for this wait and its term; NULL when memory is out.  A new one is the
 * caller's to release.  Of a body that asks again in the slice that an answer
 * began it is that answer's: the tuple that the caller gave us holds it. */
static struct fair__pending *pending_for(struct fair__task *t, ErlNifEnv *env,
                                         ERL_NIF_TERM *object, bool *is_new)
{
    struct fair__pending *p = t->ask.by;

    t->ask.by = NULL;
    *is_new = !p || t->wait.state != T_WAIT_CALLER;
    if (!*is_new) {
        *object = t->ask.by_term;
        return p;
    }
    p = enif_alloc_resource(fair__pending_type, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct fair__pending){.owner = t->owner};
    *object = enif_make_resource(env, p);
    return p;
}

/* Once the lock was released the task may run elsewhere, or have ended. */
static void begin_parked(struct fair__task *t, ErlNifEnv *env,
                         struct fair__pending *p)
{
    struct fair__wake w = {0};

    fair__wait_lock();
    p->task = t;
    t->wait.pending = p;
    fair__begin_waiting(t, &w);
    fair__wait_unlock();
    if (w.kick && !fair__pool_kick())
        withdraw(env, p);
    w.kick = false;
    fair__wake_send(env, &w);
}

ERL_NIF_TERM fair__park(struct fair__task *t)
{
    ErlNifEnv *env = t->pub.env;
    bool asks = t->wait.state == T_WAIT_CALLER, copies = t->hold.terms, is_new;
    /* A request is made so often that even reading the clock counts. */
    uint64_t since = asks ? t->slice.now : fair__now();
    bool charged = t->where == W_NORMAL;
    struct fair__pending *p;
    ERL_NIF_TERM object, term;

    if (!t->kind->apart && !fair__bins_pause(t))
        return 0;
    p = pending_for(t, env, &object, &is_new);
    if (!p)
        return 0;
    if (t->wait.state == T_WAIT_THREAD)
        fair__env_note_time();
    if (!t->foreign)
        t->priv = enif_priv_data(env);
    term = pending_term(t, env, p, object);
    if (charged)
        fair__charge(env, &t->slice.debt_ns, false);
    ADD(t->stat->waits, 1);
    if (!t->kind->apart)
        t->wait.job.run = run_work;
    t->wait.job.func = t->func;
    t->wait.job.waits = false;
    t->wait.timed_out = false;
    t->vm_env = NULL;
    p->of_request = asks && !t->kind->apart;
    if (p->of_request) {
        p->task = t;
        t->wait.pending = p;
        fair__become(t, T_WAIT_CALLER);
    } else {
        begin_parked(t, env, p);
    }
    /* Few terms and no process to wake: not worth a look at the clock. */
    charged = charged && (!p->of_request || p->apart || copies);
    if (is_new)
        enif_release_resource(p);
    if (charged) {
        double parking = (double)(fair__now() - since);

        fair__charge(env, &parking, false);
    }
    return term;
}
