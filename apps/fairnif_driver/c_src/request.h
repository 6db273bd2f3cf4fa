/*
 * request.h - what waits for an answer, and how it comes.
 */
#ifndef DRV_REQUEST_H
#define DRV_REQUEST_H

#include "port.h"

/* The request of the process that the VM calls the port for, in the port's
 * context and with its lock held; NULL: none waits. */
DRV_HIDDEN struct drv_request *drv__claim(struct drv_port *p);
/* What the job has come to, to the process that waits; frees it. */
DRV_HIDDEN void drv__answer(struct drv_job *job);
DRV_HIDDEN uint64_t drv__requests(void);

/* NIFs, and what they need of their module's load. */
DRV_HIDDEN drv_nif drv__known, drv__request, drv__deferred, drv__abandon;
DRV_HIDDEN bool drv__requests_open(ErlNifEnv *env);

#endif
