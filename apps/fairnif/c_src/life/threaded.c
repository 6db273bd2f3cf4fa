/*
 * threaded.c - FAIR_THREADED: bodies that run on threads of the pool.
 *
 * Such a body has an environment of its own, with copies of its arguments, and
 * never comes back to its caller's process: what it comes to is sent there.
 * That environment is not collected: terms that the body makes stay until the
 * call ends.
 */
#include "life/threaded.h"

#include "base/os.h"
#include "life/end.h"
#include "life/run.h"
#include "task/debug.h"
#include "task/env.h"
#include "term/binary.h"
#include "term/copy.h"
#include "wait/wake.h"

/* -- on a thread of the pool ---------------------------------------------- */

/* What the call came to, in the task's own environment. */
static ERL_NIF_TERM answer_of(struct fair__task *t, bool *raises)
{
    ErlNifEnv *env = t->own.env;
    ERL_NIF_TERM reason;

    *raises = true;
    if (t->error)
        return fair__error_term(t, env);
    if (enif_has_pending_exception(env, &reason))
        return reason;
    if (!t->result) {
        fair__misuse(t, RULE_NO_TERM);
        return enif_make_atom(env, "badreturn");
    }
    *raises = false;
    return t->result;
}

enum { MAKING_NS = 200000 };    /* to free terms takes a tenth of the time that
                                   it took to make them */

/* From now on the environment is freed where that blocks no scheduler. */
static void env_weighs(struct fair__task *t)
{
    if (t->own.weighs)
        return;
    t->own.weighs = true;
    t->hold.weight += FAIR__END_IS_WORK + 1;
}

/* The task gets another environment; answers the old one, and whether that
 * weighs. */
static ErlNifEnv *change_env(struct fair__task *t, ErlNifEnv *env, bool *weighs)
{
    ErlNifEnv *old = t->own.env;

    t->own.env = env;
    *weighs = t->own.weighs;
    if (*weighs)
        t->hold.weight -= FAIR__END_IS_WORK + 1;
    t->own.weighs = false;
    t->own.ns = 0;
    return old;
}

/* A small result leaves an environment that weighs, which is answered then. */
static ErlNifEnv *leave_env(struct fair__task *t, ERL_NIF_TERM *result)
{
    ErlNifEnv *env;
    bool weighs;

    if (!t->own.weighs || !fair__term_is_small(t->own.env, *result)
        || !(env = enif_alloc_env()))
        return NULL;
    *result = enif_make_copy(env, *result);
    return change_env(t, env, &weighs);
}

/* A threaded call is over.  What the task held is released first: the caller
 * may rely on that.  The rest is left to the caller's next nif_await: memory
 * that a scheduler allocated and this thread freed, or vice versa, goes back
 * through the VM's delayed deallocation, and wakes a thread each time. */
static ERL_NIF_TERM answer(struct fair__task *t, struct fair__thread *th)
{
    bool raises;
    ERL_NIF_TERM result = answer_of(t, &raises);
    ErlNifEnv *left = leave_env(t, &result);
    struct fair__wake w = {0};
    struct fair__pending *p;

    t->pub.env = NULL;          /* no thread owns it from here on */
    fair__release_all(t);
    fair__wait_lock();
    p = t->wait.pending;
    if (p) {
        t->wait.pending = NULL;
        p->task = NULL;
        p->answer = t->own.env;
        p->result = result;
        p->raises = raises;
        p->weighs = t->own.weighs;
        p->handle = t->handle;
        p->handle->task = NULL;
        t->own.env = NULL;
        t->handle = NULL;
        t->pinned = false;
        fair__disarm(p, &w);
        fair__pool_ending(th);
    }
    fair__wait_unlock();
    fair__task_end(t, th);
    fair__wake_send(NULL, &w);
    if (left)
        enif_free_env(left);
    return 0;
}

static void count_making(struct fair__task *t)
{
    t->own.ns += fair__slice_took(t);
    if (t->own.ns >= MAKING_NS)
        env_weighs(t);
}

static ERL_NIF_TERM ended(struct fair__task *t, struct fair__thread *th)
{
    count_making(t);
    return answer(t, th);
}

static ERL_NIF_TERM left_body(struct fair__task *t, struct fair__thread *th)
{
    count_making(t);
    return fair__put_by(t, th);
}

/* No process awaits it any more. */
static ERL_NIF_TERM drop_body(struct fair__task *t, struct fair__thread *th)
{
    (void)th;
    /* Lets a thread that looks at it under the lock finish. */
    fair__wait_lock();
    fair__wait_unlock();
    fair__drop_elsewhere(t, NULL);
    return 0;
}

static void lacks_counters(struct fair__task *t, struct fair__thread *th)
{
    fair__become(t, T_RUNNING);
    t->error = "enomem";
    fair__clean_up(t, th);
    answer(t, th);
}

/* -- FAIR_THREADED begins ------------------------------------------------- */

bool fair__threaded_on_dirty(const struct fair__task *t)
{
    long left = FAIR__COPY_WORDS;

    return t->where == W_NORMAL
        && !fair__terms_fit(t->pub.env, t->pub.argv, t->pub.argc, &left);
}

/* -- what its caller answers ---------------------------------------------- */

enum { RENEW_WORDS = 512 };     /* of terms are copied at each answer: 1 us */

/* While it asks, a task has no terms but its arguments and roots.  So where
 * those are few it gets a new environment, and earlier terms and answers are
 * released.  When memory is out it keeps the one that it has. */
static void renew_env(struct fair__task *t)
{
    long left = RENEW_WORDS;
    ErlNifEnv *env;
    bool weighs;

    if (t->hold.weight > 2 * FAIR__END_IS_WORK  /* of binaries: a copy */
        || !fair__terms_fit(t->own.env, t->own.argv, t->pub.argc, &left)
        || !fair__terms_fit(t->own.env, t->hold.roots, t->hold.roots_used,
                            &left)
        || !fair__bins_pause(t) || !(env = enif_alloc_env()))
        return;
    for (unsigned i = 0; i < t->pub.argc; i++)
        t->own.argv[i] = enif_make_copy(env, t->own.argv[i]);
    for (unsigned i = 0; i < t->hold.roots_used; i++)
        t->hold.roots[i] = enif_make_copy(env, t->hold.roots[i]);
    env = change_env(t, env, &weighs);
    if (weighs)
        fair__free_env_elsewhere(env);
    else
        enif_free_env(env);
}

/* In nif_answer, of a task that asks: no other thread touches it. */
static void take_in(struct fair__task *t, ERL_NIF_TERM answer)
{
    renew_env(t);
    if (t->ask.root != FAIR__NO_ROOT)
        t->hold.roots[t->ask.root] = enif_make_copy(t->own.env, answer);
}

static const struct fair__kind threaded = {
    .left = {
        [X_DONE] = ended, [X_PAUSE] = left_body, [X_WAIT] = left_body,
        [X_RAISE] = ended, [X_DROP] = drop_body
    },
    .poor = lacks_counters,
    .drop = fair__drop_elsewhere,
    .resume = fair__end_in_error,
    .answered = take_in,
    .apart = true,
    .has_caller = true
};

static bool copy_arguments(struct fair__task *t)
{
    unsigned argc = t->pub.argc;

    t->own.argv = argc <= FAIR__INLINE_ARGS ? t->inline_argv
        : enif_alloc(argc * sizeof *t->own.argv);
    if (!t->own.argv)           /* which says that both are to be freed */
        return false;
    t->own.env = enif_alloc_env();
    if (!t->own.env)
        return false;
    if (t->where != W_NORMAL)   /* they were too large for there */
        env_weighs(t);
    for (unsigned i = 0; i < argc; i++)
        t->own.argv[i] = enif_make_copy(t->own.env, t->pub.argv[i]);
    return true;
}

/* On a scheduler: the body is given to the pool. */
ERL_NIF_TERM fair__begin_threaded(struct fair__task *t,
                                  struct fair__thread *th)
{
    ErlNifEnv *env = t->pub.env;
    uint64_t begin = fair__now();

    if (!copy_arguments(t)) {
        fair__task_end(t, th);
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    t->slice.debt_ns += (double)(fair__now() - begin);
    t->kind = &threaded;
    t->wait.job.run = fair__run_job;
    return fair__wait_or_end(t, th, T_WAIT_THREAD);
}
