/*
 * checkers.h - what AddressSanitizer, ThreadSanitizer and valgrind must know
 * of tasks: where their stacks are, which of them a thread is on, and which
 * are dead.
 *
 * Everything here is empty unless the runtime is compiled with
 * -fsanitize=address or =thread, or with -DFAIR_VALGRIND, which needs
 * valgrind's headers.
 *
 * A pooled stack has no task: its frames, and what the record says of its last
 * task, are out of bounds until it is taken again, and then without a value.
 */
#ifndef FAIR_CHECKERS_H
#define FAIR_CHECKERS_H

#include "task/task.h"

#ifdef FAIR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FAIR_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef FAIR_VALGRIND
#include <valgrind/memcheck.h>
#endif

/* For functions that begin on one stack and end on another: ThreadSanitizer
 * counts calls and returns of each. */
#ifdef FAIR_TSAN
#define FAIR_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define FAIR_NO_TSAN
#endif

/* -- a stack's life ------------------------------------------------------- */

static inline char *fair__check_low(struct fair__task *t)
{
    return t->map + FAIR__GUARD;
}

static inline void fair__check_mapped(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_VALGRIND
    t->check.stack_id = VALGRIND_STACK_REGISTER(fair__check_low(t),
                                                (char *)t - 1);
    (void)VALGRIND_MAKE_MEM_NOACCESS(fair__check_low(t),
                                     (char *)t - fair__check_low(t));
#endif
}

#ifdef FAIR_TSAN
/* To make one takes longer than a test's call.  It stays with the stack, unless
 * there are calls on it that never returned: of a task that was dropped, or left
 * frames by a longjmp, which every so often one did. */
enum { FAIR__FIBER_USES = 256 };

static inline void fair__check_drop_fiber(struct fair__task *t)
{
    if (t->check.fiber)
        __tsan_destroy_fiber(t->check.fiber);
    t->check.fiber = NULL;
    t->check.fiber_uses = 0;
}
#endif

static inline void fair__check_unmapped(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_TSAN
    fair__check_drop_fiber(t);
#endif
#ifdef FAIR_ASAN
    __asan_unpoison_memory_region(fair__check_low(t),
                                  t->map_size - FAIR__GUARD);
#endif
#ifdef FAIR_VALGRIND
    VALGRIND_STACK_DEREGISTER(t->check.stack_id);
#endif
}

/* What a task has of its own in its record begins with `nif`. */
enum { FAIR__OWN = sizeof(struct fair__task)
                    - offsetof(struct fair__task, nif) };

static inline void fair__check_taken(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_ASAN
    __asan_unpoison_memory_region(fair__check_low(t),
                                  t->map_size - FAIR__GUARD);
#endif
#ifdef FAIR_VALGRIND
    (void)VALGRIND_MAKE_MEM_UNDEFINED(&t->nif, FAIR__OWN);
    /* Of the last task it says that it has ended. */
    (void)VALGRIND_MAKE_MEM_DEFINED(&t->state, sizeof t->state);
    /* What lies below the stack pointer is out of bounds anyhow; but the
     * first frame record is written before it points there, and a leaf
     * function's red zone lies below it. */
    (void)VALGRIND_MAKE_MEM_UNDEFINED((char *)t - 512, 512);
#endif
}

/* Also for the stack of a dropped task, whose frames never returned. */
static inline void fair__check_given(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_ASAN
    __asan_poison_memory_region(fair__check_low(t),
                                (size_t)((char *)t - fair__check_low(t)));
    __asan_poison_memory_region(&t->nif, FAIR__OWN);
#endif
#ifdef FAIR_TSAN
    if (!t->check.returned || ++t->check.fiber_uses > FAIR__FIBER_USES)
        fair__check_drop_fiber(t);
    t->check.returned = false;
#endif
#ifdef FAIR_VALGRIND
    (void)VALGRIND_MAKE_MEM_NOACCESS(fair__check_low(t),
                                     (char *)t - fair__check_low(t));
    (void)VALGRIND_MAKE_MEM_NOACCESS(&t->nif, FAIR__OWN);
#endif
}

/* -- switches --------------------------------------------------------------- */

/* On the scheduler's stack, before and after a slice.  Valgrind sees by itself
 * which of the stacks that it knows the stack pointer is on. */
static inline FAIR_NO_TSAN void fair__check_enter(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_ASAN
    __sanitizer_start_switch_fiber(
        &t->check.sched_fake, fair__check_low(t),
        (size_t)((char *)t - fair__check_low(t)));
#endif
#ifdef FAIR_TSAN
    if (!t->check.fiber)
        t->check.fiber = __tsan_create_fiber(0);
    t->check.sched_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(t->check.fiber, 0);
#endif
}

static inline void fair__check_back(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_ASAN
    __sanitizer_finish_switch_fiber(t->check.sched_fake, NULL, NULL);
#endif
}

/* On the task's stack: it has begun. */
static inline void fair__check_begun(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_ASAN
    __sanitizer_finish_switch_fiber(NULL, &t->check.sched_bottom,
                                    &t->check.sched_size);
#endif
}

/* On the task's stack, before it is left (`for_good`: its frames are gone),
 * and after a pause. */
static inline FAIR_NO_TSAN void fair__check_leave(struct fair__task *t,
                                                  bool for_good)
{
    (void)t, (void)for_good;
#ifdef FAIR_ASAN
    __sanitizer_start_switch_fiber(for_good ? NULL : &t->check.fake,
                                   t->check.sched_bottom,
                                   t->check.sched_size);
#endif
#ifdef FAIR_TSAN
    t->check.returned = for_good;
    __tsan_switch_to_fiber(t->check.sched_fiber, 0);
#endif
}

static inline void fair__check_resumed(struct fair__task *t)
{
    (void)t;
#ifdef FAIR_ASAN
    __sanitizer_finish_switch_fiber(t->check.fake, &t->check.sched_bottom,
                                    &t->check.sched_size);
#endif
}

#endif
