/*
 * vm_tsan.c - tells ThreadSanitizer of the runtime's switches of stacks.
 *
 * Only in a build with SANITIZE=thread, where the linker passes the calls of
 * the three functions of arch/ through here.  Nothing in this file may be
 * instrumented: it runs between one stack and the other.
 */
#include "../rt.h"

#if defined(__SANITIZE_THREAD__)

#define PLAIN __attribute__((no_sanitize("thread"), noinline))

enum { MOST = 1 << 12 };

void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

void __real_fair__arch_start(struct fair__ctx *, void (*)(void *), void *);
void __real_fair__arch_resume(struct fair__ctx *);
void __real_fair__arch_pause(struct fair__ctx *);
void __wrap_fair__arch_start(struct fair__ctx *, void (*)(void *), void *);
void __wrap_fair__arch_resume(struct fair__ctx *);
void __wrap_fair__arch_pause(struct fair__ctx *);

/* A task's fiber, and that of the scheduler which runs it. */
static struct fiber {
    struct fair__ctx *ctx;
    void *own, *scheduler;
    void (*fn)(void *);
    void *arg;
    bool ended;
} fibers[MOST];
static char busy;

static PLAIN struct fiber *fiber_of(struct fair__ctx *ctx)
{
    unsigned i = (unsigned)((uintptr_t)ctx >> 12) % MOST;

    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        ;
    while (fibers[i].ctx && fibers[i].ctx != ctx)
        i = (i + 1) % MOST;
    fibers[i].ctx = ctx;
    __atomic_clear(&busy, __ATOMIC_RELEASE);
    return &fibers[i];
}

static PLAIN void run_fiber(void *arg)
{
    struct fiber *f = arg;

    f->fn(f->arg);
    f->ended = true;
    __tsan_switch_to_fiber(f->scheduler, 0);
}

static PLAIN void end_fiber(struct fiber *f)
{
    if (f->ended) {
        __tsan_destroy_fiber(f->own);
        f->own = NULL;
        f->ended = false;
    }
}

/* One that was dropped has left its fiber behind. */
PLAIN void __wrap_fair__arch_start(struct fair__ctx *ctx, void (*fn)(void *),
                                   void *arg)
{
    struct fiber *f = fiber_of(ctx);

    if (f->own)
        __tsan_destroy_fiber(f->own);
    f->own = __tsan_create_fiber(0);
    f->scheduler = __tsan_get_current_fiber();
    f->fn = fn;
    f->arg = arg;
    __tsan_switch_to_fiber(f->own, 0);
    __real_fair__arch_start(ctx, run_fiber, f);
    end_fiber(f);
}

PLAIN void __wrap_fair__arch_resume(struct fair__ctx *ctx)
{
    struct fiber *f = fiber_of(ctx);

    f->scheduler = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->own, 0);
    __real_fair__arch_resume(ctx);
    end_fiber(f);
}

PLAIN void __wrap_fair__arch_pause(struct fair__ctx *ctx)
{
    __tsan_switch_to_fiber(fiber_of(ctx)->scheduler, 0);
    __real_fair__arch_pause(ctx);
}

#else

/* The file is empty otherwise, which C does not allow. */
typedef int vm__no_tsan;

#endif
