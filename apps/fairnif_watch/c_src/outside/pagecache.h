/*
 * pagecache.h - pages of a node, read once: a function's name takes dozens of
 * readings.
 */
#ifndef WATCH_PAGECACHE_H
#define WATCH_PAGECACHE_H

#include "outside/vm.h"

/* From now on watch__read goes through it; NULL: never. */
WATCH_HIDDEN void watch__pagecache_open(const struct watch__vm *vm);
/* Erlang code is kept until it is cleared, which is due before its lists are
 * read again; all else from `begin` to `end`. */
WATCH_HIDDEN void watch__pagecache_clear(void);
WATCH_HIDDEN void watch__pagecache_begin(void);
WATCH_HIDDEN void watch__pagecache_end(void);

#endif
