/*
 * hold.h - what goes with a task: roots, memory, deferred functions, resource
 * objects.
 */
#ifndef FAIR_HOLD_H
#define FAIR_HOLD_H

#include "task/task.h"

FAIR_HIDDEN unsigned fair__root_new(fair_task *pub, ERL_NIF_TERM term);
FAIR_HIDDEN void fair__root_drop(fair_task *pub, unsigned root);
FAIR_HIDDEN void fair__root_set(fair_task *pub, unsigned root,
                                ERL_NIF_TERM term);
FAIR_HIDDEN ERL_NIF_TERM fair__root_get(fair_task *pub, unsigned root);
FAIR_HIDDEN void *fair__alloc(fair_task *pub, size_t size);
FAIR_HIDDEN void *fair__realloc(fair_task *pub, void *ptr, size_t size);
FAIR_HIDDEN void fair__free(fair_task *pub, void *ptr);
FAIR_HIDDEN int fair__defer(fair_task *pub, void (*fn)(void *), void *ptr);
FAIR_HIDDEN int fair__undefer(fair_task *pub, void (*fn)(void *), void *ptr);
FAIR_HIDDEN int fair__get_resource(fair_task *pub, ERL_NIF_TERM term,
                                   ErlNifResourceType *type, void **obj);
/* The same for the runtime itself, which frees it by setting roots_used. */
FAIR_HIDDEN unsigned fair__own_root(struct fair__task *t, ERL_NIF_TERM term);
/* The roots at a pause, as at most FAIR__INLINE_ROOTS arguments; answers how
 * many.  And back.  How many of them are in the tuple that is the last one; 0:
 * there is none. */
FAIR_HIDDEN unsigned fair__roots_out(struct fair__task *t, ErlNifEnv *env,
                                     ERL_NIF_TERM *argv);
FAIR_HIDDEN void fair__roots_in(struct fair__task *t, ErlNifEnv *env,
                                const ERL_NIF_TERM *argv);
static inline unsigned fair__roots_apart(const struct fair__task *t)
{
    return t->hold.roots_used > FAIR__INLINE_ROOTS
        ? t->hold.roots_used - (FAIR__INLINE_ROOTS - 1) : 0;
}
/* Is that such a tuple, of `apart` elements? */
FAIR_HIDDEN bool fair__is_roots_apart(ErlNifEnv *env, ERL_NIF_TERM term,
                                      unsigned apart);
FAIR_HIDDEN ERL_NIF_TERM fair__raise(fair_task *pub, ERL_NIF_TERM reason);

FAIR_HIDDEN void fair__hold_init(struct fair__task *t);
/* The task ends: fair__defers_run, then fair__hold_release, on any thread.  They
 * release up to `most`, by weight, and answer what is left of that; 0: call
 * again.  Nothing when they are called once more. */
static inline bool fair__has_held(const struct fair__task *t)
{
    const struct fair__hold *h = &t->hold;

    return h->terms || h->bins || h->defers || h->blocks || h->resources
        || h->seen || h->more_defers;
}
FAIR_HIDDEN unsigned fair__defers_run(struct fair__task *t, unsigned most);
FAIR_HIDDEN unsigned fair__hold_release(struct fair__task *t, unsigned most);

#endif
