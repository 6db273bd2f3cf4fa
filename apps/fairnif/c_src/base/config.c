/*
 * config.c - the settings until fairnif:configure/0 has read the application
 * environment.
 */
#include "base/config.h"

struct fair__config fair__config = {
    .slice_ns = 25000,
    .turn_ns = 25000,
    .dirty_slice_ns = 1000000,
    .dirty_round_trip_ns = 2000,
    .auto_gap_ns = 1000000,
    .dirty_cpus = 1,
    .threads = 16,
    .pool_nice = 10,
    .max_queued = 1000,
    .overload_ns = 5000000000,
};
