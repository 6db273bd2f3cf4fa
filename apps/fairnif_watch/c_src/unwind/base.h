/*
 * base.h - the frame pointer, where the row needs it and it is not known.
 */
#ifndef WATCH_BASE_H
#define WATCH_BASE_H

#include "unwind/row.h"

WATCH_HIDDEN bool watch__frame_base(const struct watch__snapshot *s,
                                    const struct watch__row *row, uint64_t sp,
                                    uint64_t pc, uint64_t *base);
/* Is the word there a return address, just behind a call of the function? */
WATCH_HIDDEN bool watch__frame_fits(const struct watch__snapshot *s,
                                    uint64_t at, uint64_t function);

#endif
