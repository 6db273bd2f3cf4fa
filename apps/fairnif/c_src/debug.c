/*
 * debug.c - catches bodies that break the rules, as far as that can be seen.
 *
 * check_terms: every term that the runtime hands to a body is remembered with
 * the number of pauses so far.  A body that gives one back after a pause,
 * without having asked for it again, kept it in a C variable.  It is reported
 * even when the garbage collector did not move it this time.
 */
#include <stdio.h>

#include "rt.h"

enum { SEEN = 1024 };           /* direct-mapped: newer ones push out older */

struct fair__seen {
    struct {
        ERL_NIF_TERM term;
        uint64_t pauses;
    } terms[SEEN];
};

/* Reports on stderr and counts, so that a test can look for it. */
void fair__misuse(struct fair__task *t, const char *what)
{
    ADD(t->stat->misuses, 1);
    fprintf(stderr, "fairnif: %s:%s/%u %s\n", t->func->module, t->func->name,
            t->func->arity, what);
}

void fair__held_lock(int change)
{
    struct fair__thread *th = fair__self();

    if (th)
        th->locks += change;
}

/* Atoms, small integers, []: these do not move.  That the two lowest bits say
 * so is the VM's secret; it has been so since R12, and only this check would
 * miss something if it changed. */
static bool is_immediate(ERL_NIF_TERM term)
{
    return (term & 3) == 3;
}

static unsigned place_of(ERL_NIF_TERM term)
{
    return (unsigned)((term * 0x9E3779B97F4A7C15u) >> 54) % SEEN;
}

void fair__see_out(struct fair__task *t, ERL_NIF_TERM term)
{
    if (is_immediate(term))
        return;
    if (!t->seen) {
        t->seen = enif_alloc(sizeof *t->seen);
        if (!t->seen)
            return;
        memset(t->seen, 0, sizeof *t->seen);
    }
    t->seen->terms[place_of(term)].term = term;
    t->seen->terms[place_of(term)].pauses = t->pub.yields;
}

void fair__see_in(struct fair__task *t, ERL_NIF_TERM term)
{
    unsigned place = place_of(term);

    if (!t->seen || is_immediate(term))
        return;
    if (t->seen->terms[place].term == term
        && t->seen->terms[place].pauses < t->pub.yields)
        fair__misuse(t, "used a term that it kept across a pause: re-read it "
                     "with fair_arg or fair_kept");
}

ERL_NIF_TERM fair__seen_arg(fair_task *pub, ERL_NIF_TERM term)
{
    return fair__term_out(fair__of(pub), term);
}
