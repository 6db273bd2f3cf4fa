/*
 * look.h - a thread, each time that it is looked at.
 */
#ifndef WATCH_LOOK_H
#define WATCH_LOOK_H

#include "look/state.h"

/* How long threads may take to show their stacks, at each look: all of them. */
#define STACK_WAIT_NS (5 * NS_PER_MS)
WATCH_HIDDEN bool watch__measure_thread(struct watch *w,
                                        struct watch__thread *t);
WATCH_HIDDEN void watch__look_at(struct watch *w, struct watch__thread *t);
WATCH_HIDDEN void watch__judge_thread(struct watch *w, struct watch__thread *t,
                                      uint64_t lost);
WATCH_HIDDEN void watch__read_pressure(struct watch *w);
WATCH_HIDDEN void watch__rouse(struct watch *w);

#endif
