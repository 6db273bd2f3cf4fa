/*
 * switch.c - switches to a task's stack and back.
 *
 * fair__switch_to runs on the stack of a scheduler or of a thread of the pool,
 * everything else here on a task's, but for run_outside.
 */
#include "task/switch.h"

#include "task/cancel.h"
#include "task/checkers.h"
#include "task/stack.h"
#include "thread/timer.h"

/* From the task's stack: back to the scheduler, because of `exit`.  The thread
 * that continues a body that cleans up may have cancelled it meanwhile. */
void fair__leave(struct fair__task *t, enum fair__exit exit)
{
    int locks = t->thread ? t->thread->locks : 0;

    if ((exit == X_RAISE || exit == X_DROP) && t->nif->cleans_up) {
        if (exit == X_DROP && t->thread && t->thread->is_low && !locks)
            fair__leave(t, X_PAR);      /* to clean up is to release locks */
        fair__cancel(t);
        fair__escape(t);
    }
    t->exit = exit;
    if (fair_unlikely(t->alarm.ring != NULL))
        fair__timer_stop(t->thread);
    if (fair_unlikely(locks > 0))
        t->thread->locks = 0;
    fair__check_leave(t, false);
    fair__arch_pause(&t->ctx);
    fair__check_resumed(t);
    if (fair_unlikely(locks > 0) && t->thread)
        t->thread->locks += locks;
    if (fair_unlikely(t->pub.cancelled))
        fair__escape(t);
}

/* Ends the call with error:{fairnif, {Error, Function}}; does not return. */
void fair__fail(struct fair__task *t, const char *error)
{
    if (!t->pub.cancelled)
        t->error = error;
    fair__leave(t, X_RAISE);
    __builtin_unreachable();
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

/* `th` is NULL where it has no record. */
bool fair__thread_has_room(const struct fair__thread *th,
                           const struct fair__task *t)
{
    return !th || th->stack_size >= fair__stack_size(t->stack_class);
}

static FAIR_NO_TSAN void switch_outside(struct fair__task *t,
                                        void (*fn)(void *), void *arg)
{
    struct outside o = {t, fn, arg};

    fair__check_leave(t, false);
    fair__arch_call(&t->ctx, run_outside, &o);
    fair__check_resumed(t);
}

/* From the task's stack: fn(arg) on the thread's own, which has room for a
 * library's needs; where its author asked for more, on the task's.  A pause in
 * it would leave a stack that is not the task's: there are no units for its
 * ticks. */
void fair__outside(struct fair__task *t, void (*fn)(void *), void *arg)
{
    uint64_t budget = t->pub.budget;

    t->away = AWAY_CALL;
    t->pub.budget = 0;
    if (fair_likely(fair__thread_has_room(t->thread, t)))
        switch_outside(t, fn, arg);
    else
        fn(arg);
    t->away = AWAY_NOT;
    t->pub.budget = budget;
}

static FAIR_NO_TSAN void body_main(void *arg)
{
    struct fair__task *t = arg;

    fair__check_begun(t);
    t->main(t);
    t->exit = X_DONE;
    fair__check_leave(t, true);
}

void fair__set_alarm(struct fair__task *t, uint64_t left_ns)
{
    fair__timer_set(t->thread, left_ns, t->alarm.ring, t->alarm.arg);
}

void fair__switch_to(struct fair__task *t)
{
    if (fair_unlikely(t->alarm.ring != NULL))
        fair__set_alarm(t, t->slice.ns);
    fair__check_enter(t);
    if (!t->begun) {
        t->begun = true;
        fair__arch_start(&t->ctx, body_main, t);
    } else {
        fair__arch_resume(&t->ctx);
    }
    fair__check_back(t);
}
