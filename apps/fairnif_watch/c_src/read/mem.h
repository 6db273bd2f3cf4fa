/*
 * mem.h - memory that may not be there, and words to wait for.
 */
#ifndef WATCH_MEM_H
#define WATCH_MEM_H

#include "read/common.h"

/* Copies memory of this process, or of watch__source, that may not be there;
 * bytes copied.  No lock,
 * no allocation, errno is kept. */
WATCH_HIDDEN size_t watch__read(void *to, uint64_t from, size_t size);
WATCH_HIDDEN bool watch__read_all(void *to, uint64_t from, size_t size);
WATCH_HIDDEN void watch__read_start(void);
WATCH_HIDDEN void watch__read_stop(void);
WATCH_HIDDEN void watch__read_refuse(bool refuse);
WATCH_HIDDEN void *watch__pages(size_t size);
WATCH_HIDDEN void watch__pages_free(void *p, size_t size);

/* Waits while *word is `value`, until then at most (CLOCK_MONOTONIC); may come
 * back early.  The other wakes one who waits; from a handler too. */
WATCH_HIDDEN void watch__futex_wait(_Atomic uint32_t *word, uint32_t value,
                                    uint64_t until);
WATCH_HIDDEN void watch__futex_wake(_Atomic uint32_t *word);

#endif
