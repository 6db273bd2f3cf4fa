/*
 * end.h - what a task holds is let go; who is suspended.
 */
#ifndef FAIR_END_H
#define FAIR_END_H

#include "task/task.h"

FAIR_HIDDEN void fair__handle_dtor(ErlNifEnv *env, void *obj);
FAIR_HIDDEN bool fair__handle_new(struct fair__task *t);
/* A pin keeps the author's library mapped while no term holds the
 * handle. */
FAIR_HIDDEN bool fair__pin(struct fair__task *t);
/* On a thread of the pool, before anything is let go of a task that cannot be
 * gone on with: its body cleans up, if it has to. */
FAIR_HIDDEN void fair__clean_up(struct fair__task *t,
                                struct fair__thread *th);
/* A body that was cancelled has returned: why its task ends. */
FAIR_HIDDEN void fair__cleaned_up(struct fair__task *t);
FAIR_HIDDEN void fair__let_go(struct fair__task *t);
FAIR_HIDDEN void fair__task_end(struct fair__task *t,
                                struct fair__thread *th);
FAIR_HIDDEN void fair__drop_elsewhere(struct fair__task *t, ErlNifEnv *env);

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
FAIR_HIDDEN void fair__enlist(struct fair__task *t);
FAIR_HIDDEN struct fair__seen_task *fair__suspended(size_t *count);
FAIR_HIDDEN size_t fair__suspended_count(void);

#endif
