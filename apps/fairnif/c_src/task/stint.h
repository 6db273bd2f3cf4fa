/*
 * stint.h - authors' code on a thread of the pool, from when a thread begins with
 * it until it has left.
 */
#ifndef FAIR_STINT_H
#define FAIR_STINT_H

#include "task/task.h"
#include "thread/low.h"

struct fair__stint {
    struct fair__low *low;      /* what runs it in that thread's place, or NULL */
    struct fair__thread *at;    /* the record of the thread that does; NULL:
                                   without memory */
    uint64_t begin;
    bool resumed;               /* with a body whose slice was up: it is not
                                   short */
    bool measured;              /* by `before` */
    struct fair__used before;
};
FAIR_HIDDEN struct fair__stint fair__stint_begin(struct fair__task *t,
                                                 struct fair__thread *th,
                                                 bool resumed);
/* It continues on the pool's own thread. */
FAIR_HIDDEN void fair__stint_at_par(struct fair__stint *s);
/* On both, so far; of the clock only, where that is all that is known. */
FAIR_HIDDEN struct fair__used fair__stint_used(const struct fair__stint *s);
/* It is over, with the call, its function, or until what it waits for has come;
 * or it paused. */
FAIR_HIDDEN void fair__stint_learn(struct fair__task *t,
                                   const struct fair__stint *s,
                                   const struct fair__used *u, bool paused);

#endif
