/*
 * drivers.h - port drivers, as module fairnif sees them: its NIFs.
 */
#ifndef FAIR_DRIVERS_H
#define FAIR_DRIVERS_H

#include "base/base.h"

FAIR_HIDDEN fair__nif_function fair__driver_bind, fair__driver_known,
    fair__driver_request, fair__driver_deferred, fair__driver_abandon,
    fair__driver_counts;
FAIR_HIDDEN bool fair__drivers_open(ErlNifEnv *env);

#endif
