/*
 * wake.c - suspends a task that waits, and makes it ready again.
 *
 * What is decided about a task is decided under the waiting lock; messages are
 * sent and memory is freed without it.  After the lock was released a task that
 * was made ready belongs to its caller: it may have ended.
 */
#include "wait/wake.h"

#include "task/slice.h"
#include "task/switch.h"

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
    if (t->kind->apart && t->begun) {
        fair__become(t, T_WAIT_THREAD);
        t->wait.deadline_ns = 0;         /* it has begun */
        t->wait.job.waits = fair__is_waited_for(t);
        if (t->wait.job.waits)
            fair__pool_put_first(&t->wait.job);
        else
            fair__pool_put_back(&t->wait.job);
        w->kick = true;
        return;
    }
    fair__become(t, T_READY);
    fair__disarm(t->wait.pending, w);
}

/* -- from a body ---------------------------------------------------------- */

/* Does not return where the task cannot be suspended. */
void fair__may_wait(struct fair__task *t)
{
    if (t->where != W_THREAD && !t->nif->may_wait)
        fair__fail(t, "not_awaited");
}

/* From the task's stack: continues when the wait is over.  Errors of the
 * waiting itself do not come back here. */
void fair__wait_for(struct fair__task *t, enum fair__state state)
{
    fair__may_wait(t);
    t->wait.state = state;
    fair__go_waiting(t);
}

/* -- work for the pool, which must not lack memory -------------------------- */

void fair__put_job_back(struct fair__job *job)
{
    fair__wait_lock();
    fair__pool_put_back(job);
    fair__wait_unlock();
}


struct env_job {
    struct fair__job job;
    ErlNifEnv *env;
};

static void free_env_job(struct fair__job *job)
{
    struct env_job *j = (struct env_job *)job;      /* its first member */

    enif_free_env(j->env);
    enif_free(j);
}

void fair__free_env_elsewhere(ErlNifEnv *env)
{
    struct env_job *j = fair__blocks_others() && fair__pool_start()
        ? enif_alloc(sizeof *j) : NULL;

    if (!j) {
        enif_free_env(env);
        return;
    }
    *j = (struct env_job){.job.run = free_env_job, .env = env};
    fair__pool_give_first(&j->job);
}
