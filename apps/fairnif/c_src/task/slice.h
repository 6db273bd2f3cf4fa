/*
 * slice.h - time: when a task yields.
 */
#ifndef FAIR_SLICE_H
#define FAIR_SLICE_H

#include "task/task.h"

FAIR_HIDDEN void fair__first_slice(struct fair__task *t);
FAIR_HIDDEN void fair__next_slice(struct fair__task *t);
FAIR_HIDDEN void fair__slice_end(struct fair__task *t);
FAIR_HIDDEN bool fair__slice_is_up(uint64_t since);
FAIR_HIDDEN int fair__tick(fair_task *pub, size_t units);
/* For the runtime's own sliced loops: fair__work_begin, then fair__work every
 * few microseconds, then fair__work_end.  Their time is no unit's. */
FAIR_HIDDEN void fair__work_begin(struct fair__task *t);
FAIR_HIDDEN void fair__work(struct fair__task *t);
FAIR_HIDDEN void fair__work_end(struct fair__task *t);
FAIR_HIDDEN void fair__go(struct fair__task *t, enum fair__where where);
FAIR_HIDDEN void fair__go_waiting(struct fair__task *t);
/* From the task's stack, which it leaves for a while.  What was sent goes to the
 * caller, which sends it. */
FAIR_HIDDEN void fair__hand_out(struct fair__task *t);
/* Before anything that may take long. */
static inline void fair__sends(struct fair__task *t)
{
    if (fair_unlikely(t->ask.outbox != 0))
        fair__hand_out(t);
}
FAIR_HIDDEN void fair__announced(struct fair__task *t, uint64_t ns);
FAIR_HIDDEN void fair__force_look(struct fair__task *t);

enum {
    FAIR__TERMS_ON_DIRTY = 1 << 20,     /* bytes; see give_way */
    FAIR__KEEP_AT_ONCE = 1000           /* binaries, when a slice ends: 0.1 ms */
};

/* The runtime made a term of that many bytes for the body. */
static inline void fair__made(struct fair__task *t, size_t bytes)
{
    t->slice.made += bytes;
    if (fair_unlikely(t->where != W_NORMAL
                      && t->slice.made >= FAIR__TERMS_ON_DIRTY))
        fair__force_look(t);
}

#endif
