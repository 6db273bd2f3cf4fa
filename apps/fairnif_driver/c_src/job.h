/*
 * job.h - whose turn it is in a port, and jobs as they run.
 */
#ifndef DRV_JOB_H
#define DRV_JOB_H

#include "port.h"

/* With the port's lock held, which it releases: the next job is started, if
 * nothing runs. */
DRV_HIDDEN void drv__settle(struct drv_port *p);
/* The callback or job whose turn it was has returned.  False: it was the last
 * of a port that is closed, which is gone now. */
DRV_HIDDEN bool drv__end_turn(struct drv_port *p);
/* With the port's lock held.  True: the job had not been begun, and now never
 * is; drv__gate_leave must follow, without a lock. */
DRV_HIDDEN bool drv__withdraw(struct drv_job *job);
/* In the port's context: a slice of what is to be done there. */
DRV_HIDDEN void drv__work(struct drv_port *p);
/* In the context of a port that closes: what is paused continues to its end. */
DRV_HIDDEN void drv__finish_paused(struct drv_port *p);
DRV_HIDDEN int drv__tick(ErlDrvPort port, size_t units);

#endif
