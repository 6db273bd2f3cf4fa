/*
 * bytes.h - numbers of tables, from a copied piece.
 */
#ifndef WATCH_BYTES_H
#define WATCH_BYTES_H

#include "read/common.h"

/* A piece of a table, copied; reading behind its end is `bad` and gives 0. */
struct watch__reader {
    const unsigned char *at, *end;
    uint64_t address;           /* of `end` in memory */
    bool bad;
};
WATCH_HIDDEN uint64_t watch__get(struct watch__reader *r, unsigned bytes);
WATCH_HIDDEN uint64_t watch__get_uleb(struct watch__reader *r);
WATCH_HIDDEN int64_t watch__get_sleb(struct watch__reader *r);
WATCH_HIDDEN uint64_t watch__get_pointer(struct watch__reader *r,
                                         unsigned encoding, uint64_t data);
WATCH_HIDDEN uint64_t watch__position(const struct watch__reader *r);

#endif
