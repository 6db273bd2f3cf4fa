/*
 * debug.c - detects bodies that break the rules, as far as that is possible.
 *
 * check_terms: every term that the runtime hands to a body is remembered with
 * the number of pauses so far.  A body that gives one back after a pause,
 * without having asked for it again, kept it in a C variable.  It is reported
 * even if the garbage collector did not move it this time, but not if it is part
 * of what was returned since: the body may have it from there.
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
    struct seen_term {
        ERL_NIF_TERM term;
        uint64_t pauses;
        bool arg;               /* came from fair_arg, and may be more since */
    } terms[SEEN];
};

static const char *const rules[] = {
    [RULE_KEPT_TERM] = "used a term that it kept across a pause: get it again "
        "with fair_arg or fair_root_get",
    [RULE_LOCK] = "ticked or paused while holding an enif mutex or rwlock, or while "
        "it initialised a static variable of C++: use fair::once for that",
    [RULE_EXCEPTION] = "continued after raising an exception: return what "
        "fair_badarg, fair_enomem or fair_raise returned",
    [RULE_NO_TERM] = "returned no term",
    [RULE_AWAY] = "used its task in a function passed to fair_offload or "
        "fair_defer: tick before and after it",
    [RULE_ROOT] = "used an invalid root number: pass what fair_root_new returned, "
        "until fair_root_drop",
    [RULE_RELEASED] = "used a fair_bin or fair_bytes after they were released",
    [RULE_NO_CALLER] = "failed or raised in a callback of a fair resource, "
        "which has no caller to raise it in",
    [RULE_MODE] = "passed an invalid mode: fair_move takes FAIR_NORMAL, "
        "FAIR_DIRTY_CPU and FAIR_DIRTY_IO, fair_offload any mode",
    [RULE_PORT] = "called enif_port_command outside a normal scheduler, which "
        "ends the node if the port closes meanwhile: fair_move to FAIR_NORMAL",
    [RULE_NOT_LOCKED] = "did not get a lock that another task holds, in a "
        "function passed to fair_offload or fair_defer, and continued without "
        "it: use fair_mutex_trylock, or lock around it",
};

/* Each rule that a function breaks is reported once a second: a loop, or many
 * calls, would else write a line each time. */
static bool is_news(struct fair__func *f, enum fair__rule rule)
{
    uint64_t second = fair__now_coarse() / FAIR__NS_PER_S << RULES;
    uint64_t old = GET(f->reported), now;

    do {
        now = (old >> RULES << RULES == second ? old : second) | 1u << rule;
        if (now == old)
            return false;
    } while (!atomic_compare_exchange_weak(&f->reported, &old, now));
    return true;
}

/* Counts each time, so that a test can look for it. */
void fair__misuse(struct fair__task *t, enum fair__rule rule)
{
    char line[512];
    int length;

    /* What fair_offload runs is on any thread. */
    if (t->away)
        atomic_fetch_add(&t->func->elsewhere->rule_violations, 1);
    else
        ADD(t->stat->rule_violations, 1);
    if (!is_news(t->func, rule))
        return;
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

/* A thread with no record has run no body, and gets none for a lock: an author's
 * own threads come and go, and a record stays. */
void fair__held_lock(int change)
{
    struct fair__thread *th = fair__this_thread();

    if (!th)
        return;
    if (th->locks + change >= 0)        /* a dropped body's are forgotten */
        th->locks += change;
    if (!change && fair__runs_whose(th))
        fair__misuse(fair__runs_whose(th), RULE_PORT);
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

static void note(struct fair__task *t, ERL_NIF_TERM term, bool arg)
{
    struct seen_term *place;

    if (is_immediate(term))
        return;
    if (!t->hold.seen) {
        t->hold.seen = enif_alloc(sizeof *t->hold.seen);
        if (!t->hold.seen)
            return;
        memset(t->hold.seen, 0, sizeof *t->hold.seen);
    }
    place = &t->hold.seen->terms[place_of(term)];
    *place = (struct seen_term){
        term, t->pub.yields, arg || (place->arg && place->term == term)
    };
}

void fair__see_out(struct fair__task *t, ERL_NIF_TERM term)
{
    note(t, term, false);
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
    const struct seen_term *terms = t->hold.seen->terms;

    for (unsigned i = 0; i < SEEN; i++)
        if (terms[i].term && terms[i].pauses == t->pub.yields
            && is_part(t->pub.env, terms[i].term, term, DEPTH))
            return true;
    return false;
}

static bool is_kept(const struct fair__task *t, ERL_NIF_TERM term)
{
    const struct seen_term *place =
        t->hold.seen ? &t->hold.seen->terms[place_of(term)] : NULL;

    return place && !is_immediate(term) && place->term == term
        && place->pauses < t->pub.yields && !is_valid(t, term);
}

void fair__see_in(struct fair__task *t, ERL_NIF_TERM term)
{
    if (is_kept(t, term))
        fair__misuse(t, RULE_KEPT_TERM);
}

ERL_NIF_TERM fair__seen_arg(fair_task *pub, ERL_NIF_TERM term)
{
    if (fair_unlikely(GET(fair__config.check_terms)))
        note(fair__of(pub), term, true);
    return term;
}

/* Only of arguments: a list that is walked once more by enif_get_list_cell has
 * the cells that were in a root before. */
void fair__seen_term(ERL_NIF_TERM term)
{
    struct fair__task *t = GET(fair__config.check_terms)
        ? fair__current_task() : NULL;

    if (t && !t->away && is_kept(t, term)
        && t->hold.seen->terms[place_of(term)].arg)
        fair__misuse(t, RULE_KEPT_TERM);
}
