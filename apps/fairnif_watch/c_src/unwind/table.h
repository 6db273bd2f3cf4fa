/*
 * table.h - a library's unwind table.
 */
#ifndef WATCH_TABLE_H
#define WATCH_TABLE_H

#include "unwind/maps.h"

/* The row for pc, read or kept; NULL: the library has none. */
WATCH_HIDDEN const struct watch__row *watch__row_of(struct watch__maps *maps,
                                                    struct watch__image *image,
                                                    uint64_t pc);

#endif
