/*
 * strand.c - work in slices on a stack of its own that is no call of a NIF: of
 * no process, with no terms, charged to whom its owner likes.
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
 * author's, and nobody could let go of what they hold.
 */
#include "life/strand.h"

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
    t->work(t->work_arg);
}

/* Nobody asks for these counts; several threads write them and may lose one. */
static struct fair__fstat counts;
static struct fair__func function = {
    .module = "fairnif", .name = "strand", .mixed = true, .elsewhere = &counts
};
static struct fair__nif nif = {.mode = FAIR_NORMAL};

fair_task *fair__strand_new(void (*work)(void *), void *arg)
{
    struct fair__thread *th = fair__self();
    const char *error;
    struct fair__task *t = FAIR__TASKS && th
        ? fair__stack_take(th, FAIR__CLASS_DEFAULT, &error) : NULL;

    if (!t)
        return NULL;
    t->pub = (struct fair_task){.ops = &ops};
    t->own_env = NULL;
    t->callback = NULL;
    SET(t->unwanted, false);
    t->nif = &nif;
    t->func = &function;
    t->stat = &counts;
    t->work = work;
    t->work_arg = arg;
    t->listed = false;
    t->where = W_NORMAL;
    t->begun = false;
    t->main = do_work;
    t->outbox = 0;
    t->yielding = true;
    t->made = 0;
    t->makes_terms = false;
    t->roots_used = 0;
    t->had_gap = false;
    t->unit_ns = 0;
    t->debt_ns = 0;
    t->units = 0;
    t->apart_ns = 0;
    t->error = NULL;
    t->away = false;
    t->ring = NULL;
    t->told = 0;
    return &t->pub;
}

bool fair__strand_run(fair_task *pub)
{
    /* For a thread that has no record, for want of memory: no lock was seen. */
    static struct fair__thread no_record;
    struct fair__task *t = fair__of(pub);
    struct fair__thread *th = fair__self();

    t->thread = th ? th : &no_record;
    fair__become(t, T_RUNS);
    fair__next_slice(t);
    fair__switch_to(t);
    fair__slice_end(t);
    if (t->exit == X_PAUSE) {
        fair__become(t, T_SUSPENDED);
        return false;
    }
    fair__become(t, T_ENDED);
    fair__stack_give(th, t);
    return true;
}
