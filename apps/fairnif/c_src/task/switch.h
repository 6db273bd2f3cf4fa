/*
 * switch.h - onto a task's stack, and back.
 */
#ifndef FAIR_SWITCH_H
#define FAIR_SWITCH_H

#include "task/task.h"

/* From a scheduler's stack, or a thread's: runs the task until it leaves its
 * own; t->exit says why. */
FAIR_HIDDEN void fair__switch_to(struct fair__task *t);
/* Of a task that has one: as a slice begins, with the time left of it. */
FAIR_HIDDEN void fair__set_alarm(struct fair__task *t, uint64_t left_ns);
/* From the task's. */
FAIR_HIDDEN void fair__leave(struct fair__task *t, enum fair__exit exit);
/* Whether the thread's own stack is what the author asked for, or more. */
FAIR_HIDDEN bool fair__thread_has_room(const struct fair__thread *th,
                                       const struct fair__task *t);
FAIR_HIDDEN void fair__outside(struct fair__task *t, void (*fn)(void *),
                               void *arg);
FAIR_HIDDEN __attribute__((noreturn)) void fair__fail(struct fair__task *t,
                                                      const char *error);

#endif
