/*
 * await.c - fairnif:await/1: continues a task that waited, or returns the
 * outcome of a threaded call.  See park.c.
 */
#include "wait/await.h"

#include "base/os.h"
#include "task/env.h"
#include "term/copy.h"
#include "term/hold.h"
#include "wait/lock.h"
#include "wait/park.h"
#include "wait/wait.h"

static ERL_NIF_TERM refuse_value(ErlNifEnv *env, const char *why)
{
    return enif_raise_exception(
        env, enif_make_tuple2(env, enif_make_atom(env, "fairnif"),
                              enif_make_atom(env, why)));
}

static bool is_own(ErlNifEnv *env, const struct fair__pending *p)
{
    ErlNifPid self;

    return enif_self(env, &self) && self.pid == p->owner.pid;
}

/* Of an object of the caller's: it was not asked for an answer again since. */
static bool is_latest(ErlNifEnv *env, const struct fair__pending *p,
                      ERL_NIF_TERM answers)
{
    unsigned n;

    return enif_get_uint(env, answers, &n) && n == p->answers;
}

/* NULL, or why it is refused.  A tuple that was made longer or shorter is
 * none, nor one with another tuple of roots: the task would take what is not
 * there for its arguments.  Only its owner may look at an object that is in use. */
static const char *get_value(ErlNifEnv *env, ERL_NIF_TERM term, bool asks,
                             struct fair__pending **p, int *arity,
                             const ERL_NIF_TERM **elems)
{
    ERL_NIF_TERM mark = asks ? fair__atoms.asks : fair__atoms.pending;
    int more = asks ? FAIR__REQUEST : 0;

    if (!enif_get_tuple(env, term, arity, elems) || *arity < 2 + more
        || !enif_is_identical((*elems)[0], mark)
        || !enif_get_resource(env, (*elems)[1], fair__pending_type,
                              (void **)p))
        return "not_pending";
    if (!is_own(env, *p))
        return "not_owner";
    if (*arity != (*p)->arity + more
        || ((*p)->apart && !fair__is_roots_apart(env, (*elems)[*arity - 1],
                                                 (unsigned)(*p)->apart)))
        return "not_pending";
    return !asks || is_latest(env, *p, (*elems)[3]) ? NULL : "awaited_before";
}

/* The caller's own, or NULL. */
static struct fair__pending *own_pending(ErlNifEnv *env, ERL_NIF_TERM term)
{
    struct fair__pending *p;
    const ERL_NIF_TERM *elems;
    int arity;

    return get_value(env, term, false, &p, &arity, &elems) ? NULL : p;
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
    t->pub.env = t->vm_env = env;
    t->foreign = true;
    fair__become(t, T_RUNNING);
    return t->kind->resume(t, env, arity - 2, elems + 2);
}

/* A threaded one, which no thread works at just now. */
static ERL_NIF_TERM asks(const struct fair__task *t, ErlNifEnv *env,
                         ERL_NIF_TERM object)
{
    return enif_make_tuple4(env, fair__atoms.asks, object,
                            enif_make_copy(env, t->ask.request),
                            enif_make_uint(env, t->wait.pending->answers));
}

/* What a threaded call came to.  A term without parts is copied;
 * the others go into a message, which costs no copy.  `handle` and `answer` are
 * the pending value's no more. */
static ERL_NIF_TERM take_answer(ErlNifEnv *env, ErlNifEnv *answer,
                                ERL_NIF_TERM result, bool raises,
                                ERL_NIF_TERM ref)
{
    ErlNifPid self;

    if (fair__has_no_parts(answer, result)) {
        result = enif_make_copy(env, result);
        enif_free_env(answer);
        return raises ? enif_raise_exception(env, result) : result;
    }
    result = enif_make_tuple3(answer, enif_make_copy(answer, ref),
                              enif_make_atom(answer, raises ? "raise"
                                             : "value"), result);
    fair__send_and_free(env, enif_self(env, &self), answer, result);
    return enif_make_tuple2(env, ref, enif_make_atom(env, "infinity"));
}

/* await(Pending, Ref) -> Value, maybe another pending one, or one that asks
 *                      | {Ref, Timeout}: ask again after {Ref, go} */
ERL_NIF_TERM fair__await(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct fair__pending *p;
    const ERL_NIF_TERM *elems;
    struct fair__task *t;
    ErlNifEnv *armed, *answer;
    struct fair__task *selects = NULL;
    struct fair__wake w = {0}, unsent = {0};
    ERL_NIF_TERM ref;
    uint64_t deadline = 0;
    const char *why;
    int arity;

    why = get_value(env, argv[0], false, &p, &arity, &elems);
    if (why)
        return refuse_value(env, why);
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
    if (t)
        fair__lock_awaited(t, &unsent);
    w.kick = unsent.kick;
    if (t && GET(t->state) == T_READY) {
        p->task = NULL;
        t->wait.pending = NULL;
    } else if (t && GET(t->state) == T_WAIT_CALLER) {
        fair__wait_unlock();
        enif_free_env(armed);
        if (p->of_request)
            return refuse_value(env, "not_pending");
        if (!fair__copy_on_dirty(t->own.env, t->ask.request))
            return asks(t, env, elems[1]);
        return enif_schedule_nif(env, "nif_await", ERL_NIF_DIRTY_JOB_CPU_BOUND,
                                 fair__await, argc, argv);
    } else if (t) {
        ErlNifEnv *before = p->armed;

        p->armed = armed;
        p->ref = ref;
        armed = before;
        if (fair__is_at_rest(t))
            deadline = t->wait.deadline_ns;
        if (fair__wait_begin(t, &w))
            selects = t;
        t = NULL;
    } else if (!answer) {
        fair__wait_unlock();
        enif_free_env(armed);
        return refuse_value(env, "awaited_before");
    }
    fair__wait_unlock();
    if (armed)
        enif_free_env(armed);
    if (unsent.env)
        enif_free_env(unsent.env);
    if (t)
        return resume(t, env, arity, elems);
    if (answer) {
        enif_release_resource(p->handle);
        p->handle = NULL;
        return take_answer(env, answer, p->result, p->raises, argv[1]);
    }
    if (selects)
        fair__wait_select(selects, env, argv[1]);
    fair__wake_send(env, &w);
    return wait_answer(env, argv[1], deadline);
}

/* The time that fairnif:await/1 was given is up; locked.  How many messages
 * with its reference are on their way. */
static unsigned expire(struct fair__task *t, struct fair__wake *w)
{
    struct fair__wake unsent = {0};
    int state = GET(t->state);

    if (state == T_READY || !t->wait.pending->armed)
        return 1;
    fair__disarm(t->wait.pending, w);
    if (!fair__is_at_rest(t) || !t->wait.deadline_ns
        || fair__now() < t->wait.deadline_ns)
        return 0;
    if (state == T_WAIT_TIME) {
        t->wait.timed_out = true;
        fair__make_ready(t, &unsent);
        w->kick = unsent.kick;
    } else if (state == T_WAIT_TURN || state == T_WAIT_THREAD) {
        fair__stop_waiting(t);
        t->error = "overloaded";
    }
    t->wait.deadline_ns = 0;
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

/* -- what a task asked for -------------------------------------------------- */

/* The object's task, which waits for an answer, or NULL.  Until its owner gives one
 * it stays so: no other thread has it. */
static struct fair__task *asking(struct fair__pending *p)
{
    struct fair__task *t;

    if (p->of_request)
        return p->task;
    fair__wait_lock();
    t = p->task;
    if (t && GET(t->state) != T_WAIT_CALLER)
        t = NULL;
    fair__wait_unlock();
    return t;
}

/* asked(Asks, Process) -> Request; Process is `process' where the caller is a
 * native process, and the task its body.
 * Calls are made of a request.  So what did not come from a task of the caller's
 * is refused, and what was answered before. */
ERL_NIF_TERM fair__asked(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct fair__pending *p;
    const ERL_NIF_TERM *elems;
    struct fair__task *t;
    const char *why;
    int arity;

    (void)argc;
    why = get_value(env, argv[0], true, &p, &arity, &elems);
    if (why)
        return refuse_value(env, why);
    t = asking(p);
    if (!t)
        return refuse_value(env, "awaited_before");
    if (enif_is_identical(argv[1], enif_make_atom(env, "process")))
        SET(t->is_process, true);
    return elems[2];
}

/* The answer goes into its root. */
static ERL_NIF_TERM resume_answered(struct fair__task *t, ErlNifEnv *env,
                                    struct fair__pending *p,
                                    const ERL_NIF_TERM *elems,
                                    ERL_NIF_TERM answer)
{
    ERL_NIF_TERM next[2 + FAIR__MAX_ARITY + FAIR__INLINE_ROOTS];
    ERL_NIF_TERM *roots = next + 2 + t->pub.argc;
    bool wanted = t->ask.root != FAIR__NO_ROOT;

    memcpy(next + 2, elems + FAIR__REQUEST + 2,
           (size_t)(p->arity - 2) * sizeof *next);
    if (wanted && !p->apart) {
        roots[t->ask.root] = answer;
    } else if (wanted) {
        fair__roots_in(t, env, roots);
        t->hold.roots[t->ask.root] = answer;
        fair__roots_out(t, env, roots);
    }
    if (GET(t->target) == W_NORMAL) {
        t->ask.by = p;
        t->ask.by_term = elems[1];
    }
    return resume(t, env, p->arity, next);
}

/* answer(Asks, Outcome, Answer) -> Value, maybe another pending one, or one that
 * asks.  Outcome is 1, or 0: nothing came, it failed. */
ERL_NIF_TERM fair__answer(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct fair__pending *p;
    const ERL_NIF_TERM *elems;
    struct fair__wake w = {0};
    struct fair__task *t;
    const char *why;
    int arity, outcome;

    why = get_value(env, argv[0], true, &p, &arity, &elems);
    if (why)
        return refuse_value(env, why);
    if (!enif_get_int(env, argv[1], &outcome))
        return enif_make_badarg(env);
    t = asking(p);
    if (!t)
        return refuse_value(env, "awaited_before");
    if (!p->of_request && fair__copy_on_dirty(env, argv[2]))
        return enif_schedule_nif(env, "nif_answer", ERL_NIF_DIRTY_JOB_CPU_BOUND,
                                 fair__answer, argc, argv);
    p->answers++;
    t->wait.timed_out = !outcome;
    if (p->of_request) {
        fair__become(t, T_READY);
        p->task = NULL;
        t->wait.pending = NULL;
        return resume_answered(t, env, p, elems, argv[2]);
    }
    t->kind->answered(t, argv[2]);
    fair__wait_lock();
    fair__make_ready(t, &w);
    fair__wait_unlock();
    fair__wake_send(env, &w);
    return enif_make_tuple2(env, fair__atoms.pending, elems[1]);
}
