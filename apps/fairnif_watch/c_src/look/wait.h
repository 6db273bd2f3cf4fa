/*
 * wait.h - waits for a processor.
 */
#ifndef WATCH_WAIT_H
#define WATCH_WAIT_H

#include "look/state.h"

extern WATCH_HIDDEN const unsigned watch__wait_ms[WATCH__WAITS];

WATCH_HIDDEN uint64_t watch__longest_wait(uint64_t waited, uint64_t runs,
                                          uint64_t gap);
WATCH_HIDDEN void watch__judge_wait(struct watch__thread *t,
                                    const struct watch__wait *now,
                                    bool since_last);
WATCH_HIDDEN void watch__note_wait(struct watch__thread *t, uint64_t now);

#endif
