/*
 * resources.h - fair resources that go: what test_resource.c and
 * test_callbacks.c share.  Each has a NIF make(How, Number).
 */
#ifndef FAIR_TEST_RESOURCES_H
#define FAIR_TEST_RESOURCES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static fair_resource_type *things;
static fair_mutex mutex = FAIR_MUTEX_INIT;
static long cleaned;            /* callbacks of theirs that have ended */

static inline long cleaned_so_far(void)
{
    return __atomic_load_n(&cleaned, __ATOMIC_ACQUIRE);
}

static inline char here(void)
{
    return "?nci"[enif_thread_type()];
}

/* In the real emulator the tests of a file have one process, and what one has
 * learned holds for the next: nothing is in place there unless asked for. */
static inline void afresh(void)
{
#ifdef VM_REAL
    node_set("slice_ns", 1000);
#endif
    cleaned = 0;
    clear_notes();
}

static inline vm_proc *with_thing(int how)
{
    char args[32];

    snprintf(args, sizeof args, "%d, 17", how);
    return spawn_call("make", args);
}

/* Made, and garbage: as a process that has it ends, on a normal scheduler. */
static inline void drop_thing(int how)
{
    vm_proc *p = with_thing(how);

    CHECK(vm_finish(p) == VM_DONE);
    vm_free(p);
}

static inline void drop_thing_and_wait(int how)
{
    long before = cleaned_so_far(), stacks = node_stacks();

    drop_thing(how);
    EVENTUALLY(cleaned_so_far() == before + 1);
    EVENTUALLY(node_stacks() <= stacks);    /* and its cost is learned */
}

/* One that is `quick` goes: the next ones are in place. */
static inline void let_it_be_short(int quick)
{
    node_set("slice_ns", 1000000000);   /* whatever the sanitizer makes of it */
    drop_thing_and_wait(quick);
    clear_notes();
}

#endif
