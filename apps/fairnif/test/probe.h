/*
 * probe.h - what the tests see of bodies at work: shared between the library
 * fairnif_test_probe, which owns it and is never unloaded, and the libraries
 * under test, which get its address through their own load_info.
 */
#ifndef FAIRNIF_TEST_PROBE_H
#define FAIRNIF_TEST_PROBE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* One call (or many calls that are counted as one). */
struct slot {
    _Atomic long begun;         /* the body's first line was run */
    _Atomic long ended;         /* the first of its defers, the last to run */
    _Atomic long defers;        /* defers run: three for each that began */
    _Atomic long disorder;      /* defers not run in reverse order */
    _Atomic long finish;        /* asks endless bodies to return */
    _Atomic long end_ns;        /* when `ended` was counted */
    _Atomic long cleaned;       /* bodies that cleaned up, cancelled */
    _Atomic long cleaned_normal;    /* of them on a normal scheduler */
    _Atomic long works;         /* functions given to fair_offload: returned */
    _Atomic long work_ns;       /* when the last of them did */
};

enum { SLOTS = 65536 };

struct probe {
    _Atomic long next_slot;
    _Atomic long objects;       /* resource objects of the tests that exist */
    _Atomic long privs;         /* private data of libraries, allocated */
    void *object_type;          /* ErlNifResourceType, of fairnif_test_nif */
    struct slot slots[SLOTS];
};

static inline long probe_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

#endif
