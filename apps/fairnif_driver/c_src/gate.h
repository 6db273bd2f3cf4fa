/*
 * gate.h - which jobs that compute may be on threads at once.
 */
#ifndef DRV_GATE_H
#define DRV_GATE_H

#include "port.h"

/* True: the job may go to the pool; false: it waits, until another leaves.
 * Locked or not. */
DRV_HIDDEN bool drv__gate_pass(struct drv_job *job);
/* Takes a job away that waits; false: it does not. */
DRV_HIDDEN bool drv__gate_forget(struct drv_job *job);
/* A job is done, or never will be: the next one goes to the pool.  With no lock
 * held. */
DRV_HIDDEN void drv__gate_leave(struct drv_job *job);

#endif
