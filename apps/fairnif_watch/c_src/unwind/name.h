/*
 * name.h - what a frame is called.
 */
#ifndef WATCH_NAME_H
#define WATCH_NAME_H

#include "unwind/maps.h"

/* Fills in the names: dearer than unwinding, for frames that are reported. */
WATCH_HIDDEN void watch__name(struct watch__maps *maps,
                              struct watch__frame *frame);

#endif
