/*
 * callbacks.h - what the VM, and an author's callbacks, call of this library.
 */
#ifndef DRV_CALLBACKS_H
#define DRV_CALLBACKS_H

#include "port.h"

DRV_HIDDEN extern const struct fair__drv_ops drv__ops;

#endif
