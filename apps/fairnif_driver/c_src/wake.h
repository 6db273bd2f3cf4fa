/*
 * wake.h - how a thread calls a port.  What says "locked" is called with the
 * port's lock held.
 */
#ifndef DRV_WAKE_H
#define DRV_WAKE_H

#include "port.h"

static inline ErlDrvEvent drv__event(int fd)
{
    return (ErlDrvEvent)(intptr_t)fd;
}
DRV_HIDDEN bool drv__wake_open(struct drv_port *p);
DRV_HIDDEN void drv__wake(struct drv_port *p);         /* locked */
DRV_HIDDEN void drv__wake_read(struct drv_port *p);    /* locked */
DRV_HIDDEN void drv__wake_close(struct drv_port *p);
DRV_HIDDEN int drv__wake_stopped(ErlDrvEvent event);

#endif
