/*
 * end.c - ends a task and releases what it owns.
 *
 * On any thread: a task ends where it ran, where its caller's arguments are
 * freed, or where a pending value is.
 */
#include "life/end.h"

#include "base/config.h"
#include "base/os.h"
#include "life/listed.h"
#include "task/cancel.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/stack.h"
#include "task/switch.h"
#include "term/hold.h"
#include "thread/low.h"
#include "wait/lock.h"
#include "wait/park.h"
#include "wait/turn.h"
#include "wait/wait.h"

/* -- ends ----------------------------------------------------------------- */

/* Up to `most`, by weight.  Locks before the memory and the objects, which one
 * may lie in. */
static __attribute__((noinline)) unsigned release(struct fair__task *t,
                                                  unsigned most)
{
    most = fair__defers_run(t, most);
    most = fair__locks_release(t, most);
    return fair__hold_release(t, most);
}

/* Everything the task holds, locks too; nothing when it is called again. */
void fair__release_all(struct fair__task *t)
{
    if (fair__has_held(t) || t->hold.mutexes)
        release(t, UINT_MAX);
    if (fair_unlikely(t->wait.on.fd != NULL))
        fair__wait_end(t);
    if (fair_unlikely(t->hold.fds != NULL))
        fair__fds_release(t, UINT_MAX);
}

/* The same by and by, until the slice that began then is up: false when
 * something is left. */
bool fair__release_some(struct fair__task *t, uint64_t since)
{
    enum { STEP = 64 };         /* between looks at the clock: 2 us */
    unsigned left;

    do {
        left = release(t, STEP);
        if (left > 0)
            left = fair__fds_release(t, left);
    } while (left == 0 && !GET(fair__config.pause_every_tick)
             && !fair__slice_is_up(since));
    return left > 0;
}

/* -- what keeps the library ------------------------------------------------- */

static struct fair__handle *handle_of(const struct fair__task *t,
                                      struct fair__task *task)
{
    struct fair__handle *handle =
        enif_alloc_resource(t->nif->lib->type, sizeof *handle);

    if (handle)
        handle->task = task;
    return handle;
}

/* -- cleaning up ----------------------------------------------------------- */

/* Its body is on its stack still, and releases what lies there itself. */
static bool is_to_clean_up(const struct fair__task *t)
{
    return t->begun && (t->exit == X_PAUSE || t->exit == X_WAIT)
        && t->nif->cleans_up;
}

void fair__cleaned_up(struct fair__task *t)
{
    fair__cancel_over(t);
    t->exit = t->error ? X_RAISE : X_DROP;
}

static const struct fair__kind cleans_up = {.apart = true, .has_caller = true};

/* On a thread of the pool, whose record may be lacking.  False when the body
 * waits for a lock that others should release meanwhile. */
static bool clean_up(struct fair__task *t, struct fair__thread *th)
{
    struct fair__fstat *st = th ? fair__stat(th, t->func) : NULL;

    if (!t->own.argv)
        t->own.argv = t->inline_argv;
    if (!t->own.env)
        t->own.env = enif_alloc_env();
    t->kind = &cleans_up;
    t->pub.env = t->own.env;
    t->vm_env = NULL;
    t->pub.argc = 0;
    t->foreign = true;
    t->thread = th;
    t->stat = st ? st : t->func->elsewhere;
    t->where = W_THREAD;
    SET(t->target, W_THREAD);
    SET(t->wait.unwanted, true);
    fair__cancel(t);
    if (t->wait.on.fd)
        fair__wait_end(t);      /* others may wait for it from now on */
    if (th) {
        th->current = t;
        fair__slot_enter(th, t->func, GET(t->cancel.since_ns), t->pub.yields,
                         t->owner.pid);
    }
    fair__switch_to(t);
    if (th) {
        th->current = NULL;
        fair__slot_leave(th);
    }
    if (t->exit == X_PAUSE)
        return false;
    fair__cleaned_up(t);
    return true;
}

/* It has this thread until it is done. */
static void clean_up_here(struct fair__task *t, struct fair__thread *th)
{
    while (!clean_up(t, th))
        ;
}

void fair__clean_up(struct fair__task *t, struct fair__thread *th)
{
    if (is_to_clean_up(t))
        clean_up_here(t, th);
}

static void give_task(struct fair__task *t,
                      void (*run)(struct fair__job *job))
{
    t->wait.job.run = run;
    t->wait.job.func = NULL;    /* it says nothing of the function's calls */
    fair__pool_give_first(&t->wait.job);
}

static void cleanup_job(struct fair__job *job)
{
    struct fair__task *t = fair__task_of(job);
    struct fair__thread *th = fair__self();

    if (clean_up(t, th)) {
        fair__task_end(t, th);
        return;
    }
    /* For a lock, whose holder may be in the queue.  This thread looks next. */
    job->waits = fair__is_waited_for(t);
    fair__put_job_back(job);
}

/* Nothing but the task itself keeps the library from now on. */
static void pin_for_good(struct fair__task *t)
{
    if (t->pinned)
        return;
    if (t->handle) {
        enif_keep_resource(t->handle);
    } else {
        t->handle = t->cancel.spare;
        t->cancel.spare = NULL;
    }
    t->pinned = true;
}

/* Where it could not be suspended for want of memory it is in its caller's
 * call, which keeps the library, and the binaries that it read; and cleans up in
 * place.  Else never here: this may be a destructor, in whatever code on
 * whatever thread, also in a body. */
static void begin_cleanup(struct fair__task *t)
{
    bool in_place = !t->cancel.spare || (t->hold.terms && !t->kind->apart);

    if (t->cancel.spare)
        pin_for_good(t);
    fair__become(t, T_CLEANUP);
    if (in_place) {
        struct fair__thread *th = fair__self();

        clean_up_here(t, th);
        fair__task_end(t, th);
        return;
    }
    give_task(t, cleanup_job);    /* a thread is there: can_clean_up */
}

/* -- elsewhere -------------------------------------------------------------- */

static void end_job(struct fair__job *job)
{
    fair__task_end(fair__task_of(job), fair__self());
}

/* What it holds is released on the pool: here it would block a scheduler, for no
 * caller.  Until then the library is kept: it may have deferred functions.  In
 * the destructor of the handle another object of its type does that, since the
 * type is there still.  False: no memory, or no thread. */
static bool end_elsewhere(struct fair__task *t)
{
    if (!FAIR__TASKS || !t->kind->has_caller || !fair__blocks_others()
        || !fair__pool_start())
        return false;
    if (!t->handle && !t->cancel.spare)
        t->cancel.spare = handle_of(t, NULL);
    if (!t->handle && !t->cancel.spare)
        return false;
    pin_for_good(t);
    fair__delist(t);
    if (t->wait.on.fd)
        fair__wait_end(t);      /* others may wait for it from now on */
    t->pub.env = t->vm_env = NULL;      /* of a NIF call that is over */
    fair__become(t, T_ENDING);
    give_task(t, end_job);
    return true;
}

/* -- the end --------------------------------------------------------------- */

static __attribute__((noinline)) void free_own_env(struct fair__task *t)
{
    if (t->own.argv != t->inline_argv)
        enif_free(t->own.argv);
    t->own.argv = NULL;
    if (t->own.env)
        enif_free_env(t->own.env);
    t->own.env = NULL;
}

/* Everything the task holds is released; `th` is NULL where no tasks run.  Of a
 * body that has to clean up before, it is the begin of the end. */
void fair__task_end(struct fair__task *t, struct fair__thread *th)
{
    struct fair__handle *handle = t->handle, *spare = t->cancel.spare;
    bool pinned = t->pinned;

    if (fair_unlikely(is_to_clean_up(t))) {
        begin_cleanup(t);
        return;
    }
    if (fair_unlikely(fair__end_is_work(t)) && end_elsewhere(t))
        return;
    fair__release_all(t);
    fair__delist(t);
    if (t->counted)
        fair__dismiss(t->func, t->vm_env);
    if (fair_unlikely(t->own.argv != NULL))
        free_own_env(t);
    if (handle)
        handle->task = NULL;
    fair__become(t, T_FREE);
    fair__stack_give(th, t);
    /* It may have been the last of an author's library: at the very end. */
    if (fair_unlikely(pinned))
        enif_release_resource(handle);
    if (fair_unlikely(spare != NULL))
        enif_release_resource(spare);
}

/* Its caller died, or released its pending value; on any thread.  `env` is
 * that of a callback of the VM's, or NULL. */
void fair__drop_elsewhere(struct fair__task *t, ErlNifEnv *env)
{
    t->pub.env = t->vm_env = env;
    atomic_fetch_add(&t->func->elsewhere->cancels, 1);
    fair__task_end(t, NULL);
}

static void drop_handle(ErlNifEnv *env, void *obj)
{
    struct fair__task *t = ((struct fair__handle *)obj)->task;

    if (!t)
        return;
    t->handle = NULL;
    fair__drop_elsewhere(t, env);
}

/* The destructor of an author's task type.  On any thread, also ones that are
 * no schedulers; the author's code is still mapped, since the object's type
 * is his. */
void fair__handle_dtor(ErlNifEnv *env, void *obj)
{
    fair__dtor_at_par(drop_handle, env, obj);
}

/* -- what keeps a suspended task ------------------------------------------- */

/* Once it is suspended, nothing that cleaning up needs may be lacking.  On a
 * scheduler. */
static bool can_clean_up(struct fair__task *t)
{
    if (!t->foreign)
        t->priv = enif_priv_data(t->pub.env);
    fair__env_note_time();
    if (!t->cancel.spare)
        t->cancel.spare = fair__pool_start() ? handle_of(t, NULL) : NULL;
    return t->cancel.spare != NULL;
}

/* The resource object, with one reference that is the caller's to release. */
bool fair__handle_new(struct fair__task *t)
{
    if (FAIR__TASKS && fair_unlikely(t->nif->cleans_up) && !can_clean_up(t))
        return false;
    t->handle = handle_of(t, t);
    if (!t->handle)
        return false;
    fair__enlist(t);
    return true;
}

/* A pin keeps the author's library mapped while no term holds the handle. */
static bool pin(struct fair__task *t)
{
    if (t->pinned)
        return true;
    if (t->handle)
        enif_keep_resource(t->handle);
    else if (!fair__handle_new(t))
        return false;
    t->pinned = true;
    return true;
}

ERL_NIF_TERM fair__wait_or_end(struct fair__task *t, struct fair__thread *th,
                               enum fair__state state)
{
    ErlNifEnv *env = t->vm_env;
    ERL_NIF_TERM pending;

    t->wait.state = state;
    fair__become(t, T_PARKING);
    pending = pin(t) ? fair__park(t) : 0;
    if (fair_likely(pending != 0))
        return pending;
    fair__task_end(t, th);
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

ERL_NIF_TERM fair__end_in_error(struct fair__task *t, ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM error = fair__error_term(t, env);

    (void)argc, (void)argv;
    if (strcmp(t->error, "overloaded") == 0)
        atomic_fetch_add(&t->func->elsewhere->overloaded, 1);
    fair__task_end(t, NULL);
    return enif_raise_exception(env, error);
}
