/*
 * stack.h - the stacks that tasks run on: taken and given back.
 */
#ifndef FAIR_STACK_H
#define FAIR_STACK_H

#include "task/task.h"

/* Of what an author may ask for; 0 is the default. */
static inline bool fair__stack_size_is_valid(size_t size)
{
    return size == 0 || (size >= FAIR__STACK_MIN && size <= FAIR__STACK_MAX);
}

FAIR_HIDDEN unsigned fair__stack_class(size_t size);    /* or FAIR__CLASSES */
FAIR_HIDDEN size_t fair__stack_size(unsigned stack_class);
FAIR_HIDDEN struct fair__task *fair__stack_take(struct fair__thread *th,
                                                unsigned stack_class,
                                                const char **error);
FAIR_HIDDEN void fair__stack_give(struct fair__thread *th,
                                  struct fair__task *t);
FAIR_HIDDEN int fair__stack_init(void);
struct fair__stack_counts {
    uint64_t mapped, pooled;
    uint64_t limit;             /* of mapped; 0: none */
    const char *guard;
    const char *handler;        /* of overflows: "installed", "replaced" */
};
FAIR_HIDDEN struct fair__stack_counts fair__stack_counts(void);

#endif
