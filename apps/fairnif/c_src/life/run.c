/*
 * run.c - one slice of a task, on a scheduler or on a thread of the pool.
 */
#include "life/run.h"

#include "base/config.h"
#include "life/end.h"
#include "life/listed.h"
#include "wait/park.h"
#include "task/call.h"
#include "task/cancel.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/stint.h"
#include "task/switch.h"

enum fair__state fair__queued_as(enum fair__where where)
{
    return where == W_NORMAL ? T_SUSPENDED
        : where == W_THREAD ? T_PARKING : T_QUEUED;
}

/* The body has returned or raised, and what it sent last is here still.  Its roots
 * are not needed any more.  The caller may die while it sends that. */
static void send_last(struct fair__task *t)
{
    struct fair__escape here = {0};
    const bool raises = t->ask.raised != 0;

    if (!(raises || t->result)
        || enif_has_pending_exception(t->pub.env, NULL))
        return;
    if (!raises)
        fair__term_in(t, t->result);
    t->hold.roots[0] = raises ? t->ask.raised : t->result;
    t->hold.roots_used = 1;
    t->ask.raised = 0;
    t->cancel.escape = &here;
    if (FAIR__SETJMP(here.out) == 0) {
        fair__hand_out(t);
        t->result = fair__term_out(t, t->hold.roots[0]);
        if (raises)
            t->result = enif_raise_exception(t->pub.env, t->result);
    }
    t->cancel.escape = NULL;
}

void fair__run_body(struct fair__task *t)
{
    t->result = t->nif->body(&t->pub);
    if (fair_unlikely(t->alarm.ring != NULL))
        fair__alarm(&t->pub, NULL, NULL);   /* what it rang is not there any more */
    if (fair_unlikely(t->ask.outbox != 0))
        send_last(t);
}

/* Each thread has a clock of its own for the time of a processor: between two
 * of them the window's begin stands as how much of that it has used. */
static void change_clock(struct fair__task *t)
{
    if (fair_unlikely(t->slice.cpu_start != 0))
        t->slice.cpu_win = fair__cpu_now() - t->slice.cpu_win;
}

static void switch_to(void *task)
{
    struct fair__task *t = task;

    change_clock(t);
    fair__switch_to(t);
    change_clock(t);
}

static void enter(struct fair__task *t, struct fair__thread *th)
{
    th->current = t;
    fair__slot_enter(th, t->func, GET(t->since_ns), t->pub.yields,
                     t->owner.pid);
}

/* Of the pool: onto the task's stack and back; the thread that is seen to run it. */
static struct fair__thread *on_thread(struct fair__task *t,
                                      struct fair__thread *th)
{
    struct fair__stint s =
        fair__stint_begin(t, th, t->pub.yields > 0 && t->exit == X_PAUSE);
    struct fair__used used;

    enter(t, s.at);
    t->slice.at_par = false;
    if (s.low) {
        t->thread = s.at;
        change_clock(t);
        fair__low_run(s.low, switch_to, t);
        change_clock(t);
        t->thread = th;
    } else {
        fair__switch_to(t);
    }
    if (t->exit == X_PAR) {
        enter(t, th);
        s.at->current = NULL;
        fair__slot_leave(s.at);
        s.at = th;
        fair__stint_at_par(&s);
        t->slice.at_par = true;
        fair__switch_to(t);
    }
    used = fair__stint_used(&s);
    t->slice.own_ns = fair__used_by_itself(&used);
    fair__stint_learn(t, &s, &used, t->exit == X_PAUSE);
    return s.at;
}

ERL_NIF_TERM fair__run(struct fair__task *t, struct fair__thread *th)
{
    struct fair__thread *at = th;
    bool dirty_cpu = t->where == W_DIRTY_CPU;

    if (dirty_cpu)
        atomic_fetch_add(&fair__config.dirty_running, 1);
    if (th->where == W_THREAD) {
        at = on_thread(t, th);
    } else {
        enter(t, th);
        fair__switch_to(t);
    }
    at->current = NULL;
    if (t->exit == X_DONE) {
        if (fair_unlikely(t->pub.cancelled))
            fair__cleaned_up(t);
        else
            fair__term_in(t, t->result);
    }
    if (t->exit == X_PAUSE || t->exit == X_WAIT) {
        /* Seen as suspended before it is no longer seen as running. */
        fair__become(t, t->exit == X_WAIT ? T_PARKING
                     : fair__queued_as(t->slice.hop ? W_NORMAL
                                       : GET(t->target)));
        fair__enlist(t);
        ADD(t->stat->yields, t->exit == X_PAUSE);
    }
    fair__slot_leave(at);
    if (dirty_cpu)
        atomic_fetch_sub(&fair__config.dirty_running, 1);
    fair__slice_end(t);
    return t->kind->left[t->exit](t, th);
}

/* -- tasks that are apart ------------------------------------------------- */

/* In a callback of the VM's, or on a thread of the pool. */
void fair__run_apart(struct fair__task *t, struct fair__thread *th)
{
    t->where = t->vm_env ? th->where : W_THREAD;
    SET(t->target, t->where);
    t->pub.env = t->own.env;
    t->pub.argv = t->own.argv;
    t->foreign = true;
    fair__next_slice(t);
    fair__run(t, th);
}

void fair__run_job(struct fair__job *job)
{
    struct fair__task *t = fair__task_of(job);
    struct fair__thread *th = fair__self();
    struct fair__fstat *st = th ? fair__stat(th, t->func) : NULL;

    if (!st) {
        t->kind->poor(t, th);
        return;
    }
    fair__become(t, T_RUNNING);
    t->thread = th;
    t->stat = st;
    fair__run_apart(t, th);
}

ERL_NIF_TERM fair__put_by(struct fair__task *t, struct fair__thread *th)
{
    struct fair__wake w = {.kick = t->vm_env != NULL};
    bool wanted;

    if (t->vm_env)
        fair__env_note_time();      /* for threads of the pool */
    t->vm_env = NULL;
    fair__wait_lock();
    wanted = !GET(t->wait.unwanted);
    if (wanted && t->exit == X_PAUSE) {
        fair__become(t, T_WAIT_THREAD);
        t->wait.deadline_ns = 0;
        t->wait.job.waits = fair__is_waited_for(t);
        fair__pool_put_back(&t->wait.job);   /* a thread looks next */
    } else if (wanted) {
        fair__begin_waiting(t, &w);
    }
    fair__wait_unlock();
    if (!wanted)
        return t->kind->left[X_DROP](t, th);
    fair__wake_send(NULL, &w);
    return 0;
}
