/*
 * strand.c - runs work in slices on its own stack, outside a NIF call: without
 * process or terms.  The owner decides whom to charge.
 *
 * A strand has a task's record, which task/slice.c and task/switch.c treat as
 * any other; what tells it is that it has no environment.  All strands have one
 * record of a function, which no registry knows: so they are in none of
 * fairnif:info/0, fairnif:tasks/0 and a watchdog's table.  One callback's units
 * are bytes, another's are rows, so each strand learns for itself.
 *
 * It belongs to who made it.  Nothing here takes a lock, or waits.
 *
 * Must never be done here: drop one that has begun.  Its frames are its
 * author's, and the runtime cannot free what they own.
 */
#include "life/strand.h"

#include "life/life.h"
#include "task/slice.h"
#include "task/stack.h"
#include "task/switch.h"

/* All that a strand may call. */
static const struct fair__ops ops = {
    .size = sizeof ops,
    .abi_major = FAIR_ABI_MAJOR,
    .abi_minor = FAIR_ABI_MINOR,
    .tick = fair__tick,
};

static void do_work(struct fair__task *t)
{
    t->wait.work(t->wait.work_arg);
}

/* These counts are never read; several threads write them and may lose one. */
static struct fair__fstat counts;
static struct fair__func function = {
    .module = "fairnif", .name = "strand", .mixed = true, .elsewhere = &counts
};
static struct fair__lib lib = {.ops = &ops};
static struct fair__nif nif = {
    .lib = &lib, .func = &function, .mode = FAIR_NORMAL, .yields = 1
};

static ERL_NIF_TERM put_aside(struct fair__task *t, struct fair__thread *th)
{
    (void)th;
    fair__become(t, T_SUSPENDED);
    return false;
}

static ERL_NIF_TERM over(struct fair__task *t, struct fair__thread *th)
{
    fair__become(t, T_FREE);
    fair__stack_give(th, t);
    return true;
}

static const struct fair__kind strand = {
    .left = {[X_DONE] = over, [X_PAUSE] = put_aside}, .apart = true
};

fair_task *fair__strand_new(void (*work)(void *), void *arg)
{
    struct fair__thread *th = fair__self();
    const char *error;
    struct fair__task *t = FAIR__TASKS && th
        ? fair__stack_take(th, FAIR__CLASS_DEFAULT, &error) : NULL;

    if (!t)
        return NULL;
    fair__task_init(t, &nif, th, &counts, NULL, 0, NULL);
    fair__become(t, T_SUSPENDED);
    t->kind = &strand;
    t->main = do_work;
    t->wait.work = work;
    t->wait.work_arg = arg;
    t->driver = "";
    t->slice.makes_terms = t->slice.at_par = false;
    return &t->pub;
}

void fair__strand_name(fair_task *pub, const char *name)
{
    fair__of(pub)->driver = name;
}

bool fair__strand_run(fair_task *pub)
{
    /* For a thread that has no record, for want of memory: no lock was seen. */
    static struct fair__thread no_record;
    struct fair__task *t = fair__of(pub);
    struct fair__thread *th = fair__self();
    struct fair__task *before;

    t->thread = th ? th : &no_record;
    fair__become(t, T_RUNNING);
    fair__next_slice(t);
    before = fair__runs_for(th, t);
    fair__switch_to(t);
    fair__runs_for(th, before);
    fair__slice_end(t);
    return t->kind->left[t->exit](t, th);
}
