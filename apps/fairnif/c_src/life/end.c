/*
 * end.c - the end of a task: what it holds is let go; and the list of those
 * that are suspended.
 *
 * On any thread: a task ends where it ran, where its caller's arguments are
 * freed, or where a pending value is.
 */
#include "life/end.h"

#include <stdlib.h>

#include "base/os.h"
#include "task/cancel.h"
#include "task/env.h"
#include "task/stack.h"
#include "task/switch.h"
#include "term/hold.h"
#include "wait/lock.h"
#include "wait/turn.h"
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

void fair__enlist(struct fair__task *t)
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

static bool is_outlived(const struct fair__task *t)
{
    return GET(t->is_process) && t->nif->lib != GET(t->func->newest)
        && t->nif->lib != GET(t->func->before);
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
                t->func, GET(t->state), GET(t->target), GET(t->since_ns),
                GET(t->cancelled_ns),
                __atomic_load_n(&t->pub.yields, __ATOMIC_RELAXED), t->owner,
                is_outlived(t)
            };
            room--;
        }
        pthread_mutex_unlock(&s->lock);
    }
    return all;
}

/* -- ends ----------------------------------------------------------------- */

static __attribute__((noinline)) void release(struct fair__task *t)
{
    fair__defers_run(t);
    /* Before the memory and the objects, which a lock may lie in. */
    if (t->holds)
        fair__locks_release(t);
    fair__hold_release(t);
}

/* Everything the task holds, locks too; nothing when it is called again. */
void fair__let_go(struct fair__task *t)
{
    if (fair__has_held(t) || t->holds)
        release(t);
    if (fair_unlikely(t->waits.fd != NULL))
        fair__wait_end(t);
    if (fair_unlikely(t->fds != NULL))
        fair__fds_release(t);
}

/* -- unwinding ------------------------------------------------------------- */

/* Its body is on its stack still, and lets go itself of what lies there. */
static bool is_to_clean_up(const struct fair__task *t)
{
    return t->begun && (t->exit == X_PAUSE || t->exit == X_WAIT)
        && t->nif->unwinds;
}

void fair__cleaned_up(struct fair__task *t)
{
    fair__cancel_over(t);
    t->exit = t->error ? X_RAISE : X_DROP;
}

/* On a thread of the pool, whose record may be lacking.  False when the body
 * waits for a lock that others should let go of meanwhile. */
static bool clean_up(struct fair__task *t, struct fair__thread *th)
{
    struct fair__fstat *st = th ? fair__stat(th, t->func) : NULL;

    if (!t->own_argv)
        t->own_argv = t->inline_argv;
    if (!t->own_env)
        t->own_env = enif_alloc_env();
    t->pub.env = t->own_env;
    t->pub.argc = 0;
    t->foreign = true;
    t->thread = th;
    t->stat = st ? st : t->func->elsewhere;
    t->where = W_THREAD;
    SET(t->target, W_THREAD);
    SET(t->unwanted, true);
    fair__cancel(t);
    if (t->waits.fd)
        fair__wait_end(t);      /* others may wait for it from now on */
    if (th) {
        th->current = t;
        fair__slot_enter(th, t->func, GET(t->cancelled_ns), t->pub.yields,
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

static void put_back(struct fair__task *t)
{
    fair__wait_lock();
    fair__pool_put_back(&t->job);
    fair__wait_unlock();
}

static void unwind_job(struct fair__job *job)
{
    struct fair__task *t = fair__task_of(job);
    struct fair__thread *th = fair__self();

    if (clean_up(t, th))
        fair__task_end(t, th);
    else
        put_back(t);            /* this thread looks next */
}

/* Nothing but the task itself keeps the library from now on. */
static void pin_for_good(struct fair__task *t)
{
    if (t->pinned)
        return;
    if (t->handle) {
        enif_keep_resource(t->handle);
    } else {
        t->handle = t->spare;
        t->spare = NULL;
    }
    t->pinned = true;
}

/* Where it could not be suspended for want of memory it is in its caller's
 * call, which keeps the library, and the binaries that it read; and cleans up in
 * place.  Else never here: this may be a destructor, in whatever code on
 * whatever thread, also in a body. */
static void begin_unwinding(struct fair__task *t)
{
    bool in_place = !t->spare || (t->terms && !t->own_env);

    if (t->spare)
        pin_for_good(t);
    fair__become(t, T_UNWINDS);
    if (in_place) {
        struct fair__thread *th = fair__self();

        clean_up_here(t, th);
        fair__task_end(t, th);
        return;
    }
    t->job.run = unwind_job;
    t->job.func = NULL;         /* it says nothing of the function's calls */
    t->job.waits = false;
    put_back(t);
    fair__pool_kick();          /* a thread is there: can_unwind */
}

/* -- the end --------------------------------------------------------------- */

static __attribute__((noinline)) void free_own_env(struct fair__task *t)
{
    if (t->own_argv != t->inline_argv)
        enif_free(t->own_argv);
    t->own_argv = NULL;
    if (t->own_env)
        enif_free_env(t->own_env);
    t->own_env = NULL;
}

/* Everything the task holds is let go; `th` is NULL where no tasks run.  Of a
 * body that has to clean up before, it is the begin of the end. */
void fair__task_end(struct fair__task *t, struct fair__thread *th)
{
    struct fair__handle *handle = t->handle, *spare = t->spare;
    bool pinned = t->pinned;

    if (fair_unlikely(is_to_clean_up(t))) {
        begin_unwinding(t);
        return;
    }
    fair__let_go(t);
    delist(t);
    if (t->counted)
        fair__dismiss(t->func, fair__vm_env(t));
    if (fair_unlikely(t->own_argv != NULL))
        free_own_env(t);
    if (handle)
        handle->task = NULL;
    fair__become(t, T_ENDED);
    fair__stack_give(th, t);
    /* It may have been the last of an author's library: at the very end. */
    if (fair_unlikely(pinned))
        enif_release_resource(handle);
    if (fair_unlikely(spare != NULL))
        enif_release_resource(spare);
}

/* Its caller died, or let go of its pending value; on any thread.  `env` is
 * that of a callback of the VM's, or NULL. */
void fair__drop_elsewhere(struct fair__task *t, ErlNifEnv *env)
{
    t->pub.env = env;
    atomic_fetch_add(&t->func->elsewhere->cancels, 1);
    fair__task_end(t, NULL);
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

/* -- what keeps a suspended task ------------------------------------------- */

static struct fair__handle *handle_of(const struct fair__task *t,
                                      struct fair__task *task)
{
    struct fair__handle *handle =
        enif_alloc_resource(t->nif->lib->type, sizeof *handle);

    if (handle)
        handle->task = task;
    return handle;
}

/* Once it is suspended, nothing that cleaning up needs may be lacking.  On a
 * scheduler. */
static bool can_unwind(struct fair__task *t)
{
    if (!t->foreign)
        t->priv = enif_priv_data(t->pub.env);
    fair__env_note_time();
    if (!t->spare)
        t->spare = fair__pool_start() ? handle_of(t, NULL) : NULL;
    return t->spare != NULL;
}

/* The resource object, with one reference that is the caller's to release. */
bool fair__handle_new(struct fair__task *t)
{
    if (FAIR__TASKS && fair_unlikely(t->nif->unwinds) && !can_unwind(t))
        return false;
    t->handle = handle_of(t, t);
    if (!t->handle)
        return false;
    if (!t->listed)
        fair__enlist(t);
    return true;
}

bool fair__pin(struct fair__task *t)
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
