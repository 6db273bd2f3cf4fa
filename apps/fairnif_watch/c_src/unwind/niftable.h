/*
 * niftable.h - the Erlang function or callback that a frame is.
 */
#ifndef WATCH_NIFTABLE_H
#define WATCH_NIFTABLE_H

#include "unwind/maps.h"

WATCH_HIDDEN void watch__nif_of(struct watch__maps *maps,
                                struct watch__image *image,
                                struct watch__frame *frame);

#endif
