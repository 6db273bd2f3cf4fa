/*
 * No switch at all, for systems on which tasks cannot have stacks of their
 * own.  A task is then only a record; its body runs as a plain dirty NIF does,
 * on a dirty scheduler's stack from begin to end.  It never pauses; the one
 * way out but returning is that its caller died: fair__arch_pause then leaves
 * the body's frames behind, as a dropped task's are left elsewhere.
 *
 * Stands in for stack.c and overflow.c as well.  C and the VM's functions only.
 */
#include <setjmp.h>

#include "task/arch/arch.h"
#include "task/stack.h"

/* -- the way out ----------------------------------------------------------*/

void fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
{
    jmp_buf out;

    ctx->sched_sp = &out;
    if (setjmp(out) == 0)
        fn(arg);
}

void fair__arch_pause(struct fair__ctx *ctx)
{
    longjmp(*(jmp_buf *)ctx->sched_sp, 1);
}

void fair__arch_resume(struct fair__ctx *ctx)
{
    (void)ctx;                  /* nothing ever pauses */
}

void fair__arch_call(struct fair__ctx *ctx, void (*fn)(void *), void *arg)
{
    (void)ctx;
    fn(arg);
}

/* -- records without stacks -------------------------------------------------*/

static fair__u64 records;

unsigned fair__stack_class(size_t size)
{
    (void)size;
    return 0;
}

size_t fair__stack_size(unsigned stack_class)
{
    (void)stack_class;
    return 0;
}

struct fair__task *fair__stack_take(struct fair__thread *th,
                                    unsigned stack_class, const char **error)
{
    struct fair__task *t = enif_alloc(sizeof *t);

    (void)th, (void)stack_class;
    if (!t) {
        *error = "enomem";
        return NULL;
    }
    t->map = (char *)t;
    SET(t->state, T_FREE);
    atomic_fetch_add(&records, 1);
    return t;
}

void fair__stack_give(struct fair__thread *th, struct fair__task *t)
{
    (void)th;
    enif_free(t);
    atomic_fetch_sub(&records, 1);
}

struct fair__stack_counts fair__stack_counts(void)
{
    return (struct fair__stack_counts){
        .mapped = GET(records), .guard = "none", .handler = "none"
    };
}

int fair__stack_init(void)
{
    return 0;
}
