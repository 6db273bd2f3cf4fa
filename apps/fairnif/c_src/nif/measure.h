/*
 * measure.h - two measurements for the calibration.
 */
#ifndef FAIR_MEASURE_H
#define FAIR_MEASURE_H

#include "base/base.h"

FAIR_HIDDEN fair__nif_function fair__reschedule_ns, fair__dirty_round_trip_ns;

#endif
