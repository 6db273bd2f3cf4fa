/*
 * symbol.h - the symbol that covers an address.
 */
#ifndef WATCH_SYMBOL_H
#define WATCH_SYMBOL_H

#include "unwind/image.h"

WATCH_HIDDEN bool watch__symbol_of(const struct watch__image *image,
                                   uint64_t address,
                                   struct watch__frame *frame);

#endif
