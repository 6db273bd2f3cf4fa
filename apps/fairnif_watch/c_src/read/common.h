/*
 * common.h - what every file here may use.
 */
#ifndef WATCH_COMMON_H
#define WATCH_COMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_HIDDEN __attribute__((visibility("hidden")))

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#  define WATCH__UNWINDS 1
#else
#  define WATCH__UNWINDS 0
#endif

#define GET(X) atomic_load_explicit(&(X), memory_order_relaxed)
#define SET(X, V) atomic_store_explicit(&(X), (V), memory_order_relaxed)
/* For the single writer of X. */
#define ADD(X, V) SET(X, GET(X) + (V))

typedef _Atomic uint64_t watch__u64;

#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S ((uint64_t)1000000000)
#define WATCH__NEVER UINT64_MAX

static inline uint64_t watch__less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
