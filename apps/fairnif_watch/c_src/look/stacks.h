/*
 * stacks.h - what a thread is at, by its stack: into w->stack.
 */
#ifndef WATCH_STACKS_H
#define WATCH_STACKS_H

#include "look/state.h"
#include "unwind/culprit.h"

WATCH_HIDDEN enum watch__class watch__classify(struct watch *w,
                                               struct watch__thread *t);
WATCH_HIDDEN bool watch__take_stack(struct watch *w, struct watch__thread *t,
                              uint64_t wait_ns);
WATCH_HIDDEN bool watch__take_late_stack(struct watch *w,
                                         struct watch__thread *t);
WATCH_HIDDEN bool watch__call_of(const struct watch *w,
                               const struct watch__thread *t,
                               struct watch__shown *shown);
WATCH_HIDDEN bool watch__process(const struct watch__stack *s, ErlNifPid *pid);
/* t->syscall_fd; -2: the system does not show where its threads sleep. */
WATCH_HIDDEN void watch__open_syscall(struct watch__thread *t);

#endif
