/*
 * runtime.h - what every file here knows: fairnif's runtime, and how it is got
 * at; plain atomics.
 *
 * Must never be done in any of them: link to a function of erl_driver.h (the
 * driver brings those: struct fair__drv_vm), call the author or a function of
 * the VM that may wait or call back with a lock held, register anything to run
 * at exit.
 */
#ifndef DRV_RUNTIME_H
#define DRV_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <fairnif_private.h>

#define FAIR__DRV_RUNTIME
#include "../c_include/fairdrv.h"

#define DRV_HIDDEN __attribute__((visibility("hidden")))
/* Plain loads, of what other threads may write at any time. */
#define GET(X) atomic_load_explicit(&(X), memory_order_relaxed)

typedef _Atomic uint64_t drv_u64;
typedef ERL_NIF_TERM drv_nif(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[]);

/* Set at the first load of this library, and never changed. */
DRV_HIDDEN extern const struct fair__private *drv__runtime;
/* 0, or one of FAIR_E_..., which is then said on standard error. */
DRV_HIDDEN int drv__bind(ErlNifEnv *env, ERL_NIF_TERM load_info);

#endif
