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
#include "life/park.h"
#include "life/run.h"
#include "task/debug.h"
#include "task/env.h"
#include "term/binary.h"

/* -- on a thread of the pool ---------------------------------------------- */

/* What the call came to, in the task's own environment. */
static ERL_NIF_TERM answer_of(struct fair__task *t, bool *raises)
{
    ErlNifEnv *env = t->own_env;
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

/* A threaded call is over.  What the task held is let go first: the caller may
 * rely on that.  The rest is left to the caller's next nif_await: memory that a
 * scheduler allocated and this thread freed, or the other way round, goes back
 * by way of the VM's delayed deallocation, and wakes a thread each time. */
static void answer(struct fair__task *t)
{
    struct fair__thread *th = fair__self();
    bool raises;
    ERL_NIF_TERM result = answer_of(t, &raises);
    struct fair__wake w = {0};
    struct fair__pending *p;

    t->pub.env = NULL;          /* from here on it is nobody's */
    fair__let_go(t);
    fair__wait_lock();
    p = t->pending;
    if (p) {
        t->pending = NULL;
        p->task = NULL;
        p->answer = t->own_env;
        p->result = result;
        p->raises = raises;
        p->handle = t->handle;
        p->handle->task = NULL;
        t->own_env = NULL;
        t->handle = NULL;
        t->pinned = false;
        fair__disarm(p, &w);
        fair__pool_ending(th);
    }
    fair__wait_unlock();
    fair__task_end(t, th);
    fair__wake_send(NULL, &w);
}

/* The body paused or waits: false when nobody wants it any more. */
static bool put_by(struct fair__task *t)
{
    struct fair__wake w = {0};
    bool wanted;

    fair__wait_lock();
    wanted = t->pending != NULL;
    if (wanted && t->exit == X_PAUSE) {
        fair__become(t, T_POOL);
        t->deadline_ns = 0;
        fair__pool_put_back(&t->job);   /* this thread looks next */
    } else if (wanted) {
        fair__begin_waiting(t, &w);
    }
    fair__wait_unlock();
    if (wanted)
        fair__wake_send(NULL, &w);
    return wanted;
}

static void run_body(struct fair__job *job)
{
    struct fair__task *t = fair__task_of(job);
    struct fair__thread *th = fair__self();
    struct fair__fstat *st = th ? fair__stat(th, t->func) : NULL;

    fair__become(t, T_RUNS);
    if (!st) {
        t->error = "enomem";
        fair__clean_up(t, th);
        answer(t);
        return;
    }
    t->thread = th;
    t->stat = st;
    fair__thread_slice(t, th);
    switch (t->exit) {
    case X_PAUSE:
        ADD(st->yields, 1);
        /* fall through */
    case X_WAIT:
        if (put_by(t))
            return;
        /* fall through */
    case X_DROP:
        /* Whoever looked at it under the lock has done so. */
        fair__wait_lock();
        fair__wait_unlock();
        ADD(st->cancels, 1);
        t->pub.env = NULL;
        fair__task_end(t, th);
        break;
    default:
        answer(t);
    }
}

/* -- FAIR_THREADED begins ------------------------------------------------- */

enum {
    COPY_WORDS = 4096,          /* of terms are copied in place: some 10 us */
    COPY_DEPTH = 64,
    RENEW_WORDS = 512           /* of terms are copied at each answer: 1 us */
};

/* Takes the size of a term, in words as far as matters, off *left; false when
 * there is not so much. */
static bool fits(ErlNifEnv *env, ERL_NIF_TERM term, unsigned depth, long *left)
{
    ERL_NIF_TERM head, value;
    const ERL_NIF_TERM *elems;
    int arity;

    if (--*left < 0 || depth == 0)
        return false;
    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_LIST:
        while (enif_get_list_cell(env, term, &head, &term))
            if (--*left < 0 || !fits(env, head, depth - 1, left))
                return false;
        return true;
    case ERL_NIF_TERM_TYPE_TUPLE:
        enif_get_tuple(env, term, &arity, &elems);
        for (int i = 0; i < arity; i++)
            if (!fits(env, elems[i], depth - 1, left))
                return false;
        return true;
    case ERL_NIF_TERM_TYPE_MAP: {
        ErlNifMapIterator iter;
        bool fit = true;

        if (!enif_map_iterator_create(env, term, &iter,
                                      ERL_NIF_MAP_ITERATOR_FIRST))
            return false;
        while (fit && enif_map_iterator_get_pair(env, &iter, &head, &value)) {
            fit = fits(env, head, depth - 1, left)
                && fits(env, value, depth - 1, left);
            enif_map_iterator_next(env, &iter);
        }
        enif_map_iterator_destroy(env, &iter);
        return fit;
    }
    case ERL_NIF_TERM_TYPE_FUN:     /* what it holds cannot be seen */
        return false;
    default:
        return true;
    }
}

/* The VM copies a term in one go. */
static bool all_fit(ErlNifEnv *env, const ERL_NIF_TERM *terms, unsigned count,
                    long *left)
{
    for (unsigned i = 0; i < count; i++)
        if (!fits(env, terms[i], COPY_DEPTH, left))
            return false;
    return true;
}

bool fair__threaded_on_dirty(const struct fair__task *t)
{
    long left = COPY_WORDS;

    return t->where == W_NORMAL
        && !all_fit(t->pub.env, t->pub.argv, t->pub.argc, &left);
}

/* -- what its caller answers ---------------------------------------------- */

bool fair__copy_on_dirty(ErlNifEnv *env, ERL_NIF_TERM term)
{
    long left = COPY_WORDS;

    return enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER
        && !fits(env, term, COPY_DEPTH, &left);
}

/* While it asks, a task has no terms but its arguments and roots.  So where those
 * are few it gets a new environment, and what it made and was answered before is
 * let go.  When memory is out it keeps the one that it has. */
static void renew_env(struct fair__task *t)
{
    long left = RENEW_WORDS;
    ErlNifEnv *env;

    if (!all_fit(t->own_env, t->own_argv, t->pub.argc, &left)
        || !all_fit(t->own_env, t->roots, t->roots_used, &left)
        || !fair__bins_pause(t) || !(env = enif_alloc_env()))
        return;
    for (unsigned i = 0; i < t->pub.argc; i++)
        t->own_argv[i] = enif_make_copy(env, t->own_argv[i]);
    for (unsigned i = 0; i < t->roots_used; i++)
        t->roots[i] = enif_make_copy(env, t->roots[i]);
    enif_free_env(t->own_env);
    t->own_env = env;
}

/* In nif_answer, of a task that asks: nobody else touches it. */
void fair__threaded_answer(struct fair__task *t, ERL_NIF_TERM answer)
{
    renew_env(t);
    if (t->answer_root != FAIR__NO_ROOT)
        t->roots[t->answer_root] = enif_make_copy(t->own_env, answer);
}

static bool copy_arguments(struct fair__task *t)
{
    unsigned argc = t->pub.argc;

    t->own_argv = argc <= FAIR__INLINE_ARGS ? t->inline_argv
        : enif_alloc(argc * sizeof *t->own_argv);
    if (!t->own_argv)           /* which says that both are to be freed */
        return false;
    t->own_env = enif_alloc_env();
    if (!t->own_env)
        return false;
    for (unsigned i = 0; i < argc; i++)
        t->own_argv[i] = enif_make_copy(t->own_env, t->pub.argv[i]);
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
    t->debt_ns += (double)(fair__now() - begin);
    t->job.run = run_body;
    return fair__park(t, th, T_POOL);
}

/* -- its answer ----------------------------------------------------------- */

/* In nif_await: what a threaded call came to.  A term without parts is copied;
 * the others go into a message, which costs no copy.  `handle` and `answer` are
 * the pending value's no more. */
ERL_NIF_TERM fair__take_answer(ErlNifEnv *env, ErlNifEnv *answer,
                               ERL_NIF_TERM result, bool raises,
                               ERL_NIF_TERM ref)
{
    ErlNifPid self;

    switch (enif_term_type(answer, result)) {
    case ERL_NIF_TERM_TYPE_LIST:
    case ERL_NIF_TERM_TYPE_TUPLE:
    case ERL_NIF_TERM_TYPE_MAP:
        result = enif_make_tuple3(answer, enif_make_copy(answer, ref),
                                  enif_make_atom(answer, raises ? "raise"
                                                 : "value"), result);
        fair__send_and_free(env, enif_self(env, &self), answer, result);
        return enif_make_tuple2(env, ref, enif_make_atom(env, "infinity"));
    default:
        result = enif_make_copy(env, result);
        enif_free_env(answer);
        return raises ? enif_raise_exception(env, result) : result;
    }
}
