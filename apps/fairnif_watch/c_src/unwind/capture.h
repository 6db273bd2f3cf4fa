/*
 * capture.h - takes the registers and the stack of another thread.
 */
#ifndef WATCH_CAPTURE_H
#define WATCH_CAPTURE_H

#include "unwind/stack.h"

/* Installs the handler where `signals`, for a real-time signal that nobody
 * uses; 0 or an errno (EBUSY: all are used; ENOTSUP: not on
 * this processor).  watch__stack_stop waits, up to
 * two seconds, until no thread has a signal of ours pending or is in the
 * handler, and restores what was there before.  False: one could not be
 * accounted for; then the signal stays ignored, and this library must never be
 * unmapped. */
WATCH_HIDDEN int watch__stack_start(bool signals);
WATCH_HIDDEN bool watch__stack_stop(void);

/* Waits at most `wait_ns` for the thread to copy itself. */
WATCH_HIDDEN enum watch__taken watch__take_running(struct watch__snapshot *s,
                                                   int tid, uint64_t wait_ns);
/* After that came to TAKEN_LATE: what the thread copied since; how long ago,
 * nobody knows.  Lost where another thread was asked at the time; else to be
 * called again. */
WATCH_HIDDEN enum watch__taken watch__take_late(struct watch__snapshot *s,
                                                int tid);
WATCH_HIDDEN enum watch__taken watch__take_sleeping(struct watch__snapshot *s,
                                                    int tid);
/* From the red zone upward, into a snapshot's; bytes. */
WATCH_HIDDEN size_t watch__copy_stack(unsigned char *stack, uint64_t sp,
                                      uint64_t *from);

#endif
