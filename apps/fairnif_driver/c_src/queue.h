/*
 * queue.h - jobs: made, put behind what a port has to do, taken, cancelled.
 * What says "locked" is called with the port's lock held.
 */
#ifndef DRV_QUEUE_H
#define DRV_QUEUE_H

#include "port.h"

/* With a copy of `buf`; NULL when out of memory. */
DRV_HIDDEN struct drv_job *drv__job_new(struct drv_port *p,
                                        enum drv_kind kind, int flags,
                                        const char *buf, size_t len);
DRV_HIDDEN void drv__job_free(struct drv_job *job);
/* It was not begun, or not to an end that anybody wants to hear of. */
DRV_HIDDEN void drv__cancel(struct drv_job *job);
/* The same of the job whose turn it is. */
DRV_HIDDEN void drv__forget(struct drv_job *job);
DRV_HIDDEN void drv__push(struct drv_port *p, struct drv_job *job,
                          bool own);                    /* locked */
/* The first of the queue, which gets the turn. */
DRV_HIDDEN struct drv_job *drv__pop(struct drv_port *p);    /* locked */
DRV_HIDDEN uint64_t drv__jobs(void);

#endif
