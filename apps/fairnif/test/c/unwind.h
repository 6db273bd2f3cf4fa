/*
 * unwind.h - functions of all modes with FAIR_CLEANUP, and calls of them: what
 * test_unwind.c and test_cleanup.c share.
 */
#ifndef FAIR_TEST_UNWIND_H
#define FAIR_TEST_UNWIND_H

#include <stdio.h>
#include <string.h>

#include "check.h"

#define UNWINDING(NAME, BODY, FLAGS)                                        \
    FAIR_NIF(NAME "_yielding", 1, BODY, FAIR_NORMAL | FAIR_CLEANUP | FLAGS), \
    FAIR_NIF(NAME "_dirty_cpu", 1, BODY, FAIR_DIRTY_CPU | FAIR_CLEANUP      \
             | FLAGS),                                                      \
    FAIR_NIF(NAME "_dirty_io", 1, BODY, FAIR_DIRTY_IO | FAIR_CLEANUP        \
             | FLAGS),                                                      \
    FAIR_NIF(NAME "_auto", 1, BODY, FAIR_AUTO | FAIR_CLEANUP | FLAGS),      \
    FAIR_NIF(NAME "_threaded", 1, BODY, FAIR_THREADED | FAIR_CLEANUP)
static const char *const mode_names[] = {
    "yielding", "dirty_cpu", "dirty_io", "auto", "threaded"
};
enum { UNWINDING_MODES = sizeof mode_names / sizeof *mode_names,
       THREADED = UNWINDING_MODES - 1 };

static long rounds;             /* of all bodies */

static inline const char *named(const char *name, int mode)
{
    static char full[4][64];
    static int next;

    next = (next + 1) % 4;
    snprintf(full[next], sizeof full[next], "%s_%s", name, mode_names[mode]);
    return full[next];
}

static inline vm_proc *call(const char *name, int mode)
{
    vm_proc *p = vm_spawn();
    vm_term list = vm_byte_list(vm_env(p), 3000, VM_NIL);

    node_await(p, named(name, mode), 1, &list);
    return p;
}

static inline void check_notes(const char *should, const char *name)
{
    check_that(!strcmp(notes(), should), __FILE__, __LINE__,
               "%s: %s, not %s", name, notes(), should);
    clear_notes();
}

/* Its work was begun again after a pause, or waits for what does not come. */
static inline bool has_begun(vm_proc *p, long before, bool waits)
{
    vm_run(p, 1);
    return __atomic_load_n(&rounds, __ATOMIC_RELAXED) > before + !waits;
}

/* None of them has wrapped round. */
static inline void check_times(const char *name, unsigned long most)
{
    static const char *const counters[] = {
        "normal_ns", "dirty_ns", "thread_ns", "longest_slice_ns"
    };

    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        check_that((unsigned long)node_counter(name, counters[i]) < most,
                   __FILE__, __LINE__, "%s: %s", name, counters[i]);
}

#endif
