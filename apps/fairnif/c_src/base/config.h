/*
 * config.h - the settings, and the few counts that are as global.
 */
#ifndef FAIR_CONFIG_H
#define FAIR_CONFIG_H

#include "base/base.h"

/* Set once by fairnif:load_runtime and then by fairnif:configure; read
 * everywhere. */
struct fair__config {
    fair__u64 slice_ns;         /* on normal schedulers */
    fair__u64 turn_ns;          /* what 4000 reductions take: the price */
    fair__u64 dirty_slice_ns;
    fair__u64 dirty_round_trip_ns;    /* a dirty call there and back */
    fair__u64 auto_gap_ns;     /* AUTO: mean gap from which calls begin
                                   dirty */
    fair__u64 max_tasks;        /* 0: no limit */
    fair__u64 dirty_cpus;       /* dirty CPU schedulers online; up to this
                                   many threads of the pool compute at once */
    fair__u64 threads;          /* of the pool, at most */
    fair__u64 pool_nice;        /* authors' code has a priority there that is
                                   lower than the schedulers' by this */
    fair__u64 scheduler_slice_ns;   /* the kernel's slice of the threads of
                                   normal schedulers; 0: the usual one */
    fair__u64 max_queued;       /* jobs that wait for one */
    fair__u64 overload_ns;      /* how long a call waits to begin */
    fair__u64 spin;             /* more than one processor: a thread of the
                                   pool may look for work without sleeping */
    _Atomic bool pause_every_tick;
    _Atomic bool check_terms;
    _Atomic bool measure_cpu;
    /* not settings, but as global */
    uint64_t active;                /* calls under way, with max_tasks set;
                                       under the lock of what waits */
    _Atomic bool halts;             /* the VM does: bodies stay where they are */
    _Atomic int64_t dirty_running;  /* tasks that hold a dirty CPU scheduler */
};
extern FAIR_HIDDEN struct fair__config fair__config;

#endif
