/*
 * debug.h - catches bodies that break the rules.
 */
#ifndef FAIR_DEBUG_H
#define FAIR_DEBUG_H

#include "base/config.h"
#include "task/task.h"

/* 0: a command to a port, off a normal scheduler. */
FAIR_HIDDEN void fair__held_lock(int change);

enum fair__rule {               /* their texts are in debug.c */
    RULE_KEPT_TERM, RULE_LOCK, RULE_EXCEPTION, RULE_NO_TERM, RULE_AWAY,
    RULE_ROOT, RULE_RELEASED, RULE_MODE, RULE_NO_CALLER, RULE_NOT_LOCKED,
    RULE_PORT, RULES
};
FAIR_HIDDEN void fair__misuse(struct fair__task *t, enum fair__rule rule);
/* Ends the call, unless the task is away; the caller does nothing then. */
FAIR_HIDDEN void fair__refuse(struct fair__task *t, enum fair__rule rule,
                              const char *error);
/* Refuses what is no root's number: they count from 1. */
static inline bool fair__is_root(struct fair__task *t, unsigned root)
{
    if (fair_likely(root - 1 < t->hold.roots_used))
        return true;
    fair__refuse(t, RULE_ROOT, "bad_root");
    return false;
}

/* True, and reported, when the task must not be used. */
FAIR_HIDDEN bool fair__used_away(struct fair__task *t);
FAIR_HIDDEN void fair__see_out(struct fair__task *t, ERL_NIF_TERM term);
FAIR_HIDDEN void fair__see_in(struct fair__task *t, ERL_NIF_TERM term);
FAIR_HIDDEN ERL_NIF_TERM fair__seen_arg(fair_task *pub, ERL_NIF_TERM term);
/* A term that a body compiled with FAIR_DEBUG gives to an enif_ function. */
FAIR_HIDDEN void fair__seen_term(ERL_NIF_TERM term);

/* A term goes to the body, or comes from it. */
static inline ERL_NIF_TERM fair__term_out(struct fair__task *t,
                                          ERL_NIF_TERM term)
{
    if (fair_unlikely(GET(fair__config.check_terms)))
        fair__see_out(t, term);
    return term;
}

static inline void fair__term_in(struct fair__task *t, ERL_NIF_TERM term)
{
    if (fair_unlikely(GET(fair__config.check_terms)))
        fair__see_in(t, term);
}

#endif
