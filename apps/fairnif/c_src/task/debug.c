/*
 * debug.c - catches bodies that break the rules, as far as that can be seen.
 *
 * check_terms: every term that the runtime hands to a body is remembered with
 * the number of pauses so far.  A body that gives one back after a pause,
 * without having asked for it again, kept it in a C variable.  It is reported
 * even when the garbage collector did not move it this time; unless it is part of
 * what was handed out since, where the body may have it from.
 */
#include <stdio.h>

#include "task/debug.h"

#include "base/os.h"
#include "task/switch.h"

enum {
    SEEN = 1024,                /* direct-mapped: newer ones push out older */
    PARTS = 100, DEPTH = 3      /* of a term, that are looked through */
};

struct fair__seen {
    struct {
        ERL_NIF_TERM term;
        uint64_t pauses;
    } terms[SEEN];
};

static const char *const rules[] = {
    [RULE_KEPT_TERM] = "used a term that it kept across a pause: re-read it "
        "with fair_arg or fair_kept",
    [RULE_LOCK] = "ticked while holding an enif mutex or rwlock",
    [RULE_EXCEPTION] = "went on after raising an exception: return what "
        "fair_badarg, fair_enomem or fair_raise returned",
    [RULE_NO_TERM] = "returned no term",
    [RULE_AWAY] = "used its task in a function given to fair_call or "
        "fair_defer: tick before and after it",
    [RULE_ROOT] = "named a root that there is not: use what fair_root "
        "answered, until fair_unroot",
    [RULE_RELEASED] = "used a fair_bin after fair_release_bin",
    [RULE_NOBODY] = "failed or raised, which nobody sees: it is a callback of a "
        "fair resource",
    [RULE_MODE] = "wants to be where it cannot: fair_move takes FAIR_NORMAL, "
        "FAIR_DIRTY_CPU and FAIR_DIRTY_IO, fair_call any mode",
};

/* Counts each time, so that a test can look for it, and says so once a call: a
 * loop that breaks a rule would else write a line for each tick. */
void fair__misuse(struct fair__task *t, enum fair__rule rule)
{
    char line[512];
    int length;

    /* Who runs code of its own is on any thread. */
    if (t->away)
        atomic_fetch_add(&t->func->elsewhere->misuses, 1);
    else
        ADD(t->stat->misuses, 1);
    if (t->told >> rule & 1)
        return;
    t->told |= 1u << rule;
    length = snprintf(line, sizeof line, "fairnif: %s:%s/%u %s\n",
                      t->func->module, t->func->name, t->func->arity,
                      rules[rule]);
    if (length > 0 && (size_t)length < sizeof line)
        fair__os_say(line, (size_t)length);
}

void fair__refuse(struct fair__task *t, enum fair__rule rule,
                  const char *error)
{
    if (fair__used_away(t))
        return;
    fair__misuse(t, rule);
    fair__fail(t, error);
}

bool fair__used_away(struct fair__task *t)
{
    if (fair_likely(!t->away))
        return false;
    fair__misuse(t, RULE_AWAY);
    return true;
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

static bool is_part(ErlNifEnv *env, ERL_NIF_TERM whole, ERL_NIF_TERM term,
                    int depth)
{
    const ERL_NIF_TERM *elems;
    ERL_NIF_TERM head, tail;
    int arity;

    if (whole == term)
        return true;
    if (depth == 0)
        return false;
    if (enif_get_tuple(env, whole, &arity, &elems)) {
        for (int i = 0; i < arity && i < PARTS; i++)
            if (is_part(env, elems[i], term, depth - 1))
                return true;
        return false;
    }
    for (int i = 0; i < PARTS
         && enif_get_list_cell(env, whole, &head, &tail); i++, whole = tail)
        if (tail == term || is_part(env, head, term, depth - 1))
            return true;
    return false;
}

/* Part of what is valid now: so is this. */
static bool is_valid(const struct fair__task *t, ERL_NIF_TERM term)
{
    for (unsigned i = 0; i < SEEN; i++)
        if (t->seen->terms[i].term
            && t->seen->terms[i].pauses == t->pub.yields
            && is_part(t->pub.env, t->seen->terms[i].term, term, DEPTH))
            return true;
    return false;
}

void fair__see_in(struct fair__task *t, ERL_NIF_TERM term)
{
    unsigned place = place_of(term);

    if (!t->seen || is_immediate(term))
        return;
    if (t->seen->terms[place].term == term
        && t->seen->terms[place].pauses < t->pub.yields && !is_valid(t, term))
        fair__misuse(t, RULE_KEPT_TERM);
}

ERL_NIF_TERM fair__seen_arg(fair_task *pub, ERL_NIF_TERM term)
{
    return fair__term_out(fair__of(pub), term);
}
