/*
 * Switching between a scheduler's C stack and a task's with what the C library
 * has for it, for processors that have no file of their own here.
 *
 * It costs a system call each way, since swapcontext saves and sets the
 * signal mask; all scheduler threads have the same one, so nothing comes of
 * that.  perf and gdb see the task's stack only, not the scheduler behind it.
 *
 * ctx->sp and ctx->sched_sp point to the saved contexts, each of which lies on
 * the stack that it was saved from.
 */
#include <ucontext.h>

#include "task/arch/arch.h"

struct start {
    struct fair__ctx *ctx;
    void (*fn)(void *);
    void *arg;
};

/* Back on the scheduler's stack; as often as not to run a function here. */
static void run_calls(struct fair__ctx *ctx, ucontext_t *here)
{
    while (ctx->call) {
        const struct start *call = ctx->call;

        ctx->call = NULL;
        call->fn(call->arg);
        swapcontext(here, ctx->sp);
    }
}

/* makecontext passes ints: an address comes in two of them. */
static void begin_context(unsigned high, unsigned low)
{
    const struct start *start =
        (const struct start *)((uintptr_t)((uint64_t)high << 32 | low));
    struct fair__ctx *ctx = start->ctx;

    start->fn(start->arg);
    /* uc_link would lead to the scheduler that began the task; this is the
     * one that runs it now. */
    setcontext(ctx->sched_sp);
}

void fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
{
    ucontext_t here, task;
    struct start start = {ctx, fn, arg};
    uint64_t address = (uintptr_t)&start;

    getcontext(&task);
    /* Only where the stack begins matters: this much every stack has. */
    task.uc_stack.ss_sp = (char *)ctx->top - FAIR__STACK_MIN;
    task.uc_stack.ss_size = FAIR__STACK_MIN;
    task.uc_link = NULL;
    makecontext(&task, (void (*)(void))begin_context, 2, (unsigned)(address >> 32),
                (unsigned)address);
    ctx->sched_sp = &here;
    ctx->call = NULL;
    swapcontext(&here, &task);
    run_calls(ctx, &here);
}

void fair__arch_resume(struct fair__ctx *ctx)
{
    ucontext_t here;

    ctx->sched_sp = &here;
    swapcontext(&here, ctx->sp);
    run_calls(ctx, &here);
}

void fair__arch_pause(struct fair__ctx *ctx)
{
    ucontext_t here;

    ctx->sp = &here;
    swapcontext(&here, ctx->sched_sp);
}

void fair__arch_call(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
{
    struct start call = {ctx, fn, arg};

    ctx->call = &call;
    fair__arch_pause(ctx);
}
