/*
 * attach.h - takes the registers and the stack of another process's thread.
 */
#ifndef WATCH_ATTACH_H
#define WATCH_ATTACH_H

#include "unwind/stack.h"

/* Stops the thread, copies, and lets it go: TAKEN_LATE if it does not stop
 * within `wait_ns`.  `paused_ns`: for how long, at most. */
WATCH_HIDDEN enum watch__taken watch__take_stopped(struct watch__snapshot *s,
                                                   int tid, uint64_t wait_ns,
                                                   uint64_t *paused_ns);
/* From what the kernel calls NT_PRSTATUS; false: it is too short. */
WATCH_HIDDEN bool watch__regs_from(struct watch__regs *r, const void *words,
                                   size_t size);

#endif
