/*
 * symbol.h - the symbol that covers an address.
 */
#ifndef WATCH_SYMBOL_H
#define WATCH_SYMBOL_H

#include "unwind/image.h"

WATCH_HIDDEN bool watch__symbol_of(const struct watch__image *image,
                                   uint64_t address,
                                   struct watch__frame *frame);
/* Where an exported symbol lies in memory; 0: there is none. */
WATCH_HIDDEN uint64_t watch__symbol_named(const struct watch__image *image,
                                          const char *wanted);

#endif
