/*
 * library.h - a port driver's library: handed the runtime, and kept mapped.
 */
#ifndef DRV_LIBRARY_H
#define DRV_LIBRARY_H

#include "runtime.h"

/* A load of one.  Belongs to that load, until `finish`, and to each port until
 * its `stop` has been called. */
struct drv_loaded;

DRV_HIDDEN void drv__loaded_ref(struct drv_loaded *l);
DRV_HIDDEN void drv__loaded_unref(struct drv_loaded *l);
DRV_HIDDEN void drv__finish(struct fair__driver *driver);
/* ok | {error, Reason}: hands `ops` to the driver that erl_ddll has loaded from
 * the file `path`, a binary. */
DRV_HIDDEN ERL_NIF_TERM drv__hand_over(ErlNifEnv *env, ERL_NIF_TERM path,
                                       const struct fair__drv_ops *ops);
DRV_HIDDEN uint64_t drv__libraries(void);

#endif
