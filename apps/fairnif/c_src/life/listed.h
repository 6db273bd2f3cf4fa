/*
 * listed.h - the tasks that have been suspended and have not ended, for
 * fairnif:tasks/0 and others who ask.
 */
#ifndef FAIR_LISTED_H
#define FAIR_LISTED_H

#include "task/task.h"

struct fair__seen_task {        /* for readers: a copy */
    struct fair__func *func;
    int state, target;
    uint64_t since_ns;
    uint64_t cancelled_ns;      /* 0: is not */
    uint64_t yields;
    ErlNifPid owner;
    bool is_outlived;           /* a process of which two newer libraries are
                                   loaded: Erlang code would have been purged */
};
/* Nothing of one that is in the list already, or is not. */
FAIR_HIDDEN void fair__enlist(struct fair__task *t);
FAIR_HIDDEN void fair__delist(struct fair__task *t);
/* The caller frees it.  NULL when there is none, or no memory. */
FAIR_HIDDEN struct fair__seen_task *fair__suspended(size_t *count);
FAIR_HIDDEN size_t fair__suspended_count(void);

#endif
